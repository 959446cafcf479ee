/* The gate: what a call goes through when its gate word is not 0. */
#include <pthread.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log.h"
#include "core/nvtx.h"
#include "layers/sched/sched.h"

#define NAP_NS (10 * HED_NS_PER_MS) /* after which a waiter looks around itself */
#define DEPUTY_NS (2 * HED_NS_PER_MS)
#define FAR_AHEAD 4 /* caps in flight, where nobody is to come soon */
#define DOUBT 8     /* part of the work in flight that it may take longer than is known */
#define GIVE_UP_NS (HED_SCHED_PATIENCE_NS + 2 * HED_NS_PER_S) /* others had time to let it go on */
#define STUCK_NS (20 * HED_NS_PER_MS) /* beyond the clock's word: it is not to be trusted */

/* Relaxed: single numbers, each right by itself; what must be seen together is read under the
 * meeting's lock. */
#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* Decides if it is time to. False: nobody can, because somebody who is stopped has the lock. */
static bool
look(struct hed_sched_gpu *g, uint64_t now)
{
    return !hed_sched_due(g->common, now) || hed_sched_look(g->meet, now) == 0;
}

/* One of those who wait looks when it is time, the others a little later: in case that one is dead
 * or stopped. */
static int64_t
nap(struct hed_sched_gpu *g, uint64_t ns)
{
    if (GET(g->common->watchman) != (uint32_t)hed_meet_index(g->meet) + 1)
        ns += DEPUTY_NS;
    return (int64_t)(ns < NAP_NS ? ns : NAP_NS);
}

/* One of those that were released by their number? */
static bool
take_ticket(struct hed_sched_place *p)
{
    /* Acquire: pairs with the release in sched/decide.c. */
    uint32_t n = atomic_load_explicit(&p->tickets, memory_order_acquire);

    while (n && !atomic_compare_exchange_weak_explicit(&p->tickets, &n, n - 1, memory_order_acquire,
                                                       memory_order_acquire))
        ;
    return n;
}

/* A thread that waits at the gate has work, and is to be woken when the gate changes. */
static void
begin_wait(struct hed_sched_place *p, uint64_t now)
{
    /* Before the count: who sees that must not see when somebody waited long ago. */
    if (GET(p->waiting) == 0)
        SET(p->waits_since, now);
    /* Sequentially consistent: with the wait that follows, against tell() in sched/decide.c. */
    atomic_fetch_add_explicit(&p->waiting, 1, memory_order_seq_cst);
}

static void
end_wait(struct hed_sched_place *p, uint64_t start, uint64_t now)
{
    atomic_fetch_add_explicit(&p->waited, now - start, memory_order_relaxed);
    SET(p->last_call, now);
    /* Others may wait yet, and somebody may all the time: patience is with those of whom none goes
     * on. */
    SET(p->waits_since, now);
    atomic_fetch_sub_explicit(&p->waiting, 1, memory_order_seq_cst);
}

/* Has a call that waits since then waited for so long that something is wrong, whatever those who
 * decide think of it? What was paused by hand does not count. */
static bool
gives_up(const struct hed_sched_gpu *g, uint64_t *since, uint64_t now)
{
    if (GET(g->common->paused) || GET(g->place->paused))
        *since = now;
    return now > *since + GIVE_UP_NS;
}

/* Waits until the gate is not closed. False: go on, whatever it says now: this call was released,
 * it has waited since `since` for too long, or nobody can decide. */
static bool
wait_open(struct hed_sched_gpu *g, uint64_t *since)
{
    struct hed_sched_place *p = g->place;
    const uint64_t start = hed_now_ns();
    uint32_t gate;
    bool ticket = false;

    begin_wait(p, start);

    bool able = hed_sched_announce(g->meet, start) == 0; /* one more waits: that may be news */
    bool late = false;

    hed_sched_range_turn(g);

    /* Acquire: pairs with the store in tell(). */
    while (able && !late &&
           (gate = atomic_load_explicit(&p->gate, memory_order_acquire)) & HED_GATE_CLOSED &&
           !(ticket = take_ticket(p))) {
        const uint64_t now = hed_now_ns();
        const uint64_t next = GET(g->common->next_look);

        late = gives_up(g, since, now);
        if (hed_sched_due(g->common, now))
            able = hed_sched_look(g->meet, now) == 0;
        else
            (void)hed_futex_wait(&p->gate, gate, nap(g, next - now));
    }

    hed_nvtx_pop();

    end_wait(p, start, hed_now_ns());
    if (!able && !atomic_exchange_explicit(&g->warned, true, memory_order_relaxed))
        hed_warn(SCHED, "a process that is stopped holds the lock: going on without it");
    return able && !late && !ticket;
}

/* How long a call has to wait because of what is in flight, before it asks again; 0: it goes on.
 * `waits`: it has been waiting. Who has reached the cap waits until half of it is left, so that it
 * sleeps once for several calls. */
static uint64_t
too_early(const struct hed_sched_gpu *g, uint64_t takes, uint64_t now, bool waits)
{
    const uint64_t ends = GET(g->place->ends);
    const uint64_t until = GET(g->place->until);
    uint64_t cap = hed_sched_cap(g);

    /* Somebody is expected, and until then the GPU is ours. */
    if (until && takes <= GET(g->place->spare)) {
        const uint64_t load = (ends > now ? ends - now : 0) + takes;

        if (now + load + load / DOUBT > until)
            return HED_NS_PER_MS;
        cap *= FAR_AHEAD;
    }
    return ends > now + (waits ? cap / 2 : cap) ? ends - now - cap / 2 : 0;
}

/* Waits until little enough is in flight. True: the gate has closed meanwhile. */
static bool
wait_below_cap(struct hed_layer *self, struct hed_turn *t, uint64_t *since)
{
    struct hed_sched *s = self->state;
    struct hed_sched_gpu *g = t->gpu;
    struct hed_sched_place *p = g->place;
    const uint64_t start = hed_now_ns();
    const uint64_t takes = GET(p->until) ? hed_pace_takes(s, t) : 0;
    uint64_t now = start;
    uint64_t latest = 0;
    uint32_t gate;

    while ((gate = GET(p->gate)) & HED_GATE_LIMIT) {
        hed_pace_poll(self, g, now);

        const uint64_t rest = too_early(g, takes, now, latest != 0);

        if (rest == 0 || take_ticket(p))
            break;
        if (!latest) {
            latest = hed_pace_ends(s, g, now) + STUCK_NS;
            begin_wait(p, now);
            hed_sched_range_cap();
        }
        /* Work that waits for something that only this thread may be about to do would hold it
         * for ever. */
        if (now > latest || gives_up(g, since, now)) {
            hed_lock(&s->lock);
            hed_pace_quiet_locked(s, g, now);
            hed_unlock(&s->lock);
            break;
        }
        (void)hed_futex_wait(&p->gate, gate,
                             (int64_t)(rest < HED_NS_PER_MS ? rest : HED_NS_PER_MS));
        now = hed_now_ns();
        (void)look(g, now);
    }
    if (latest) {
        hed_nvtx_pop();
        end_wait(p, start, now);
    }
    return gate & HED_GATE_CLOSED;
}

static void
pass(struct hed_layer *self, struct hed_turn *t)
{
    struct hed_sched_gpu *g = t->gpu;
    struct hed_sched_place *p = g->place;
    const uint64_t now = hed_now_ns();
    uint64_t since = now;
    uint32_t gate = GET(p->gate);

    if ((gate & HED_GATE_IDLE) && hed_sched_announce(g->meet, now) != 0)
        return;
    SET(p->last_call, now);
    if (!look(g, now))
        return;
    /* Who does not have to wait takes one as well: it may have been counted. */
    if (!take_ticket(p))
        do
            if ((GET(p->gate) & HED_GATE_CLOSED) && !wait_open(g, &since))
                break;
        while (wait_below_cap(self, t, &since));
    t->watch = GET(p->gate) & HED_GATE_WATCH;
}

void
hed_sched_enter(struct hed_layer *self, struct hed_turn *t, enum hed_cuda_call id, const void *args)
{
    struct hed_sched *s = self->state;
    const struct hed_call_info *info = &hed_cuda_info[id];
    uint64_t stream = 0;
    const bool on_stream = hed_call_stream(info, args, &stream);

    *t = (struct hed_turn){
        .id = id,
        .stream = (CUstream)(uintptr_t)stream,
        .ptds = hed_call_ptds(info, args),
        .blocks = info->flags & HED_CALL_BLOCKS,
    };
    if (GET(s->keep_off) && on_stream && hed_sched_captures(self->next, t->stream, t->ptds))
        return;
    t->gpu = hed_sched_here(self);
    if (!t->gpu)
        return;
    hed_sched_count(t->gpu->place);
    hed_sched_describe(t, id, args);
    pass(self, t);
    if (t->blocks)
        atomic_fetch_add_explicit(&t->gpu->place->syncing, 1, memory_order_relaxed);
    if (t->watch && !t->blocks)
        hed_pace_begin(self, t);
}

void
hed_sched_leave(struct hed_layer *self, struct hed_turn *t, CUresult result)
{
    struct hed_sched *s = self->state;
    struct hed_sched_gpu *g = t->gpu;

    if (!g)
        return;

    const uint64_t now = hed_now_ns();

    SET(g->place->last_call, now);
    if (t->watch && result == CUDA_SUCCESS)
        hed_pace_end(self, t, now);
    else
        hed_pace_cancel(s, t);
    if (!t->blocks)
        return;
    atomic_fetch_sub_explicit(&g->place->syncing, 1, memory_order_relaxed);
    if (t->watch && result == CUDA_SUCCESS) {
        hed_lock(&s->lock);

        const uint64_t one = g->pace.stream;

        hed_unlock(&s->lock);
        if (one == hed_stream_key(t->stream, t->ptds, (uint64_t)pthread_self()))
            hed_sched_quiet(s, g, now);
    }
}
