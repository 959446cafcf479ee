/* A program whose threads are clients of their own (heddle_set_client), for the tests of sharing.
 *
 *     record_clients SECONDS NAME...
 *     record_clients leave      waits for a line, launches, and ends without waiting for the GPU
 *
 * A thread for each name launches on a stream of its own and on a stream that all share. Each
 * launch adds 1 to a word of the thread or to a common one. On a GPU that runs kernels, the words
 * must be right at the end. Prints how many launches there were. */
#define HEDDLE_DYNAMIC
#include "heddle.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gen/cuda_front.h"

#define THREADS_MAX 8

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry work(.param .u64 p)\n{\n"
                          ".reg .b32 %r<2>;\n.reg .b64 %d<2>;\n"
                          "ld.param.u64 %d0, [p];\n"
                          "ld.global.u32 %r0, [%d0];\nadd.u32 %r0, %r0, 1;\n"
                          "st.global.u32 [%d0], %r0;\nret;\n}\n";

#define DRIVER(X)                                                                              \
    X(cuInit, (unsigned))                                                                      \
    X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                       \
    X(cuCtxSetCurrent, (CUcontext))                                                            \
    X(cuCtxSynchronize, (void))                                                                \
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

static CUcontext context;
static CUfunction function;
static CUdeviceptr words; /* one for each thread, then the common one */
static CUstream common;
static unsigned launches[THREADS_MAX];
static double seconds;
static const char *names[THREADS_MAX];
static const struct heddle_api *heddle;

#define MUST(call)                                          \
    do {                                                    \
        const CUresult must_ = (call);                      \
                                                            \
        if (must_ != CUDA_SUCCESS) {                        \
            fprintf(stderr, "%s: %d\n", #call, (int)must_); \
            exit(1);                                        \
        }                                                   \
    } while (0)

static void
launch_add(CUdeviceptr p, CUstream s)
{
    void *params[] = {&p};

    MUST(p_cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
    p = 0; /* it has been copied */
}

static volatile sig_atomic_t stopped;

static void
note_stop(int sig)
{
    (void)sig;
    stopped = 1;
}

static void *
work_as_client(void *arg)
{
    const size_t i = (size_t)(uintptr_t)arg;
    const uint64_t end = hed_now_ns() + (uint64_t)(seconds * 1e9);
    CUstream stream;

    if (heddle)
        heddle->set_client(names[i]);
    MUST(p_cuCtxSetCurrent(context));
    MUST(p_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    do {
        for (int k = 0; k < 8; k++) {
            launch_add(words + 4 * i, stream);
            launch_add(words + 4ull * THREADS_MAX, common);
        }
        launches[i] += 8;
        MUST(p_cuStreamSynchronize(stream));
    } while (hed_now_ns() < end && !stopped);
    return NULL;
}

static bool
load_driver(void)
{
    void *l = dlopen("libcuda.so.1", RTLD_NOW);

#define FIND(name, types) p_##name = l ? (CUresult(*) types)dlsym(l, #name) : NULL;
    DRIVER(FIND)
    return l && p_cuInit;
}

/* Launches, and ends the process without waiting for them. */
static int
launch_and_end(void)
{
    for (int i = 0; i < 3; i++)
        launch_add(words, common);
    MUST(p_cuStreamSynchronize(common));
    printf("ready\n");
    fflush(stdout);
    (void)getchar();
    for (int i = 0; i < 100; i++)
        launch_add(words, common);
    printf("100\n");
    return 0;
}

int
main(int argc, char **argv)
{
    const char *gpu = getenv("HEDDLE_GPU");
    unsigned seen[THREADS_MAX + 1] = {0};
    unsigned total = 0;
    CUmodule module;
    pthread_t threads[THREADS_MAX];
    const bool leaves = argc == 2 && strcmp(argv[1], "leave") == 0;
    const int count = argc - 2;

    if ((!leaves && count < 1) || count > THREADS_MAX || !load_driver())
        return 2;
    seconds = strtod(argv[1], NULL);
    (void)signal(SIGTERM, note_stop);
    MUST(p_cuInit(0));
    heddle = heddle_load();
    MUST(p_cuDevicePrimaryCtxRetain(&context, 0));
    MUST(p_cuCtxSetCurrent(context));
    MUST(p_cuModuleLoadData(&module, ptx));
    MUST(p_cuModuleGetFunction(&function, module, "work"));
    MUST(p_cuMemAlloc_v2(&words, 4ull * (THREADS_MAX + 1)));
    MUST(p_cuMemsetD32_v2(words, 0, THREADS_MAX + 1));
    MUST(p_cuStreamCreate(&common, CU_STREAM_NON_BLOCKING));
    if (leaves)
        return launch_and_end();
    for (int i = 0; i < count; i++) {
        names[i] = argv[2 + i];
        pthread_create(&threads[i], NULL, work_as_client, (void *)(uintptr_t)i);
    }
    printf("ready\n");
    fflush(stdout);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    MUST(p_cuCtxSynchronize());
    MUST(p_cuMemcpyDtoH_v2(seen, words, sizeof seen));
    for (int i = 0; i < count; i++) {
        total += launches[i];
        if (gpu && strncmp(gpu, "null", 4) != 0 && seen[i] != launches[i]) {
            fprintf(stderr, "client %d: %u of %u launches\n", i, seen[i], launches[i]);
            return 1;
        }
    }
    if (gpu && strncmp(gpu, "null", 4) != 0 && seen[THREADS_MAX] != total) {
        fprintf(stderr, "in common: %u of %u launches\n", seen[THREADS_MAX], total);
        return 1;
    }
    printf("%u\n", total);
    return 0;
}
