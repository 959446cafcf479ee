/* Plays libcublas.so.N: a product is answered with N. */
#include "played.h"

int
cublasGetStream_v2(void *handle, void **stream)
{
    if (!handle)
        return 1;
    *stream = ((struct played_handle *)handle)->stream;
    return 0;
}

int
cublasGetPointerMode_v2(void *handle, int *mode)
{
    *mode = ((struct played_handle *)handle)->pointer_mode;
    return 0;
}

int
cublasGetMathMode(void *handle, int *mode)
{
    *mode = ((struct played_handle *)handle)->math_mode;
    return 0;
}

int
cublasSgemm_v2(void *handle, int op_a, int op_b, int m, int n, int k, const float *alpha,
               const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
               int ldc)
{
    (void)handle;
    (void)op_a;
    (void)op_b;
    (void)m;
    (void)n;
    (void)k;
    (void)alpha;
    (void)a;
    (void)lda;
    (void)b;
    (void)ldb;
    (void)beta;
    (void)c;
    (void)ldc;
    return PLAYED_VERSION;
}
