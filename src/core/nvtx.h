/* Ranges for profilers (NVTX), in the domain "heddle". Nothing of NVIDIA's is needed: a profiler
 * names a library in the environment, which is loaded before the first range.
 *
 *     FRESH --first question--> STARTING --the library takes ranges--> ON
 *                                  |`------ it does not, or none is named ------> OFF
 *                                  `--takes too long for another thread--> OFF, until it is ON
 *
 * Invariants:
 * 1. A thread pops as often as it has pushed while ranges were on: a range that began before that
 *    does not end, either.
 * 2. The thread that loads the library has no ranges meanwhile, because the library may call us.
 *    Other threads wait for it, so that none of their ranges is lost, but only for a limited time,
 *    because it may wait for them.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

enum hed_nvtx_state { HED_NVTX_OFF, HED_NVTX_FRESH, HED_NVTX_STARTING, HED_NVTX_ON };

extern _Atomic int hed_nvtx_state; /* enum hed_nvtx_state */

/* Is there a profiler that takes ranges? Loads its library if that has not been tried. */
bool hed_nvtx_ask(void);

/* The same; costs one load if there is none. */
static inline bool
hed_nvtx_on(void)
{
    /* Relaxed: OFF is final and guards nothing; hed_nvtx_ask() checks the other states. */
    return __builtin_expect(
               atomic_load_explicit(&hed_nvtx_state, memory_order_relaxed) != HED_NVTX_OFF, 0) &&
           hed_nvtx_ask();
}

/* Begin and end a range of the calling thread. They do nothing if ranges are off. */
void hed_nvtx_push(const char *text);
void hed_nvtx_pop(void);
