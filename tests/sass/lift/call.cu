/* Calls of functions that the driver brings along. */
#include <cassert>
#include <cstdio>

extern "C" __global__ void
prints(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (in[i] % 3 == 0)
        printf("%u of %u\n", in[i], n);
    assert(n != 3);
    out[i] = in[i];
}

/* The function's address is loaded in several places, by a register that is set in another block. */
extern "C" __global__ void
prints_in_a_loop(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    for (unsigned k = 0; k < n % 64; k++) {
        if (in[k] % 61 == 1)
            printf("%u\n", k);
        if (in[k] % 61 == 2)
            printf("%u %u\n", k, i);
    }
    out[i] = in[i];
}
