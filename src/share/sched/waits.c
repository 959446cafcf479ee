/* Calls that wait for the GPU: when one returns, its client may have no work left, and another
 * client can have the GPU. */
#include "share/sched/gate.h"

#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

void
hed_gate_rest(struct hed_gate *g, uint64_t now)
{
    struct hed_sched *s = g->sched;

    hed_lock(&s->lock);
    hed_pace_rest_locked(g, now);
    hed_unlock(&s->lock);
    /* Only if a client waits for it: others will see it from the clock. */
    if (GET(g->common->held) && GET(g->slot->syncing) == 0)
        hed_sched_rest(g->meet, now);
}

struct hed_gate *
hed_gate_wait_begin(struct hed_sched *s)
{
    /* Acquire: as in hed_gate_open. */
    struct hed_gate *g = atomic_load_explicit(&s->only, memory_order_acquire) ? s->gates[0]
                         : GET(s->count)                                      ? hed_gate_current(s)
                                                                              : NULL;

    if (!g || !g->meet)
        return NULL;
    hed_gate_sync_begin(g);
    return g;
}

void
hed_gate_wait_end(struct hed_sched *s, struct hed_gate *g, bool ok, uint64_t stream)
{
    if (!g)
        return;
    hed_gate_sync_end(g);
    if (!(GET(g->slot->gate) & HED_GATE_WATCH))
        return;

    const uint64_t now = hed_now_ns();

    SET(g->slot->last_call, now);
    if (!ok)
        return;
    if (stream == 0 || GET(g->pace.stream) == stream)
        hed_gate_rest(g, now);
    else
        hed_pace_poll(g, now);
}

uint64_t
hed_sched_stream_of_context(struct hed_sched *s, uint64_t context)
{
    return context && context == s->driver->get_context(s->below) ? 0 : UINT64_MAX;
}
