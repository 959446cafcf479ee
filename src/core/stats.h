/* Counters of what happened in this process, and logging once what cannot be done.
 *
 * Counters are relaxed atomics: each is right, no two are of the same instant. None is touched on
 * the path of an ordinary call.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "core/call.h"
#include "core/export.h"

struct hed_stats {
    _Atomic uint64_t unsupported_calls; /* answered with "not supported" */
    _Atomic uint64_t foreign_pointers; /* functions of NVIDIA's handed to the program as they are */
    _Atomic uint64_t export_tables;    /* NVIDIA's private tables handed out */
    _Atomic uint64_t faults_injected;  /* failed on purpose by the fault layer */
    _Atomic uint64_t refusals;         /* launches and calls that heddle cannot do (refusal.h) */

    /* The CPU GPU of this process. */
    _Atomic uint64_t grids_interpreted; /* began in the baseline tier */
    _Atomic uint64_t grids_compiled;
    _Atomic uint64_t kernels_compiled; /* now */
    _Atomic uint64_t kernels_cached;   /* found in the cache */
};

HED_EXPORT extern struct hed_stats hed_stats;

/* What layers count themselves; each adds to it when asked. */
struct hed_counts {
    uint64_t trace_records; /* written to the trace so far */
    uint64_t trace_dropped; /* not written because the disk was too slow */

    /* Of the layer watch. */
    uint64_t launches;
    uint64_t context_errors;
    uint64_t allocations;
    uint64_t live_allocations;
    uint64_t memory_bytes;
    uint64_t memory_peak;
};

static inline void
hed_stats_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* Counts a call that cannot be done and names it in the log the first time. */
HED_EXPORT void hed_stats_unsupported(enum hed_api api, uint32_t id, const char *who);
