/* The CPU's BLAS: OpenBLAS, which is loaded when the first product is asked for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fastlibs/product.h"

struct hed_blas {
    const char *name; /* "OpenBLAS 0.3.21" */
    bool is_wide;     /* its numbers have 64 bits */
    void *gemm[HED_PRODUCT_C64 + 1];
};

/* The library, or NULL if there is none on this machine; said once. The first call loads it. */
const struct hed_blas *hed_blas_load(void);

/* C = alpha * op(A) * op(B) + beta * C in one of the types that the library has, column by column.
 * The sizes fit into an int if the library is not wide. */
struct hed_blas_gemm {
    enum hed_product_type type;
    char op_a, op_b;
    int64_t m, n, k;
    struct hed_product_scalar alpha, beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
};

void hed_blas_gemm(const struct hed_blas *blas, const struct hed_blas_gemm *g);
