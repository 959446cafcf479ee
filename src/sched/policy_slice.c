/* slice: everybody who works has the GPU for a slice, in turn.
 *
 * memory[0]: whose turn, memory[1]: since when.
 */
#include "sched/policy.h"

/* The next working client behind a place, around the end. */
static struct hed_sched_client *
next(struct hed_scene *s, uint64_t after)
{
    struct hed_sched_client *first = NULL;

    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];

        if (!c->working)
            continue;
        if (c->place + UINT64_C(1) > after)
            return c;
        if (!first)
            first = c;
    }
    return first;
}

static void
decide(struct hed_scene *s)
{
    if (s->memory[1] > s->now) /* that was not us */
        s->memory[1] = s->now;

    struct hed_sched_client *turn = hed_scene_turn(s, s->memory[0]);

    if (!turn || s->now >= s->memory[1] + s->params.slice) {
        turn = next(s, s->memory[0]);
        s->memory[1] = s->now;
    }
    if (turn)
        s->memory[0] = turn->place + UINT64_C(1);
    hed_scene_give(s, turn);
    if (turn && s->working > 1)
        hed_scene_look(s, s->memory[1] + s->params.slice);
}

const struct hed_policy hed_policy_slice = {
    .name = "slice",
    .help = "time slices, in turn",
    .decide = decide,
};
