/* Executable graphs: instantiated from graphs, changed, launched.
 *
 *   cuGraphLaunch (graph_launch.c): a reference to the body -> machine->graph_launch
 *   cuGraphExec...SetParams: a body that a launch still uses is copied first
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "driver/graph/node.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"

/* ---- bodies ---------------------------------------------------------------------------------- */

void
hed_graph_exec_ref(struct hed_graph_exec *g)
{
    /* Relaxed: the caller has a reference already. */
    atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
}

void
hed_graph_exec_unref(struct hed_graph_exec *g)
{
    /* Acquire and release: the last user sees what the others did before they gave up theirs. */
    if (!g || atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < g->count; i++) {
        struct hed_exec_node *n = &g->nodes[i];

        if (n->work)
            hed_work_free(n->work);
        hed_graph_exec_unref(n->child);
        hed_graph_memory_unref(n->memory);
        for (uint32_t k = 0; n->branches && k < n->condition.count; k++)
            hed_graph_exec_unref(n->branches[k]);
        free(n->branches);
        free(n->in);
    }
    free(g->nodes);
    free(g);
}

static struct hed_graph_exec *
body_create(size_t count)
{
    struct hed_graph_exec *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    atomic_init(&g->refs, 1);
    g->nodes = calloc(count + 1, sizeof *g->nodes);
    if (!g->nodes) {
        free(g);
        return NULL;
    }
    return g;
}

static bool
copy_positions(struct hed_exec_node *to, const size_t *in, size_t count)
{
    to->in = malloc((count + 1) * sizeof *in);
    if (!to->in)
        return false;
    if (count > 0)
        memcpy(to->in, in, count * sizeof *in);
    to->in_count = count;
    return true;
}

static bool
copy_branches(struct hed_exec_node *to, const struct hed_exec_node *from)
{
    if (!from->branches)
        return true;
    to->branches = calloc(from->condition.count, sizeof(struct hed_graph_exec *));
    if (!to->branches)
        return false;
    for (uint32_t i = 0; i < from->condition.count; i++) {
        hed_graph_exec_ref(from->branches[i]);
        to->branches[i] = from->branches[i];
    }
    return true;
}

static struct hed_graph_exec *
body_copy(const struct hed_graph_exec *g)
{
    struct hed_graph_exec *c = body_create(g->count);

    if (c)
        c->root = g->root;
    for (size_t i = 0; c && i < g->count; i++) {
        const struct hed_exec_node *from = &g->nodes[i];
        struct hed_exec_node *to = &c->nodes[i];

        *to = *from;
        to->memory = hed_graph_memory_ref(from->memory);
        if (from->child)
            hed_graph_exec_ref(from->child);
        to->work = from->work ? hed_work_copy(from->work) : NULL;
        to->in = NULL;
        to->branches = NULL;
        c->count = i + 1;
        if ((from->work && !to->work) || !copy_positions(to, from->in, from->in_count) ||
            !copy_branches(to, from)) {
            hed_graph_exec_unref(c);
            return NULL;
        }
    }
    return c;
}

/* Copies one node of a graph. The marks of the nodes are their positions in the order. */
static CUresult
make_node(const struct hed_node *n, struct hed_exec_node *to)
{
    to->handle = n->object.handle;
    to->type = n->type;
    to->condition = n->condition;
    to->memory = hed_graph_memory_ref(n->memory);
    to->in = malloc((n->in.count + 1) * sizeof *to->in);
    if (!to->in)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < n->in.count; i++)
        to->in[i] = n->in.at[i].node->mark;
    to->in_count = n->in.count;
    if (n->work && !(to->work = hed_work_copy(n->work)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

/* Makes the bodies of the graphs inside a node, and checks what was captured without a check. */
static CUresult
make_inner(const struct hed_node *n, struct hed_exec_node *to)
{
    CUresult r = n->child ? hed_exec_body(n->child, &to->child) : CUDA_SUCCESS;

    if (to->work && to->work->kind == HED_WORK_FILL && to->work->fill.unplaced &&
        !hed_fill_fits(to->work->ctx->device->driver, &to->work->fill))
        return CUDA_ERROR_INVALID_VALUE;

    if (r != CUDA_SUCCESS || !n->condition.count)
        return r;
    to->branches = calloc(n->condition.count, sizeof(struct hed_graph_exec *));
    if (!to->branches)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < n->condition.count && r == CUDA_SUCCESS; i++)
        r = hed_exec_body(n->branches[i], &to->branches[i]);
    return r;
}

CUresult
hed_exec_body(struct hed_graph *g, struct hed_graph_exec **out)
{
    struct hed_graph_exec *b = body_create(g->count);
    CUresult r = CUDA_SUCCESS;

    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_lock(&hed_graphs_lock);
    b->root = g->handles ? g->object.handle : 0;

    struct hed_node **order = hed_graph_order_locked(g);

    if (!order)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; order && i < g->count; i++)
        order[i]->mark = i;
    for (size_t i = 0; order && i < g->count && r == CUDA_SUCCESS; i++) {
        r = make_node(order[i], &b->nodes[i]);
        b->count = i + 1;
    }
    hed_unlock(&hed_graphs_lock);
    /* Graphs inside take the lock themselves. They live as long as their nodes, which the program
     * may not destroy during the call. */
    for (size_t i = 0; i < b->count && r == CUDA_SUCCESS; i++)
        r = make_inner(order[i], &b->nodes[i]);
    free(order);
    if (r != CUDA_SUCCESS) {
        hed_graph_exec_unref(b);
        return r;
    }
    *out = b;
    return CUDA_SUCCESS;
}

/* ---- the object ------------------------------------------------------------------------------ */

static void
exec_free(struct hed_object *o)
{
    struct hed_exec *e = (struct hed_exec *)o;

    e->driver->machine->graph_gone(e->driver->machine_state, e);
    hed_graph_exec_unref(e->body);
    hed_points_clear(&e->last);
    hed_graph_users_free(&e->users);
    if (e->graph)
        hed_object_put(&e->graph->object);
    hed_lock_fini(&e->lock);
    free(e);
}

#define KNOWN_FLAGS                                                                         \
    (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | \
     CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

static CUresult
instantiate_graph(struct hed_layer *self, CUgraph handle, unsigned long long flags,
                  CUgraphExec *out)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_graph *g = hed_graph_find(d, handle);
    struct hed_exec *e = NULL;
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    struct hed_context *c;

    if (!g)
        return r;
    if (!out || (flags & ~(unsigned long long)KNOWN_FLAGS))
        goto done;
    r = hed_current(self, &c);
    if (r == CUDA_SUCCESS && hed_graph_has_idle_handle(g))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r != CUDA_SUCCESS)
        goto done;
    r = CUDA_ERROR_NOT_SUPPORTED; /* launches from kernels */
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
        goto done;
    r = CUDA_ERROR_OUT_OF_MEMORY;
    e = calloc(1, sizeof *e + d->machine->exec_bytes);
    if (!e)
        goto done;
    e->own = e + 1;
    e->version = 1;
    e->object.destroy = exec_free;
    e->driver = d;
    e->flags = flags;
    hed_lock_init(&e->lock, HED_RANK_GRAPH);
    r = hed_exec_body(g, &e->body);
    if (r == CUDA_SUCCESS && e->body->root) {
        hed_object_ref(&g->object);
        e->graph = g;
    }
    if (r == CUDA_SUCCESS)
        r = hed_graph_users_copy(g->users, &e->users);
    if (r == CUDA_SUCCESS && hed_handles_add(d->handles, HED_KIND_GRAPH_EXEC, &e->object) != 0)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r == CUDA_SUCCESS)
        *out = (CUgraphExec)(uintptr_t)e->object.handle;
    else
        exec_free(&e->object);
done:
    hed_object_put(&g->object);
    return r;
}

static CUresult
soft_cuGraphInstantiate(struct hed_layer *self, struct hed_cuGraphInstantiate *a)
{
    if (a->phErrorNode)
        *a->phErrorNode = NULL;
    return instantiate_graph(self, a->hGraph, 0, a->phGraphExec);
}

static CUresult
soft_cuGraphInstantiate_v2(struct hed_layer *self, struct hed_cuGraphInstantiate_v2 *a)
{
    if (a->phErrorNode)
        *a->phErrorNode = NULL;
    return instantiate_graph(self, a->hGraph, 0, a->phGraphExec);
}

static CUresult
soft_cuGraphInstantiateWithFlags(struct hed_layer *self, struct hed_cuGraphInstantiateWithFlags *a)
{
    return instantiate_graph(self, a->hGraph, a->flags, a->phGraphExec);
}

static CUresult
soft_cuGraphInstantiateWithParams(struct hed_layer *self,
                                  struct hed_cuGraphInstantiateWithParams *a)
{
    if (!a->instantiateParams)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r =
        instantiate_graph(self, a->hGraph, a->instantiateParams->flags, a->phGraphExec);

    a->instantiateParams->hErrNode_out = NULL;
    a->instantiateParams->result_out =
        r == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return r;
}

static CUresult
soft_cuGraphExecDestroy(struct hed_layer *self, struct hed_cuGraphExecDestroy *a)
{
    struct hed_object *o = hed_handles_remove(hed_driver_of(self)->handles, HED_KIND_GRAPH_EXEC,
                                              (uint64_t)(uintptr_t)a->hGraphExec);

    if (!o)
        return CUDA_ERROR_INVALID_VALUE;
    hed_object_put(o);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuGraphExecGetFlags(struct hed_layer *self, struct hed_cuGraphExecGetFlags *a)
{
    struct hed_exec *e = hed_exec_find(hed_driver_of(self), a->hGraphExec);

    if (!e)
        return CUDA_ERROR_INVALID_VALUE;
    if (a->flags)
        *a->flags = e->flags;
    hed_object_put(&e->object);
    return a->flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- changing -------------------------------------------------------------------------------- */

/* The body for writing: a copy if a launch still uses it. The lock is held. */
static struct hed_graph_exec *
writable_locked(struct hed_exec *e)
{
    hed_exec_changed_locked(e);
    /* Acquire: pairs with the release of a launch that gives up its reference to the body. */
    if (atomic_load_explicit(&e->body->refs, memory_order_acquire) == 1)
        return e->body;

    struct hed_graph_exec *copy = body_copy(e->body);

    if (!copy)
        return NULL;
    hed_graph_exec_unref(e->body);
    e->body = copy;
    return copy;
}

static struct hed_exec_node *
find_node(struct hed_graph_exec *b, uint64_t handle)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->nodes[i].handle == handle)
            return &b->nodes[i];
    return NULL;
}

CUresult
hed_exec_set_work(struct hed_layer *self, CUgraphExec exec, CUgraphNode node, CUgraphNodeType type,
                  struct hed_work *w)
{
    struct hed_exec *e = hed_exec_find(hed_driver_of(self), exec);
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (e) {
        hed_lock(&e->lock);

        struct hed_graph_exec *b = writable_locked(e);
        struct hed_exec_node *n = b ? find_node(b, (uint64_t)(uintptr_t)node) : NULL;

        if (!b)
            r = CUDA_ERROR_OUT_OF_MEMORY;
        if (n && n->type == type && n->work) {
            struct hed_work *old = n->work;

            n->work = w;
            w = old;
            r = CUDA_SUCCESS;
        }
        hed_unlock(&e->lock);
        hed_object_put(&e->object);
    }
    hed_work_free(w);
    return r;
}

CUresult
hed_exec_set_child(struct hed_layer *self, CUgraphExec exec, CUgraphNode node, CUgraph child)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_exec *e = hed_exec_find(d, exec);
    struct hed_graph *g = hed_graph_find(d, child);
    struct hed_graph_exec *body = NULL;
    CUresult r = e && g ? hed_exec_body(g, &body) : CUDA_ERROR_INVALID_VALUE;

    if (r == CUDA_SUCCESS) {
        hed_lock(&e->lock);

        struct hed_graph_exec *b = writable_locked(e);
        struct hed_exec_node *n = b ? find_node(b, (uint64_t)(uintptr_t)node) : NULL;

        r = n && n->child ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        if (r == CUDA_SUCCESS) {
            struct hed_graph_exec *old = n->child;

            n->child = body;
            body = old;
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

/* "Currently only kernel, memset and memcpy nodes are supported." */
static bool
can_be_disabled(CUgraphNodeType t)
{
    return t == CU_GRAPH_NODE_TYPE_KERNEL || t == CU_GRAPH_NODE_TYPE_MEMSET ||
           t == CU_GRAPH_NODE_TYPE_MEMCPY;
}

static CUresult
soft_cuGraphNodeSetEnabled(struct hed_layer *self, struct hed_cuGraphNodeSetEnabled *a)
{
    struct hed_exec *e = hed_exec_find(hed_driver_of(self), a->hGraphExec);

    if (!e)
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&e->lock);

    struct hed_graph_exec *b = writable_locked(e);
    struct hed_exec_node *n = b ? find_node(b, (uint64_t)(uintptr_t)a->hNode) : NULL;
    const bool fits = n && can_be_disabled(n->type);

    if (fits)
        n->disabled = !a->isEnabled;
    hed_unlock(&e->lock);
    hed_object_put(&e->object);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
soft_cuGraphNodeGetEnabled(struct hed_layer *self, struct hed_cuGraphNodeGetEnabled *a)
{
    struct hed_exec *e = hed_exec_find(hed_driver_of(self), a->hGraphExec);

    if (!e)
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&e->lock);

    const struct hed_exec_node *n = find_node(e->body, (uint64_t)(uintptr_t)a->hNode);
    const bool fits = n && a->isEnabled && can_be_disabled(n->type);

    if (fits)
        *a->isEnabled = !n->disabled;
    hed_unlock(&e->lock);
    hed_object_put(&e->object);
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

const struct hed_cuda_ops hed_calls_exec = {
    .cuGraphInstantiate = soft_cuGraphInstantiate,
    .cuGraphInstantiate_v2 = soft_cuGraphInstantiate_v2,
    .cuGraphInstantiateWithFlags = soft_cuGraphInstantiateWithFlags,
    .cuGraphInstantiateWithParams = soft_cuGraphInstantiateWithParams,
    .cuGraphExecDestroy = soft_cuGraphExecDestroy,
    .cuGraphExecGetFlags = soft_cuGraphExecGetFlags,
    .cuGraphLaunch = hed_soft_cuGraphLaunch,
    .cuGraphUpload = hed_soft_cuGraphUpload,
    .cuGraphNodeSetEnabled = soft_cuGraphNodeSetEnabled,
    .cuGraphNodeGetEnabled = soft_cuGraphNodeGetEnabled,
};
