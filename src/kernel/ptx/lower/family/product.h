/* Products of matrices as vector code: what hed_ptx_mma() does, for the shapes that programs use
 * most. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/ptx/lower/lower.h"

struct hed_ptx_mma;

/* Is there such code for the product? */
bool hed_product_is_known(const struct hed_lower *l, const struct hed_ptx_mma *m);

/* Makes it. `in` has the words of a, b and c as mma lists them, all <32 x i32>, and out gets those
 * of d. All lanes run. With any_nan, results that are NaN may be any NaN. */
void hed_product_make(struct hed_lower *l, const struct hed_ptx_mma *m, LLVMValueRef *in,
                      LLVMValueRef *out, bool any_nan);
