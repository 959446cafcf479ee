/* The connection on which orders come, and what is done for one. See orders.h. */
#include "move/session/orders.h"

#include <string.h>
#include <unistd.h>

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "move/session/agent.h"
#include "remote/remote.h"

#define FIRST_NS HED_NS_PER_S /* after the program has started */
#define PAUSE_NS HED_NS_PER_S /* after an order, or a failure: the first one */
#define PAUSE_MOST_NS (60 * HED_NS_PER_S)
#define TRIES_MOST 8                /* without an order; then the worker does not want it */
#define ORDER_MS 5000               /* for the rest of an order */
#define PROBE_NS (2 * HED_NS_PER_S) /* to connect to a socket of this machine */

/* ---- the connection -------------------------------------------------------------------------- */

void
hed_remote_orders_init(struct hed_remote_agent *a)
{
    a->orders = (struct hed_remote_orders){.due = hed_now_ns() + FIRST_NS};
    memcpy(a->orders.session, a->remote->session, sizeof a->orders.session);
}

/* May the worker have such a connection now? */
static bool
wants_orders(const struct hed_remote_agent *a)
{
    const struct hed_remote *r = a->remote;

    /* Relaxed: what is noticed late is noticed by the connection's end. */
    return (a->state == HED_TALK_RUNNING || a->state == HED_TALK_PAUSED) &&
           (r->capabilities & HED_CAN_ORDERS) && a->orders.tries < TRIES_MOST &&
           !atomic_load_explicit(&r->lost, memory_order_relaxed) &&
           !atomic_load_explicit(&r->ended, memory_order_relaxed);
}

static void
close_orders(struct hed_remote_orders *o)
{
    struct hed_conn *conn = o->conn;

    o->conn = NULL; /* first: the process may be forked at any time */
    hed_conn_close(conn);
}

/* Closes it, and waits longer each time until it is opened again. */
static void
lose_orders(struct hed_remote_orders *o)
{
    const uint64_t pause = PAUSE_NS << (o->tries < 6 ? o->tries : 6);

    close_orders(o);
    o->tries++;
    o->due = hed_now_ns() + (pause < PAUSE_MOST_NS ? pause : PAUSE_MOST_NS);
}

static void
open_orders(struct hed_remote_agent *a)
{
    const struct hed_remote *r = a->remote;
    struct hed_attach at = {.head = {.size = sizeof at, .kind = HED_MSG_ATTACH},
                            .purpose = HED_CHANNEL_ORDERS};
    struct hed_why why = {""};
    struct hed_conn *conn = NULL;
    int err = hed_remote_call_on(r, HED_PREFACE_ORDERS, &conn, &why);

    memcpy(at.session, r->session, sizeof at.session);
    memcpy(at.secret, r->secret, sizeof at.secret);
    if (!err)
        err = hed_conn_write(conn, &at, sizeof at);
    explicit_bzero(&at, sizeof at);
    a->orders.conn = conn;
    a->orders.due = hed_now_ns();
    if (err) {
        hed_debug(REMOTE, "there is no connection for orders: %s",
                  why.text[0] ? why.text : hed_err_text(err));
        lose_orders(&a->orders);
    }
}

void
hed_remote_orders_tend(struct hed_remote_agent *a)
{
    struct hed_remote_orders *o = &a->orders;

    if (memcmp(o->session, a->remote->session, sizeof o->session) != 0) { /* another worker */
        close_orders(o);
        o->tries = 0;
        o->due = hed_now_ns();
        memcpy(o->session, a->remote->session, sizeof o->session);
    }
    if (!wants_orders(a))
        close_orders(o);
    else if (!o->conn && hed_now_ns() >= o->due)
        open_orders(a);
}

int
hed_remote_orders_fd(const struct hed_remote_agent *a)
{
    return a->orders.conn && hed_now_ns() >= a->orders.due ? hed_conn_fd(a->orders.conn) : -1;
}

int
hed_remote_orders_wait(const struct hed_remote_agent *a)
{
    const uint64_t now = hed_now_ns();

    if (!wants_orders(a) || (a->orders.conn && now >= a->orders.due))
        return -1;
    return now >= a->orders.due ? 0 : (int)((a->orders.due - now) / HED_NS_PER_MS) + 1;
}

void
hed_remote_orders_leave(struct hed_remote_agent *a)
{
    close_orders(&a->orders);
    a->orders.due = hed_now_ns() + FIRST_NS;
}

void
hed_remote_orders_forked(struct hed_remote_agent *a)
{
    if (a->orders.conn)
        hed_conn_forget(a->orders.conn);
    a->orders.conn = NULL;
}

/* ---- trust ----------------------------------------------------------------------------------- */

/* Which user's server would be reached? It is asked nothing. */
static int
probe_user(const struct hed_address *to, uid_t *out, struct hed_why *why)
{
    int fd = -1;
    int err = to->transport->link->connect(to, hed_now_ns() + PROBE_NS, &fd, why);

    if (err)
        return err;
    err = hed_fd_peer(fd, out, &(gid_t){0}, &(pid_t){0});
    (void)close(fd);
    return err;
}

static int
may_obey(const struct hed_remote *r, const struct hed_conn *conn, const struct hed_order *o,
         struct hed_why *why)
{
    struct hed_remote_trust t = {.obeys = r->moving->obeys,
                                 .local = r->address.transport->link->local,
                                 .own = geteuid(),
                                 .secure = hed_conn_secure(conn),
                                 .insecure = r->tls.insecure};
    struct hed_address to;
    uid_t user;
    int err = 0;

    if (o->action != HED_ORDER_MOVE) {
        hed_why_set(why, "the program does not know this kind of order");
        return HED_ENOTSUP;
    }
    if (t.local)
        err = hed_conn_peer(conn, &t.server, &(gid_t){0}, &(pid_t){0});
    if (!err)
        err = hed_address_parse(o->address, &to, why);
    if (!err)
        err = hed_remote_may_go(&t, &to, why);
    if (!err && to.transport->link->local) {
        err = probe_user(&to, &user, why);
        if (!err)
            err = hed_remote_may_trust(&t, user, why);
    }
    return err;
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void
fill_report(struct hed_order_report *out, uint64_t number, enum hed_order_state state,
            const struct hed_talk_answer *a)
{
    hed_order_report_init(out, number, state);
    out->rounds = a->rounds;
    out->written = a->written;
    out->last_round = a->last_round;
    out->stall_ns = a->stall_ns;
    out->total_ns = a->total_ns;
    (void)hed_str_copy(out->program, sizeof out->program, program_invocation_short_name);
    (void)hed_str_copy(out->address, sizeof out->address, a->address);
    (void)hed_str_copy(out->why, sizeof out->why, a->why);
}

void
hed_remote_orders_going(const struct hed_remote_request *q, uint64_t bytes)
{
    struct hed_remote_orders *o = q->orders;
    struct hed_order_report r;

    if (!o || !o->conn || hed_now_ns() - o->told < HED_NS_PER_S)
        return;
    o->told = hed_now_ns();
    fill_report(&r, o->number, HED_ORDER_GOING, &q->answer);
    r.written = bytes;

    const ssize_t n = hed_conn_write_now(o->conn, &r, sizeof r);

    /* Half a report would spoil all later ones. */
    if (n < 0 || (n > 0 && n < (ssize_t)sizeof r))
        close_orders(o);
}

/* Does what is ordered, and says how it went. The connection is still that to the old worker. */
static int
obey_order(struct hed_remote_agent *a, const struct hed_order *order, struct hed_remote_request *q)
{
    struct hed_order_report r;
    int err = may_obey(a->remote, a->orders.conn, order, &q->why);

    hed_talk_ask(&q->asked, HED_TALK_MOVE);
    hed_talk_reply(&q->answer, &q->asked);
    q->asked.deadline_ms = order->deadline_ms;
    q->asked.budget_ms = order->budget_ms;
    (void)hed_str_copy(q->asked.address, sizeof q->asked.address, order->address);
    q->peer = -1;
    q->orders = &a->orders;
    a->orders.number = order->head.number;
    a->orders.told = 0;
    if (!err) {
        /* An order that its worker has given up is not carried out. */
        hed_remote_orders_going(q, 0);
        if (!a->orders.conn || hed_conn_gone(a->orders.conn))
            return HED_EIO;
        hed_info(REMOTE, "the server sends this program to %s", order->address);
        err = hed_remote_agent_serve(a, q);
    }
    hed_remote_agent_answer(a, q, err);
    fill_report(&r, order->head.number, err ? HED_ORDER_FAILED : HED_ORDER_DONE, &q->answer);
    return a->orders.conn ? hed_conn_write(a->orders.conn, &r, sizeof r) : HED_EIO;
}

void
hed_remote_orders_heard(struct hed_remote_agent *a)
{
    struct hed_remote_orders *o = &a->orders;
    struct hed_remote_request *q = NULL;
    struct hed_order raw, order;
    struct hed_why why = {""};
    int err = hed_conn_read(o->conn, &raw, sizeof raw, ORDER_MS);

    if (!err) {
        err = hed_order_check(&raw, sizeof raw, &order, &why);
        if (err) { /* no more of this */
            hed_warn(REMOTE, "the server sent an invalid order: %s", why.text);
            o->tries = TRIES_MOST;
        }
    }
    if (!err)
        q = calloc(1, sizeof *q);
    if (!err)
        err = q ? obey_order(a, &order, q) : HED_ENOMEM;
    free(q);
    if (err) {
        lose_orders(o);
        return;
    }
    o->tries = 0;
    o->due = hed_now_ns() + PAUSE_NS;
}
