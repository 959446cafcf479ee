/* What instructions make of the classes of their operands: what uniform.c asks transfer.c for. */
#pragma once

#include "kernel/ptx/pass/uniform.h"

/* The class of all that an instruction writes, whatever its guard. */
struct hed_uniform hed_uniform_transfer(const struct hed_uniforms *u, const struct hed_ptx_inst *i);
/* Is it an operation of all lanes, whose results may be the same though its operands vary? */
bool hed_uniform_is_together(const struct hed_ptx_inst *i);
/* The class of the address that ld, st, atom or red accesses. */
struct hed_uniform hed_uniform_memory(const struct hed_uniforms *u, const struct hed_ptx_inst *i);
