/* The gate: what a call goes through when its gate word is not 0. */
#include "share/sched/gate.h"

#include "base/futex.h"
#include "base/log.h"

#define NAP_NS (10 * HED_NS_PER_MS) /* after which a waiting thread looks around by itself */
#define DEPUTY_NS (2 * HED_NS_PER_MS)
#define FAR_AHEAD 4 /* caps that may be in flight while no periodic client is due soon */
#define DOUBT 8     /* work in flight may take longer than estimated by one such part */
#define GIVE_UP_NS \
    (HED_SCHED_PATIENCE_NS + 2 * HED_NS_PER_S) /* after any decision would have helped */
#define SHOW_NS (HED_SCHED_MARGIN_NS / 8)      /* how old a client's last call may look to others */
#define STUCK_NS (20 * HED_NS_PER_MS) /* later than that, the clock's estimate is given up */

#define GUESS_KERNEL_NS 50000
#define GUESS_COPY_NS 5000
#define BYTES_PER_NS 16

/* Relaxed: single numbers, each right by itself; numbers that belong together are read under the
 * meeting's lock. */
#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* ---- work ------------------------------------------------------------------------------------ */

/* Works on one object whose sizes have the same number of digits in binary are of one kind. */
static uint64_t
kind_of(uint64_t object, uint64_t size)
{
    const uint64_t digits = size ? 64 - (unsigned)__builtin_clzll(size) : 0;
    const uint64_t key = (object ^ digits << 56) * UINT64_C(0x9e3779b97f4a7c15);

    return key ^ key >> 32 ? key ^ key >> 32 : 1;
}

void
hed_gpu_work_set_launch(struct hed_gpu_work *w, uint64_t function, uint64_t blocks)
{
    w->kind = kind_of(function, blocks);
    w->guess = GUESS_KERNEL_NS;
}

void
hed_gpu_work_set_copy(struct hed_gpu_work *w, uint32_t call, uint64_t bytes)
{
    w->kind = kind_of(call, bytes);
    w->guess = GUESS_COPY_NS + bytes / BYTES_PER_NS;
}

/* ---- waiting at a closed gate ---------------------------------------------------------------- */

/* Decides if it is time to. False: nobody can, because a process that is stopped has the lock. */
static bool
decide_if_due(struct hed_gate *g, uint64_t now)
{
    return !hed_sched_is_due(g->common, now) || hed_sched_decide_if_due(g->meet, now) == 0;
}

/* How long a waiting thread sleeps. The watchman looks when it is time; the others a little later,
 * in case it is dead or stopped. */
static int64_t
nap_of(struct hed_gate *g, uint64_t ns)
{
    if (GET(g->common->watchman) != (uint32_t)hed_meet_index(g->meet) + 1)
        ns += DEPUTY_NS;
    return (int64_t)(ns < NAP_NS ? ns : NAP_NS);
}

/* Takes a ticket, if the last release gave one to this call. */
static bool
take_ticket(struct hed_sched_slot *p)
{
    /* Acquire: pairs with the release in give_tickets (decide.c). */
    uint32_t n = atomic_load_explicit(&p->tickets, memory_order_acquire);

    while (n && !atomic_compare_exchange_weak_explicit(&p->tickets, &n, n - 1, memory_order_acquire,
                                                       memory_order_acquire))
        ;
    return n;
}

/* Shows that a thread waits: its client has work, and must be woken when the gate changes. */
static void
begin_wait(struct hed_sched_slot *p, uint64_t now)
{
    /* Before the count: a process that sees the count must not see an old time. */
    if (GET(p->waiting) == 0)
        SET(p->waits_since, now);
    /* Sequentially consistent, with the wait that follows, against write_gate() in decide.c. */
    atomic_fetch_add_explicit(&p->waiting, 1, memory_order_seq_cst);
}

static void
count_wait(struct hed_sched_slot *p, uint64_t ns)
{
    const uint64_t us = ns / 1000;
    const unsigned digits = us ? 64 - (unsigned)__builtin_clzll(us) : 0;
    const unsigned i = digits < HED_SCHED_WAITS ? digits : HED_SCHED_WAITS - 1;

    atomic_fetch_add_explicit(&p->waits[i], 1, memory_order_relaxed);
}

static void
end_wait(struct hed_sched_slot *p, uint64_t start, uint64_t now)
{
    atomic_fetch_add_explicit(&p->waited, now - start, memory_order_relaxed);
    count_wait(p, now - start);
    SET(p->last_call, now);
    /* Other threads may still wait, and there may always be one. Patience is for clients none of
     * whose calls go on. */
    SET(p->waits_since, now);
    atomic_fetch_sub_explicit(&p->waiting, 1, memory_order_seq_cst);
}

/* Whether a call has waited since then for so long that something is wrong, whatever shared memory
 * says. The time that a user has paused it does not count. */
static bool
has_waited_too_long(const struct hed_gate *g, uint64_t *since, uint64_t now)
{
    if (GET(g->common->paused) || GET(g->slot->paused))
        *since = now;
    return now > *since + GIVE_UP_NS;
}

/* Waits until the gate is not closed. False: the call goes on whatever the gate says, because it
 * was released, has waited for too long, or nobody can decide. */
static bool
wait_until_open(struct hed_gate *g, uint64_t *since)
{
    struct hed_sched_slot *p = g->slot;
    const uint64_t start = hed_now_ns();
    uint32_t gate;
    bool ticket = false;

    begin_wait(p, start);

    /* One more thread waits, which may change the decision. */
    bool able = hed_sched_announce(g->meet, start) == 0;
    bool late = false;

    hed_gate_push_closed(g);

    /* Acquire: pairs with the store in write_gate(). Sequentially consistent: see
     * hed_sched_open_gates(). */
    while (able && !late && !atomic_load_explicit(&g->ending, memory_order_seq_cst) &&
           (gate = atomic_load_explicit(&p->gate, memory_order_acquire)) & HED_GATE_CLOSED &&
           !(ticket = take_ticket(p))) {
        const uint64_t now = hed_now_ns();
        const uint64_t next = GET(g->common->next_look);

        late = has_waited_too_long(g, since, now);
        if (hed_sched_is_due(g->common, now))
            able = hed_sched_decide_if_due(g->meet, now) == 0;
        else
            (void)hed_futex_wait(&p->gate, gate, nap_of(g, next - now));
    }

    g->sched->driver->pop_range();

    end_wait(p, start, hed_now_ns());
    if (!able && !atomic_exchange_explicit(&g->warned, true, memory_order_relaxed))
        hed_warn(SCHED, "a stopped process holds the lock: calls go on without waiting");
    return able && !late && !ticket && !atomic_load_explicit(&g->ending, memory_order_relaxed);
}

/* ---- waiting below the cap ------------------------------------------------------------------- */

/* How long a call must wait for the work in flight before it asks again; 0: it goes on. `waits`: it
 * has waited already. A call that has reached the cap waits until half of it is left, so that the
 * thread sleeps once for several calls. */
static uint64_t
time_until_below_cap(const struct hed_gate *g, uint64_t takes, uint64_t now, bool waits)
{
    const uint64_t ends = GET(g->pace.ends);
    const uint64_t until = GET(g->slot->until);
    uint64_t cap = hed_gate_cap(g);

    /* A periodic client is expected. Until then the GPU is free for this one. */
    if (until && takes <= GET(g->slot->spare)) {
        const uint64_t load = (ends > now ? ends - now : 0) + takes;

        if (now + load + load / DOUBT > until)
            return HED_NS_PER_MS;
        cap *= FAR_AHEAD;
    }
    return ends > now + (waits ? cap / 2 : cap) ? ends - now - cap / 2 : 0;
}

/* Waits until little enough is in flight. True: the gate has closed in the meantime. */
static bool
wait_below_cap(struct hed_gate_pass *pass, uint64_t *since, uint64_t start)
{
    struct hed_gate *g = pass->gate;
    struct hed_sched *s = g->sched;
    struct hed_sched_slot *p = g->slot;
    const uint64_t takes = GET(p->until) ? hed_sched_kind_takes(s, &pass->work) : 0;
    uint64_t now = start;
    uint64_t latest = 0;
    uint32_t gate;

    while ((gate = GET(p->gate)) & HED_GATE_LIMIT) {
        hed_pace_poll(g, now);

        const uint64_t rest = time_until_below_cap(g, takes, now, latest != 0);

        if (rest == 0 || take_ticket(p))
            break;
        if (!latest) {
            latest = hed_pace_ends(g, now) + STUCK_NS;
            begin_wait(p, now);
            hed_gate_push_limited(g);
        }
        /* The work may wait for something that only this thread would do: never hold it for
         * ever. */
        if (now > latest || has_waited_too_long(g, since, now)) {
            hed_lock(&s->lock);
            hed_pace_rest_locked(g, now);
            hed_unlock(&s->lock);
            break;
        }
        (void)hed_futex_wait(&p->gate, gate,
                             (int64_t)(rest < HED_NS_PER_MS ? rest : HED_NS_PER_MS));
        now = hed_now_ns();
        (void)decide_if_due(g, now);
    }
    if (latest) {
        s->driver->pop_range();
        end_wait(p, start, now);
    }
    return gate & HED_GATE_CLOSED;
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* Others see that the client works. All its threads share that word: write it only now and then. */
static void
show_call(struct hed_sched_slot *p, uint64_t now)
{
    if (now > GET(p->last_call) + SHOW_NS)
        SET(p->last_call, now);
}

static void
pass_gate(struct hed_gate_pass *pass, uint64_t now)
{
    struct hed_gate *g = pass->gate;
    struct hed_sched_slot *p = g->slot;
    uint64_t since = now;
    const uint32_t gate = GET(p->gate);

    if ((gate & HED_GATE_IDLE) && hed_sched_announce(g->meet, now) != 0)
        return;
    show_call(p, now);
    if (!decide_if_due(g, now))
        return;
    /* A call that need not wait also takes a ticket: the release may have counted it. */
    if (!take_ticket(p))
        do
            if (GET(p->gate) & HED_GATE_CLOSED) {
                if (!wait_until_open(g, &since))
                    break;
                now = hed_now_ns();
            }
        while (wait_below_cap(pass, &since, now));
    pass->watched = GET(p->gate) & HED_GATE_WATCH;
}

/* The gate of a call that puts work on a GPU. With one gate, no need to ask the driver: a thread
 * without a context goes through it as well, and its call fails afterwards. */
static struct hed_gate *
gate_of_call(struct hed_sched *s)
{
    /* Acquire: as in hed_gate_open. */
    if (atomic_load_explicit(&s->only, memory_order_acquire))
        return s->gates[0]->meet ? s->gates[0] : NULL;
    return hed_gate_current(s);
}

void
hed_gate_enter(struct hed_sched *s, struct hed_gate_pass *pass, const struct hed_gpu_work *work)
{
    *pass = (struct hed_gate_pass){.work = *work, .takes = work->guess};
    if (GET(s->forbidden) && work->on_stream &&
        s->driver->is_capturing(s->below, work->stream, work->ptds))
        return;
    pass->gate = gate_of_call(s);
    if (!pass->gate)
        return;

    const uint64_t now = hed_now_ns();

    hed_sched_count(pass->gate->slot);
    pass_gate(pass, now);
    if (work->blocks)
        atomic_fetch_add_explicit(&pass->gate->slot->syncing, 1, memory_order_relaxed);
    else if (pass->watched)
        hed_pace_begin(pass, now);
}

void
hed_gate_leave(struct hed_sched *s, struct hed_gate_pass *pass, bool ok)
{
    struct hed_gate *g = pass->gate;

    if (!g)
        return;
    if (pass->watched && ok)
        hed_pace_end(pass);
    else
        hed_pace_cancel(pass);
    if (!pass->work.blocks)
        return;

    const uint64_t now = hed_now_ns();

    SET(g->slot->last_call, now);
    atomic_fetch_sub_explicit(&g->slot->syncing, 1, memory_order_relaxed);
    if (pass->watched && ok && GET(g->pace.stream) == pass->work.stream_key)
        hed_gate_rest(g, now);
}
