/* The reference of bench/call_cost.c: functions in a shared library that do what the null backend
 * does, and nothing else. Built as libheddle-direct.so. */
#include "gen/cuda_front.h"

#define EXPORT __attribute__((visibility("default")))

CUresult direct_cuCtxGetCurrent(CUcontext *pctx);
CUresult direct_cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, CUstream s, void **params,
                               void **extra);
CUresult direct_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream s);

EXPORT CUresult
direct_cuCtxGetCurrent(CUcontext *pctx)
{
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = NULL;
    return CUDA_SUCCESS;
}

EXPORT CUresult
direct_cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, CUstream s, void **params, void **extra)
{
    return CUDA_SUCCESS;
}

EXPORT CUresult
direct_cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream s)
{
    return CUDA_SUCCESS;
}
