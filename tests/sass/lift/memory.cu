/* Loads and stores of all sizes and spaces, constants, asynchronous copies, fences. */
#include <cuda_pipeline.h>

#define I (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void
sizes(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I;
    const unsigned char *b = (const unsigned char *)in;
    const short *h = (const short *)in;

    out[i] = b[i * 3] + (signed char)b[i + 7] * 5 + h[i] + (unsigned short)h[i * 2 + 1];
    ((unsigned char *)(out + 1024))[i] = b[i];
    ((unsigned short *)(out + 2048))[i] = (unsigned short)h[i + 1];
    ((uint2 *)(out + 4096))[i] = ((const uint2 *)in)[i ^ 1];
    ((uint4 *)(out + 8192))[i] = ((const uint4 *)in)[i + 2];
    ((unsigned long long *)(out + 12288))[i] = ((const unsigned long long *)in)[i] + n;
}

extern "C" __global__ void
strong(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I;
    volatile unsigned *v = out + 1024 + i;

    *v = in[i];
    out[i] = *v + __ldg(in + i) + __ldcg(in + i + 1) + __ldcv(in + i + 2);
    __threadfence();
    __threadfence_block();
    __threadfence_system();
    out[i + 512] = *v + n;
}

struct pointers {
    const unsigned *p[2];
};

extern "C" __global__ void
shared(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ unsigned s[256];
    __shared__ uint4 q[96];
    extern __shared__ unsigned more[];
    const unsigned t = threadIdx.x, i = I;

    s[t] = in[i];
    q[t] = make_uint4(t, in[i], n, in[i + 1]);
    more[t * 2] = in[i + 5];
    more[t * 2 + 1] = i;
    __syncthreads();
    out[i] = s[(t * 7) % 96] + q[blockDim.x - 1 - t].y + more[(t + 50) % 96];
    ((uint4 *)(out + 4096))[i] = q[(t * 5) % 96];
    __syncthreads();
    ((unsigned char *)s)[t] = (unsigned char)in[i];
    ((unsigned short *)q)[t] = (unsigned short)in[i];
    __syncthreads();
    out[i + 1024] = ((signed char *)s)[(t + 1) % 96] + ((short *)q)[(t + 2) % 96];
}

extern "C" __global__ void
local(unsigned *out, const unsigned *in, unsigned n)
{
    unsigned a[32];
    const unsigned i = I;

    for (unsigned k = 0; k < 32; k++)
        a[(k * 5 + i) % 32] = in[i + k];
    for (unsigned k = 0; k < 32; k++)
        a[a[k] % 32] += in[k] ^ n;
    out[i] = a[in[i] % 32] + a[(in[i] >> 5) % 32];
}

__constant__ unsigned numbers[64] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9};
__device__ unsigned variable[64] = {2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5, 9, 0, 4, 5};
__device__ const unsigned *const address = variable + 3;

extern "C" __global__ void
constants(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I;

    out[i] = numbers[3] + numbers[in[i] % 64] + variable[in[i] % 64] + address[i % 5];
    out[i + 1024] = ((const unsigned char *)numbers)[in[i] % 60] +
                    ((const short *)numbers)[in[i] % 30] +
                    (unsigned)((const unsigned long long *)numbers)[in[i] % 30];
}

extern "C" __global__ void
table(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I;
    unsigned x = in[i];

    switch (in[i] % 9) {
    case 0: x += 5; break;
    case 1: x ^= n; break;
    case 2: x = in[i + 1] * 3; break;
    case 3: x = x << 3 | x >> 29; break;
    case 4: out[i + 2048] = 77; break;
    case 5: x -= in[i + 9]; break;
    case 6: x = ~x; break;
    case 7: x = x * x + i; break;
    }
    out[i] = x;
}

/* The parameters as words, chosen by a register. */
struct words {
    unsigned w[5];
};

extern "C" __global__ void
indexed_params(const __grid_constant__ words p)
{
    const unsigned i = I;
    unsigned *out = (unsigned *)(p.w[0] | (unsigned long long)p.w[1] << 32);
    const unsigned *in = (const unsigned *)(p.w[2] | (unsigned long long)p.w[3] << 32);

    unsigned x = 0;

#pragma unroll 1
    for (int k = 5; k > (int)(in[i] % 2) + 2; k--)
        x = x * 31 + p.w[k - 1];
    out[i] = p.w[in[i] % 3 + 2];
    out[i + 4096] = x;
}

/* More than half of what constants have room for. */
struct many_words {
    unsigned w[8185];
};

extern "C" __global__ void
large_params(unsigned *out, const unsigned *in, unsigned n, const __grid_constant__ many_words p)
{
    const unsigned i = I;

    out[i] = p.w[8180] * n + p.w[8176 + in[i] % 9];
    out[i + 4096] = p.w[in[i + 1] % 8185] ^ p.w[8184 - threadIdx.x];
}

extern "C" __global__ void
copies(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ uint4 s[96];
    __shared__ unsigned w[96];
    __shared__ uint2 d[96];
    const unsigned t = threadIdx.x, i = I;

    __pipeline_memcpy_async(&s[t], (const uint4 *)in + i, 16);
    __pipeline_commit();
    __pipeline_memcpy_async(&w[t], in + i, 4, t % 3 ? 0 : 4);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(d + t)),
                 "l"((const uint2 *)in + i), "r"(in[i] % 9));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[i] = s[(t + 1) % 96].z + w[(t + 2) % 96] + n;
    ((uint2 *)(out + 1024))[i] = d[(t + 3) % 96];
}

extern "C" __global__ void
spaces(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ unsigned s[96];
    unsigned mine[4] = {in[0], in[1], n, in[3]};
    const unsigned t = threadIdx.x, i = I;
    const unsigned *p;

    s[t] = in[i];
    __syncthreads();
    p = in[i] % 3 == 0 ? in + i : in[i] % 3 == 1 ? s + (t + 1) % 96 : mine + in[i + 1] % 4;
    out[i] = *p + __isShared(p) * 2 + __isGlobal(p) * 16;
}
