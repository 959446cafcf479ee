/* batch: launches wait until there are enough of them, or the first has waited long enough, or
 * somebody waits for the GPU; then all are released together, and the gates close behind them.
 *
 * A thread at a gate is one launch: what counts is threads, of all clients together.
 * memory[0]: 1 while the gates are open; memory[1]: since when.
 */
#include "sched/policy.h"

#define BURST 50000 /* ns that gates are open at least, for those who are being woken */

static bool
due(struct hed_scene *s)
{
    uint64_t total = 0;
    uint64_t oldest = UINT64_MAX;
    bool syncing = false;

    for (size_t i = 0; i < s->count; i++) {
        const struct hed_sched_client *c = &s->clients[i];

        total += c->waiting;
        syncing = syncing || c->syncing;
        if (c->waiting && c->waits_since < oldest)
            oldest = c->waits_since;
    }
    if (total)
        hed_scene_look(s, oldest + s->params.batch_wait);
    return total &&
           (total >= s->params.batch || syncing || s->now >= oldest + s->params.batch_wait);
}

static void
decide(struct hed_scene *s)
{
    const bool release = due(s);

    if (release) {
        s->memory[0] = 1;
        s->memory[1] = s->now;
    } else if (s->memory[0] && s->now >= s->memory[1] + BURST) {
        s->memory[0] = 0;
    }
    for (size_t i = 0; i < s->count; i++)
        s->clients[i].verdict = s->memory[0] ? HED_VERDICT_OPEN : HED_VERDICT_CLOSED;
    if (s->memory[0])
        s->next_look = s->memory[1] + BURST;
}

const struct hed_policy hed_policy_batch = {
    .name = "batch",
    .help = "launches wait for each other and are released together",
    .decide = decide,
    .alone = true,
    .on_sync = true,
};
