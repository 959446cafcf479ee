/* Plays OpenBLAS: products of floats. The others are never asked for by asks.c. If PLAYED_SLOW is
 * set, a product takes a moment, and must not be computed while the library is taken down or after
 * that.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "harness/patience.h"

static _Atomic int computing;
static _Atomic bool is_down;
static pid_t loader;

bool played_computes(void);
const char *openblas_get_config(void);
void cblas_sgemm(int order, int op_a, int op_b, int m, int n, int k, float alpha, const void *a_,
                 int lda, const void *b_, int ldb, float beta, void *c_, int ldc);
void cblas_dgemm(void);
void cblas_cgemm(void);
void cblas_zgemm(void);

bool
played_computes(void)
{
    return computing > 0;
}

__attribute__((constructor)) static void
set_up(void)
{
    loader = getpid();
}

__attribute__((destructor)) static void
take_down(void)
{
    if (!secure_getenv("PLAYED_SLOW") || getpid() != loader)
        return;
    is_down = true;
    WAIT_UNTIL(!computing);
    give_a_moment(300);
}

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
    computing++;
    if (secure_getenv("PLAYED_SLOW"))
        give_a_moment(300);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            float sum = 0;

            for (int l = 0; l < k; l++)
                sum += a[op_a == 111 ? i + l * lda : l + i * lda] *
                       b[op_b == 111 ? l + j * ldb : j + l * ldb];
            c[i + j * ldc] = alpha * sum + (beta != 0 ? beta * c[i + j * ldc] : 0);
        }
    if (is_down) {
        fprintf(stderr, "OpenBLAS computes after its end\n");
        _exit(9);
    }
    computing--;
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
