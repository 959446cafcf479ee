/* The nodes of graphs: checks the client's description of each and passes it to the backend. See
 * graph.h; wire.h has the structs.
 */
#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "remote/server/worker/code.h"
#include "remote/server/worker/graph.h"
#include "remote/server/worker/memory.h"
#include "remote/server/worker/worker.h"

#define ATTRIBUTES_MAX 64

CUcontext
hed_worker_current(struct hed_worker *w)
{
    CUcontext c = NULL;

    (void)hed_worker_do(w, cuCtxGetCurrent, .pctx = &c);
    return c;
}

/* Could all of the memory belong to the client? Between the shares there is memory of the worker;
 * variables of modules are outside the shares.
 *
 * It must also be there (hed_memory_reaches()): NVIDIA's driver takes what it does not know for
 * memory of this process, and crashes at the launch. A client that comes from another worker may
 * tell us about a graph before all of its memory is here. */
static bool
is_clients_memory(struct hed_worker *w, uint64_t at, uint64_t size)
{
    if (hed_worker_variable_covers(w, at, size))
        return true;
    if (!w->stride || at < w->base || (at - w->base) / w->stride > (uint64_t)w->device_shares)
        return false;

    const uint64_t offset = (at - w->base) % w->stride;

    return hed_range_fits(offset, size, w->usable);
}

/* ---- the kinds of nodes: 0 and *r, or HED_EFORMAT -------------------------------------------- */

/* Attributes that are plain numbers and mean something to a node. */
static bool
is_for_nodes(CUlaunchAttributeID id)
{
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return true;
    default:
        return false;
    }
}

static CUresult
set_attributes(struct hed_worker *w, CUgraphNode node, const void *attributes, uint32_t count)
{
    CUresult r = CUDA_SUCCESS;

    for (uint32_t i = 0; i < count && r == CUDA_SUCCESS; i++) {
        CUlaunchAttribute a;

        memcpy(&a, (const char *)attributes + i * sizeof a, sizeof a);
        r = is_for_nodes(a.id) ? hed_worker_do(w, cuGraphKernelNodeSetAttribute, .hNode = node,
                                               .attr = a.id, .value = &a.value)
                               : CUDA_ERROR_NOT_SUPPORTED;
    }
    return r;
}

static int
add_kernel(struct hed_worker *w, const struct hed_node_position *p, CUgraphNode *out, CUresult *r)
{
    const struct hed_graph_kernel *k = p->own;

    if (p->size < sizeof *k || k->attributes > ATTRIBUTES_MAX ||
        p->size - sizeof *k < k->attributes * sizeof(CUlaunchAttribute) ||
        p->size - sizeof *k - k->attributes * sizeof(CUlaunchAttribute) < k->params)
        return HED_EFORMAT;

    const struct hed_worker_function *f = hed_worker_function(w->code, k->function);
    const char *attributes = (const char *)(k + 1);
    void *params = (void *)(uintptr_t)(attributes + k->attributes * sizeof(CUlaunchAttribute));
    size_t size = k->params;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};

    if (!f) { /* the function could not be created */
        *r = CUDA_ERROR_INVALID_HANDLE;
        return 0;
    }
    if (f->param_bytes != k->params && f->param_bytes != HED_PARAMS_UNKNOWN)
        return HED_EFORMAT;

    const CUDA_KERNEL_NODE_PARAMS_v2 params_v2 = {.func = f->real,
                                                  .gridDimX = k->grid[0],
                                                  .gridDimY = k->grid[1],
                                                  .gridDimZ = k->grid[2],
                                                  .blockDimX = k->block[0],
                                                  .blockDimY = k->block[1],
                                                  .blockDimZ = k->block[2],
                                                  .sharedMemBytes = k->dynamic_shared,
                                                  .extra = size ? extra : NULL};

    *r = hed_worker_do(w, cuGraphAddKernelNode_v2, .phGraphNode = out, .hGraph = p->draft->graph,
                       .dependencies = p->after, .numDependencies = p->count,
                       .nodeParams = &params_v2);
    if (*r == CUDA_SUCCESS)
        *r = set_attributes(w, *out, attributes, k->attributes);
    return 0;
}

/* The bytes from the first to the last on one side. False if there are too many, or if rows
 * overlap, which a driver may understand differently. */
static bool
span_of_node_side(const struct hed_copy *c, const struct hed_copy_side *s, uint64_t *out)
{
    const struct hed_box *b = &c->box;

    if (b->width == 0 || b->height == 0 || b->depth == 0 || (b->height > 1 && s->pitch < b->width))
        return false;
    if (b->depth > 1 && (s->pitch == 0 || s->slice % s->pitch || s->slice / s->pitch < b->height))
        return false;
    return hed_side_span(s, b, out);
}

/* The number of rows from one plane to the next. */
static uint64_t
rows_per_plane(const struct hed_copy *c, const struct hed_copy_side *s)
{
    return c->box.depth > 1 ? s->slice / s->pitch : c->box.height;
}

/* Returns 0, HED_EFORMAT, HED_ENOTFOUND if there is no such array, or HED_EINVAL if there is no
 * such memory. */
static int
check_side(struct hed_worker *w, const struct hed_copy *c, const struct hed_copy_side *s,
           CUarray *array)
{
    uint64_t bytes, real = 0;

    *array = NULL;
    if (!s->array && (!span_of_node_side(c, s, &bytes) || !is_clients_memory(w, s->at, bytes)))
        return HED_EFORMAT;
    if (!s->array)
        return hed_memory_reaches(w, s->at, bytes) ? 0 : HED_EINVAL;

    const int err =
        hed_name_fits(s->array, "array") ? hed_name_real(w->names, s->array, &real) : HED_ENOTFOUND;

    *array = (CUarray)(uintptr_t)real;
    return err;
}

static int
add_copy(struct hed_worker *w, const struct hed_node_position *p, CUgraphNode *out, CUresult *r)
{
    const struct hed_copy *c = p->own;
    CUarray from, to;
    int err;

    if (p->size < sizeof *c)
        return HED_EFORMAT;
    err = check_side(w, c, &c->from, &from);
    if (!err)
        err = check_side(w, c, &c->to, &to);
    if (err == HED_EFORMAT)
        return err;
    *r = err == HED_EINVAL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    if (err)
        return 0;

    const CUDA_MEMCPY3D_v2 params = {
        .srcMemoryType = from ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
        .srcDevice = from ? 0 : c->from.at,
        .srcArray = from,
        .srcXInBytes = from ? c->from.x : 0,
        .srcY = from ? c->from.y : 0,
        .srcZ = from ? c->from.z : 0,
        .srcPitch = from ? 0 : c->from.pitch,
        .srcHeight = from ? 0 : rows_per_plane(c, &c->from),
        .dstMemoryType = to ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
        .dstDevice = to ? 0 : c->to.at,
        .dstArray = to,
        .dstXInBytes = to ? c->to.x : 0,
        .dstY = to ? c->to.y : 0,
        .dstZ = to ? c->to.z : 0,
        .dstPitch = to ? 0 : c->to.pitch,
        .dstHeight = to ? 0 : rows_per_plane(c, &c->to),
        .WidthInBytes = c->box.width,
        .Height = c->box.height,
        .Depth = c->box.depth,
    };

    *r = hed_worker_do(w, cuGraphAddMemcpyNode, .phGraphNode = out, .hGraph = p->draft->graph,
                       .dependencies = p->after, .numDependencies = p->count, .copyParams = &params,
                       .ctx = hed_worker_current(w));
    return 0;
}

static int
add_fill(struct hed_worker *w, const struct hed_node_position *p, CUgraphNode *out, CUresult *r)
{
    const struct hed_graph_fill *f = p->own;
    uint64_t row, bytes;

    if (p->size < sizeof *f || f->height == 0 || f->width == 0 ||
        (f->element != 1 && f->element != 2 && f->element != 4) ||
        __builtin_mul_overflow(f->width, (uint64_t)f->element, &row) ||
        (f->height > 1 && f->pitch < row) ||
        __builtin_mul_overflow(f->pitch, f->height - 1, &bytes) ||
        __builtin_add_overflow(bytes, row, &bytes) || !is_clients_memory(w, f->to, bytes))
        return HED_EFORMAT;
    *r = CUDA_ERROR_INVALID_VALUE;
    if (!hed_memory_reaches(w, f->to, bytes))
        return 0;

    const CUDA_MEMSET_NODE_PARAMS_v1 params = {.dst = f->to,
                                               .pitch = f->pitch,
                                               .value = f->value,
                                               .elementSize = f->element,
                                               .width = f->width,
                                               .height = f->height};

    *r = hed_worker_do(w, cuGraphAddMemsetNode, .phGraphNode = out, .hGraph = p->draft->graph,
                       .dependencies = p->after, .numDependencies = p->count,
                       .memsetParams = &params, .ctx = hed_worker_current(w));
    return 0;
}

static int
add_event(struct hed_worker *w, const struct hed_node_position *p, bool record, CUgraphNode *out,
          CUresult *r)
{
    const struct hed_graph_event *e = p->own;
    uint64_t real;

    if (p->size < sizeof *e)
        return HED_EFORMAT;
    *r = CUDA_ERROR_INVALID_HANDLE;
    if (!hed_name_fits(e->event, "event") || hed_name_real(w->names, e->event, &real) != 0)
        return 0;
    if (record)
        *r = hed_worker_do(w, cuGraphAddEventRecordNode, .phGraphNode = out,
                           .hGraph = p->draft->graph, .dependencies = p->after,
                           .numDependencies = p->count, .event = (CUevent)(uintptr_t)real);
    else
        *r = hed_worker_do(w, cuGraphAddEventWaitNode, .phGraphNode = out,
                           .hGraph = p->draft->graph, .dependencies = p->after,
                           .numDependencies = p->count, .event = (CUevent)(uintptr_t)real);
    return 0;
}

static bool
value_op(struct hed_worker *w, const struct hed_graph_value *v, CUstreamBatchMemOpParams_v1 *out)
{
    *out = (CUstreamBatchMemOpParams_v1){0};
    switch (v->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        out->waitValue.address = v->at;
        out->waitValue.value64 = v->value;
        out->waitValue.flags = v->flags;
        break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        out->writeValue.address = v->at;
        out->writeValue.value64 = v->value;
        out->writeValue.flags = v->flags;
        break;
    default:
        return false;
    }
    out->operation = (CUstreamBatchMemOpType)v->operation;
    return is_clients_memory(w, v->at, hed_memory_op_bytes(out->operation));
}

static int
add_values(struct hed_worker_channel *ch, const struct hed_node_position *p, CUgraphNode *out,
           CUresult *r)
{
    const struct hed_graph_value *v = p->own;
    const uint32_t count = p->size / (uint32_t)sizeof *v;
    CUstreamBatchMemOpParams_v1 *ops = hed_arena_alloc(&ch->arena, (count + 1) * sizeof *ops, 16);

    if (!ops)
        return HED_ENOMEM;
    *r = CUDA_SUCCESS;
    for (uint32_t i = 0; i < count; i++) {
        if (!value_op(ch->worker, &v[i], &ops[i]))
            return HED_EFORMAT;
        if (!hed_memory_reaches(ch->worker, v[i].at, hed_memory_op_bytes(ops[i].operation)))
            *r = CUDA_ERROR_INVALID_VALUE;
    }
    if (*r != CUDA_SUCCESS)
        return 0;

    const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 params = {
        .ctx = hed_worker_current(ch->worker), .count = count, .paramArray = ops};

    *r = hed_worker_do(ch->worker, cuGraphAddBatchMemOpNode, .phGraphNode = out,
                       .hGraph = p->draft->graph, .dependencies = p->after,
                       .numDependencies = p->count, .nodeParams = &params);
    return 0;
}

int
hed_worker_add_node(struct hed_worker_channel *ch, uint32_t type, const struct hed_node_position *p,
                    CUgraphNode *out, CUresult *r)
{
    struct hed_worker *w = ch->worker;

    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return add_kernel(w, p, out, r);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return add_copy(w, p, out, r);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return add_fill(w, p, out, r);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return add_event(w, p, type == CU_GRAPH_NODE_TYPE_EVENT_RECORD, out, r);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return add_values(ch, p, out, r);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return hed_worker_add_choice(w, p, out, r);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        *r = hed_worker_do(w, cuGraphAddEmptyNode, .phGraphNode = out, .hGraph = p->draft->graph,
                           .dependencies = p->after, .numDependencies = p->count);
        return 0;
    default:
        return HED_EFORMAT;
    }
}
