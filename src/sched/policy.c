/* The table of policies, and what they have in common. */
#include "sched/policy.h"

#include <string.h>

#include "base/clock.h"

/* The order is that of the numbers in shared memory: new ones go to the end. */
const struct hed_policy *const hed_policies[HED_POLICY_COUNT + 1] = {
    &hed_policy_priority, &hed_policy_fair,  &hed_policy_fifo,
    &hed_policy_deadline, &hed_policy_slice, &hed_policy_batch,
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
    for (int i = 0; hed_policies[i]; i++)
        if (strcmp(hed_policies[i]->name, name) == 0)
            return i;
    return -1;
}

void
hed_scene_look(struct hed_scene *s, uint64_t t)
{
    if (t < s->next_look)
        s->next_look = t;
}

struct hed_sched_client *
hed_scene_turn(struct hed_scene *s, uint64_t memory)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->clients[i].working && s->clients[i].place + UINT64_C(1) == memory)
            return &s->clients[i];
    return NULL;
}

void
hed_scene_give(struct hed_scene *s, struct hed_sched_client *turn)
{
    for (size_t i = 0; i < s->count; i++)
        s->clients[i].verdict = HED_VERDICT_CLOSED;
    if (turn)
        turn->verdict = s->working > 1 ? HED_VERDICT_LIMIT : HED_VERDICT_OPEN;
}
