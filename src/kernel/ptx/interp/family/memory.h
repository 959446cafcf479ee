/* What the two files of ld and st share: memory.c, which does every access, and row.c, which does
 * the frequent ones. */
#pragma once

#include "kernel/ptx/interp/inside.h"

/* Of struct interp_step.e of an access: the kind of the memory operand, enum interp_address. */
#define INTERP_KIND_MASK 7u

/* row.c: the step that loads or stores one element per lane of so many bytes without an order; NULL
 * if there is none for such an operand. The step has the operands of those in memory.c. */
interp_run hed_interp_row_access(const struct interp_memory *m, unsigned size, bool is_load);

/* memory.c: the same for addresses that lie in any way. */
INTERP_SHARED_STEP(hed_interp_load);
INTERP_SHARED_STEP(hed_interp_store);
