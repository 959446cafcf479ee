/* fair: GPU time in proportion to shares, by virtual time: a client's GPU time over its weight.
 *
 * One client runs at a time, because kernels that run beside those of another process cannot be
 * timed. The time that passes while a client has the GPU and has work is charged to it, also while
 * it works alone, and so is the work that it leaves on the GPU when the next client begins. A
 * client keeps the GPU until it is a slice ahead of the client that is furthest behind.
 *
 * A client that begins to work starts where the others are: idle time is not saved up. But a client
 * that has rested for less than a slice, as programs do between a wait and their next launch, keeps
 * what it is behind, up to a slice. Otherwise it would lose that at every wait: programs with 100
 * us kernels and gaps of 300 us got 37 % of the GPU instead of 50 %.
 */
#include "share/sched/policy.h"

#define AHEAD_MAX 64 /* slices that a client can be ahead of the others */
#define UNIT 1024    /* scales weights, so that short times do not round to 0 */

enum {
    MEMORY_RUNNER,
    MEMORY_CHARGED, /* until when the GPU's time has been charged to clients */
    MEMORY_CLOCK,   /* the virtual time at which clients begin; it never goes back */
};
enum { CLIENT_VIRTUAL }; /* virtual time */

static uint64_t
to_virtual(uint64_t ns, const struct hed_sched_client *c)
{
    return ns * UNIT / c->weight;
}

/* Charges the time since the last decision to the client that had the GPU, and returns that. */
static struct hed_sched_client *
charge_last_runner(struct hed_scene *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];

        if (c->slot + UINT64_C(1) != s->memory[MEMORY_RUNNER])
            continue;

        const uint64_t until = c->working || c->rested > s->now ? s->now : c->rested;

        if (until > s->memory[MEMORY_CHARGED]) {
            c->memory[CLIENT_VIRTUAL] += to_virtual(until - s->memory[MEMORY_CHARGED], c);
            s->memory[MEMORY_CHARGED] = until;
        }
        return c;
    }
    return NULL;
}

/* The least virtual time of the clients that were working already; UINT64_MAX: there is none. */
static uint64_t
least_virtual(const struct hed_scene *s)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < s->count; i++) {
        const struct hed_sched_client *c = &s->clients[i];

        if (c->working && !c->fresh && c->memory[CLIENT_VIRTUAL] < least)
            least = c->memory[CLIENT_VIRTUAL];
    }
    return least;
}

/* Moves the clock to the clients that work or, if none does, to the one that had the GPU last. */
static void
move_clock(struct hed_scene *s, const struct hed_sched_client *last, uint64_t least)
{
    uint64_t *clock = &s->memory[MEMORY_CLOCK];
    uint64_t slice = 0;

    if (least == UINT64_MAX) {
        if (last && last->memory[CLIENT_VIRTUAL] > *clock)
            *clock = last->memory[CLIENT_VIRTUAL];
        return;
    }
    for (size_t i = 0; i < s->count; i++)
        if (to_virtual(s->params.slice, &s->clients[i]) > slice)
            slice = to_virtual(s->params.slice, &s->clients[i]);
    /* No client begins more than a slice behind the clock, so a clock that is further ahead was
     * corrupted. */
    if (*clock < least || *clock - least > 2 * slice)
        *clock = least;
}

/* A client begins to work. */
static void
place_client(const struct hed_scene *s, struct hed_sched_client *c)
{
    const uint64_t clock = s->memory[MEMORY_CLOCK];
    const uint64_t credit = to_virtual(s->params.slice, c);
    uint64_t begin = clock;

    if (c->rested && s->now < c->rested + s->params.slice)
        begin = clock > credit ? clock - credit : 0;
    if (c->memory[CLIENT_VIRTUAL] < begin)
        c->memory[CLIENT_VIRTUAL] = begin;
}

static struct hed_sched_client *
find_furthest_behind(struct hed_scene *s, const struct hed_sched_client *last)
{
    const uint64_t least = least_virtual(s);
    struct hed_sched_client *first = NULL;

    move_clock(s, last, least);
    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];
        const uint64_t most = least + to_virtual(AHEAD_MAX * s->params.slice, c);

        /* Normal scheduling cannot produce a larger value, so shared memory was corrupted. Clamp
         * it, or the client would starve. */
        if (least != UINT64_MAX && c->memory[CLIENT_VIRTUAL] > most && most > least)
            c->memory[CLIENT_VIRTUAL] = most;
        if (c->working && c->fresh)
            place_client(s, c);
        if (c->working && (!first || c->memory[CLIENT_VIRTUAL] < first->memory[CLIENT_VIRTUAL]))
            first = c;
    }
    return first;
}

/* The last runner is still using the GPU for what it has in flight. */
static void
charge_work_in_flight(struct hed_scene *s, struct hed_sched_client *last)
{
    if (last->ends <= s->memory[MEMORY_CHARGED])
        return;

    const uint64_t rest = last->ends - s->memory[MEMORY_CHARGED];
    /* `ends` is an estimate: limit the damage of a bad one. */
    const uint64_t tail = rest < s->params.slice ? rest : s->params.slice;

    last->memory[CLIENT_VIRTUAL] += to_virtual(tail, last);
    s->memory[MEMORY_CHARGED] += tail;
}

static void
fair_decide(struct hed_scene *s)
{
    if (s->memory[MEMORY_CHARGED] > s->now + s->params.slice) /* shared memory was corrupted */
        s->memory[MEMORY_CHARGED] = s->now;

    struct hed_sched_client *last = charge_last_runner(s);
    struct hed_sched_client *first = find_furthest_behind(s, last);
    struct hed_sched_client *runner = last && last->working ? last : NULL;

    if (!runner || runner->memory[CLIENT_VIRTUAL] >=
                       first->memory[CLIENT_VIRTUAL] + to_virtual(s->params.slice, runner))
        runner = first;
    if (s->memory[MEMORY_CHARGED] < s->now)
        s->memory[MEMORY_CHARGED] = s->now;
    if (last && last != runner)
        charge_work_in_flight(s, last);
    hed_scene_run_only(s, runner);
    if (runner && s->working > 1) {
        const uint64_t end = first->memory[CLIENT_VIRTUAL] + to_virtual(s->params.slice, runner);
        const uint64_t left =
            end > runner->memory[CLIENT_VIRTUAL] ? end - runner->memory[CLIENT_VIRTUAL] : 0;

        hed_scene_look(s, s->memory[MEMORY_CHARGED] + left * runner->weight / UNIT);
    }
}

const struct hed_policy hed_policy_fair = {.decide = fair_decide, .asked_alone = true};
