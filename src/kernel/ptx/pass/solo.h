/* Which loops run lane by lane rather than for 32 lanes at once.
 *
 *      32 lanes at once                       lane by lane
 *      while lanes are in the loop            for each lane that enters the loop
 *          every instruction on vectors           while it is in the loop
 *          every scattered load: 32 addresses         every instruction on numbers
 *          are put in memory and taken out
 *
 * Vectors are better for arithmetic, and much worse for scattered loads and stores and for loops
 * that most lanes leave early: a graph's edges, a sparse matrix's rows. A loop may run lane by lane
 * if lanes cannot tell: nothing in it waits or exchanges values, no access is ordered, and nothing
 * that it stores is likely to be meant for another lane of the warp.
 */
#pragma once

#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/ssa.h"
#include "kernel/ptx/pass/uniform.h"

/* By loop: it runs lane by lane, and so do the loops in it. The memory is the flow's; NULL if there
 * is none. */
bool *hed_solo_init(struct hed_flow *f, const struct hed_uniforms *u);
/* Does it take several times as long as others: a division, a root, an approximation? */
bool hed_solo_takes_long(const struct hed_ptx_inst *i);
