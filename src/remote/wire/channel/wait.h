/* Waiting for a number in shared memory to change: a bounded spin, then sleep.
 *
 *   waiter                                    waker
 *   spin while *position == seen              *position = new     (sequentially consistent)
 *   *parked = 1                (seq. cst.)    if (*parked)        (sequentially consistent)
 *   if *position == seen       (seq. cst.)        *parked = 0, wake
 *       sleep while *parked == 1
 *
 * A sleeper on an idle core takes tens of microseconds to wake up. A program that waits for the
 * same work again and again, such as a training step, would pay that each time. So a client, which
 * waits for answers, remembers how long its last long wait took, sleeps a little less than that,
 * and then spins again:
 *
 *   0                        usual - margin    usual    usual + margin
 *   ├── spin ──┤ sleep ·············├───────── spin ─────────┤ sleep ···
 *
 * In a guest all sleepers may be woken so late, by a doorbell or by the clock, that one would never
 * find out how long its wait really takes. So it expects less and less, until the change comes
 * while it spins.
 *
 * A side that leaves for good writes HED_WAIT_LEFT into the word instead. A waiter that finds it
 * there asks whether the peer is gone before it sleeps.
 *
 * Between a guest and its host a waiter does not sleep on the word, but listens to its connection
 * (doorbell.h). That takes much longer than a futex, so such a waiter spins longer, however few
 * cores it sees: its peer does not run on them. A nap ends sooner than a ring would arrive, so
 * nobody rings for a napping side.
 *
 * Invariants:
 * 1. Either the waiter sees the new position or the waker sees that it is parked: each stores
 *    first and loads after it, and all four are sequentially consistent.
 * 2. Neither side trusts the words: whatever is in them, a wait ends when the connection is gone,
 *    and costs the other side nothing but time.
 * 3. How long a waiter spins follows from what paid off before. The first spin never exceeds
 *    HED_WAIT_SPIN_MOST, the second one a quarter of the usual wait, or two margins.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "remote/wire/channel/doorbell.h"

struct hed_conn;

#define HED_WAIT_SPIN_MOST 50000       /* ns; where there are more than two cores */
#define HED_WAIT_SPIN_LEAST 10000      /* ns; a kernel and the wait for it take about that */
#define HED_WAIT_SPIN_MOST_OF_TWO 3000 /* ns; with two cores, others need one. There is no least. */
/* ns; with a doorbell, whose ring takes up to a millisecond there and back. A client spins as long
 * as that; a worker naps instead. */
#define HED_WAIT_SPIN_LEAST_DOORBELL 200000
#define HED_WAIT_SPIN_MOST_DOORBELL 1000000
#define HED_WAIT_SPIN_LEAST_NAPS 20000
#define HED_WAIT_SPIN_MOST_NAPS 100000
#define HED_WAIT_NAP 40000 /* ns */
#define HED_WAIT_NAPS 50   /* before a deep sleep */

/* The second spin begins and ends an eighth of the usual wait before and after its end, within
 * these limits. */
#define HED_WAIT_MARGIN_LEAST 100000            /* ns; a timer and a sleeper may be that late */
#define HED_WAIT_MARGIN_MOST 1000000            /* ns */
#define HED_WAIT_USUAL_MOST UINT64_C(100000000) /* ns; longer waits have no second spin */

struct hed_waiter {        /* one side of one direction; used by one thread at a time */
    struct hed_conn *conn; /* asked whether the peer is gone; NULL for a peer that never goes */
    struct hed_doorbell *doorbell; /* what wakes this side; NULL: a futex */
    uint32_t spin;                 /* ns; how long the next wait spins */
    uint32_t spin_least;           /* ns */
    uint32_t spin_most;            /* ns; 0 if there is only one core */
    uint32_t waits;                /* that took longer than a few checks */
    uint64_t usual;                /* ns; the last wait that outlasted its spin; 0 if none yet */
    bool few;                      /* there are only one or two cores */
    bool expects;                  /* spins again when its usual wait is about to end */
    bool naps;                     /* takes short sleeps first, from which it need not be woken */
    uint32_t park_ms; /* the longest sleep, after which it checks whether the peer is gone */
    const _Atomic uint32_t *beats; /* the peer increases it from time to time; NULL: it need not */
    uint32_t silent_ms;            /* how long it may stay the same */
    uint32_t missed;               /* for tests: sleeps that missed a change until the clock */
};

void hed_waiter_init(struct hed_waiter *w, struct hed_conn *conn);
/* Listens to a doorbell from now on. A side that naps spins less: its naps end by themselves. */
void hed_waiter_listen(struct hed_waiter *w, struct hed_doorbell *doorbell, bool naps);

/* From now on, a peer whose count has not changed for so long, while this side waited, is gone. */
void hed_waiter_expect(struct hed_waiter *w, const _Atomic uint32_t *beats, uint32_t silent_ms);

/* Waits until *position is no longer `seen`, its value when the caller last looked. A negative
 * timeout_ms means as long as the peer lives. Returns 0, HED_ETIME, or HED_EIO when the peer is
 * gone. */
int hed_wait_change(struct hed_waiter *w, const _Atomic uint64_t *position, uint64_t seen,
                    _Atomic uint32_t *parked, int timeout_ms);

static inline uint64_t
hed_wait_margin(uint64_t usual)
{
    const uint64_t margin = usual / 8;

    return margin < HED_WAIT_MARGIN_LEAST  ? HED_WAIT_MARGIN_LEAST
           : margin > HED_WAIT_MARGIN_MOST ? HED_WAIT_MARGIN_MOST
                                           : margin;
}

/* How a wait ended that outlasted its first spin: in the sleep before the second one, in it, or in
 * the sleep after it. */
enum hed_wait_end { HED_WAIT_END_EARLY, HED_WAIT_END_SPUN, HED_WAIT_END_LATE };

/* Notes how long a wait took. */
static inline void
hed_wait_learn(struct hed_waiter *w, uint64_t took, enum hed_wait_end how)
{
    uint64_t less = 0;

    if (w->doorbell && how != HED_WAIT_END_LATE && w->usual < took)
        took = w->usual;
    if (w->doorbell && how != HED_WAIT_END_SPUN)
        less = hed_wait_margin(took) / 2;
    w->usual = took > less ? took - less : 1;
}

/* When to spin for the second time, in ns after the wait began. False if not at all. */
static inline bool
hed_wait_expects(const struct hed_waiter *w, uint64_t *from, uint64_t *to)
{
    const uint64_t margin = hed_wait_margin(w->usual);

    if (!w->expects || w->usual == 0 || w->usual > HED_WAIT_USUAL_MOST)
        return false;
    *from = w->usual > margin ? w->usual - margin : 0;
    *to = w->usual + margin;
    return true;
}

/* What a parked word can be; a hostile peer may write anything. */
enum hed_wait_parked { HED_WAIT_AWAKE, HED_WAIT_PARKED, HED_WAIT_LEFT, HED_WAIT_NAPPING };

void hed_wait_unpark(_Atomic uint32_t *parked,
                     struct hed_doorbell *doorbell); /* for hed_wait_tell() */
void hed_wait_leave(_Atomic uint32_t *parked);       /* after the connection was closed */

/* Moves the position that the other side may be waiting for, and wakes it if it is parked: by the
 * doorbell, or by a futex if that is NULL. With `can_wait` it is not woken from a nap, which ends
 * soon. */
static inline void
hed_wait_tell(_Atomic uint64_t *position, uint64_t value, _Atomic uint32_t *parked, bool can_wait,
              struct hed_doorbell *doorbell)
{
    /* The store releases what was written before it to hed_wait_change()'s caller. Store and load
     * are sequentially consistent: the other side is wait_park() in wait.c. */
    if (__builtin_expect(doorbell != NULL, 0))
        hed_doorbell_store(position, value);
    else
        atomic_store_explicit(position, value, memory_order_seq_cst);

    const uint32_t state = atomic_load_explicit(parked, memory_order_seq_cst);

    if (__builtin_expect(state != HED_WAIT_AWAKE, 0) &&
        !((can_wait || doorbell) && state == HED_WAIT_NAPPING))
        hed_wait_unpark(parked, doorbell);
}
