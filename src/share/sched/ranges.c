/* Ranges for profilers: they show that a thread waits, and for which program. */
#include <stdio.h>

#include "share/sched/engine.h"

/* Relaxed: names for people, of this moment or the one before. */
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* Another client that works and is not held; NULL: there is none. */
static const struct hed_sched_slot *
find_runner(const struct hed_gate *g)
{
    const uint32_t high = GET(g->common->high);

    for (uint32_t i = 0; i < high && i < HED_SCHED_SLOTS; i++) {
        const struct hed_sched_slot *p = hed_meet_slot(g->meet, i);

        if (p != g->slot && GET(p->present) && GET(p->working) && !(GET(p->gate) & HED_GATE_CLOSED))
            return p;
    }
    return NULL;
}

void
hed_gate_push_closed(struct hed_gate *g)
{
    const struct hed_sched_driver *d = g->sched->driver;
    char text[96];

    if (!d->has_ranges())
        return;
    if (GET(g->common->paused) || GET(g->slot->paused)) {
        d->push_range("heddle: wait at the gate: paused");
        return;
    }

    const struct hed_sched_slot *p = find_runner(g);

    if (!p) {
        d->push_range("heddle: wait at the gate");
        return;
    }
    (void)snprintf(text, sizeof text, "heddle: wait at the gate: %.*s (%d) runs",
                   HED_SCHED_NAME - 1, p->name, GET(p->pid));
    d->push_range(text);
}

void
hed_gate_push_limited(struct hed_gate *g)
{
    if (g->sched->driver->has_ranges())
        g->sched->driver->push_range("heddle: wait for own work: limited");
}
