/* Deciding which clients may run: from shared memory to a scene, through the policy, and into gate
 * words.
 *
 *     lock -> which clients exist, which work -> policy -> gate words, wake-ups -> unlock
 *
 * The process that notices a change decides; while clients wait, each of them decides when the time
 * comes (next_look). So nothing depends on a process that is stopped or dead: the kernel's locks
 * tell which clients are dead, and the kernel's state of a process tells which are stopped. Both
 * are asked at every census.
 */
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/futex.h"
#include "base/process.h"
#include "share/sched/share.h"

#define CENSUS_NS (10 * HED_NS_PER_MS)
#define SOONEST_NS 20000        /* between two looks, so that waiting clients do not spin */
#define FAR_NS (10 * CENSUS_NS) /* nobody sets the next look further away than this */

/* Relaxed: see share.c. */
#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define AT_MOST(word, limit) (GET(word) > (limit) ? SET(word, (limit)) : (void)0)

struct view {
    struct hed_sched_slot *slots[HED_SCHED_SLOTS]; /* of `clients` */
    struct hed_sched_client clients[HED_SCHED_SLOTS];
    struct hed_sched_slot *paused[HED_SCHED_SLOTS];
    size_t count;
    size_t paused_count;
    bool census;
};

/* ---- shared memory to scene ------------------------------------------------------------------ */

/* Whether a signal or a debugger has stopped the process. If nobody knows, it has not. */
static bool
is_stopped(int32_t pid)
{
    char text[256];
    const char *state = hed_process_stat(pid, text, sizeof text);

    return state && state[1] == ' ' && strchr("TtZX", state[2]) && state[2] != '\0';
}

/* A value that cannot be true was written by a faulty process: nobody may wait for it for ever.
 * Some of these times are never in the future, but `now` may be older than they are. */
static void
clamp_slot(struct hed_sched_slot *p, uint64_t now)
{
    const uint64_t latest = now + HED_SCHED_PATIENCE_NS;

    AT_MOST(p->last_call, latest);
    AT_MOST(p->ends, latest);
    AT_MOST(p->waits_since, latest);
    AT_MOST(p->since, latest);
    AT_MOST(p->rested, latest);
    AT_MOST(p->priority, HED_PRIORITY_HIGH);
}

static void
rest_slot(struct hed_sched_slot *p, uint64_t end)
{
    SET(p->working, 0);
    SET(p->fresh, 0);
    SET(p->tickets, 0); /* left over from calls that went on for another reason */
    SET(p->since, end);
    SET(p->rested, end);
}

/* Brings up to date whether a client works. */
static void
refresh_slot(struct hed_sched_slot *p, struct hed_scene *s, bool census)
{
    const uint64_t last = GET(p->last_call);
    const uint64_t ends = GET(p->ends);
    uint64_t end = last > ends ? last : ends;

    if (!GET(p->working))
        return;
    if (GET(p->out)) {
        rest_slot(p, s->now); /* its calls wait until it is back, whatever the policy says */
        return;
    }
    if (!(GET(p->gate) & HED_GATE_WATCH) && !GET(p->fresh)) {
        /* Nobody has watched it so far: it has one margin to show that it works. */
        SET(p->last_call, s->now);
        hed_scene_look(s, s->now + HED_SCHED_MARGIN_NS);
        return;
    }
    if (GET(p->waiting) || GET(p->queued) || GET(p->syncing)) {
        if (!census || !is_stopped(GET(p->pid)))
            return;
        end = s->now;
    } else if (s->now < end + HED_SCHED_MARGIN_NS) {
        hed_scene_look(s, end + HED_SCHED_MARGIN_NS);
        return;
    }
    rest_slot(p, end);
}

/* Calls that wait and have not been released yet. */
static uint32_t
count_waiting(const struct hed_sched_slot *p)
{
    const uint32_t n = GET(p->waiting) + GET(p->queued);
    const uint32_t released = GET(p->tickets);

    return n > released ? n - released : 0;
}

static struct hed_sched_client
read_client(const struct hed_sched_slot *p, uint32_t slot, uint64_t now)
{
    struct hed_sched_client c = {
        .slot = slot,
        .working = GET(p->working),
        .fresh = GET(p->fresh),
        .waiting = count_waiting(p),
        .syncing = GET(p->syncing),
        .priority = GET(p->priority),
        .weight = GET(p->weight),
        .deadline = GET(p->deadline),
        .since = GET(p->since),
        .rested = GET(p->rested),
        /* Acquire: a thread that is counted has written since when it waits. */
        .waits_since =
            atomic_load_explicit(&p->waiting, memory_order_acquire) ? GET(p->waits_since) : now,
        .used = GET(p->used),
        .ends = GET(p->ends),
    };

    for (int i = 0; i < HED_POLICY_CLIENT_MEMORY; i++)
        c.memory[i] = GET(p->memory[i]);
    return c;
}

static void
gather_clients(struct hed_meet *m, struct view *v, struct hed_scene *s)
{
    struct hed_sched_common *c = hed_meet_common(m);
    uint32_t high = GET(c->high);

    high = high > HED_SCHED_SLOTS ? HED_SCHED_SLOTS : high;
    v->census = s->now >= GET(c->census) + CENSUS_NS || GET(c->census) > s->now;
    if (v->census)
        SET(c->census, s->now);
    for (uint32_t i = 0; i < high; i++) {
        struct hed_sched_slot *p = hed_meet_slot(m, i);

        if (!GET(p->present))
            continue;
        if (v->census && !hed_meet_taken(m, i, NULL)) {
            SET(p->present, 0);
            continue;
        }
        clamp_slot(p, s->now);
        refresh_slot(p, s, v->census);
        if (GET(c->paused) || GET(p->paused)) {
            v->paused[v->paused_count++] = p;
            continue;
        }
        v->slots[v->count] = p;
        v->clients[v->count] = read_client(p, i, s->now);
        s->working += v->clients[v->count++].working;
    }
}

/* Do two clients have one share together? Without a group the processes of a program do, else a
 * program would get more the more often it forks. */
static bool
share_with_each_other(const struct hed_sched_slot *a, const struct hed_sched_slot *b)
{
    if (a->group[0] || b->group[0])
        return strncmp(a->group, b->group, HED_SCHED_NAME) == 0;
    return GET(a->family) != 0 && GET(a->family) == GET(b->family);
}

/* A group or a family has one share: its working members have equal parts of it. */
static void
split_shares(struct view *v)
{
    for (size_t i = 0; i < v->count; i++) {
        uint32_t members = 1;

        for (size_t k = 0; k < v->count; k++)
            members +=
                k != i && v->clients[k].working && share_with_each_other(v->slots[i], v->slots[k]);
        /* Thousandths, so that parts do not lose much in rounding. */
        v->clients[i].weight = v->clients[i].weight * 1000 / members;
        if (v->clients[i].weight == 0)
            v->clients[i].weight = 1;
    }
}

/* ---- verdicts to gate words ------------------------------------------------------------------ */

/* Writes a gate word. True if it closes the gate. */
static bool
write_gate(struct hed_sched_slot *p, uint32_t gate)
{
    const uint32_t old = GET(p->gate);

    if (old != gate) {
        /* Sequentially consistent, both: either this load sees the waiter's count, or the waiter,
         * which counts itself first, sees this word. Else it would sleep and not be woken. */
        (void)atomic_exchange_explicit(&p->gate, gate, memory_order_seq_cst);
        if (atomic_load_explicit(&p->waiting, memory_order_seq_cst))
            (void)hed_futex_wake(&p->gate, INT_MAX);
    }
    return gate & HED_GATE_CLOSED;
}

/* Whether a user has asked that waiting calls go on. Answers yes once. */
static bool
take_release(struct hed_sched_slot *p)
{
    const bool asked = GET(p->release);

    SET(p->release, 0);
    return asked;
}

/* Lets so many calls pass a closed gate. Returns the NEWS bit of the new gate word, which tells
 * sleeping threads. */
static uint32_t
give_tickets(struct hed_sched_slot *p, uint32_t count)
{
    const uint32_t news = GET(p->gate) & HED_GATE_NEWS;

    if (!count)
        return news;
    /* Release: pairs with the acquire in take_ticket (gate.c). */
    atomic_fetch_add_explicit(&p->tickets, count, memory_order_release);
    return news ^ HED_GATE_NEWS;
}

static uint32_t
gate_of(struct hed_sched_slot *p, const struct hed_sched_client *c, const struct hed_scene *s,
        const struct hed_policy *policy, bool watched)
{
    enum hed_verdict verdict = c->verdict;
    bool released = take_release(p);
    uint32_t gate = 0;

    if (!c->working)
        return HED_GATE_IDLE | HED_GATE_WATCH;
    if (verdict == HED_VERDICT_CLOSED && c->waiting &&
        s->now >= c->waits_since + HED_SCHED_PATIENCE_NS) {
        verdict = HED_VERDICT_LIMIT;
    } else if (policy->releases_calls) {
        released = released || verdict == HED_VERDICT_OPEN;
        verdict = HED_VERDICT_CLOSED;
    }
    if (verdict == HED_VERDICT_CLOSED)
        gate |= HED_GATE_CLOSED | HED_GATE_WATCH;
    if (verdict == HED_VERDICT_LIMIT)
        gate |= HED_GATE_LIMIT | HED_GATE_WATCH;
    if (verdict == HED_VERDICT_OPEN)
        SET(p->tickets, 0); /* tickets that are left are not for calls that wait later */
    else
        gate |= give_tickets(p, released ? c->waiting : 0);
    if (s->working > 1 || policy->asked_on_sync || watched)
        gate |= HED_GATE_WATCH;
    return gate;
}

static void
apply_verdicts(struct hed_meet *m, struct view *v, struct hed_scene *s,
               const struct hed_policy *policy)
{
    struct hed_sched_common *c = hed_meet_common(m);
    const bool watched = hed_sched_is_watched(c, s->now);
    uint32_t held = 0;
    uint32_t watchman = 0;

    for (size_t i = 0; i < v->count; i++) {
        struct hed_sched_slot *p = v->slots[i];

        for (int j = 0; j < HED_POLICY_CLIENT_MEMORY; j++)
            SET(p->memory[j], v->clients[i].memory[j]);
        SET(p->fresh, 0);
        SET(p->until, v->clients[i].until);
        SET(p->spare, v->clients[i].spare);
        if (write_gate(p, gate_of(p, &v->clients[i], s, policy, watched))) {
            held++;
            if (!watchman && GET(p->waiting))
                watchman = v->clients[i].slot + 1;
        }
    }
    for (size_t i = 0; i < v->paused_count; i++) {
        struct hed_sched_slot *p = v->paused[i];
        const uint32_t count = take_release(p) ? count_waiting(p) : 0;

        (void)write_gate(p, HED_GATE_CLOSED | HED_GATE_WATCH | give_tickets(p, count) |
                                (GET(p->working) ? 0 : HED_GATE_IDLE));
    }
    for (int j = 0; j < HED_POLICY_MEMORY; j++)
        SET(c->memory[j], s->memory[j]);
    SET(c->held, held);
    SET(c->watchman, watchman);
    SET(c->next_look, s->next_look > s->now + SOONEST_NS ? s->next_look : s->now + SOONEST_NS);
}

/* ---- deciding -------------------------------------------------------------------------------- */

void
hed_sched_decide_locked(struct hed_meet *m, uint64_t now)
{
    struct hed_sched_common *c = hed_meet_common(m);
    const struct hed_policy *policy = hed_policy_at(GET(c->policy));
    struct view v;
    struct hed_scene s = {
        .now = now,
        .params = {.hold = GET(c->hold),
                   .cap = GET(c->cap),
                   .slice = GET(c->slice),
                   .batch_wait = GET(c->batch_wait),
                   .batch = GET(c->batch)},
        .clients = v.clients,
        .next_look = now + CENSUS_NS,
    };

    v.count = v.paused_count = 0;
    for (int j = 0; j < HED_POLICY_MEMORY; j++)
        s.memory[j] = GET(c->memory[j]);
    gather_clients(m, &v, &s);
    s.count = v.count;
    split_shares(&v);
    if (s.working > 1 || policy->asked_alone)
        policy->decide(&s);
    apply_verdicts(m, &v, &s, policy);
}

int
hed_sched_decide(struct hed_meet *m, uint64_t now)
{
    const int err = hed_meet_lock(m);

    if (err)
        return err;
    hed_sched_decide_locked(m, now);
    hed_meet_unlock(m);
    return 0;
}

bool
hed_sched_is_due(const struct hed_sched_common *c, uint64_t now)
{
    const uint64_t next = GET(c->next_look);

    return next <= now || next - now > FAR_NS;
}

int
hed_sched_decide_if_due(struct hed_meet *m, uint64_t now)
{
    struct hed_sched_common *c = hed_meet_common(m);
    const int err = hed_meet_lock(m);

    if (err)
        return err;
    if (hed_sched_is_due(c, now))
        hed_sched_decide_locked(m, now);
    hed_meet_unlock(m);
    return 0;
}
