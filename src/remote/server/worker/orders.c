/* Orders to the client. See worker.h and wire.h.
 *
 *   the client's connection (HED_PREFACE_ORDERS) ── shows the secret ──> w->orders; nobody reads it
 *   an operator's connection (HED_PREFACE_ORDER) ── thread: order ──> w->orders
 *                                               <── reports, the last one ends it ──┘
 *
 * A client that has gone elsewhere leaves its channels first and then says so. The process ends
 * with its channels, but it waits for these words.
 *
 * Invariants:
 * 1. One order is carried out at a time. Its thread has taken the connection out of w->orders.
 * 2. What either side sends is checked (remote/wire/order.h), and copied to the other as that left
 * it.
 * 3. No thread waits for an operator. One that reads nothing is given up.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "remote/server/handed.h"
#include "remote/server/status.h"
#include "remote/server/worker/worker.h"
#include "remote/wire/link/link.h"
#include "remote/wire/order.h"

#define THREADS_MOST 8                       /* connections that are being dealt with */
#define THREADS_KEPT 2                       /* of these, for operators only */
#define OPERATOR_MS 5000                     /* for an operator to say what he wants */
#define CLIENT_NS (5 * HED_NS_PER_S)         /* for a new client to connect */
#define BEGIN_MS 60000                       /* for the client to say that it has begun */
#define SILENT_MS 600000                     /* between two reports */
#define RELAY_NS (HED_NS_PER_S / 2)          /* reports on the way are passed on so often */
#define LAST_NS (3 * HED_NS_PER_S)           /* for the last report, when the channels are gone */
#define NAP_NS (UINT64_C(1) * HED_NS_PER_MS) /* between two looks, while it waits */

struct order_visit { /* one connection, and the thread that deals with it */
    struct hed_worker *worker;
    int fd;
    struct hed_handed handed;
};

static void
show_orders(const struct hed_worker *w, bool there)
{
    if (w->start->status) /* relaxed: only displayed */
        atomic_store_explicit(&w->start->status->orders, there, memory_order_relaxed);
}

/* ---- the client's connection ----------------------------------------------------------------- */

static int
check_attach(struct hed_worker *w, const struct hed_attach *a)
{
    uint32_t life;

    if (!(w->capabilities & HED_CAN_ORDERS) || a->head.kind != HED_MSG_ATTACH ||
        a->head.size != sizeof *a || a->purpose != HED_CHANNEL_ORDERS ||
        !hed_worker_knows(w, a, &life))
        return HED_EACCESS;
    /* Acquire: as in attach_channel(). */
    return atomic_load_explicit(&w->settled, memory_order_acquire) ? 0 : HED_EACCESS;
}

/* The most recent connection is the one that is used. */
static int
keep_orders(struct hed_worker *w, struct hed_conn *conn)
{
    struct hed_conn *old;

    hed_lock(&w->lock);
    if (atomic_load_explicit(&w->ordering, memory_order_relaxed)) { /* under the lock */
        hed_unlock(&w->lock);
        return HED_ESTATE;
    }
    old = w->orders;
    w->orders = conn;
    hed_unlock(&w->lock);
    show_orders(w, true);
    hed_conn_close(old);
    return 0;
}

static void
meet_client(struct order_visit *v)
{
    struct hed_worker *w = v->worker;
    struct hed_why why = {""};
    struct hed_conn *conn = NULL;
    struct hed_attach a;
    int err = hed_conn_resume(v->fd, w->start->link, &v->handed.state, &conn, &why);

    if (!err)
        err = hed_conn_read(conn, &a, sizeof a, w->start->hello_ms);
    if (!err)
        err = check_attach(w, &a);
    if (!err)
        err = keep_orders(w, conn);
    explicit_bzero(&a, sizeof a);
    if (err) {
        hed_warn(SERVER, "a connection for orders was refused: %s", hed_err_text(err));
        hed_conn_close(conn);
    }
}

/* ---- an order -------------------------------------------------------------------------------- */

/* A client connects shortly after its session has begun. */
static int
take_orders(struct hed_worker *w, struct hed_order *o, struct hed_conn **out, struct hed_why *why)
{
    const uint64_t end = hed_now_ns() + CLIENT_NS;

    if (!(w->capabilities & HED_CAN_ORDERS)) {
        hed_why_set(why, "its client takes no orders: it is an older heddle, is in a guest, or has "
                         "orders=off");
        return HED_ENOTSUP;
    }
    do {
        hed_lock(&w->lock);
        if (atomic_load_explicit(&w->ordering, memory_order_relaxed)) { /* under the lock */
            hed_unlock(&w->lock);
            hed_why_set(why, "its client is carrying out another order");
            return HED_ESTATE;
        }
        *out = w->orders;
        if (*out) {
            w->orders = NULL;
            o->head.number = ++w->order;
            /* Relaxed: hed_worker_orders_end() looks at it from time to time. */
            atomic_store_explicit(&w->ordering, true, memory_order_relaxed);
        }
        hed_unlock(&w->lock);
        if (*out && hed_conn_gone(*out)) {
            hed_conn_close(*out);
            *out = NULL;
            show_orders(w, false);
            atomic_store_explicit(&w->ordering, false, memory_order_relaxed);
        }
        if (!*out)
            hed_sleep_ns(NAP_NS);
    } while (!*out && hed_now_ns() < end);
    if (*out)
        return 0;
    hed_why_set(why, "its client has no connection on which it takes orders");
    return HED_ETIME;
}

/* Gives the connection back, or closes it. */
static void
end_order(struct hed_worker *w, struct hed_conn *conn, bool keep)
{
    hed_lock(&w->lock);
    if (keep)
        w->orders = conn;
    /* Release: the last report has been passed on; pairs with hed_worker_orders_end(). */
    atomic_store_explicit(&w->ordering, false, memory_order_release);
    hed_unlock(&w->lock);
    if (!keep) {
        show_orders(w, false);
        hed_conn_close(conn);
    }
}

/* False: he does not read, or is gone. */
static bool
tell_operator(struct hed_conn *c, const struct hed_order_report *r)
{
    return hed_conn_write_now(c, r, sizeof *r) == (ssize_t)sizeof *r;
}

/* Passes on what the client says, to the last report. */
static int
hear_reports(struct hed_conn *conn, const struct hed_order *o, struct hed_conn *asker,
             struct hed_why *why)
{
    struct hed_order_report raw, r = {.state = HED_ORDER_GOING};
    uint64_t told = 0;
    bool listens = true;
    int timeout = BEGIN_MS;

    do {
        int err = hed_conn_read(conn, &raw, sizeof raw, timeout);

        if (err == HED_ETIME)
            hed_why_set(why, "its client does not answer");
        else if (err)
            hed_why_set(why, "its client has hung up");
        else
            err = hed_order_report_check(&raw, sizeof raw, &r, why);
        if (!err && r.head.number != o->head.number) {
            hed_why_set(why, "its client reports about another order");
            err = HED_EFORMAT;
        }
        if (err)
            return err;
        timeout = SILENT_MS;
        if (listens && (r.state != HED_ORDER_GOING || hed_now_ns() - told >= RELAY_NS)) {
            told = hed_now_ns();
            listens = tell_operator(asker, &r);
        }
    } while (r.state == HED_ORDER_GOING);
    return 0;
}

static void
obey_operator(struct order_visit *v)
{
    static const struct hed_conn_state plain;
    struct hed_worker *w = v->worker;
    struct hed_conn *asker = NULL, *conn = NULL;
    struct hed_order raw, order = {.action = 0};
    struct hed_order_report refusal;
    struct hed_why why = {""};
    int err = hed_conn_resume(v->fd, &hed_link_unix, &plain, &asker, &why);

    if (err)
        return;
    err = hed_conn_read(asker, &raw, sizeof raw, OPERATOR_MS);
    if (err)
        hed_why_set(&why, "no order came");
    else
        err = hed_order_check(&raw, sizeof raw, &order, &why);
    if (!err)
        err = take_orders(w, &order, &conn, &why);
    if (!err) {
        err = hed_conn_write(conn, &order, sizeof order);
        if (err)
            hed_why_set(&why, "its client has hung up");
        else
            err = hear_reports(conn, &order, asker, &why);
    }
    if (err) {
        hed_order_report_init(&refusal, order.head.number, HED_ORDER_FAILED);
        (void)hed_str_copy(refusal.why, sizeof refusal.why, why.text);
        (void)tell_operator(asker, &refusal);
        hed_info(SERVER, "an order was not carried out: %s", why.text);
    }
    if (conn)
        end_order(w, conn, err == 0);
    hed_conn_close(asker);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *
orders_main(void *arg)
{
    struct order_visit *v = arg;

    if (v->handed.kind == HED_PREFACE_ORDERS)
        meet_client(v);
    else
        obey_operator(v);
    atomic_fetch_sub_explicit(&v->worker->order_threads, 1, memory_order_relaxed);
    explicit_bzero(v, sizeof *v);
    free(v);
    return NULL;
}

void
hed_worker_orders_accept(struct hed_worker *w, int fd, const struct hed_handed *h)
{
    /* Relaxed: only the control thread adds. */
    const uint32_t threads = atomic_load_explicit(&w->order_threads, memory_order_relaxed);
    /* A client cannot keep out operators. */
    const uint32_t most =
        h->kind == HED_PREFACE_ORDERS ? THREADS_MOST - THREADS_KEPT : THREADS_MOST;
    struct order_visit *v = threads < most ? malloc(sizeof *v) : NULL;
    pthread_t thread;

    if (v) {
        *v = (struct order_visit){w, fd, *h};
        atomic_fetch_add_explicit(&w->order_threads, 1, memory_order_relaxed);
        if (pthread_create(&thread, NULL, orders_main, v) == 0) {
            (void)pthread_detach(thread);
            return;
        }
        atomic_fetch_sub_explicit(&w->order_threads, 1, memory_order_relaxed);
        explicit_bzero(v, sizeof *v);
        free(v);
    }
    hed_warn(SERVER, "closed a connection for orders: there are too many at once");
    (void)close(fd);
}

void
hed_worker_orders_end(struct hed_worker *w)
{
    const uint64_t end = hed_now_ns() + LAST_NS;

    /* Acquire: pairs with the release in end_order(). */
    while (atomic_load_explicit(&w->ordering, memory_order_acquire) && hed_now_ns() < end)
        hed_sleep_ns(NAP_NS);
}
