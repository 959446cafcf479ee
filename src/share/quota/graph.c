/* Memory of graphs' nodes (share/quota/engine.h).
 *
 * Graphs take their memory from the device, not from pools. The driver decides when: when the node
 * is added, or when the graph is instantiated, uploaded or launched. Before each of these calls all
 * memory nodes of the graph are charged; afterwards the device is charged with what the layer below
 * reports for its graphs. Where nothing is ever reported (the null backend), an executable graph
 * counts with all its nodes for as long as it exists.
 *
 * The nodes of graphs are only looked at once this process has had a memory node.
 */
#include <stdlib.h>

#include "share/quota/engine.h"

#define NEST_MAX 32 /* graphs in graphs */

struct quota_exec {
    uint64_t bytes[QUOTA_DEVICES]; /* by ordinal */
    _Atomic uint32_t
        epoch[QUOTA_DEVICES]; /* 1 + the trims before its last launch; 0: never launched */
};

/* Charges n bytes before a call. False: that would be over the limit. */
bool
hed_quota_graph_begin(struct hed_layer *self, struct quota_device *d, uint64_t n)
{
    if (n == 0)
        return true;
    n = hed_quota_round(n);
    return hed_quota_claim(self, d, n);
}

/* After a call that was charged with n bytes: makes the charge what the layer below reports.
 * `added`: the call has added a node. */
static void
settle_graph_memory(struct hed_layer *self, struct quota_device *d, uint64_t n, bool added)
{
    uint64_t spare = n ? hed_quota_round(n) : 0;
    struct hed_quota *q = self->state;
    cuuint64_t value = 0;
    uint64_t serial;
    CUdevice ordinal = -1;

    for (CUdevice i = 0; ordinal < 0 && i < QUOTA_DEVICES; i++)
        if (atomic_load_explicit(&q->ordinals[i], memory_order_acquire) == d)
            ordinal = i;
    hed_lock_brief(&d->graph_lock);
    serial = ++d->graph_serial;
    hed_unlock_brief(&d->graph_lock);

    const int mode = hed_quota_relax(self);
    const CUresult r =
        atomic_load_explicit(&d->graph_mute, memory_order_relaxed)
            ? CUDA_ERROR_NOT_SUPPORTED
            : hed_call(self->next, cuDeviceGetGraphMemAttribute, .device = ordinal,
                       .attr = CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, .value = &value);

    hed_quota_relaxed(self, mode);
    if (r == CUDA_ERROR_NOT_SUPPORTED)
        atomic_store_explicit(&d->graph_mute, true, memory_order_relaxed);
    if (r != CUDA_SUCCESS)
        value = 0;
    hed_lock_brief(&d->graph_lock);
    d->graph_reports |= value != 0;

    const uint64_t want = d->graph_reports ? value : d->graph_model;

    d->graph_eager |= added && d->graph_reports && want > d->graph_charged;
    if (want > d->graph_charged) {
        const uint64_t more = want - d->graph_charged;
        const uint64_t paid = more < spare ? more : spare;

        /* The memory is taken already, so nothing is refused here. */
        if (more > paid)
            hed_quota_force(d, more - paid);
        spare -= paid;
        d->graph_charged = want;
    } else if (want < d->graph_charged && serial == d->graph_serial) {
        spare += d->graph_charged - want;
        d->graph_charged = want;
    }
    hed_unlock_brief(&d->graph_lock);
    if (spare != 0)
        hed_quota_give(d, spare);
}

void
hed_quota_graph_end(struct hed_layer *self, struct quota_device *d, uint64_t n)
{
    settle_graph_memory(self, d, n, false);
}

void
hed_quota_graph_added(struct hed_layer *self, struct quota_device *d, uint64_t n)
{
    settle_graph_memory(self, d, n, true);
}

/* Whether a graph's memory is charged already, before a call that may take it: because it was taken
 * when its nodes were added, or, for a launch, because all executable graphs are charged. */
static bool
is_exec_covered(struct quota_device *d, const struct quota_exec *e, CUdevice i, bool launch)
{
    hed_lock_brief(&d->graph_lock);

    const bool covers = d->graph_eager || (launch && !d->graph_reports);

    hed_unlock_brief(&d->graph_lock);
    return covers ||
           (launch && atomic_load_explicit(&e->epoch[i], memory_order_relaxed) ==
                          1 + atomic_load_explicit(&d->graph_epoch, memory_order_relaxed));
}

/* After a trim: executable graphs may have lost their memory, and take it again at their next
 * launch. */
static void
graphs_trimmed(struct hed_layer *self, struct quota_device *d)
{
    hed_lock_brief(&d->graph_lock);

    const uint64_t before = d->graph_charged;

    hed_unlock_brief(&d->graph_lock);
    atomic_fetch_add_explicit(&d->graph_epoch, 1, memory_order_relaxed);
    hed_quota_graph_end(self, d, 0);
    hed_lock_brief(&d->graph_lock);
    if (d->graph_charged < before && d->graph_charged < d->graph_model)
        d->graph_eager = false;
    hed_unlock_brief(&d->graph_lock);
}

void
hed_quota_graph_trim(struct hed_layer *self, struct quota_device *d)
{
    struct hed_quota *q = self->state;

    if (!atomic_load_explicit(&q->memory_nodes, memory_order_relaxed))
        return;
    for (CUdevice i = 0; i < QUOTA_DEVICES; i++)
        if (atomic_load_explicit(&q->ordinals[i], memory_order_acquire) == d)
            (void)hed_call(self->next, cuDeviceGraphMemTrim, .device = i);
    graphs_trimmed(self, d);
}

static CUresult
quota_do_graph_trim(struct hed_layer *self, const struct quota_call *c)
{
    const CUresult r = quota_next(self, c);
    struct quota_device *d = r == CUDA_SUCCESS ? hed_quota_device(self, c->device) : NULL;

    if (d)
        graphs_trimmed(self, d);
    return r;
}

HED_CUDA_MEMORY_GRAPH_TRIM(QUOTA_CALL)

/* ---- nodes ----------------------------------------------------------------------------------- */

static CUresult
quota_do_node_add(struct hed_layer *self, const struct quota_call *c)
{
    struct hed_quota *q = self->state;

    if (c->node != CU_GRAPH_NODE_TYPE_MEM_ALLOC || c->where != CU_MEM_LOCATION_TYPE_DEVICE)
        return quota_next(self, c);
    atomic_store_explicit(&q->memory_nodes, true, memory_order_relaxed);

    struct quota_device *d = hed_quota_device(self, c->device);

    if (!d)
        return quota_next(self, c);
    if (!hed_quota_graph_begin(self, d, c->bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;

    const CUresult r = quota_next(self, c);

    hed_quota_graph_added(self, d, c->bytes);
    return r;
}

HED_CUDA_MEMORY_NODE_ADD(QUOTA_CALL)

/* ---- executable graphs ----------------------------------------------------------------------- */

static bool add_graph(struct hed_layer *self, CUgraph graph, struct quota_exec *e, int depth);

static bool
add_memory_node(struct hed_layer *self, CUgraphNode node, struct quota_exec *e, int depth)
{
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 p = {0};
    CUgraph child = NULL;

    if (hed_call(self->next, cuGraphNodeGetType, .hNode = node, .type = &type) != CUDA_SUCCESS)
        return false;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH)
        return hed_call(self->next, cuGraphChildGraphNodeGetGraph, .hNode = node,
                        .phGraph = &child) == CUDA_SUCCESS &&
               add_graph(self, child, e, depth + 1);
    if (type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return false;

    const CUresult r =
        hed_call(self->next, cuGraphMemAllocNodeGetParams, .hNode = node, .params_out = &p);
    const int id = r == CUDA_SUCCESS ? p.poolProps.location.id : -1;

    if (id < 0 || id >= QUOTA_DEVICES)
        return false;

    /* The sum saturates: more than any device has is refused anyway. */
    const uint64_t most = UINT64_MAX / 4;
    const uint64_t n = p.bytesize < most ? hed_quota_round(p.bytesize) : most;

    e->bytes[id] = n < most - e->bytes[id] ? e->bytes[id] + n : most;
    return true;
}

static CUresult
get_nodes(struct hed_layer *self, CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    return hed_call(self->next, cuGraphGetNodes, .hGraph = graph, .nodes = nodes, .numNodes = n);
}

/* Adds up the memory nodes of a graph. False: it has none. */
static bool
add_graph(struct hed_layer *self, CUgraph graph, struct quota_exec *e, int depth)
{
    size_t n = 0;
    bool any = false;

    if (depth > NEST_MAX || get_nodes(self, graph, NULL, &n) != CUDA_SUCCESS || n == 0)
        return false;

    CUgraphNode *nodes = calloc(n, sizeof(CUgraphNode));

    if (nodes && get_nodes(self, graph, nodes, &n) == CUDA_SUCCESS)
        for (size_t i = 0; i < n; i++)
            any |= nodes[i] && add_memory_node(self, nodes[i], e, depth);
    free(nodes);
    return any;
}

static struct quota_exec *
weigh_graph(struct hed_layer *self, CUgraph graph)
{
    const struct hed_quota *q = self->state;

    if (!atomic_load_explicit(&q->memory_nodes, memory_order_relaxed))
        return NULL;

    struct quota_exec *e = calloc(1, sizeof *e);

    if (e && !add_graph(self, graph, e, 0)) {
        free(e);
        e = NULL;
    }
    return e;
}

/* Charges the memory of an executable graph before a call, on all its devices or on none. */
static bool
charge_exec(struct hed_layer *self, struct quota_exec *e, bool launch,
            uint64_t charged[QUOTA_DEVICES])
{
    bool good = true;

    for (CUdevice i = 0; i < QUOTA_DEVICES; i++) {
        struct quota_device *d = e->bytes[i] ? hed_quota_device(self, i) : NULL;

        charged[i] = 0;
        if (!d || !good || is_exec_covered(d, e, i, launch))
            continue;
        good = hed_quota_graph_begin(self, d, e->bytes[i]);
        charged[i] = good ? e->bytes[i] : 0;
    }
    for (CUdevice i = 0; !good && i < QUOTA_DEVICES; i++)
        if (charged[i])
            hed_quota_give(hed_quota_device(self, i), hed_quota_round(charged[i]));
    return good;
}

/* After a call. `model`: 1 if the graph is new, -1 if it has gone, else 0. */
static void
settle_exec(struct hed_layer *self, struct quota_exec *e, const uint64_t charged[QUOTA_DEVICES],
            int model, bool launched)
{
    for (CUdevice i = 0; i < QUOTA_DEVICES; i++) {
        struct quota_device *d = e->bytes[i] ? hed_quota_device(self, i) : NULL;

        if (!d)
            continue;
        hed_lock_brief(&d->graph_lock);
        d->graph_model += (uint64_t)(int64_t)model * hed_quota_round(e->bytes[i]);
        hed_unlock_brief(&d->graph_lock);
        if (launched)
            atomic_store_explicit(&e->epoch[i],
                                  1 + atomic_load_explicit(&d->graph_epoch, memory_order_relaxed),
                                  memory_order_relaxed);
        hed_quota_graph_end(self, d, charged ? charged[i] : 0);
    }
}

/* After a graph has been instantiated. */
static CUresult
exec_made(struct hed_layer *self, const struct quota_call *c, struct quota_exec *e,
          const uint64_t charged[QUOTA_DEVICES], CUresult r)
{
    const bool good = r == CUDA_SUCCESS && c->out.at;

    settle_exec(self, e, charged, good ? 1 : 0, false);
    if (good) {
        const struct quota_charge charge = {
            .key = hed_place_get(c->out), .thing = e, .kind = QUOTA_EXEC};

        if (hed_quota_put(self->state, &charge) == 0)
            return r;
        (void)hed_call(self->next, cuGraphExecDestroy, .hGraphExec = (CUgraphExec)charge.key);
        settle_exec(self, e, NULL, -1, false);
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    free(e);
    return r;
}

static CUresult
quota_do_exec_make(struct hed_layer *self, const struct quota_call *c)
{
    struct quota_exec *e = weigh_graph(self, (CUgraph)c->key);
    uint64_t charged[QUOTA_DEVICES];

    if (!e)
        return quota_next(self, c);
    if (!charge_exec(self, e, false, charged)) {
        free(e);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return exec_made(self, c, e, charged, quota_next(self, c));
}

HED_CUDA_MEMORY_EXEC_MAKE(QUOTA_CALL)

static struct quota_exec *
find_exec(struct hed_layer *self, uint64_t exec)
{
    struct hed_quota *q = self->state;
    struct quota_charge r;

    return atomic_load_explicit(&q->memory_nodes, memory_order_relaxed) &&
                   hed_quota_peek(q, QUOTA_EXEC, exec, &r)
               ? r.thing
               : NULL;
}

static inline __attribute__((always_inline)) CUresult
quota_do_exec_launch(struct hed_layer *self, const struct quota_call *c)
{
    struct quota_exec *e = find_exec(self, c->key);
    uint64_t charged[QUOTA_DEVICES];

    if (!e)
        return quota_next(self, c);
    if (!charge_exec(self, e, true, charged))
        return CUDA_ERROR_OUT_OF_MEMORY;

    const CUresult r = quota_next(self, c);

    settle_exec(self, e, charged, 0, r == CUDA_SUCCESS);
    return r;
}

HED_CUDA_MEMORY_EXEC_LAUNCH(QUOTA_CALL)

static CUresult
quota_do_exec_end(struct hed_layer *self, const struct quota_call *c)
{
    struct quota_charge old;
    const bool found = hed_quota_take(self->state, QUOTA_EXEC, c->key, &old);
    const CUresult r = quota_next(self, c);

    if (found && r != CUDA_SUCCESS) {
        (void)hed_quota_put(self->state, &old);
    } else if (found) {
        settle_exec(self, old.thing, NULL, -1, false);
        free(old.thing);
    }
    return r;
}

HED_CUDA_MEMORY_EXEC_END(QUOTA_CALL)

/* The memory of a graph may be freed with it. */
static CUresult
quota_do_graph_end(struct hed_layer *self, const struct quota_call *c)
{
    struct hed_quota *q = self->state;
    const CUresult r = quota_next(self, c);

    for (uint32_t i = 0; i < QUOTA_DEVICES; i++) {
        struct quota_device *d = atomic_load_explicit(&q->ordinals[i], memory_order_acquire);

        if (d && atomic_load_explicit(&q->memory_nodes, memory_order_relaxed))
            hed_quota_graph_end(self, d, 0);
    }
    return r;
}

HED_CUDA_MEMORY_GRAPH_END(QUOTA_CALL)
