/* Kernels that move memory and compute little. */
#include "dialect.cl"

KERNEL(empty)(void)
{
}

/* In place, so that a grid of 10^8 threads needs 400 MB. */
KERNEL(grow)(GLOBAL float *y, int n)
{
    const int i = GLOBAL_X;

    if (i < n)
        y[i] = FMA(0.5f, y[i], 1.0f);
}

KERNEL(saxpy)(GLOBAL float *z, GLOBAL const float *x, GLOBAL const float *y, float a, int n)
{
    const int i = GLOBAL_X;

    if (i < n)
        z[i] = FMA(a, x[i], y[i]);
}

KERNEL(triad)(GLOBAL float *a, GLOBAL const float *b, GLOBAL const float *c, float s, int n)
{
    const int i = GLOBAL_X;

    if (i < n)
        a[i] = FMA(s, c[i], b[i]);
}

KERNEL(haxpy)(GLOBAL half_bits *z, GLOBAL const half_bits *x, GLOBAL const half_bits *y, float a,
              int n)
{
    const int i = GLOBAL_X;

    if (i >= n)
        return;
#ifdef __CUDACC__
    ((__half *)z)[i] = __hfma(__float2half(a), ((const __half *)x)[i], ((const __half *)y)[i]);
#else
    vstore_half_rte(fma(a, vload_half(i, x), vload_half(i, y)), i, z);
#endif
}

/* Tiles of 32 by 32 in blocks of 32 by 8. */
KERNEL(transpose)(GLOBAL float *out, GLOBAL const float *in, int n)
{
    SHARED float tile[32][33];
    const int x = GROUP_X * 32 + LOCAL_X, y = GROUP_Y * 32 + LOCAL_Y;

    for (int j = 0; j < 32; j += 8)
        tile[LOCAL_Y + j][LOCAL_X] = in[(y + j) * n + x];
    BARRIER();

    const int u = GROUP_Y * 32 + LOCAL_X, v = GROUP_X * 32 + LOCAL_Y;

    for (int j = 0; j < 32; j += 8)
        out[(v + j) * n + u] = tile[LOCAL_X][LOCAL_Y + j];
}
