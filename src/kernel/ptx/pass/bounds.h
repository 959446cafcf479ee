/* How large the numbers of values can be: positions in a block are small, a mask keeps few bits. */
#pragma once

#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/ssa.h"

/* By value: in all lanes, the number, taken without sign, is below 2^this, which is at most the
 * width of the value. The memory is the flow's; NULL if there is none. */
uint8_t *hed_bounds_init(struct hed_flow *f, const struct hed_ssa *ssa);

/* The same of an operand of an instruction whose type has so many bits. */
unsigned hed_bounds_operand(const uint8_t *bounds, const struct hed_ptx_operand *o, unsigned bits);
