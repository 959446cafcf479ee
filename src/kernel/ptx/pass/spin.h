/* Which loops of a flow may wait for other threads: as wait.c, but in terms of values.
 *
 * Machine code has few registers and puts its blocks in any order. A register that once held what
 * another thread has written holds a hundred other things, and much of what lies between a label
 * and a branch back to it is no part of the loop. So text makes loops look as if they waited. A
 * value is written once, and a flow knows its loops.
 */
#pragma once

#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/ssa.h"

struct hed_ptx_unit;

/* By loop: it may wait. `u` holds the functions that the kernel can reach. The memory is the
 * flow's; NULL if there is none. */
bool *hed_spin_init(struct hed_flow *f, const struct hed_ssa *s, const struct hed_ptx_unit *u);
