/* Graphs, built node by node or captured: instantiating, updating, launching; wrong use. */
#include "answers.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

/* p[0] = p[0] * factor + 1 */
static const char text[] =
    HEAD ".visible .entry step(.param .u64 p, .param .u32 factor)\n{\n"
         "    .reg .b32 %r<4>;\n    .reg .b64 %d<2>;\n"
         "    ld.param.u64 %d1, [p];\n    ld.param.u32 %r1, [factor];\n"
         "    ld.global.u32 %r2, [%d1];\n    mad.lo.u32 %r3, %r2, %r1, 1;\n"
         "    st.global.u32 [%d1], %r3;\n    ret;\n}\n"
         ".visible .entry other(.param .u64 p, .param .u32 factor) { ret; }\n";

static CUcontext context;
static CUfunction step;
static CUstream stream;
static CUdeviceptr p;
static unsigned factor = 3;
static void *parameters[] = {&p, &factor};
static CUDA_KERNEL_NODE_PARAMS kernel = {.gridDimX = 1,
                                         .gridDimY = 1,
                                         .gridDimZ = 1,
                                         .blockDimX = 1,
                                         .blockDimY = 1,
                                         .blockDimZ = 1,
                                         .kernelParams = parameters};
static CUDA_MEMSET_NODE_PARAMS fill = {.value = 5, .elementSize = 4, .width = 1, .height = 1};

static void
start(void)
{
    context = ask_context();
    step = ask_kernel(text, "step");
    MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    MUST(cuMemAlloc_v2, &p, 64);
    MUST(cuMemsetD8_v2, p, 0, 64);
    kernel.func = step;
    fill.dst = p;
}

static void
say_value(const char *words)
{
    unsigned v = 0;

    MUST(cuCtxSynchronize);
    MUST(cuMemcpyDtoH_v2, &v, p, 4);
    printf("%s: %u\n", words, v);
}

static int ran;

static void CUDA_CB
count(void *unused)
{
    ran++;
    (void)unused;
}

static void
by_hand(void)
{
    CUDA_HOST_NODE_PARAMS host = {.fn = count};
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .WidthInBytes = 4,
                          .Height = 1,
                          .Depth = 1};
    CUgraph g;
    CUgraph clone;
    CUgraphNode n[6];
    CUgraphNode found;
    CUgraphNode roots[8];
    CUgraphExec e;
    CUgraphNodeType type;
    size_t many = 0;
    unsigned v = 0;

    start();
    copy.srcDevice = p;
    copy.dstDevice = p + 4;
    ASK(cuGraphCreate, &g, 0);
    ASK(cuGraphAddMemsetNode, &n[0], g, NULL, 0, &fill, context);
    ASK(cuGraphAddKernelNode_v2, &n[1], g, &n[0], 1, &kernel);
    ASK(cuGraphAddKernelNode_v2, &n[2], g, &n[1], 1, &kernel);
    ASK(cuGraphAddMemcpyNode, &n[3], g, &n[2], 1, &copy, context);
    ASK(cuGraphAddHostNode, &n[4], g, &n[3], 1, &host);
    ASK(cuGraphAddEmptyNode, &n[5], g, n, 5);
    ASK(cuGraphGetNodes, g, NULL, &many);
    SAY("nodes", many);
    many = 8;
    ASK(cuGraphGetRootNodes, g, roots, &many);
    SAY("roots", many);
    ASK(cuGraphNodeGetType, n[3], &type);
    SAY("type", type);
    ASK(cuGraphInstantiateWithFlags, &e, g, 0);
    ASK(cuGraphLaunch, e, stream);
    say_value("after one launch");
    ASK(cuGraphLaunch, e, stream);
    ASK(cuGraphLaunch, e, stream);
    say_value("after three");
    MUST(cuMemcpyDtoH_v2, &v, p + 4, 4);
    SAY("copied", v);
    SAY("host function", ran);
    ASK(cuGraphClone, &clone, g);
    ASK(cuGraphNodeFindInClone, &found, n[1], clone);
    ASK(cuGraphDestroyNode, found);
    MUST(cuGraphGetNodes, clone, NULL, &many);
    SAY("nodes of the clone", many);
    MUST(cuGraphGetNodes, g, NULL, &many);
    SAY("nodes of the graph", many);
    factor = 10;
    ASK(cuGraphExecKernelNodeSetParams_v2, e, n[2], &kernel);
    factor = 3;
    ASK(cuGraphLaunch, e, stream);
    say_value("after a change");
    ASK(cuGraphNodeSetEnabled, e, n[1], 0);
    ASK(cuGraphLaunch, e, stream);
    say_value("one node disabled");
    ASK(cuGraphExecDestroy, e);
    ASK(cuGraphDestroy, clone);
    ASK(cuGraphDestroy, g);
}

static void
wrong(void)
{
    CUgraph g;
    CUgraph h;
    CUgraphNode a;
    CUgraphNode b;
    CUgraphNode foreign;
    CUgraphNode twice[2];
    CUgraphExec e;
    CUDA_KERNEL_NODE_PARAMS bad;

    start();
    ASK(cuGraphCreate, NULL, 0);
    ASK(cuGraphCreate, &g, 1);
    ASK(cuGraphCreate, &g, 0);
    ASK(cuGraphCreate, &h, 0);
    ASK(cuGraphAddEmptyNode, &a, g, NULL, 0);
    ASK(cuGraphAddEmptyNode, &foreign, h, NULL, 0);
    ASK(cuGraphAddEmptyNode, &b, g, &foreign, 1);
    ASK(cuGraphAddEmptyNode, &b, g, NULL, 1);
    ASK(cuGraphAddEmptyNode, NULL, g, NULL, 0);
    twice[0] = twice[1] = a;
    ASK(cuGraphAddEmptyNode, &b, g, twice, 2);
    ASK(cuGraphAddEmptyNode, &b, g, &a, 1);
    ASK(cuGraphAddDependencies_v2, g, &a, &b, NULL, 1);
    ASK(cuGraphAddDependencies_v2, g, &a, &a, NULL, 1);
    ASK(cuGraphAddDependencies_v2, g, &b, &a, NULL, 1);
    ASK(cuGraphInstantiateWithFlags, &e, g, 0);
    ASK(cuGraphRemoveDependencies_v2, g, &b, &a, NULL, 1);
    ASK(cuGraphRemoveDependencies_v2, g, &b, &a, NULL, 1);
    bad = kernel;
    bad.func = NULL;
    ASK_AS("no function", cuGraphAddKernelNode_v2, &a, g, NULL, 0, &bad);
    bad = kernel;
    bad.blockDimX = 0;
    ASK_AS("no threads", cuGraphAddKernelNode_v2, &a, g, NULL, 0, &bad);
    bad.blockDimX = 2000;
    ASK_AS("too many threads", cuGraphAddKernelNode_v2, &a, g, NULL, 0, &bad);
    fill.elementSize = 3;
    ASK_AS("elements of three bytes", cuGraphAddMemsetNode, &a, g, NULL, 0, &fill, context);
    fill.elementSize = 4;
    ASK(cuGraphInstantiateWithFlags, &e, g, 0x1000);
    ASK(cuGraphInstantiateWithFlags, &e, g, 0);
    ASK(cuGraphLaunch, e, stream);
    ASK(cuGraphLaunch, NULL, stream);
    ASK(cuCtxSynchronize);
    ASK(cuGraphExecDestroy, e);
    ASK(cuGraphDestroy, NULL);
    ASK(cuGraphDestroy, h);
    ASK(cuGraphDestroy, g);
}

static void
capture(void)
{
    CUstreamCaptureStatus status = 99;
    CUstream side;
    CUevent fork_event;
    CUevent join_event;
    CUgraph g = NULL;
    CUgraphExec e;
    size_t many = 0;

    start();
    MUST(cuStreamCreate, &side, CU_STREAM_NON_BLOCKING);
    MUST(cuEventCreate, &fork_event, CU_EVENT_DISABLE_TIMING);
    MUST(cuEventCreate, &join_event, CU_EVENT_DISABLE_TIMING);
    ASK(cuStreamBeginCapture_v2, NULL, CU_STREAM_CAPTURE_MODE_GLOBAL);
    ASK(cuStreamBeginCapture_v2, stream, 9);
    ASK(cuStreamEndCapture, stream, &g);
    ASK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    ASK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    ASK(cuStreamIsCapturing, stream, &status);
    SAY("status", status);
    ASK(cuMemsetD32Async, p, 2, 1, stream);
    ASK(cuEventRecord, fork_event, stream);
    ASK(cuStreamWaitEvent, side, fork_event, 0);
    ASK(cuStreamIsCapturing, side, &status);
    SAY("status", status);
    ASK(cuLaunchKernel, step, 1, 1, 1, 1, 1, 1, 0, side, parameters, NULL);
    ASK(cuEventRecord, join_event, side);
    ASK(cuStreamWaitEvent, stream, join_event, 0);
    ASK(cuLaunchKernel, step, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
    ASK(cuLaunchHostFunc, stream, count, NULL);
    ASK(cuStreamEndCapture, stream, &g);
    say_value("nothing has run");
    ASK(cuGraphGetNodes, g, NULL, &many);
    SAY("nodes", many);
    ASK(cuGraphInstantiateWithFlags, &e, g, 0);
    ASK(cuGraphLaunch, e, stream);
    ASK(cuGraphLaunch, e, NULL);
    say_value("has run");
    SAY("host function", ran);
    ASK(cuStreamIsCapturing, stream, &status);
    SAY("status", status);
}

/* Calls that end a capture. */
static void
broken_capture(void)
{
    CUstreamCaptureStatus status = 99;
    CUstream side;
    CUevent event;
    CUgraph g = NULL;
    CUdeviceptr q;

    start();
    MUST(cuStreamCreate, &side, CU_STREAM_NON_BLOCKING);
    MUST(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
    ASK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    ASK(cuStreamSynchronize, stream);
    ASK(cuStreamIsCapturing, stream, &status);
    SAY("status", status);
    ASK(cuMemsetD32Async, p, 2, 1, stream);
    ASK(cuStreamEndCapture, stream, &g);
    SAY("no graph", g == NULL);
    ASK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    ASK(cuStreamQuery, stream);
    ASK(cuStreamEndCapture, stream, &g);
    ASK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    ASK(cuMemAlloc_v2, &q, 64);
    ASK(cuStreamEndCapture, stream, &g);
    ASK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    ASK(cuMemAlloc_v2, &q, 64);
    ASK(cuStreamEndCapture, stream, &g);
    ASK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    MUST(cuEventRecord, event, stream);
    MUST(cuStreamWaitEvent, side, event, 0);
    MUST(cuMemsetD32Async, p, 2, 1, side);
    ASK_AS("a stream not joined", cuStreamEndCapture, stream, &g);
    ASK(cuStreamIsCapturing, side, &status);
    SAY("status", status);
    ASK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    MUST(cuEventRecord, event, stream);
    MUST(cuStreamWaitEvent, side, event, 0);
    ASK_AS("the wrong stream", cuStreamEndCapture, side, &g);
    ASK_AS("the right one", cuStreamEndCapture, stream, &g);
    ASK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    MUST(cuEventRecord, event, stream);
    ASK_AS("an event of the capture", cuEventQuery, event);
    ASK(cuStreamEndCapture, stream, &g);
    ASK(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    ASK(cuCtxSynchronize);
    ASK(cuStreamEndCapture, stream, &g);
}

static CUgraph
chain(int kernels, unsigned value)
{
    CUgraph g;
    CUgraphNode last;

    MUST(cuGraphCreate, &g, 0);
    fill.value = value;
    MUST(cuGraphAddMemsetNode, &last, g, NULL, 0, &fill, context);
    for (int i = 0; i < kernels; i++) {
        CUgraphNode next;

        MUST(cuGraphAddKernelNode_v2, &next, g, &last, 1, &kernel);
        last = next;
    }
    return g;
}

static void
update(void)
{
    CUgraphExecUpdateResultInfo info = {0};
    CUgraphExec e;
    CUgraphNode child;
    CUgraph g;

    start();
    MUST(cuGraphInstantiateWithFlags, &e, chain(2, 1), 0);
    MUST(cuGraphLaunch, e, stream);
    say_value("first");
    ASK(cuGraphExecUpdate_v2, e, chain(2, 4), &info);
    SAY("why", info.result);
    MUST(cuGraphLaunch, e, stream);
    say_value("updated");
    ASK(cuGraphExecUpdate_v2, e, chain(3, 4), &info);
    SAY("why", info.result);
    MUST(cuGraphLaunch, e, stream);
    say_value("as before");
    MUST(cuGraphCreate, &g, 0);
    ASK(cuGraphAddChildGraphNode, &child, g, NULL, 0, chain(1, 7));
    MUST(cuGraphInstantiateWithFlags, &e, g, 0);
    MUST(cuGraphLaunch, e, stream);
    say_value("of a child");
}

ASK_MAIN({"by_hand", by_hand}, {"wrong", wrong}, {"capture", capture},
         {"broken_capture", broken_capture}, {"update", update})
