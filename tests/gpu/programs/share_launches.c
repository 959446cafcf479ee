/* Rows of share_matrix: graphs, captures, launches with attributes, launches that fail. */
#include "share_matrix.h"

#include <pthread.h>
#include <stdatomic.h>

#define ROUNDS 40

static CUgraphNode
add_step(CUgraph graph, CUgraphNode after, void **params)
{
    const CUDA_KERNEL_NODE_PARAMS_v2 k = {.func = share_begin()->step,
                                          .gridDimX = WORDS / 128,
                                          .gridDimY = 1,
                                          .gridDimZ = 1,
                                          .blockDimX = 128,
                                          .blockDimY = 1,
                                          .blockDimZ = 1,
                                          .kernelParams = params};
    CUgraphNode node;

    OK(CU(cuGraphAddKernelNode_v2)(&node, graph, after ? &after : NULL, after ? 1 : 0, &k));
    return node;
}

/* A graph is built by hand, instantiated and replayed; a node is changed; the graph is updated from
 * another one. */
void
share_graphs(void)
{
    struct share_gpu *g = share_begin();
    CUdeviceptr p = share_memory(WORDS);
    unsigned n = WORDS;
    unsigned a[4] = {0, 1, 2, 3};
    CUDA_KERNEL_NODE_PARAMS_v2 changed = {.func = g->step,
                                          .gridDimX = WORDS / 128,
                                          .gridDimY = 1,
                                          .gridDimZ = 1,
                                          .blockDimX = 128,
                                          .blockDimY = 1,
                                          .blockDimZ = 1};
    CUgraphExecUpdateResultInfo_v1 info;
    CUgraphNode nodes[4];
    CUgraph graph[2];
    CUgraphExec exec;
    CUstream s;

    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    for (int k = 0; k < 2; k++) {
        OK(CU(cuGraphCreate)(&graph[k], 0));
        for (int i = 0; i < 4; i++) {
            unsigned value = a[i] + (k ? 7 : 0); /* the node has a copy */
            void *params[] = {&p, &n, &value};

            nodes[i] = add_step(graph[k], i ? nodes[i - 1] : NULL, params);
        }
        if (k == 0)
            OK(CU(cuGraphInstantiateWithFlags)(&exec, graph[0], 0));
    }
    OK(CU(cuGraphLaunch)(exec, s));
    OK(CU(cuStreamSynchronize)(s));
    share_check("a graph", p, WORDS, 0, 4);
    OK(CU(cuMemsetD32Async)(p, 0, WORDS, s));
    OK(CU(cuGraphExecUpdate_v2)(exec, graph[1], &info));
    CHECK_IS(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    OK(CU(cuGraphLaunch)(exec, s));
    OK(CU(cuStreamSynchronize)(s));
    share_check("after an update", p, WORDS, 7, 4);
    OK(CU(cuGraphDestroy)(graph[1]));
    /* Changes one node at a time, between replays without a wait. */
    OK(CU(cuGraphDestroy)(graph[0]));
    OK(CU(cuGraphExecDestroy)(exec));
    OK(CU(cuGraphCreate)(&graph[0], 0));
    OK(CU(cuMemsetD32Async)(p, 0, WORDS, s));
    nodes[0] = add_step(graph[0], NULL, (void *[]){&p, &n, &a[0]});
    OK(CU(cuGraphInstantiateWithFlags)(&exec, graph[0], 0));
    for (unsigned i = 0; i < ROUNDS; i++) {
        changed.kernelParams = (void *[]){&p, &n, &i};
        OK(CU(cuGraphExecKernelNodeSetParams_v2)(exec, nodes[0], &changed));
        OK(CU(cuGraphLaunch)(exec, s));
    }
    OK(CU(cuStreamSynchronize)(s));
    share_check("a node changed between replays", p, WORDS, 0, ROUNDS);
    OK(CU(cuGraphExecDestroy)(exec));
    OK(CU(cuGraphDestroy)(graph[0]));
}

static atomic_bool captured;

static void *
meanwhile(void *arg)
{
    struct share_gpu *g = share_begin();
    CUdeviceptr p = *(CUdeviceptr *)arg;
    CUstream s;
    unsigned rounds = 0;

    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    while (!atomic_load(&captured) || rounds == 0) {
        OK(CU(cuMemsetD32Async)(p, 0, WORDS, s));
        for (unsigned i = 0; i < 10; i++)
            OK(share_step(g->step, p, WORDS, i, s));
        OK(CU(cuStreamSynchronize)(s));
        rounds++;
    }
    return NULL;
}

/* Replays a capture with a fork to a second stream and back. */
static void
capture_once(CUstreamCaptureMode mode, CUdeviceptr p, CUdeviceptr q, CUstream s, CUstream side)
{
    struct share_gpu *g = share_begin();
    CUstreamCaptureStatus status;
    CUevent forked, joined;
    CUgraph graph;
    CUgraphExec exec;

    OK(CU(cuEventCreate)(&forked, CU_EVENT_DISABLE_TIMING));
    OK(CU(cuEventCreate)(&joined, CU_EVENT_DISABLE_TIMING));
    OK(CU(cuStreamBeginCapture_v2)(s, mode));
    OK(share_step(g->late, p, WORDS, 0, s));
    OK(CU(cuEventRecord)(forked, s));
    OK(CU(cuStreamWaitEvent)(side, forked, 0));
    for (unsigned i = 0; i < 10; i++) {
        OK(share_step(g->step, q, WORDS, i, side));
        OK(share_step(g->step, p, WORDS, i + 1, s));
    }
    OK(CU(cuStreamIsCapturing)(side, &status));
    CHECK_IS(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(CU(cuEventRecord)(joined, side));
    OK(CU(cuStreamWaitEvent)(s, joined, 0));
    OK(CU(cuStreamEndCapture)(s, &graph));
    OK(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    for (int i = 0; i < 3; i++) {
        OK(CU(cuMemsetD32Async)(p, 0, WORDS, s));
        OK(CU(cuMemsetD32Async)(q, 0, WORDS, s));
        OK(CU(cuGraphLaunch)(exec, s));
    }
    OK(CU(cuStreamSynchronize)(s));
    share_check("captured", p, WORDS, 0, 11);
    share_check("captured on the side", q, WORDS, 0, 10);
    OK(CU(cuGraphExecDestroy)(exec));
    OK(CU(cuGraphDestroy)(graph));
    OK(CU(cuEventDestroy_v2)(forked));
    OK(CU(cuEventDestroy_v2)(joined));
}

/* Captures in every mode while other processes work, and while a thread works, if CUDA allows it:
 * its calls may break a capture of mode global, natively too. */
void
share_capture(void)
{
    share_begin();

    CUdeviceptr p = share_memory(WORDS);
    CUdeviceptr q = share_memory(WORDS);
    CUdeviceptr other = share_memory(WORDS);
    pthread_t thread;
    CUstream s, side;

    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    OK(CU(cuStreamCreate)(&side, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 5; i++)
        capture_once(CU_STREAM_CAPTURE_MODE_GLOBAL, p, q, s, side);
    CHECK_IS(pthread_create(&thread, NULL, meanwhile, &other), 0);
    for (int i = 0; i < 5; i++) {
        capture_once(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, p, q, s, side);
        capture_once(CU_STREAM_CAPTURE_MODE_RELAXED, p, q, s, side);
    }
    atomic_store(&captured, true);
    CHECK_IS(pthread_join(thread, NULL), 0);
    share_check("another thread meanwhile", other, WORDS, 0, 10);
}

/* Blocks that wait for each other, so all of them must run at once. */
void
share_cooperative(void)
{
    struct share_gpu *g = share_begin();
    CUdeviceptr p = share_memory(WORDS);
    CUdeviceptr count = share_memory(1);
    unsigned came[16];
    void *params[] = {&p, &count};
    CUstream s;

    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 10; i++) {
        OK(CU(cuMemsetD32Async)(count, 0, 1, s));
        OK(CU(cuLaunchCooperativeKernel)(g->meet, 16, 1, 1, 1, 1, 1, 0, s, params));
        OK(CU(cuStreamSynchronize)(s));
        OK(CU(cuMemcpyDtoH_v2)(came, p, sizeof came));
        for (int b = 0; b < 16; b++)
            CHECK_IS(came[b], 16);
    }
    printf("met: 16\n");
    printf("too many: %d\n",
           (int)CU(cuLaunchCooperativeKernel)(g->meet, 1 << 20, 1, 1, 1024, 1, 1, 0, s, params));
}

static const char sm90[] =
    ".version 7.8\n.target sm_90\n.address_size 64\n"
    ".visible .entry ranks(.param .u64 p)\n{\n"
    ".reg .b32 %r<4>;\n.reg .b64 %d<3>;\nld.param.u64 %d0, [p];\n"
    "mov.u32 %r0, %cluster_ctarank;\nmov.u32 %r1, %cluster_nctarank;\nmov.u32 %r2, %ctaid.x;\n"
    "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
    "mad.lo.u32 %r0, %r1, 100, %r0;\nmul.wide.u32 %d1, %r2, 4;\nadd.u64 %d0, %d0, %d1;\n"
    "st.global.u32 [%d0], %r0;\nret;\n}\n"
    ".visible .entry after(.param .u64 p, .param .u32 a)\n{\n"
    ".reg .b32 %r<3>;\n.reg .b64 %d<2>;\nld.param.u64 %d0, [p];\nld.param.u32 %r0, [a];\n"
    "griddepcontrol.launch_dependents;\ngriddepcontrol.wait;\n"
    "ld.global.u32 %r1, [%d0];\nmad.lo.u32 %r1, %r1, 3, %r0;\nst.global.u32 [%d0], %r1;\nret;\n}\n";

static CUfunction
hopper(const char *name)
{
    CUmodule module;
    CUfunction f;
    const CUresult r = CU(cuModuleLoadData)(&module, sm90);

    if (r != CUDA_SUCCESS) { /* an older GPU, or one that does not compile this */
        printf("refused PTX of sm_90 (%d)\n", (int)r);
        fflush(stdout);
        _exit(77);
    }
    OK(CU(cuModuleGetFunction)(&f, module, name));
    return f;
}

void
share_clusters(void)
{
    share_begin();

    CUfunction f = hopper("ranks");
    CUdeviceptr p = share_memory(WORDS);
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                   .value.clusterDim = {4, 1, 1}};
    CUlaunchConfig config = {.gridDimX = 16,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = &attribute,
                             .numAttrs = 1};
    unsigned ranks[16];
    void *params[] = {&p};

    for (int i = 0; i < 10; i++)
        OK(CU(cuLaunchKernelEx)(&config, f, params, NULL));
    OK(CU(cuMemcpyDtoH_v2)(ranks, p, sizeof ranks));
    for (int b = 0; b < 16; b++)
        printf("%u%c", ranks[b], b == 15 ? '\n' : ' ');
    config.gridDimX = 15;
    printf("no multiple: %d\n", (int)CU(cuLaunchKernelEx)(&config, f, params, NULL));
}

/* Launches that may begin before the previous one has ended, and wait for it inside; priorities. */
void
share_attributes(void)
{
    share_begin();

    CUfunction f = hopper("after");
    CUdeviceptr p = share_memory(1);
    CUlaunchAttribute attributes[] = {
        {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
         .value.programmaticStreamSerializationAllowed = 1},
        {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -1},
    };
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = attributes,
                             .numAttrs = 2};
    unsigned got;
    unsigned want = 0;

    OK(CU(cuStreamCreate)(&config.hStream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < 10 * ROUNDS; i++) {
        void *params[] = {&p, &i};

        OK(CU(cuLaunchKernelEx)(&config, f, params, NULL));
        want = want * 3 + i;
    }
    OK(CU(cuStreamSynchronize)(config.hStream));
    OK(CU(cuMemcpyDtoH_v2)(&got, p, sizeof got));
    CHECK_IS(got, want);
    printf("programmatic launches: %u\n", got);
}

/* What an autotuner tries: refusals come at once, with the driver's own codes, and do no harm. */
void
share_failing(void)
{
    struct share_gpu *g = share_begin();
    CUdeviceptr p = share_memory(WORDS);
    unsigned n = WORDS;
    unsigned a = 0;
    void *params[] = {&p, &n, &a};
    CUstream s;
    __typeof__(&cuLaunchKernel) launch = CU(cuLaunchKernel);

    OK(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 3; i++) {
        a = (unsigned)i;
        OK(share_step(g->step, p, WORDS, a, s));
        printf("shared memory: %d\n",
               (int)launch(g->step, 1, 1, 1, 32, 1, 1, 1 << 20, s, params, NULL));
        printf("no grid: %d\n", (int)launch(g->step, 0, 1, 1, 32, 1, 1, 0, s, params, NULL));
        printf("no block: %d\n", (int)launch(g->step, 1, 1, 1, 0, 1, 1, 0, s, params, NULL));
        printf("large block: %d\n", (int)launch(g->step, 1, 1, 1, 2048, 1, 1, 0, s, params, NULL));
        printf("tall grid: %d\n", (int)launch(g->step, 1, 70000, 1, 32, 1, 1, 0, s, params, NULL));
        printf("no function: %d\n", (int)launch(NULL, 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
    }
    printf("attribute: %d\n",
           (int)CU(cuFuncSetAttribute)(g->step, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       1 << 20));
    OK(CU(cuStreamSynchronize)(s));
    share_check("between failures", p, WORDS, 0, 3);
}
