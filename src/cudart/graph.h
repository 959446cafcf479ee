/* Descriptions of nodes, from the runtime's to the driver's and back. */
#pragma once

#include "gen/cudart_abi.h"
#include "gen/cudart_driver.h"

/* The thread's context, which nodes belong to. cudaErrorDeviceUninitialized and
 * cudaErrorContextIsDestroyed: it has none, and gets one before the call is repeated. */
cudaError_t hed_rt_current(const struct hed_rt_driver *cu, CUcontext *out);

/* graph_kernel.c */
cudaError_t hed_rt_kernel_node(const struct hed_rt_driver *cu, const cudaKernelNodeParams *p,
                               CUDA_KERNEL_NODE_PARAMS_v2 *out);
void hed_rt_kernel_node_back(const CUDA_KERNEL_NODE_PARAMS_v2 *p, cudaKernelNodeParams *out);
