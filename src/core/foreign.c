/* The stubs of core/foreign.h: which function has which. */
#include "core/foreign.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/lock.h"
#include "base/log.h"
#include "core/stats.h"

/* Read and written by foreign.S, by index. */
extern void *hed_foreign_targets[HED_FOREIGN_MAX];
extern _Atomic uint64_t hed_foreign_counts[HED_FOREIGN_MAX];
extern const char hed_foreign_stubs[];
extern const uint32_t hed_foreign_stride;

void *hed_foreign_targets[HED_FOREIGN_MAX];
_Atomic uint64_t hed_foreign_counts[HED_FOREIGN_MAX];

static struct hed_lock lock = HED_LOCK_INIT(HED_RANK_STUBS);
static _Atomic size_t used; /* written under lock */

void *
hed_foreign_wrap(void *function, const char *name)
{
    const char *first = hed_foreign_stubs;
    size_t i;

    if (!function || ((const char *)function >= first &&
                      (const char *)function < first + HED_FOREIGN_MAX * hed_foreign_stride))
        return function;
    hed_lock(&lock);

    const size_t n = atomic_load_explicit(&used, memory_order_relaxed);

    for (i = 0; i < n && hed_foreign_targets[i] != function; i++)
        continue;
    if (i == n && n < HED_FOREIGN_MAX) {
        hed_foreign_targets[i] = function;
        hed_stats_add(&hed_stats.foreign_pointers, 1);
        /* Release: a thread that reads the count sees the stub's target. */
        atomic_store_explicit(&used, n + 1, memory_order_release);
    }
    hed_unlock(&lock);
    if (i == HED_FOREIGN_MAX)
        return function;
    if (i == n)
        hed_debug(CORE, "%s is handed through: calls of it are not seen", name);
    return (void *)(uintptr_t)(first + i * hed_foreign_stride);
}

void
hed_foreign_forked(void)
{
    hed_lock_init(&lock, HED_RANK_STUBS);
}

uint64_t
hed_foreign_calls(void)
{
    const size_t n = atomic_load_explicit(&used, memory_order_acquire);
    uint64_t calls = 0;

    for (size_t i = 0; i < n; i++)
        calls += atomic_load_explicit(&hed_foreign_counts[i], memory_order_relaxed);
    return calls;
}
