/* mbarrier objects: 64 bits in shared memory that count arriving threads and bytes.
 *
 *   bit  63       the phase: 0 or 1, alternating
 *        40..61   bytes that are expected and have not come yet, a signed number
 *        20..39   arrivals that a phase takes
 *         0..19   arrivals that are still missing
 *
 * A phase is over when no arrival and no byte is missing; the next one begins at once. PTX does not
 * define the layout. The threads of a block run on one worker, but copies and clusters need not, so
 * every change is one atomic exchange that acquires and releases: what was written before an
 * arrival is visible after the test that finds the phase over.
 */
#include <stdbool.h>

#include "kernel/ptx/run/group.h"

#define COUNT_BITS 20
#define COUNT_MASK UINT64_C(0xfffff)
#define TX_SHIFT 40
#define TX_MASK UINT64_C(0x3fffff)
#define PHASE (UINT64_C(1) << 63)

static uint64_t
mbarrier_word(uint64_t phase, int64_t tx, uint64_t expected, uint64_t missing)
{
    return phase | ((uint64_t)tx & TX_MASK) << TX_SHIFT | (expected & COUNT_MASK) << COUNT_BITS |
           (missing & COUNT_MASK);
}

static int64_t
tx_of(uint64_t state)
{
    return (int64_t)(state << 2) >> (TX_SHIFT + 2);
}

void
hed_ptx_mbarrier_init(uint64_t *b, uint32_t count)
{
    /* Release: pairs with the acquire in hed_ptx_mbarrier_arrive and hed_ptx_mbarrier_test. */
    __atomic_store_n(b, mbarrier_word(0, 0, count, count), __ATOMIC_RELEASE);
}

static uint64_t
finish_phase(uint64_t old, uint32_t count, int32_t tx, uint32_t drop)
{
    const uint64_t expected = ((old >> COUNT_BITS) & COUNT_MASK) - drop;
    const uint64_t missing = ((old & COUNT_MASK) - count) & COUNT_MASK;
    const int64_t bytes = tx_of(old) + tx;
    const uint64_t phase = old & PHASE;

    if (missing == 0 && bytes == 0)
        return mbarrier_word(phase ^ PHASE, 0, expected, expected);
    return mbarrier_word(phase, bytes, expected, missing);
}

uint64_t
hed_ptx_mbarrier_arrive(uint64_t *b, uint32_t count, int32_t tx, uint32_t drop)
{
    /* Acquire and release: pairs with itself and with hed_ptx_mbarrier_test in other threads. */
    uint64_t old = __atomic_load_n(b, __ATOMIC_ACQUIRE);

    while (!__atomic_compare_exchange_n(b, &old, finish_phase(old, count, tx, drop), false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        continue;
    return old;
}

uint32_t
hed_ptx_mbarrier_test(const uint64_t *b, uint64_t state)
{
    /* Acquire: pairs with the release in hed_ptx_mbarrier_arrive. */
    return ((__atomic_load_n(b, __ATOMIC_ACQUIRE) ^ state) & PHASE) != 0;
}

uint32_t
hed_ptx_mbarrier_pending(uint64_t state)
{
    return (uint32_t)(state & COUNT_MASK);
}
