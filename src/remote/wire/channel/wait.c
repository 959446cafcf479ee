/* The spin and the sleep of wait.h.
 *
 * Spinning pays off when the answer is nearly there. When cores are few, it takes the core from the
 * process that is to answer. So the spin grows when the change came during it, or so soon after it
 * that a longer one would have met it, and shrinks when it was in vain. Now and then the longest
 * spin is tried: two sides that both sleep would otherwise never learn that spinning pays. Yielding
 * (sched_yield) in between was tried and was no better: a thread that yields goes behind those that
 * compute, a thread that is woken goes in front of them.
 */
#include "remote/wire/channel/wait.h"

#include <sched.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/futex.h"
#include "base/number.h"
#include "base/relax.h"
#include "remote/wire/channel/channel.h"
#include "remote/wire/conn.h"

#define LOOKS 16       /* checks of the position between two of the clock */
#define FIRST_LOOKS 32 /* checks of the position before the first of the clock */
#define TRY_EVERY 16   /* waits between two trials of the longest spin */
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
hed_waiter_listen(struct hed_waiter *w, struct hed_doorbell *doorbell, bool naps)
{
    w->doorbell = doorbell;
    w->naps = naps;
    w->spin = w->spin_most = naps ? HED_WAIT_SPIN_MOST_NAPS : HED_WAIT_SPIN_MOST_DOORBELL;
    w->spin_least = naps ? HED_WAIT_SPIN_LEAST_NAPS : HED_WAIT_SPIN_LEAST_DOORBELL;
}

void
hed_waiter_expect(struct hed_waiter *w, const _Atomic uint32_t *beats, uint32_t silent_ms)
{
    w->beats = beats;
    w->silent_ms = silent_ms;
    w->park_ms = hed_min(w->park_ms, hed_max(silent_ms / 2, 1));
}

void
hed_wait_unpark(_Atomic uint32_t *parked, struct hed_doorbell *doorbell)
{
    if (doorbell) { /* relaxed: two rings instead of one do no harm */
        atomic_store_explicit(parked, HED_WAIT_AWAKE, memory_order_relaxed);
        hed_doorbell_ring(doorbell);
        return;
    }
    /* Relaxed: the word itself is the message. A waiter that does not sleep yet will not. */
    if (atomic_exchange_explicit(parked, HED_WAIT_AWAKE, memory_order_relaxed) != HED_WAIT_AWAKE)
        hed_futex_wake(parked, 1);
}

void
hed_wait_leave(_Atomic uint32_t *parked)
{
    /* Release: pairs with the exchange in wait_park(); the connection is found closed after it. */
    atomic_store_explicit(parked, HED_WAIT_LEFT, memory_order_release);
    hed_futex_wake(parked, 1);
}

/* Acquire: pairs with the store in hed_wait_tell(). */
static inline bool
has_changed(const _Atomic uint64_t *position, uint64_t seen)
{
    return atomic_load_explicit(position, memory_order_acquire) != seen;
}

static void
adapt_spin(struct hed_waiter *w, bool paid)
{
    uint32_t next = paid ? w->spin * 2 : w->spin / 2;

    if (next < GROWS_FROM)
        next = paid ? GROWS_FROM : 0;
    if (next < w->spin_least)
        next = w->spin_least;
    w->spin = next < w->spin_most ? next : w->spin_most;
}

/* Spins until the change is there (true), or until `end`. */
static bool
spin_until(const _Atomic uint64_t *position, uint64_t seen, uint64_t end)
{
    while (hed_now_ns() < end) {
        for (int i = 0; i < LOOKS; i++) {
            if (has_changed(position, seen))
                return true;
            hed_relax();
        }
    }
    return false;
}

static bool
spin_first(struct hed_waiter *w, const _Atomic uint64_t *position, uint64_t seen, uint64_t start)
{
    const uint32_t time = ++w->waits % TRY_EVERY == 0 ? w->spin_most : w->spin;

    return time > 0 && spin_until(position, seen, start + time);
}

/* As wait_park(), where the word is in a window: it is only stored and loaded. */
static bool
park_by_doorbell(struct hed_waiter *w, const _Atomic uint64_t *position, uint64_t seen,
                 _Atomic uint32_t *parked, enum hed_wait_parked how, int64_t ns)
{
    bool woken = true;

    hed_doorbell_store(parked, how); /* sequentially consistent, as there */
    if (atomic_load_explicit(position, memory_order_seq_cst) == seen)
        woken = hed_doorbell_wait(w->doorbell, ns);
    atomic_store_explicit(parked, HED_WAIT_AWAKE, memory_order_relaxed);

    const bool there = has_changed(position, seen);

    w->missed += ns == w->park_ms * INT64_C(1000000) && there && !woken;
    return there;
}

/* Sleeps once, for at most so long. True: the change is there. */
static bool
wait_park(struct hed_waiter *w, const _Atomic uint64_t *position, uint64_t seen,
          _Atomic uint32_t *parked, enum hed_wait_parked how, int64_t ns)
{
    uint32_t was = how;
    bool woken = true;

    if (w->doorbell)
        return park_by_doorbell(w, position, seen, parked, how, ns);

    /* Sequentially consistent, store before load: the other side is hed_wait_tell(). */
    const bool left = atomic_exchange_explicit(parked, was, memory_order_seq_cst) == HED_WAIT_LEFT;

    if (left) /* relaxed: only this thread reads it, before its next sleep */
        atomic_store_explicit(parked, HED_WAIT_LEFT, memory_order_relaxed);
    else if (atomic_load_explicit(position, memory_order_seq_cst) == seen)
        woken = hed_futex_wait(parked, was, ns);
    /* Relaxed: a waker that reads the old value wakes no thread, which is harmless. HED_WAIT_LEFT
     * stays. */
    atomic_compare_exchange_strong_explicit(parked, &was, HED_WAIT_AWAKE, memory_order_relaxed,
                                            memory_order_relaxed);

    const bool there = has_changed(position, seen);

    w->missed += ns == w->park_ms * INT64_C(1000000) && there && !woken;
    return there;
}

/* With few cores, waking the reader for every message would cost the writer more than the message.
 * So after a busy time the reader wakes up by itself for a while. */
static bool
take_naps(struct hed_waiter *w, const _Atomic uint64_t *position, uint64_t seen,
          _Atomic uint32_t *parked)
{
    for (int i = 0; i < HED_WAIT_NAPS; i++)
        if (wait_park(w, position, seen, parked, HED_WAIT_NAPPING, HED_WAIT_NAP))
            return true;
    return false;
}

static bool
is_peer_gone(const struct hed_waiter *w)
{
    /* Relaxed: it stays set. */
    return (w->doorbell && atomic_load_explicit(&w->doorbell->broken, memory_order_relaxed)) ||
           (w->conn && hed_conn_gone(w->conn));
}

struct listening { /* for signs of life, during one sleep */
    uint32_t beat;
    uint64_t silent_ns;
};

/* Has the peer given no sign of life for too long? A sleep counts for no longer than it was meant
 * to take: if this process was stopped, it does not know what it has missed. */
static bool
is_peer_silent(const struct hed_waiter *w, struct listening *l, uint64_t slept_ns, uint64_t most)
{
    /* Relaxed: only the change matters. */
    const uint32_t beat = w->beats ? atomic_load_explicit(w->beats, memory_order_relaxed) : 0;

    l->silent_ns = beat == l->beat ? l->silent_ns + hed_min(slept_ns, most) : 0;
    l->beat = beat;
    return w->beats && l->silent_ns >= w->silent_ms * UINT64_C(1000000);
}

static int
sleep_until_changed(struct hed_waiter *w, const _Atomic uint64_t *position, uint64_t seen,
                    _Atomic uint32_t *parked, uint64_t end)
{
    struct listening l = {0};

    for (;;) {
        const uint64_t now = hed_now_ns();
        int64_t ns = w->park_ms * INT64_C(1000000);

        if (end && now >= end)
            return HED_ETIME;
        if (end && end - now < (uint64_t)ns)
            ns = (int64_t)(end - now);
        if (wait_park(w, position, seen, parked, HED_WAIT_PARKED, ns))
            return 0;
        /* It was woken without a change, or by the clock: the peer may be gone. What the peer sent
         * before that is still read. */
        if (is_peer_gone(w) || is_peer_silent(w, &l, hed_now_ns() - now, (uint64_t)ns))
            return has_changed(position, seen) ? 0 : HED_EIO;
    }
}

/* Sleeps until the usual wait is about to end, and then spins. HED_ETIME if it took longer. */
static int
wait_as_usual(struct hed_waiter *w, const _Atomic uint64_t *position, uint64_t seen,
              _Atomic uint32_t *parked, uint64_t start, enum hed_wait_end *how)
{
    uint64_t from, to;

    if (!hed_wait_expects(w, &from, &to))
        return HED_ETIME;

    const int err = sleep_until_changed(w, position, seen, parked, start + from);

    *how = HED_WAIT_END_EARLY;
    if (err != HED_ETIME)
        return err;
    *how = HED_WAIT_END_SPUN;
    return spin_until(position, seen, start + to) ? 0 : HED_ETIME;
}

int
hed_wait_change(struct hed_waiter *w, const _Atomic uint64_t *position, uint64_t seen,
                _Atomic uint32_t *parked, int timeout_ms)
{
    if (timeout_ms == 0)
        return has_changed(position, seen) ? 0 : HED_ETIME;
    for (int i = 0; w->spin_most && i < FIRST_LOOKS; i++) {
        if (has_changed(position, seen))
            return 0;
        hed_relax();
    }

    const uint64_t start = hed_now_ns();
    const uint64_t end = timeout_ms < 0 ? 0 : start + (uint64_t)timeout_ms * UINT64_C(1000000);
    enum hed_wait_end how = HED_WAIT_END_LATE;
    int err = HED_ETIME;

    if (spin_first(w, position, seen, start)) {
        adapt_spin(w, true);
        return 0;
    }
    if (w->naps && timeout_ms < 0 && take_naps(w, position, seen, parked)) {
        adapt_spin(w, false);
        return 0;
    }
    if (timeout_ms < 0)
        err = wait_as_usual(w, position, seen, parked, start, &how);
    if (err == HED_ETIME) {
        how = HED_WAIT_END_LATE;
        err = sleep_until_changed(w, position, seen, parked, end);
    }

    const uint64_t took = hed_now_ns() - start;

    /* Half of it with few cores: the peer may then run on this core, waits until our spin ends, and
     * takes longer the longer we spin. */
    adapt_spin(w, err == 0 && took < (w->spin_least ? w->spin_most : w->spin_most / 2));
    if (err == 0)
        hed_wait_learn(w, took, how);
    return err;
}
