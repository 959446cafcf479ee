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

/* Which type do the factors of a product have, if it is computed in the way of this
 * cublasComputeType_t? `type` is A's and B's, `result` C's and D's. The ways that promise an order
 * of sums ("pedantic") are cuBLAS's. */
bool hed_argument_compute(int compute, enum hed_product_type type, enum hed_product_type result,
                          int *scalar);

/* Is it a cublasGemmAlgo_t? */
bool hed_argument_algorithm(int algorithm);
