/* Captures, during which the engine makes no driver calls: an event query of one thread breaks the
 * capture of another. */
#include "share/sched/gate.h"

void
hed_sched_forbid_calls(struct hed_sched *s)
{
    /* Sequentially consistent, against hed_sched_begin_own_calls: each counts first and then looks
     * at the other's count, so one of them sees the other. */
    atomic_fetch_add_explicit(&s->forbidden, 1, memory_order_seq_cst);
    while (atomic_load_explicit(&s->busy, memory_order_seq_cst) != 0)
        hed_sleep_ns(1000);
}

void
hed_sched_allow_calls(struct hed_sched *s)
{
    atomic_fetch_sub_explicit(&s->forbidden, 1, memory_order_seq_cst);
}

bool
hed_sched_begin_own_calls(struct hed_sched *s)
{
    /* As in hed_sched_forbid_calls. */
    atomic_fetch_add_explicit(&s->busy, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&s->forbidden, memory_order_seq_cst) == 0)
        return true;
    hed_sched_end_own_calls(s);
    return false;
}

void
hed_sched_end_own_calls(struct hed_sched *s)
{
    atomic_fetch_sub_explicit(&s->busy, 1, memory_order_seq_cst);
}

/* A capture for which the list has no room is never known to have ended: calls stay forbidden. */
void
hed_sched_capture_began(struct hed_sched *s, uint64_t stream)
{
    const uint64_t context = s->driver->get_context(s->below);

    hed_lock(&s->lock);
    for (int i = 0; i < HED_SCHED_CAPTURES; i++) {
        if (s->capturing[i].stream != 0)
            continue;
        s->capturing[i].stream = stream;
        s->capturing[i].context = context;
        break;
    }
    hed_unlock(&s->lock);
}

void
hed_sched_capture_ended(struct hed_sched *s, uint64_t stream)
{
    bool found = false;

    hed_lock(&s->lock);
    for (int i = 0; !found && i < HED_SCHED_CAPTURES; i++) {
        found = s->capturing[i].stream == stream;
        if (found)
            s->capturing[i].stream = 0;
    }
    hed_unlock(&s->lock);
    if (found)
        hed_sched_allow_calls(s);
}

void
hed_sched_context_ended(struct hed_sched *s, uint64_t context)
{
    unsigned ended = 0;

    hed_lock(&s->lock);
    for (int i = 0; context && i < HED_SCHED_CAPTURES; i++) {
        if (s->capturing[i].stream == 0 || s->capturing[i].context != context)
            continue;
        s->capturing[i].stream = 0;
        ended++;
    }
    hed_unlock(&s->lock);
    for (; ended; ended--)
        hed_sched_allow_calls(s);
}
