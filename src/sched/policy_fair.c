/* fair: GPU time in proportion to shares, by virtual time: a client's time divided by its weight.
 *
 * Clients take turns, because the times of kernels that run beside those of another process mean
 * nothing. Whoever has the turn keeps it until it is a slice ahead of the one that is furthest
 * behind. Who begins to work begins where the others are: idle time is not saved up.
 *
 * kept[0]: virtual time; kept[1]: the GPU time of which it has been made.
 */
#include "sched/policy.h"

#define UNIT 1024 /* of weights, so that small times do not vanish */

static uint64_t virtual(uint64_t ns, const struct hed_sched_client *c)
{
    return ns * UNIT / c->weight;
}

/* Brings everybody's virtual time up to date; returns who is furthest behind. */
static struct hed_sched_client *
advance(struct hed_scene *s)
{
    struct hed_sched_client *first = NULL;
    uint64_t least = UINT64_MAX; /* of those that have been working */

    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];

        if (c->used > c->kept[1])
            c->kept[0] += virtual(c->used - c->kept[1], c);
        c->kept[1] = c->used;
        if (c->working && !c->fresh && c->kept[0] < least)
            least = c->kept[0];
    }
    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];

        if (c->working && c->fresh && least != UINT64_MAX && c->kept[0] < least)
            c->kept[0] = least;
        if (c->working && (!first || c->kept[0] < first->kept[0]))
            first = c;
    }
    return first;
}

static void
decide(struct hed_scene *s)
{
    struct hed_sched_client *first = advance(s);
    struct hed_sched_client *turn = hed_scene_turn(s, s->memory[0]);

    if (!turn || turn->kept[0] >= first->kept[0] + virtual(s->params.slice, turn))
        turn = first;
    s->memory[0] = turn ? turn->place + UINT64_C(1) : 0;
    hed_scene_give(s, turn);
    if (turn && s->working > 1) {
        const uint64_t ahead = first->kept[0] + virtual(s->params.slice, turn) - turn->kept[0];

        hed_scene_look(s, s->now + ahead * turn->weight / UNIT);
    }
}

const struct hed_policy hed_policy_fair = {
    .name = "fair",
    .help = "GPU time in proportion to shares",
    .decide = decide,
};
