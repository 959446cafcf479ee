/* Reductions, scans and histograms: shared memory and barriers. */
#include "dialect.cl"

/* A grid-stride loop, then a tree in shared memory: one partial sum per block of 256. */
KERNEL(dot_shared)(GLOBAL float *out, GLOBAL const float *x, GLOBAL const float *y, int n)
{
    SHARED float part[256];
    float sum = 0;

    for (int i = GLOBAL_X; i < n; i += GROUPS_X * SIZE_X)
        sum = FMA(x[i], y[i], sum);
    part[LOCAL_X] = sum;
    BARRIER();
    for (int s = 128; s > 0; s >>= 1) {
        if (LOCAL_X < s)
            part[LOCAL_X] += part[LOCAL_X + s];
        BARRIER();
    }
    if (LOCAL_X == 0)
        out[GROUP_X] = part[0];
}

KERNEL(reduce_shared)(GLOBAL float *out, GLOBAL const float *in)
{
    SHARED float part[256];

    part[LOCAL_X] = in[GLOBAL_X];
    BARRIER();
    for (int s = 128; s > 0; s >>= 1) {
        if (LOCAL_X < s)
            part[LOCAL_X] += part[LOCAL_X + s];
        BARRIER();
    }
    if (LOCAL_X == 0)
        out[GROUP_X] = part[0];
}

KERNEL(reduce_shfl)(GLOBAL float *out, GLOBAL const float *in)
{
    SHARED float part[8];
    WARP_PAD(pad, 256);
    float sum = in[GLOBAL_X];

    WARP_SUM(sum, pad);
    if (LOCAL_X % 32 == 0)
        part[LOCAL_X / 32] = sum;
    BARRIER();
    if (LOCAL_X == 0) {
        sum = 0;
        for (int i = 0; i < 8; i++)
            sum += part[i];
        out[GROUP_X] = sum;
    }
}

/* The inclusive prefix sums of each block of 256 words. */
KERNEL(scan)(GLOBAL uint *out, GLOBAL const uint *in)
{
    SHARED uint data[2][256];
    int from = 0;

    data[0][LOCAL_X] = in[GLOBAL_X];
    BARRIER();
    for (int s = 1; s < 256; s <<= 1) {
        uint v = data[from][LOCAL_X];

        if (LOCAL_X >= s)
            v += data[from][LOCAL_X - s];
        from ^= 1;
        data[from][LOCAL_X] = v;
        BARRIER();
    }
    out[GLOBAL_X] = data[from][LOCAL_X];
}

/* Counts the bytes of n words: bins of the block in shared memory, then all bins in global. */
KERNEL(histogram)(GLOBAL uint *bins, GLOBAL const uint *in, int n)
{
    SHARED uint mine[256];

    mine[LOCAL_X] = 0;
    BARRIER();
    for (int i = GLOBAL_X; i < n; i += GROUPS_X * SIZE_X) {
        const uint word = in[i];

        ATOMIC_ADD(&mine[word & 255], 1u);
        ATOMIC_ADD(&mine[word >> 8 & 255], 1u);
        ATOMIC_ADD(&mine[word >> 16 & 255], 1u);
        ATOMIC_ADD(&mine[word >> 24], 1u);
    }
    BARRIER();
    ATOMIC_ADD(&bins[LOCAL_X], mine[LOCAL_X]);
}
