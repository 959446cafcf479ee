/* Machine code of memory, warps, branches and atomics, for fuzz_sass. */
extern "C" __global__ void
integers(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ unsigned s[64];
    unsigned a[8], i = threadIdx.x;

    s[i] = in[i];
    __syncthreads();
    for (unsigned k = 0; k < 8; k++)
        a[(k * 3 + i) % 8] = s[k];

    unsigned x = __shfl_xor_sync(~0u, a[s[i] % 8], 1) + __syncthreads_count(i < n);

    atomicAdd(out, x);
    out[i] = __ballot_sync(~0u, x & 1);
    switch (x % 7) {
    case 0: out[1] = 5; break;
    case 1: out[2] = in[3]; break;
    case 2: out[3] = ~x; break;
    case 3: out[x] = 4; break;
    case 4: atomicMax(s + 4, x); break;
    }
    ((unsigned long long *)out)[i + n] = ((unsigned long long *)in)[x] + x;
}
