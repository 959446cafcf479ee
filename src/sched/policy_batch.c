/* batch: launches wait until there are enough of them, or the first has waited long enough, or
 * somebody waits for the GPU; then those are released together, and none that comes later.
 *
 * A thread at a gate is one launch, and so is one in a queue behind it (record mode); those of all
 * clients count together.
 */
#include "sched/policy.h"

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

    for (size_t i = 0; i < s->count; i++)
        s->clients[i].verdict = release ? HED_VERDICT_OPEN : HED_VERDICT_CLOSED;
}

const struct hed_policy hed_policy_batch = {
    .name = "batch",
    .help = "launches wait for each other and are released together",
    .decide = decide,
    .alone = true,
    .on_sync = true,
    .by_count = true,
};
