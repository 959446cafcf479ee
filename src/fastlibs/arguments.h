/* Arguments of cuBLAS in our words. False: the CPU's BLAS has nothing for it. */
#pragma once

#include <stdbool.h>

#include "fastlibs/product.h"

/* Of a cudaDataType. */
bool hed_argument_type(int type, enum hed_product_type *out);

/* Of a cublasOperation_t. */
bool hed_argument_op(int op, char *out);

/* Of a factor in host memory. */
bool hed_argument_scalar(const void *from, int type, struct hed_product_scalar *out);

/* Which type do the factors of a product of this type have, if it is computed in the way of this
 * cublasComputeType_t? The ways that promise an order of sums ("pedantic") are cuBLAS's. */
bool hed_argument_compute(int compute, enum hed_product_type type, int *scalar);
