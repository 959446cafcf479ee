/* Ranges for profilers (NVTX), under the domain "heddle". Nothing of NVIDIA's is needed: a profiler
 * names a library in the environment, and that is loaded when the first range is asked for.
 *
 *     FRESH --first question--> STARTING --the library takes ranges--> ON
 *                                  |`------ it does not, or none is named ------> OFF
 *                                  `--too long for somebody else who asks--> OFF, until it is ON
 *
 * Invariants:
 * 1. A thread pops as often as it has pushed while ranges were on, and no more: a range that began
 *    before that has no end, either.
 * 2. The thread that loads the library has no ranges meanwhile: the library may call us. Others
 *    wait for it, so that none of their ranges is lost, but not for ever: it may wait for them.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

enum hed_nvtx_state { HED_NVTX_OFF, HED_NVTX_FRESH, HED_NVTX_STARTING, HED_NVTX_ON };

extern _Atomic int hed_nvtx_state; /* enum hed_nvtx_state */

/* Is there a profiler that takes ranges? Loads its library if that has not been tried. */
bool hed_nvtx_ask(void);

/* The same: a load where there is none. */
static inline bool
hed_nvtx_on(void)
{
    /* Relaxed: OFF is for good and has nothing behind it; the rest is looked at with care. */
    return __builtin_expect(
               atomic_load_explicit(&hed_nvtx_state, memory_order_relaxed) != HED_NVTX_OFF, 0) &&
           hed_nvtx_ask();
}

/* Begins and ends a range of the calling thread. Nothing where ranges are off. */
void hed_nvtx_push(const char *text);
void hed_nvtx_pop(void);
