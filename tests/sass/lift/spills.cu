/* Values for which a kernel has no register: words, pairs and quads, uniform ones too, over loops,
 * guards and barriers. Beside them, a kernel that also indexes an array in local memory. lift.py
 * makes sure that compilers still spill here. */
#define I (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void __maxnreg__(24)
spills(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I;
    unsigned v[24];
    double d[6];

#pragma unroll
    for (int k = 0; k < 24; k++)
        v[k] = in[(i + k) & 511] * (k + 1);
#pragma unroll
    for (int k = 0; k < 6; k++)
        d[k] = (double)(in[(i * 3 + k) & 511] & 0xffff) / (k + 1);
    for (unsigned round = 0; round < (n & 7) + 3; round++) {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 24; k++)
            v[k] = v[(k + 5) % 24] + (v[k] >> 3) + round;
#pragma unroll
        for (int k = 0; k < 6; k++)
            d[k] = d[(k + 1) % 6] * 1.5 + (double)(v[k] & 255);
        if (v[3] & 1)
            v[7] ^= v[11];
    }
#pragma unroll
    for (int k = 0; k < 24; k++)
        out[i * 32 + k] = v[k];
#pragma unroll
    for (int k = 0; k < 6; k++)
        out[i * 32 + 24 + k] = (unsigned)(long long)d[k];
}

extern "C" __global__ void __maxnreg__(24)
spills_and_array(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I;
    unsigned v[20], a[16];

#pragma unroll
    for (int k = 0; k < 20; k++)
        v[k] = in[(i + k) & 511] + k;
    for (unsigned k = 0; k < 16; k++)
        a[(k * 5 + i) & 15] = v[3] + k;
#pragma unroll
    for (int k = 0; k < 20; k++)
        out[i * 32 + k] = v[k] * v[(k + 7) % 20] + a[(in[i] + k) & 15] + n;
}

extern "C" __global__ void __maxnreg__(24)
spilled_quads(uint4 *out, const uint4 *in, unsigned n)
{
    const unsigned i = I;
    uint4 q[8];

#pragma unroll
    for (int k = 0; k < 8; k++)
        q[k] = in[(i + k) & 127];
    __syncthreads();
    for (unsigned round = 0; round < (n & 3) + 2; round++)
#pragma unroll
        for (int k = 0; k < 8; k++) {
            q[k].x += q[(k + 3) & 7].w;
            q[k].z ^= q[(k + 1) & 7].y + round;
        }
#pragma unroll
    for (int k = 0; k < 8; k++)
        out[i * 8 + k] = q[k];
}
