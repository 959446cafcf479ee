/* Conditional nodes: graphs that run if, or as long as, a value that kernels set says so.
 *
 *   cuGraphConditionalHandleCreate --machine->graph_condition--> a handle, which kernels get
 *   cuGraphAddNode --handle--> a node with branches: empty graphs that the program fills
 *
 * The handle comes from the machine, because kernels set its value. It belongs to the outermost
 * graph: "The conditional handle must be associated with a conditional node in this graph or one of
 * its children." (CUDA Driver API, cuGraphConditionalHandleCreate)
 *
 * Graphs with conditional handles cannot be cloned and cannot become child graphs, because the
 * handles belong to them; and a graph is not instantiated while one of its handles has no node
 * (measured on 580).
 */
#include <stdlib.h>

#include "core/stats.h"
#include "driver/graph/node.h"
#include "driver/parts.h"

#define BRANCHES_MAX 4096u /* per node */

static struct hed_graph *
root_of(struct hed_graph *g)
{
    return g->root ? g->root : g;
}

/* ---- handles --------------------------------------------------------------------------------- */

static CUresult
add_handle(struct hed_graph *g, struct hed_context *c, unsigned value, unsigned flags,
           CUgraphConditionalHandle *out)
{
    const struct hed_driver *d = g->driver;
    struct hed_graph *root = root_of(g);
    struct hed_graph_handle *h;
    CUresult r;

    if (!d->machine->graph_condition || (g->is_child && !g->root)) {
        hed_stats_unsupported(HED_API_CUDA, HED_cuGraphConditionalHandleCreate,
                              g->is_child ? "child graphs" : "GPUs that are not NVIDIA's");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    h = calloc(1, sizeof *h);
    if (!h)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = d->machine->graph_condition(d->machine_state, c, root->object.handle, value, flags,
                                    &h->handle);
    if (r != CUDA_SUCCESS) {
        free(h);
        return r;
    }
    hed_context_ref(c);
    h->ctx = c;
    h->value = value;
    h->flags = flags;
    hed_lock(&hed_graphs_lock);
    h->next = root->handles;
    root->handles = h;
    hed_unlock(&hed_graphs_lock);
    *out = h->handle;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuGraphConditionalHandleCreate(struct hed_layer *self,
                                    struct hed_cuGraphConditionalHandleCreate *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_graph *g = hed_graph_find(d, a->hGraph);
    struct hed_context *c = NULL;
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (!g)
        return r;
    if (a->pHandle_out && !(a->flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT)) {
        r = a->ctx ? CUDA_SUCCESS : hed_current(self, &c);
        if (a->ctx && !(c = hed_context_find(d, a->ctx)))
            r = CUDA_ERROR_INVALID_CONTEXT;
    }
    if (r == CUDA_SUCCESS)
        r = add_handle(g, c, a->defaultLaunchValue, a->flags, a->pHandle_out);
    hed_object_put(&g->object);
    return r;
}

static struct hed_graph_handle *
find_handle_locked(struct hed_graph *g, uint64_t handle)
{
    struct hed_graph_handle *h = root_of(g)->handles;

    while (h && h->handle != handle)
        h = h->next;
    return h;
}

bool
hed_graph_has_idle_handle(struct hed_graph *g)
{
    const struct hed_graph_handle *h;

    hed_lock(&hed_graphs_lock);
    for (h = g->handles; h && h->used; h = h->next)
        continue;
    hed_unlock(&hed_graphs_lock);
    return h != NULL;
}

void
hed_graph_handles_free(struct hed_graph *g)
{
    struct hed_driver *d = g->driver;

    if (g->handles)
        d->machine->graph_conditions_gone(d->machine_state, g->object.handle);
    while (g->handles) {
        struct hed_graph_handle *h = g->handles;

        g->handles = h->next;
        hed_context_unref(h->ctx);
        free(h);
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool
is_valid(const CUDA_CONDITIONAL_NODE_PARAMS *p)
{
    switch (p->type) {
    case CU_GRAPH_COND_TYPE_IF: /* with or without an else */
        return p->size == 1 || p->size == 2;
    case CU_GRAPH_COND_TYPE_WHILE:
        return p->size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH:
        return p->size >= 1 && p->size <= BRANCHES_MAX;
    default:
        return false;
    }
}

static bool
make_branches(struct hed_node *n, uint32_t count)
{
    n->branches = calloc(count, sizeof(struct hed_graph *));
    n->branch_handles = calloc(count, sizeof *n->branch_handles);
    if (!n->branches || !n->branch_handles)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        struct hed_graph *g = hed_graph_create(n->graph->driver);

        if (!g)
            return false;
        g->is_child = true;
        g->root = root_of(n->graph);
        hed_object_ref(&g->root->object);
        n->branches[i] = g;
        n->branch_handles[i] = (CUgraph)(uintptr_t)g->object.handle;
        n->condition.count = i + 1;
    }
    return true;
}

CUresult
hed_node_give_condition(struct hed_node *n, CUDA_CONDITIONAL_NODE_PARAMS *p)
{
    struct hed_graph_handle *h = NULL;

    hed_lock(&hed_graphs_lock);
    if (is_valid(p))
        h = find_handle_locked(n->graph, p->handle);

    const bool fits = h && !h->used;

    if (fits)
        h->used = true;
    hed_unlock(&hed_graphs_lock);
    if (!fits)
        return CUDA_ERROR_INVALID_VALUE;
    n->condition = (struct hed_condition){.handle = p->handle, .type = p->type};
    /* On failure the caller destroys the node with everything it has. */
    if (!make_branches(n, p->size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->phGraph_out = n->branch_handles;
    return CUDA_SUCCESS;
}

void
hed_node_leave_handle_locked(struct hed_node *n)
{
    struct hed_graph_handle *h = find_handle_locked(n->graph, n->condition.handle);

    if (h)
        h->used = false;
}

void
hed_node_take_condition(struct hed_node *n)
{
    for (uint32_t i = 0; i < n->condition.count; i++)
        hed_graph_destroy(n->branches[i]);
    free(n->branches);
    free(n->branch_handles);
}

const struct hed_cuda_ops hed_calls_condition = {
    .cuGraphConditionalHandleCreate = soft_cuGraphConditionalHandleCreate,
};
