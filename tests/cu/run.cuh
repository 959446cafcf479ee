/* What a .cu program of this folder includes: the shape of its kernels, and main.
 *
 * A program is a list of kernels that fill words and a list of launches. Built by nvcc it runs them
 * through cudart; cu_run runs the same launches, read from the RUN lines of the source, from the
 * committed PTX through libcuda. Both print what came out, and golden/<program>.txt is what an H200
 * printed.
 */
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

/* extern "C": cu_run finds a kernel by its plain name. n is the number of words. */
#define KERNEL(name) extern "C" __global__ void name(unsigned *out, unsigned n)

/* The thread's number in the grid. */
#define ME (blockIdx.x * blockDim.x + threadIdx.x)

struct run {
    const char *name;
    const void *kernel;
    unsigned blocks;
    unsigned threads;
    unsigned shared;
    unsigned words;
    bool cooperative;
};

/* One launch a line. RUN: plain; TOGETHER: cooperative. */
#define RUN(name, blocks, threads, shared, words) \
    {#name, (const void *)name, blocks, threads, shared, words, false}
#define TOGETHER(name, blocks, threads, shared, words) \
    {#name, (const void *)name, blocks, threads, shared, words, true}

/* Every word, eight a line; of many words, a hash of every 32. */
static void
run_print(const char *name, const unsigned *words, unsigned count)
{
    const unsigned step = count > 256 ? 32 : 8;

    for (unsigned i = 0; i < count; i += step) {
        unsigned hash = 2166136261u;

        printf("%s[%u]:", name, i);
        for (unsigned j = i; j < i + step && j < count; j++) {
            if (step == 8)
                printf(" %08x", words[j]);
            hash = (hash ^ words[j]) * 16777619u;
        }
        if (step > 8)
            printf(" hash %08x", hash);
        printf("\n");
    }
}

static bool
run_one(const run &r)
{
    std::vector<unsigned> host(r.words);
    unsigned *out = nullptr;
    unsigned n = r.words;
    void *parameters[] = {&out, &n};

    cudaMalloc(&out, r.words * sizeof *out);
    cudaMemset(out, 0, r.words * sizeof *out);
    if (r.shared > 48 * 1024)
        cudaFuncSetAttribute(r.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, r.shared);

    cudaError_t e = r.cooperative
                        ? cudaLaunchCooperativeKernel(r.kernel, r.blocks, r.threads, parameters,
                                                      r.shared, 0)
                        : cudaLaunchKernel(r.kernel, r.blocks, r.threads, parameters, r.shared, 0);

    if (e == cudaSuccess)
        e = cudaDeviceSynchronize();
    if (e == cudaSuccess)
        cudaMemcpy(host.data(), out, r.words * sizeof *out, cudaMemcpyDeviceToHost);
    cudaFree(out);
    fflush(stdout);
    if (e != cudaSuccess) {
        printf("%s: error %d\n", r.name, (int)e);
        return false;
    }
    run_print(r.name, host.data(), r.words);
    fflush(stdout);
    return true;
}

/* All launches, up to the first error: nothing runs after one. */
#define RUNS(...)                                 \
    int main()                                    \
    {                                             \
        const run all[] = {__VA_ARGS__};          \
                                                  \
        for (const run &r : all) {                \
            if (!run_one(r))                      \
                return 0;                         \
        }                                         \
        return 0;                                 \
    }
