/* cuGraphExecUpdate: an executable graph takes over the work of a graph with the same structure. */
#include <string.h>

#include "driver/graph/node.h"
#include "driver/parts.h"

static CUgraphExecUpdateResult compare_bodies(const struct hed_graph_exec *old,
                                              const struct hed_graph_exec *new, uint64_t *node);

/* Compares the graphs inside two nodes. */
static CUgraphExecUpdateResult
compare_inner(const struct hed_exec_node *x, const struct hed_exec_node *y, uint64_t *node)
{
    CUgraphExecUpdateResult r =
        x->child ? compare_bodies(x->child, y->child, node) : CU_GRAPH_EXEC_UPDATE_SUCCESS;

    if (x->condition.handle != y->condition.handle || x->condition.type != y->condition.type ||
        x->condition.count != y->condition.count)
        return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    for (uint32_t i = 0; i < x->condition.count && r == CU_GRAPH_EXEC_UPDATE_SUCCESS; i++)
        r = compare_bodies(x->branches[i], y->branches[i], node);
    return r;
}

/* The reason why a body cannot be replaced by a new one; SUCCESS if it can. */
static CUgraphExecUpdateResult
compare_bodies(const struct hed_graph_exec *old, const struct hed_graph_exec *new, uint64_t *node)
{
    if (old->count != new->count)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < old->count; i++) {
        const struct hed_exec_node *x = &old->nodes[i];
        const struct hed_exec_node *y = &new->nodes[i];

        *node = y->handle;
        if (x->type != y->type)
            return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        if (x->in_count != y->in_count || memcmp(x->in, y->in, x->in_count * sizeof *x->in) != 0)
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        if (x->memory != y->memory)
            return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;

        const CUgraphExecUpdateResult r = compare_inner(x, y, node);

        if (r != CU_GRAPH_EXEC_UPDATE_SUCCESS)
            return r;
    }
    *node = 0;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* Nodes keep the handles of the graph that the executable graph was instantiated from, because the
 * program goes on using those. */
static void
keep_names(const struct hed_graph_exec *old, struct hed_graph_exec *new)
{
    for (size_t i = 0; i < old->count; i++) {
        new->nodes[i].handle = old->nodes[i].handle;
        new->nodes[i].disabled = old->nodes[i].disabled;
        if (old->nodes[i].child)
            keep_names(old->nodes[i].child, new->nodes[i].child);
        for (uint32_t k = 0; k < old->nodes[i].condition.count; k++)
            keep_names(old->nodes[i].branches[k], new->nodes[i].branches[k]);
    }
}

static CUresult
update_exec(struct hed_layer *self, CUgraphExec exec, CUgraph graph,
            CUgraphExecUpdateResultInfo_v1 *info)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_exec *e = hed_exec_find(d, exec);
    struct hed_graph *g = hed_graph_find(d, graph);
    struct hed_graph_exec *body = NULL;
    uint64_t node = 0;
    CUresult r = e && g ? hed_exec_body(g, &body) : CUDA_ERROR_INVALID_VALUE;

    *info = (CUgraphExecUpdateResultInfo_v1){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    if (r == CUDA_SUCCESS) {
        hed_lock(&e->lock);
        info->result = compare_bodies(e->body, body, &node);
        info->errorNode = (CUgraphNode)(uintptr_t)node;
        r = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
        if (info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS) {
            struct hed_graph_exec *old = e->body;

            keep_names(old, body);
            hed_exec_changed_locked(e);
            e->body = body;
            body = old;
            r = CUDA_SUCCESS;
        }
        hed_unlock(&e->lock);
    }
    hed_graph_exec_unref(body);
    if (g)
        hed_object_put(&g->object);
    if (e)
        hed_object_put(&e->object);
    return r;
}

static CUresult
soft_cuGraphExecUpdate(struct hed_layer *self, struct hed_cuGraphExecUpdate *a)
{
    CUgraphExecUpdateResultInfo_v1 info;
    const CUresult r = update_exec(self, a->hGraphExec, a->hGraph, &info);

    if (a->hErrorNode_out)
        *a->hErrorNode_out = info.errorNode;
    if (a->updateResult_out)
        *a->updateResult_out = info.result;
    return r;
}

static CUresult
soft_cuGraphExecUpdate_v2(struct hed_layer *self, struct hed_cuGraphExecUpdate_v2 *a)
{
    return a->resultInfo ? update_exec(self, a->hGraphExec, a->hGraph, a->resultInfo)
                         : CUDA_ERROR_INVALID_VALUE;
}

const struct hed_cuda_ops hed_calls_graph_update = {
    .cuGraphExecUpdate = soft_cuGraphExecUpdate,
    .cuGraphExecUpdate_v2 = soft_cuGraphExecUpdate_v2,
};
