/* How a call of cuBLAS or cuDNN is answered: by the CPU's BLAS, in the order of the caller's
 * stream, or by the library's own kernels, with the reason counted.
 */
#pragma once

#include <stdbool.h>

#include "fastlibs/convolution.h"
#include "fastlibs/product.h"
#include "gen/cuda_abi.h"

/* Why kernels do it. X(token, text) */
#define HED_LEFT_MAP(X)                                         \
    X(KIND, "of other types or kinds")                          \
    X(SCALARS, "with factors in the GPU's memory")              \
    X(CAPTURED, "captured into graphs")                         \
    X(MEMORY, "with operands outside of the GPU's allocations") \
    X(REFUSED, "that could not be put into their stream")

enum hed_left {
#define HED_LEFT_ENUM(token, text) HED_LEFT_##token,
    HED_LEFT_MAP(HED_LEFT_ENUM)
#undef HED_LEFT_ENUM
        HED_LEFT_COUNT
};

/* Puts it into the stream. False: the caller calls the library instead. Operands that the GPU
 * may not read or write are left to the library's kernels, which report them. A right that is taken
 * away while the job waits is not seen. */
bool hed_answer_product(CUstream stream, const struct hed_product *p);
bool hed_answer_convolution(CUstream stream, const struct hed_convolution *c);

/* Counts a call that is left to the library. */
void hed_answer_leave(enum hed_left why);
