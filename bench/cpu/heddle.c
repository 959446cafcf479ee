/* The contestant that is heddle's CPU GPU, through the CUDA driver API. HED_LIBCUDA names the
 * library, HED_BENCH_PTX the folder with the kernels' PTX. */
#include <stdio.h>
#include <stdlib.h>

#include "../library.h"
#include "contestant.h"

static CUfunction function;
static CUdeviceptr device_buffers[MAX_BUFFERS];
static __typeof__(&cuLaunchKernel) launch_kernel;
static __typeof__(&cuCtxSynchronize) wait_for_all;

void
contestant_open(const struct bench_case *c, const struct job *job)
{
    const char *folder = getenv("HED_BENCH_PTX");
    char path[4096];
    CUmodule module;

    if (!folder) {
        fprintf(stderr, "HED_BENCH_PTX: not set\n");
        exit(1);
    }
    open_library();
    open_context();
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
