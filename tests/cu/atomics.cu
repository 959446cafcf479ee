/* Atomic operations: every operation and type, in global and shared memory, at every scope; results
 * that do not depend on the order of the threads.
 */
#include "run.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

KERNEL(integers)
{
    if (ME == 0)
        out[4] = 0xffffffff;
    if (ME == 0)
        out[2] = 0x7fffffff;
    __syncthreads();
    atomicAdd(out + 0, ME);
    atomicSub(out + 1, 3u);
    atomicMin((int *)out + 2, (int)ME - 5);
    atomicMax(out + 3, ME * 7);
    atomicAnd(out + 4, ~(1u << (ME % 32)) | 0xff);
    atomicOr(out + 5, 1u << (ME % 20));
    atomicXor(out + 6, ME);
    atomicInc(out + 7, 10);
    atomicDec(out + 8, 10);
    atomicMax((int *)out + 9, -(int)ME);
    atomicMin(out + 10, ME);
}

KERNEL(wide)
{
    unsigned long long *p = (unsigned long long *)out;

    atomicAdd(p + 0, (unsigned long long)ME << 30);
    atomicMax(p + 1, (unsigned long long)ME << 33);
    atomicOr(p + 2, 1ull << (ME % 64));
    atomicXor(p + 3, (unsigned long long)ME * 0x100000001ull);
    atomicMin((long long *)p + 4, -(long long)ME << 32);
    atomicExch(p + 5, 0x500000005ull);
}

KERNEL(floats)
{
    atomicAdd((float *)out + 0, 0.5f * (float)(ME % 8));
    atomicAdd((double *)out + 1, 0.25 * (double)ME);
    atomicAdd((__half *)out + 8, __float2half(0.5f));
    atomicAdd((__half2 *)out + 5, __floats2half2_rn(1.f, 0.25f));
    atomicAdd((__nv_bfloat162 *)out + 6, __floats2bfloat162_rn(1.f, 0.5f));
}

/* The sum of the values that exchanges and additions returned, each once. */
KERNEL(returned)
{
    const unsigned a = atomicAdd(out + 0, 1u);

    atomicAdd(out + 1, a);
    atomicXor(out + 2, a * a);

    const unsigned i = atomicInc(out + 3, 6);

    atomicAdd(out + 4 + i, 1u);
}

KERNEL(swap)
{
    for (bool done = false; !done;) {
        const unsigned old = *(volatile unsigned *)out;

        done = atomicCAS(out, old, old + ME) == old;
    }
    if (atomicCAS(out + 1, 0, 77) == 0)
        atomicAdd(out + 2, 1u);
    atomicCAS((unsigned short *)out + 6, (unsigned short)0, (unsigned short)9);
    atomicCAS((unsigned long long *)out + 2, 0ull, 0x1234567890ull);
}

KERNEL(in_shared)
{
    __shared__ unsigned s[8];
    __shared__ unsigned long long w;
    __shared__ float f;

    if (threadIdx.x < 8)
        s[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        w = 0;
        f = 0;
    }
    __syncthreads();
    atomicAdd(s + threadIdx.x % 4, threadIdx.x);
    atomicMax(s + 4, threadIdx.x * 3);
    atomicInc(s + 5, 20);
    atomicCAS(s + 6, 0, 5);
    atomicExch(s + 7, 6);
    atomicAdd(&w, (unsigned long long)threadIdx.x << 32);
    atomicAdd(&f, 0.125f);
    __syncthreads();
    if (threadIdx.x < 8)
        out[blockIdx.x * 16 + threadIdx.x] = s[threadIdx.x];
    if (threadIdx.x == 8) {
        out[blockIdx.x * 16 + 8] = (unsigned)(w >> 32);
        out[blockIdx.x * 16 + 9] = __float_as_uint(f);
    }
}

KERNEL(scopes)
{
    atomicAdd_block(out + 0, 1);
    atomicAdd_system(out + 1, 2);
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], 3;" ::"l"(out + 2) : "memory");
    asm volatile("red.release.sys.global.max.u32 [%0], %1;" ::"l"(out + 3), "r"(ME) : "memory");

    unsigned r;

    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 4;" : "=r"(r) : "l"(out + 4) : "memory");
    asm volatile("atom.acquire.cta.or.b32 %0, [%1], %2;"
                 : "=r"(r)
                 : "l"(out + 5), "r"(1u << (ME % 32))
                 : "memory");
    atomicOr(out + 7, r);
    asm volatile("fence.sc.gpu; fence.acq_rel.sys; membar.cta;" ::: "memory");
    asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(out + 6), "r"(0x3c003800) : "memory");
}

/* A counter that the blocks of a grid pass to each other. */
KERNEL(last_block)
{
    __shared__ bool last;

    atomicAdd(out + 1 + blockIdx.x % 4, threadIdx.x);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicInc(out, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (last && threadIdx.x == 0)
        out[5] = *(volatile unsigned *)(out + 1) + *(volatile unsigned *)(out + 2) +
                 *(volatile unsigned *)(out + 3) + *(volatile unsigned *)(out + 4);
}

RUNS(
    RUN(integers, 1, 256, 0, 16),
    RUN(wide, 4, 64, 0, 12),
    RUN(floats, 4, 64, 0, 8),
    RUN(returned, 7, 64, 0, 16),
    RUN(swap, 2, 48, 0, 8),
    RUN(in_shared, 2, 96, 0, 32),
    RUN(scopes, 2, 64, 0, 8),
    RUN(last_block, 20, 64, 0, 8))
