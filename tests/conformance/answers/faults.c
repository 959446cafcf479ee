/* The effects of a kernel that fails: the error of every later call, for each kind of fault. */
#include "answers.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

static const char text[] =
    HEAD ".visible .entry none() { ret; }\n"
         ".visible .entry traps() { trap; }\n"
         ".visible .entry null_store()\n{\n"
         "    .reg .b64 %d<2>;\n    .reg .b32 %r<2>;\n"
         "    mov.u64 %d1, 16;\n    mov.u32 %r1, 1;\n    st.global.u32 [%d1], %r1;\n    ret;\n}\n"
         ".visible .entry odd_load(.param .u64 p)\n{\n"
         "    .reg .b64 %d<2>;\n    .reg .b32 %r<2>;\n"
         "    ld.param.u64 %d1, [p];\n    ld.global.u32 %r1, [%d1+2];\n"
         "    st.global.u32 [%d1], %r1;\n    ret;\n}\n"
         ".visible .entry odd_atomic(.param .u64 p)\n{\n"
         "    .reg .b64 %d<2>;\n    .reg .b32 %r<2>;\n"
         "    ld.param.u64 %d1, [p];\n    atom.global.add.u32 %r1, [%d1+1], 1;\n    ret;\n}\n"
         ".visible .entry far_shared(.param .u64 p)\n{\n"
         "    .reg .b32 %r<3>;\n    .reg .b64 %d<2>;\n"
         /* Values that the compiler does not know: 0x1000000, and bits that no pointer has. */
         "    ld.param.u64 %d1, [p];\n    shr.u64 %d1, %d1, 56;\n    cvt.u32.u64 %r1, %d1;\n"
         "    or.b32 %r1, %r1, 0x1000000;\n    mov.u32 %r2, 1;\n"
         "    st.shared.u32 [%r1], %r2;\n    ret;\n}\n"
         ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d,\n"
         "    .param .b64 e);\n"
         ".global .align 1 .b8 words[6] = {119, 114, 111, 110, 103, 0};\n"
         ".visible .entry asserts()\n{\n"
         "    .reg .b64 %d<3>;\n"
         "    mov.u64 %d1, words;\n    cvta.global.u64 %d2, %d1;\n"
         "    {\n    .param .b64 a;\n    .param .b64 b;\n    .param .b32 c;\n    .param .b64 d;\n"
         "    .param .b64 e;\n    st.param.b64 [a], %d2;\n    st.param.b64 [b], %d2;\n"
         "    st.param.b32 [c], 7;\n    st.param.b64 [d], %d2;\n    st.param.b64 [e], 1;\n"
         "    call __assertfail, (a, b, c, d, e);\n    }\n    ret;\n}\n"
         ".func deeper(.param .b32 n)\n{\n"
         "    .reg .b32 %r<4>;\n    .reg .pred %p<2>;\n    .reg .b64 %d<2>;\n"
         "    .local .align 16 .b8 room[1024];\n"
         "    ld.param.u32 %r1, [n];\n    mov.u64 %d1, room;\n    st.local.u32 [%d1], %r1;\n"
         "    setp.eq.u32 %p1, %r1, 0;\n    @%p1 ret;\n    sub.u32 %r2, %r1, 1;\n"
         "    {\n    .param .b32 m;\n    st.param.b32 [m], %r2;\n    call deeper, (m);\n    }\n"
         "    ld.local.u32 %r3, [%d1];\n    st.local.u32 [%d1+4], %r3;\n    ret;\n}\n"
         ".visible .entry overflows()\n{\n"
         "    .reg .b32 %r<2>;\n    mov.u32 %r1, 100000;\n"
         "    {\n    .param .b32 m;\n    st.param.b32 [m], %r1;\n    call deeper, (m);\n    }\n"
         "    ret;\n}\n";

static CUdeviceptr p;

static CUresult
run(CUmodule m, const char *name, CUstream s)
{
    void *parameters[] = {&p};
    CUfunction f;

    MUST(cuModuleGetFunction, &f, m, name);

    const CUresult r = CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, s, parameters, NULL);

    return r == CUDA_SUCCESS ? CU(cuCtxSynchronize)() : r;
}

/* The fault itself, and the answers of some calls after it, also in another context. */
static void
one_fault(const char *name)
{
    CUcontext second;
    CUcontext c;
    CUmodule m;
    CUdeviceptr q;
    unsigned flags;
    int active;
    int v;

    ask_context();
    MUST(cuModuleLoadData, &m, text);
    MUST(cuMemAlloc_v2, &p, 64);
    printf("a good kernel: %s\n", ask_result(run(m, "none", NULL)));
    printf("%s: %s\n", name, ask_result(run(m, name, NULL)));
    ASK(cuCtxSynchronize);
    ASK(cuMemAlloc_v2, &q, 64);
    ASK(cuMemcpyDtoH_v2, &v, p, 4);
    ASK(cuStreamQuery, NULL);
    ASK(cuMemFree_v2, p);
    ASK(cuDeviceGetAttribute, &v, 1, 0);
    ASK(cuCtxCreate_v2, &second, 0, 0);
    ASK(cuDevicePrimaryCtxGetState, 0, &flags, &active);
    SAY("active", active);
    ASK(cuDevicePrimaryCtxReset_v2, 0);
    ASK(cuDevicePrimaryCtxRetain, &c, 0);
}

static void
traps(void)
{
    one_fault("traps");
}

static void
null_store(void)
{
    one_fault("null_store");
}

static void
odd_load(void)
{
    one_fault("odd_load");
}

static void
odd_atomic(void)
{
    one_fault("odd_atomic");
}

static void
far_shared(void)
{
    one_fault("far_shared");
}

static void
asserts(void)
{
    one_fault("asserts");
}

static void
overflows(void)
{
    one_fault("overflows");
}

static int ran;

static void CUDA_CB
after(void *unused)
{
    ran = 1;
    (void)unused;
}

static void CUDA_CB
told(CUstream s, CUresult r, void *unused)
{
    printf("callback: %s\n", ask_result(r));
    (void)s;
    (void)unused;
}

/* Every kind of call on a context that is lost. */
static void
all_calls(void)
{
    CUcontext primary = ask_context();
    CUcontext c;
    CUmodule m;
    CUmodule m2;
    CUfunction f;
    CUstream s;
    CUstream s2;
    CUevent e;
    CUevent e2;
    CUdevice d;
    CUdeviceptr q;
    void *h;
    void *h2;
    size_t size;
    unsigned flags;
    int v;
    int w;

    MUST(cuModuleLoadData, &m, text);
    MUST(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
    MUST(cuEventCreate, &e, 0);
    MUST(cuMemAlloc_v2, &p, 64);
    MUST(cuMemHostAlloc, &h, 64, 0);
    MUST(cuModuleGetFunction, &f, m, "none");
    printf("trap: %s\n", ask_result(run(m, "traps", s)));
    ASK(cuStreamQuery, s);
    ASK(cuStreamSynchronize, s);
    ASK(cuEventQuery, e);
    ASK(cuEventRecord, e, s);
    ASK(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
    ASK(cuLaunchHostFunc, s, after, NULL);
    ASK(cuStreamAddCallback, s, told, NULL, 0);
    SAY("host function ran", ran);
    ASK(cuMemHostAlloc, &h2, 64, 0);
    ASK(cuMemcpyHtoD_v2, p, &v, 4);
    ASK(cuMemsetD8_v2, p, 0, 4);
    ASK(cuMemGetInfo_v2, &size, &size);
    ASK(cuCtxGetCurrent, &c);
    ASK(cuCtxGetDevice, &d);
    ASK(cuCtxGetFlags, &flags);
    ASK(cuCtxGetLimit, &size, 0);
    ASK(cuCtxSetLimit, 0, 2048);
    ASK(cuCtxGetCacheConfig, (CUfunc_cache *)&v);
    ASK(cuCtxGetStreamPriorityRange, &v, &w);
    ASK(cuCtxGetApiVersion, NULL, &flags);
    ASK(cuCtxGetApiVersion, primary, &flags);
    ASK(cuModuleGetFunction, &f, m, "none");
    ASK(cuModuleLoadData, &m2, text);
    ASK(cuFuncGetAttribute, &v, 0, f);
    ASK(cuStreamCreate, &s2, 0);
    ASK(cuStreamGetFlags, s, &flags);
    ASK(cuEventCreate, &e2, 0);
    ASK(cuMemAllocAsync, &q, 64, s);
    ASK(cuPointerGetAttribute, &v, 2, p);
    ASK(cuEventDestroy_v2, e);
    ASK(cuStreamDestroy_v2, s);
    ASK(cuMemFree_v2, p);
    ASK(cuMemFreeHost, h);
    ASK(cuModuleUnload, m);
    ASK(cuCtxPushCurrent_v2, primary);
    ASK(cuCtxPopCurrent_v2, &c);
    ASK(cuCtxSetCurrent, primary);
    ASK(cuDevicePrimaryCtxRetain, &c, 0);
    ASK(cuDevicePrimaryCtxRelease_v2, 0);
}

/* Another context of the same device, made before the fault. */
static void
other_context(void)
{
    CUcontext second;
    CUcontext third;
    CUmodule m;
    CUdeviceptr q;
    CUcontext primary = ask_context();

    MUST(cuModuleLoadData, &m, text);
    MUST(cuMemAlloc_v2, &p, 64);
    MUST(cuCtxCreate_v2, &second, 0, 0);
    MUST(cuMemAlloc_v2, &q, 64);
    MUST(cuCtxSetCurrent, primary);
    printf("trap: %s\n", ask_result(run(m, "traps", NULL)));
    ASK(cuCtxSetCurrent, second);
    ASK(cuCtxSynchronize);
    ASK(cuMemAlloc_v2, &q, 64);
    ASK(cuCtxDestroy_v2, second);
    ASK(cuCtxCreate_v2, &third, 0, 0);
}

ASK_MAIN({"traps", traps}, {"null_store", null_store}, {"odd_load", odd_load},
         {"odd_atomic", odd_atomic}, {"far_shared", far_shared}, {"asserts", asserts},
         {"overflows", overflows}, {"all_calls", all_calls}, {"other_context", other_context})
