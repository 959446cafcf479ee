/* What operators ask for that changes something: ending clients, and orders to them. See
 * listener.h.
 *
 *   EVICT ──> the worker tells its client, and ends; if it does not, it is killed
 *   ORDER ──> the operator's connection goes to the worker (worker/orders.c), which reads the order
 *             from it and writes reports to it
 *
 * The listener reads no order. A worker may be in its client's hands, so what it writes to the
 * operator is not believed there, either.
 */
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "remote/server/listener/listener.h"
#include "remote/wire/order.h"

bool
hed_operator_is(const struct hed_peer *p)
{
    return p->user.uid == 0 || p->user.uid == geteuid();
}

static void
evict_client(struct hed_server *s, const struct hed_peer *p, struct hed_buf *out)
{
    const unsigned long long worker = p->in.preface.worker;

    if (!hed_operator_is(p))
        hed_buf_addf(out, "refused: only the server's user and root may evict clients\n");
    else if (!hed_child_dismiss(s, worker))
        hed_buf_addf(out, "refused: there is no worker %llu\n", worker);
    else {
        hed_buf_addf(out, "evicted\n");
        hed_warn(SERVER, "worker %llu is evicted by user %u", worker, p->user.uid);
    }
}

static const struct hed_child *
find_worker(const struct hed_server *s, uint64_t worker)
{
    for (int i = 0; i < HED_LEDGER_WORKERS; i++)
        if (s->children[i].pid > 0 && !s->children[i].spare &&
            (uint64_t)s->children[i].pid == worker)
            return &s->children[i];
    return NULL;
}

static void
pass_order(struct hed_server *s, const struct hed_peer *p, struct hed_buf *out)
{
    const unsigned long long worker = p->in.preface.worker;
    const struct hed_child *c = find_worker(s, worker);
    struct hed_order_report report;
    struct hed_why why = {""};

    if (!hed_operator_is(p))
        hed_why_set(&why, "only the server's user and root may give orders to clients");
    else if (!c)
        hed_why_set(&why, "there is no worker %llu", worker);
    else if (hed_child_pass(c, p) != 0)
        hed_why_set(&why, "worker %llu takes no order at the moment; try again", worker);
    if (!why.text[0]) {
        hed_info(SERVER, "user %u has an order for the client of worker %llu", p->user.uid, worker);
        return;
    }
    hed_order_report_init(&report, 0, HED_ORDER_FAILED);
    (void)hed_str_copy(report.why, sizeof report.why, why.text);
    hed_buf_add(out, &report, sizeof report);
}

void
hed_operator_heard(struct hed_server *s, const struct hed_peer *p, struct hed_buf *out)
{
    if (p->in.preface.kind == HED_PREFACE_ORDER)
        pass_order(s, p, out);
    else
        evict_client(s, p, out);
}
