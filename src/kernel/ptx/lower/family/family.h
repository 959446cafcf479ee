/* The functions that make the code of an instruction, one for each word in the column "lowering" of
 * opcodes.def. Each makes the code of l->inst, which asks for l->meaning, at the builder's
 * position, or calls hed_lower_refuse() if compiled code alone cannot do it.
 */
#pragma once

struct hed_lower;

#define OP(name, family, lowering, ...) void hed_op_##lowering(struct hed_lower *l);
#define ALIAS(name, ...)
#include "kernel/ptx/opcodes.def"
