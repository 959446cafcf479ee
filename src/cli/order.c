/* Orders to the clients of a server. See order.h. */
#include "cli/order.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "remote/remote.h"

#define SILENT_MS 660000              /* between two reports; the worker gives up before */
#define MOST_NS (3600 * HED_NS_PER_S) /* for all of it: a client may say for ever that it goes on */

int
hed_cli_order_give(const struct hed_cli_order *o, struct hed_conn **out, struct hed_why *why)
{
    const struct hed_preface question = {.kind = HED_PREFACE_ORDER, .worker = o->worker};
    struct hed_order order;
    int err;

    hed_order_init(&order, HED_ORDER_MOVE);
    order.deadline_ms = o->deadline_ms;
    order.budget_ms = o->budget_ms;
    if (!hed_str_copy(order.address, sizeof order.address, o->to)) {
        hed_why_set(why, "the address is too long");
        return HED_EINVAL;
    }
    err = hed_ask_open(o->listen, &question, out, why);
    /* A server that refuses may have hung up already, but its report can still be read. */
    if (!err)
        (void)hed_conn_write(*out, &order, sizeof order);
    return err;
}

int
hed_cli_order_wait(struct hed_conn *c, struct hed_order_report *out, struct hed_why *why)
{
    const uint64_t end = hed_now_ns() + MOST_NS;
    struct hed_order_report raw, r = {.state = HED_ORDER_GOING};
    bool any = false;
    int err = 0;

    while (!err && r.state == HED_ORDER_GOING && hed_now_ns() < end) {
        err = hed_conn_read(c, &raw, sizeof raw, SILENT_MS);
        if (err == HED_ETIME)
            hed_why_set(why, "the server does not answer");
        else if (err)
            hed_why_set(why, "%s",
                        any ? "its worker has ended, and has not said whether it was moved"
                            : "the server does not know orders (is it an older heddle?), or the "
                              "client is gone");
        else
            err = hed_order_report_check(&raw, sizeof raw, &r, why);
        any = true;
    }
    hed_conn_close(c);
    if (err)
        return err;
    if (r.state == HED_ORDER_GOING) {
        hed_why_set(why, "it says that it goes on, but takes longer than an hour");
        return HED_ETIME;
    }
    if (r.state == HED_ORDER_FAILED) {
        hed_why_set(why, "%s", r.why[0] ? r.why : "its client gives no reason");
        return HED_EACCESS;
    }
    *out = r;
    return 0;
}
