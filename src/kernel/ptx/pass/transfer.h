/* What instructions make of the classes of their operands: what uniform.c asks transfer.c for, and
 * what that asks bits.c for. */
#pragma once

#include "kernel/ptx/pass/uniform.h"

/* The class of all that an instruction writes, whatever its guard. */
struct hed_uniform hed_uniform_transfer(const struct hed_uniforms *u, const struct hed_ptx_inst *i);
/* Is it an operation of all lanes, whose results may be the same though its operands vary? */
bool hed_uniform_is_together(const struct hed_ptx_inst *i);
/* The class of the address that ld, st, atom or red accesses. */
struct hed_uniform hed_uniform_memory(const struct hed_uniforms *u, const struct hed_ptx_inst *i);
/* The class of a value, with all that is known of its bits. */
struct hed_uniform hed_uniform_of_value(const struct hed_uniforms *u, const struct hed_ptx_reg *r);
/* Does an instruction write the two words of a number of 64 bits, and nothing else? Then each has a
 * class of its own: that of the lower one, half 0, and of the upper one. */
bool hed_uniform_is_split(const struct hed_uniforms *u, const struct hed_ptx_inst *i);
struct hed_uniform hed_uniform_half(const struct hed_uniforms *u, const struct hed_ptx_inst *i,
                                    unsigned half);

/* The class of operand k of a function of so many bits; one that would be converted first, or
 * negated, varies unless it has no steps. */
struct hed_uniform hed_transfer_operand(const struct hed_uniforms *u, const struct hed_ptx_inst *i,
                                        unsigned k, unsigned bits);
/* bits.c: shifts, and operations on bits, of numbers whose lanes differ by what is known. VARIES
 * says no more than that this does not tell. */
struct hed_uniform hed_transfer_bits(const struct hed_uniforms *u, const struct hed_ptx_inst *i);
/* bits.c: the bits of a result that are the same in all lanes, whatever others are: machine code
 * keeps the results of comparisons in the bits of one register. */
uint64_t hed_transfer_same_bits(const struct hed_uniforms *u, const struct hed_ptx_inst *i);
