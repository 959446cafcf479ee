/* Graphs: nodes of any type, and what else is not a single driver call.
 *
 *   cudaGraphNodeParams --> check_any_node() --> any_node() --> CUgraphNodeParams
 *
 * Both have the same numbers of types; most types also have the same members. Kernels, copies and
 * whatever needs a context differ.
 */
#include "cudart/graph.h"

#include <stdint.h>
#include <string.h>

#include "cudart/copy.h"
#include "gen/cudart_calls.h"

cudaError_t
hed_rt_current(const struct hed_rt_driver *cu, CUcontext *out)
{
    const CUresult r = cu->cuCtxGetCurrent(out);
    unsigned version;

    if (r != CUDA_SUCCESS)
        return (cudaError_t)r;
    if (!*out)
        return cudaErrorDeviceUninitialized;
    /* The current context may be one that cudaDeviceReset() has ended. */
    return cu->cuCtxGetApiVersion(*out, &version) == CUDA_SUCCESS ? cudaSuccess
                                                                  : cudaErrorContextIsDestroyed;
}

/* ---- descriptions of nodes ------------------------------------------------------------------- */

#define ANY_NODE sizeof(((const cudaGraphNodeParams *)NULL)->reserved1)
#define MEMBER(m) sizeof(((const cudaGraphNodeParams *)NULL)->m)

/* Bytes that a type uses of the union; ANY_NODE + 1: there is no such type. */
static size_t
any_node_size(cudaGraphNodeType type)
{
    switch (type) {
    case cudaGraphNodeTypeKernel:
        return MEMBER(kernel);
    case cudaGraphNodeTypeMemcpy:
        return MEMBER(memcpy);
    case cudaGraphNodeTypeMemset:
        return MEMBER(memset);
    case cudaGraphNodeTypeHost:
        return MEMBER(host);
    case cudaGraphNodeTypeGraph:
        return MEMBER(graph);
    case cudaGraphNodeTypeEmpty:
        return 0;
    case cudaGraphNodeTypeWaitEvent:
        return MEMBER(eventWait);
    case cudaGraphNodeTypeEventRecord:
        return MEMBER(eventRecord);
    case cudaGraphNodeTypeExtSemaphoreSignal:
        return MEMBER(extSemSignal);
    case cudaGraphNodeTypeExtSemaphoreWait:
        return MEMBER(extSemWait);
    case cudaGraphNodeTypeMemAlloc:
        return MEMBER(alloc);
    case cudaGraphNodeTypeMemFree:
        return MEMBER(free);
    case cudaGraphNodeTypeConditional:
        return MEMBER(conditional);
    case cudaGraphNodeTypeCount:
        break;
    }
    return ANY_NODE + 1;
}

/* "Unused bytes must be zero" (driver_types.h, cudaGraphNodeParams). */
static cudaError_t
check_any_node(const cudaGraphNodeParams *p)
{
    const unsigned char *bytes;
    size_t used;

    if (!p)
        return cudaErrorInvalidValue;
    used = any_node_size(p->type);
    if (used > ANY_NODE || p->reserved2)
        return cudaErrorInvalidValue;
    for (size_t i = 0; i < sizeof p->reserved0 / sizeof p->reserved0[0]; i++)
        if (p->reserved0[i])
            return cudaErrorInvalidValue;
    bytes = (const unsigned char *)p->reserved1;
    for (size_t i = used; i < ANY_NODE; i++)
        if (bytes[i])
            return cudaErrorInvalidValue;
    return cudaSuccess;
}

static cudaError_t
any_kernel_node(const struct hed_rt_driver *cu, const cudaKernelNodeParamsV2 *p,
                CUDA_KERNEL_NODE_PARAMS_v3 *out)
{
    const cudaKernelNodeParams old = {
        .func = p->func,
        .gridDim = p->gridDim,
        .blockDim = p->blockDim,
        .sharedMemBytes = p->sharedMemBytes,
        .kernelParams = p->kernelParams,
        .extra = p->extra,
    };
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    const cudaError_t r = hed_rt_kernel_node(cu, &old, &params);

    _Static_assert(sizeof params == sizeof *out, "both versions have the same members");
    if (r == cudaSuccess)
        memcpy(out, &params, sizeof *out);
    return r;
}

static cudaError_t
any_copy_node(const struct hed_rt_driver *cu, const cudaMemcpyNodeParams *p,
              CUDA_MEMCPY_NODE_PARAMS *out)
{
    cudaError_t r;

    if (p->flags || p->reserved[0] || p->reserved[1] || p->reserved[2])
        return cudaErrorInvalidValue;
    r = hed_rt_copy_3d(cu, &p->copyParams, &out->copyParams);
    return r == cudaSuccess ? hed_rt_current(cu, &out->copyCtx) : r;
}

_Static_assert(sizeof((const CUgraphNodeParams *)NULL)->reserved1 == ANY_NODE,
               "the unions have the same size");

static cudaError_t
any_node(const struct hed_rt_driver *cu, const cudaGraphNodeParams *p, CUgraphNodeParams *out)
{
    const cudaError_t r = check_any_node(p);

    if (r != cudaSuccess)
        return r;
    memset(out, 0, sizeof *out);
    out->type = (CUgraphNodeType)p->type;
    switch (p->type) {
    case cudaGraphNodeTypeKernel:
        return any_kernel_node(cu, &p->kernel, &out->kernel);
    case cudaGraphNodeTypeMemcpy:
        return any_copy_node(cu, &p->memcpy, &out->memcpy);
    case cudaGraphNodeTypeMemset:
        memcpy(&out->memset, &p->memset, sizeof p->memset);
        return hed_rt_current(cu, &out->memset.ctx);
    case cudaGraphNodeTypeConditional:
        memcpy(&out->conditional, &p->conditional, sizeof p->conditional);
        return hed_rt_current(cu, &out->conditional.ctx);
    default:
        memcpy(out->reserved1, p->reserved1, sizeof out->reserved1);
        return cudaSuccess;
    }
}

/* What the driver tells in the description of a node that it has made. */
static void
any_node_made(const CUgraphNodeParams *made, cudaGraphNodeParams *p)
{
    if (p->type == cudaGraphNodeTypeMemAlloc)
        p->alloc.dptr = (void *)(uintptr_t)made->alloc.dptr;
    else if (p->type == cudaGraphNodeTypeConditional)
        p->conditional.phGraph_out = made->conditional.phGraph_out;
}

cudaError_t
hed_rt_cudaGraphAddNode_12(const struct hed_rt_driver *cu, cudaGraphNode_t *pGraphNode,
                           cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                           size_t numDependencies, cudaGraphNodeParams *nodeParams)
{
    CUgraphNodeParams p;
    cudaError_t r = any_node(cu, nodeParams, &p);

    if (r == cudaSuccess)
        r = (cudaError_t)cu->cuGraphAddNode(pGraphNode, graph, pDependencies, numDependencies, &p);
    if (r == cudaSuccess)
        any_node_made(&p, nodeParams);
    return r;
}

cudaError_t
hed_rt_cudaGraphAddNode(const struct hed_rt_driver *cu, cudaGraphNode_t *pGraphNode,
                        cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                        const cudaGraphEdgeData *dependencyData, size_t numDependencies,
                        cudaGraphNodeParams *nodeParams)
{
    CUgraphNodeParams p;
    cudaError_t r = any_node(cu, nodeParams, &p);

    if (r == cudaSuccess)
        r = (cudaError_t)cu->cuGraphAddNode_v2(pGraphNode, graph, pDependencies,
                                               (const CUgraphEdgeData *)dependencyData,
                                               numDependencies, &p);
    if (r == cudaSuccess)
        any_node_made(&p, nodeParams);
    return r;
}

cudaError_t
hed_rt_cudaGraphNodeSetParams(const struct hed_rt_driver *cu, cudaGraphNode_t node,
                              cudaGraphNodeParams *nodeParams)
{
    CUgraphNodeParams p;
    const cudaError_t r = any_node(cu, nodeParams, &p);

    return r == cudaSuccess ? (cudaError_t)cu->cuGraphNodeSetParams(node, &p) : r;
}

cudaError_t
hed_rt_cudaGraphExecNodeSetParams(const struct hed_rt_driver *cu, cudaGraphExec_t graphExec,
                                  cudaGraphNode_t node, cudaGraphNodeParams *nodeParams)
{
    CUgraphNodeParams p;
    const cudaError_t r = any_node(cu, nodeParams, &p);

    return r == cudaSuccess ? (cudaError_t)cu->cuGraphExecNodeSetParams(graphExec, node, &p) : r;
}

/* ---- asking a node --------------------------------------------------------------------------- */

static cudaError_t
ask_any_kernel_node(const struct hed_rt_driver *cu, cudaGraphNode_t node,
                    cudaKernelNodeParamsV2 *out)
{
    cudaKernelNodeParams p;
    const cudaError_t r = hed_rt_cudaGraphKernelNodeGetParams(cu, node, &p);

    if (r == cudaSuccess)
        *out = (cudaKernelNodeParamsV2){
            .func = p.func,
            .gridDim = p.gridDim,
            .blockDim = p.blockDim,
            .sharedMemBytes = p.sharedMemBytes,
            .kernelParams = p.kernelParams,
            .extra = p.extra,
        };
    return r;
}

/* The driver call that does it for all types came after CUDA 13.0; those of the single types tell
 * everything but the branches of conditional nodes. The descriptions that are cast begin with the
 * same members. */
static cudaError_t
ask_any_node(const struct hed_rt_driver *cu, cudaGraphNode_t node, cudaGraphNodeParams *out)
{
    switch (out->type) {
    case cudaGraphNodeTypeKernel:
        return ask_any_kernel_node(cu, node, &out->kernel);
    case cudaGraphNodeTypeMemcpy:
        return hed_rt_cudaGraphMemcpyNodeGetParams(cu, node, &out->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
        return (cudaError_t)cu->cuGraphMemsetNodeGetParams(
            node, (CUDA_MEMSET_NODE_PARAMS_v1 *)&out->memset);
    case cudaGraphNodeTypeHost:
        return (cudaError_t)cu->cuGraphHostNodeGetParams(node,
                                                         (CUDA_HOST_NODE_PARAMS_v1 *)&out->host);
    case cudaGraphNodeTypeGraph:
        return (cudaError_t)cu->cuGraphChildGraphNodeGetGraph(node, &out->graph.graph);
    case cudaGraphNodeTypeEmpty:
        return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent:
        return (cudaError_t)cu->cuGraphEventWaitNodeGetEvent(node, &out->eventWait.event);
    case cudaGraphNodeTypeEventRecord:
        return (cudaError_t)cu->cuGraphEventRecordNodeGetEvent(node, &out->eventRecord.event);
    case cudaGraphNodeTypeExtSemaphoreSignal:
        return (cudaError_t)cu->cuGraphExternalSemaphoresSignalNodeGetParams(
            node, (CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1 *)&out->extSemSignal);
    case cudaGraphNodeTypeExtSemaphoreWait:
        return (cudaError_t)cu->cuGraphExternalSemaphoresWaitNodeGetParams(
            node, (CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1 *)&out->extSemWait);
    case cudaGraphNodeTypeMemAlloc:
        return (cudaError_t)cu->cuGraphMemAllocNodeGetParams(
            node, (CUDA_MEM_ALLOC_NODE_PARAMS_v1 *)&out->alloc);
    case cudaGraphNodeTypeMemFree:
        return (cudaError_t)cu->cuGraphMemFreeNodeGetParams(node, (CUdeviceptr *)&out->free.dptr);
    default:
        return cudaErrorNotSupported;
    }
}

cudaError_t
hed_rt_cudaGraphNodeGetParams(const struct hed_rt_driver *cu, cudaGraphNode_t node,
                              cudaGraphNodeParams *nodeParams)
{
    cudaGraphNodeParams p;
    CUgraphNodeType type;
    cudaError_t r;

    if (!nodeParams)
        return cudaErrorInvalidValue;
    r = (cudaError_t)cu->cuGraphNodeGetType(node, &type);
    if (r != cudaSuccess)
        return r;
    memset(&p, 0, sizeof p);
    p.type = (cudaGraphNodeType)type;
    r = ask_any_node(cu, node, &p);
    if (r == cudaSuccess)
        *nodeParams = p;
    return r;
}

/* ---- others ---------------------------------------------------------------------------------- */

cudaError_t
hed_rt_cudaGraphConditionalHandleCreate_v2(const struct hed_rt_driver *cu,
                                           cudaGraphConditionalHandle *pHandle_out,
                                           cudaGraph_t graph, cudaExecutionContext_t ctx,
                                           unsigned int defaultLaunchValue, unsigned int flags)
{
    CUcontext context = (CUcontext)ctx;
    cudaError_t r = cudaSuccess;

    if (!context)
        r = hed_rt_current(cu, &context);
    if (r != cudaSuccess)
        return r;
    return (cudaError_t)cu->cuGraphConditionalHandleCreate(
        (CUgraphConditionalHandle *)pHandle_out, graph, context, defaultLaunchValue, flags);
}

cudaError_t
hed_rt_cudaGraphConditionalHandleCreate(const struct hed_rt_driver *cu,
                                        cudaGraphConditionalHandle *pHandle_out, cudaGraph_t graph,
                                        unsigned int defaultLaunchValue, unsigned int flags)
{
    return hed_rt_cudaGraphConditionalHandleCreate_v2(cu, pHandle_out, graph, NULL,
                                                      defaultLaunchValue, flags);
}

/* The runtime's programs need not ask for the reasons; the driver's must. */
cudaError_t
hed_rt_cudaGraphExecUpdate(const struct hed_rt_driver *cu, cudaGraphExec_t hGraphExec,
                           cudaGraph_t hGraph, cudaGraphExecUpdateResultInfo *resultInfo)
{
    CUgraphExecUpdateResultInfo_v1 unasked;

    return (cudaError_t)cu->cuGraphExecUpdate_v2(
        hGraphExec, hGraph, resultInfo ? (CUgraphExecUpdateResultInfo_v1 *)resultInfo : &unasked);
}

cudaError_t
hed_rt_cudaGraphExecUpdate_11(const struct hed_rt_driver *cu, cudaGraphExec_t hGraphExec,
                              cudaGraph_t hGraph, cudaGraphNode_t *hErrorNode_out,
                              cudaGraphExecUpdateResult *updateResult_out)
{
    CUgraphExecUpdateResult unasked;

    return (cudaError_t)cu->cuGraphExecUpdate(
        hGraphExec, hGraph, hErrorNode_out,
        updateResult_out ? (CUgraphExecUpdateResult *)updateResult_out : &unasked);
}
