/* priority: while a client has work, or had a moment ago, those of lower priority wait. Clients of
 * one priority share the GPU as its hardware does. Where somebody of higher priority is there at
 * all, the others keep little in flight: that is what he would wait for when he begins. */
#include "sched/policy.h"

static void
decide(struct hed_scene *s)
{
    uint32_t active = 0; /* the highest priority that works or did a moment ago, + 1 */
    uint32_t there = 0;  /* the highest that is there at all, + 1 */

    for (size_t i = 0; i < s->count; i++) {
        const struct hed_sched_client *c = &s->clients[i];
        const bool held = !c->working && c->rested && s->now < c->rested + s->params.hold;

        if ((c->working || held) && c->priority + 1 > active)
            active = c->priority + 1;
        if (c->priority + 1 > there)
            there = c->priority + 1;
        if (held)
            hed_scene_look(s, c->rested + s->params.hold);
    }
    for (size_t i = 0; i < s->count; i++) {
        struct hed_sched_client *c = &s->clients[i];

        if (c->priority + 1 < active)
            c->verdict = HED_VERDICT_CLOSED;
        else if (c->priority + 1 < there)
            c->verdict = HED_VERDICT_LIMIT;
    }
}

const struct hed_policy hed_policy_priority = {
    .name = "priority",
    .help = "lower priorities wait while a higher one has work",
    .decide = decide,
    .alone = true,
};
