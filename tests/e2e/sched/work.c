/* A program for the tests of sharing: launches kernels for SECONDS, or until SIGTERM, and checks
 * their results.
 *
 *     sched_work SECONDS [PAUSE_US [LAUNCHES_PER_SYNC]]
 *
 * Prints how many launches there were, at least one. A kernel adds 1 to a word, after some work: on
 * a GPU that runs kernels, the word must be that number at the end. No compiler can leave the work
 * out: it is a chain of random numbers, and whether 1 is added depends on the last one, which is
 * not 0. */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "gen/cuda_front.h"

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry work(.param .u64 p, .param .u32 n)\n{\n"
                          ".reg .pred %q;\n.reg .b32 %r<4>;\n.reg .b64 %d<2>;\n"
                          "ld.param.u64 %d0, [p];\nld.param.u32 %r0, [n];\nmov.u32 %r1, 0;\n"
                          "mov.u32 %r3, 1;\n"
                          "again:\nmad.lo.u32 %r3, %r3, 1664525, 1013904223;\n"
                          "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %q, %r1, %r0;\n"
                          "@%q bra again;\n"
                          "setp.ne.u32 %q, %r3, 0;\n"
                          "ld.global.u32 %r2, [%d0];\n@%q add.u32 %r2, %r2, 1;\n"
                          "st.global.u32 [%d0], %r2;\nret;\n}\n";

#define DRIVER(X)                                                                              \
    X(cuInit, (unsigned))                                                                      \
    X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                       \
    X(cuCtxSetCurrent, (CUcontext))                                                            \
    X(cuModuleLoadData, (CUmodule *, const void *))                                            \
    X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                             \
    X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                  \
    X(cuMemsetD32_v2, (CUdeviceptr, unsigned, size_t))                                         \
    X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                          \
    X(cuStreamCreate, (CUstream *, unsigned))                                                  \
    X(cuStreamSynchronize, (CUstream))                                                         \
    X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                       unsigned, CUstream, void **, void **))

#define DECLARE(name, types) static CUresult(*p_##name) types;
DRIVER(DECLARE)

static bool
load_driver(void)
{
    void *l = dlopen("libcuda.so.1", RTLD_NOW);

#define FIND(name, types) p_##name = l ? (CUresult(*) types)dlsym(l, #name) : NULL;
    DRIVER(FIND)
    return l && p_cuInit;
}

#define MUST(call)                                          \
    do {                                                    \
        const CUresult must_ = (call);                      \
                                                            \
        if (must_ != CUDA_SUCCESS) {                        \
            fprintf(stderr, "%s: %d\n", #call, (int)must_); \
            exit(1);                                        \
        }                                                   \
    } while (0)

static volatile sig_atomic_t stopped;

static void
note_stop(int sig)
{
    (void)sig;
    stopped = 1;
}

int
main(int argc, char **argv)
{
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
    const long pause_us = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    const long per_sync = argc > 3 ? strtol(argv[3], NULL, 10) : 64;
    const char *gpu = getenv("HEDDLE_GPU");
    CUcontext context;
    CUmodule module;
    CUfunction f;
    CUstream stream;
    CUdeviceptr p;
    unsigned n = 200000;
    unsigned done = 0;
    unsigned launches = 0;
    void *params[] = {&p, &n};

    if (!load_driver())
        return 77;
    (void)signal(SIGTERM, note_stop);
    MUST(p_cuInit(0));
    MUST(p_cuDevicePrimaryCtxRetain(&context, 0));
    MUST(p_cuCtxSetCurrent(context));
    MUST(p_cuModuleLoadData(&module, ptx));
    MUST(p_cuModuleGetFunction(&f, module, "work"));
    MUST(p_cuMemAlloc_v2(&p, 4));
    MUST(p_cuMemsetD32_v2(p, 0, 1));
    MUST(p_cuStreamCreate(&stream, 0));
    printf("ready\n");
    fflush(stdout);

    const uint64_t end = hed_now_ns() + (uint64_t)(seconds * 1e9);

    do {
        long i = 0;

        do {
            MUST(p_cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
            launches++;
        } while (++i < per_sync && hed_now_ns() < end && !stopped);
        MUST(p_cuStreamSynchronize(stream));
        if (pause_us)
            usleep((useconds_t)pause_us);
    } while (hed_now_ns() < end && !stopped);
    MUST(p_cuStreamSynchronize(stream));
    MUST(p_cuMemcpyDtoH_v2(&done, p, 4));
    printf("%u\n", launches);
    if (gpu && strncmp(gpu, "null", 4) != 0 && done != launches) {
        fprintf(stderr, "%u launches, %u done\n", launches, done);
        return 1;
    }
    return 0;
}
