/* Matrix products and convolution. */
#include "dialect.cl"

KERNEL(sgemm_naive)(GLOBAL float *c, GLOBAL const float *a, GLOBAL const float *b, int n)
{
    const int x = GLOBAL_X, y = GLOBAL_Y;
    float sum = 0;

    for (int k = 0; k < n; k++)
        sum = FMA(a[y * n + k], b[k * n + x], sum);
    c[y * n + x] = sum;
}

#define SGEMM_TILED(name, TILE)                                                                \
    KERNEL(name)(GLOBAL float *c, GLOBAL const float *a, GLOBAL const float *b, int n)         \
    {                                                                                          \
        SHARED float p[TILE][TILE], q[TILE][TILE];                                             \
        const int x = GROUP_X * TILE + LOCAL_X, y = GROUP_Y * TILE + LOCAL_Y;                  \
        float sum = 0;                                                                         \
                                                                                               \
        for (int t = 0; t < n; t += TILE) {                                                    \
            p[LOCAL_Y][LOCAL_X] = a[y * n + t + LOCAL_X];                                      \
            q[LOCAL_Y][LOCAL_X] = b[(t + LOCAL_Y) * n + x];                                    \
            BARRIER();                                                                         \
            for (int k = 0; k < TILE; k++)                                                     \
                sum = FMA(p[LOCAL_Y][k], q[k][LOCAL_X], sum);                                  \
            BARRIER();                                                                         \
        }                                                                                      \
        c[y * n + x] = sum;                                                                    \
    }

SGEMM_TILED(sgemm16, 16)
SGEMM_TILED(sgemm32, 32)

/* Tiles of 64 by 64 in blocks of 16 by 16: each thread keeps 4 by 4 sums in registers. */
KERNEL(sgemm_regs)(GLOBAL float *c, GLOBAL const float *a, GLOBAL const float *b, int n)
{
    SHARED float p[16][64], q[16][64];
    const int t = LOCAL_Y * 16 + LOCAL_X;
    float sum[4][4];

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            sum[i][j] = 0;
    for (int k0 = 0; k0 < n; k0 += 16) {
        for (int i = 0; i < 4; i++) {
            p[t % 16][t / 16 + 16 * i] = a[(GROUP_Y * 64 + t / 16 + 16 * i) * n + k0 + t % 16];
            q[t / 64 + 4 * i][t % 64] = b[(k0 + t / 64 + 4 * i) * n + GROUP_X * 64 + t % 64];
        }
        BARRIER();
        for (int k = 0; k < 16; k++) {
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    sum[i][j] = FMA(p[k][LOCAL_Y * 4 + i], q[k][LOCAL_X * 4 + j], sum[i][j]);
        }
        BARRIER();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            c[(GROUP_Y * 64 + LOCAL_Y * 4 + i) * n + GROUP_X * 64 + LOCAL_X * 4 + j] = sum[i][j];
}

/* A layer of a network: 3 by 3, channels in, one output channel per z. Inputs have a border of 1. */
KERNEL(conv)(GLOBAL float *out, GLOBAL const float *in, GLOBAL const float *weights, int channels,
             int side)
{
    const int x = GLOBAL_X, y = GLOBAL_Y, k = GROUP_Z, row = side + 2;
    float sum = 0;

    for (int c = 0; c < channels; c++) {
        for (int r = 0; r < 3; r++)
            for (int s = 0; s < 3; s++)
                sum = FMA(weights[((k * channels + c) * 3 + r) * 3 + s],
                          in[(c * row + y + r) * row + x + s], sum);
    }
    out[(k * side + y) * side + x] = FMAX(sum, 0.0f);
}
