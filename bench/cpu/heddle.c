/* The contestant that is heddle's CPU GPU, through the CUDA driver API. HED_LIBCUDA names the
 * library, HED_BENCH_PTX the folder with the kernels' PTX. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "contestant.h"
#include "gen/cuda_front.h"

static void *library;
static CUfunction function;
static CUdeviceptr device_buffers[MAX_BUFFERS];
static __typeof__(&cuLaunchKernel) launch_kernel;
static __typeof__(&cuCtxSynchronize) wait_for_all;

static void *
library_symbol(const char *name)
{
    void *p = dlsym(library, name);

    if (!p) {
        fprintf(stderr, "%s is missing\n", name);
        exit(1);
    }
    return p;
}

#define CU(name) ((__typeof__(&(name)))library_symbol(#name))

#define MUST(call)                                             \
    do {                                                       \
        const CUresult r_ = (call);                            \
                                                               \
        if (r_ != CUDA_SUCCESS) {                              \
            fprintf(stderr, "%s failed with %d\n", #call, r_); \
            exit(1);                                           \
        }                                                      \
    } while (0)

void
contestant_open(const struct bench_case *c, const struct job *job)
{
    const char *folder = getenv("HED_BENCH_PTX");
    char path[4096];
    CUcontext context;
    CUmodule module;

    library = dlopen(getenv("HED_LIBCUDA"), RTLD_NOW);
    if (!library || !folder) {
        fprintf(stderr, "HED_LIBCUDA or HED_BENCH_PTX: %s\n", folder ? dlerror() : "not set");
        exit(1);
    }
    MUST(CU(cuInit)(0));
    MUST(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    MUST(CU(cuCtxSetCurrent)(context));
    for (int i = 0; i < job->buffer_count; i++) {
        const struct buffer *b = &job->buffers[i];

        MUST(CU(cuMemAlloc_v2)(&device_buffers[i], b->bytes));
        MUST(CU(cuMemcpyHtoD_v2)(device_buffers[i], b->data, b->bytes));
    }
    snprintf(path, sizeof path, "%s/%s.ptx", folder, c->file);
    MUST(CU(cuModuleLoad)(&module, path));
    MUST(CU(cuModuleGetFunction)(&function, module, c->kernel));
    launch_kernel = CU(cuLaunchKernel);
    wait_for_all = CU(cuCtxSynchronize);
}

void
contestant_run(const struct job *job, int count)
{
    const unsigned *g = job->grid, *b = job->block;
    void *parameters[MAX_ARGUMENTS];

    for (int i = 0; i < job->argument_count; i++) {
        const struct argument *a = &job->arguments[i];

        parameters[i] = a->buffer >= 0 ? (void *)&device_buffers[a->buffer] : (void *)&a->i;
    }
    for (int i = 0; i < count; i++)
        MUST(
            launch_kernel(function, g[0], g[1], g[2], b[0], b[1], b[2], 0, NULL, parameters, NULL));
    MUST(wait_for_all());
}

void
contestant_fetch(struct job *job)
{
    for (int i = 0; i < job->buffer_count; i++) {
        struct buffer *b = &job->buffers[i];

        if (b->is_output)
            MUST(CU(cuMemcpyDtoH_v2)(b->data, device_buffers[i], b->bytes));
    }
}
