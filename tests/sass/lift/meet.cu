/* Lanes that part and meet again before they act together. */

/* Lanes leave a loop one by one; then all of them must take part. */
extern "C" __global__ void
after_loop(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned lane = threadIdx.x & 31;
    unsigned x = in[threadIdx.x] + lane * 2654435761u + n, steps = 0;

    while ((x & 15) != 3 && steps < 40) {
        x = x * 1664525u + 1013904223u;
        steps++;
    }
    out[threadIdx.x] = __shfl_xor_sync(0xffffffff, x, 5) + __popc(__ballot_sync(0xffffffff, x & 16));
}

/* Two ways through an if, with a loop in one of them, inside of another loop. */
extern "C" __global__ void
after_branches(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned x = in[threadIdx.x] + n, sum = 0;

    for (unsigned i = 0; i < 8; i++) {
        if (x & 1) {
            for (unsigned k = 0; k < (x & 7); k++)
                x = x * 747796405u + k;
        } else {
            x = (x >> 3) ^ in[i];
        }
        sum += __shfl_down_sync(0xffffffff, x, 1) ^ __reduce_add_sync(0xffffffff, x);
    }
    out[threadIdx.x] = sum;
}
