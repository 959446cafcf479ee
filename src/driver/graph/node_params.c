/* Turns the parameters that a program gives for a node into work, and work back into parameters. */
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "driver/graph/node.h"
#include "driver/module/module.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"

/* The context in which a node's work runs: the one that is named, or else the current one. */
static CUresult
context_of(struct hed_layer *self, CUcontext handle, struct hed_context **out)
{
    if (!handle)
        return hed_current(self, out);
    *out = hed_context_find(hed_driver_of(self), handle);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult
hed_node_context(struct hed_layer *self, CUcontext handle, int device, struct hed_context **out)
{
    const CUresult r = context_of(self, handle, out);

    if (handle || r != CUDA_ERROR_INVALID_CONTEXT)
        return r;
    *out = hed_context_any(hed_driver_of(self), device);
    return *out ? CUDA_SUCCESS : r;
}

static CUresult
kernel_work(struct hed_layer *self, const CUDA_KERNEL_NODE_PARAMS_v3 *p, struct hed_work **out)
{
    const CUlaunchConfig config = {
        .gridDimX = p->gridDimX,
        .gridDimY = p->gridDimY,
        .gridDimZ = p->gridDimZ,
        .blockDimX = p->blockDimX,
        .blockDimY = p->blockDimY,
        .blockDimZ = p->blockDimZ,
        .sharedMemBytes = p->sharedMemBytes,
    };
    struct hed_context *c;
    CUresult r = context_of(self, p->ctx, &c);

    /* "func: Kernel to launch, or NULL and kern is used" */
    if (r == CUDA_SUCCESS)
        r = hed_kernel_work_create(c, p->func ? p->func : (CUfunction)p->kern, &config,
                                   p->kernelParams, p->extra, out);
    /* NVIDIA's runtime names both, and finds its function again by the kernel. */
    if (r == CUDA_SUCCESS && p->func)
        (*out)->kernel.beside = p->kern;
    return r;
}

static CUresult
copy_work(struct hed_layer *self, const CUDA_MEMCPY_NODE_PARAMS *p, struct hed_work **out)
{
    struct hed_context *c;
    struct hed_copy copy;
    CUresult r =
        p->flags != 0 ? CUDA_ERROR_INVALID_VALUE : hed_node_context(self, p->copyCtx, -1, &c);

    if (r == CUDA_SUCCESS)
        r = hed_copy_resolve(c, &p->copyParams, &copy);
    /* There is no work that copies nothing; such a node only orders others. */
    if (r != CUDA_SUCCESS)
        return r;
    *out = hed_work_create_copy(c, &copy, &p->copyParams);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
fill_work(struct hed_layer *self, const CUDA_MEMSET_NODE_PARAMS_v2 *p, struct hed_work **out)
{
    struct hed_context *c;
    struct hed_fill fill;
    CUresult r = hed_node_context(self, p->ctx, -1, &c);

    if (r == CUDA_SUCCESS)
        r = hed_fill_resolve(c, p->dst, p->pitch, p->value, p->elementSize, p->width, p->height,
                             &fill);
    if (r != CUDA_SUCCESS)
        return r;
    *out = hed_work_create(c, HED_WORK_FILL);
    if (!*out)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*out)->fill = fill;
    return CUDA_SUCCESS;
}

static CUresult
host_work(struct hed_layer *self, const CUDA_HOST_NODE_PARAMS_v2 *p, struct hed_work **out)
{
    struct hed_context *c;
    const CUresult r = p->fn ? hed_node_context(self, NULL, -1, &c) : CUDA_ERROR_INVALID_VALUE;

    if (r != CUDA_SUCCESS)
        return r;
    *out = hed_work_create(c, HED_WORK_HOST);
    if (!*out)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*out)->host.fn = p->fn;
    (*out)->host.data = p->userData;
    return CUDA_SUCCESS;
}

static CUresult
event_work(struct hed_layer *self, CUevent handle, bool record, struct hed_work **out)
{
    struct hed_event *e = hed_event_find(hed_driver_of(self), handle);

    if (!e)
        return CUDA_ERROR_INVALID_VALUE;
    *out = hed_work_create(e->ctx, record ? HED_WORK_EVENT_RECORD : HED_WORK_EVENT_WAIT);
    if (!*out) {
        hed_object_put(&e->object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    (*out)->event.event = e; /* with its reference */
    return CUDA_SUCCESS;
}

static CUresult
memop_work(struct hed_layer *self, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p, struct hed_work **out)
{
    struct hed_context *c;
    CUresult r = context_of(self, p->ctx, &c);

    if (r == CUDA_SUCCESS)
        r = p->flags ? CUDA_ERROR_INVALID_VALUE
                     : hed_memops_check(hed_driver_of(self), p->paramArray, p->count);
    if (r != CUDA_SUCCESS)
        return r;
    *out = hed_work_create(c, HED_WORK_MEMOP);
    if (*out) {
        (*out)->memops.ops = malloc((p->count + 1) * sizeof *p->paramArray);
        (*out)->memops.count = p->count;
    }
    if (!*out || !(*out)->memops.ops) {
        if (*out)
            hed_work_free(*out);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy((*out)->memops.ops, p->paramArray, p->count * sizeof *p->paramArray);
    return CUDA_SUCCESS;
}

CUresult
hed_node_work(struct hed_layer *self, const CUgraphNodeParams *p, struct hed_work **out)
{
    *out = NULL;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel_work(self, &p->kernel, out);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return copy_work(self, &p->memcpy, out);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return fill_work(self, &p->memset, out);
    case CU_GRAPH_NODE_TYPE_HOST:
        return host_work(self, &p->host, out);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return event_work(self, p->eventRecord.event, true, out);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return event_work(self, p->eventWait.event, false, out);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return memop_work(self, &p->memOp, out);
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        hed_stats_unsupported(HED_API_CUDA, HED_cuGraphAddNode, "external semaphore nodes");
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* ---- from work to CUDA's structs ------------------------------------------------------------- */

/* Makes pointers to the parameters, as the program gave them. They live as long as the node's
 * work. */
static CUresult
parameter_pointers(struct hed_node *n)
{
    const struct hed_launch *k = &n->work->kernel;
    const struct hed_code_kernel *code = hed_function_kernel(k->function);
    void **p = realloc(n->pointers, (code->param_count + 1) * sizeof(void *));

    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < code->param_count; i++)
        p[i] = (void *)(uintptr_t)(k->params + code->params[i].offset);
    n->pointers = p;
    return CUDA_SUCCESS;
}

static CUresult
kernel_params(struct hed_node *n, CUDA_KERNEL_NODE_PARAMS_v3 *out)
{
    const struct hed_launch *k = &n->work->kernel;
    const CUresult r = parameter_pointers(n);
    const bool is_kernel = hed_handle_kind((uint64_t)(uintptr_t)k->given) == HED_KIND_KERNEL;

    if (r == CUDA_SUCCESS)
        *out = (CUDA_KERNEL_NODE_PARAMS_v3){
            .func = is_kernel ? NULL : k->given,
            .gridDimX = k->grid[0],
            .gridDimY = k->grid[1],
            .gridDimZ = k->grid[2],
            .blockDimX = k->block[0],
            .blockDimY = k->block[1],
            .blockDimZ = k->block[2],
            .sharedMemBytes = k->dynamic_shared,
            .kernelParams = n->pointers,
            .kern = is_kernel ? (CUkernel)k->given : k->beside,
            .ctx = (CUcontext)(uintptr_t)n->work->ctx->object.handle,
        };
    return r;
}

CUresult
hed_node_params(struct hed_node *n, CUgraphNodeParams *out)
{
    const CUcontext ctx =
        n->work ? (CUcontext)(uintptr_t)n->work->ctx->object.handle : (CUcontext)NULL;

    *out = (CUgraphNodeParams){.type = n->type};
    switch (n->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel_params(n, &out->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        out->memcpy.copyCtx = ctx;
        out->memcpy.copyParams = *n->work->copy_given;
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        out->memset = (CUDA_MEMSET_NODE_PARAMS_v2){
            .dst = n->work->fill.to,
            .pitch = n->work->fill.pitch,
            .value = n->work->fill.value,
            .elementSize = n->work->fill.size,
            .width = n->work->fill.width,
            .height = n->work->fill.height,
            .ctx = ctx,
        };
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
        out->host.fn = n->work->host.fn;
        out->host.userData = n->work->host.data;
        break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        out->eventRecord.event = (CUevent)(uintptr_t)n->work->event.event->object.handle;
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        out->memOp.ctx = ctx;
        out->memOp.count = n->work->memops.count;
        out->memOp.paramArray = n->work->memops.ops;
        break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        out->graph.graph = n->child ? (CUgraph)(uintptr_t)n->child->object.handle : NULL;
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        out->conditional.handle = n->condition.handle;
        out->conditional.type = n->condition.type;
        out->conditional.size = n->condition.count;
        out->conditional.phGraph_out = n->branch_handles;
        break;
    default:
        break;
    }
    return CUDA_SUCCESS;
}
