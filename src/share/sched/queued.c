/* What the recording queue (src/share/record) tells the engine: calls that are queued, and threads
 * that wait for them. */
#include "share/sched/gate.h"

#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

static bool
policy_watches_syncs(const struct hed_gate *g)
{
    return hed_policy_at(GET(g->common->policy))->asked_on_sync;
}

void
hed_gate_queue(struct hed_gate *g)
{
    atomic_fetch_add_explicit(&g->slot->queued, 1, memory_order_seq_cst);
}

void
hed_gate_queued(struct hed_gate *g)
{
    struct hed_sched_slot *p = g->slot;

    /* Sequentially consistent, with the count in hed_gate_queue, against write_gate() in decide.c:
     * a thread that finds the gate closed after this look decides once more before it waits, and
     * sees the count. */
    if (!(atomic_load_explicit(&p->gate, memory_order_seq_cst) & HED_GATE_CLOSED) ||
        !policy_watches_syncs(g))
        return;
    /* One more call may complete the batch. Only a decision counts the calls of others. */
    if (GET(p->queued) + GET(p->waiting) >= GET(g->common->batch) || GET(g->common->held) > 1)
        (void)hed_sched_decide(g->meet, hed_now_ns());
}

void
hed_gate_unqueue(struct hed_gate *g)
{
    atomic_fetch_sub_explicit(&g->slot->queued, 1, memory_order_relaxed);
}

void
hed_gate_sync_begin(struct hed_gate *g)
{
    atomic_fetch_add_explicit(&g->slot->syncing, 1, memory_order_relaxed);
    if (policy_watches_syncs(g))
        (void)hed_sched_decide(g->meet, hed_now_ns());
}

void
hed_gate_sync_end(struct hed_gate *g)
{
    atomic_fetch_sub_explicit(&g->slot->syncing, 1, memory_order_relaxed);
}

void
hed_gate_release(struct hed_gate *g)
{
    struct hed_sched_slot *p = g->slot;
    const struct hed_sched_change change = {.paused = -1, .release = 1};

    if (!(GET(p->gate) & (HED_GATE_CLOSED | HED_GATE_LIMIT)) || GET(p->paused) ||
        GET(g->common->paused) || hed_meet_lock(g->meet) != 0)
        return;
    hed_sched_change_locked(p, &change);
    hed_sched_decide_locked(g->meet, hed_now_ns());
    hed_meet_unlock(g->meet);
}
