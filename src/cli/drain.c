/* Emptying a server. See drain.h.
 *
 *   the server's status ──> each client ──HED_TALK_MOVE──> goes to `to`   if it can be reached
 *        │                             └──order, through the server──> the same       if not
 *        └── again, for those that came meanwhile; nobody left: SIGTERM
 */
#include "cli/drain.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/number.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/order.h"
#include "move/move.h"
#include "remote/remote.h"

#define ROUNDS 100       /* questions, because clients may come meanwhile */
#define NAP_NS 100000000 /* between them, until the workers of those that went have ended */
#define CLIENTS_MAX 1024 /* of one server */
#define ORDERS_MAX 16    /* at a time, so that one client that takes long does not delay all */
#define NAME_MAX_BYTES 160
#define MOVE_MS 900000 /* for one program; one that never answers must not keep the others */

struct tried {
    uint64_t worker;
    bool moved;
};

struct told { /* a client that has an order */
    struct tried *tried;
    struct hed_conn *conn;
    char name[NAME_MAX_BYTES];
};

struct drain {
    const char *listen, *to;
    struct tried tried[CLIENTS_MAX]; /* programs that were moved, or could not be */
    unsigned count;
    struct told told[ORDERS_MAX];
    unsigned orders;
    /* Of this round: clients that were tried; those that were moved and whose worker is still
     * there; those that stay. */
    unsigned fresh, leaving, stay;
};

static const struct tried *
find_tried(const struct drain *d, uint64_t worker)
{
    for (unsigned i = 0; i < d->count; i++)
        if (d->tried[i].worker == worker)
            return &d->tried[i];
    return NULL;
}

/* "worker 7 (train at 10.0.0.1:4242)". The texts are a client's own, but escaped. */
static void
describe_client(const char *at, uint64_t worker, char out[NAME_MAX_BYTES])
{
    const char *program = strstr(at, ",\"program\":\""), *peer = strstr(at, ",\"peer\":\"");

    program = program ? program + strlen(",\"program\":\"") : "";
    peer = peer ? peer + strlen(",\"peer\":\"") : "";
    (void)snprintf(out, NAME_MAX_BYTES, "worker %" PRIu64 " (%.*s at %.*s)", worker,
                   (int)hed_min(strcspn(program, "\""), 63), program,
                   (int)hed_min(strcspn(peer, "\""), 63), peer);
}

static void
show_moved(const char *program, const char *name, const char *address, uint64_t stall_ns)
{
    char stall[HED_SNAP_AMOUNT];

    hed_cli_tell("%s (%s) goes on at %s; it stood still for %s", program, name, address,
                 hed_snap_time_text(stall_ns, stall));
}

/* HED_ENOTFOUND: it cannot be reached from here, although it may be on this machine. */
static int
move_program(struct drain *d, pid_t pid)
{
    struct hed_talk_request q;
    struct hed_talk_answer a;
    struct hed_why why = {""};
    char name[32];
    int err;

    hed_talk_ask(&q, HED_TALK_MOVE);
    q.deadline_ms = HED_SNAP_DEADLINE_MS;
    (void)hed_str_copy(q.address, sizeof q.address, d->to);
    err = hed_talk_call(pid, &q, NULL, 0, MOVE_MS, &a, &why);
    (void)snprintf(name, sizeof name, "process %d", (int)pid);
    if (!err)
        show_moved(a.program, name, a.address, a.stall_ns);
    else if (err != HED_ENOTFOUND)
        hed_cli_say("serve: %s was not moved to %s: %s", name, d->to, why.text);
    return err;
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void
give_order(struct drain *d, struct tried *t, const char *name)
{
    const struct hed_cli_order order = {
        .listen = d->listen, .worker = t->worker, .to = d->to, .deadline_ms = HED_SNAP_DEADLINE_MS};
    struct told *o = &d->told[d->orders];
    struct hed_why why = {""};

    if (hed_cli_order_give(&order, &o->conn, &why) != 0) {
        hed_cli_say("serve: %s was not moved to %s: %s", name, d->to, why.text);
        d->stay++;
        return;
    }
    o->tried = t;
    (void)hed_str_copy(o->name, sizeof o->name, name);
    d->orders++;
}

/* Waits until all orders are carried out, or not. */
static void
await_orders(struct drain *d)
{
    for (unsigned i = 0; i < d->orders; i++) {
        struct told *o = &d->told[i];
        struct hed_order_report r;
        struct hed_why why = {""};

        o->tried->moved = hed_cli_order_wait(o->conn, &r, &why) == 0;
        if (o->tried->moved) {
            show_moved(r.program, o->name, r.address, r.stall_ns);
        } else {
            hed_cli_say("serve: %s was not moved to %s: %s", o->name, d->to, why.text);
            d->stay++;
        }
    }
    d->orders = 0;
}

/* ---- clients --------------------------------------------------------------------------------- */

/* A client in the status: quotes in a client's own texts are escaped, so these words are the
 * server's. */
static void
drain_client(struct drain *d, const char *at)
{
    const uint64_t worker = strtoull(at + strlen("{\"worker\":"), NULL, 10);
    const char *pid = strstr(at, ",\"pid\":");
    const long number = pid ? strtol(pid + 7, NULL, 10) : 0;
    const struct tried *before = find_tried(d, worker);
    char name[NAME_MAX_BYTES];
    int err = HED_ENOTFOUND;

    if (before || d->count == CLIENTS_MAX) {
        d->leaving += before && before->moved;
        d->stay += !before || !before->moved;
        return;
    }

    struct tried *t = &d->tried[d->count++];

    *t = (struct tried){.worker = worker};
    d->fresh++;
    if (number > 0 && number <= INT_MAX)
        err = move_program(d, (pid_t)number);
    t->moved = err == 0;
    if (err == HED_ENOTFOUND) {
        describe_client(at, worker, name);
        give_order(d, t, name);
        if (d->orders == ORDERS_MAX)
            await_orders(d);
    } else {
        d->stay += !t->moved;
    }
}

/* Moves what the server has now. */
static int
drain_round(struct drain *d, struct hed_why *why)
{
    const struct hed_preface question = {.kind = HED_PREFACE_STATUS};
    struct hed_buf text;

    hed_buf_init(&text, HED_ASK_ANSWER_MAX);

    const int err = hed_ask(d->listen, &question, &text, why);

    const char *at = err ? NULL : strstr(hed_buf_cstr(&text), HED_ASK_CLIENTS);

    d->fresh = d->leaving = d->stay = 0;
    while (at && (at = strstr(at + 1, "{\"worker\":")))
        drain_client(d, at);
    await_orders(d);
    hed_buf_fini(&text);
    return err;
}

int
hed_cli_drain(const char *listen, const char *to)
{
    struct drain d = {.listen = listen, .to = to};
    struct hed_why why = {""};
    pid_t server = 0;
    int err = hed_snap_check_address(to, &why);

    if (err) {
        hed_cli_say("serve: --to: %s", why.text);
        return HED_EXIT_USAGE;
    }
    err = hed_ask_server(listen, &server, &why);
    for (int i = 0; i < ROUNDS && !err && (i == 0 || d.fresh || d.leaving); i++) {
        if (i > 0)
            (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        err = drain_round(&d, &why);
    }
    if (err) {
        hed_cli_say("serve: --drain: %s", why.text);
        return err == HED_EINVAL ? HED_EXIT_USAGE : HED_EXIT_FAILED;
    }
    if (d.stay || d.fresh || d.leaving) {
        hed_cli_say("serve: the server goes on, because it still has clients");
        return HED_EXIT_FAILED;
    }
    if (kill(server, SIGTERM) != 0) {
        hed_cli_say("serve: the server has no clients, but cannot be stopped: %m");
        return HED_EXIT_FAILED;
    }
    return HED_EXIT_OK;
}
