/* slice: every client that has work gets the GPU for one time slice, in rotation. */
#include "share/sched/policy.h"

enum { MEMORY_RUNNER, MEMORY_SINCE }; /* since when the runner has had the GPU */

/* The next working client after the last runner, in the order of the slots. */
static struct hed_sched_client *
find_next_runner(struct hed_scene *s)
{
    struct hed_sched_client *first = NULL;

    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];

        if (!c->working)
            continue;
        if (c->slot + UINT64_C(1) > s->memory[MEMORY_RUNNER])
            return c;
        if (!first)
            first = c;
    }
    return first;
}

static void
slice_decide(struct hed_scene *s)
{
    if (s->memory[MEMORY_SINCE] > s->now) /* shared memory was corrupted */
        s->memory[MEMORY_SINCE] = s->now;

    struct hed_sched_client *runner = hed_scene_runner(s);

    if (!runner || s->now >= s->memory[MEMORY_SINCE] + s->params.slice) {
        runner = find_next_runner(s);
        s->memory[MEMORY_SINCE] = s->now;
    }
    hed_scene_run_only(s, runner);
    if (runner && s->working > 1)
        hed_scene_look(s, s->memory[MEMORY_SINCE] + s->params.slice);
}

const struct hed_policy hed_policy_slice = {.decide = slice_decide};
