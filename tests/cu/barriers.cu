/* Barriers: the whole block, named, with a count of threads, arriving without waiting, reducing,
 * in divergent code, of a warp; threads that leave early.
 */
#include "run.cuh"

KERNEL(block)
{
    __shared__ unsigned s[2][128];
    unsigned v = threadIdx.x + blockIdx.x;

    for (int round = 0; round < 10; round++) {
        s[round & 1][threadIdx.x] = v;
        __syncthreads();
        v = s[round & 1][(threadIdx.x + 1) % blockDim.x] * 3 + 1;
    }
    out[ME] = v;
}

KERNEL(reducing)
{
    out[ME] = (unsigned)__syncthreads_count(threadIdx.x % 3 == 0) |
              (unsigned)(__syncthreads_and(threadIdx.x < 1000) != 0) << 10 |
              (unsigned)(__syncthreads_and(threadIdx.x < 50) != 0) << 11 |
              (unsigned)(__syncthreads_or(threadIdx.x == 77) != 0) << 12 |
              (unsigned)(__syncthreads_or(threadIdx.x == 777) != 0) << 13;
}

/* Two halves of a block, each at a barrier of its own. */
KERNEL(named)
{
    __shared__ unsigned s[128];
    const unsigned half = threadIdx.x / 64;
    unsigned v = threadIdx.x;

    for (unsigned round = 0; round < 4 + half * 3; round++) {
        s[threadIdx.x] = v;
        asm volatile("bar.sync %0, 64;" ::"r"(half + 1) : "memory");
        v = s[half * 64 + (threadIdx.x + 5) % 64] + 1;
        asm volatile("barrier.sync %0, 64;" ::"r"(half + 3) : "memory");
    }
    out[ME] = v;
}

/* A producer that arrives without waiting, and a consumer that waits. */
KERNEL(arriving)
{
    __shared__ unsigned s[64];

    if (threadIdx.x < 64) {
        s[threadIdx.x] = threadIdx.x * 11;
        __threadfence_block();
        asm volatile("bar.arrive 5, 128;" ::: "memory");
        out[ME] = 1;
    } else {
        asm volatile("bar.sync 5, 128;" ::: "memory");
        out[ME] = s[127 - threadIdx.x];
    }
}

/* A whole warp at a time takes part in a reduction at a named barrier. */
KERNEL(named_reducing)
{
    unsigned count;
    unsigned any;

    if (threadIdx.x < 64) {
        asm volatile("{\n\t.reg .pred p, q;\n\tsetp.lt.u32 p, %2, 20;\n\t"
                     "bar.red.popc.u32 %0, 7, 64, p;\n\t"
                     "bar.red.or.pred q, 8, 64, p;\n\tselp.u32 %1, 1, 0, q;\n\t}"
                     : "=r"(count), "=r"(any)
                     : "r"(threadIdx.x)
                     : "memory");
        out[ME] = count * 2 + any;
    } else {
        out[ME] = 5;
    }
}

/* Barriers in code that only some paths share: each thread of the block comes to the barrier, but
 * from different places. */
KERNEL(divergent)
{
    __shared__ unsigned s[64];

    s[threadIdx.x] = threadIdx.x;
    for (unsigned i = 0; i < 3; i++) {
        if (threadIdx.x / 32 == 0)
            s[threadIdx.x] += i;
        else
            s[threadIdx.x] *= 2;
        __syncthreads();
    }
    out[ME] = s[63 - threadIdx.x];
}

/* Threads that have ended do not keep the others waiting. */
KERNEL(leaving)
{
    __shared__ unsigned total;

    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    if (threadIdx.x >= 64)
        return;
    atomicAdd(&total, threadIdx.x);
    __syncthreads();
    out[ME] = total;
}

KERNEL(of_a_warp)
{
    __shared__ volatile unsigned s[64];
    const unsigned lane = threadIdx.x % 32;
    const unsigned base = threadIdx.x - lane;

    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    for (unsigned d = 16; d > 0; d /= 2) {
        unsigned v = 0;

        if (lane < d)
            v = s[base + lane + d];
        __syncwarp();
        if (lane < d)
            s[base + lane] += v;
        __syncwarp();
    }
    out[ME] = s[base];
    if (lane % 2) {
        __syncwarp(0xaaaaaaaa);
        out[ME] += s[base + lane];
    }
}

RUNS(
    RUN(block, 3, 128, 0, 384),
    RUN(block, 1, 100, 0, 100),
    RUN(reducing, 1, 128, 0, 128),
    RUN(named, 1, 128, 0, 128),
    RUN(arriving, 1, 128, 0, 128),
    RUN(named_reducing, 1, 96, 0, 96),
    RUN(divergent, 1, 64, 0, 64),
    RUN(leaving, 1, 128, 0, 128),
    RUN(of_a_warp, 1, 64, 0, 64))
