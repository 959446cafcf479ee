/* Graphs as data: nodes, edges, copies, and an order to run in. See driver/graph/node.h. */
#include "driver/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "driver/graph/node.h"
#include "driver/parts.h"

struct hed_lock hed_graphs_lock = HED_LOCK_INIT(HED_RANK_GRAPH);

/* ---- memory of allocation nodes -------------------------------------------------------------- */

struct hed_graph_memory *
hed_graph_memory_ref(struct hed_graph_memory *m)
{
    if (m)
        /* Relaxed: the caller has a reference already. */
        atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void
hed_graph_memory_unref(struct hed_graph_memory *m)
{
    /* Acquire and release: the last user sees what the others did before they gave up theirs. */
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    hed_pool_graph_give(m->driver, m->at);
    free(m);
}

/* ---- edges ----------------------------------------------------------------------------------- */

static bool
edges_push(struct hed_edges *e, struct hed_node *node, const CUgraphEdgeData *data)
{
    if (e->count == e->room) {
        const size_t room = e->room ? 2 * e->room : 4;
        struct hed_edge *at = realloc(e->at, room * sizeof *at);

        if (!at)
            return false;
        e->at = at;
        e->room = room;
    }
    e->at[e->count].node = node;
    e->at[e->count].data = data ? *data : (CUgraphEdgeData){0};
    e->count++;
    return true;
}

static bool
edges_drop(struct hed_edges *e, const struct hed_node *node, const CUgraphEdgeData *data)
{
    for (size_t i = 0; i < e->count; i++) {
        if (e->at[i].node != node || (data && memcmp(&e->at[i].data, data, sizeof *data) != 0))
            continue;
        memmove(&e->at[i], &e->at[i + 1], (e->count - i - 1) * sizeof *e->at);
        e->count--;
        return true;
    }
    return false;
}

static bool
edges_have(const struct hed_edges *e, const struct hed_node *node)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->at[i].node == node)
            return true;
    return false;
}

/* Can `to` be reached from `from`? A depth-first search that marks nodes. It has an explicit stack,
 * since the graph of a captured training step has tens of thousands of nodes in a row. */
static CUresult
node_reaches(struct hed_node *from, const struct hed_node *to, bool *answer)
{
    struct hed_graph *g = from->graph;
    struct hed_node **stack = malloc((g->count + 1) * sizeof(struct hed_node *));
    size_t depth = 0;

    *answer = false;
    if (!stack)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (struct hed_node *n = g->first; n; n = n->next)
        n->mark = 0;
    stack[depth++] = from;
    from->mark = 1;
    while (depth > 0 && !*answer) {
        struct hed_node *n = stack[--depth];

        *answer = n == to;
        for (size_t i = 0; i < n->out.count; i++) {
            struct hed_node *next = n->out.at[i].node;

            if (!next->mark)
                stack[depth++] = next;
            next->mark = 1;
        }
    }
    free(stack);
    return CUDA_SUCCESS;
}

CUresult
hed_graph_connect_locked(struct hed_node *from, struct hed_node *to, const CUgraphEdgeData *data)
{
    bool cycle = false;

    if (from->graph != to->graph || from == to || edges_have(&to->in, from))
        return CUDA_ERROR_INVALID_VALUE;

    /* A node without successors cannot close a cycle, and most graphs are built in that order. */
    const CUresult r = to->out.count ? node_reaches(to, from, &cycle) : CUDA_SUCCESS;

    if (r != CUDA_SUCCESS || cycle)
        return cycle ? CUDA_ERROR_INVALID_VALUE : r;
    if (!edges_push(&to->in, from, data))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!edges_push(&from->out, to, data)) {
        (void)edges_drop(&to->in, from, NULL);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

bool
hed_graph_disconnect_locked(struct hed_node *from, struct hed_node *to, const CUgraphEdgeData *data)
{
    return edges_drop(&to->in, from, data) && edges_drop(&from->out, to, data);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void
node_destroy(struct hed_object *o)
{
    struct hed_node *n = (struct hed_node *)o;

    if (n->work)
        hed_work_free(n->work);
    if (n->child)
        hed_graph_destroy(n->child);
    hed_node_take_condition(n);
    hed_graph_memory_unref(n->memory);
    free(n->pointers);
    free(n->in.at);
    free(n->out.at);
    free(n);
}

/* Takes the node out of its graph and removes its handle; a thread that holds a reference may go on
 * reading it. */
void
hed_graph_remove_node_locked(struct hed_node *n)
{
    struct hed_graph *g = n->graph;
    struct hed_node **at = &g->first;

    for (size_t i = 0; i < n->in.count; i++)
        (void)edges_drop(&n->in.at[i].node->out, n, NULL);
    for (size_t i = 0; i < n->out.count; i++)
        (void)edges_drop(&n->out.at[i].node->in, n, NULL);
    n->in.count = n->out.count = 0;
    if (n->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        hed_node_leave_handle_locked(n);
    while (*at && *at != n)
        at = &(*at)->next;
    if (!*at)
        return;
    *at = n->next;
    if (g->last == &n->next)
        g->last = at;
    g->count--;
    n->graph = NULL;
}

static struct hed_node *
node_create(struct hed_graph *g, CUgraphNodeType type)
{
    struct hed_node *n = calloc(1, sizeof *n);

    if (!n)
        return NULL;
    n->object.destroy = node_destroy;
    n->type = type;
    n->graph = g;
    if (hed_handles_add(g->driver->handles, HED_KIND_GRAPH_NODE, &n->object) != 0) {
        free(n);
        return NULL;
    }
    return n;
}

static void
node_append_locked(struct hed_graph *g, struct hed_node *n)
{
    *g->last = n;
    g->last = &n->next;
    g->count++;
}

/* Removes the node's handle and the reference that it held. */
static void
node_drop(struct hed_driver *d, struct hed_node *n)
{
    struct hed_object *o = hed_handles_remove(d->handles, HED_KIND_GRAPH_NODE, n->object.handle);

    if (o)
        hed_object_put(o);
}

/* Adds edges from the nodes that `handles` name, which must all be in graph g. */
static CUresult
connect_all_locked(struct hed_graph *g, struct hed_node *n, const CUgraphNode *deps,
                   const CUgraphEdgeData *edges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hed_node *from = hed_node_find(g->driver, deps[i]);

        if (!from)
            return CUDA_ERROR_INVALID_VALUE;

        const CUresult r = from->graph == g
                               ? hed_graph_connect_locked(from, n, edges ? &edges[i] : NULL)
                               : CUDA_ERROR_INVALID_VALUE;

        hed_object_put(&from->object);
        if (r != CUDA_SUCCESS)
            return r;
    }
    return CUDA_SUCCESS;
}

CUresult
hed_graph_add(struct hed_graph *g, CUgraphNodeType type, struct hed_work *work,
              const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t count,
              struct hed_node **out)
{
    if (count > 0 && !deps) {
        if (work)
            hed_work_free(work);
        return CUDA_ERROR_INVALID_VALUE;
    }

    struct hed_node *n = node_create(g, type);

    if (!n) {
        if (work)
            hed_work_free(work);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    n->work = work;
    hed_lock(&hed_graphs_lock);
    node_append_locked(g, n);

    const CUresult r = connect_all_locked(g, n, deps, edges, count);

    if (r != CUDA_SUCCESS)
        hed_graph_remove_node_locked(n);
    hed_unlock(&hed_graphs_lock);
    if (r != CUDA_SUCCESS) {
        node_drop(g->driver, n);
        return r;
    }
    *out = n;
    return CUDA_SUCCESS;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void
graph_free(struct hed_object *o)
{
    struct hed_graph *g = (struct hed_graph *)o;

    hed_graph_users_free(&g->users);
    hed_graph_handles_free(g);
    if (g->root)
        hed_object_put(&g->root->object);
    free(g);
}

struct hed_graph *
hed_graph_create(struct hed_driver *d)
{
    struct hed_graph *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    g->object.destroy = graph_free;
    g->driver = d;
    g->last = &g->first;
    if (hed_handles_add(d->handles, HED_KIND_GRAPH, &g->object) != 0) {
        free(g);
        return NULL;
    }
    return g;
}

void
hed_graph_destroy(struct hed_graph *g)
{
    struct hed_driver *d = g->driver;
    struct hed_object *o = hed_handles_remove(d->handles, HED_KIND_GRAPH, g->object.handle);

    for (;;) {
        hed_lock(&hed_graphs_lock);

        struct hed_node *n = g->first;

        if (n)
            hed_graph_remove_node_locked(n);
        hed_unlock(&hed_graphs_lock);
        if (!n)
            break;
        node_drop(d, n);
    }
    if (o)
        hed_object_put(o);
}

static int
destroy_outer_graph(void *arg, struct hed_object *o)
{
    struct hed_graph *g = (struct hed_graph *)o;

    (void)arg;
    if (!g->is_child)
        hed_graph_destroy(g);
    return 0;
}

void
hed_graph_driver_fini(struct hed_driver *d)
{
    (void)hed_handles_each(d->handles, HED_KIND_GRAPH, destroy_outer_graph, NULL);
}

struct hed_graph *
hed_graph_find(struct hed_driver *d, CUgraph handle)
{
    return (struct hed_graph *)hed_handles_get(d->handles, HED_KIND_GRAPH,
                                               (uint64_t)(uintptr_t)handle);
}

struct hed_node *
hed_node_find(struct hed_driver *d, CUgraphNode handle)
{
    return (struct hed_node *)hed_handles_get(d->handles, HED_KIND_GRAPH_NODE,
                                              (uint64_t)(uintptr_t)handle);
}

struct hed_exec *
hed_exec_find(struct hed_driver *d, CUgraphExec handle)
{
    return (struct hed_exec *)hed_handles_get(d->handles, HED_KIND_GRAPH_EXEC,
                                              (uint64_t)(uintptr_t)handle);
}

/* ---- order and copies ------------------------------------------------------------------------ */

struct hed_node **
hed_graph_order_locked(struct hed_graph *g)
{
    struct hed_node **order = malloc((g->count + 1) * sizeof(struct hed_node *));
    size_t head = 0;
    size_t tail = 0;

    if (!order)
        return NULL;
    for (struct hed_node *n = g->first; n; n = n->next) {
        n->mark = n->in.count; /* edges from nodes that are not in the order yet */
        if (n->mark == 0)
            order[tail++] = n;
    }
    while (head < tail) {
        struct hed_node *n = order[head++];

        for (size_t i = 0; i < n->out.count; i++)
            if (--n->out.at[i].node->mark == 0)
                order[tail++] = n->out.at[i].node;
    }
    return order; /* tail == g->count: there are no cycles (invariant 1) */
}

/* Copies one node, without its edges. */
static CUresult
copy_node(struct hed_graph *to, const struct hed_node *n, struct hed_node **out)
{
    struct hed_node *c;
    CUresult r = CUDA_SUCCESS;

    if (n->condition.count) /* its handle belongs to the original */
        return CUDA_ERROR_NOT_SUPPORTED;
    c = node_create(to, n->type);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->origin = n->object.handle;
    c->freed = n->freed;
    c->memory = hed_graph_memory_ref(n->memory);
    if (n->work) {
        c->work = hed_work_copy(n->work);
        r = c->work ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (r == CUDA_SUCCESS && n->child) {
        r = hed_graph_clone(n->child, &c->child);
        if (r == CUDA_SUCCESS)
            c->child->is_child = true;
    }
    if (r != CUDA_SUCCESS) {
        node_drop(to->driver, c);
        return r;
    }
    *out = c;
    return CUDA_SUCCESS;
}

/* Adds the edges between the copies. `mark` of an original is the position of its copy. */
static CUresult
copy_edges_locked(const struct hed_graph *g, struct hed_node *const *copies)
{
    for (const struct hed_node *n = g->first; n; n = n->next)
        for (size_t i = 0; i < n->in.count; i++) {
            const struct hed_edge *e = &n->in.at[i];

            if (!edges_push(&copies[n->mark]->in, copies[e->node->mark], &e->data) ||
                !edges_push(&copies[e->node->mark]->out, copies[n->mark], &e->data))
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
    return CUDA_SUCCESS;
}

/* As with CUDA, the program must not change a graph while it is being cloned. */
CUresult
hed_graph_clone(struct hed_graph *g, struct hed_graph **out)
{
    struct hed_graph *c = hed_graph_create(g->driver);
    struct hed_node **copies = calloc(g->count + 1, sizeof(struct hed_node *));
    CUresult r = c && copies ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    size_t count = 0;

    if (r == CUDA_SUCCESS && g->handles) /* they belong to the original */
        r = CUDA_ERROR_NOT_SUPPORTED;
    for (struct hed_node *n = g->first; n && r == CUDA_SUCCESS; n = n->next) {
        n->mark = count;
        r = copy_node(c, n, &copies[count]);
        if (r == CUDA_SUCCESS) {
            hed_lock(&hed_graphs_lock);
            node_append_locked(c, copies[count++]);
            hed_unlock(&hed_graphs_lock);
        }
    }
    if (r == CUDA_SUCCESS) {
        hed_lock(&hed_graphs_lock);
        r = copy_edges_locked(g, copies);
        hed_unlock(&hed_graphs_lock);
    }
    if (r == CUDA_SUCCESS)
        r = hed_graph_users_copy(g->users, &c->users);
    free(copies);
    if (r != CUDA_SUCCESS) {
        if (c)
            hed_graph_destroy(c);
        return r;
    }
    *out = c;
    return CUDA_SUCCESS;
}
