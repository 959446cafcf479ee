/* Calls about graphs and their edges. node_calls.c has the calls about nodes, graph_exec.c those
 * that run graphs, and graph_dot.c writes pictures. */
#include <stdlib.h>
#include <string.h>

#include "driver/graph/node.h"
#include "driver/parts.h"

static CUgraphNode
node_handle(const struct hed_node *n)
{
    return (CUgraphNode)(uintptr_t)n->object.handle;
}

static CUresult
soft_cuGraphCreate(struct hed_layer *self, struct hed_cuGraphCreate *a)
{
    struct hed_driver *d = hed_driver_of(self);

    if (!atomic_load_explicit(&d->initialized, memory_order_relaxed))
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!a->phGraph || a->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;

    struct hed_graph *g = hed_graph_create(d);

    if (!g)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *a->phGraph = (CUgraph)(uintptr_t)g->object.handle;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuGraphDestroy(struct hed_layer *self, struct hed_cuGraphDestroy *a)
{
    struct hed_graph *g = hed_graph_find(hed_driver_of(self), a->hGraph);

    if (!g)
        return CUDA_ERROR_INVALID_VALUE;

    const bool child = g->is_child; /* a child graph goes with its node */

    if (!child)
        hed_graph_destroy(g);
    hed_object_put(&g->object);
    return child ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult
soft_cuGraphClone(struct hed_layer *self, struct hed_cuGraphClone *a)
{
    struct hed_graph *g = hed_graph_find(hed_driver_of(self), a->originalGraph);
    struct hed_graph *c = NULL;

    if (!g || !a->phGraphClone) {
        if (g)
            hed_object_put(&g->object);
        return CUDA_ERROR_INVALID_VALUE;
    }

    const CUresult r = hed_graph_clone(g, &c);

    hed_object_put(&g->object);
    if (r == CUDA_SUCCESS)
        *a->phGraphClone = (CUgraph)(uintptr_t)c->object.handle;
    return r;
}

/* "hClonedGraph must have been cloned from hOriginalNode's graph". Child graphs are searched as
 * well, because their nodes were cloned with them. */
static struct hed_node *
find_clone_locked(struct hed_graph *g, uint64_t origin)
{
    for (struct hed_node *n = g->first; n; n = n->next) {
        struct hed_node *found = n->origin == origin ? n
                                 : n->child          ? find_clone_locked(n->child, origin)
                                                     : NULL;

        if (found)
            return found;
    }
    return NULL;
}

static CUresult
soft_cuGraphNodeFindInClone(struct hed_layer *self, struct hed_cuGraphNodeFindInClone *a)
{
    struct hed_graph *g = hed_graph_find(hed_driver_of(self), a->hClonedGraph);
    struct hed_node *n = NULL;

    if (!g)
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&hed_graphs_lock);
    if (a->phNode && a->hOriginalNode)
        n = find_clone_locked(g, (uint64_t)(uintptr_t)a->hOriginalNode);
    if (n)
        *a->phNode = node_handle(n);
    hed_unlock(&hed_graphs_lock);
    hed_object_put(&g->object);
    return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
soft_cuGraphNodeGetType(struct hed_layer *self, struct hed_cuGraphNodeGetType *a)
{
    struct hed_node *n = hed_node_find(hed_driver_of(self), a->hNode);

    if (!n)
        return CUDA_ERROR_INVALID_VALUE;
    if (a->type)
        *a->type = n->type;
    hed_object_put(&n->object);
    return a->type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* All calls that list something have this form: "if nodes is NULL, only the number is returned".
 * Surplus entries are set to NULL, and the count to the number of entries written. */
struct list {
    CUgraphNode *nodes, *to;
    CUgraphEdgeData *data;
    size_t room, count;
};

static void
list_put(struct list *l, const struct hed_node *n, const struct hed_node *to,
         const CUgraphEdgeData *data)
{
    if (l->count < l->room) {
        if (l->nodes)
            l->nodes[l->count] = node_handle(n);
        if (l->to)
            l->to[l->count] = node_handle(to);
        if (l->data)
            l->data[l->count] = *data;
    }
    l->count++;
}

static void
list_end(struct list *l, size_t *count)
{
    if (!l->nodes) {
        *count = l->count;
        return;
    }
    for (size_t i = l->count; i < l->room; i++) {
        l->nodes[i] = NULL;
        if (l->to)
            l->to[i] = NULL;
    }
    *count = l->count < l->room ? l->count : l->room;
}

static const CUgraphEdgeData plain_edge;

/* Calls without edge data fail with CUDA_ERROR_LOSSY_QUERY where an edge has some. */
static bool
loses_edge_data(const struct list *l, const CUgraphEdgeData *data)
{
    return l->nodes && !l->data && memcmp(data, &plain_edge, sizeof plain_edge) != 0;
}

static CUresult
list_nodes(struct hed_layer *self, CUgraph handle, CUgraphNode *nodes, size_t *count, bool roots)
{
    struct hed_graph *g = hed_graph_find(hed_driver_of(self), handle);

    if (!g)
        return CUDA_ERROR_INVALID_VALUE;
    if (count) {
        struct list l = {.nodes = nodes, .room = nodes ? *count : 0};

        hed_lock(&hed_graphs_lock);
        for (struct hed_node *n = g->first; n; n = n->next)
            if (!roots || n->in.count == 0)
                list_put(&l, n, n, &plain_edge);
        hed_unlock(&hed_graphs_lock);
        list_end(&l, count);
    }
    hed_object_put(&g->object);
    return count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
soft_cuGraphGetNodes(struct hed_layer *self, struct hed_cuGraphGetNodes *a)
{
    return list_nodes(self, a->hGraph, a->nodes, a->numNodes, false);
}

static CUresult
soft_cuGraphGetRootNodes(struct hed_layer *self, struct hed_cuGraphGetRootNodes *a)
{
    return list_nodes(self, a->hGraph, a->rootNodes, a->numRootNodes, true);
}

static CUresult
list_edges(struct hed_layer *self, CUgraph handle, CUgraphNode *from, CUgraphNode *to,
           CUgraphEdgeData *data, size_t *count)
{
    struct hed_graph *g = hed_graph_find(hed_driver_of(self), handle);
    CUresult r = CUDA_SUCCESS;

    if (!g)
        return CUDA_ERROR_INVALID_VALUE;
    /* "from and to may both be NULL": giving only one of them is an error. */
    if (!count || !from != !to) {
        hed_object_put(&g->object);
        return CUDA_ERROR_INVALID_VALUE;
    }

    struct list l = {from, to, data, from ? *count : 0, 0};

    hed_lock(&hed_graphs_lock);
    for (struct hed_node *n = g->first; n && r == CUDA_SUCCESS; n = n->next)
        for (size_t i = 0; i < n->out.count; i++) {
            if (loses_edge_data(&l, &n->out.at[i].data))
                r = CUDA_ERROR_LOSSY_QUERY;
            list_put(&l, n, n->out.at[i].node, &n->out.at[i].data);
        }
    hed_unlock(&hed_graphs_lock);
    list_end(&l, count);
    hed_object_put(&g->object);
    return r;
}

static CUresult
soft_cuGraphGetEdges(struct hed_layer *self, struct hed_cuGraphGetEdges *a)
{
    return list_edges(self, a->hGraph, a->from, a->to, NULL, a->numEdges);
}

static CUresult
soft_cuGraphGetEdges_v2(struct hed_layer *self, struct hed_cuGraphGetEdges_v2 *a)
{
    return list_edges(self, a->hGraph, a->from, a->to, a->edgeData, a->numEdges);
}

static CUresult
list_neighbours(struct hed_layer *self, CUgraphNode handle, bool outgoing, CUgraphNode *nodes,
                CUgraphEdgeData *data, size_t *count)
{
    struct hed_node *n = hed_node_find(hed_driver_of(self), handle);
    CUresult r = CUDA_SUCCESS;

    if (!n)
        return CUDA_ERROR_INVALID_VALUE;
    if (!count) {
        hed_object_put(&n->object);
        return CUDA_ERROR_INVALID_VALUE;
    }

    struct list l = {.nodes = nodes, .data = data, .room = nodes ? *count : 0};
    const struct hed_edges *edges = outgoing ? &n->out : &n->in;

    hed_lock(&hed_graphs_lock);
    for (size_t i = 0; i < edges->count; i++) {
        if (loses_edge_data(&l, &edges->at[i].data))
            r = CUDA_ERROR_LOSSY_QUERY;
        list_put(&l, edges->at[i].node, NULL, &edges->at[i].data);
    }
    hed_unlock(&hed_graphs_lock);
    list_end(&l, count);
    hed_object_put(&n->object);
    return r;
}

static CUresult
soft_cuGraphNodeGetDependencies(struct hed_layer *self, struct hed_cuGraphNodeGetDependencies *a)
{
    return list_neighbours(self, a->hNode, false, a->dependencies, NULL, a->numDependencies);
}

static CUresult
soft_cuGraphNodeGetDependencies_v2(struct hed_layer *self,
                                   struct hed_cuGraphNodeGetDependencies_v2 *a)
{
    return list_neighbours(self, a->hNode, false, a->dependencies, a->edgeData, a->numDependencies);
}

static CUresult
soft_cuGraphNodeGetDependentNodes(struct hed_layer *self,
                                  struct hed_cuGraphNodeGetDependentNodes *a)
{
    return list_neighbours(self, a->hNode, true, a->dependentNodes, NULL, a->numDependentNodes);
}

static CUresult
soft_cuGraphNodeGetDependentNodes_v2(struct hed_layer *self,
                                     struct hed_cuGraphNodeGetDependentNodes_v2 *a)
{
    return list_neighbours(self, a->hNode, true, a->dependentNodes, a->edgeData,
                           a->numDependentNodes);
}

/* Adds or removes edges one by one. Those before an invalid one stay changed: CUDA's documentation
 * does not say otherwise. */
static CUresult
change_edges(struct hed_layer *self, CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
             const CUgraphEdgeData *data, size_t count, bool add)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_graph *g = hed_graph_find(d, handle);
    CUresult r = count > 0 && (!from || !to) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

    if (!g)
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&hed_graphs_lock);
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++) {
        struct hed_node *x = hed_node_find(d, from[i]);
        struct hed_node *y = hed_node_find(d, to[i]);
        const CUgraphEdgeData *e = data ? &data[i] : NULL;

        if (!x || !y || x->graph != g || y->graph != g)
            r = CUDA_ERROR_INVALID_VALUE;
        else if (add)
            r = hed_graph_connect_locked(x, y, e);
        else if (!hed_graph_disconnect_locked(x, y, e))
            r = CUDA_ERROR_INVALID_VALUE;
        if (x)
            hed_object_put(&x->object);
        if (y)
            hed_object_put(&y->object);
    }
    hed_unlock(&hed_graphs_lock);
    hed_object_put(&g->object);
    return r;
}

static CUresult
soft_cuGraphAddDependencies(struct hed_layer *self, struct hed_cuGraphAddDependencies *a)
{
    return change_edges(self, a->hGraph, a->from, a->to, NULL, a->numDependencies, true);
}

static CUresult
soft_cuGraphAddDependencies_v2(struct hed_layer *self, struct hed_cuGraphAddDependencies_v2 *a)
{
    return change_edges(self, a->hGraph, a->from, a->to, a->edgeData, a->numDependencies, true);
}

static CUresult
soft_cuGraphRemoveDependencies(struct hed_layer *self, struct hed_cuGraphRemoveDependencies *a)
{
    return change_edges(self, a->hGraph, a->from, a->to, NULL, a->numDependencies, false);
}

static CUresult
soft_cuGraphRemoveDependencies_v2(struct hed_layer *self,
                                  struct hed_cuGraphRemoveDependencies_v2 *a)
{
    return change_edges(self, a->hGraph, a->from, a->to, a->edgeData, a->numDependencies, false);
}

static CUresult
soft_cuGraphDestroyNode(struct hed_layer *self, struct hed_cuGraphDestroyNode *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_node *n = (struct hed_node *)hed_handles_remove(d->handles, HED_KIND_GRAPH_NODE,
                                                               (uint64_t)(uintptr_t)a->hNode);

    if (!n)
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&hed_graphs_lock);
    if (n->graph)
        hed_graph_remove_node_locked(n);
    hed_unlock(&hed_graphs_lock);
    hed_object_put(&n->object);
    return CUDA_SUCCESS;
}

const struct hed_cuda_ops hed_calls_graph = {
    .cuGraphCreate = soft_cuGraphCreate,
    .cuGraphDestroy = soft_cuGraphDestroy,
    .cuGraphClone = soft_cuGraphClone,
    .cuGraphNodeFindInClone = soft_cuGraphNodeFindInClone,
    .cuGraphNodeGetType = soft_cuGraphNodeGetType,
    .cuGraphGetNodes = soft_cuGraphGetNodes,
    .cuGraphGetRootNodes = soft_cuGraphGetRootNodes,
    .cuGraphGetEdges = soft_cuGraphGetEdges,
    .cuGraphGetEdges_v2 = soft_cuGraphGetEdges_v2,
    .cuGraphNodeGetDependencies = soft_cuGraphNodeGetDependencies,
    .cuGraphNodeGetDependencies_v2 = soft_cuGraphNodeGetDependencies_v2,
    .cuGraphNodeGetDependentNodes = soft_cuGraphNodeGetDependentNodes,
    .cuGraphNodeGetDependentNodes_v2 = soft_cuGraphNodeGetDependentNodes_v2,
    .cuGraphAddDependencies = soft_cuGraphAddDependencies,
    .cuGraphAddDependencies_v2 = soft_cuGraphAddDependencies_v2,
    .cuGraphRemoveDependencies = soft_cuGraphRemoveDependencies,
    .cuGraphRemoveDependencies_v2 = soft_cuGraphRemoveDependencies_v2,
    .cuGraphDestroyNode = soft_cuGraphDestroyNode,
};
