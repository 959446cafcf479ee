/* Memory of graphs' nodes (layers/quota/quota.h).
 *
 * Graphs have their memory from the device, apart from pools, and when is the driver's own affair:
 * when the node is added, when the graph is instantiated, uploaded or launched. Each of these is
 * charged with all the memory nodes there are before the call, and afterwards the device is charged
 * with what the layer below reports for its graphs. Where nothing is ever reported (the null
 * backend), an executable graph counts with all its nodes from its making to its end.
 *
 * Graphs are walked for their nodes only where a memory node has been seen in this process.
 */
#include <stdlib.h>

#include "layers/quota/quota.h"

#define NEST_MAX 32 /* graphs in graphs */

struct quota_exec {
    uint64_t bytes[QUOTA_DEVICES]; /* by ordinal */
    _Atomic uint32_t
        epoch[QUOTA_DEVICES]; /* 1 + that of the trim it was launched after; 0: never */
};

/* False: it would be over the limit. */
bool
quota_graph_begin(struct hed_layer *self, struct quota_device *d, uint64_t n)
{
    if (n == 0)
        return true;
    n = quota_round(n);
    return quota_claim(self, d, n);
}

/* After the call: n was charged for it, the report says what is there. added: the call was one that
 * adds a node. */
static void
settle_graph_memory(struct hed_layer *self, struct quota_device *d, uint64_t n, bool added)
{
    uint64_t spare = n ? quota_round(n) : 0;
    struct quota *q = self->state;
    cuuint64_t value = 0;
    uint64_t serial;
    CUdevice ordinal = -1;

    for (CUdevice i = 0; ordinal < 0 && i < QUOTA_DEVICES; i++)
        if (atomic_load_explicit(&q->ordinals[i], memory_order_acquire) == d)
            ordinal = i;
    hed_lock_brief(&d->graph_lock);
    serial = ++d->graph_serial;
    hed_unlock_brief(&d->graph_lock);

    struct hed_cuDeviceGetGraphMemAttribute get = {ordinal, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                                   &value};

    const int mode = quota_relax(self);
    const CUresult r = atomic_load_explicit(&d->graph_mute, memory_order_relaxed)
                           ? CUDA_ERROR_NOT_SUPPORTED
                           : hed_next(self, cuDeviceGetGraphMemAttribute, &get);

    quota_relaxed(self, mode);
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

        /* The memory is there already: nothing is refused here. */
        if (more > paid)
            quota_force(d, more - paid);
        spare -= paid;
        d->graph_charged = want;
    } else if (want < d->graph_charged && serial == d->graph_serial) {
        spare += d->graph_charged - want;
        d->graph_charged = want;
    }
    hed_unlock_brief(&d->graph_lock);
    if (spare != 0)
        quota_give(d, spare);
}

void
quota_graph_end(struct hed_layer *self, struct quota_device *d, uint64_t n)
{
    settle_graph_memory(self, d, n, false);
}

void
quota_graph_added(struct hed_layer *self, struct quota_device *d, uint64_t n)
{
    settle_graph_memory(self, d, n, true);
}

/* Must a graph's memory be charged before a call that may take it? Not where it was taken when its
 * nodes were added; nor, for a launch, where all executable graphs are charged anyway. */
static bool
covered(struct quota_device *d, const struct quota_exec *e, CUdevice i, bool launch)
{
    hed_lock_brief(&d->graph_lock);

    const bool covers = d->graph_eager || (launch && !d->graph_reports);

    hed_unlock_brief(&d->graph_lock);
    return covers ||
           (launch && atomic_load_explicit(&e->epoch[i], memory_order_relaxed) ==
                          1 + atomic_load_explicit(&d->graph_epoch, memory_order_relaxed));
}

/* After a trim: what executable graphs need may be gone, and comes back with their next launch. */
static void
trimmed(struct hed_layer *self, struct quota_device *d)
{
    hed_lock_brief(&d->graph_lock);

    const uint64_t before = d->graph_charged;

    hed_unlock_brief(&d->graph_lock);
    atomic_fetch_add_explicit(&d->graph_epoch, 1, memory_order_relaxed);
    quota_graph_end(self, d, 0);
    hed_lock_brief(&d->graph_lock);
    if (d->graph_charged < before && d->graph_charged < d->graph_model)
        d->graph_eager = false;
    hed_unlock_brief(&d->graph_lock);
}

void
quota_graph_trim(struct hed_layer *self, struct quota_device *d)
{
    struct quota *q = self->state;

    if (!atomic_load_explicit(&q->memory_nodes, memory_order_relaxed))
        return;
    for (CUdevice i = 0; i < QUOTA_DEVICES; i++)
        if (atomic_load_explicit(&q->ordinals[i], memory_order_acquire) == d)
            (void)hed_next(self, cuDeviceGraphMemTrim, &(struct hed_cuDeviceGraphMemTrim){i});
    trimmed(self, d);
}

CUresult
quota_cuDeviceGraphMemTrim(struct hed_layer *self, struct hed_cuDeviceGraphMemTrim *a)
{
    const CUresult r = hed_next(self, cuDeviceGraphMemTrim, a);
    struct quota_device *d = r == CUDA_SUCCESS ? quota_device(self, a->device) : NULL;

    if (d)
        trimmed(self, d);
    return r;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static struct quota_device *
node_device(struct hed_layer *self, const CUmemLocation_v1 *where)
{
    struct quota *q = self->state;

    if (where->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return NULL;
    atomic_store_explicit(&q->memory_nodes, true, memory_order_relaxed);
    return quota_device(self, where->id);
}

#define ADD(call, device_, bytes_)                   \
    do {                                             \
        struct quota_device *d_ = (device_);         \
        const uint64_t n_ = d_ ? (bytes_) : 0;       \
                                                     \
        if (!d_)                                     \
            return hed_next(self, call, a);          \
        if (!quota_graph_begin(self, d_, n_))        \
            return CUDA_ERROR_OUT_OF_MEMORY;         \
                                                     \
        const CUresult r_ = hed_next(self, call, a); \
                                                     \
        quota_graph_added(self, d_, n_);             \
        return r_;                                   \
    } while (0)

CUresult
quota_cuGraphAddMemAllocNode(struct hed_layer *self, struct hed_cuGraphAddMemAllocNode *a)
{
    ADD(cuGraphAddMemAllocNode,
        a->nodeParams ? node_device(self, &a->nodeParams->poolProps.location) : NULL,
        a->nodeParams->bytesize);
}

static struct quota_device *
params_device(struct hed_layer *self, const CUgraphNodeParams *p)
{
    return p && p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC
               ? node_device(self, &p->alloc.poolProps.location)
               : NULL;
}

CUresult
quota_cuGraphAddNode(struct hed_layer *self, struct hed_cuGraphAddNode *a)
{
    ADD(cuGraphAddNode, params_device(self, a->nodeParams), a->nodeParams->alloc.bytesize);
}

CUresult
quota_cuGraphAddNode_v2(struct hed_layer *self, struct hed_cuGraphAddNode_v2 *a)
{
    ADD(cuGraphAddNode_v2, params_device(self, a->nodeParams), a->nodeParams->alloc.bytesize);
}

/* ---- executable graphs ----------------------------------------------------------------------- */

static bool add_graph(struct hed_layer *self, CUgraph graph, struct quota_exec *e, int depth);

static bool
add_memory_node(struct hed_layer *self, CUgraphNode node, struct quota_exec *e, int depth)
{
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 p = {0};
    CUgraph child = NULL;
    struct hed_cuGraphNodeGetType ask = {node, &type};

    if (hed_next(self, cuGraphNodeGetType, &ask) != CUDA_SUCCESS)
        return false;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
        struct hed_cuGraphChildGraphNodeGetGraph get = {node, &child};

        return hed_next(self, cuGraphChildGraphNodeGetGraph, &get) == CUDA_SUCCESS &&
               add_graph(self, child, e, depth + 1);
    }
    if (type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return false;

    struct hed_cuGraphMemAllocNodeGetParams get = {node, &p};
    const int id = hed_next(self, cuGraphMemAllocNodeGetParams, &get) == CUDA_SUCCESS
                       ? p.poolProps.location.id
                       : -1;

    if (id < 0 || id >= QUOTA_DEVICES)
        return false;

    /* Saturating: what no device has is refused, whatever is added to it. */
    const uint64_t most = UINT64_MAX / 4;
    const uint64_t n = p.bytesize < most ? quota_round(p.bytesize) : most;

    e->bytes[id] = n < most - e->bytes[id] ? e->bytes[id] + n : most;
    return true;
}

/* Adds a graph's memory nodes up. Has it any? */
static bool
add_graph(struct hed_layer *self, CUgraph graph, struct quota_exec *e, int depth)
{
    size_t n = 0;
    bool any = false;
    struct hed_cuGraphGetNodes get = {graph, NULL, &n};

    if (depth > NEST_MAX || hed_next(self, cuGraphGetNodes, &get) != CUDA_SUCCESS || n == 0)
        return false;

    CUgraphNode *nodes = calloc(n, sizeof(CUgraphNode));

    get.nodes = nodes;
    if (nodes && hed_next(self, cuGraphGetNodes, &get) == CUDA_SUCCESS)
        for (size_t i = 0; i < n; i++)
            any |= nodes[i] && add_memory_node(self, nodes[i], e, depth);
    free(nodes);
    return any;
}

static struct quota_exec *
weigh(struct hed_layer *self, CUgraph graph)
{
    const struct quota *q = self->state;

    if (!atomic_load_explicit(&q->memory_nodes, memory_order_relaxed))
        return NULL;

    struct quota_exec *e = calloc(1, sizeof *e);

    if (e && !add_graph(self, graph, e, 0)) {
        free(e);
        e = NULL;
    }
    return e;
}

/* Charges an executable graph's memory before a call, on all its devices or none. */
static bool
charge_exec(struct hed_layer *self, struct quota_exec *e, bool launch,
            uint64_t charged[QUOTA_DEVICES])
{
    bool good = true;

    for (CUdevice i = 0; i < QUOTA_DEVICES; i++) {
        struct quota_device *d = e->bytes[i] ? quota_device(self, i) : NULL;

        charged[i] = 0;
        if (!d || !good || covered(d, e, i, launch))
            continue;
        good = quota_graph_begin(self, d, e->bytes[i]);
        charged[i] = good ? e->bytes[i] : 0;
    }
    for (CUdevice i = 0; !good && i < QUOTA_DEVICES; i++)
        if (charged[i])
            quota_give(quota_device(self, i), quota_round(charged[i]));
    return good;
}

/* model: bytes more (1) or fewer (-1) that executable graphs have. */
static void
settle_exec(struct hed_layer *self, struct quota_exec *e, const uint64_t charged[QUOTA_DEVICES],
            int model, bool launched)
{
    for (CUdevice i = 0; i < QUOTA_DEVICES; i++) {
        struct quota_device *d = e->bytes[i] ? quota_device(self, i) : NULL;

        if (!d)
            continue;
        hed_lock_brief(&d->graph_lock);
        d->graph_model += (uint64_t)(int64_t)model * quota_round(e->bytes[i]);
        hed_unlock_brief(&d->graph_lock);
        if (launched)
            atomic_store_explicit(&e->epoch[i],
                                  1 + atomic_load_explicit(&d->graph_epoch, memory_order_relaxed),
                                  memory_order_relaxed);
        quota_graph_end(self, d, charged ? charged[i] : 0);
    }
}

static CUresult
made(struct hed_layer *self, struct quota_exec *e, CUgraphExec *exec, CUresult r,
     const uint64_t charged[QUOTA_DEVICES])
{
    const bool good = r == CUDA_SUCCESS && exec;

    settle_exec(self, e, charged, good ? 1 : 0, false);
    if (good) {
        const struct quota_charge record = {
            .key = (uint64_t)(uintptr_t)*exec, .thing = e, .kind = QUOTA_EXEC};

        if (quota_put(self->state, &record) == 0)
            return r;
        (void)hed_next(self, cuGraphExecDestroy, &(struct hed_cuGraphExecDestroy){*exec});
        settle_exec(self, e, NULL, -1, false);
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    free(e);
    return r;
}

#define INSTANTIATE(call)                                                       \
    CUresult quota_##call(struct hed_layer *self, struct hed_##call *a)         \
    {                                                                           \
        struct quota_exec *e = weigh(self, a->hGraph);                          \
        uint64_t charged[QUOTA_DEVICES];                                        \
                                                                                \
        if (!e)                                                                 \
            return hed_next(self, call, a);                                     \
        if (!charge_exec(self, e, false, charged)) {                            \
            free(e);                                                            \
            return CUDA_ERROR_OUT_OF_MEMORY;                                    \
        }                                                                       \
        return made(self, e, a->phGraphExec, hed_next(self, call, a), charged); \
    }

INSTANTIATE(cuGraphInstantiate)
INSTANTIATE(cuGraphInstantiate_v2)
INSTANTIATE(cuGraphInstantiateWithFlags)
INSTANTIATE(cuGraphInstantiateWithParams)

static struct quota_exec *
find(struct hed_layer *self, CUgraphExec exec)
{
    struct quota *q = self->state;
    struct quota_charge r;

    return atomic_load_explicit(&q->memory_nodes, memory_order_relaxed) &&
                   quota_peek(q, QUOTA_EXEC, (uint64_t)(uintptr_t)exec, &r)
               ? r.thing
               : NULL;
}

#define LAUNCH(call)                                                    \
    CUresult quota_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                   \
        struct quota_exec *e = find(self, a->hGraph);                   \
        uint64_t charged[QUOTA_DEVICES];                                \
                                                                        \
        if (!e)                                                         \
            return hed_next(self, call, a);                             \
        if (!charge_exec(self, e, true, charged))                       \
            return CUDA_ERROR_OUT_OF_MEMORY;                            \
                                                                        \
        const CUresult r = hed_next(self, call, a);                     \
                                                                        \
        settle_exec(self, e, charged, 0, r == CUDA_SUCCESS);            \
        return r;                                                       \
    }

LAUNCH(cuGraphUpload)
LAUNCH(cuGraphLaunch)

CUresult
quota_cuGraphExecDestroy(struct hed_layer *self, struct hed_cuGraphExecDestroy *a)
{
    struct quota_charge r;
    const bool found = quota_take(self->state, QUOTA_EXEC, (uint64_t)(uintptr_t)a->hGraphExec, &r);
    const CUresult result = hed_next(self, cuGraphExecDestroy, a);

    if (found && result != CUDA_SUCCESS) {
        (void)quota_put(self->state, &r);
    } else if (found) {
        settle_exec(self, r.thing, NULL, -1, false);
        free(r.thing);
    }
    return result;
}

/* A graph's own memory may go with it. */
CUresult
quota_cuGraphDestroy(struct hed_layer *self, struct hed_cuGraphDestroy *a)
{
    struct quota *q = self->state;
    const CUresult r = hed_next(self, cuGraphDestroy, a);

    for (uint32_t i = 0; i < QUOTA_DEVICES; i++) {
        struct quota_device *d = atomic_load_explicit(&q->ordinals[i], memory_order_acquire);

        if (d && atomic_load_explicit(&q->memory_nodes, memory_order_relaxed))
            quota_graph_end(self, d, 0);
    }
    return r;
}
