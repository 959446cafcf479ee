/* priority: while a client has work, or had a moment ago, those of lower priority wait. Clients of
 * one priority share the GPU as its hardware does. Where somebody of higher priority is there at
 * all, the others keep little in flight: that is what he would wait for when he begins.
 *
 * Who comes at regular times is expected: the others are told when, put on the GPU what ends before
 * (and, as long as he is not near, as much as they like), and leave it free for him then. If he
 * does not come, nobody waits for him for long. The beginnings are held against a clock that runs
 * in their rhythm, which is set right a little each time: one that is late moves it by as little.
 *
 * kept[0]: when that clock last struck; kept[1]: the time between two strokes; kept[2]: how far the
 * beginnings are from them, averaged; kept[3]: trust, which grows when one was near and is lost
 * twice as fast. Without trust, kept[0] is the last beginning and kept[1] the time before it.
 */
#include "sched/policy.h"

#define TRUST 3 /* before somebody is expected */
#define TRUST_MAX 16
#define NEAR 10            /* part of a period that a beginning may be off */
#define EARLY_NS 100000    /* the GPU is to be free so long before somebody is expected */
#define LATE_NS 500000     /* and he is waited for so long */
#define BLUR 16            /* part of a period that may be uncertain */
#define SPARE 6            /* part of a period that may be left unused */
#define GONE 3             /* periods without it after which it is not expected any more */
#define MISSED 64          /* periods after which nothing is known any more */
#define PERIOD_MIN 2000000 /* ns: who comes more often is best held off as if he were there */

static uint64_t
distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Are there two times in a row that are alike? */
static void
find_rhythm(struct hed_sched_client *c)
{
    const uint64_t passed = c->kept[0] && c->since > c->kept[0] ? c->since - c->kept[0] : 0;

    if (passed && distance(passed, c->kept[1]) <= c->kept[1] / NEAR) {
        c->kept[1] = (c->kept[1] + passed) / 2;
        c->kept[3] = 1;
    } else {
        c->kept[1] = passed;
    }
    c->kept[0] = c->since;
    c->kept[2] = 0;
}

/* A client begins to work: how regular is that? */
static void
learn(struct hed_sched_client *c)
{
    const uint64_t period = c->kept[1];
    const uint64_t passed = c->since > c->kept[0] ? c->since - c->kept[0] : 0;
    /* One that was not seen to end its work was not seen to begin again. */
    const uint64_t strokes = period ? (passed + period / 2) / period : 0;

    if (c->kept[3] == 0 || period == 0 || strokes > MISSED) {
        c->kept[3] = 0;
        find_rhythm(c);
        return;
    }
    if (strokes == 0) /* it is the same beginning, or far too early */
        return;

    const uint64_t stroke = c->kept[0] + strokes * period;
    const uint64_t off = distance(c->since, stroke);
    const bool late = c->since > stroke;

    c->kept[0] = stroke;
    if (off > period / NEAR) {
        c->kept[3] -= c->kept[3] < 2 ? c->kept[3] : 2;
        return;
    }
    c->kept[0] = late ? stroke + off / 4 : stroke - off / 4;
    c->kept[1] = late ? period + off / strokes / 8 : period - off / strokes / 8;
    c->kept[2] = (c->kept[2] * 3 + off) / 4;
    c->kept[3] += c->kept[3] < TRUST_MAX;
}

static uint64_t
early(const struct hed_sched_client *c)
{
    return EARLY_NS + 2 * c->kept[2];
}

/* When it is expected next; 0: nobody knows, or it seems to come no more. */
static uint64_t
expected(const struct hed_scene *s, const struct hed_sched_client *c)
{
    const uint64_t over = c->kept[0] + LATE_NS; /* nobody waits any more for that one */
    const uint64_t period = c->kept[1];
    const uint64_t strokes = period && s->now > over ? (s->now - over) / period + 1 : 1;

    if (c->working || c->kept[3] < TRUST || period < PERIOD_MIN || early(c) > period / BLUR ||
        strokes > GONE)
        return 0;
    return c->kept[0] + strokes * period;
}

/* Tells a client of lower priority until when the GPU is its own. */
static void
warn(struct hed_scene *s, struct hed_sched_client *low)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct hed_sched_client *c = &s->clients[i];
        const uint64_t next = c->priority > low->priority ? expected(s, c) : 0;

        if (!next || (low->until && low->until <= next - early(c)))
            continue;
        low->until = next - early(c);
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
