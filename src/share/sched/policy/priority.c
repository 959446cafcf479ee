/* priority: while a client has work, or had some a moment ago, clients of lower priority wait.
 * Clients of equal priority share the GPU as its hardware does. While a client of higher priority
 * exists at all, the others keep little work in flight, because it would have to wait for that work
 * when it begins.
 *
 * Periodic clients are predicted. The others learn when the next one is expected. They put work on
 * the GPU that ends before then (as much as they like while that time is far away), and leave the
 * GPU free for it. If it does not come, they wait only briefly. The prediction is a clock that runs
 * at the client's period; every time the client begins to work, the clock moves a little towards
 * that, so one late beginning moves it only a little.
 */
#include "share/sched/policy.h"

/* What is remembered about a client. Without trust, STROKE is its last beginning and PERIOD the
 * time between the last two. */
enum {
    CLIENT_STROKE, /* when its clock last struck */
    CLIENT_PERIOD, /* time between two strokes */
    CLIENT_OFF,    /* how far its beginnings are from the strokes, averaged */
    CLIENT_TRUST,  /* grows when a beginning is near its stroke, and shrinks twice as fast */
};

#define TRUST 3 /* needed before a client is expected */
#define TRUST_MAX 16
#define NEAR 10            /* a beginning may be off by one such part of the period */
#define EARLY_NS 100000    /* the GPU is kept free so long before a client is expected */
#define LATE_NS 500000     /* and so long after that */
#define BLUR 16            /* the prediction may be uncertain by one such part of the period */
#define SPARE 6            /* one such part of the period may stay unused */
#define GONE 3             /* periods without the client after which it is not expected any more */
#define MISSED 64          /* periods after which the clock means nothing any more */
#define PERIOD_MIN 2000000 /* ns; a client that comes more often counts as always present */

static uint64_t
distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Looks for two equal distances in a row, with which trust begins. */
static void
find_period(struct hed_sched_client *c)
{
    uint64_t *const m = c->memory;
    const uint64_t passed =
        m[CLIENT_STROKE] && c->since > m[CLIENT_STROKE] ? c->since - m[CLIENT_STROKE] : 0;

    if (passed && distance(passed, m[CLIENT_PERIOD]) <= m[CLIENT_PERIOD] / NEAR) {
        m[CLIENT_PERIOD] = (m[CLIENT_PERIOD] + passed) / 2;
        m[CLIENT_TRUST] = 1;
    } else {
        m[CLIENT_PERIOD] = passed;
    }
    m[CLIENT_STROKE] = c->since;
    m[CLIENT_OFF] = 0;
}

/* A client begins to work: compares that with its clock. */
static void
learn_beginning(struct hed_sched_client *c)
{
    uint64_t *const m = c->memory;
    const uint64_t period = m[CLIENT_PERIOD];
    const uint64_t passed = c->since > m[CLIENT_STROKE] ? c->since - m[CLIENT_STROKE] : 0;
    /* Nobody sees a beginning of a client whose last work was not seen to end. */
    const uint64_t strokes = period ? (passed + period / 2) / period : 0;

    if (m[CLIENT_TRUST] == 0 || period == 0 || strokes > MISSED) {
        m[CLIENT_TRUST] = 0;
        find_period(c);
        return;
    }
    if (strokes == 0) /* the same beginning again, or one that comes far too early */
        return;

    const uint64_t stroke = m[CLIENT_STROKE] + strokes * period;
    const uint64_t off = distance(c->since, stroke);
    const bool late = c->since > stroke;

    m[CLIENT_STROKE] = stroke;
    if (off > period / NEAR) {
        m[CLIENT_TRUST] -= m[CLIENT_TRUST] < 2 ? m[CLIENT_TRUST] : 2;
        return;
    }
    m[CLIENT_STROKE] = late ? stroke + off / 4 : stroke - off / 4;
    m[CLIENT_PERIOD] = late ? period + off / strokes / 8 : period - off / strokes / 8;
    m[CLIENT_OFF] = (m[CLIENT_OFF] * 3 + off) / 4;
    m[CLIENT_TRUST] += m[CLIENT_TRUST] < TRUST_MAX;
}

/* How long before its stroke the GPU is kept free for a client. */
static uint64_t
margin_of(const struct hed_sched_client *c)
{
    return EARLY_NS + 2 * c->memory[CLIENT_OFF];
}

/* When a client is expected next; 0: it is not periodic, or seems to come no more. */
static uint64_t
predict_beginning(const struct hed_scene *s, const struct hed_sched_client *c)
{
    const uint64_t *const m = c->memory;
    const uint64_t over = m[CLIENT_STROKE] + LATE_NS; /* after this, that stroke is given up */
    const uint64_t period = m[CLIENT_PERIOD];
    const uint64_t strokes = period && s->now > over ? (s->now - over) / period + 1 : 1;

    if (c->working || m[CLIENT_TRUST] < TRUST || period < PERIOD_MIN ||
        margin_of(c) > period / BLUR || strokes > GONE)
        return 0;
    return m[CLIENT_STROKE] + strokes * period;
}

/* Tells a client of lower priority how long the GPU is free for it. */
static void
limit_until_expected(struct hed_scene *s, struct hed_sched_client *low)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct hed_sched_client *c = &s->clients[i];
        const uint64_t next = c->priority > low->priority ? predict_beginning(s, c) : 0;

        if (!next || (low->until && low->until <= next - margin_of(c)))
            continue;
        low->until = next - margin_of(c);
        low->spare = c->memory[CLIENT_PERIOD] / SPARE;
        hed_scene_look(s, next + LATE_NS);
    }
}

static void
priority_decide(struct hed_scene *s)
{
    uint32_t active = 0;  /* 1 + the highest priority that has work or had some a moment ago */
    uint32_t present = 0; /* 1 + the highest priority of all clients */

    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];
        const bool held = !c->working && c->rested && s->now < c->rested + s->params.hold;

        if (c->working && c->fresh)
            learn_beginning(c);
        if ((c->working || held) && c->priority + 1 > active)
            active = c->priority + 1;
        if (c->priority + 1 > present)
            present = c->priority + 1;
        if (held)
            hed_scene_look(s, c->rested + s->params.hold);
    }
    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];

        if (c->priority + 1 < active) {
            c->verdict = HED_VERDICT_CLOSED;
        } else if (c->priority + 1 < present) {
            c->verdict = HED_VERDICT_LIMIT;
            limit_until_expected(s, c);
        }
    }
}

const struct hed_policy hed_policy_priority = {.decide = priority_decide, .asked_alone = true};
