/* A kernel and its variable, for lift_ways.c. */
__device__ unsigned factor = 3;

extern "C" __global__ void
fill(unsigned *out, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = i * factor;
}
