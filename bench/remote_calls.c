/* What does a program pay for its calls, wherever its GPU is? One process, driver API, any libcuda:
 * NVIDIA's own, heddle's on any backend.
 *
 *     remote_calls LIBRARY PREFIX [SECONDS-PER-ROW [launches | issue | calls | copies
 *                  [BATCHES [MEGABYTES]]]]
 *
 * The last two are for slow connections: how often calls are repeated, and how much is copied at
 * once. Prints `PREFIXname value unit`. bench/remote runs it over every transport beside the bare
 * primitives; tests/gpu runs it natively and over a server on a GPU. Rows are medians over batches,
 * and the best batch, because these machines are noisy. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "gen/cuda_abi.h"
#include "remote_kernel.h"

#define BATCHES 200 /* at most, and usually, as bench_wire_primitives has them */

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                          ".visible .entry empty(.param .u64 a, .param .u64 b, .param .u32 n)\n"
                          "{ ret; }\n";

/* The functions of the library that are used. */
#define FUNCTIONS(X)                                                                           \
    X(cuInit, (unsigned))                                                                      \
    X(cuDevicePrimaryCtxRetain, (CUcontext *, int))                                            \
    X(cuCtxSetCurrent, (CUcontext))                                                            \
    X(cuCtxSynchronize, (void))                                                                \
    X(cuModuleLoadData, (CUmodule *, const void *))                                            \
    X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                             \
    X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                       unsigned, CUstream, void **, void **))                                  \
    X(cuStreamCreate, (CUstream *, unsigned))                                                  \
    X(cuStreamSynchronize, (CUstream))                                                         \
    X(cuEventCreate, (CUevent *, unsigned))                                                    \
    X(cuEventDestroy_v2, (CUevent))                                                            \
    X(cuEventRecord, (CUevent, CUstream))                                                      \
    X(cuEventQuery, (CUevent))                                                                 \
    X(cuMemGetInfo_v2, (size_t *, size_t *))                                                   \
    X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                  \
    X(cuMemFree_v2, (CUdeviceptr))                                                             \
    X(cuMemAllocHost_v2, (void **, size_t))                                                    \
    X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                    \
    X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))

#define DECLARE(name, args) static CUresult(*name) args;
FUNCTIONS(DECLARE)
#undef DECLARE

static const char *prefix;
static int batches = BATCHES;
static size_t large = (size_t)128 << 20;
static CUfunction kernel;
static CUstream stream;
static CUdeviceptr memory;

static void
check_result(const char *what, CUresult r)
{
    if (r == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s%s: error %d\n", prefix, what, (int)r);
    exit(1);
}
#define DO(call) check_result(#call, call)

static void
open_library(const char *path)
{
    void *l = dlopen(path, RTLD_NOW);

    if (!l) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define FIND(name, args)                                \
    *(void **)&name = dlsym(l, #name);                  \
    if (!name) {                                        \
        fprintf(stderr, "%s has no " #name "\n", path); \
        exit(1);                                        \
    }
    FUNCTIONS(FIND)
#undef FIND
}

static void
launch_kernel(void)
{
    CUdeviceptr a = memory, b = memory;
    unsigned n = 1;
    void *params[] = {&a, &b, &n};

    DO(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

static void
set_up_device(void)
{
    CUcontext c;
    CUmodule m;

    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&c, 0));
    DO(cuCtxSetCurrent(c));
    if (cuModuleLoadData(&m, empty_cubin) != CUDA_SUCCESS ||
        cuModuleGetFunction(&kernel, m, "empty") != CUDA_SUCCESS)
        DO(cuModuleLoadData(&m, ptx));
    DO(cuModuleGetFunction(&kernel, m, "empty"));
    DO(cuStreamCreate(&stream, 1));
    DO(cuMemAlloc_v2(&memory, large));
    launch_kernel();
    DO(cuStreamSynchronize(stream));
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void
row_query(void)
{
    size_t free_bytes, total;

    DO(cuMemGetInfo_v2(&free_bytes, &total));
}

static void
row_alloc_free(void)
{
    CUdeviceptr p;

    DO(cuMemAlloc_v2(&p, 64 << 10));
    DO(cuMemFree_v2(p));
}

static void
row_event(void)
{
    CUevent e;

    DO(cuEventCreate(&e, 0));
    DO(cuEventDestroy_v2(e));
}

static void
row_launch_sync(void)
{
    launch_kernel();
    DO(cuStreamSynchronize(stream));
}

static void
row_ten_launches_sync(void)
{
    for (int i = 0; i < 10; i++)
        launch_kernel();
    DO(cuStreamSynchronize(stream));
}

static char small[8];

static void
row_small_in(void)
{
    DO(cuMemcpyHtoD_v2(memory, small, sizeof small));
}

static void
row_small_out(void)
{
    DO(cuMemcpyDtoH_v2(small, memory, sizeof small));
}

static int
by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median over batches of so many calls each. */
static void
time_row(const char *name, void (*row)(void), int calls)
{
    double us[BATCHES];

    for (int b = 0; b < batches; b++) {
        const uint64_t begin = hed_now_ns();

        for (int i = 0; i < calls; i++)
            row();
        us[b] = (double)(hed_now_ns() - begin) / 1e3 / calls;
    }
    qsort(us, (size_t)batches, sizeof us[0], by_size);
    printf("%s%s %.3f us\n", prefix, name, us[batches / 2]);
    printf("%s%s_best %.3f us\n", prefix, name, us[0]);
}

/* Only issuing: bursts, with a pause for the other side in between. */
static void
time_issue(void)
{
    enum { BURST = 128 };
    double us[BATCHES];

    for (int b = 0; b < batches; b++) {
        DO(cuStreamSynchronize(stream));

        const uint64_t begin = hed_now_ns();

        for (int i = 0; i < BURST; i++)
            launch_kernel();
        us[b] = (double)(hed_now_ns() - begin) / 1e3 / BURST;
    }
    qsort(us, (size_t)batches, sizeof us[0], by_size);
    printf("%slaunch_issue %.3f us\n", prefix, us[batches / 2]);
}

static void
time_sustained(double seconds)
{
    const uint64_t begin = hed_now_ns();
    uint64_t count = 0;

    do {
        for (int i = 0; i < 1000; i++)
            launch_kernel();
        count += 1000;
    } while ((double)(hed_now_ns() - begin) < seconds * 1e9);
    DO(cuStreamSynchronize(stream));
    printf("%slaunches %.3f M/s\n", prefix, (double)count / (double)(hed_now_ns() - begin) * 1e3);
}

static void
time_copies(const char *name, void *host)
{
    double best_in = 0, best_out = 0;

    memset(host, 1, large);
    for (int i = 0; i < 7; i++) {
        uint64_t begin = hed_now_ns();

        DO(cuMemcpyHtoD_v2(memory, host, large));

        const double in = (double)large / (double)(hed_now_ns() - begin);

        begin = hed_now_ns();
        DO(cuMemcpyDtoH_v2(host, memory, large));

        const double out = (double)large / (double)(hed_now_ns() - begin);

        best_in = in > best_in ? in : best_in;
        best_out = out > best_out ? out : best_out;
    }
    printf("%s%s_in %.2f GB/s\n", prefix, name, best_in);
    printf("%s%s_out %.2f GB/s\n", prefix, name, best_out);
}

/* Only launches, for several programs at once, and prints how many launches it made. */
static int
only_launches(double seconds)
{
    set_up_device();
    time_sustained(seconds);
    return 0;
}

static void
time_calls(double seconds)
{
    time_row("query", row_query, 200);
    time_issue();
    time_sustained(seconds);
    time_row("launch_sync", row_launch_sync, 200);
    time_row("10_launches_sync", row_ten_launches_sync, 50);
    time_row("alloc_free", row_alloc_free, 200);
    time_row("event_create_destroy", row_event, 200);
    time_row("copy_8B_in", row_small_in, 200);
    time_row("copy_8B_out", row_small_out, 200);
}

static int
time_both_copies(void)
{
    void *pinned, *pageable = malloc(large);

    if (!pageable)
        return 2;
    time_copies("copy_pageable", pageable);
    free(pageable);
    DO(cuMemAllocHost_v2(&pinned, large));
    time_copies("copy_pinned", pinned);
    return 0;
}

int
main(int argc, char **argv)
{
    const double seconds = argc > 3 ? atof(argv[3]) : 1.0;
    const char *what = argc > 4 ? argv[4] : "";

    if (argc > 5)
        batches = (int)strtol(argv[5], NULL, 10);
    if (argc > 6)
        large = (size_t)strtoull(argv[6], NULL, 10) << 20;
    if (argc < 3 || batches < 1 || batches > BATCHES || large == 0)
        return 2;
    prefix = argv[2];
    open_library(argv[1]);
    if (strcmp(what, "launches") == 0)
        return only_launches(seconds);
    set_up_device();
    if (strcmp(what, "issue") == 0) {
        time_issue();
        return 0;
    }
    if (strcmp(what, "copies") != 0)
        time_calls(seconds);
    return strcmp(what, "calls") == 0 ? 0 : time_both_copies();
}
