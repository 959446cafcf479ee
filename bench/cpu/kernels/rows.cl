/* What networks do with rows: softmax, layer norm, attention. */
#include "dialect.cl"

/* One block of 256 per row. */
KERNEL(softmax)(GLOBAL float *out, GLOBAL const float *in, int columns)
{
    SHARED float part[256];
    GLOBAL const float *row = in + GROUP_X * columns;
    float top = -3e38f, sum = 0;

    for (int i = LOCAL_X; i < columns; i += 256)
        top = FMAX(top, row[i]);
    part[LOCAL_X] = top;
    BARRIER();
    for (int s = 128; s > 0; s >>= 1) {
        if (LOCAL_X < s)
            part[LOCAL_X] = FMAX(part[LOCAL_X], part[LOCAL_X + s]);
        BARRIER();
    }
    top = part[0];
    BARRIER();
    for (int i = LOCAL_X; i < columns; i += 256)
        sum += EXP(row[i] - top);
    part[LOCAL_X] = sum;
    BARRIER();
    for (int s = 128; s > 0; s >>= 1) {
        if (LOCAL_X < s)
            part[LOCAL_X] += part[LOCAL_X + s];
        BARRIER();
    }
    sum = 1.0f / part[0];
    for (int i = LOCAL_X; i < columns; i += 256)
        out[GROUP_X * columns + i] = EXP(row[i] - top) * sum;
}

/* One warp per row, eight rows per block. */
KERNEL(layernorm)(GLOBAL float *out, GLOBAL const float *in, GLOBAL const float *gain,
                  GLOBAL const float *bias, int columns)
{
    WARP_PAD(pad, 256);
    const int lane = LOCAL_X % 32;
    const int row = (GROUP_X * 8 + LOCAL_X / 32) * columns;
    float sum = 0, square = 0;

    for (int i = lane; i < columns; i += 32)
        sum += in[row + i];
    WARP_SUM(sum, pad);

    const float mean = sum / columns;

    for (int i = lane; i < columns; i += 32) {
        const float d = in[row + i] - mean;

        square = FMA(d, d, square);
    }
    WARP_SUM(square, pad);

    const float scale = 1.0f / SQRT(square / columns + 1e-5f);

    for (int i = lane; i < columns; i += 32)
        out[row + i] = FMA((in[row + i] - mean) * scale, gain[i], bias[i]);
}

/* Attention with 32 dimensions: one query per thread, keys and values in tiles of 64, and the
 * softmax taken while they pass. One head per y. */
KERNEL(flash)(GLOBAL float *out, GLOBAL const float *q, GLOBAL const float *k,
              GLOBAL const float *v, int n)
{
    SHARED float keys[64][32], values[64][32];
    const int head = GROUP_Y * n * 32;
    const int mine = head + GLOBAL_X * 32;
    float query[32], sum[32], top = -3e38f, total = 0;

    for (int d = 0; d < 32; d++) {
        query[d] = q[mine + d] * 0.17677669f;
        sum[d] = 0;
    }
    for (int t = 0; t < n; t += 64) {
        for (int i = LOCAL_X; i < 64 * 32; i += 64) {
            keys[i / 32][i % 32] = k[head + t * 32 + i];
            values[i / 32][i % 32] = v[head + t * 32 + i];
        }
        BARRIER();
        for (int j = 0; j < 64; j++) {
            float dot = 0;

            for (int d = 0; d < 32; d++)
                dot = FMA(query[d], keys[j][d], dot);

            const float next = FMAX(top, dot);
            const float old = EXP(top - next), weight = EXP(dot - next);

            top = next;
            total = FMA(total, old, weight);
            for (int d = 0; d < 32; d++)
                sum[d] = FMA(sum[d], old, weight * values[j][d]);
        }
        BARRIER();
    }
    for (int d = 0; d < 32; d++)
        out[mine + d] = sum[d] / total;
}
