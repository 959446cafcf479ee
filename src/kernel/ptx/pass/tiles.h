/* The order of sums of products: tile by tile, so that the sums stay in registers.
 *
 * A thread of a product of matrices has many sums: 64 of them in cuBLAS's kernels. 32 lanes of all
 * of them are four times what a processor's registers hold, so each fma would load and store its
 * own. Instead, a block's fmas wait until somebody reads a sum; then a few sums at a time get all
 * of their products:
 *
 *      step 0:  s0 += a0 b0, s1 += a0 b1, ... s63        s0 += a0 b0, s1 += a0 b1, s8 += a1 b0, ..
 *      step 1:  s0 += a0 b0, s1 += a0 b1, ... s63   ->       of step 0, step 1, ...
 *      ...                                               s2 += a0 b2, ...
 */
#pragma once

#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/ssa.h"

#define HED_TILE_MAX 4 /* rows, and columns */

/* Changes the order of the instructions in the flow's blocks. A tile is at most `rows` times
 * `columns` sums. Sets *moved to how many instructions are in tiles. HED_ENOMEM. */
int hed_tiles_order(struct hed_flow *f, const struct hed_ssa *s, unsigned rows, unsigned columns,
                    uint32_t *moved);
