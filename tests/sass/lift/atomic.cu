/* Atomic operations on global, shared and generic memory, whose results do not depend on the order
 * of lanes. */
#include <cuda_fp16.h>

#define I (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void
sums(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I;

    atomicAdd(out + i % 7, in[i]);
    atomicMin((int *)out + 64 + i % 5, (int)in[i]);
    atomicMax((int *)out + 128 + i % 5, (int)in[i]);
    atomicMin(out + 192 + i % 3, in[i] & 1);
    atomicMax(out + 256 + i % 3, in[i]);
    atomicAnd(out + 320 + i % 3, in[i]);
    atomicOr(out + 384 + i % 3, in[i] & in[i + 1]);
    atomicXor(out + 448 + i % 3, in[i]);
    atomicInc(out + 512 + i % 3, 1000);
    atomicDec(out + 576 + i % 3, n);
    atomicAdd((unsigned long long *)(out + 640) + i % 3, ((const unsigned long long *)in)[i]);
    atomicMax((long long *)(out + 704) + i % 3, ((const long long *)in)[i]);
    atomicAdd((float *)out + 768 + i % 3, (float)(in[i] % 64));
    atomicAdd((double *)(out + 832) + i % 3, (double)(in[i] % 1024));
    atomicAdd((__half2 *)(out + 896) + i % 3, __floats2half2_rn(in[i] % 4, in[i] % 2));
}

extern "C" __global__ void
olds(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = I;
    unsigned *mine = out + 4096 + i * 4;

    mine[0] = in[i];
    out[i] = atomicExch(mine, in[i + 1]) + atomicCAS(mine, in[i + 1], n) + atomicAdd(mine, 5);
    out[i + 1024] = atomicCAS(mine, in[i], n) + mine[0];
    ((unsigned long long *)(out + 2048))[i] =
        atomicCAS((unsigned long long *)(mine + 2), 0ull, (unsigned long long)in[i] << 20);
    out[i + 3072] = (unsigned)(atomicExch((unsigned long long *)(mine + 2), 7ull) >> 20);
    atomicAdd_system(mine, 3);
    atomicAdd_block(mine, 4);
}

extern "C" __global__ void
in_shared(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ unsigned s[96];
    __shared__ unsigned long long d[8];
    __shared__ float f[4];
    const unsigned t = threadIdx.x, i = I;

    s[t] = 0;
    if (t < 8)
        d[t] = t;
    if (t < 4)
        f[t] = 0;
    __syncthreads();
    atomicAdd(s + in[i] % 5, in[i]);
    atomicAdd(s + 7, 1);
    atomicMax((int *)s + 8, (int)in[i]);
    atomicXor(s + 9, in[i]);
    atomicAdd(d + in[i] % 3, (unsigned long long)in[i] << 4);
    atomicMin(d + 4, (unsigned long long)in[i] << 9);
    atomicAdd(f + 1, (float)(in[i] % 32));
    __syncthreads();
    out[i] = s[t];
    out[i + 1024] = (unsigned)d[t % 8] + (unsigned)(d[t % 8] >> 32) + n;
    out[i + 2048] = __float_as_uint(f[t % 4]);
    __syncthreads();
    out[i + 3072] = atomicCAS(s + t, in[i], n) + atomicExch(s + t, i);
}

extern "C" __global__ void
in_any(unsigned *out, const unsigned *in, unsigned n)
{
    __shared__ unsigned s[96];
    const unsigned t = threadIdx.x, i = I;
    unsigned *p = in[i] & 1 ? s + t : out + 4096 + i;

    s[t] = n;
    __syncthreads();
    atomicAdd(p, in[i]);
    out[i] = atomicCAS(p, n + in[i], i) + *p;
    __syncthreads();
    out[i + 1024] = s[t];
}
