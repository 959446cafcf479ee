/* deadline: the client with the earliest deadline runs. A deadline is a fixed time after the client
 * began to work.
 *
 * A client that misses its deadline comes first and runs for at least one cap; if it still has work
 * then, its next deadline counts. Clients without a deadline get a distant one, so that they run
 * when it draws near.
 */
#include "share/sched/policy.h"

#include "base/clock.h"

#define DISTANT HED_NS_PER_S

enum { MEMORY_RUNNER, MEMORY_SINCE }; /* since when the runner has had the GPU */
enum { CLIENT_DUE };                  /* the deadline that counts now */

static uint64_t
deadline_span(const struct hed_sched_client *c)
{
    return c->deadline ? c->deadline : DISTANT;
}

/* Moves a deadline that has passed on to the next one that has not. */
static void
deadline_renew(struct hed_sched_client *c, uint64_t now)
{
    const uint64_t span = deadline_span(c);

    c->memory[CLIENT_DUE] += ((now - c->memory[CLIENT_DUE]) / span + 1) * span;
}

static struct hed_sched_client *
find_most_urgent(struct hed_scene *s)
{
    struct hed_sched_client *first = NULL;

    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];

        if (!c->working)
            continue;
        if (c->fresh || c->memory[CLIENT_DUE] == 0)
            c->memory[CLIENT_DUE] = c->since + deadline_span(c);
        if (!first || c->memory[CLIENT_DUE] < first->memory[CLIENT_DUE])
            first = c;
    }
    return first;
}

static void
deadline_decide(struct hed_scene *s)
{
    struct hed_sched_client *last = hed_scene_runner(s);
    const uint64_t least = s->memory[MEMORY_SINCE] + s->params.cap;

    if (last && last->memory[CLIENT_DUE] <= s->now && s->now >= least)
        deadline_renew(last, s->now);

    struct hed_sched_client *runner = find_most_urgent(s);

    /* A late client keeps the GPU for that long: late clients would take it from each other. */
    if (last && last->memory[CLIENT_DUE] <= s->now && s->now < least)
        runner = last;
    if (runner != last)
        s->memory[MEMORY_SINCE] = s->now;
    hed_scene_run_only(s, runner);
    if (runner && s->working > 1) {
        const uint64_t end = s->memory[MEMORY_SINCE] + s->params.cap;

        hed_scene_look(s, runner->memory[CLIENT_DUE] > end ? runner->memory[CLIENT_DUE] : end);
    }
}

const struct hed_policy hed_policy_deadline = {.decide = deadline_decide};
