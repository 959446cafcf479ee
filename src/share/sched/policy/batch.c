/* batch: launches wait until there are enough of them, the first has waited long enough, or a
 * thread waits for the GPU. Then all that wait are released together; later ones wait again.
 *
 * A thread at a gate counts as one launch, and so does every call in a queue behind it (record
 * mode). The launches of all clients count together.
 */
#include "share/sched/policy.h"

static bool
batch_is_due(struct hed_scene *s)
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
batch_decide(struct hed_scene *s)
{
    const bool release = batch_is_due(s);

    for (size_t i = 0; i < s->count; i++)
        s->clients[i].verdict = release ? HED_VERDICT_OPEN : HED_VERDICT_CLOSED;
}

const struct hed_policy hed_policy_batch = {
    .decide = batch_decide,
    .asked_alone = true,
    .asked_on_sync = true,
    .releases_calls = true,
};
