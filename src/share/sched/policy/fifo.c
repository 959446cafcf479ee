/* fifo: the client that began to work first runs until it has no work; then the next. A client
 * whose work never ends goes to the end of the line after a long time, so that nobody starves.
 */
#include "share/sched/policy.h"

#define LONGEST 200 /* slices that a client has the GPU */

enum { MEMORY_RUNNER, MEMORY_SINCE }; /* since when the runner has had the GPU */
enum { CLIENT_QUEUED };               /* when it joined the line */

static struct hed_sched_client *
find_longest_queued(struct hed_scene *s)
{
    struct hed_sched_client *first = NULL;

    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];

        if (c->working && (!first || c->memory[CLIENT_QUEUED] < first->memory[CLIENT_QUEUED]))
            first = c;
    }
    return first;
}

static void
fifo_decide(struct hed_scene *s)
{
    if (s->memory[MEMORY_SINCE] > s->now) /* shared memory was corrupted */
        s->memory[MEMORY_SINCE] = s->now;

    struct hed_sched_client *runner = hed_scene_runner(s);
    const uint64_t longest = s->params.slice * LONGEST;

    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];

        if (c->fresh || c->memory[CLIENT_QUEUED] == 0 || c->memory[CLIENT_QUEUED] > s->now)
            c->memory[CLIENT_QUEUED] = c->since;
    }
    if (runner && s->now >= s->memory[MEMORY_SINCE] + longest) {
        runner->memory[CLIENT_QUEUED] = s->now;
        runner = NULL;
    }
    if (!runner) {
        runner = find_longest_queued(s);
        s->memory[MEMORY_SINCE] = s->now;
    }
    hed_scene_run_only(s, runner);
    if (runner && s->working > 1)
        hed_scene_look(s, s->memory[MEMORY_SINCE] + longest);
}

const struct hed_policy hed_policy_fifo = {.decide = fifo_decide};
