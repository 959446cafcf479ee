/* Shared by the programs of bench/share: a context, a kernel that takes a known time, percentiles.
 * They run on any libcuda: NVIDIA's own, and heddle's on any backend. */
#pragma once

#include "conformance/conf.h"

#include "base/clock.h"

#define MUST(call) CHECK_IS(call, CUDA_SUCCESS)

/* `spin` does a fixed amount of work, so it takes longer if it is preempted. Each step needs the
 * one before it, and the last is stored, so that no compiler can leave any out. */
static const char bench_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry empty(.param .u64 a, .param .u64 b, .param .u32 c, .param .u32 d) { ret; }\n"
    ".visible .entry spin(.param .u64 out, .param .u32 steps)\n{\n"
    ".reg .pred %q;\n.reg .b32 %r<4>;\n.reg .b64 %d<2>;\n"
    "ld.param.u64 %d0, [out];\nld.param.u32 %r0, [steps];\n"
    "mov.u32 %r1, 0;\nmov.u32 %r2, %tid.x;\n"
    "again:\nmad.lo.u32 %r2, %r2, 1664525, 1013904223;\nadd.u32 %r1, %r1, 1;\n"
    "setp.lt.u32 %q, %r1, %r0;\n@%q bra again;\n"
    "st.global.u32 [%d0], %r2;\nret;\n}\n";

struct bench_gpu {
    CUcontext context;
    CUmodule module;
    CUfunction empty, spin;
    CUdeviceptr out;
    __typeof__(&cuLaunchKernel) launch;
    __typeof__(&cuStreamSynchronize) wait;
};

static inline struct bench_gpu
bench_begin(void)
{
    struct bench_gpu g;

    MUST(CU(cuInit)(0));
    MUST(CU(cuDevicePrimaryCtxRetain)(&g.context, 0));
    MUST(CU(cuCtxSetCurrent)(g.context));
    MUST(CU(cuModuleLoadData)(&g.module, bench_ptx));
    MUST(CU(cuModuleGetFunction)(&g.empty, g.module, "empty"));
    MUST(CU(cuModuleGetFunction)(&g.spin, g.module, "spin"));
    MUST(CU(cuMemAlloc_v2)(&g.out, 4096));
    g.launch = CU(cuLaunchKernel);
    g.wait = CU(cuStreamSynchronize);
    return g;
}

static inline int
bench_order(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of sorted values. */
static inline double
bench_at(const double *sorted, size_t n, double part)
{
    const size_t i = (size_t)(part * (double)n);

    return n == 0 ? 0 : sorted[i < n ? i : n - 1];
}
