/* Captures, and nodes whose type is part of their description. `cudart_captures CASE...`. */
#include "program.h"

static _Atomic int host_calls;

static void
count_host_call(void *data)
{
    atomic_fetch_add(&host_calls, 1);
}

static void
launch(const void *stub, unsigned *numbers, unsigned n, cudaStream_t stream)
{
    void *args[] = {&numbers, &n};

    OK(cudaLaunchKernel(stub, one_block, all_threads, args, 0, stream));
}

static void
run_graph(cudaGraph_t g)
{
    cudaGraphExec_t x;

    OK(cudaGraphInstantiate(&x, g, 0));
    OK(cudaGraphLaunch(x, NULL));
    OK(cudaStreamSynchronize(NULL));
    OK(cudaGraphExecDestroy(x));
}

/* ---- captures -------------------------------------------------------------------------------- */

/* Two streams: the second one works on other numbers between two events. */
static void
captures_a_fork(void)
{
    unsigned *left = make_numbers(1), *right = make_numbers(2), out[COUNT] = {0};
    cudaGraphNode_t nodes[16];
    cudaGraphNodeType type;
    cudaKernelNodeParams k;
    cudaStream_t a, b;
    cudaEvent_t fork, join;
    cudaGraph_t g = NULL;
    size_t count = 16;
    int kernels = 0;

    OK(cudaStreamCreate(&a));
    OK(cudaStreamCreate(&b));
    OK(cudaEventCreateWithFlags(&fork, 2));
    OK(cudaEventCreateWithFlags(&join, 2));
    OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    OK(cudaMemsetAsync(left, 0, BYTES, a));
    OK(cudaEventRecord(fork, a));
    OK(cudaStreamWaitEvent(b, fork, 0));
    launch(&add, left, 7, a);
    launch(&multiply, right, 5, b);
    OK(cudaEventRecord(join, b));
    OK(cudaStreamWaitEvent(a, join, 0));
    OK(cudaMemcpyAsync(out, right, BYTES, cudaMemcpyDeviceToHost, a));
    OK(cudaLaunchHostFunc(a, count_host_call, NULL));
    OK(cudaStreamEndCapture(a, &g));
    /* Nothing of it has run. */
    EXPECT(numbers_are(left, 1) && numbers_are(right, 2) && host_calls == 0);
    OK(cudaGraphGetNodes(g, nodes, &count));
    EXPECT(count == 5);
    for (size_t i = 0; i < count; i++) {
        OK(cudaGraphNodeGetType(nodes[i], &type));
        if (type != cudaGraphNodeTypeKernel)
            continue;
        OK(cudaGraphKernelNodeGetParams(nodes[i], &k));
        kernels += k.func == &add ? 1 : k.func == &multiply ? 10 : 100;
    }
    EXPECT(kernels == 11);
    run_graph(g);
    EXPECT(numbers_are(left, 7) && all_are(out, 10) && host_calls == 1);
}

static void
tells_what_is_captured(void)
{
    unsigned *numbers = make_numbers(1);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    unsigned long long id = 0, again = 0;
    const cudaGraphNode_t *after = NULL;
    cudaGraph_t g = NULL, at_end = NULL;
    cudaGraphNode_t empty;
    size_t count = 77;
    cudaStream_t s;

    OK(cudaStreamCreate(&s));
    OK(cudaStreamIsCapturing(s, &status));
    EXPECT(status == cudaStreamCaptureStatusNone);
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    launch(&add, numbers, 1, s);
#if EDITION >= 13
    OK(cudaStreamGetCaptureInfo(s, &status, &id, &g, &after, NULL, &count));
    OK(cudaStreamGetCaptureInfo(s, &status, &again, NULL, NULL, NULL, NULL));
#else
    OK(cudaStreamGetCaptureInfo(s, &status, &again));
    OK(cudaStreamGetCaptureInfo_v2(s, &status, &id, &g, &after, &count));
    OK(cudaStreamGetCaptureInfo_v3(s, &status, &id, &g, &after, NULL, &count));
#endif
    EXPECT(status == cudaStreamCaptureStatusActive && id && id == again && g && count == 1);
    /* What follows comes after a node that the program adds by itself. */
    OK(cudaGraphAddEmptyNode(&empty, g, after, 1));
#if EDITION >= 13
    OK(cudaStreamUpdateCaptureDependencies(s, &empty, NULL, 1, 1));
#else
    OK(cudaStreamUpdateCaptureDependencies(s, &empty, 1, 1));
#endif
    launch(&multiply, numbers, 3, s);
    FAILS(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(s));
    EXPECT(cudaGetLastError() == cudaErrorStreamCaptureUnsupported);
    FAILS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &at_end));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    launch(&multiply, numbers, 3, s);
    OK(cudaStreamEndCapture(s, &at_end));
    run_graph(at_end);
    EXPECT(numbers_are(numbers, 3));
}

static void
captures_into_a_graph(void)
{
    unsigned *numbers = make_numbers(1);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaMemsetParams f = {
        .dst = numbers, .value = 4, .elementSize = 4, .width = COUNT, .height = 1};
    cudaGraphNode_t fill;
    cudaGraph_t g, same = NULL;
    cudaStream_t s;

    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    EXPECT(mode == cudaStreamCaptureModeGlobal);
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    EXPECT(mode == cudaStreamCaptureModeRelaxed);
    OK(cudaStreamCreate(&s));
    OK(cudaGraphCreate(&g, 0));
    OK(cudaGraphAddMemsetNode(&fill, g, NULL, 0, &f));
    OK(cudaStreamBeginCaptureToGraph(s, g, &fill, NULL, 1, cudaStreamCaptureModeGlobal));
    launch(&add, numbers, 2, s);
    OK(cudaStreamEndCapture(s, &same));
    EXPECT(same == g);
    run_graph(g);
    EXPECT(numbers_are(numbers, 6));
}

/* ---- nodes of any type ----------------------------------------------------------------------- */

static cudaGraphNode_t
add_node(cudaGraph_t g, const cudaGraphNode_t *after, cudaGraphNodeParams *p)
{
    cudaGraphNode_t n = NULL;

#if EDITION >= 13
    OK(cudaGraphAddNode(&n, g, after, NULL, after ? 1 : 0, p));
#else
    OK(cudaGraphAddNode(&n, g, after, after ? 1 : 0, p));
#endif
    return n;
}

static cudaGraphNodeParams
kernel_node(const void *stub, void **args)
{
    return (cudaGraphNodeParams){.type = cudaGraphNodeTypeKernel,
                                 .kernel = {.func = (void *)(uintptr_t)stub,
                                            .gridDim = one_block,
                                            .blockDim = all_threads,
                                            .kernelParams = args}};
}

static cudaGraphNodeParams
fill_node(void *dst, unsigned value)
{
    return (cudaGraphNodeParams){
        .type = cudaGraphNodeTypeMemset,
        .memset = {.dst = dst, .value = value, .elementSize = 4, .width = COUNT, .height = 1}};
}

static cudaGraphNodeParams
copy_node(void *dst, void *src, cudaMemcpyKind kind)
{
    return (cudaGraphNodeParams){.type = cudaGraphNodeTypeMemcpy,
                                 .memcpy = {.copyParams = {.srcPtr = {src, BYTES, BYTES, 1},
                                                           .dstPtr = {dst, BYTES, BYTES, 1},
                                                           .extent = {BYTES, 1, 1},
                                                           .kind = kind}}};
}

/* fill, kernel, copy, host, and memory that is there for them only. */
static struct mixed {
    cudaGraph_t graph;
    cudaGraphNode_t alloc, fill, kernel, copy, host, free, empty, child, record, wait;
    unsigned out[COUNT], nine;
    void *at, *args[2];
    cudaEvent_t event;
} mixed;

static void
make_mixed(void)
{
    struct mixed *m = &mixed;
    cudaGraphNodeParams p = {.type = cudaGraphNodeTypeMemAlloc,
                             .alloc = {.poolProps = {.allocType = cudaMemAllocationTypePinned,
                                                     .location = {cudaMemLocationTypeDevice, 0}},
                                       .bytesize = BYTES}};
    cudaGraph_t inner;
    cudaGraphNode_t n;

    host_calls = 0;
    OK(cudaEventCreate(&m->event));
    OK(cudaGraphCreate(&m->graph, 0));
    m->alloc = add_node(m->graph, NULL, &p);
    m->at = p.alloc.dptr;
    EXPECT(m->at != NULL);
    p = fill_node(m->at, 1);
    m->fill = add_node(m->graph, &m->alloc, &p);
    m->nine = 9;
    m->args[0] = &m->at;
    m->args[1] = &m->nine;
    p = kernel_node(&add, m->args);
    m->kernel = add_node(m->graph, &m->fill, &p);
    p = copy_node(m->out, m->at, cudaMemcpyDeviceToHost);
    m->copy = add_node(m->graph, &m->kernel, &p);
    p = (cudaGraphNodeParams){.type = cudaGraphNodeTypeHost, .host = {.fn = count_host_call}};
    m->host = add_node(m->graph, &m->copy, &p);
    p = (cudaGraphNodeParams){.type = cudaGraphNodeTypeMemFree, .free = {m->at}};
    m->free = add_node(m->graph, &m->host, &p);
    p = (cudaGraphNodeParams){.type = cudaGraphNodeTypeEmpty};
    m->empty = add_node(m->graph, NULL, &p);
    OK(cudaGraphCreate(&inner, 0));
    OK(cudaGraphAddEmptyNode(&n, inner, NULL, 0));
    p = (cudaGraphNodeParams){.type = cudaGraphNodeTypeGraph, .graph = {.graph = inner}};
    m->child = add_node(m->graph, &m->empty, &p);
    p = (cudaGraphNodeParams){.type = cudaGraphNodeTypeEventRecord, .eventRecord = {m->event}};
    m->record = add_node(m->graph, &m->child, &p);
    p = (cudaGraphNodeParams){.type = cudaGraphNodeTypeWaitEvent, .eventWait = {m->event}};
    m->wait = add_node(m->graph, &m->record, &p);
}

static void
adds_nodes_of_any_type(void)
{
    cudaGraphNodeParams p = {.type = cudaGraphNodeTypeCount};
    cudaGraphNode_t n;
    size_t count = 0;

    make_mixed();
    OK(cudaGraphGetNodes(mixed.graph, NULL, &count));
    EXPECT(count == 10);
    run_graph(mixed.graph);
    EXPECT(all_are(mixed.out, 10) && host_calls == 1);
    OK(cudaEventQuery(mixed.event));
#if EDITION >= 13
    FAILS(cudaErrorInvalidValue, cudaGraphAddNode(&n, mixed.graph, NULL, NULL, 0, &p));
    p = fill_node(mixed.at, 1);
    p.reserved2 = 1;
    FAILS(cudaErrorInvalidValue, cudaGraphAddNode(&n, mixed.graph, NULL, NULL, 0, &p));
#else
    FAILS(cudaErrorInvalidValue, cudaGraphAddNode(&n, mixed.graph, NULL, 0, &p));
    p = fill_node(mixed.at, 1);
    p.reserved2 = 1;
    FAILS(cudaErrorInvalidValue, cudaGraphAddNode_v2(&n, mixed.graph, NULL, NULL, 0, &p));
#endif
}

static void
changes_nodes_of_any_type(void)
{
    unsigned two = 2;
    void *args[] = {&mixed.at, &two};
    cudaGraphNodeParams p;
    cudaGraphExec_t x;

    make_mixed();
    p = fill_node(mixed.at, 20);
    OK(cudaGraphNodeSetParams(mixed.fill, &p));
    p = kernel_node(&multiply, args);
    OK(cudaGraphNodeSetParams(mixed.kernel, &p));
    OK(cudaGraphInstantiate(&x, mixed.graph, 0));
    OK(cudaGraphLaunch(x, NULL));
    OK(cudaStreamSynchronize(NULL));
    EXPECT(all_are(mixed.out, 40));
    p = kernel_node(&add, args);
    OK(cudaGraphExecNodeSetParams(x, mixed.kernel, &p));
    p = fill_node(mixed.at, 30);
    OK(cudaGraphExecNodeSetParams(x, mixed.fill, &p));
    OK(cudaGraphLaunch(x, NULL));
    OK(cudaStreamSynchronize(NULL));
    EXPECT(all_are(mixed.out, 32));
    FAILS(cudaErrorInvalidValue, cudaGraphExecNodeSetParams(x, mixed.copy, &p));
    FAILS(cudaErrorInvalidValue, cudaGraphNodeSetParams(mixed.copy, &p));
    p = kernel_node(NULL, args);
    FAILS(cudaErrorInvalidDeviceFunction, cudaGraphNodeSetParams(mixed.kernel, &p));
}

static void
asks_nodes_of_any_type(void)
{
#if EDITION >= 13
    cudaGraphNodeParams p;

    make_mixed();
    OK(cudaGraphNodeGetParams(mixed.alloc, &p));
    EXPECT(p.type == cudaGraphNodeTypeMemAlloc && p.alloc.dptr == mixed.at);
    OK(cudaGraphNodeGetParams(mixed.fill, &p));
    EXPECT(p.type == cudaGraphNodeTypeMemset && p.memset.dst == mixed.at && p.memset.value == 1);
    OK(cudaGraphNodeGetParams(mixed.kernel, &p));
    EXPECT(p.type == cudaGraphNodeTypeKernel && p.kernel.func == &add);
    EXPECT(*(unsigned *)p.kernel.kernelParams[1] == 9);
    OK(cudaGraphNodeGetParams(mixed.copy, &p));
    EXPECT(p.type == cudaGraphNodeTypeMemcpy && p.memcpy.copyParams.dstPtr.ptr == mixed.out);
    OK(cudaGraphNodeGetParams(mixed.host, &p));
    EXPECT(p.type == cudaGraphNodeTypeHost && p.host.fn == count_host_call);
    OK(cudaGraphNodeGetParams(mixed.free, &p));
    EXPECT(p.type == cudaGraphNodeTypeMemFree && p.free.dptr == mixed.at);
    OK(cudaGraphNodeGetParams(mixed.empty, &p));
    EXPECT(p.type == cudaGraphNodeTypeEmpty);
    OK(cudaGraphNodeGetParams(mixed.child, &p));
    EXPECT(p.type == cudaGraphNodeTypeGraph && p.graph.graph);
    OK(cudaGraphNodeGetParams(mixed.record, &p));
    EXPECT(p.type == cudaGraphNodeTypeEventRecord && p.eventRecord.event == mixed.event);
    OK(cudaGraphNodeGetParams(mixed.wait, &p));
    EXPECT(p.type == cudaGraphNodeTypeWaitEvent && p.eventWait.event == mixed.event);
    FAILS(cudaErrorInvalidValue, cudaGraphNodeGetParams(NULL, &p));
    FAILS(cudaErrorInvalidValue, cudaGraphNodeGetParams(mixed.wait, NULL));
#endif
}

/* A branch of each kind is taken by the value that its condition begins with. */
static void
runs_branches(void)
{
    static const struct {
        cudaGraphConditionalNodeType type;
        unsigned size, value, taken; /* taken == size: none */
    } kinds[] = {{cudaGraphCondTypeIf, 1, 1, 0},
                 {cudaGraphCondTypeIf, 1, 0, 1},
                 {cudaGraphCondTypeIf, 2, 0, 1},
                 {cudaGraphCondTypeSwitch, 3, 2, 2},
                 {cudaGraphCondTypeSwitch, 2, 5, 2}};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        unsigned *numbers = make_numbers(77);
        cudaGraphNodeParams p = {.type = cudaGraphNodeTypeConditional};
        cudaGraphConditionalHandle h;
        cudaGraph_t g;

        OK(cudaGraphCreate(&g, 0));
        OK(cudaGraphConditionalHandleCreate(&h, g, kinds[i].value, 1));
        p.conditional.handle = h;
        p.conditional.type = kinds[i].type;
        p.conditional.size = kinds[i].size;
        (void)add_node(g, NULL, &p);
        if (!EXPECT(p.conditional.phGraph_out != NULL))
            return;
        for (unsigned b = 0; b < kinds[i].size; b++) {
            cudaGraphNodeParams f = fill_node(numbers, b);

            (void)add_node(p.conditional.phGraph_out[b], NULL, &f);
        }
        run_graph(g);
        EXPECT(numbers_are(numbers, kinds[i].taken < kinds[i].size ? kinds[i].taken : 77));
    }
}

int
main(int argc, char **argv)
{
    static const struct program_case cases[] = {
        {"captures_a_fork", captures_a_fork},
        {"tells_what_is_captured", tells_what_is_captured},
        {"captures_into_a_graph", captures_into_a_graph},
        {"adds_nodes_of_any_type", adds_nodes_of_any_type},
        {"changes_nodes_of_any_type", changes_nodes_of_any_type},
        {"asks_nodes_of_any_type", asks_nodes_of_any_type},
        {"runs_branches", runs_branches},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
