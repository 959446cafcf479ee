/* Kernels that launch kernels, at the limits: more launches than may be pending, children that
 * their parent waits for in a loop, launches that are nested too deep, a child that fails, and
 * bytes that are filled with something else than 0. A GPU promises less than this, so the results
 * are not those of one: an H200 with driver 580 loses launches of `many`, and
 * CUDA 13.0's library ignores the value of a fill. Built with -rdc=true.
 */
#include "run.cuh"

__global__ void
count(unsigned *out)
{
    atomicAdd(out, 1);
}

/* 64 threads launch 4096 kernels; the limit is 2048 of them. */
KERNEL(many)
{
    for (unsigned i = 0; i < 64; i++)
        count<<<1, 1>>>(out);
    atomicAdd(&out[1], cudaGetLastError() != cudaSuccess);
}

/* Nothing of these can begin before the parent has ended. */
KERNEL(many_tails)
{
    for (unsigned i = 0; i < 2050; i++)
        count<<<1, 1, 0, cudaStreamTailLaunch>>>(out);
    out[1] = cudaGetLastError();
    out[2] = cudaGetLastError();
}

/* Copies and fills are launches, too. They say less about what is wrong. */
KERNEL(copies_behind_many_tails)
{
    for (unsigned i = 0; i < 2048; i++)
        count<<<1, 1, 0, cudaStreamTailLaunch>>>(out);
    out[1] = cudaGetLastError();
    out[2] = cudaMemcpyAsync(out + 8, out, 4, cudaMemcpyDeviceToDevice, cudaStreamTailLaunch);
    out[3] = cudaGetLastError();
    out[4] =
        cudaMemcpy2DAsync(out + 8, 4, out, 4, 4, 1, cudaMemcpyDeviceToDevice, cudaStreamTailLaunch);
    out[5] = cudaMemsetAsync(out + 8, 0, 4, cudaStreamTailLaunch);
    out[6] = cudaMemset2DAsync(out + 8, 4, 0, 4, 1, cudaStreamTailLaunch);
    out[7] = cudaGetLastError();
}

__global__ void
set(unsigned *out)
{
    *(volatile unsigned *)out = 1;
}

__global__ void
wait_for_child(unsigned *out)
{
    set<<<1, 1, 0, cudaStreamFireAndForget>>>(out);
    while (*(volatile unsigned *)out == 0)
        ;
    out[1] = 2;
}

KERNEL(waits)
{
    if (threadIdx.x == 0) {
        wait_for_child<<<1, 1, 0, cudaStreamFireAndForget>>>(out);
        while (((volatile unsigned *)out)[1] == 0)
            ;
        out[2] = 3;
    }
    __syncthreads();
    if (threadIdx.x == 1)
        out[3] = out[2] + 1;
}

KERNEL(fills)
{
    out[14] = cudaMemsetAsync(out + 2, 0x111, 5, 0);
    out[15] = cudaMemset2DAsync(out + 4, 3 * sizeof *out, 0x22, sizeof *out, 3, 0);
}

__global__ void
nest(unsigned *out)
{
    out[0]++;
    nest<<<1, 1>>>(out);
    if (cudaPeekAtLastError() != cudaSuccess)
        out[1] = cudaGetLastError();
}

/* The first grid and 2048 below it. */
KERNEL(too_deep)
{
    out[0]++;
    nest<<<1, 1>>>(out);
}

__global__ void
fault(unsigned *out)
{
    *(volatile unsigned *)8 = 1;
}

/* The parent ends, too, though it waits for something that will never come. */
KERNEL(child_fails)
{
    fault<<<1, 1>>>(out);
    count<<<1, 1>>>(out);
    while (*(volatile unsigned *)out == 0)
        ;
}

RUNS(
    RUN(many, 2, 32, 0, 2),
    RUN(many_tails, 1, 1, 0, 4),
    RUN(copies_behind_many_tails, 1, 1, 0, 8),
    RUN(waits, 1, 32, 0, 4),
    RUN(fills, 1, 1, 0, 16),
    RUN(too_deep, 1, 1, 0, 2),
    RUN(child_fails, 1, 1, 0, 1))
