/* Lanes that come to an operation at different places. For these, compilers make functions of
 * WARPSYNC, the operation and RET, which lanes call from everywhere. */

extern "C" __global__ void
shuffles(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned lane = threadIdx.x & 31, count = 3 + (n & 1);
    unsigned v = in[threadIdx.x], sum = 0;

    if (lane < 5) {
        for (unsigned i = 0; i < count; i++) {
            for (unsigned by = 16; by; by >>= 1)
                v += __shfl_xor_sync(0xffffffff, v, by);
            out[96 * (blockIdx.x * 8 + i) + threadIdx.x] = v;
            v = v * 747796405u + lane;
        }
    } else {
        for (unsigned i = 0; i < count; i++) {
            for (unsigned by = 16; by; by >>= 1)
                v += __shfl_xor_sync(0xffffffff, v, by);
            sum ^= v;
            v = (v >> 3) + in[i];
        }
    }
    out[96 * (blockIdx.x * 8 + 7) + threadIdx.x] = sum;
}

extern "C" __global__ void
votes(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned x = in[threadIdx.x] + n;
    unsigned a, b, c;

    if (x & 4) {
        a = __ballot_sync(0xffffffff, x & 1);
        b = __match_any_sync(0xffffffff, x & 3);
        c = __reduce_add_sync(0xffffffff, x >> 8);
    } else {
        a = __ballot_sync(0xffffffff, x & 2) + 1;
        b = __match_any_sync(0xffffffff, x & 7) + 1;
        c = __reduce_add_sync(0xffffffff, x >> 16) + 1;
    }
    out[96 * blockIdx.x + threadIdx.x] = a ^ b * 3 ^ c * 5;
}

/* These functions have two operations on lanes behind their WARPSYNC. */
extern "C" __global__ void
unanimous_votes(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned x = in[threadIdx.x] + n;
    int all, any, same, some;
    unsigned who, where;

    if (threadIdx.x % 3 == 0) {
        all = __all_sync(0xffffffff, threadIdx.x < 40);
        any = __any_sync(0xffffffff, x == in[5]);
        who = __match_all_sync(0xffffffff, threadIdx.x / 32, &same);
        where = __match_all_sync(0xffffffff, (unsigned long long)x, &some);
    } else {
        all = __all_sync(0xffffffff, threadIdx.x < 70) << 1;
        any = __any_sync(0xffffffff, x == in[7]) << 1;
        who = __match_all_sync(0xffffffff, threadIdx.x / 32, &same) << 1;
        where = __match_all_sync(0xffffffff, (unsigned long long)threadIdx.x, &some) + 1;
    }
    out[96 * blockIdx.x + threadIdx.x] = all ^ any * 4 ^ who * 3 ^ where * 7 ^ same * 16 ^ some * 64;
}

/* The lanes that are left after some have ended are the active ones. */
extern "C" __global__ void
left_over(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned lane = threadIdx.x & 31, x = in[threadIdx.x] + n;
    unsigned r;

    if (lane > 27)
        return;
    if (x & 1) {
        r = __ballot_sync(0xffffffff, x & 2);
        r += __activemask() == 0;
    } else {
        r = __ballot_sync(0xffffffff, x & 4) + 1;
        r += __shfl_sync(0xffffffff, x, 3);
    }
    out[96 * blockIdx.x + threadIdx.x] = r;
}
