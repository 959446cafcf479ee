/* Which program leaves device memory. See swap.h. */
#include "share/sched/swap.h"

#include "base/clock.h"
#include "share/sched/gate.h"

/* Relaxed: see share.c. */
#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

#define NEVER UINT32_MAX
#define RANKS 4 /* of each priority */
#define LAST (RANKS * (HED_PRIORITY_HIGH + 1))

void
hed_sched_tried_add(struct hed_sched_tried *t, int32_t pid)
{
    if (t->count < HED_SCHED_SLOTS)
        t->pids[t->count++] = pid;
}

static bool
was_tried(const struct hed_sched_tried *t, int32_t pid)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (t->pids[i] == pid)
            return true;
    return t->count == HED_SCHED_SLOTS;
}

/* The lower, the earlier a client is sent out. */
static uint32_t
rank_slot(const struct hed_sched_slot *p, uint32_t below)
{
    const uint32_t priority = GET(p->priority);

    if (!GET(p->swap) || priority >= below)
        return NEVER;
    /* A program that is out may be about to come back, with memory that it has taken already. */
    return (GET(p->out) ? LAST : priority * RANKS) + (GET(p->paused) ? 0 : GET(p->working) ? 2 : 1);
}

/* The rank of a process: that of its most important client on this GPU. */
static uint32_t
rank_process(struct hed_meet *m, int32_t pid, uint32_t below)
{
    uint32_t rank = 0;

    for (uint32_t i = 0; i < HED_SCHED_SLOTS; i++) {
        const struct hed_sched_slot *p = hed_meet_slot(m, i);

        if (GET(p->present) && GET(p->pid) == pid) {
            const uint32_t one = rank_slot(p, below);

            rank = one > rank ? one : rank;
        }
    }
    return rank;
}

int32_t
hed_sched_pick_victim(struct hed_meet *m, const struct hed_sched_tried *tried)
{
    const struct hed_sched_slot *own = hed_meet_mine(m);
    const uint32_t below = own ? GET(own->priority) : 0;
    uint32_t best = NEVER;
    int32_t victim = 0;

    for (uint32_t i = 0; own && i < HED_SCHED_SLOTS; i++) {
        const struct hed_sched_slot *p = hed_meet_slot(m, i);
        const int32_t pid = GET(p->pid);

        if (!GET(p->present) || pid <= 0 || pid == GET(own->pid) || was_tried(tried, pid))
            continue;

        const uint32_t rank = rank_process(m, pid, below);

        if (rank < best && hed_meet_taken(m, i, NULL)) {
            best = rank;
            victim = pid;
        }
    }
    return victim;
}

/* Others read single numbers at any time: each is right by itself. */
static void
set_slot_out(struct hed_sched_slot *p, bool out, uint64_t copy_ns, uint64_t now)
{
    SET(p->copy_ns, GET(p->copy_ns) + copy_ns);
    if (out && !GET(p->out)) {
        SET(p->out_since, now);
        SET(p->outs, GET(p->outs) + 1);
    } else if (!out && GET(p->out)) {
        SET(p->out_ns, GET(p->out_ns) + now - GET(p->out_since));
    }
    SET(p->out, out);
}

void
hed_sched_set_out(struct hed_sched *s, bool out, uint64_t copy_ns)
{
    /* Acquire: as in hed_gate_open. */
    const uint32_t count = atomic_load_explicit(&s->count, memory_order_acquire);
    const uint64_t now = hed_now_ns();

    for (uint32_t i = 0; i < count; i++) {
        if (!s->gates[i]->meet)
            continue;
        set_slot_out(s->gates[i]->slot, out, copy_ns, now);
        (void)hed_sched_decide(s->gates[i]->meet, now);
    }
}

uint64_t
hed_sched_out_ns(const struct hed_sched_slot *p, uint64_t now)
{
    const uint64_t since = GET(p->out_since);

    return GET(p->out_ns) + (GET(p->out) && since < now ? now - since : 0);
}
