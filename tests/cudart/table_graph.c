/* Graphs: their nodes, one kind after the other, and what can be asked about them. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

static struct {
    void *graph;
    char *device, *host;
    void *event, *second_event;
    void *args[2];
    int count;
} with;

static void
graph_host_function(void *data)
{
    (void)data;
}

static void
make_graph(void)
{
    table_register();
    QUIET(cudaMalloc, (void **, size_t), ((void **)&with.device, 65536));
    QUIET(cudaMallocHost, (void **, size_t), ((void **)&with.host, 65536));
    QUIET(cudaEventCreate, (void **), (&with.event));
    QUIET(cudaEventCreate, (void **), (&with.second_event));
    QUIET(cudaGraphCreate, (void **, unsigned), (&with.graph, 0));
    with.count = 4;
    with.args[0] = &with.device;
    with.args[1] = &with.count;
}

#define ADD (void **, void *, const void *, size_t, const void *)

static void
whole_graphs(void)
{
    void *graph = NULL, *copy = NULL, *node = NULL, *found = NULL, *child = NULL, *inside = NULL;
    size_t count = 77;
    int type = 77;

    TRY("plain", cudaGraphCreate, (void **, unsigned), (&graph, 0));
    TRY("bad flags", cudaGraphCreate, (void **, unsigned), (&graph, 1));
    TRY("no place", cudaGraphCreate, (void **, unsigned), (NULL, 0));
    TRY("plain", cudaGraphAddEmptyNode, (void **, void *, const void *, size_t),
        (&node, graph, NULL, 0));
    TRY("no place", cudaGraphAddEmptyNode, (void **, void *, const void *, size_t),
        (NULL, graph, NULL, 0));
    TRY("no graph", cudaGraphAddEmptyNode, (void **, void *, const void *, size_t),
        (&found, NULL, NULL, 0));
    TRY("dependencies are missing", cudaGraphAddEmptyNode, (void **, void *, const void *, size_t),
        (&found, graph, NULL, 1));
    TRY("plain", cudaGraphNodeGetType, (void *, int *), (node, &type));
    table_show("%d", type);
    TRY("no node", cudaGraphNodeGetType, (void *, int *), (NULL, &type));
    TRY("no place", cudaGraphNodeGetType, (void *, int *), (node, NULL));
    TRY("plain", cudaGraphClone, (void **, void *), (&copy, graph));
    TRY("no graph", cudaGraphClone, (void **, void *), (&copy, NULL));
    TRY("plain", cudaGraphNodeFindInClone, (void **, void *, void *), (&found, node, copy));
    TRY("not a clone", cudaGraphNodeFindInClone, (void **, void *, void *), (&found, node, graph));
    TRY("a child", cudaGraphAddChildGraphNode, (void **, void *, const void *, size_t, void *),
        (&child, graph, &node, 1, copy));
    TRY("no child", cudaGraphAddChildGraphNode, (void **, void *, const void *, size_t, void *),
        (&found, graph, &node, 1, NULL));
    TRY("a child", cudaGraphChildGraphNodeGetGraph, (void *, void **), (child, &inside));
    TRY("not a child", cudaGraphChildGraphNodeGetGraph, (void *, void **), (node, &inside));
    TRY("two nodes", cudaGraphGetNodes, (void *, void **, size_t *), (graph, NULL, &count));
    table_show("%zu", count);
    TRY("no count", cudaGraphGetNodes, (void *, void **, size_t *), (graph, NULL, NULL));
    TRY("one root", cudaGraphGetRootNodes, (void *, void **, size_t *), (graph, NULL, &count));
    table_show("%zu", count);
    TRY("plain", cudaGraphDestroyNode, (void *), (child));
    TRY("no node", cudaGraphDestroyNode, (void *), (NULL));
    TRY("plain", cudaGraphDestroy, (void *), (graph));
    TRY("no graph", cudaGraphDestroy, (void *), (NULL));
}

static void
edges_old(void *a, void *b)
{
    void *from[4] = {NULL}, *to[4] = {NULL};
    size_t count = 4;

    TRY("plain", cudaGraphAddDependencies, (void *, void **, void **, size_t),
        (with.graph, &a, &b, 1));
    TRY("again", cudaGraphAddDependencies, (void *, void **, void **, size_t),
        (with.graph, &a, &b, 1));
    TRY("no places", cudaGraphAddDependencies, (void *, void **, void **, size_t),
        (with.graph, NULL, NULL, 1));
    TRY("plain", cudaGraphGetEdges, (void *, void **, void **, size_t *),
        (with.graph, from, to, &count));
    table_show("%zu, as made %d", count, from[0] == a && to[0] == b);
    TRY("no count", cudaGraphGetEdges, (void *, void **, void **, size_t *),
        (with.graph, from, to, NULL));
    count = 4;
    TRY("plain", cudaGraphNodeGetDependencies, (void *, void **, size_t *), (b, from, &count));
    table_show("%zu", count);
    count = 4;
    TRY("plain", cudaGraphNodeGetDependentNodes, (void *, void **, size_t *), (a, from, &count));
    table_show("%zu", count);
    TRY("plain", cudaGraphRemoveDependencies, (void *, void **, void **, size_t),
        (with.graph, &a, &b, 1));
    TRY("again", cudaGraphRemoveDependencies, (void *, void **, void **, size_t),
        (with.graph, &a, &b, 1));
}

static void
edges_new(void *a, void *b)
{
    void *from[4] = {NULL}, *to[4] = {NULL};
    size_t count = 4;

    TRY("plain", cudaGraphAddDependencies, (void *, void **, void **, const void *, size_t),
        (with.graph, &a, &b, NULL, 1));
    TRY("again", cudaGraphAddDependencies, (void *, void **, void **, const void *, size_t),
        (with.graph, &a, &b, NULL, 1));
    TRY("no places", cudaGraphAddDependencies, (void *, void **, void **, const void *, size_t),
        (with.graph, NULL, NULL, NULL, 1));
    TRY("plain", cudaGraphGetEdges, (void *, void **, void **, void *, size_t *),
        (with.graph, from, to, NULL, &count));
    table_show("%zu, as made %d", count, from[0] == a && to[0] == b);
    TRY("no count", cudaGraphGetEdges, (void *, void **, void **, void *, size_t *),
        (with.graph, from, to, NULL, NULL));
    count = 4;
    TRY("plain", cudaGraphNodeGetDependencies, (void *, void **, void *, size_t *),
        (b, from, NULL, &count));
    table_show("%zu", count);
    count = 4;
    TRY("plain", cudaGraphNodeGetDependentNodes, (void *, void **, void *, size_t *),
        (a, from, NULL, &count));
    table_show("%zu", count);
    TRY("plain", cudaGraphRemoveDependencies, (void *, void **, void **, const void *, size_t),
        (with.graph, &a, &b, NULL, 1));
    TRY("again", cudaGraphRemoveDependencies, (void *, void **, void **, const void *, size_t),
        (with.graph, &a, &b, NULL, 1));
}

void
table_graphs(void)
{
    void *a = NULL, *b = NULL, *object = NULL;

    whole_graphs();
    make_graph();
    QUIET(cudaGraphAddEmptyNode, (void **, void *, const void *, size_t),
          (&a, with.graph, NULL, 0));
    QUIET(cudaGraphAddEmptyNode, (void **, void *, const void *, size_t),
          (&b, with.graph, NULL, 0));
    if (table_edition() < 13)
        edges_old(a, b);
    else
        edges_new(a, b);
    TRY("plain", cudaUserObjectCreate, (void **, void *, void (*)(void *), unsigned, unsigned),
        (&object, NULL, graph_host_function, 1, 1));
    TRY("plain", cudaUserObjectRetain, (void *, unsigned), (object, 1));
    TRY("plain", cudaUserObjectRelease, (void *, unsigned), (object, 1));
    TRY("plain", cudaGraphRetainUserObject, (void *, void *, unsigned, unsigned),
        (with.graph, object, 1, 0));
    TRY("bad flags", cudaGraphRetainUserObject, (void *, void *, unsigned, unsigned),
        (with.graph, object, 1, 9));
    TRY("plain", cudaGraphReleaseUserObject, (void *, void *, unsigned), (with.graph, object, 1));
    TRY("no flags", cudaUserObjectCreate, (void **, void *, void (*)(void *), unsigned, unsigned),
        (&object, NULL, graph_host_function, 1, 0));
    TRY("no count", cudaUserObjectCreate, (void **, void *, void (*)(void *), unsigned, unsigned),
        (&object, NULL, graph_host_function, 0, 1));
    TRY("no object", cudaUserObjectRetain, (void *, unsigned), (NULL, 1));
    TRY("no file", cudaGraphDebugDotPrint, (void *, const char *, unsigned),
        (with.graph, "/nonexistent/graph.dot", 0));
    TRY("no name", cudaGraphDebugDotPrint, (void *, const char *, unsigned), (with.graph, NULL, 0));
}

static void
kernel_nodes(void)
{
    struct table_kernel_node good = {
        .function = &table_add,
        .grid = {1, 1, 1},
        .block = {32, 1, 1},
        .params = with.args,
    };
    struct table_kernel_node node = good, read = {0};
    char value[64] = {0};
    void *a = NULL, *b = NULL;

    TRY("plain", cudaGraphAddKernelNode, ADD, (&a, with.graph, NULL, 0, &node));
    TRY("no description", cudaGraphAddKernelNode, ADD, (&b, with.graph, NULL, 0, NULL));
    node.function = NULL;
    TRY("no function", cudaGraphAddKernelNode, ADD, (&b, with.graph, NULL, 0, &node));
    node.function = table_stranger(&node);
    TRY("not a function", cudaGraphAddKernelNode, ADD, (&b, with.graph, NULL, 0, &node));
    node.function = &table_missing;
    TRY("missing from the image", cudaGraphAddKernelNode, ADD, (&b, with.graph, NULL, 0, &node));
    node = good;
    node.block.x = 0;
    TRY("no threads", cudaGraphAddKernelNode, ADD, (&b, with.graph, NULL, 0, &node));
    node.block.x = 4096;
    TRY("too many threads", cudaGraphAddKernelNode, ADD, (&b, with.graph, NULL, 0, &node));
    node = good;
    node.params = NULL;
    TRY("no arguments", cudaGraphAddKernelNode, ADD, (&b, with.graph, NULL, 0, &node));
    TRY("second", cudaGraphAddKernelNode, ADD, (&b, with.graph, &a, 1, &good));
    TRY("plain", cudaGraphKernelNodeGetParams, (void *, struct table_kernel_node *), (a, &read));
    table_show("same function %d, block %u", read.function == &table_add, read.block.x);
    TRY("no place", cudaGraphKernelNodeGetParams, (void *, struct table_kernel_node *), (a, NULL));
    good.block.x = 64;
    TRY("plain", cudaGraphKernelNodeSetParams, (void *, const struct table_kernel_node *),
        (a, &good));
    TRY("no description", cudaGraphKernelNodeSetParams, (void *, const struct table_kernel_node *),
        (a, NULL));
    TRY("no node", cudaGraphKernelNodeSetParams, (void *, const struct table_kernel_node *),
        (NULL, &good));
    TRY("cooperative", cudaGraphKernelNodeGetAttribute, (void *, int, void *), (a, 2, value));
    table_show("%d", *(int *)(void *)value);
    TRY("cooperative", cudaGraphKernelNodeSetAttribute, (void *, int, const void *), (a, 2, value));
    TRY("bad", cudaGraphKernelNodeGetAttribute, (void *, int, void *), (a, 77, value));
    TRY("bad", cudaGraphKernelNodeSetAttribute, (void *, int, const void *), (a, 77, value));
    TRY("plain", cudaGraphKernelNodeCopyAttributes, (void *, void *), (a, b));
}

#define ADD_1D (void **, void *, const void *, size_t, void *, const void *, size_t, int)
#define ADD_SYMBOL \
    (void **, void *, const void *, size_t, void *, const void *, size_t, size_t, int)

static void
copy_nodes(void)
{
    struct table_copy3d box = {
        .src = {with.host, 64, 64, 1},
        .dst = {with.device, 64, 64, 1},
        .extent = {64, 1, 1},
        .kind = TO_DEVICE,
    };
    struct table_copy3d read = {0};
    void *a = NULL, *line = NULL, *bad = NULL;

    TRY("plain", cudaGraphAddMemcpyNode, ADD, (&a, with.graph, NULL, 0, &box));
    TRY("no description", cudaGraphAddMemcpyNode, ADD, (&bad, with.graph, NULL, 0, NULL));
    TRY("plain", cudaGraphMemcpyNodeGetParams, (void *, struct table_copy3d *), (a, &read));
    table_show("kind %d, same %d, pitch %zu, x %zu, y %zu, %zu x %zu x %zu", read.kind,
               read.src.ptr == with.host, read.src.pitch, read.src.xsize, read.src.ysize,
               read.extent.width, read.extent.height, read.extent.depth);
    TRY("no place", cudaGraphMemcpyNodeGetParams, (void *, struct table_copy3d *), (a, NULL));
    TRY("plain", cudaGraphMemcpyNodeSetParams, (void *, const struct table_copy3d *), (a, &box));
    TRY("no description", cudaGraphMemcpyNodeSetParams, (void *, const struct table_copy3d *),
        (a, NULL));
    box.kind = BAD_KIND;
    TRY("kind 9", cudaGraphAddMemcpyNode, ADD, (&bad, with.graph, NULL, 0, &box));
    box.kind = DEFAULT_KIND;
    TRY("default", cudaGraphAddMemcpyNode, ADD, (&bad, with.graph, NULL, 0, &box));
    TRY("default", cudaGraphMemcpyNodeGetParams, (void *, struct table_copy3d *), (bad, &read));
    table_show("kind %d", read.kind);
    box.kind = TO_DEVICE;
    box.extent.width = 0;
    TRY("nothing", cudaGraphAddMemcpyNode, ADD, (&bad, with.graph, NULL, 0, &box));
    TRY("plain", cudaGraphAddMemcpyNode1D, ADD_1D,
        (&line, with.graph, NULL, 0, with.device, with.host, 64, TO_DEVICE));
    TRY("default", cudaGraphAddMemcpyNode1D, ADD_1D,
        (&bad, with.graph, NULL, 0, with.device, with.host, 64, DEFAULT_KIND));
    TRY("kind 9", cudaGraphAddMemcpyNode1D, ADD_1D,
        (&bad, with.graph, NULL, 0, with.device, with.host, 64, BAD_KIND));
    TRY("nothing", cudaGraphAddMemcpyNode1D, ADD_1D,
        (&bad, with.graph, NULL, 0, with.device, with.host, 0, TO_DEVICE));
    TRY("to NULL", cudaGraphAddMemcpyNode1D, ADD_1D,
        (&bad, with.graph, NULL, 0, NULL, with.host, 64, TO_DEVICE));
    TRY("plain", cudaGraphMemcpyNodeGetParams, (void *, struct table_copy3d *), (line, &read));
    table_show("kind %d, pitch %zu, x %zu, y %zu, %zu x %zu x %zu", read.kind, read.src.pitch,
               read.src.xsize, read.src.ysize, read.extent.width, read.extent.height,
               read.extent.depth);
    TRY("plain", cudaGraphMemcpyNodeSetParams1D, (void *, void *, const void *, size_t, int),
        (line, with.device, with.host, 32, TO_DEVICE));
    TRY("kind 9", cudaGraphMemcpyNodeSetParams1D, (void *, void *, const void *, size_t, int),
        (line, with.device, with.host, 32, BAD_KIND));
}

static void
symbol_nodes(void)
{
    void *to = NULL, *from = NULL, *bad = NULL;

    TRY("plain", cudaGraphAddMemcpyNodeToSymbol, ADD_SYMBOL,
        (&to, with.graph, NULL, 0, table_dev, with.host, 64, 0, TO_DEVICE));
    TRY("too long", cudaGraphAddMemcpyNodeToSymbol, ADD_SYMBOL,
        (&bad, with.graph, NULL, 0, table_dev, with.host, 65, 0, TO_DEVICE));
    TRY("no symbol", cudaGraphAddMemcpyNodeToSymbol, ADD_SYMBOL,
        (&bad, with.graph, NULL, 0, NULL, with.host, 64, 0, TO_DEVICE));
    TRY("wrong kind", cudaGraphAddMemcpyNodeToSymbol, ADD_SYMBOL,
        (&bad, with.graph, NULL, 0, table_dev, with.host, 64, 0, TO_HOST));
    TRY("plain", cudaGraphMemcpyNodeSetParamsToSymbol,
        (void *, const void *, const void *, size_t, size_t, int),
        (to, table_dev, with.host, 32, 8, TO_DEVICE));
    TRY("no symbol", cudaGraphMemcpyNodeSetParamsToSymbol,
        (void *, const void *, const void *, size_t, size_t, int),
        (to, NULL, with.host, 32, 8, TO_DEVICE));
    TRY("plain", cudaGraphAddMemcpyNodeFromSymbol, ADD_SYMBOL,
        (&from, with.graph, NULL, 0, with.host, table_dev, 64, 0, TO_HOST));
    TRY("no symbol", cudaGraphAddMemcpyNodeFromSymbol, ADD_SYMBOL,
        (&bad, with.graph, NULL, 0, with.host, NULL, 64, 0, TO_HOST));
    TRY("wrong kind", cudaGraphAddMemcpyNodeFromSymbol, ADD_SYMBOL,
        (&bad, with.graph, NULL, 0, with.host, table_dev, 64, 0, TO_DEVICE));
    TRY("plain", cudaGraphMemcpyNodeSetParamsFromSymbol,
        (void *, void *, const void *, size_t, size_t, int),
        (from, with.host, table_dev, 32, 8, TO_HOST));
}

static void
other_nodes(void)
{
    struct table_memset_node set = {.dst = with.device, .element = 4, .width = 16, .height = 1};
    struct table_host_node host = {graph_host_function, NULL};
    void *a = NULL, *bad = NULL, *event = NULL;

    TRY("plain", cudaGraphAddMemsetNode, ADD, (&a, with.graph, NULL, 0, &set));
    TRY("no description", cudaGraphAddMemsetNode, ADD, (&bad, with.graph, NULL, 0, NULL));
    TRY("plain", cudaGraphMemsetNodeGetParams, (void *, struct table_memset_node *), (a, &set));
    table_show("element %u, %zu x %zu", set.element, set.width, set.height);
    TRY("plain", cudaGraphMemsetNodeSetParams, (void *, const struct table_memset_node *),
        (a, &set));
    TRY("no description", cudaGraphMemsetNodeSetParams, (void *, const struct table_memset_node *),
        (a, NULL));
    set.element = 3;
    TRY("3 bytes", cudaGraphAddMemsetNode, ADD, (&bad, with.graph, NULL, 0, &set));
    TRY("plain", cudaGraphAddHostNode, ADD, (&a, with.graph, NULL, 0, &host));
    TRY("no description", cudaGraphAddHostNode, ADD, (&bad, with.graph, NULL, 0, NULL));
    TRY("plain", cudaGraphHostNodeGetParams, (void *, struct table_host_node *), (a, &host));
    table_show("same %d", host.fn == graph_host_function);
    TRY("plain", cudaGraphHostNodeSetParams, (void *, const struct table_host_node *), (a, &host));
    host.fn = NULL;
    TRY("no function", cudaGraphAddHostNode, ADD, (&bad, with.graph, NULL, 0, &host));
    TRY("plain", cudaGraphAddEventRecordNode, (void **, void *, const void *, size_t, void *),
        (&a, with.graph, NULL, 0, with.event));
    TRY("no event", cudaGraphAddEventRecordNode, (void **, void *, const void *, size_t, void *),
        (&bad, with.graph, NULL, 0, NULL));
    TRY("plain", cudaGraphEventRecordNodeGetEvent, (void *, void **), (a, &event));
    table_show("same %d", event == with.event);
    TRY("plain", cudaGraphEventRecordNodeSetEvent, (void *, void *), (a, with.second_event));
    TRY("plain", cudaGraphAddEventWaitNode, (void **, void *, const void *, size_t, void *),
        (&a, with.graph, NULL, 0, with.event));
    TRY("plain", cudaGraphEventWaitNodeGetEvent, (void *, void **), (a, &event));
    table_show("same %d", event == with.event);
    TRY("plain", cudaGraphEventWaitNodeSetEvent, (void *, void *), (a, with.second_event));
    TRY("no event", cudaGraphEventWaitNodeSetEvent, (void *, void *), (a, NULL));
}

/* cudaMemAllocNodeParams. */
struct alloc_node {
    struct table_pool_props props;
    const void *access;
    size_t access_count, bytes;
    void *address;
};

static void
memory_nodes(void)
{
    struct alloc_node alloc = {.props = {1, 0, {1, 0}, NULL, {0}}, .bytes = 4096}, read = {0};
    void *graph = NULL, *a = NULL, *b = NULL, *address = NULL;
    uint64_t bytes = 77;

    QUIET(cudaGraphCreate, (void **, unsigned), (&graph, 0));
    TRY("plain", cudaGraphAddMemAllocNode,
        (void **, void *, const void *, size_t, struct alloc_node *), (&a, graph, NULL, 0, &alloc));
    table_show("an address %d", alloc.address != NULL);
    TRY("plain", cudaGraphMemAllocNodeGetParams, (void *, struct alloc_node *), (a, &read));
    table_show("%zu bytes, same %d", read.bytes, read.address == alloc.address);
    TRY("plain", cudaGraphAddMemFreeNode, (void **, void *, const void *, size_t, void *),
        (&b, graph, &a, 1, alloc.address));
    TRY("not allocated", cudaGraphAddMemFreeNode, (void **, void *, const void *, size_t, void *),
        (&b, graph, &a, 1, NULL));
    TRY("plain", cudaGraphMemFreeNodeGetParams, (void *, void *), (b, &address));
    table_show("same %d", address == alloc.address);
    TRY("no description", cudaGraphAddMemAllocNode,
        (void **, void *, const void *, size_t, struct alloc_node *), (&a, graph, NULL, 0, NULL));
    TRY("used now", cudaDeviceGetGraphMemAttribute, (int, int, void *), (0, 0, &bytes));
    table_show("%llu", (unsigned long long)bytes);
    TRY("bad attribute", cudaDeviceGetGraphMemAttribute, (int, int, void *), (0, 77, &bytes));
    TRY("device 7", cudaDeviceGetGraphMemAttribute, (int, int, void *), (7, 0, &bytes));
    bytes = 0;
    TRY("high mark", cudaDeviceSetGraphMemAttribute, (int, int, void *), (0, 1, &bytes));
    TRY("read only", cudaDeviceSetGraphMemAttribute, (int, int, void *), (0, 0, &bytes));
    TRY("plain", cudaDeviceGraphMemTrim, (int), (0));
    TRY("device 7", cudaDeviceGraphMemTrim, (int), (7));
}

void
table_nodes(void)
{
    make_graph();
    kernel_nodes();
    copy_nodes();
    symbol_nodes();
    other_nodes();
    memory_nodes();
}
