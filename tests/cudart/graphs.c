/* Graphs of nodes of all types: what they are made of can be asked for and changed, and running
 * them does what they say. `cudart_graphs CASE...`. Captures and nodes of any type: captures.c. */
#include "program.h"

static _Atomic int host_calls;

static void
count_host_call(void *data)
{
    atomic_fetch_add(&host_calls, *(int *)data);
}

/* ---- what editions have different forms of --------------------------------------------------- */

static cudaError_t
make_exec(cudaGraphExec_t *x, cudaGraph_t g)
{
#if EDITION >= 12
    return cudaGraphInstantiate(x, g, 0);
#else
    cudaGraphNode_t bad;
    char text[64];

    return cudaGraphInstantiate(x, g, &bad, text, sizeof text);
#endif
}

static cudaError_t
update_exec(cudaGraphExec_t x, cudaGraph_t g, cudaGraphExecUpdateResult *result)
{
#if EDITION >= 12
    cudaGraphExecUpdateResultInfo info;
    const cudaError_t r = cudaGraphExecUpdate(x, g, result ? &info : NULL);

    if (result)
        *result = info.result;
    return r;
#else
    cudaGraphNode_t bad;

    return cudaGraphExecUpdate(x, g, result ? &bad : NULL, result);
#endif
}

#if EDITION >= 13
#define EDGE_DATA NULL,
#else
#define EDGE_DATA
#endif

/* ---- a chain of nodes ------------------------------------------------------------------------ */

/* numbers = 5; numbers += 3; numbers *= 2; copy = numbers; host_calls += step. */
static struct chain {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t fill, plus, times, copy, host;
    cudaMemsetParams fill_params;
    cudaKernelNodeParams plus_params, times_params;
    cudaHostNodeParams host_params;
    unsigned *numbers, copied[COUNT], three, two;
    int step;
    void *plus_args[2], *times_args[2];
    cudaStream_t stream;
} chain;

static void
instantiate_chain(void)
{
    OK(make_exec(&chain.exec, chain.graph));
}

static void
make_chain(void)
{
    struct chain *c = &chain;

    host_calls = 0;
    OK(cudaStreamCreate(&c->stream));
    OK(cudaGraphCreate(&c->graph, 0));
    c->numbers = make_numbers(0);
    c->three = 3;
    c->two = 2;
    c->step = 1;
    c->fill_params = (cudaMemsetParams){
        .dst = c->numbers, .value = 5, .elementSize = 4, .width = COUNT, .height = 1};
    c->plus_args[0] = c->times_args[0] = &c->numbers;
    c->plus_args[1] = &c->three;
    c->times_args[1] = &c->two;
    c->plus_params = (cudaKernelNodeParams){
        .func = &add, .gridDim = one_block, .blockDim = all_threads, .kernelParams = c->plus_args};
    c->times_params = (cudaKernelNodeParams){.func = &multiply,
                                             .gridDim = one_block,
                                             .blockDim = all_threads,
                                             .kernelParams = c->times_args};
    c->host_params = (cudaHostNodeParams){count_host_call, &c->step};
    OK(cudaGraphAddMemsetNode(&c->fill, c->graph, NULL, 0, &c->fill_params));
    OK(cudaGraphAddKernelNode(&c->plus, c->graph, &c->fill, 1, &c->plus_params));
    OK(cudaGraphAddKernelNode(&c->times, c->graph, &c->plus, 1, &c->times_params));
    OK(cudaGraphAddMemcpyNode1D(&c->copy, c->graph, &c->times, 1, c->copied, c->numbers, BYTES,
                                cudaMemcpyDeviceToHost));
    OK(cudaGraphAddHostNode(&c->host, c->graph, &c->copy, 1, &c->host_params));
    instantiate_chain();
}

/* What a run copies. */
static bool
chain_gives(unsigned value)
{
    memset(chain.copied, 0, sizeof chain.copied);
    return OK(cudaGraphLaunch(chain.exec, chain.stream)) &&
           OK(cudaStreamSynchronize(chain.stream)) && all_are(chain.copied, value);
}

static void
runs_a_chain(void)
{
    make_chain();
    EXPECT(chain_gives(16));
    EXPECT(chain_gives(16));
    EXPECT(host_calls == 2);
    OK(cudaGraphUpload(chain.exec, chain.stream));
    OK(cudaGraphExecDestroy(chain.exec));
    OK(cudaGraphDestroy(chain.graph));
}

static void
tells_what_nodes_do(void)
{
    cudaKernelNodeParams k;
    cudaMemsetParams f;
    cudaMemcpy3DParms c;
    cudaHostNodeParams h;

    make_chain();
    OK(cudaGraphKernelNodeGetParams(chain.plus, &k));
    EXPECT(k.func == &add && k.gridDim.x == 1 && k.blockDim.x == COUNT && !k.extra);
    EXPECT(*(unsigned **)k.kernelParams[0] == chain.numbers && *(unsigned *)k.kernelParams[1] == 3);
    OK(cudaGraphMemsetNodeGetParams(chain.fill, &f));
    EXPECT(f.dst == chain.numbers && f.value == 5 && f.elementSize == 4 && f.width == COUNT);
    OK(cudaGraphMemcpyNodeGetParams(chain.copy, &c));
    EXPECT(c.kind == cudaMemcpyDeviceToHost && c.extent.width == BYTES && c.extent.height == 1);
    EXPECT(c.srcPtr.ptr == chain.numbers && c.dstPtr.ptr == chain.copied);
    OK(cudaGraphHostNodeGetParams(chain.host, &h));
    EXPECT(h.fn == count_host_call && h.userData == &chain.step);
    FAILS(cudaErrorInvalidValue, cudaGraphKernelNodeGetParams(chain.fill, &k));
    FAILS(cudaErrorInvalidValue, cudaGraphMemcpyNodeGetParams(chain.fill, &c));
    FAILS(cudaErrorInvalidValue, cudaGraphExecKernelNodeSetParams(NULL, chain.plus, &k));
}

static void
changes_what_runs(void)
{
    static unsigned other[COUNT];
    unsigned ten = 10;
    void *args[] = {&chain.numbers, &ten};
    cudaKernelNodeParams k;
    cudaMemsetParams f;
    unsigned enabled = 9;

    make_chain();
    k = chain.plus_params;
    k.kernelParams = args;
    OK(cudaGraphExecKernelNodeSetParams(chain.exec, chain.plus, &k));
    EXPECT(chain_gives(30));
    f = chain.fill_params;
    f.value = 1;
    OK(cudaGraphExecMemsetNodeSetParams(chain.exec, chain.fill, &f));
    EXPECT(chain_gives(22));
    k.func = &multiply;
    OK(cudaGraphExecKernelNodeSetParams(chain.exec, chain.plus, &k));
    EXPECT(chain_gives(20));
    OK(cudaGraphNodeSetEnabled(chain.exec, chain.plus, 0));
    OK(cudaGraphNodeGetEnabled(chain.exec, chain.plus, &enabled));
    EXPECT(!enabled && chain_gives(2));
    OK(cudaGraphExecMemcpyNodeSetParams1D(chain.exec, chain.copy, other, chain.numbers, BYTES,
                                          cudaMemcpyDeviceToHost));
    EXPECT(chain_gives(0) && all_are(other, 2));
    FAILS(cudaErrorInvalidMemcpyDirection,
          cudaGraphExecMemcpyNodeSetParams1D(chain.exec, chain.copy, other, chain.numbers, BYTES,
                                             (cudaMemcpyKind)9));
    /* The graph is as it was. */
    instantiate_chain();
    EXPECT(chain_gives(16));
}

static void
changes_the_graph(void)
{
    cudaGraphExecUpdateResult result;
    cudaGraph_t shorter;
    cudaGraphNode_t n;

    make_chain();
    chain.times_params.func = &add;
    OK(cudaGraphKernelNodeSetParams(chain.times, &chain.times_params));
    chain.fill_params.value = 7;
    OK(cudaGraphMemsetNodeSetParams(chain.fill, &chain.fill_params));
    chain.step = 100; /* read when the node runs */
    OK(cudaGraphHostNodeSetParams(chain.host, &chain.host_params));
    EXPECT(chain_gives(16));
    OK(update_exec(chain.exec, chain.graph, &result));
    EXPECT(result == cudaGraphExecUpdateSuccess);
    EXPECT(chain_gives(12));
    EXPECT(host_calls == 200);
    OK(update_exec(chain.exec, chain.graph, NULL));
    OK(cudaGraphCreate(&shorter, 0));
    OK(cudaGraphAddEmptyNode(&n, shorter, NULL, 0));
    FAILS(cudaErrorGraphExecUpdateFailure, update_exec(chain.exec, shorter, &result));
    EXPECT(result == cudaGraphExecUpdateErrorTopologyChanged);
    EXPECT(cudaGetLastError() == cudaErrorGraphExecUpdateFailure);
    EXPECT(chain_gives(12));
}

/* ---- boxes and variables --------------------------------------------------------------------- */

#define WIDE 12
#define HIGH 4
#define DEEP 2

static void
number_box(unsigned box[DEEP][HIGH][WIDE])
{
    for (unsigned z = 0; z < DEEP; z++)
        for (unsigned y = 0; y < HIGH; y++)
            for (unsigned x = 0; x < WIDE; x++)
                box[z][y][x] = 100 * z + 10 * y + x;
}

/* A box of 5 x 2 x 2 numbers: out of `from` at (3, 1, 0), into device memory with a pitch at
 * (1, 2, 0), and back to the beginning of `to`. */
static void
copies_boxes(void)
{
    static unsigned from[DEEP][HIGH][WIDE], to[DEEP][2][5];
    cudaMemcpy3DParms in = {.srcPtr = {from, WIDE * 4, WIDE, HIGH},
                            .srcPos = {12, 1, 0},
                            .dstPos = {4, 2, 0},
                            .extent = {20, 2, DEEP},
                            .kind = cudaMemcpyHostToDevice};
    cudaMemcpy3DParms out = {.srcPos = {4, 2, 0},
                             .dstPtr = {to, 20, 20, 2},
                             .extent = {20, 2, DEEP},
                             .kind = cudaMemcpyDeviceToHost};
    const cudaExtent room = {WIDE * 4, HIGH, DEEP};
    cudaMemcpy3DParms got;
    cudaPitchedPtr at;
    cudaGraph_t g;
    cudaGraphExec_t x;
    cudaGraphNode_t first, second;

    number_box(from);
    OK(cudaMalloc3D(&at, room));
    in.dstPtr = out.srcPtr = at;
    OK(cudaGraphCreate(&g, 0));
    OK(cudaGraphAddMemcpyNode(&first, g, NULL, 0, &in));
    OK(cudaGraphAddMemcpyNode(&second, g, &first, 1, &out));
    OK(cudaGraphMemcpyNodeGetParams(first, &got));
    EXPECT(got.kind == in.kind && got.srcPos.x == 12 && got.dstPos.y == 2 &&
           got.dstPtr.ptr == at.ptr && got.dstPtr.pitch == at.pitch && got.extent.depth == DEEP);
    OK(make_exec(&x, g));
    OK(cudaGraphLaunch(x, NULL));
    OK(cudaStreamSynchronize(NULL));
    for (int z = 0; z < DEEP; z++)
        for (int y = 0; y < 2; y++)
            for (int i = 0; i < 5; i++)
                EXPECT(to[z][y][i] == from[z][y + 1][i + 3]);
    /* One row higher. */
    in.srcPos.y = 0;
    OK(cudaGraphMemcpyNodeSetParams(first, &in));
    OK(cudaGraphExecMemcpyNodeSetParams(x, first, &in));
    OK(cudaGraphLaunch(x, NULL));
    OK(cudaStreamSynchronize(NULL));
    EXPECT(to[1][1][4] == from[1][1][7]);
    FAILS(cudaErrorInvalidValue, cudaGraphMemcpyNodeSetParams(first, NULL));
}

static void
copies_arrays(void)
{
    static unsigned from[DEEP][HIGH][WIDE], to[DEEP][HIGH][WIDE];
    const cudaExtent room = {WIDE, HIGH, DEEP};
    const cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindUnsigned};
    cudaMemcpy3DParms in = {
        .srcPtr = {from, WIDE * 4, WIDE, HIGH}, .extent = room, .kind = cudaMemcpyHostToDevice};
    cudaMemcpy3DParms out = {.srcPos = {2, 1, 1},
                             .dstPtr = {to, WIDE * 4, WIDE, HIGH},
                             .extent = {3, 2, 1},
                             .kind = cudaMemcpyDeviceToHost};
    cudaMemcpy3DParms got;
    cudaGraph_t g;
    cudaGraphExec_t x;
    cudaGraphNode_t first, second;

    number_box(from);
    OK(cudaMalloc3DArray(&in.dstArray, &format, room, 0));
    out.srcArray = in.dstArray;
    OK(cudaGraphCreate(&g, 0));
    OK(cudaGraphAddMemcpyNode(&first, g, NULL, 0, &in));
    OK(cudaGraphAddMemcpyNode(&second, g, &first, 1, &out));
    /* Positions and sizes of arrays count elements. */
    OK(cudaGraphMemcpyNodeGetParams(second, &got));
    EXPECT(got.srcArray == out.srcArray && got.srcPos.x == 2 && got.srcPos.z == 1 &&
           got.extent.width == 3 && got.extent.height == 2 && got.kind == out.kind);
    OK(make_exec(&x, g));
    OK(cudaGraphLaunch(x, NULL));
    OK(cudaStreamSynchronize(NULL));
    for (int y = 0; y < 2; y++)
        for (int i = 0; i < 3; i++)
            EXPECT(to[0][y][i] == from[1][y + 1][i + 2]);
}

static void
copies_variables(void)
{
    unsigned in[4] = {1, 2, 3, 4}, other[4] = {5, 6, 7, 8}, out[COUNT] = {0};
    cudaGraph_t g;
    cudaGraphExec_t x;
    cudaGraphNode_t first, second;

    OK(cudaGraphCreate(&g, 0));
    OK(cudaGraphAddMemcpyNodeToSymbol(&first, g, NULL, 0, kept, in, sizeof in, 8,
                                      cudaMemcpyHostToDevice));
    OK(cudaGraphAddMemcpyNodeFromSymbol(&second, g, &first, 1, out, kept, sizeof kept, 0,
                                        cudaMemcpyDeviceToHost));
    OK(make_exec(&x, g));
    OK(cudaGraphLaunch(x, NULL));
    OK(cudaStreamSynchronize(NULL));
    EXPECT(out[1] == 0 && out[2] == 1 && out[5] == 4 && out[6] == 0);
    OK(cudaGraphExecMemcpyNodeSetParamsToSymbol(x, first, kept, other, sizeof other, 0,
                                                cudaMemcpyHostToDevice));
    OK(cudaGraphExecMemcpyNodeSetParamsFromSymbol(x, second, out, kept, 24, 0,
                                                  cudaMemcpyDeviceToHost));
    OK(cudaGraphLaunch(x, NULL));
    OK(cudaStreamSynchronize(NULL));
    EXPECT(out[0] == 5 && out[3] == 8 && out[4] == 3 && out[5] == 4);
    OK(cudaGraphMemcpyNodeSetParamsToSymbol(first, kept, other, 4, 60, cudaMemcpyHostToDevice));
    OK(cudaGraphMemcpyNodeSetParamsFromSymbol(second, out, kept, 4, 60, cudaMemcpyDeviceToHost));
    OK(cudaGraphExecDestroy(x));
    OK(make_exec(&x, g));
    OK(cudaGraphLaunch(x, NULL));
    OK(cudaStreamSynchronize(NULL));
    EXPECT(out[0] == 5);
    FAILS(cudaErrorInvalidValue,
          cudaGraphMemcpyNodeSetParamsToSymbol(first, kept, other, 8, 60, cudaMemcpyHostToDevice));
    FAILS(cudaErrorInvalidSymbol,
          cudaGraphMemcpyNodeSetParamsToSymbol(first, in, other, 8, 0, cudaMemcpyHostToDevice));
    FAILS(cudaErrorInvalidMemcpyDirection,
          cudaGraphMemcpyNodeSetParamsToSymbol(first, kept, other, 8, 0, cudaMemcpyDeviceToHost));
}

/* ---- graphs in graphs, edges, events, memory ------------------------------------------------- */

static void
nests_graphs(void)
{
    cudaGraph_t outer, clone, in_child = NULL;
    cudaGraphExec_t x;
    cudaGraphNode_t child, twin = NULL;
    size_t count = 0;

    make_chain();
    OK(cudaGraphCreate(&outer, 0));
    OK(cudaGraphAddChildGraphNode(&child, outer, NULL, 0, chain.graph));
    OK(cudaGraphChildGraphNodeGetGraph(child, &in_child));
    OK(cudaGraphGetNodes(in_child, NULL, &count));
    EXPECT(in_child && in_child != chain.graph && count == 5);
    OK(cudaGraphClone(&clone, chain.graph));
    OK(cudaGraphNodeFindInClone(&twin, chain.times, clone));
    chain.times_params.func = &add;
    OK(cudaGraphKernelNodeSetParams(twin, &chain.times_params));
    OK(make_exec(&x, outer));
    OK(cudaGraphLaunch(x, chain.stream));
    OK(cudaStreamSynchronize(chain.stream));
    EXPECT(all_are(chain.copied, 16));
    OK(cudaGraphExecChildGraphNodeSetParams(x, child, clone));
    OK(cudaGraphLaunch(x, chain.stream));
    OK(cudaStreamSynchronize(chain.stream));
    EXPECT(all_are(chain.copied, 10) && host_calls == 2);
}

static void
knows_its_edges(void)
{
    cudaGraphNode_t from[8], to[8], nodes[8];
    cudaGraphNodeType type;
    size_t count = 8;

    make_chain();
    OK(cudaGraphGetEdges(chain.graph, from, to, EDGE_DATA & count));
    EXPECT(count == 4);
    count = 8;
    OK(cudaGraphGetRootNodes(chain.graph, nodes, &count));
    EXPECT(count == 1 && nodes[0] == chain.fill);
    OK(cudaGraphAddDependencies(chain.graph, &chain.fill, &chain.host, EDGE_DATA 1));
    count = 8;
    OK(cudaGraphNodeGetDependencies(chain.host, nodes, EDGE_DATA & count));
    EXPECT(count == 2);
    count = 8;
    OK(cudaGraphNodeGetDependentNodes(chain.fill, nodes, EDGE_DATA & count));
    EXPECT(count == 2);
    OK(cudaGraphRemoveDependencies(chain.graph, &chain.fill, &chain.host, EDGE_DATA 1));
    FAILS(cudaErrorInvalidValue,
          cudaGraphRemoveDependencies(chain.graph, &chain.fill, &chain.host, EDGE_DATA 1));
    OK(cudaGraphNodeGetType(chain.host, &type));
    EXPECT(type == cudaGraphNodeTypeHost);
    OK(cudaGraphDestroyNode(chain.host));
    OK(cudaGraphGetNodes(chain.graph, NULL, &count));
    EXPECT(count == 4);
    instantiate_chain();
    EXPECT(chain_gives(16) && host_calls == 0);
}

static void
orders_by_events(void)
{
    cudaGraph_t late;
    cudaGraphExec_t x;
    cudaGraphNode_t record, wait, n;
    cudaEvent_t event, other, got = NULL;
    cudaStream_t second;

    make_chain();
    OK(cudaEventCreate(&event));
    OK(cudaEventCreate(&other));
    OK(cudaStreamCreateWithFlags(&second, 1));
    OK(cudaGraphAddEventRecordNode(&record, chain.graph, &chain.plus, 1, event));
    OK(cudaGraphEventRecordNodeGetEvent(record, &got));
    EXPECT(got == event);
    instantiate_chain();
    OK(cudaGraphCreate(&late, 0));
    OK(cudaGraphAddEventWaitNode(&wait, late, NULL, 0, other));
    OK(cudaGraphEventWaitNodeSetEvent(wait, event));
    OK(cudaGraphEventWaitNodeGetEvent(wait, &got));
    EXPECT(got == event);
    OK(cudaGraphAddHostNode(&n, late, &wait, 1, &chain.host_params));
    OK(make_exec(&x, late));
    OK(cudaGraphLaunch(chain.exec, chain.stream));
    OK(cudaGraphLaunch(x, second));
    OK(cudaStreamSynchronize(second));
    OK(cudaStreamSynchronize(chain.stream));
    OK(cudaEventQuery(event));
    EXPECT(host_calls == 2 && all_are(chain.copied, 16));
    OK(cudaGraphExecEventRecordNodeSetEvent(chain.exec, record, other));
    OK(cudaGraphExecEventWaitNodeSetEvent(x, wait, other));
    OK(cudaGraphLaunch(chain.exec, chain.stream));
    OK(cudaGraphLaunch(x, second));
    OK(cudaStreamSynchronize(second));
    OK(cudaStreamSynchronize(chain.stream));
    EXPECT(host_calls == 4);
}

static void
owns_memory(void)
{
    cudaMemAllocNodeParams p = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {.type = cudaMemLocationTypeDevice}},
        .bytesize = 65536,
    };
    cudaMemAllocNodeParams got;
    unsigned out[COUNT] = {0}, four = 4;
    unsigned long long used = 0;
    cudaKernelNodeParams k = {.func = &add, .gridDim = one_block, .blockDim = all_threads};
    void *at = NULL, *args[] = {&p.dptr, &four};
    cudaMemsetParams f = {.value = 6, .elementSize = 4, .width = COUNT, .height = 1};
    cudaGraph_t g;
    cudaGraphExec_t x;
    cudaGraphNode_t n[5];

    OK(cudaGraphCreate(&g, 0));
    OK(cudaGraphAddMemAllocNode(&n[0], g, NULL, 0, &p));
    OK(cudaGraphMemAllocNodeGetParams(n[0], &got));
    EXPECT(p.dptr && got.dptr == p.dptr && got.bytesize == 65536);
    f.dst = p.dptr;
    k.kernelParams = args;
    OK(cudaGraphAddMemsetNode(&n[1], g, &n[0], 1, &f));
    OK(cudaGraphAddKernelNode(&n[2], g, &n[1], 1, &k));
    OK(cudaGraphAddMemcpyNode1D(&n[3], g, &n[2], 1, out, p.dptr, BYTES, cudaMemcpyDefault));
    OK(cudaGraphAddMemFreeNode(&n[4], g, &n[3], 1, p.dptr));
    OK(cudaGraphMemFreeNodeGetParams(n[4], &at));
    EXPECT(at == p.dptr);
    OK(make_exec(&x, g));
    for (int i = 0; i < 2; i++) {
        memset(out, 0, sizeof out);
        OK(cudaGraphLaunch(x, NULL));
        OK(cudaStreamSynchronize(NULL));
        EXPECT(all_are(out, 10));
    }
    OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
    EXPECT(used > 0); /* "currently associated with graphs" */
    OK(cudaGraphExecDestroy(x));
    OK(cudaGraphDestroy(g));
    OK(cudaDeviceGraphMemTrim(0));
    OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
    EXPECT(used == 0);
}

static void
keeps_attributes_and_objects(void)
{
    cudaLaunchAttributeValue v = {.priority = -1}, got = {.priority = 9};
    cudaUserObject_t object;

    make_chain();
    OK(cudaGraphKernelNodeSetAttribute(chain.plus, cudaLaunchAttributePriority, &v));
    OK(cudaGraphKernelNodeGetAttribute(chain.plus, cudaLaunchAttributePriority, &got));
    EXPECT(got.priority == -1);
    /* The first is copied to. */
    OK(cudaGraphKernelNodeCopyAttributes(chain.times, chain.plus));
    OK(cudaGraphKernelNodeGetAttribute(chain.times, cudaLaunchAttributePriority, &got));
    EXPECT(got.priority == -1);
    FAILS(cudaErrorInvalidValue,
          cudaGraphKernelNodeGetAttribute(chain.plus, (cudaLaunchAttributeID)77, &got));
    OK(cudaUserObjectCreate(&object, &chain.step, count_host_call, 1, 1));
    OK(cudaGraphRetainUserObject(chain.graph, object, 1, 1)); /* the graph has the reference now */
    EXPECT(host_calls == 0);
    OK(cudaGraphExecDestroy(chain.exec));
    OK(cudaGraphDestroy(chain.graph));
    EXPECT(host_calls == 1);
}

/* The context that is current then has ended. */
static void
begins_anew_after_a_reset(void)
{
    make_chain();
    EXPECT(chain_gives(16));
    for (int i = 0; i < 2; i++) {
        OK(cudaDeviceReset());
        make_chain();
        EXPECT(chain_gives(16));
    }
    OK(cudaDeviceReset());
    OK(cudaGraphCreate(&chain.graph, 0));
    OK(cudaGraphAddMemcpyNode1D(&chain.copy, chain.graph, NULL, 0, chain.copied, &chain.three, 4,
                                cudaMemcpyHostToHost));
}

int
main(int argc, char **argv)
{
    static const struct program_case cases[] = {
        {"runs_a_chain", runs_a_chain},
        {"tells_what_nodes_do", tells_what_nodes_do},
        {"changes_what_runs", changes_what_runs},
        {"changes_the_graph", changes_the_graph},
        {"copies_boxes", copies_boxes},
        {"copies_arrays", copies_arrays},
        {"copies_variables", copies_variables},
        {"nests_graphs", nests_graphs},
        {"knows_its_edges", knows_its_edges},
        {"orders_by_events", orders_by_events},
        {"owns_memory", owns_memory},
        {"keeps_attributes_and_objects", keeps_attributes_and_objects},
        {"begins_anew_after_a_reset", begins_anew_after_a_reset},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
