/* fifo: who began to work first runs until it has no work; then the next. Who works without end
 * goes to the end of the queue after a long turn, so that nobody waits for ever.
 *
 * kept[0]: when it joined the queue; memory[0]: whose turn, memory[1]: since when.
 */
#include "sched/policy.h"

#define LONG_TURN 200 /* slices */

static struct hed_sched_client *
oldest(struct hed_scene *s)
{
    struct hed_sched_client *best = NULL;

    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];

        if (c->working && (!best || c->kept[0] < best->kept[0]))
            best = c;
    }
    return best;
}

static void
decide(struct hed_scene *s)
{
    if (s->memory[1] > s->now) /* that was not us */
        s->memory[1] = s->now;

    struct hed_sched_client *turn = hed_scene_turn(s, s->memory[0]);
    const uint64_t longest = s->params.slice * LONG_TURN;

    for (size_t i = 0; i < s->count; i++)
        if (s->clients[i].fresh || s->clients[i].kept[0] == 0 || s->clients[i].kept[0] > s->now)
            s->clients[i].kept[0] = s->clients[i].since;
    if (turn && s->now >= s->memory[1] + longest) {
        turn->kept[0] = s->now;
        turn = NULL;
    }
    if (!turn) {
        turn = oldest(s);
        s->memory[1] = s->now;
    }
    s->memory[0] = turn ? turn->place + UINT64_C(1) : 0;
    hed_scene_give(s, turn);
    if (turn && s->working > 1)
        hed_scene_look(s, s->memory[1] + longest);
}

const struct hed_policy hed_policy_fifo = {
    .name = "fifo",
    .help = "first come, first served, until it has no work",
    .decide = decide,
};
