/* For tests of how processes end: a driver at work, and the cases.
 *
 * Every case runs in a process of its own, which must end by itself, in time, with STATUS.
 * `PROGRAM NAME` runs one case.
 */
#pragma once

#include "conformance/conf.h"

#define STATUS 7 /* the status of a case that passes, unlike that of a crash or a failed check */

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry fill(.param .u64 p, .param .u32 v)\n{\n"
    ".reg .b32 %r<6>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [v];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
    "mad.lo.u32 %r5, %r2, %r3, %r4;\nmul.wide.u32 %d2, %r5, 4;\nadd.u64 %d3, %d1, %d2;\n"
    "st.global.u32 [%d3], %r1;\nret;\n}\n"
    /* Writes to p[1], and runs until p[0] is written to. */
    ".visible .entry forever(.param .u64 p)\n{\n"
    ".reg .b32 %r<3>; .reg .b64 %d<2>; .reg .pred %q;\n"
    "ld.param.u64 %d1, [p];\nmov.u32 %r2, 1;\nst.volatile.global.u32 [%d1+4], %r2;\n"
    "AGAIN: ld.volatile.global.u32 %r1, [%d1];\nsetp.eq.u32 %q, %r1, 0;\n@%q bra AGAIN;\n"
    "ret;\n}\n";

static CUcontext context;
static CUmodule module;
static CUdeviceptr memory;

static inline void
start_driver(void)
{
    CHECK_IS(CU(cuInit)(0), CUDA_SUCCESS);
    CHECK_IS(CU(cuDevicePrimaryCtxRetain)(&context, 0), CUDA_SUCCESS);
    CHECK_IS(CU(cuCtxSetCurrent)(context), CUDA_SUCCESS);
    CHECK_IS(CU(cuModuleLoadData)(&module, ptx), CUDA_SUCCESS);
    CHECK_IS(CU(cuMemAlloc_v2)(&memory, 4096), CUDA_SUCCESS);
    CHECK_IS(CU(cuMemsetD8_v2)(memory, 0, 4096), CUDA_SUCCESS);
}

static inline void
launch_kernel(const char *name, CUstream s)
{
    uint32_t value = 5;
    CUfunction f;
    void *params[] = {&memory, &value};

    CHECK_IS(CU(cuModuleGetFunction)(&f, module, name), CUDA_SUCCESS);
    CHECK_IS(CU(cuLaunchKernel)(f, 8, 1, 1, 64, 1, 1, 0, s, params, NULL), CUDA_SUCCESS);
}

static inline void
works(void)
{
    uint32_t words[512];

    launch_kernel("fill", NULL);
    CHECK_IS(CU(cuMemcpyDtoH_v2)(words, memory, sizeof words), CUDA_SUCCESS);
    for (int i = 0; i < 512; i++)
        CHECK_IS(words[i], 5);
}

static inline int
status_of(pid_t child)
{
    int status;

    CHECK(waitpid(child, &status, 0) == child, "the child is gone");
    CHECK(WIFEXITED(status), "the child died of %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static inline int
is_refused(void)
{
    CUdeviceptr p;
    CUcontext c;
    int n;

    return CU(cuInit)(0) == CUDA_ERROR_NOT_INITIALIZED &&
           CU(cuMemAlloc_v2)(&p, 16) == CUDA_ERROR_NOT_INITIALIZED &&
           CU(cuCtxGetCurrent)(&c) == CUDA_ERROR_NOT_INITIALIZED &&
           CU(cuDeviceGetCount)(&n) == CUDA_ERROR_NOT_INITIALIZED &&
           CU(cuCtxSynchronize)() == CUDA_ERROR_NOT_INITIALIZED;
}

/* ---- cases ----------------------------------------------------------------------------------- */

struct ends_case {
    const char *name;
    void (*run)(void);
};

/* clang-format off */
#define CASE(name) {#name, name}
/* clang-format on */

static inline int
ends_run_case(const char *name)
{
    const pid_t child = fork();
    int status;

    CHECK(child >= 0, "no child");
    if (child == 0) {
        alarm(PATIENCE_S);
        execl("/proc/self/exe", name, name, (char *)NULL);
        _exit(126);
    }
    CHECK(waitpid(child, &status, 0) == child, "the child is gone");
    if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS)
        return 0;
    fprintf(stderr, "%s: %s %d\n", name, WIFEXITED(status) ? "status" : "signal",
            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return 1;
}

static inline int
ends_main(const struct ends_case *cases, size_t count, int argc, char **argv)
{
    int failures = 0;

    for (size_t i = 0; i < count; i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0)
            cases[i].run();
        if (argc == 1)
            failures += ends_run_case(cases[i].name);
    }
    return argc > 1 ? 1 : failures > 0;
}
