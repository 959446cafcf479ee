/* The spin and the sleep of wait.h.
 *
 * Spinning pays when the answer is nearly there, and takes the core from whoever is to answer when
 * cores are few. So the spin grows when the change came while spinning, or so soon after going to
 * sleep that it would have; it shrinks when it was in vain. Now and then the longest is tried, or
 * two who have taken to sleeping would never learn better. Giving way (sched_yield) in between was
 * tried and was no better: who yields goes behind those who compute, who is woken before them. */
#include "wire/channel/wait.h"

#include <sched.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/futex.h"
#include "base/relax.h"
#include "wire/channel/channel.h"
#include "wire/conn.h"

#define LOOKS 16       /* between looks at the clock */
#define FIRST_LOOKS 32 /* before the clock is looked at at all */
#define TRY_EVERY 16   /* waits; how often the longest spin is tried */
#define GROWS_FROM 500 /* ns */
#define PARK_MS (HED_CHANNEL_LOST_MS / 2)

void
hed_waiter_init(struct hed_waiter *w, struct hed_conn *conn)
{
    cpu_set_t set;
    int cpus = 2;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cpus = CPU_COUNT(&set);
    *w = (struct hed_waiter){.conn = conn, .park_ms = PARK_MS};
    w->few = cpus <= 2;
    if (cpus == 2) {
        w->spin_most = HED_WAIT_SPIN_MOST_OF_TWO;
    } else if (cpus > 2) {
        w->spin_most = HED_WAIT_SPIN_MOST;
        w->spin_least = HED_WAIT_SPIN_LEAST;
    }
    w->spin = w->spin_most;
}

void
hed_wait_unpark(_Atomic uint32_t *parked)
{
    /* Relaxed: the word itself is all that is told. A waiter that has not slept yet does not. */
    if (atomic_exchange_explicit(parked, HED_WAIT_AWAKE, memory_order_relaxed) != HED_WAIT_AWAKE)
        hed_futex_wake(parked, 1);
}

void
hed_wait_leave(_Atomic uint32_t *parked)
{
    /* Release: pairs with the exchange in park(), after which the connection is found closed. */
    atomic_store_explicit(parked, HED_WAIT_LEFT, memory_order_release);
    hed_futex_wake(parked, 1);
}

/* Acquire: pairs with the store in hed_wait_tell(). */
static inline bool
changed(const _Atomic uint64_t *position, uint64_t seen)
{
    return atomic_load_explicit(position, memory_order_acquire) != seen;
}

static void
adapt(struct hed_waiter *w, bool paid)
{
    uint32_t next = paid ? w->spin * 2 : w->spin / 2;

    if (next < GROWS_FROM)
        next = paid ? GROWS_FROM : 0;
    if (next < w->spin_least)
        next = w->spin_least;
    w->spin = next < w->spin_most ? next : w->spin_most;
}

/* Spins until the change is there (true) or the time for it is used up. */
static bool
spin(struct hed_waiter *w, const _Atomic uint64_t *position, uint64_t seen, uint64_t start)
{
    const uint32_t time = ++w->waits % TRY_EVERY == 0 ? w->spin_most : w->spin;

    while (time > 0 && hed_now_ns() - start < time) {
        for (int i = 0; i < LOOKS; i++) {
            if (changed(position, seen))
                return true;
            hed_relax();
        }
    }
    return false;
}

/* Sleeps once, at most so long. True: the change is there. */
static bool
park(struct hed_waiter *w, const _Atomic uint64_t *position, uint64_t seen,
     _Atomic uint32_t *parked, enum hed_wait_parked how, int64_t ns)
{
    uint32_t was = how;
    bool woken = true;

    /* Sequentially consistent, store before load: the other side is hed_wait_tell(). */
    const bool left = atomic_exchange_explicit(parked, was, memory_order_seq_cst) == HED_WAIT_LEFT;

    if (left) /* relaxed: nobody but this thread will look; the next sleep is to know it, too */
        atomic_store_explicit(parked, HED_WAIT_LEFT, memory_order_relaxed);
    else if (atomic_load_explicit(position, memory_order_seq_cst) == seen)
        woken = hed_futex_wait(parked, was, ns);
    /* Relaxed: a waker that reads the old value wakes nobody, which is harmless. That somebody left
     * stays there. */
    atomic_compare_exchange_strong_explicit(parked, &was, HED_WAIT_AWAKE, memory_order_relaxed,
                                            memory_order_relaxed);

    const bool there = changed(position, seen);

    w->missed += how == HED_WAIT_PARKED && there && !woken;
    return there;
}

/* Where cores are few, being woken for every message would cost the writer more than the message:
 * after a busy time the reader looks by itself for a while. */
static bool
nap(struct hed_waiter *w, const _Atomic uint64_t *position, uint64_t seen, _Atomic uint32_t *parked)
{
    for (int i = 0; i < HED_WAIT_NAPS; i++)
        if (park(w, position, seen, parked, HED_WAIT_NAPPING, HED_WAIT_NAP))
            return true;
    return false;
}

static int
sleep_until_changed(struct hed_waiter *w, const _Atomic uint64_t *position, uint64_t seen,
                    _Atomic uint32_t *parked, uint64_t end)
{
    for (;;) {
        const uint64_t now = hed_now_ns();
        int64_t ns = w->park_ms * INT64_C(1000000);

        if (end && now >= end)
            return HED_ETIME;
        if (end && end - now < (uint64_t)ns)
            ns = (int64_t)(end - now);
        if (park(w, position, seen, parked, HED_WAIT_PARKED, ns))
            return 0;
        /* Woken for nothing, or not at all: the peer may be gone. What it said before is heard. */
        if (w->conn && hed_conn_gone(w->conn))
            return changed(position, seen) ? 0 : HED_EIO;
    }
}

int
hed_wait_change(struct hed_waiter *w, const _Atomic uint64_t *position, uint64_t seen,
                _Atomic uint32_t *parked, int timeout_ms)
{
    if (timeout_ms == 0)
        return changed(position, seen) ? 0 : HED_ETIME;
    for (int i = 0; w->spin_most && i < FIRST_LOOKS; i++) {
        if (changed(position, seen))
            return 0;
        hed_relax();
    }

    const uint64_t start = hed_now_ns();
    const uint64_t end = timeout_ms < 0 ? 0 : start + (uint64_t)timeout_ms * UINT64_C(1000000);

    if (spin(w, position, seen, start)) {
        adapt(w, true);
        return 0;
    }

    if (w->naps && timeout_ms < 0 && nap(w, position, seen, parked)) {
        adapt(w, false);
        return 0;
    }

    const int r = sleep_until_changed(w, position, seen, parked, end);

    /* Half of it where cores are few: there the peer may be on this one, waits for our spin to end,
     * and takes the longer the longer we spin. */
    adapt(w, r == 0 && hed_now_ns() - start < (w->spin_least ? w->spin_most : w->spin_most / 2));
    return r;
}
