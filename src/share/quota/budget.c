/* What a device is charged with (share/quota/engine.h).
 *
 * Alone, the total is a word of this process. In a group it is a word of the meeting file, beside
 * the slots where each process says what it has. A process writes in an order that keeps the total
 * at or above what the living have, wherever it dies:
 *
 *   reserve: its slot first, then the total        give back: the total first, then its slot
 *
 * So the total can only be too large, by what dead processes had. That is noticed when a process is
 * about to be refused: it adds up the slots of the living, and the sum becomes the total if that
 * has not changed meanwhile, which is why its upper bits count changes. No lock is taken, so a
 * process that is slow, stopped or dead at any step is in nobody's way.
 */
#include <sched.h>
#include <string.h>

#include "core/usage.h"
#include "share/quota/engine.h"

#define BYTES ((UINT64_C(1) << 48) - 1)
#define CHANGE (UINT64_C(1) << 48)
#define RECOUNTS 4 /* before a refusal, while others change the total */

static uint64_t
with(uint64_t word, uint64_t bytes)
{
    return ((word + CHANGE) & ~BYTES) | (bytes < BYTES ? bytes : BYTES);
}

static bool
budget_fits(const struct quota_device *d, uint64_t word, uint64_t n)
{
    const uint64_t have = word & BYTES;

    return have <= d->limit && n <= d->limit - have;
}

/* Release: a process that sees the new total also sees our slot as it was before. Acquire: the
 * other way round. */
static bool
budget_add(struct quota_device *d, uint64_t n, bool force)
{
    uint64_t word = atomic_load_explicit(d->total, memory_order_relaxed);

    do {
        if (!force && !budget_fits(d, word, n))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(d->total, &word, with(word, (word & BYTES) + n),
                                                    memory_order_acq_rel, memory_order_relaxed));
    return true;
}

static void
budget_note_own(struct quota_device *d, uint64_t n)
{
    if (d->used)
        atomic_fetch_add_explicit(d->used, n, memory_order_acq_rel);
}

static void
unnote(struct quota_device *d, uint64_t n)
{
    if (d->used)
        atomic_fetch_sub_explicit(d->used, n, memory_order_acq_rel);
}

static bool
budget_try(struct quota_device *d, uint64_t n)
{
    /* Look first: a charge that is taken back again would disturb the sums of other processes. */
    if (!budget_fits(d, atomic_load_explicit(d->total, memory_order_relaxed), n))
        return false;
    budget_note_own(d, n);
    if (budget_add(d, n, false))
        return true;
    unnote(d, n);
    return false;
}

/* The sum of what living processes have. It saturates, because the file may hold anything. A slot
 * without bytes is not worth a system call. */
static uint64_t
living(struct quota_device *d)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < QUOTA_SLOTS; i++) {
        struct quota_slot *p = hed_meet_slot(d->meet, i);
        uint64_t n = atomic_load_explicit(&p->used[d->slot], memory_order_relaxed);

        if (n == 0 || !hed_meet_taken(d->meet, i, NULL))
            continue;
        /* Only now is it known to be the owner's number, not one that a dead process has left.
         * Acquire: pairs with the owner's release in unnote. */
        n = atomic_load_explicit(&p->used[d->slot], memory_order_acquire);
        sum = n > BYTES - sum ? BYTES : sum + n;
    }
    return sum;
}

static void
recount(struct quota_device *d)
{
    uint64_t word = atomic_load_explicit(d->total, memory_order_acquire);
    const uint64_t sum = living(d);

    if ((word & BYTES) != sum)
        (void)atomic_compare_exchange_strong_explicit(d->total, &word, with(word, sum),
                                                      memory_order_acq_rel, memory_order_relaxed);
}

static bool
try_recounted(struct quota_device *d, uint64_t n)
{
    bool done = false;

    for (int i = 0; !done && i < RECOUNTS; i++) {
        if (i > 0)
            (void)sched_yield();
        recount(d);
        done = budget_try(d, n);
    }
    return done;
}

void
hed_quota_show(struct quota_device *d)
{
    const int device = atomic_load_explicit(&d->ordinal, memory_order_relaxed);
    const uint64_t limit = d->limit == QUOTA_LIMIT_MAX ? 0 : d->limit;
    uint64_t own;

    /* Of two threads that show it at once, the one with the older number shows it again. */
    do {
        own = atomic_load_explicit(&d->own, memory_order_relaxed);
        hed_usage_set(device, HED_USAGE_BY_LIMIT, own, limit);
    } while (own != atomic_load_explicit(&d->own, memory_order_relaxed));
}

bool
hed_quota_reserve(struct quota_device *d, uint64_t n)
{
    if (n > d->limit)
        return false;
    if (!budget_try(d, n) && (!d->meet || !try_recounted(d, n)))
        return false;
    atomic_fetch_add_explicit(&d->own, n, memory_order_relaxed);
    hed_quota_show(d);
    return true;
}

void
hed_quota_force(struct quota_device *d, uint64_t n)
{
    budget_note_own(d, n);
    (void)budget_add(d, n, true);
    atomic_fetch_add_explicit(&d->own, n, memory_order_relaxed);
    hed_quota_show(d);
}

void
hed_quota_give(struct quota_device *d, uint64_t n)
{
    uint64_t word = atomic_load_explicit(d->total, memory_order_relaxed);
    uint64_t have;

    atomic_fetch_sub_explicit(&d->own, n, memory_order_relaxed);
    hed_quota_show(d);
    do
        have = word & BYTES;
    while (!atomic_compare_exchange_weak_explicit(d->total, &word,
                                                  with(word, have > n ? have - n : 0),
                                                  memory_order_acq_rel, memory_order_relaxed));
    unnote(d, n);
}

uint64_t
hed_quota_used(struct quota_device *d)
{
    return d->meet ? living(d) : atomic_load_explicit(&d->own, memory_order_relaxed);
}

bool
hed_quota_is_over(struct quota_device *d)
{
    /* The total may include what dead processes had. That is corrected only where it matters. */
    return (atomic_load_explicit(d->total, memory_order_relaxed) & BYTES) > d->limit &&
           hed_quota_used(d) > d->limit;
}
