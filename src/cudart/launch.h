/* Launches: what the driver's calls take. */
#pragma once

#include <stdbool.h>

#include "gen/cudart_abi.h"
#include "gen/cudart_driver.h"

/* A configuration as the driver has it, with the same attributes. */
static inline CUlaunchConfig
hed_rt_launch_config(const cudaLaunchConfig_t *c)
{
    return (CUlaunchConfig){
        .gridDimX = c->gridDim.x,
        .gridDimY = c->gridDim.y,
        .gridDimZ = c->gridDim.z,
        .blockDimX = c->blockDim.x,
        .blockDimY = c->blockDim.y,
        .blockDimZ = c->blockDim.z,
        .sharedMemBytes = (unsigned)c->dynamicSmemBytes,
        .hStream = (CUstream)c->stream,
        .attrs = (CUlaunchAttribute *)c->attrs,
        .numAttrs = c->numAttrs,
    };
}

/* Whether the current device could run a grid of these sizes. */
bool hed_rt_sizes_are_valid(const struct hed_rt_driver *cu, dim3 grid, dim3 block);

/* The result of a launch that the driver refused. Until CUDA 12, the runtime tells sizes that a
 * device does not have from other bad values, which the driver does not; since CUDA 13 it tells
 * what the driver does. */
cudaError_t hed_rt_launch_result(const struct hed_rt_driver *cu, CUresult r, dim3 grid, dim3 block);
