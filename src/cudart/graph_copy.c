/* Nodes that copy and fill memory. */
#include <stdint.h>

#include "cudart/copy.h"
#include "cudart/graph.h"
#include "cudart/registry.h"
#include "gen/cudart_calls.h"

/* ---- descriptions ---------------------------------------------------------------------------- */

static cudaError_t
copy_of_box(const struct hed_rt_driver *cu, const cudaMemcpy3DParms *p, CUDA_MEMCPY3D_v2 *out)
{
    return p ? hed_rt_copy_3d(cu, p, out) : cudaErrorInvalidValue;
}

/* The address in a variable that `count` bytes from `offset` on lie at. */
static cudaError_t
symbol_range(const struct hed_rt_driver *cu, const void *symbol, size_t count, size_t offset,
             void **out)
{
    CUdeviceptr at;
    size_t size;
    const cudaError_t r = hed_rt_variable(cu, symbol, &at, &size);

    if (r != cudaSuccess)
        return r;
    if (offset > size || count > size - offset)
        return cudaErrorInvalidValue;
    *out = (void *)(uintptr_t)(at + offset);
    return cudaSuccess;
}

static cudaError_t
copy_to_symbol(const struct hed_rt_driver *cu, const void *symbol, const void *src, size_t count,
               size_t offset, cudaMemcpyKind kind, CUDA_MEMCPY3D_v2 *out)
{
    void *dst;
    const cudaError_t r = symbol_range(cu, symbol, count, offset, &dst);

    if (r != cudaSuccess)
        return r;
    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice &&
        kind != cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    return hed_rt_copy_1d(dst, src, count, kind, out);
}

static cudaError_t
copy_from_symbol(const struct hed_rt_driver *cu, void *dst, const void *symbol, size_t count,
                 size_t offset, cudaMemcpyKind kind, CUDA_MEMCPY3D_v2 *out)
{
    void *src;
    const cudaError_t r = symbol_range(cu, symbol, count, offset, &src);

    if (r != cudaSuccess)
        return r;
    if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice &&
        kind != cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    return hed_rt_copy_1d(dst, src, count, kind, out);
}

/* ---- what is done with them ------------------------------------------------------------------ */

/* `r` is that of the description, which is used only if it is a success. */
static cudaError_t
add_copy_node(const struct hed_rt_driver *cu, cudaError_t r, cudaGraphNode_t *node,
              cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
              const CUDA_MEMCPY3D_v2 *copy)
{
    CUcontext context;

    if (r == cudaSuccess)
        r = hed_rt_current(cu, &context);
    if (r != cudaSuccess)
        return r;
    return (cudaError_t)cu->cuGraphAddMemcpyNode(node, graph, dependencies, count, copy, context);
}

static cudaError_t
set_copy_node(const struct hed_rt_driver *cu, cudaError_t r, cudaGraphNode_t node,
              const CUDA_MEMCPY3D_v2 *copy)
{
    return r == cudaSuccess ? (cudaError_t)cu->cuGraphMemcpyNodeSetParams(node, copy) : r;
}

static cudaError_t
set_exec_copy_node(const struct hed_rt_driver *cu, cudaError_t r, cudaGraphExec_t exec,
                   cudaGraphNode_t node, const CUDA_MEMCPY3D_v2 *copy)
{
    CUcontext context;

    if (r == cudaSuccess)
        r = hed_rt_current(cu, &context);
    if (r != cudaSuccess)
        return r;
    return (cudaError_t)cu->cuGraphExecMemcpyNodeSetParams(exec, node, copy, context);
}

/* ---- in three dimensions --------------------------------------------------------------------- */

cudaError_t
hed_rt_cudaGraphAddMemcpyNode(const struct hed_rt_driver *cu, cudaGraphNode_t *pGraphNode,
                              cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                              size_t numDependencies, const cudaMemcpy3DParms *pCopyParams)
{
    CUDA_MEMCPY3D_v2 copy;
    const cudaError_t r = copy_of_box(cu, pCopyParams, &copy);

    return add_copy_node(cu, r, pGraphNode, graph, pDependencies, numDependencies, &copy);
}

cudaError_t
hed_rt_cudaGraphMemcpyNodeGetParams(const struct hed_rt_driver *cu, cudaGraphNode_t node,
                                    cudaMemcpy3DParms *pNodeParams)
{
    CUDA_MEMCPY3D_v2 copy;
    CUresult r;

    if (!pNodeParams)
        return cudaErrorInvalidValue;
    r = cu->cuGraphMemcpyNodeGetParams(node, &copy);
    return r == CUDA_SUCCESS ? hed_rt_copy_3d_back(cu, &copy, pNodeParams) : (cudaError_t)r;
}

cudaError_t
hed_rt_cudaGraphMemcpyNodeSetParams(const struct hed_rt_driver *cu, cudaGraphNode_t node,
                                    const cudaMemcpy3DParms *pNodeParams)
{
    CUDA_MEMCPY3D_v2 copy;

    return set_copy_node(cu, copy_of_box(cu, pNodeParams, &copy), node, &copy);
}

cudaError_t
hed_rt_cudaGraphExecMemcpyNodeSetParams(const struct hed_rt_driver *cu, cudaGraphExec_t hGraphExec,
                                        cudaGraphNode_t node, const cudaMemcpy3DParms *pNodeParams)
{
    CUDA_MEMCPY3D_v2 copy;
    const cudaError_t r = copy_of_box(cu, pNodeParams, &copy);

    return set_exec_copy_node(cu, r, hGraphExec, node, &copy);
}

/* ---- in one ---------------------------------------------------------------------------------- */

cudaError_t
hed_rt_cudaGraphAddMemcpyNode1D(const struct hed_rt_driver *cu, cudaGraphNode_t *pGraphNode,
                                cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                                size_t numDependencies, void *dst, const void *src, size_t count,
                                cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D_v2 copy;
    const cudaError_t r = hed_rt_copy_1d(dst, src, count, kind, &copy);

    return add_copy_node(cu, r, pGraphNode, graph, pDependencies, numDependencies, &copy);
}

cudaError_t
hed_rt_cudaGraphMemcpyNodeSetParams1D(const struct hed_rt_driver *cu, cudaGraphNode_t node,
                                      void *dst, const void *src, size_t count, cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D_v2 copy;

    return set_copy_node(cu, hed_rt_copy_1d(dst, src, count, kind, &copy), node, &copy);
}

cudaError_t
hed_rt_cudaGraphExecMemcpyNodeSetParams1D(const struct hed_rt_driver *cu,
                                          cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                          void *dst, const void *src, size_t count,
                                          cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D_v2 copy;
    const cudaError_t r = hed_rt_copy_1d(dst, src, count, kind, &copy);

    return set_exec_copy_node(cu, r, hGraphExec, node, &copy);
}

/* ---- to and from variables ------------------------------------------------------------------- */

cudaError_t
hed_rt_cudaGraphAddMemcpyNodeToSymbol(const struct hed_rt_driver *cu, cudaGraphNode_t *pGraphNode,
                                      cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                                      size_t numDependencies, const void *symbol, const void *src,
                                      size_t count, size_t offset, cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D_v2 copy;
    const cudaError_t r = copy_to_symbol(cu, symbol, src, count, offset, kind, &copy);

    return add_copy_node(cu, r, pGraphNode, graph, pDependencies, numDependencies, &copy);
}

cudaError_t
hed_rt_cudaGraphAddMemcpyNodeFromSymbol(const struct hed_rt_driver *cu, cudaGraphNode_t *pGraphNode,
                                        cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                                        size_t numDependencies, void *dst, const void *symbol,
                                        size_t count, size_t offset, cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D_v2 copy;
    const cudaError_t r = copy_from_symbol(cu, dst, symbol, count, offset, kind, &copy);

    return add_copy_node(cu, r, pGraphNode, graph, pDependencies, numDependencies, &copy);
}

cudaError_t
hed_rt_cudaGraphMemcpyNodeSetParamsToSymbol(const struct hed_rt_driver *cu, cudaGraphNode_t node,
                                            const void *symbol, const void *src, size_t count,
                                            size_t offset, cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D_v2 copy;
    const cudaError_t r = copy_to_symbol(cu, symbol, src, count, offset, kind, &copy);

    return set_copy_node(cu, r, node, &copy);
}

cudaError_t
hed_rt_cudaGraphMemcpyNodeSetParamsFromSymbol(const struct hed_rt_driver *cu, cudaGraphNode_t node,
                                              void *dst, const void *symbol, size_t count,
                                              size_t offset, cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D_v2 copy;
    const cudaError_t r = copy_from_symbol(cu, dst, symbol, count, offset, kind, &copy);

    return set_copy_node(cu, r, node, &copy);
}

cudaError_t
hed_rt_cudaGraphExecMemcpyNodeSetParamsToSymbol(const struct hed_rt_driver *cu,
                                                cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                const void *symbol, const void *src, size_t count,
                                                size_t offset, cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D_v2 copy;
    const cudaError_t r = copy_to_symbol(cu, symbol, src, count, offset, kind, &copy);

    return set_exec_copy_node(cu, r, hGraphExec, node, &copy);
}

cudaError_t
hed_rt_cudaGraphExecMemcpyNodeSetParamsFromSymbol(const struct hed_rt_driver *cu,
                                                  cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                  void *dst, const void *symbol, size_t count,
                                                  size_t offset, cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D_v2 copy;
    const cudaError_t r = copy_from_symbol(cu, dst, symbol, count, offset, kind, &copy);

    return set_exec_copy_node(cu, r, hGraphExec, node, &copy);
}

/* ---- fills ----------------------------------------------------------------------------------- */

_Static_assert(sizeof(cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS_v1),
               "the runtime's description of a fill has the driver's layout");

cudaError_t
hed_rt_cudaGraphAddMemsetNode(const struct hed_rt_driver *cu, cudaGraphNode_t *pGraphNode,
                              cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                              size_t numDependencies, const cudaMemsetParams *pMemsetParams)
{
    CUcontext context;
    const cudaError_t r = hed_rt_current(cu, &context);

    if (r != cudaSuccess)
        return r;
    return (cudaError_t)cu->cuGraphAddMemsetNode(pGraphNode, graph, pDependencies, numDependencies,
                                                 (const CUDA_MEMSET_NODE_PARAMS_v1 *)pMemsetParams,
                                                 context);
}

cudaError_t
hed_rt_cudaGraphExecMemsetNodeSetParams(const struct hed_rt_driver *cu, cudaGraphExec_t hGraphExec,
                                        cudaGraphNode_t node, const cudaMemsetParams *pNodeParams)
{
    CUcontext context;
    const cudaError_t r = hed_rt_current(cu, &context);

    if (r != cudaSuccess)
        return r;
    return (cudaError_t)cu->cuGraphExecMemsetNodeSetParams(
        hGraphExec, node, (const CUDA_MEMSET_NODE_PARAMS_v1 *)pNodeParams, context);
}
