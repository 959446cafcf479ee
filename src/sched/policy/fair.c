/* fair: GPU time in proportion to shares, by virtual time: a client's GPU time over its weight.
 *
 * One client runs at a time, because kernels that run beside those of another process cannot be
 * timed. The time that passes while a client has the GPU and has work is charged to it, and so is
 * the work that it leaves on the GPU when the next client begins. A client keeps the GPU until it
 * is a slice ahead of the client that is furthest behind. A client that begins to work starts where
 * the others are: idle time is not saved up.
 */
#include "sched/policy.h"

#define AHEAD_MAX 64 /* slices that a client can be ahead of the others */
#define UNIT 1024    /* scales weights, so that short times do not round to 0 */

enum { MEMORY_RUNNER, MEMORY_CHARGED }; /* until when the GPU's time has been charged to clients */
enum { CLIENT_VIRTUAL };                /* virtual time */

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

static struct hed_sched_client *
find_furthest_behind(struct hed_scene *s)
{
    const uint64_t least = least_virtual(s);
    struct hed_sched_client *first = NULL;

    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];
        const uint64_t most = least + to_virtual(AHEAD_MAX * s->params.slice, c);

        /* Normal scheduling cannot produce a larger value, so shared memory was corrupted. Clamp
         * it, or the client would starve. */
        if (least != UINT64_MAX && c->memory[CLIENT_VIRTUAL] > most && most > least)
            c->memory[CLIENT_VIRTUAL] = most;
        if (c->working && c->fresh && least != UINT64_MAX && c->memory[CLIENT_VIRTUAL] < least)
            c->memory[CLIENT_VIRTUAL] = least;
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
    struct hed_sched_client *first = find_furthest_behind(s);
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

const struct hed_policy hed_policy_fair = {.decide = fair_decide};
