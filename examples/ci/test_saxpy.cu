/* Tests saxpy() on whatever GPU there is; in CI that is heddle's CPU GPU. */
#include <stdio.h>

#include "saxpy.h"

static int
check_size(int n)
{
    float *x, *y;
    int wrong = 0;

    if (cudaMallocManaged(&x, (n + 1) * sizeof *x) || cudaMallocManaged(&y, (n + 1) * sizeof *y))
        return 1;
    for (int i = 0; i <= n; i++)
        x[i] = (float)i, y[i] = 1.0f;
    if (saxpy(n, 2.0f, x, y) || cudaDeviceSynchronize())
        return 1;
    for (int i = 0; i < n; i++)
        wrong += y[i] != 2.0f * (float)i + 1.0f;
    wrong += y[n] != 1.0f; /* nothing behind the end was touched */
    printf("n = %d: %d wrong\n", n, wrong);
    cudaFree(x);
    cudaFree(y);
    return wrong != 0;
}

int
main(void)
{
    return check_size(0) | check_size(1) | check_size(1000) | check_size(100000);
}
