/* NVTX ranges of threads that wait, with the name of whom they wait for. */
#include <stdio.h>

#include "core/nvtx.h"
#include "layers/sched/sched.h"

/* Relaxed: names for people, of this moment or the one before. */
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* Somebody else who works and is not held. NULL: nobody is. */
static const struct hed_sched_place *
find_runner(struct hed_sched_gpu *g)
{
    const uint32_t high = GET(g->common->high);

    for (uint32_t i = 0; i < high && i < HED_SCHED_PLACES; i++) {
        const struct hed_sched_place *p = hed_meet_place(g->meet, i);

        if (p != g->place && GET(p->present) && GET(p->working) &&
            !(GET(p->gate) & HED_GATE_CLOSED))
            return p;
    }
    return NULL;
}

void
hed_sched_range_turn(struct hed_sched_gpu *g)
{
    char text[96];

    if (!hed_nvtx_on())
        return;
    if (GET(g->common->paused) || GET(g->place->paused)) {
        hed_nvtx_push("heddle: wait for turn: paused");
        return;
    }

    const struct hed_sched_place *p = find_runner(g);

    if (!p) {
        hed_nvtx_push("heddle: wait for turn");
        return;
    }
    (void)snprintf(text, sizeof text, "heddle: wait for turn: %.*s (%d) runs", HED_SCHED_NAME - 1,
                   p->name, GET(p->pid));
    hed_nvtx_push(text);
}

void
hed_sched_range_cap(void)
{
    if (hed_nvtx_on())
        hed_nvtx_push("heddle: wait for own work: limited");
}
