/* A pool of events, each of one context. They are destroyed before a context may end. */
#include "share/sched/engine.h"

/* An event of that context, which is current; 0: there is none. */
uint64_t
hed_event_take(struct hed_sched *s, uint64_t context, uint32_t *era)
{
    uint64_t e = 0;

    hed_lock_brief(&s->lock);
    *era = s->era;
    for (unsigned i = s->spares; !e && i-- > 0;) {
        if (s->spare[i].context != context)
            continue;
        e = s->spare[i].end;
        s->spare[i] = s->spare[--s->spares];
    }
    hed_unlock_brief(&s->lock);
    return e ? e : s->driver->create_event(s->below);
}

/* Keeps an event for later. */
void
hed_event_give_locked(struct hed_sched *s, uint64_t event, uint64_t context)
{
    if (event && s->spares < HED_PACE_SPARE)
        s->spare[s->spares++] = (struct hed_mark){.end = event, .context = context};
}

/* Takes out what is more than worth keeping: the oldest events, whose contexts may not be in use
 * any more. Returns how many. */
unsigned
hed_event_surplus_locked(struct hed_sched *s, unsigned keep, uint64_t events[HED_PACE_SPARE])
{
    const unsigned n = s->spares > keep ? s->spares - keep : 0;

    for (unsigned i = 0; i < n; i++)
        events[i] = s->spare[i].end;
    for (unsigned i = n; n && i < s->spares; i++)
        s->spare[i - n] = s->spare[i];
    s->spares -= n;
    return n;
}

void
hed_event_destroy(struct hed_sched *s, const uint64_t *events, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        s->driver->destroy_event(s->below, events[i]);
}
