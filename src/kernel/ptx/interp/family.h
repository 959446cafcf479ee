/* The functions that decode an instruction, one for each word in the column "lowering" of
 * opcodes.def. Each adds the steps of d->inst, which asks for d->meaning, or calls
 * hed_interp_refuse() if it is the baseline tier alone that cannot do it.
 */
#pragma once

#include "kernel/ptx/interp/inside.h"
#include "kernel/ptx/meaning/meaning.h"

#define OP(name, family, lowering, ...) void hed_interp_op_##lowering(struct interp_decoder *d);
#define ALIAS(name, ...)
#include "kernel/ptx/opcodes.def"

/* Arithmetic, by type: integer.c, float.c, half.c. */
void hed_interp_integer(struct interp_decoder *d);
void hed_interp_float(struct interp_decoder *d);
void hed_interp_half(struct interp_decoder *d);
/* min and max of all floats: half.c. */
void hed_interp_least(struct interp_decoder *d);
/* ex2, lg2, sin, cos and tanh of f32: approx.c. */
interp_run hed_interp_approx(enum hed_ptx_op op, bool ftz);
/* Sums and products of f32 rounded in a direction, without further words; NULL if the form is
 * another: directed.c. */
interp_run hed_interp_directed(const struct hed_ptx_form *f);
float hed_interp_approx_one(enum hed_ptx_op op, float x);

/* Moves a register of some width, 0 for a predicate: move.c. */
void hed_interp_move(struct interp_decoder *d, uint32_t to, uint32_t from, unsigned bytes);
/* Adds a step that reads a special register into `to`. Returns the place of the value, which is
 * another one if the value is a constant. */
uint32_t hed_interp_sreg(struct interp_decoder *d, const struct hed_ptx_operand *o, uint32_t to);
/* Adds a step that computes the addresses of a memory operand. */
void hed_interp_emit_address(struct interp_decoder *d, const struct interp_memory *m, uint32_t to,
                             unsigned align);
/* Adds a step that inverts a predicate: choose.c. */
void hed_interp_invert(struct interp_decoder *d, uint32_t to, uint32_t from);

/* branch.c: replaces labels by steps when all of them are known. */
void hed_interp_patch(struct interp_decoder *d, struct interp_step *s);
/* call.c: copies the results of lanes that return to where the caller wants them. */
void hed_interp_results(struct interp_warp *w, uint32_t lanes);
/* A call of a function with a body; NULL: through a pointer. */
void hed_interp_emit_call(struct interp_decoder *d, const struct hed_ptx_func *callee,
                          const struct hed_ptx_sig *sig);
