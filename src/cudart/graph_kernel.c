/* Kernel nodes. A program names a kernel by its stub; the driver gets the kernel of the library and
 * the function that it is in the current context. */
#include "cudart/attribute.h"
#include "cudart/front.h"
#include "cudart/graph.h"
#include "cudart/registry.h"
#include "gen/cudart_calls.h"

/* The kernel of a stub. Since CUDA 13, a node whose kernel is not in its image gets another error
 * than a launch. */
static cudaError_t
kernel_of_node(const struct hed_rt_driver *cu, const void *func, CUkernel *out)
{
    const cudaError_t r = hed_rt_kernel(cu, func, out);

    return r == cudaErrorSymbolNotFound && hed_rt_version >= 13000 ? cudaErrorInvalidResourceHandle
                                                                   : r;
}

cudaError_t
hed_rt_kernel_node(const struct hed_rt_driver *cu, const cudaKernelNodeParams *p,
                   CUDA_KERNEL_NODE_PARAMS_v2 *out)
{
    CUkernel kernel;
    CUfunction function;
    CUcontext context;
    cudaError_t r;

    if (!p)
        return cudaErrorInvalidValue;
    r = kernel_of_node(cu, p->func, &kernel);
    if (r == cudaSuccess)
        r = (cudaError_t)cu->cuKernelGetFunction(&function, kernel);
    if (r == cudaSuccess)
        r = hed_rt_current(cu, &context);
    if (r == cudaSuccess)
        *out = (CUDA_KERNEL_NODE_PARAMS_v2){
            .func = function,
            .gridDimX = p->gridDim.x,
            .gridDimY = p->gridDim.y,
            .gridDimZ = p->gridDim.z,
            .blockDimX = p->blockDim.x,
            .blockDimY = p->blockDim.y,
            .blockDimZ = p->blockDim.z,
            .sharedMemBytes = p->sharedMemBytes,
            .kernelParams = p->kernelParams,
            .extra = p->extra,
            .kern = kernel,
            .ctx = context,
        };
    return r;
}

void
hed_rt_kernel_node_back(const CUDA_KERNEL_NODE_PARAMS_v2 *p, cudaKernelNodeParams *out)
{
    *out = (cudaKernelNodeParams){
        /* A function of a module has no stub. The runtime takes its handle instead of one. */
        .func = (void *)(p->kern ? hed_rt_stub(p->kern) : (const void *)p->func),
        .gridDim = {p->gridDimX, p->gridDimY, p->gridDimZ},
        .blockDim = {p->blockDimX, p->blockDimY, p->blockDimZ},
        .sharedMemBytes = p->sharedMemBytes,
        .kernelParams = p->kernelParams,
        .extra = p->extra,
    };
}

cudaError_t
hed_rt_cudaGraphAddKernelNode(const struct hed_rt_driver *cu, cudaGraphNode_t *pGraphNode,
                              cudaGraph_t graph, const cudaGraphNode_t *pDependencies,
                              size_t numDependencies, const cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    const cudaError_t r = hed_rt_kernel_node(cu, pNodeParams, &p);

    if (r != cudaSuccess)
        return r;
    return (cudaError_t)cu->cuGraphAddKernelNode_v2(pGraphNode, graph, pDependencies,
                                                    numDependencies, &p);
}

cudaError_t
hed_rt_cudaGraphKernelNodeGetParams(const struct hed_rt_driver *cu, cudaGraphNode_t node,
                                    cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    CUresult r;

    if (!pNodeParams)
        return cudaErrorInvalidValue;
    r = cu->cuGraphKernelNodeGetParams_v2(node, &p);
    if (r == CUDA_SUCCESS)
        hed_rt_kernel_node_back(&p, pNodeParams);
    return (cudaError_t)r;
}

cudaError_t
hed_rt_cudaGraphKernelNodeSetParams(const struct hed_rt_driver *cu, cudaGraphNode_t node,
                                    const cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    const cudaError_t r = hed_rt_kernel_node(cu, pNodeParams, &p);

    return r == cudaSuccess ? (cudaError_t)cu->cuGraphKernelNodeSetParams_v2(node, &p) : r;
}

cudaError_t
hed_rt_cudaGraphExecKernelNodeSetParams(const struct hed_rt_driver *cu, cudaGraphExec_t hGraphExec,
                                        cudaGraphNode_t node,
                                        const cudaKernelNodeParams *pNodeParams)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    const cudaError_t r = hed_rt_kernel_node(cu, pNodeParams, &p);

    if (r != cudaSuccess)
        return r;
    return (cudaError_t)cu->cuGraphExecKernelNodeSetParams_v2(hGraphExec, node, &p);
}

/* ---- attributes ------------------------------------------------------------------------------ */

cudaError_t
hed_rt_cudaGraphKernelNodeGetAttribute(const struct hed_rt_driver *cu, cudaGraphNode_t hNode,
                                       cudaLaunchAttributeID attr,
                                       cudaLaunchAttributeValue *value_out)
{
    CUlaunchAttributeValue v;
    const CUresult r = cu->cuGraphKernelNodeGetAttribute(hNode, (CUlaunchAttributeID)attr, &v);

    return r == CUDA_SUCCESS ? hed_rt_attribute_out(HED_RT_OF_NODE, attr, &v, value_out)
                             : (cudaError_t)r;
}

cudaError_t
hed_rt_cudaGraphKernelNodeSetAttribute(const struct hed_rt_driver *cu, cudaGraphNode_t hNode,
                                       cudaLaunchAttributeID attr,
                                       const cudaLaunchAttributeValue *value)
{
    CUlaunchAttributeValue v;
    const cudaError_t r = hed_rt_attribute_in(HED_RT_OF_NODE, attr, value, &v);

    if (r != cudaSuccess)
        return r;
    return (cudaError_t)cu->cuGraphKernelNodeSetAttribute(hNode, (CUlaunchAttributeID)attr, &v);
}
