/* Plays OpenBLAS: products of floats. The others are never asked for by asks.c. */
#include <stdlib.h>

const char *openblas_get_config(void);
void cblas_sgemm(int order, int op_a, int op_b, int m, int n, int k, float alpha, const void *a_,
                 int lda, const void *b_, int ldb, float beta, void *c_, int ldc);
void cblas_dgemm(void);
void cblas_cgemm(void);
void cblas_zgemm(void);

const char *
openblas_get_config(void)
{
    return "OpenBLAS 9.8.7 PLAYED";
}

void
cblas_sgemm(int order, int op_a, int op_b, int m, int n, int k, float alpha, const void *a_,
            int lda, const void *b_, int ldb, float beta, void *c_, int ldc)
{
    const float *a = a_, *b = b_;
    float *c = c_;

    if (order != 102)
        abort();
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            float sum = 0;

            for (int l = 0; l < k; l++)
                sum += a[op_a == 111 ? i + l * lda : l + i * lda] *
                       b[op_b == 111 ? l + j * ldb : j + l * ldb];
            c[i + j * ldc] = alpha * sum + (beta != 0 ? beta * c[i + j * ldc] : 0);
        }
}

void
cblas_dgemm(void)
{
    abort();
}

void
cblas_cgemm(void)
{
    abort();
}

void
cblas_zgemm(void)
{
    abort();
}
