/* Sorting steps and Fourier transforms: threads of a block exchange elements again and again. */
#include "dialect.cl"

/* Sorts each 512 words in a block of 256. */
KERNEL(bitonic)(GLOBAL uint *out, GLOBAL const uint *in)
{
    SHARED uint data[512];
    const int base = GROUP_X * 512;

    data[LOCAL_X] = in[base + LOCAL_X];
    data[LOCAL_X + 256] = in[base + LOCAL_X + 256];
    for (int size = 2; size <= 512; size <<= 1) {
        for (int s = size >> 1; s > 0; s >>= 1) {
            BARRIER();

            const int i = 2 * LOCAL_X - (LOCAL_X & (s - 1));
            const uint a = data[i], b = data[i + s];

            if ((a > b) == ((i & size) == 0)) {
                data[i] = b;
                data[i + s] = a;
            }
        }
    }
    BARRIER();
    out[base + LOCAL_X] = data[LOCAL_X];
    out[base + LOCAL_X + 256] = data[LOCAL_X + 256];
}

/* The number of threads of the block before this one that have flag set; *all is the total.
 * Warps vote in CUDA; OpenCL scans in local memory. */
DEVICE uint count_before(uint flag, SHARED_POINTER uint *pad, uint *all)
{
#ifdef __CUDACC__
    const uint votes = __ballot_sync(0xffffffffu, flag);
    const int warp = LOCAL_X / 32;
    uint before = __popc(votes & ((1u << LOCAL_X % 32) - 1)), sum = 0;

    if (LOCAL_X % 32 == 0)
        pad[warp] = __popc(votes);
    BARRIER();
    for (int i = 0; i < 8; i++) {
        before += i < warp ? pad[i] : 0;
        sum += pad[i];
    }
    *all = sum;
    BARRIER();
    return before;
#else
    uint v = flag;

    for (int s = 1; s < 256; s <<= 1) {
        pad[LOCAL_X] = v;
        BARRIER();
        v += LOCAL_X >= s ? pad[LOCAL_X - s] : 0;
        BARRIER();
    }
    pad[LOCAL_X] = v;
    BARRIER();
    *all = pad[255];
    BARRIER();
    return v - flag;
#endif
}

/* A pass of radix sort: each block sorts its 256 words by four bits and counts its digits. */
KERNEL(radix)(GLOBAL uint *out, GLOBAL uint *counts, GLOBAL const uint *in, int shift)
{
    SHARED uint data[256], pad[256], bins[16];
    uint key = in[GLOBAL_X];

    if (LOCAL_X < 16)
        bins[LOCAL_X] = 0;
    for (int bit = 0; bit < 4; bit++) {
        const uint one = key >> (shift + bit) & 1;
        uint zeros, to;

        to = count_before(1 - one, pad, &zeros);
        if (one)
            to = zeros + LOCAL_X - to;
        data[to] = key;
        BARRIER();
        key = data[LOCAL_X];
        BARRIER();
    }
    ATOMIC_ADD(&bins[key >> shift & 15], 1u);
    BARRIER();
    out[GLOBAL_X] = key;
    if (LOCAL_X < 16)
        counts[LOCAL_X * GROUPS_X + GROUP_X] = bins[LOCAL_X];
}

/* 1024 complex numbers per block of 256, by fours (Stockham); roots: the 1024th roots of 1. */
KERNEL(fft)(GLOBAL float *out, GLOBAL const float *in, GLOBAL const float *roots)
{
    SHARED float re[1024], im[1024];
    const int base = GROUP_X * 2048, t = LOCAL_X;
    float ar[4], ai[4];

    for (int k = 0; k < 4; k++) {
        ar[k] = in[base + t + 256 * k];
        ai[k] = in[base + 1024 + t + 256 * k];
    }
    for (int s = 1; s < 1024; s *= 4) {
        const int j = t & (s - 1), step = 256 / s;

        for (int k = 1; k < 4; k++) {
            const float c = roots[j * k * step], d = roots[1024 + j * k * step];
            const float r = ar[k];

            ar[k] = FMA(r, c, -(ai[k] * d));
            ai[k] = FMA(r, d, ai[k] * c);
        }

        const float pr = ar[0] + ar[2], pi = ai[0] + ai[2];
        const float mr = ar[0] - ar[2], mi = ai[0] - ai[2];
        const float qr = ar[1] + ar[3], qi = ai[1] + ai[3];
        const float nr = ar[1] - ar[3], ni = ai[1] - ai[3];
        const int to = (t - j) * 4 + j;

        re[to] = pr + qr;
        im[to] = pi + qi;
        re[to + s] = mr + ni;
        im[to + s] = mi - nr;
        re[to + 2 * s] = pr - qr;
        im[to + 2 * s] = pi - qi;
        re[to + 3 * s] = mr - ni;
        im[to + 3 * s] = mi + nr;
        BARRIER();
        for (int k = 0; k < 4; k++) {
            ar[k] = re[t + 256 * k];
            ai[k] = im[t + 256 * k];
        }
        BARRIER();
    }
    for (int k = 0; k < 4; k++) {
        out[base + t + 256 * k] = ar[k];
        out[base + 1024 + t + 256 * k] = ai[k];
    }
}
