/* Graphs as programs use them: built by hand or captured, launched many times, changed in between.
 * The program checks the results. It runs on local GPUs and on remote ones, where some graphs have
 * a mirror in the worker and others run node by node. A program must not see a difference. */
#include "conformance/conf.h"

#include <stdatomic.h>

#define COUNT 256u /* elements */
#define BYTES (COUNT * sizeof(uint32_t))

/* add: p[i] += v. times: p[i] *= v. */
static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 p, .param .u32 v)\n{\n"
    ".reg .b32 %r<8>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [v];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
    "mad.lo.u32 %r5, %r2, %r3, %r4;\nmul.wide.u32 %d2, %r5, 4;\nadd.u64 %d3, %d1, %d2;\n"
    "ld.global.u32 %r6, [%d3];\nadd.u32 %r7, %r6, %r1;\nst.global.u32 [%d3], %r7;\nret;\n}\n"
    ".visible .entry times(.param .u64 p, .param .u32 v)\n{\n"
    ".reg .b32 %r<8>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [v];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
    "mad.lo.u32 %r5, %r2, %r3, %r4;\nmul.wide.u32 %d2, %r5, 4;\nadd.u64 %d3, %d1, %d2;\n"
    "ld.global.u32 %r6, [%d3];\nmul.lo.u32 %r7, %r6, %r1;\nst.global.u32 [%d3], %r7;\nret;\n}\n";

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)

static CUfunction add, times;
static CUstream one, two;
static CUdeviceptr memory, other;

static void
set_up_device(void)
{
    CUcontext context;
    CUmodule module;

    OK(CU(cuInit)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    OK(CU(cuCtxSetCurrent)(context));
    OK(CU(cuModuleLoadData)(&module, ptx));
    OK(CU(cuModuleGetFunction)(&add, module, "add"));
    OK(CU(cuModuleGetFunction)(&times, module, "times"));
    OK(CU(cuMemAlloc_v2)(&memory, BYTES));
    OK(CU(cuMemAlloc_v2)(&other, BYTES));
    OK(CU(cuStreamCreate)(&one, CU_STREAM_NON_BLOCKING));
    OK(CU(cuStreamCreate)(&two, CU_STREAM_NON_BLOCKING));
}

static void
set_elements(CUdeviceptr at, uint32_t value)
{
    OK(CU(cuMemsetD32_v2)(at, value, COUNT));
}

static void
expect_elements(CUdeviceptr at, uint32_t value)
{
    uint32_t got[COUNT];

    OK(CU(cuStreamSynchronize)(one));
    OK(CU(cuStreamSynchronize)(two));
    OK(CU(cuMemcpyDtoH_v2)(got, at, BYTES));
    for (unsigned i = 0; i < COUNT; i++)
        CHECK_IS(got[i], value);
}

static CUDA_KERNEL_NODE_PARAMS_v2
kernel(CUfunction f, void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS_v2){.func = f,
                                        .gridDimX = COUNT / 64,
                                        .gridDimY = 1,
                                        .gridDimZ = 1,
                                        .blockDimX = 64,
                                        .blockDimY = 1,
                                        .blockDimZ = 1,
                                        .kernelParams = params};
}

static void
launch_kernel(CUfunction f, CUdeviceptr at, uint32_t value, CUstream s)
{
    void *params[] = {&at, &value};

    OK(CU(cuLaunchKernel)(f, COUNT / 64, 1, 1, 64, 1, 1, 0, s, params, NULL));
}

/* ---- by hand --------------------------------------------------------------------------------- */

static void
made_by_hand(void)
{
    uint32_t value = 5;
    void *params[] = {&memory, &value};
    CUDA_KERNEL_NODE_PARAMS_v2 k = kernel(add, params);
    const CUDA_MEMSET_NODE_PARAMS_v1 fill = {
        .dst = memory, .value = 10, .elementSize = 4, .width = COUNT, .height = 1};
    const CUDA_MEMCPY3D_v2 copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                   .srcDevice = memory,
                                   .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                   .dstDevice = other,
                                   .WidthInBytes = BYTES,
                                   .Height = 1,
                                   .Depth = 1};
    CUgraphNode a, b, c, d, empty, child;
    CUgraphExecUpdateResultInfo_v1 info;
    CUgraph g, inner;
    CUgraphExec e;
    CUcontext ctx;

    OK(CU(cuCtxGetCurrent)(&ctx));
    OK(CU(cuGraphCreate)(&inner, 0));
    OK(CU(cuGraphAddKernelNode_v2)(&a, inner, NULL, 0, &k));
    OK(CU(cuGraphCreate)(&g, 0));
    OK(CU(cuGraphAddMemsetNode)(&b, g, NULL, 0, &fill, ctx));
    OK(CU(cuGraphAddEmptyNode)(&empty, g, &b, 1));
    OK(CU(cuGraphAddChildGraphNode)(&child, g, &empty, 1, inner));
    k.func = times;
    value = 2;
    OK(CU(cuGraphAddKernelNode_v2)(&c, g, &child, 1, &k));
    OK(CU(cuGraphAddMemcpyNode)(&d, g, &c, 1, &copy, ctx));
    OK(CU(cuGraphInstantiateWithFlags)(&e, g, 0));
    set_elements(other, 0);
    OK(CU(cuGraphLaunch)(e, one));
    expect_elements(other, (10 + 5) * 2);
    OK(CU(cuGraphLaunch)(e, two));
    expect_elements(other, (10 + 5) * 2);

    value = 3;
    OK(CU(cuGraphExecKernelNodeSetParams_v2)(e, c, &k));
    value = 99; /* it was read when it was set */
    OK(CU(cuGraphLaunch)(e, one));
    expect_elements(other, (10 + 5) * 3);

    OK(CU(cuGraphNodeSetEnabled)(e, c, 0));
    OK(CU(cuGraphLaunch)(e, one));
    expect_elements(other, 10 + 5);
    OK(CU(cuGraphNodeSetEnabled)(e, c, 1));

    value = 4;
    OK(CU(cuGraphKernelNodeSetParams_v2)(c, &k));
    OK(CU(cuGraphExecUpdate_v2)(e, g, &info));
    OK(CU(cuGraphUpload)(e, one));
    OK(CU(cuGraphLaunch)(e, one));
    expect_elements(other, (10 + 5) * 4);
    OK(CU(cuGraphExecDestroy)(e));
    OK(CU(cuGraphDestroy)(g));
    OK(CU(cuGraphDestroy)(inner));
}

/* Launches before a change use the values of before. */
static void
changed_while_it_runs(void)
{
    uint32_t value = 1;
    void *params[] = {&memory, &value};
    const CUDA_KERNEL_NODE_PARAMS_v2 k = kernel(add, params);
    CUgraphNode n;
    CUgraphExec e;
    CUgraph g;

    set_elements(memory, 0);
    OK(CU(cuGraphCreate)(&g, 0));
    OK(CU(cuGraphAddKernelNode_v2)(&n, g, NULL, 0, &k));
    OK(CU(cuGraphInstantiateWithFlags)(&e, g, 0));
    for (value = 1; value <= 50; value++) {
        OK(CU(cuGraphExecKernelNodeSetParams_v2)(e, n, &k));
        OK(CU(cuGraphLaunch)(e, value % 2 ? one : two));
    }
    OK(CU(cuGraphExecDestroy)(e)); /* while it may be running */
    expect_elements(memory, 50 * 51 / 2);
    OK(CU(cuGraphDestroy)(g));
}

/* ---- captured -------------------------------------------------------------------------------- */

static _Atomic unsigned calls;

static void
called(void *data)
{
    atomic_fetch_add(&calls, *(unsigned *)data);
}

/* Two streams, joined by events, with a function and memory of the program, which only this process
 * has. */
static void
captured(void)
{
    static unsigned by = 3;
    uint32_t pageable[COUNT], back[COUNT];
    CUevent fork, join;
    CUgraphExec e, bare;
    CUgraph g;
    uint32_t *pinned;

    OK(CU(cuMemHostAlloc)((void **)&pinned, BYTES, 0));
    OK(CU(cuEventCreate)(&fork, CU_EVENT_DISABLE_TIMING));
    OK(CU(cuEventCreate)(&join, CU_EVENT_DISABLE_TIMING));
    OK(CU(cuStreamBeginCapture_v2)(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(CU(cuMemcpyHtoDAsync_v2)(memory, pageable, BYTES, one));
    OK(CU(cuEventRecord)(fork, one));
    OK(CU(cuStreamWaitEvent)(two, fork, 0));
    OK(CU(cuMemcpyHtoDAsync_v2)(other, pinned, BYTES, two));
    launch_kernel(add, other, 7, two);
    launch_kernel(times, memory, 2, one);
    OK(CU(cuEventRecord)(join, two));
    OK(CU(cuStreamWaitEvent)(one, join, 0));
    OK(CU(cuLaunchHostFunc)(one, called, &by));
    OK(CU(cuMemcpyDtoHAsync_v2)(back, memory, BYTES, one));
    OK(CU(cuMemcpyDtoHAsync_v2)(pinned, other, BYTES, one));
    OK(CU(cuStreamEndCapture)(one, &g));
    OK(CU(cuGraphInstantiateWithFlags)(&e, g, 0));
    for (unsigned turn = 1; turn <= 3; turn++) {
        for (unsigned i = 0; i < COUNT; i++) {
            pageable[i] = i + turn;
            pinned[i] = 1000 * turn;
        }
        OK(CU(cuGraphLaunch)(e, one));
        OK(CU(cuStreamSynchronize)(one));
        for (unsigned i = 0; i < COUNT; i++) {
            CHECK_IS(back[i], 2 * (i + turn));
            CHECK_IS(pinned[i], 1000 * turn + 7);
        }
        CHECK_IS(atomic_load(&calls), 3 * turn);
    }

    /* The launch of a graph can itself be captured. */
    CUgraph outer;

    OK(CU(cuStreamBeginCapture_v2)(two, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(CU(cuGraphLaunch)(e, two));
    OK(CU(cuStreamEndCapture)(two, &outer));
    OK(CU(cuGraphInstantiateWithFlags)(&bare, outer, 0));
    OK(CU(cuGraphLaunch)(bare, two));
    OK(CU(cuStreamSynchronize)(two));
    CHECK_IS(atomic_load(&calls), 12);
    OK(CU(cuGraphExecDestroy)(bare));
    OK(CU(cuGraphExecDestroy)(e));
    OK(CU(cuGraphDestroy)(outer));
    OK(CU(cuGraphDestroy)(g));
    OK(CU(cuMemFreeHost)(pinned));
}

/* ---- events and memory ----------------------------------------------------------------------- */

static void
events_in_graphs(void)
{
    uint32_t value = 1;
    void *params[] = {&memory, &value};
    const CUDA_KERNEL_NODE_PARAMS_v2 k = kernel(add, params);
    CUgraphNode n, last;
    CUevent before, begin, end;
    CUgraphExec e;
    CUgraph g;
    float ms = -1;

    set_elements(memory, 0);
    OK(CU(cuEventCreate)(&before, 0));
    OK(CU(cuEventCreate)(&begin, 0));
    OK(CU(cuEventCreate)(&end, 0));
    OK(CU(cuGraphCreate)(&g, 0));
    OK(CU(cuGraphAddEventWaitNode)(&n, g, NULL, 0, before));
    OK(CU(cuGraphAddEventRecordNode)(&last, g, &n, 1, begin));
    for (int i = 0; i < 20; i++) {
        n = last;
        OK(CU(cuGraphAddKernelNode_v2)(&last, g, &n, 1, &k));
    }
    n = last;
    OK(CU(cuGraphAddEventRecordNode)(&last, g, &n, 1, end));
    OK(CU(cuGraphInstantiateWithFlags)(&e, g, 0));
    launch_kernel(times, memory, 0, two);
    launch_kernel(add, memory, 100, two);
    OK(CU(cuEventRecord)(before, two));
    OK(CU(cuGraphLaunch)(e, one));
    OK(CU(cuEventSynchronize)(end));
    OK(CU(cuEventQuery)(begin));
    OK(CU(cuEventElapsedTime_v2)(&ms, begin, end));
    CHECK(ms >= 0 && ms < 60000, "%f ms", (double)ms);
    expect_elements(memory, 120);
    OK(CU(cuStreamWaitEvent)(two, end, 0));
    launch_kernel(add, memory, 1, two);
    expect_elements(memory, 121);
    OK(CU(cuGraphExecDestroy)(e));
    OK(CU(cuGraphDestroy)(g));
}

static void
memory_of_graphs(void)
{
    CUdeviceptr own = 0;
    CUgraphExec e;
    CUgraph g;

    set_elements(memory, 3);
    OK(CU(cuStreamBeginCapture_v2)(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(CU(cuMemAllocAsync)(&own, BYTES, one));
    OK(CU(cuMemcpyDtoDAsync_v2)(own, memory, BYTES, one));
    launch_kernel(add, own, 4, one);
    OK(CU(cuMemcpyDtoDAsync_v2)(memory, own, BYTES, one));
    OK(CU(cuMemFreeAsync)(own, one));
    OK(CU(cuStreamEndCapture)(one, &g));
    OK(CU(cuGraphInstantiateWithFlags)(&e, g, 0));
    for (int i = 0; i < 3; i++)
        OK(CU(cuGraphLaunch)(e, one));
    expect_elements(memory, 3 + 3 * 4);
    OK(CU(cuGraphExecDestroy)(e));
    OK(CU(cuGraphDestroy)(g));
}

static void
arrays_in_graphs(void)
{
    const CUDA_ARRAY3D_DESCRIPTOR_v2 d = {
        .Width = 16, .Height = 16, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
    CUDA_MEMCPY2D_v2 in = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = memory,
                           .srcPitch = 64,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .WidthInBytes = 64,
                           .Height = 16};
    CUDA_MEMCPY2D_v2 out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = other,
                            .dstPitch = 64,
                            .WidthInBytes = 64,
                            .Height = 16};
    CUgraphExec e;
    CUarray a;
    CUgraph g;

    OK(CU(cuArray3DCreate_v2)(&a, &d));
    in.dstArray = out.srcArray = a;
    set_elements(memory, 77);
    set_elements(other, 0);
    OK(CU(cuStreamBeginCapture_v2)(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(CU(cuMemcpy2DAsync_v2)(&in, one));
    OK(CU(cuMemcpy2DAsync_v2)(&out, one));
    OK(CU(cuStreamEndCapture)(one, &g));
    OK(CU(cuGraphInstantiateWithFlags)(&e, g, 0));
    OK(CU(cuGraphLaunch)(e, one));
    expect_elements(other, 77);
    OK(CU(cuGraphExecDestroy)(e));
    OK(CU(cuGraphDestroy)(g));
    OK(CU(cuArrayDestroy)(a));
}

static void
values_in_graphs(void)
{
    CUstreamBatchMemOpParams_v1 op = {0};
    const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 none = {.count = 1, .paramArray = &op};
    CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 params = none;
    CUgraphNode n;
    CUgraphExec e;
    CUgraph g;
    uint32_t got = 0;

    op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    op.writeValue.address = memory;
    op.writeValue.value = 4711;
    OK(CU(cuCtxGetCurrent)(&params.ctx));
    OK(CU(cuGraphCreate)(&g, 0));
    OK(CU(cuGraphAddBatchMemOpNode)(&n, g, NULL, 0, &params));
    OK(CU(cuGraphInstantiateWithFlags)(&e, g, 0));
    OK(CU(cuGraphLaunch)(e, one));
    OK(CU(cuStreamSynchronize)(one));
    OK(CU(cuMemcpyDtoH_v2)(&got, memory, sizeof got));
    CHECK_IS(got, 4711);
    OK(CU(cuGraphExecDestroy)(e));
    OK(CU(cuGraphDestroy)(g));
}

int
main(void)
{
    set_up_device();
    made_by_hand();
    changed_while_it_runs();
    captured();
    events_in_graphs();
    memory_of_graphs();
    arrays_in_graphs();
    values_in_graphs();
    OK(CU(cuCtxSynchronize)());
    return 0;
}
