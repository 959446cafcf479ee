/* A simulated GPU with clients under a policy, for the tests of the policies.
 *
 * The GPU runs one piece of work after the other, in the order in which clients put them there,
 * when the policy lets them. */
#pragma once

#include "harness/unit.h"

#include <stdbool.h>

#include "share/sched/policy.h"
#include "share/sched/share.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define S (1000 * MS)
#define STEP (10 * US)
#define CLIENTS_MAX 8
#define BEGIN S /* the clock is never 0 */

struct actor {
    uint64_t piece;  /* ns of a piece of work */
    uint64_t period; /* ns between bursts; 0: endless work */
    uint64_t burst;  /* pieces of a burst */
    uint64_t gap;    /* ns from the end of a burst to the next one, instead of a period; 0: none */

    uint64_t left;    /* pieces of this burst that are not yet on the GPU */
    uint64_t next;    /* when the next burst begins */
    uint64_t ends;    /* when its work on the GPU ends */
    uint64_t done;    /* pieces */
    uint64_t served;  /* when one was last put on the GPU */
    uint64_t longest; /* the longest it has waited for that */
};

struct world {
    const struct hed_policy *policy;
    struct hed_scene scene;
    struct hed_sched_client clients[CLIENTS_MAX];
    struct actor actors[CLIENTS_MAX];
    uint64_t gpu_free;
    uint64_t next_decision;
    uint64_t decisions;
};

static void
make_world(struct world *w, const char *policy, size_t count)
{
    const int i = hed_policy_find(policy);

    assert_true(i >= 0);
    memset(w, 0, sizeof *w);
    w->policy = hed_policies[i].policy;
    w->scene.params = hed_sched_defaults;
    w->scene.clients = w->clients;
    w->scene.count = count;
    w->scene.now = BEGIN;
    w->gpu_free = BEGIN;
    for (size_t k = 0; k < count; k++) {
        w->clients[k] = (struct hed_sched_client){
            .slot = (uint32_t)k, .priority = HED_PRIORITY_NORMAL, .weight = 100};
        w->actors[k] = (struct actor){.piece = 100 * US, .served = BEGIN, .next = BEGIN};
    }
}

/* Asks the policy as share/sched/decide.c does. */
static void
ask_policy(struct world *w)
{
    struct hed_scene *s = &w->scene;

    s->working = 0;
    s->next_look = s->now + 10 * MS;
    for (size_t i = 0; i < s->count; i++) {
        s->working += w->clients[i].working;
        w->clients[i].verdict = HED_VERDICT_OPEN;
        w->clients[i].until = w->clients[i].spare = 0;
    }
    if (s->working > 1 || w->policy->asked_alone)
        w->policy->decide(s);
    for (size_t i = 0; i < s->count; i++)
        w->clients[i].fresh = false;
    w->next_decision = s->next_look;
    w->decisions++;
}

/* Would the gate (share/sched/gate.c) let the client put one more piece on the GPU? */
static bool
may_put_work(const struct world *w, const struct hed_sched_client *c, const struct actor *a)
{
    const uint64_t now = w->scene.now;

    if (!c->working || c->verdict == HED_VERDICT_CLOSED)
        return false;
    if (c->until && a->piece <= c->spare)
        return (a->ends > now ? a->ends : now) + a->piece <= c->until &&
               a->ends < now + 4 * w->scene.params.cap;
    return a->ends < now + w->scene.params.cap;
}

static bool
has_work(const struct actor *a)
{
    return a->left || (!a->period && !a->gap);
}

static void
put_work(struct world *w, size_t i)
{
    struct hed_sched_client *c = &w->clients[i];
    struct actor *a = &w->actors[i];
    const uint64_t now = w->scene.now;

    while (may_put_work(w, c, a) && has_work(a)) {
        w->gpu_free = (w->gpu_free > now ? w->gpu_free : now) + a->piece;
        a->ends = c->ends = w->gpu_free;
        a->left -= a->left ? 1 : 0;
        a->done++;
        a->longest = now - a->served > a->longest ? now - a->served : a->longest;
        a->served = now;
        c->used += a->piece;
    }
    c->waiting = c->working && c->verdict == HED_VERDICT_CLOSED && has_work(a);
    if (!c->waiting)
        c->waits_since = now;
}

/* The same for a client with gaps. As in share/sched/decide.c, it counts as working for a moment
 * after its work has ended, so that a short gap is not seen. */
static bool
begin_or_end_after_gap(struct world *w, size_t i)
{
    struct hed_sched_client *c = &w->clients[i];
    struct actor *a = &w->actors[i];
    const uint64_t now = w->scene.now;

    if (a->left || a->ends > now)
        return false;
    if (a->next <= now) {
        a->left = a->burst;
        a->next = UINT64_MAX; /* until the burst is done */
        c->fresh = !c->working;
        c->since = c->working ? c->since : now;
        c->working = true;
        return c->fresh;
    }
    if (a->next == UINT64_MAX)
        a->next = a->ends + a->gap;
    if (!c->working || now < a->ends + HED_SCHED_MARGIN_NS)
        return false;
    c->working = false;
    c->rested = a->ends;
    return true;
}

/* Lets work begin and end. Returns whether any did. */
static bool
begin_or_end_work(struct world *w, size_t i)
{
    struct hed_sched_client *c = &w->clients[i];
    struct actor *a = &w->actors[i];
    const uint64_t now = w->scene.now;

    if (a->gap)
        return begin_or_end_after_gap(w, i);
    if (!c->working && a->next <= now && (!a->period || a->burst)) {
        c->working = c->fresh = true;
        c->since = now;
        c->waits_since = now;
        a->left = a->burst;
        a->next += a->period;
        if (a->period)
            a->served = now;
        return true;
    }
    if (c->working && a->period && a->left == 0 && a->ends <= now) {
        c->working = false;
        c->rested = now;
        return true;
    }
    return false;
}

static void
step(struct world *w)
{
    struct hed_scene *s = &w->scene;
    bool news = s->now >= w->next_decision;

    for (size_t i = 0; i < s->count; i++)
        news = begin_or_end_work(w, i) || news;
    if (news)
        ask_policy(w);
    for (size_t i = 0; i < s->count; i++)
        put_work(w, i);
    s->now += STEP;
}

static inline void
run_for(struct world *w, uint64_t ns)
{
    for (const uint64_t end = w->scene.now + ns; w->scene.now < end;)
        step(w);
}
