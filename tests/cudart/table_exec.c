/* Graphs that run: instances, updates of them, nodes of any type, captures. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

static struct {
    void *graph, *exec;
    void *empty, *kernel, *copy, *line, *to_symbol, *from_symbol, *set, *host, *child, *record;
    void *inner;
    char *device, *pinned;
    void *event;
    void *stream;
    void *args[2];
    int count;
} ran;

static struct table_kernel_node exec_kernel;
static struct table_copy3d exec_copy;
static struct table_memset_node exec_set;
static struct table_host_node exec_host;

static void
exec_host_function(void *data)
{
    (void)data;
}

#define EXEC_ADD (void **, void *, const void *, size_t, const void *)

static void
make_nodes(void)
{
    table_register();
    QUIET(cudaMalloc, (void **, size_t), ((void **)&ran.device, 65536));
    QUIET(cudaMallocHost, (void **, size_t), ((void **)&ran.pinned, 65536));
    QUIET(cudaEventCreate, (void **), (&ran.event));
    QUIET(cudaStreamCreate, (void **), (&ran.stream));
    QUIET(cudaGraphCreate, (void **, unsigned), (&ran.graph, 0));
    QUIET(cudaGraphCreate, (void **, unsigned), (&ran.inner, 0));
    ran.count = 4;
    ran.args[0] = &ran.device;
    ran.args[1] = &ran.count;
    exec_kernel = (struct table_kernel_node){
        .function = &table_add, .grid = {1, 1, 1}, .block = {32, 1, 1}, .params = ran.args};
    exec_copy = (struct table_copy3d){.src = {ran.pinned, 64, 64, 1},
                                      .dst = {ran.device, 64, 64, 1},
                                      .extent = {64, 1, 1},
                                      .kind = TO_DEVICE};
    exec_set =
        (struct table_memset_node){.dst = ran.device, .element = 4, .width = 16, .height = 1};
    exec_host = (struct table_host_node){exec_host_function, NULL};
    QUIET(cudaGraphAddEmptyNode, (void **, void *, const void *, size_t),
          (&ran.empty, ran.graph, NULL, 0));
    QUIET(cudaGraphAddKernelNode, EXEC_ADD, (&ran.kernel, ran.graph, &ran.empty, 1, &exec_kernel));
    QUIET(cudaGraphAddMemcpyNode, EXEC_ADD, (&ran.copy, ran.graph, NULL, 0, &exec_copy));
    QUIET(cudaGraphAddMemcpyNode1D,
          (void **, void *, const void *, size_t, void *, const void *, size_t, int),
          (&ran.line, ran.graph, NULL, 0, ran.device, ran.pinned, 64, TO_DEVICE));
    QUIET(cudaGraphAddMemcpyNodeToSymbol,
          (void **, void *, const void *, size_t, const void *, const void *, size_t, size_t, int),
          (&ran.to_symbol, ran.graph, NULL, 0, table_dev, ran.pinned, 64, 0, TO_DEVICE));
    QUIET(cudaGraphAddMemcpyNodeFromSymbol,
          (void **, void *, const void *, size_t, void *, const void *, size_t, size_t, int),
          (&ran.from_symbol, ran.graph, NULL, 0, ran.pinned, table_dev, 64, 0, TO_HOST));
    QUIET(cudaGraphAddMemsetNode, EXEC_ADD, (&ran.set, ran.graph, NULL, 0, &exec_set));
    QUIET(cudaGraphAddHostNode, EXEC_ADD, (&ran.host, ran.graph, NULL, 0, &exec_host));
    QUIET(cudaGraphAddChildGraphNode, (void **, void *, const void *, size_t, void *),
          (&ran.child, ran.graph, NULL, 0, ran.inner));
    QUIET(cudaGraphAddEventRecordNode, (void **, void *, const void *, size_t, void *),
          (&ran.record, ran.graph, NULL, 0, ran.event));
}

static void
instances(void)
{
    unsigned long long flags = 77;
    char params[64] = {0};
    void *exec = NULL;

    if (table_edition() < 12) {
        TRY("plain", cudaGraphInstantiate, (void **, void *, void **, char *, size_t),
            (&ran.exec, ran.graph, NULL, NULL, 0));
        TRY("no place", cudaGraphInstantiate, (void **, void *, void **, char *, size_t),
            (NULL, ran.graph, NULL, NULL, 0));
        TRY("no graph", cudaGraphInstantiate, (void **, void *, void **, char *, size_t),
            (&exec, NULL, NULL, NULL, 0));
    } else {
        TRY("plain", cudaGraphInstantiate, (void **, void *, unsigned long long),
            (&ran.exec, ran.graph, 0));
        TRY("no place", cudaGraphInstantiate, (void **, void *, unsigned long long),
            (NULL, ran.graph, 0));
        TRY("no graph", cudaGraphInstantiate, (void **, void *, unsigned long long),
            (&exec, NULL, 0));
        TRY("bad flags", cudaGraphInstantiate, (void **, void *, unsigned long long),
            (&exec, ran.graph, 77));
    }
    TRY("free on launch", cudaGraphInstantiateWithFlags, (void **, void *, unsigned long long),
        (&exec, ran.graph, 1));
    TRY("plain", cudaGraphExecDestroy, (void *), (exec));
    TRY("none", cudaGraphExecDestroy, (void *), (NULL));
    TRY("bad flags", cudaGraphInstantiateWithFlags, (void **, void *, unsigned long long),
        (&exec, ran.graph, 77));
    TRY("plain", cudaGraphInstantiateWithParams, (void **, void *, void *),
        (&exec, ran.graph, params));
    TRY("no params", cudaGraphInstantiateWithParams, (void **, void *, void *),
        (&exec, ran.graph, NULL));
    TRY("plain", cudaGraphExecGetFlags, (void *, unsigned long long *), (ran.exec, &flags));
    table_show("%llu", flags);
    TRY("plain", cudaGraphUpload, (void *, void *), (ran.exec, ran.stream));
    TRY("none", cudaGraphUpload, (void *, void *), (NULL, ran.stream));
    TRY("plain", cudaGraphLaunch, (void *, void *), (ran.exec, ran.stream));
    TRY("default stream", cudaGraphLaunch, (void *, void *), (ran.exec, NULL));
    TRY("none", cudaGraphLaunch, (void *, void *), (NULL, ran.stream));
    TRY("default stream", cudaGraphLaunch_ptsz, (void *, void *), (ran.exec, NULL));
    TRY("after graphs", cudaDeviceSynchronize, (void), ());
}

static void
changed_instances(void)
{
    struct table_kernel_node kernel = exec_kernel;
    struct table_copy3d copy = exec_copy;
    unsigned enabled = 77;

    kernel.block.x = 64;
    TRY("plain", cudaGraphExecKernelNodeSetParams,
        (void *, void *, const struct table_kernel_node *), (ran.exec, ran.kernel, &kernel));
    kernel.function = NULL;
    TRY("no function", cudaGraphExecKernelNodeSetParams,
        (void *, void *, const struct table_kernel_node *), (ran.exec, ran.kernel, &kernel));
    TRY("wrong node", cudaGraphExecKernelNodeSetParams,
        (void *, void *, const struct table_kernel_node *), (ran.exec, ran.copy, &exec_kernel));
    TRY("plain", cudaGraphExecMemcpyNodeSetParams, (void *, void *, const struct table_copy3d *),
        (ran.exec, ran.copy, &copy));
    TRY("no description", cudaGraphExecMemcpyNodeSetParams,
        (void *, void *, const struct table_copy3d *), (ran.exec, ran.copy, NULL));
    copy.kind = BAD_KIND;
    TRY("kind 9", cudaGraphExecMemcpyNodeSetParams, (void *, void *, const struct table_copy3d *),
        (ran.exec, ran.copy, &copy));
    TRY("plain", cudaGraphExecMemcpyNodeSetParams1D,
        (void *, void *, void *, const void *, size_t, int),
        (ran.exec, ran.line, ran.device, ran.pinned, 32, TO_DEVICE));
    TRY("kind 9", cudaGraphExecMemcpyNodeSetParams1D,
        (void *, void *, void *, const void *, size_t, int),
        (ran.exec, ran.line, ran.device, ran.pinned, 32, BAD_KIND));
    TRY("plain", cudaGraphExecMemcpyNodeSetParamsToSymbol,
        (void *, void *, const void *, const void *, size_t, size_t, int),
        (ran.exec, ran.to_symbol, table_dev, ran.pinned, 32, 0, TO_DEVICE));
    TRY("no symbol", cudaGraphExecMemcpyNodeSetParamsToSymbol,
        (void *, void *, const void *, const void *, size_t, size_t, int),
        (ran.exec, ran.to_symbol, NULL, ran.pinned, 32, 0, TO_DEVICE));
    TRY("plain", cudaGraphExecMemcpyNodeSetParamsFromSymbol,
        (void *, void *, void *, const void *, size_t, size_t, int),
        (ran.exec, ran.from_symbol, ran.pinned, table_dev, 32, 0, TO_HOST));
    TRY("plain", cudaGraphExecMemsetNodeSetParams,
        (void *, void *, const struct table_memset_node *), (ran.exec, ran.set, &exec_set));
    TRY("no description", cudaGraphExecMemsetNodeSetParams,
        (void *, void *, const struct table_memset_node *), (ran.exec, ran.set, NULL));
    TRY("plain", cudaGraphExecHostNodeSetParams, (void *, void *, const struct table_host_node *),
        (ran.exec, ran.host, &exec_host));
    TRY("plain", cudaGraphExecChildGraphNodeSetParams, (void *, void *, void *),
        (ran.exec, ran.child, ran.inner));
    TRY("plain", cudaGraphExecEventRecordNodeSetEvent, (void *, void *, void *),
        (ran.exec, ran.record, ran.event));
    TRY("not a wait", cudaGraphExecEventWaitNodeSetEvent, (void *, void *, void *),
        (ran.exec, ran.record, ran.event));
    TRY("off", cudaGraphNodeSetEnabled, (void *, void *, unsigned), (ran.exec, ran.kernel, 0));
    TRY("off", cudaGraphNodeGetEnabled, (void *, void *, unsigned *),
        (ran.exec, ran.kernel, &enabled));
    table_show("%u", enabled);
    TRY("an empty node", cudaGraphNodeSetEnabled, (void *, void *, unsigned),
        (ran.exec, ran.empty, 0));
}

struct update_result {
    int result, pad;
    void *node, *from;
};

static void
updated_instances(void)
{
    struct update_result result = {77, 0, NULL, NULL};
    void *node = NULL;
    int old = 77;

    if (table_edition() < 12) {
        TRY("the same", cudaGraphExecUpdate, (void *, void *, void **, int *),
            (ran.exec, ran.graph, &node, &old));
        table_show("%d", old);
        TRY("another", cudaGraphExecUpdate, (void *, void *, void **, int *),
            (ran.exec, ran.inner, &node, &old));
        table_show("%d", old);
    } else {
        TRY("the same", cudaGraphExecUpdate, (void *, void *, struct update_result *),
            (ran.exec, ran.graph, &result));
        table_show("%d", result.result);
        TRY("another", cudaGraphExecUpdate, (void *, void *, struct update_result *),
            (ran.exec, ran.inner, &result));
        table_show("%d", result.result);
    }
    TRY("after updates", cudaGraphLaunch, (void *, void *), (ran.exec, ran.stream));
    TRY("after updates", cudaStreamSynchronize, (void *), (ran.stream));
}

#define NODE_OLD (void **, void *, const void *, size_t, struct table_node *)
#define NODE_NEW (void **, void *, const void *, const void *, size_t, struct table_node *)

static void
try_node(const char *label, struct table_node *params)
{
    void *node = NULL;

    if (table_edition() < 13)
        TRY(label, cudaGraphAddNode, NODE_OLD, (&node, ran.graph, NULL, 0, params));
    else
        TRY(label, cudaGraphAddNode, NODE_NEW, (&node, ran.graph, NULL, NULL, 0, params));
    if (node) {
        TRY(label, cudaGraphNodeSetParams, (void *, struct table_node *), (node, params));
        TRY(label, cudaGraphDestroyNode, (void *), (node));
    }
}

static void
any_nodes(void)
{
    struct table_node node = {.type = 0};
    uint64_t handle = 0;

    node.u.kernel.node = exec_kernel;
    try_node("kernel", &node);
    node.u.kernel.node.function = NULL;
    try_node("kernel without a function", &node);
    node = (struct table_node){.type = 1};
    node.u.copy.copy = exec_copy;
    try_node("copy", &node);
    node.u.copy.copy.kind = BAD_KIND;
    try_node("copy of kind 9", &node);
    node = (struct table_node){.type = 2};
    node.u.set.node = exec_set;
    try_node("set", &node);
    node = (struct table_node){.type = 4};
    node.u.pointer = ran.inner;
    try_node("child", &node);
    node = (struct table_node){.type = 5};
    try_node("empty", &node);
    node = (struct table_node){.type = 7};
    node.u.pointer = ran.event;
    try_node("record", &node);
    node = (struct table_node){.type = 77};
    try_node("bad", &node);
    try_node("no description", NULL);
    TRY("plain", cudaGraphConditionalHandleCreate, (uint64_t *, void *, unsigned, unsigned),
        (&handle, ran.graph, 1, 1));
    TRY("bad flags", cudaGraphConditionalHandleCreate, (uint64_t *, void *, unsigned, unsigned),
        (&handle, ran.graph, 1, 9));
    TRY("no place", cudaGraphConditionalHandleCreate, (uint64_t *, void *, unsigned, unsigned),
        (NULL, ran.graph, 1, 1));
    node = (struct table_node){.type = 0};
    node.u.kernel.node = exec_kernel;
    TRY("kernel", cudaGraphExecNodeSetParams, (void *, void *, struct table_node *),
        (ran.exec, ran.kernel, &node));
    TRY("no description", cudaGraphExecNodeSetParams, (void *, void *, struct table_node *),
        (ran.exec, ran.kernel, NULL));
}

void
table_execs(void)
{
    make_nodes();
    instances();
    changed_instances();
    updated_instances();
    any_nodes();
    TRY("at last", cudaGraphExecDestroy, (void *), (ran.exec));
    TRY("at last", cudaGraphDestroy, (void *), (ran.graph));
}

static void
capture_info(void *stream)
{
    unsigned long long id = 77;
    int status = 77;

    if (table_edition() < 13) {
        TRY("no capture", cudaStreamGetCaptureInfo, (void *, int *, unsigned long long *),
            (stream, &status, &id));
        table_show("%d", status);
        TRY_SINCE(11, "no place", cudaStreamGetCaptureInfo, (void *, int *, unsigned long long *),
                  (stream, NULL, &id));
        TRY("no capture", cudaStreamGetCaptureInfo_v2,
            (void *, int *, unsigned long long *, void **, const void **, size_t *),
            (stream, &status, &id, NULL, NULL, NULL));
        TRY("no capture", cudaStreamGetCaptureInfo_v3,
            (void *, int *, unsigned long long *, void **, const void **, const void **, size_t *),
            (stream, &status, &id, NULL, NULL, NULL, NULL));
    } else {
        TRY("no capture", cudaStreamGetCaptureInfo,
            (void *, int *, unsigned long long *, void **, const void **, const void **, size_t *),
            (stream, &status, &id, NULL, NULL, NULL, NULL));
        table_show("%d", status);
        TRY("no place", cudaStreamGetCaptureInfo,
            (void *, int *, unsigned long long *, void **, const void **, const void **, size_t *),
            (stream, NULL, &id, NULL, NULL, NULL, NULL));
    }
}

static void
good_capture(void)
{
    void *graph = NULL, *exec = NULL;
    size_t count = 77;
    int status = 77;

    TRY("global", cudaStreamBeginCapture, (void *, int), (ran.stream, 0));
    TRY("capturing", cudaStreamIsCapturing, (void *, int *), (ran.stream, &status));
    table_show("%d", status);
    TRY("again", cudaStreamBeginCapture, (void *, int), (ran.stream, 0));
    TRY("captured", cudaMemcpyAsync, (void *, const void *, size_t, int, void *),
        (ran.device, ran.pinned, 64, TO_DEVICE, ran.stream));
    TRY("captured", cudaMemsetAsync, (void *, int, size_t, void *),
        (ran.device, 0, 64, ran.stream));
    TRY("captured", cudaLaunchKernel,
        (const void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (&table_add, (struct table_dim3){1, 1, 1}, (struct table_dim3){32, 1, 1}, ran.args, 0,
         ran.stream));
    TRY("nothing is captured", cudaMemcpyAsync, (void *, const void *, size_t, int, void *),
        (ran.device, ran.pinned, 0, TO_DEVICE, ran.stream));
    TRY("captured", cudaLaunchHostFunc, (void *, void (*)(void *), void *),
        (ran.stream, exec_host_function, NULL));
    TRY("plain", cudaStreamEndCapture, (void *, void **), (ran.stream, &graph));
    TRY("captured", cudaGraphGetNodes, (void *, void **, size_t *), (graph, NULL, &count));
    table_show("%zu", count);
    TRY("captured", cudaGraphInstantiateWithFlags, (void **, void *, unsigned long long),
        (&exec, graph, 0));
    TRY("captured", cudaGraphLaunch, (void *, void *), (exec, ran.stream));
    TRY("captured", cudaStreamSynchronize, (void *), (ran.stream));
}

void
table_captures(void)
{
    void *graph = (void *)77, *memory = NULL;

    make_nodes();
    capture_info(ran.stream);
    TRY("none", cudaStreamEndCapture, (void *, void **), (ran.stream, &graph));
    TRY("default stream", cudaStreamBeginCapture, (void *, int), (NULL, 0));
    TRY("bad mode", cudaStreamBeginCapture, (void *, int), (ran.stream, 7));
    good_capture();
    TRY("to be broken", cudaStreamBeginCapture, (void *, int), (ran.stream, 0));
    TRY("while capturing", cudaMalloc, (void **, size_t), (&memory, 64));
    TRY("while capturing", cudaStreamQuery, (void *), (ran.stream));
    TRY("while capturing", cudaStreamSynchronize, (void *), (ran.stream));
    TRY("while capturing", cudaDeviceSynchronize, (void), ());
    TRY("broken", cudaStreamEndCapture, (void *, void **), (ran.stream, &graph));
    table_show("graph NULL %d", graph == NULL);
    TRY("no place", cudaStreamEndCapture, (void *, void **), (ran.stream, NULL));
    TRY("relaxed", cudaStreamBeginCapture, (void *, int), (ran.stream, 2));
    TRY("relaxed", cudaMalloc, (void **, size_t), (&memory, 64));
    TRY("relaxed", cudaStreamEndCapture, (void *, void **), (ran.stream, &graph));
    TRY("to a graph", cudaStreamBeginCaptureToGraph,
        (void *, void *, const void *, const void *, size_t, int),
        (ran.stream, ran.graph, NULL, NULL, 0, 2));
    if (table_edition() >= 13) {
        TRY("none", cudaStreamUpdateCaptureDependencies,
            (void *, void **, const void *, size_t, unsigned), (ran.stream, NULL, NULL, 0, 1));
        TRY("bad flags", cudaStreamUpdateCaptureDependencies,
            (void *, void **, const void *, size_t, unsigned), (ran.stream, NULL, NULL, 0, 9));
        TRY("to a graph", cudaStreamEndCapture, (void *, void **), (ran.stream, &graph));
        table_show("same %d", graph == ran.graph);
    }
}
