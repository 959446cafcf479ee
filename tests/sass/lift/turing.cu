/* What sm_75 has an instruction of its own for. */

/* A load of 16 bytes from one address. */
extern "C" __global__ void
one_address(uint4 *out, const uint4 *__restrict__ in, unsigned n)
{
    uint4 all = make_uint4(1, 2, 3, 4);

    if (n > 1)
        all = in[blockIdx.x];
    all.x += threadIdx.x;
    out[blockIdx.x * blockDim.x + threadIdx.x] = all;
}
