/* fair: GPU time in proportion to shares, by virtual time: a client's time divided by its weight.
 *
 * Clients take turns, because the times of kernels that run beside those of another process mean
 * nothing. Time is measured as it passes: it is that of the one whose turn it is, while it has
 * work, and what it leaves on the GPU when its turn ends is still its own. Whoever has the turn
 * keeps it until it is a slice ahead of the one that is furthest behind. Who begins to work begins
 * where the others are: idle time is not saved up.
 *
 * memory[0]: whose turn; memory[1]: until when the GPU's time has been given to somebody.
 * kept[0]: virtual time.
 */
#include "sched/policy.h"

#define FAR 64    /* slices that somebody may be ahead */
#define UNIT 1024 /* of weights, so that small times do not vanish */

static uint64_t virtual(uint64_t ns, const struct hed_sched_client *c)
{
    return ns * UNIT / c->weight;
}

/* The time since the last decision goes to the one whose turn it was. */
static struct hed_sched_client *
charge(struct hed_scene *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];

        if (c->place + UINT64_C(1) != s->memory[0])
            continue;

        const uint64_t until = c->working || c->rested > s->now ? s->now : c->rested;

        if (until > s->memory[1]) {
            c->kept[0] += virtual(until - s->memory[1], c);
            s->memory[1] = until;
        }
        return c;
    }
    return NULL;
}

/* Who is furthest behind. */
static struct hed_sched_client *
find_first(struct hed_scene *s)
{
    struct hed_sched_client *first = NULL;
    uint64_t least = UINT64_MAX; /* of those that have been working */

    for (size_t i = 0; i < s->count; i++)
        if (s->clients[i].working && !s->clients[i].fresh && s->clients[i].kept[0] < least)
            least = s->clients[i].kept[0];
    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];
        const uint64_t most = least + virtual(FAR * s->params.slice, c);

        /* Nobody gets so far ahead by turns: it was scribbled there, and would wait for ever. */
        if (least != UINT64_MAX && c->kept[0] > most && most > least)
            c->kept[0] = most;
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
    if (s->memory[1] > s->now + s->params.slice) /* that was not us */
        s->memory[1] = s->now;

    struct hed_sched_client *last = charge(s);
    struct hed_sched_client *first = find_first(s);
    struct hed_sched_client *turn = last && last->working ? last : NULL;

    if (!turn || turn->kept[0] >= first->kept[0] + virtual(s->params.slice, turn))
        turn = first;
    if (s->memory[1] < s->now)
        s->memory[1] = s->now;
    if (last && last != turn && last->ends > s->memory[1]) {
        const uint64_t rest = last->ends - s->memory[1];
        /* An estimate: what cannot be is not believed. */
        const uint64_t tail = rest < s->params.slice ? rest : s->params.slice;

        last->kept[0] += virtual(tail, last);
        s->memory[1] += tail;
    }
    s->memory[0] = turn ? turn->place + UINT64_C(1) : 0;
    hed_scene_give(s, turn);
    if (turn && s->working > 1) {
        const uint64_t end = first->kept[0] + virtual(s->params.slice, turn);
        const uint64_t left = end > turn->kept[0] ? end - turn->kept[0] : 0;

        hed_scene_look(s, s->memory[1] + left * turn->weight / UNIT);
    }
}

const struct hed_policy hed_policy_fair = {
    .name = "fair",
    .help = "GPU time in proportion to shares",
    .decide = decide,
};
