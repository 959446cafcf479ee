/* The table of policies, and what they have in common. */
#include "share/sched/policy.h"

#include <string.h>

#include "base/clock.h"

const struct hed_policy_entry hed_policies[HED_POLICY_COUNT] = {
#define POLICY(name, help) {#name, help, &hed_policy_##name},
#include "share/sched/policies.def"
#undef POLICY
};

const struct hed_sched_params hed_sched_defaults = {
    .hold = HED_NS_PER_MS / 2,
    .cap = HED_NS_PER_MS / 2,
    .slice = 10 * HED_NS_PER_MS,
    .batch_wait = 2 * HED_NS_PER_MS,
    .batch = 8,
};

int
hed_policy_find(const char *name)
{
    for (int i = 0; i < HED_POLICY_COUNT; i++)
        if (strcmp(hed_policies[i].name, name) == 0)
            return i;
    return -1;
}

const struct hed_policy *
hed_policy_at(uint32_t number)
{
    return hed_policies[number < HED_POLICY_COUNT ? number : HED_POLICY_DEFAULT].policy;
}

void
hed_scene_look(struct hed_scene *s, uint64_t t)
{
    if (t < s->next_look)
        s->next_look = t;
}

struct hed_sched_client *
hed_scene_runner(struct hed_scene *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->clients[i].working && s->clients[i].slot + UINT64_C(1) == s->memory[0])
            return &s->clients[i];
    return NULL;
}

void
hed_scene_run_only(struct hed_scene *s, struct hed_sched_client *runner)
{
    for (size_t i = 0; i < s->count; i++)
        s->clients[i].verdict = HED_VERDICT_CLOSED;
    if (!runner)
        return;
    runner->verdict = s->working > 1 ? HED_VERDICT_LIMIT : HED_VERDICT_OPEN;
    s->memory[0] = runner->slot + UINT64_C(1);
}
