/* Loops that most likely see rows of memory though nothing proves it.
 *
 *      for (; r; r--, i += stride) ...        what nvcc makes of a grid-stride loop: the first loop
 *      for (; i < n; i += 4 * stride) ...     takes the rest, so i differs from lane to lane by
 *                                             how often each went round
 *
 * At run time all lanes left the first loop together, or the warp is the grid's last one. So the
 * second loop is made twice: before it the code asks whether all lanes run and `tested` values step
 * as they did before the lanes parted; if so, it runs a version for which that is known.
 */
#pragma once

#include "kernel/ptx/pass/uniform.h"

#define HED_GUESS_MAX 6 /* tested values; each test takes some 20 instructions */

struct hed_guess {
    struct hed_uniforms u; /* as if; outside of the loop, only tested values differ */
    uint32_t *tested;      /* ids of values */
    uint32_t ntested;
};

/* By loop: what to ask, or NULL where a second version would not help. The memory is the flow's;
 * NULL if there is none. */
struct hed_guess **hed_guess_init(struct hed_flow *f, const struct hed_uniforms *u);
/* Is it one of the tested values? */
bool hed_guess_tests(const struct hed_guess *g, uint32_t id);
