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
