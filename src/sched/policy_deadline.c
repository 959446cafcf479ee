/* deadline: who must be done first runs first. A client's deadline is so long after it began to
 * work. Who is late comes first, and has at least a cap of time; work that goes on after that has
 * its next deadline. Clients without one have a distant one, so that they come when it is near.
 *
 * kept[0]: the deadline that counts now; memory[0]: whose turn, memory[1]: since when.
 */
#include "sched/policy.h"

#include "base/clock.h"

#define DISTANT HED_NS_PER_S

static uint64_t
span(const struct hed_sched_client *c)
{
    return c->deadline ? c->deadline : DISTANT;
}

static void
decide(struct hed_scene *s)
{
    struct hed_sched_client *last = hed_scene_turn(s, s->memory[0]);
    struct hed_sched_client *turn = NULL;
    const uint64_t least = s->memory[1] + s->params.cap;

    if (last && last->kept[0] <= s->now && s->now >= least)
        last->kept[0] += ((s->now - last->kept[0]) / span(last) + 1) * span(last);
    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];

        if (!c->working)
            continue;
        if (c->fresh || c->kept[0] == 0)
            c->kept[0] = c->since + span(c);
        if (!turn || c->kept[0] < turn->kept[0])
            turn = c;
    }
    /* Who is late keeps the turn for that long, or those who are would take it from each other. */
    if (last && last->kept[0] <= s->now && s->now < least)
        turn = last;
    if (turn != last) {
        s->memory[0] = turn ? turn->place + UINT64_C(1) : 0;
        s->memory[1] = s->now;
    }
    hed_scene_give(s, turn);
    if (turn && s->working > 1) {
        const uint64_t end = s->memory[1] + s->params.cap;

        hed_scene_look(s, turn->kept[0] > end ? turn->kept[0] : end);
    }
}

const struct hed_policy hed_policy_deadline = {
    .name = "deadline",
    .help = "the earliest deadline first",
    .decide = decide,
};
