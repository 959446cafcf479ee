/* Calls about nodes: adding, queries, setting, in graphs and in executable graphs. All of them use
 * CUgraphNodeParams, the one description that fits every kind of node. */
#include <stdlib.h>
#include <string.h>

#include "driver/graph/node.h"
#include "driver/memory/memory.h"
#include "driver/parts.h"

/* ---- adding ---------------------------------------------------------------------------------- */

struct place {
    CUgraphNode *out;
    CUgraph graph;
    const CUgraphNode *deps;
    const CUgraphEdgeData *edges;
    size_t count;
};

/* A child graph is a copy that belongs to its node, unless ownership was moved: then it is the
 * graph itself. */
static CUresult
give_child(struct hed_driver *d, struct hed_node *n, const CUDA_CHILD_GRAPH_NODE_PARAMS *p)
{
    struct hed_graph *g = hed_graph_find(d, p->graph);
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (!g)
        return r;
    if (g->handles || g->root) { /* conditional handles belong to their graph */
        r = CUDA_ERROR_NOT_SUPPORTED;
    } else if (p->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
        if (!g->is_child && g != n->graph) {
            n->child = g;
            g->is_child = true;
            r = CUDA_SUCCESS;
        }
    } else if (p->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE && g != n->graph) {
        r = hed_graph_clone(g, &n->child);
        if (r == CUDA_SUCCESS)
            n->child->is_child = true;
    }
    hed_object_put(&g->object);
    return r;
}

/* The address is known at once, and is the same whenever the graph runs. */
static CUresult
give_node_memory(struct hed_layer *self, struct hed_node *n, CUDA_MEM_ALLOC_NODE_PARAMS_v2 *p)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_device *dev;
    struct hed_context *c;
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (p->bytesize == 0 || p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        p->poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return r;
    r = hed_device_get(self, p->poolProps.location.id, &dev);
    if (r != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    r = hed_node_context(self, NULL, dev->ordinal, &c);
    if (r != CUDA_SUCCESS)
        return r;

    struct hed_graph_memory *m = calloc(1, sizeof *m);

    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = hed_pool_graph_take(c, dev->default_pool, p->bytesize, &m->at);
    if (r != CUDA_SUCCESS) {
        free(m);
        return r;
    }
    atomic_init(&m->refs, 1);
    m->driver = d;
    m->size = p->bytesize;
    memcpy(&m->given, p, sizeof m->given);
    m->given.accessDescs = NULL;
    m->given.accessDescCount = 0;
    m->given.dptr = p->dptr = m->at;
    n->memory = m;
    return CUDA_SUCCESS;
}

/* Frees memory of an allocation node, in this graph or in one that ran before. The memory stays
 * with that node's graph; only its contents are lost. A graph cannot free other memory. */
static CUresult
give_up_memory(struct hed_driver *d, struct hed_node *n, CUdeviceptr at)
{
    struct hed_allocation a;

    if (!hed_memory_find(d, at, &a) || a.at != at || !a.graph)
        return CUDA_ERROR_INVALID_VALUE;
    n->freed = at;
    return CUDA_SUCCESS;
}

static CUresult
give_rest(struct hed_layer *self, struct hed_node *n, CUgraphNodeParams *p)
{
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return give_child(hed_driver_of(self), n, &p->graph);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return give_node_memory(self, n, &p->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return give_up_memory(hed_driver_of(self), n, p->free.dptr);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return hed_node_give_condition(n, &p->conditional);
    default:
        return CUDA_SUCCESS;
    }
}

static CUresult
add_node_at(struct hed_layer *self, const struct place *at, CUgraphNodeParams *p)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_graph *g = hed_graph_find(d, at->graph);
    struct hed_work *w = NULL;
    struct hed_node *n = NULL;
    CUresult r = g && at->out ? hed_node_work(self, p, &w) : CUDA_ERROR_INVALID_VALUE;

    if (r == CUDA_SUCCESS)
        r = hed_graph_add(g, p->type, w, at->deps, at->edges, at->count, &n);
    if (r == CUDA_SUCCESS) {
        r = give_rest(self, n, p);
        if (r == CUDA_SUCCESS) {
            *at->out = (CUgraphNode)(uintptr_t)n->object.handle;
        } else {
            struct hed_object *o =
                hed_handles_remove(d->handles, HED_KIND_GRAPH_NODE, n->object.handle);

            hed_lock(&hed_graphs_lock);
            hed_graph_remove_node_locked(n);
            hed_unlock(&hed_graphs_lock);
            if (o)
                hed_object_put(o);
        }
    }
    if (g)
        hed_object_put(&g->object);
    return r;
}

#define PLACE(a)                                \
    (&(struct place){.out = (a)->phGraphNode,   \
                     .graph = (a)->hGraph,      \
                     .deps = (a)->dependencies, \
                     .count = (a)->numDependencies})

static CUresult
soft_cuGraphAddNode(struct hed_layer *self, struct hed_cuGraphAddNode *a)
{
    return a->nodeParams ? add_node_at(self, PLACE(a), a->nodeParams) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
soft_cuGraphAddNode_v2(struct hed_layer *self, struct hed_cuGraphAddNode_v2 *a)
{
    struct place at = *PLACE(a);

    at.edges = a->dependencyData;
    return a->nodeParams ? add_node_at(self, &at, a->nodeParams) : CUDA_ERROR_INVALID_VALUE;
}

/* The structs for kernels have grown at their end: each version is the beginning of the next. */
static CUgraphNodeParams
of_kernel(const void *p, size_t size)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    memcpy(&all.kernel, p, size);
    return all;
}

static CUgraphNodeParams
of_memset(const CUDA_MEMSET_NODE_PARAMS_v1 *p, CUcontext ctx)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

    memcpy(&all.memset, p, sizeof *p);
    all.memset.ctx = ctx;
    return all;
}

static CUresult
soft_cuGraphAddKernelNode(struct hed_layer *self, struct hed_cuGraphAddKernelNode *a)
{
    if (!a->nodeParams)
        return CUDA_ERROR_INVALID_VALUE;

    CUgraphNodeParams p = of_kernel(a->nodeParams, sizeof *a->nodeParams);

    return add_node_at(self, PLACE(a), &p);
}

static CUresult
soft_cuGraphAddKernelNode_v2(struct hed_layer *self, struct hed_cuGraphAddKernelNode_v2 *a)
{
    if (!a->nodeParams)
        return CUDA_ERROR_INVALID_VALUE;

    CUgraphNodeParams p = of_kernel(a->nodeParams, sizeof *a->nodeParams);

    return add_node_at(self, PLACE(a), &p);
}

static CUresult
soft_cuGraphAddMemcpyNode(struct hed_layer *self, struct hed_cuGraphAddMemcpyNode *a)
{
    if (!a->copyParams)
        return CUDA_ERROR_INVALID_VALUE;

    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY,
                           .memcpy = {.copyCtx = a->ctx, .copyParams = *a->copyParams}};

    return add_node_at(self, PLACE(a), &p);
}

static CUresult
soft_cuGraphAddMemsetNode(struct hed_layer *self, struct hed_cuGraphAddMemsetNode *a)
{
    if (!a->memsetParams)
        return CUDA_ERROR_INVALID_VALUE;

    CUgraphNodeParams p = of_memset(a->memsetParams, a->ctx);

    return add_node_at(self, PLACE(a), &p);
}

static CUresult
soft_cuGraphAddHostNode(struct hed_layer *self, struct hed_cuGraphAddHostNode *a)
{
    if (!a->nodeParams)
        return CUDA_ERROR_INVALID_VALUE;

    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST,
                           .host = {a->nodeParams->fn, a->nodeParams->userData}};

    return add_node_at(self, PLACE(a), &p);
}

static CUresult
soft_cuGraphAddChildGraphNode(struct hed_layer *self, struct hed_cuGraphAddChildGraphNode *a)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = a->childGraph}};

    return add_node_at(self, PLACE(a), &p);
}

static CUresult
soft_cuGraphAddEmptyNode(struct hed_layer *self, struct hed_cuGraphAddEmptyNode *a)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EMPTY};

    return add_node_at(self, PLACE(a), &p);
}

static CUresult
soft_cuGraphAddEventRecordNode(struct hed_layer *self, struct hed_cuGraphAddEventRecordNode *a)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                           .eventRecord = {.event = a->event}};

    return add_node_at(self, PLACE(a), &p);
}

static CUresult
soft_cuGraphAddEventWaitNode(struct hed_layer *self, struct hed_cuGraphAddEventWaitNode *a)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {.event = a->event}};

    return add_node_at(self, PLACE(a), &p);
}

static CUresult
soft_cuGraphAddBatchMemOpNode(struct hed_layer *self, struct hed_cuGraphAddBatchMemOpNode *a)
{
    if (!a->nodeParams)
        return CUDA_ERROR_INVALID_VALUE;

    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};

    memcpy(&p.memOp, a->nodeParams, sizeof *a->nodeParams);
    return add_node_at(self, PLACE(a), &p);
}

static CUresult
soft_cuGraphAddMemAllocNode(struct hed_layer *self, struct hed_cuGraphAddMemAllocNode *a)
{
    if (!a->nodeParams)
        return CUDA_ERROR_INVALID_VALUE;

    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};

    memcpy(&p.alloc, a->nodeParams, sizeof *a->nodeParams);

    const CUresult r = add_node_at(self, PLACE(a), &p);

    if (r == CUDA_SUCCESS)
        a->nodeParams->dptr = p.alloc.dptr;
    return r;
}

static CUresult
soft_cuGraphAddMemFreeNode(struct hed_layer *self, struct hed_cuGraphAddMemFreeNode *a)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {.dptr = a->dptr}};

    return add_node_at(self, PLACE(a), &p);
}

/* ---- queries --------------------------------------------------------------------------------- */

/* The description of a node, which must be of the given type. `room` is the program's pointer for
 * the answer: INVALID_VALUE if it is NULL. */
static CUresult
ask_node(struct hed_layer *self, CUgraphNode handle, CUgraphNodeType type, const void *room,
         CUgraphNodeParams *out)
{
    struct hed_node *n = hed_node_find(hed_driver_of(self), handle);

    if (!n)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = room && n->type == type ? hed_node_params(n, out) : CUDA_ERROR_INVALID_VALUE;

    hed_object_put(&n->object);
    return r;
}

#define ASK(call, handle, type, to, member)                                   \
    static CUresult soft_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                         \
        CUgraphNodeParams p;                                                  \
        const CUresult r = ask_node(self, (a)->handle, type, (a)->to, &p);    \
                                                                              \
        if (r == CUDA_SUCCESS)                                                \
            memcpy((a)->to, &p.member, sizeof *(a)->to);                      \
        return r;                                                             \
    }

ASK(cuGraphKernelNodeGetParams, hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, kernel)
ASK(cuGraphKernelNodeGetParams_v2, hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, kernel)
ASK(cuGraphMemcpyNodeGetParams, hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams, memcpy.copyParams)
ASK(cuGraphMemsetNodeGetParams, hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams, memset)
ASK(cuGraphHostNodeGetParams, hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams, host)
ASK(cuGraphChildGraphNodeGetGraph, hNode, CU_GRAPH_NODE_TYPE_GRAPH, phGraph, graph.graph)
ASK(cuGraphEventRecordNodeGetEvent, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out,
    eventRecord.event)
ASK(cuGraphEventWaitNodeGetEvent, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out, eventWait.event)
ASK(cuGraphBatchMemOpNodeGetParams, hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, nodeParams_out, memOp)

static CUresult
soft_cuGraphMemAllocNodeGetParams(struct hed_layer *self,
                                  struct hed_cuGraphMemAllocNodeGetParams *a)
{
    struct hed_node *n = hed_node_find(hed_driver_of(self), a->hNode);

    if (!n)
        return CUDA_ERROR_INVALID_VALUE;

    const bool fits = a->params_out && n->memory;

    if (fits)
        *a->params_out = n->memory->given;
    hed_object_put(&n->object);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
soft_cuGraphMemFreeNodeGetParams(struct hed_layer *self, struct hed_cuGraphMemFreeNodeGetParams *a)
{
    struct hed_node *n = hed_node_find(hed_driver_of(self), a->hNode);

    if (!n)
        return CUDA_ERROR_INVALID_VALUE;

    const bool fits = a->dptr_out && n->type == CU_GRAPH_NODE_TYPE_MEM_FREE;

    if (fits)
        *a->dptr_out = n->freed;
    hed_object_put(&n->object);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- setting --------------------------------------------------------------------------------- */

/* Changes a node in a graph (exec is NULL) or in an executable graph. */
static CUresult
set_node(struct hed_layer *self, CUgraphExec exec, CUgraphNode handle, const CUgraphNodeParams *p)
{
    struct hed_work *w;
    CUresult r;

    if (p->type == CU_GRAPH_NODE_TYPE_GRAPH)
        return exec ? hed_exec_set_child(self, exec, handle, p->graph.graph)
                    : CUDA_ERROR_INVALID_VALUE;
    r = hed_node_work(self, p, &w);
    if (r != CUDA_SUCCESS || !w)
        return r == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : r;
    if (exec)
        return hed_exec_set_work(self, exec, handle, p->type, w);

    struct hed_node *n = hed_node_find(hed_driver_of(self), handle);

    r = CUDA_ERROR_INVALID_VALUE;
    if (n && n->type == p->type && n->work) {
        struct hed_work *old;

        hed_lock(&hed_graphs_lock);
        old = n->work;
        n->work = w;
        hed_unlock(&hed_graphs_lock);
        w = old;
        r = CUDA_SUCCESS;
    }
    hed_work_free(w);
    if (n)
        hed_object_put(&n->object);
    return r;
}

#define SET_IN(call, exec, bad, from, ...)                                    \
    static CUresult soft_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                         \
        if (!(a)->from || (bad))                                              \
            return CUDA_ERROR_INVALID_VALUE;                                  \
                                                                              \
        const CUgraphNodeParams p = __VA_ARGS__;                              \
                                                                              \
        return set_node(self, exec, (a)->hNode, &p);                          \
    }
#define SET(call, from, ...) SET_IN(call, NULL, false, from, __VA_ARGS__)
#define SET_EXEC(call, from, ...) SET_IN(call, a->hGraphExec, !a->hGraphExec, from, __VA_ARGS__)

#define KERNEL of_kernel(a->nodeParams, sizeof *a->nodeParams)
#define EVENT(t, member)                            \
    {                                               \
        .type = (t), .member = {.event = a->event } \
    }
#define HOST                                                                                    \
    {                                                                                           \
        .type = CU_GRAPH_NODE_TYPE_HOST, .host = { a->nodeParams->fn, a->nodeParams->userData } \
    }

static CUgraphNodeParams
of_copy(const CUDA_MEMCPY3D_v2 *p, CUcontext ctx)
{
    return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMCPY,
                               .memcpy = {.copyCtx = ctx, .copyParams = *p}};
}

static CUgraphNodeParams
of_memops(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 *p)
{
    CUgraphNodeParams all = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};

    memcpy(&all.memOp, p, sizeof *p);
    return all;
}

SET(cuGraphNodeSetParams, nodeParams, *a->nodeParams)
SET_EXEC(cuGraphExecNodeSetParams, nodeParams, *a->nodeParams)
SET(cuGraphKernelNodeSetParams, nodeParams, KERNEL)
SET(cuGraphKernelNodeSetParams_v2, nodeParams, KERNEL)
SET_EXEC(cuGraphExecKernelNodeSetParams, nodeParams, KERNEL)
SET_EXEC(cuGraphExecKernelNodeSetParams_v2, nodeParams, KERNEL)
SET(cuGraphMemcpyNodeSetParams, nodeParams, of_copy(a->nodeParams, NULL))
SET_EXEC(cuGraphExecMemcpyNodeSetParams, copyParams, of_copy(a->copyParams, a->ctx))
SET(cuGraphMemsetNodeSetParams, nodeParams, of_memset(a->nodeParams, NULL))
SET_EXEC(cuGraphExecMemsetNodeSetParams, memsetParams, of_memset(a->memsetParams, a->ctx))
SET(cuGraphHostNodeSetParams, nodeParams, HOST)
SET_EXEC(cuGraphExecHostNodeSetParams, nodeParams, HOST)
SET(cuGraphEventRecordNodeSetEvent, event, EVENT(CU_GRAPH_NODE_TYPE_EVENT_RECORD, eventRecord))
SET(cuGraphEventWaitNodeSetEvent, event, EVENT(CU_GRAPH_NODE_TYPE_WAIT_EVENT, eventWait))
SET_EXEC(cuGraphExecEventRecordNodeSetEvent, event,
         EVENT(CU_GRAPH_NODE_TYPE_EVENT_RECORD, eventRecord))
SET_EXEC(cuGraphExecEventWaitNodeSetEvent, event, EVENT(CU_GRAPH_NODE_TYPE_WAIT_EVENT, eventWait))
SET(cuGraphBatchMemOpNodeSetParams, nodeParams, of_memops(a->nodeParams))
SET_EXEC(cuGraphExecBatchMemOpNodeSetParams, nodeParams, of_memops(a->nodeParams))

static CUresult
soft_cuGraphExecChildGraphNodeSetParams(struct hed_layer *self,
                                        struct hed_cuGraphExecChildGraphNodeSetParams *a)
{
    return hed_exec_set_child(self, a->hGraphExec, a->hNode, a->childGraph);
}

#define OP(call) .call = soft_##call

const struct hed_cuda_ops hed_calls_node = {
    OP(cuGraphAddNode),
    OP(cuGraphAddNode_v2),
    OP(cuGraphAddKernelNode),
    OP(cuGraphAddKernelNode_v2),
    OP(cuGraphAddMemcpyNode),
    OP(cuGraphAddMemsetNode),
    OP(cuGraphAddHostNode),
    OP(cuGraphAddChildGraphNode),
    OP(cuGraphAddEmptyNode),
    OP(cuGraphAddEventRecordNode),
    OP(cuGraphAddEventWaitNode),
    OP(cuGraphAddBatchMemOpNode),
    OP(cuGraphAddMemAllocNode),
    OP(cuGraphAddMemFreeNode),
    OP(cuGraphKernelNodeGetParams),
    OP(cuGraphKernelNodeGetParams_v2),
    OP(cuGraphMemcpyNodeGetParams),
    OP(cuGraphMemsetNodeGetParams),
    OP(cuGraphHostNodeGetParams),
    OP(cuGraphChildGraphNodeGetGraph),
    OP(cuGraphEventRecordNodeGetEvent),
    OP(cuGraphEventWaitNodeGetEvent),
    OP(cuGraphBatchMemOpNodeGetParams),
    OP(cuGraphMemAllocNodeGetParams),
    OP(cuGraphMemFreeNodeGetParams),
    OP(cuGraphNodeSetParams),
    OP(cuGraphExecNodeSetParams),
    OP(cuGraphKernelNodeSetParams),
    OP(cuGraphKernelNodeSetParams_v2),
    OP(cuGraphExecKernelNodeSetParams),
    OP(cuGraphExecKernelNodeSetParams_v2),
    OP(cuGraphMemcpyNodeSetParams),
    OP(cuGraphExecMemcpyNodeSetParams),
    OP(cuGraphMemsetNodeSetParams),
    OP(cuGraphExecMemsetNodeSetParams),
    OP(cuGraphHostNodeSetParams),
    OP(cuGraphExecHostNodeSetParams),
    OP(cuGraphEventRecordNodeSetEvent),
    OP(cuGraphEventWaitNodeSetEvent),
    OP(cuGraphExecEventRecordNodeSetEvent),
    OP(cuGraphExecEventWaitNodeSetEvent),
    OP(cuGraphBatchMemOpNodeSetParams),
    OP(cuGraphExecBatchMemOpNodeSetParams),
    OP(cuGraphExecChildGraphNodeSetParams),
};
