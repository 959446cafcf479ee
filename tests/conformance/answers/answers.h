/* Included by programs whose answers are compared with those of an H200.
 *
 * Such a program prints one line `question: answer` for every question, and judges nothing:
 * agree.py compares the lines with golden/<program>.txt, which comes from NVIDIA's driver. Each
 * case runs in a child of its own, so that a lost context affects nothing else. Values that differ
 * from run to run (addresses, times) are not printed, and no question makes NVIDIA's driver crash.
 */
#pragma once

#include "../conf.h"

#ifndef HED_CUDA_H
/* cuda.h's names for the versions that are meant, and its macros, which our types do without. */
#define CUDA_MEMCPY2D CUDA_MEMCPY2D_v2
#define CUDA_MEMCPY3D CUDA_MEMCPY3D_v2
#define CUDA_ARRAY_DESCRIPTOR CUDA_ARRAY_DESCRIPTOR_v2
#define CUDA_ARRAY3D_DESCRIPTOR CUDA_ARRAY3D_DESCRIPTOR_v2
#define CUDA_RESOURCE_DESC CUDA_RESOURCE_DESC_v1
#define CUDA_RESOURCE_VIEW_DESC CUDA_RESOURCE_VIEW_DESC_v1
#define CUDA_TEXTURE_DESC CUDA_TEXTURE_DESC_v1
#define CUDA_KERNEL_NODE_PARAMS CUDA_KERNEL_NODE_PARAMS_v2
#define CUDA_MEMSET_NODE_PARAMS CUDA_MEMSET_NODE_PARAMS_v1
#define CUDA_HOST_NODE_PARAMS CUDA_HOST_NODE_PARAMS_v1
#define CUmemPoolProps CUmemPoolProps_v1
#define CUmemLocation CUmemLocation_v1
#define CUmemAccessDesc CUmemAccessDesc_v1
#define CUmemAllocationProp CUmemAllocationProp_v1
#define CUmemcpyAttributes CUmemcpyAttributes_v1
#define CUDA_MEM_ALLOC_NODE_PARAMS CUDA_MEM_ALLOC_NODE_PARAMS_v1
#define CUgraphExecUpdateResultInfo CUgraphExecUpdateResultInfo_v1
#define CUstreamBatchMemOpParams CUstreamBatchMemOpParams_v1
#define CUDA_CB
#endif

struct ask_case {
    const char *name;
    void (*run)(void);
};

/* Ends the case if its next answer does not come: a hang is an answer, too ("ended: signal 14").
 * Each answer has that long, because a case may compile hundreds of kernels on a busy machine. */
static inline void
ask_patiently(void)
{
    alarm(PATIENCE_S);
}

/* The error's name without its prefix, "ok" for success, or the number if it has no name. */
static inline const char *
ask_result(CUresult r)
{
    static _Thread_local char number[16];
    const char *name = NULL;

    ask_patiently();
    if (r == CUDA_SUCCESS)
        return "ok";
    if (CU(cuGetErrorName)(r, &name) == CUDA_SUCCESS && name)
        return strncmp(name, "CUDA_ERROR_", 11) == 0 ? name + 11 : name;
    snprintf(number, sizeof number, "%d", (int)r);
    return number;
}

/* ASK(cuMemFree_v2, 0) prints "cuMemFree_v2(0): ok". */
#define ASK(name, ...) \
    printf("%s(%s): %s\n", #name, #__VA_ARGS__, ask_result(CU(name)(__VA_ARGS__)))

/* A question in words, and its result. */
#define ASK_AS(words, name, ...) printf("%s: %s\n", words, ask_result(CU(name)(__VA_ARGS__)))

/* A value that a call gave. */
#define SAY(words, value) printf("%s: %lld\n", words, (long long)(value))

/* A call that must succeed, because the rest depends on it. */
#define MUST(name, ...)                                                                     \
    do {                                                                                    \
        const CUresult must_ = CU(name)(__VA_ARGS__);                                       \
                                                                                            \
        CHECK(must_ == CUDA_SUCCESS, "%s(%s): %s", #name, #__VA_ARGS__, ask_result(must_)); \
    } while (0)

/* Calls cuInit and makes the first device's primary context current. */
static inline CUcontext
ask_context(void)
{
    CUcontext context;

    MUST(cuInit, 0);
    MUST(cuDevicePrimaryCtxRetain, &context, 0);
    MUST(cuCtxSetCurrent, context);
    return context;
}

/* A kernel of PTX text. */
static inline CUfunction
ask_kernel(const char *ptx, const char *name)
{
    CUmodule module;
    CUfunction function;

    MUST(cuModuleLoadData, &module, ptx);
    MUST(cuModuleGetFunction, &function, module, name);
    return function;
}

/* Runs all cases, or the one that is named. The parent makes no CUDA call. */
static inline int
ask_all(int argc, char **argv, const struct ask_case *cases, size_t count)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* Lines that were printed before a crash count. */
    for (size_t i = 0; i < count; i++) {
        int status = 0;

        if (argc > 1 && strcmp(argv[1], cases[i].name) != 0)
            continue;
        printf("[%s]\n", cases[i].name);
        fflush(stdout);

        const pid_t child = fork();

        CHECK(child >= 0, "no child");
        if (child == 0) {
            ask_patiently();
            cases[i].run();
            exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child, "the child is gone");
        if (WIFSIGNALED(status))
            printf("ended: signal %d\n", WTERMSIG(status));
        else if (WEXITSTATUS(status) != 0)
            printf("ended: status %d\n", WEXITSTATUS(status));
    }
    return 0;
}

#define ASK_MAIN(...)                                                      \
    int main(int argc, char **argv)                                        \
    {                                                                      \
        static const struct ask_case cases[] = {__VA_ARGS__};              \
                                                                           \
        return ask_all(argc, argv, cases, sizeof cases / sizeof cases[0]); \
    }
