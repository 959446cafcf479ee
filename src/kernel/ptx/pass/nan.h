/* Where the bits of a NaN can be seen.
 *
 *      fma.f32 %f2, %a, %b, %f1    a GPU has one NaN of f32, processors keep an operand's. As long
 *      add.f32 %f3, %f2, %f2       as only such instructions read the result, any NaN is as good:
 *      st.f32 [%rd], %f3           %f2 and %f3 are "loose", and st makes the GPU's NaN of %f3
 *
 * A phi is loose if all that it takes is loose or a constant, and so is what mov and shfl move. A
 * value that was loaded is not: a program may move a NaN with bits of its own from here to there.
 */
#pragma once

#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/ssa.h"
#include "kernel/ptx/pass/uniform.h"

/* By value: is it loose? The memory is the flow's; NULL if there is none. */
bool *hed_nan_init(struct hed_flow *f, const struct hed_ssa *ssa);
/* By value: is it loose, the sum or product of an instruction that rounds to nearest, and read by
 * stores to rows only? The memory is the flow's; NULL if there is none. */
bool *hed_nan_stored(struct hed_flow *f, const struct hed_ssa *ssa, const struct hed_uniforms *u,
                     const bool *loose);
/* Does the instruction treat all NaNs alike, or hand them on to a loose value? */
bool hed_nan_blind(const struct hed_ptx_inst *i, const struct hed_ssa *ssa);
