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

#define HED_TILE_MAX 4   /* rows, and columns */
#define HED_TILE_STEPS 8 /* of a sum: their factors are kept in memory until the sums are made */
#define HED_TILE_FMAS (HED_TILE_MAX * HED_TILE_MAX * HED_TILE_STEPS)

/* What fits into the processor's registers. */
struct hed_tile_size {
    unsigned rows, columns; /* of a tile: so many sums at most */
    uint32_t worth;         /* no tiles are made of so many sums or fewer */
};

struct hed_tiles {
    uint32_t moved; /* how many instructions are in tiles */
    /* By the value that an fma makes: the number of its tile, whose fmas stand one behind the
     * other; 0: it is in none. NULL if nothing was moved. The memory is the flow's. */
    uint32_t *of;
};

/* Changes the order of the instructions in the flow's blocks. HED_ENOMEM. */
int hed_tiles_order(struct hed_flow *f, const struct hed_ssa *s, struct hed_tile_size size,
                    struct hed_tiles *out);
