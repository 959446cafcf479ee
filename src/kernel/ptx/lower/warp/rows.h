/* Moves vectors of scattered lanes: one access per lane instead of one per element.
 *
 *      memory, by lane            arrays, by element
 *      lane 0:  a0 b0 c0 d0       a0 a1 a2 a3 ...
 *      lane 1:  a1 b1 c1 d1  <->  b0 b1 b2 b3 ...
 *      lane 2:  a2 b2 c2 d2       c0 c1 c2 c3 ...
 *
 * That is how matrices are read from shared memory and written there: a multiplication of floats
 * spent half of its time on elements that were moved one by one.
 */
#pragma once

#include "kernel/ptx/lower/lower.h"

#define HED_LOWER_ROWS 8          /* lanes at a time */
#define HED_LOWER_ROWS_ELEMENTS 4 /* of a lane, at most */

/* Two or four elements of 32 bits. */
bool hed_lower_has_rows(LLVMTypeRef element, unsigned count);
/* v[e] has element e of all lanes. Stores come in the order of the lanes. */
void hed_lower_load_rows(struct hed_lower *l, const LLVMValueRef *at,
                         const struct hed_lower_access *how, LLVMValueRef *v);
void hed_lower_store_rows(struct hed_lower *l, const LLVMValueRef *at,
                          const struct hed_lower_access *how, const LLVMValueRef *v);
