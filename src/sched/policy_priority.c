/* priority: while a client has work, or had a moment ago, those of lower priority wait. Clients of
 * one priority share the GPU as its hardware does. Where somebody of higher priority is there at
 * all, the others keep little in flight: that is what he would wait for when he begins.
 *
 * Who comes at regular times is expected: the others are told when, put on the GPU what ends before
 * (and, as long as he is not near, as much as they like), and leave it free for him then. If he
 * does not come, nobody waits for him for long.
 *
 * kept[0]: when the client last began to work; kept[1]: the time between two beginnings, averaged;
 * kept[2]: how far beginnings are from that, averaged; kept[3]: how many times in a row it was
 * near.
 */
#include "sched/policy.h"

#define TRUST_MAX 16
#define TRUST 3            /* regular beginnings, before the next one is expected */
#define REGULAR 16         /* part of a period that a beginning may be off */
#define EARLY_NS 100000    /* the GPU is to be free so long before somebody is expected */
#define LATE_NS 500000     /* and he is waited for so long */
#define MISSED 4           /* periods that may have passed unseen */
#define SPARE 8            /* part of a period that may be left unused */
#define PERIOD_MIN 2000000 /* ns: who comes more often is best held off as if he were there */

static uint64_t
distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* A client begins to work: how regular is that? */
static void
learn(struct hed_sched_client *c)
{
    const uint64_t passed = c->kept[0] && c->since > c->kept[0] ? c->since - c->kept[0] : 0;
    /* One that was not seen to end its work was not seen to begin again. */
    const uint64_t periods = c->kept[1] ? (passed + c->kept[1] / 2) / c->kept[1] : 0;
    const uint64_t period = periods > 1 && periods <= MISSED ? passed / periods : passed;
    const uint64_t off = distance(period, c->kept[1]);

    if (c->since == c->kept[0])
        return;
    c->kept[0] = c->since;
    if (!period || !c->kept[1] || off > c->kept[1] / REGULAR) {
        c->kept[3] /= 2; /* once may be by chance */
        if (c->kept[3] < TRUST) {
            c->kept[1] = period;
            c->kept[2] = c->kept[3] = 0;
        }
        return;
    }
    c->kept[1] = (c->kept[1] * 3 + period) / 4;
    c->kept[2] = (c->kept[2] * 3 + off) / 4;
    c->kept[3] += c->kept[3] < TRUST_MAX;
}

/* When it is expected; 0: nobody knows, or it should have come by now. */
static uint64_t
expected(const struct hed_scene *s, const struct hed_sched_client *c)
{
    const uint64_t next = c->kept[0] + c->kept[1];

    return !c->working && c->kept[3] >= TRUST && c->kept[1] >= PERIOD_MIN && s->now < next + LATE_NS
               ? next
               : 0;
}

/* Tells a client of lower priority until when the GPU is its own. */
static void
warn(struct hed_scene *s, struct hed_sched_client *low)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct hed_sched_client *c = &s->clients[i];
        const uint64_t next = c->priority > low->priority ? expected(s, c) : 0;
        const uint64_t early = EARLY_NS + 2 * c->kept[2];

        if (!next || (low->until && low->until <= next - early))
            continue;
        low->until = next - early;
        low->spare = c->kept[1] / SPARE;
        hed_scene_look(s, next + LATE_NS);
    }
}

static void
decide(struct hed_scene *s)
{
    uint32_t active = 0; /* the highest priority that works or did a moment ago, + 1 */
    uint32_t there = 0;  /* the highest that is there at all, + 1 */

    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];
        const bool held = !c->working && c->rested && s->now < c->rested + s->params.hold;

        if (c->working && c->fresh)
            learn(c);
        if ((c->working || held) && c->priority + 1 > active)
            active = c->priority + 1;
        if (c->priority + 1 > there)
            there = c->priority + 1;
        if (held)
            hed_scene_look(s, c->rested + s->params.hold);
    }
    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];

        if (c->priority + 1 < active) {
            c->verdict = HED_VERDICT_CLOSED;
        } else if (c->priority + 1 < there) {
            c->verdict = HED_VERDICT_LIMIT;
            warn(s, c);
        }
    }
}

const struct hed_policy hed_policy_priority = {
    .name = "priority",
    .help = "lower priorities wait while a higher one has work",
    .decide = decide,
    .alone = true,
};
