/* What core/usage.h describes. */
#include "core/usage.h"

#include <stdbool.h>
#include <stddef.h>

/* Relaxed everywhere: single numbers, each right by itself. */
#define SET(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)
#define GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

static struct {
    struct {
        _Atomic uint64_t used, limit;
        _Atomic uint32_t known;
    } by[HED_USAGE_COUNTERS];
    _Atomic(_Atomic uint64_t *) used, limit;
    _Atomic(_Atomic uint32_t *) known;
} usage[HED_USAGE_DEVICES];

static void
show_usage(int device)
{
    const bool limited = GET(usage[device].by[HED_USAGE_BY_LIMIT].known);
    const enum hed_usage_by by = limited ? HED_USAGE_BY_LIMIT : HED_USAGE_BY_DRIVER;
    /* Acquire: `known` was published last. */
    _Atomic uint32_t *known = atomic_load_explicit(&usage[device].known, memory_order_acquire);

    if (!known)
        return;
    SET(*GET(usage[device].used), GET(usage[device].by[by].used));
    SET(*GET(usage[device].limit), GET(usage[device].by[by].limit));
    SET(*known, GET(usage[device].by[by].known));
}

void
hed_usage_set(int device, enum hed_usage_by by, uint64_t used, uint64_t limit)
{
    if (device < 0 || device >= HED_USAGE_DEVICES)
        return;
    SET(usage[device].by[by].used, used);
    SET(usage[device].by[by].limit, limit);
    SET(usage[device].by[by].known, 1);
    show_usage(device);
}

void
hed_usage_publish(int device, const struct hed_usage_words *to)
{
    if (device < 0 || device >= HED_USAGE_DEVICES)
        return;
    atomic_store_explicit(&usage[device].known, NULL, memory_order_release);
    if (!to)
        return;
    SET(usage[device].used, to->used);
    SET(usage[device].limit, to->limit);
    atomic_store_explicit(&usage[device].known, to->known, memory_order_release);
    show_usage(device);
}
