/* Special registers, votes, shuffles, matches, reductions, barriers. */
#define I (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void
specials(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned v[8];

    asm volatile("mov.u32 %0, %%laneid; mov.u32 %1, %%lanemask_eq; mov.u32 %2, %%lanemask_lt;"
                 "mov.u32 %3, %%lanemask_le; mov.u32 %4, %%lanemask_gt; mov.u32 %5, %%lanemask_ge;"
                 "mov.u32 %6, %%warpid; mov.u32 %7, %%nctaid.x;"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]), "=r"(v[5]),
                   "=r"(v[6]), "=r"(v[7]));
    for (unsigned k = 0; k < 8; k++)
        out[I * 8 + k] = v[k];
    out[8192 + I] = threadIdx.y + blockIdx.y * 2 + blockDim.x * 3 + gridDim.z + n + in[0];
}

extern "C" __global__ void
votes(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I, x = in[i];

    out[i] = __ballot_sync(~0u, x & 1) + __all_sync(~0u, x != n) * 2 + __any_sync(~0u, x % 64 == 3);
    if (x & 4)
        out[i + 1024] = __activemask() ^ __ballot_sync(__activemask(), x & 8);
    out[i + 2048] = __popc(__ballot_sync(~0u, x % 3 == 0));
}

extern "C" __global__ void
shuffles(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I;
    unsigned x = in[i], y;

    for (int k = 16; k; k >>= 1)
        x += __shfl_xor_sync(~0u, x, k);
    y = __shfl_up_sync(~0u, in[i + 1], 3, 16) ^ __shfl_down_sync(~0u, in[i + 2], 2, 8);
    out[i] = x + y + __shfl_sync(~0u, in[i + 3], in[i] % 32);
    if (x > n && (i & 3))
        out[i + 1024] = __shfl_sync(__activemask(), i, __ffs(__activemask()) - 1);
}

extern "C" __global__ void
matches(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I;
    int all;

    out[i] = __match_any_sync(~0u, in[i] % 5);
    out[i + 1024] = __match_any_sync(~0u, (unsigned long long)(in[i] % 3) << 33);
    out[i + 2048] = __match_all_sync(~0u, in[i] % 2 + n, &all) + all;
    out[i + 3072] = __match_all_sync(~0u, n, &all) + all;
}

extern "C" __global__ void
reductions(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I, x = in[i];

    out[i] = __reduce_add_sync(~0u, x) + __reduce_min_sync(~0u, x) * 3 + __reduce_max_sync(~0u, x);
    out[i + 1024] = __reduce_and_sync(~0u, x | 5) + __reduce_or_sync(~0u, x & 0xf0f0) +
                    __reduce_xor_sync(~0u, x);
    out[i + 2048] = __reduce_min_sync(~0u, (int)x) - __reduce_max_sync(~0u, (int)x) + n;
}

extern "C" __global__ void
barriers(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I, x = in[i];

    out[i] = __syncthreads_count(x % 3 == 0);
    out[i + 1024] = __syncthreads_and(x != n) + 2 * __syncthreads_or(x % 512 == 1);
    __syncwarp();
    out[i + 2048] = __syncthreads_and(x % 512 == 1) + 2 * __syncthreads_or(x == n);
}

extern "C" __global__ void
divergent(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I;
    unsigned x = in[i], sum = 0;

    for (unsigned k = 0; k < x % 17; k++) {
        if ((x >> k) & 1)
            continue;
        sum += in[i + k];
        if (sum % 7 == 0)
            break;
    }
    __syncwarp();
    out[i] = sum + __shfl_xor_sync(~0u, sum, 1) + n;
}
