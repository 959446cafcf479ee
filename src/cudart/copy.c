/* Copies between memories. */
#include <stdint.h>

#include "cudart/driver.h"
#include "gen/cudart_calls.h"

cudaError_t
hed_rt_cudaMemcpy(const struct hed_rt_driver *cu, void *dst, const void *src, size_t count,
                  cudaMemcpyKind kind)
{
    const CUdeviceptr to = (CUdeviceptr)(uintptr_t)dst;
    const CUdeviceptr from = (CUdeviceptr)(uintptr_t)src;

    switch (kind) {
    case cudaMemcpyHostToDevice:
        return (cudaError_t)cu->cuMemcpyHtoD_v2(to, src, count);
    case cudaMemcpyDeviceToHost:
        return (cudaError_t)cu->cuMemcpyDtoH_v2(dst, from, count);
    case cudaMemcpyDeviceToDevice:
        return (cudaError_t)cu->cuMemcpyDtoD_v2(to, from, count);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return (cudaError_t)cu->cuMemcpy(to, from, count);
    }
    return cudaErrorInvalidMemcpyDirection;
}

cudaError_t
hed_rt_cudaMemcpyAsync(const struct hed_rt_driver *cu, void *dst, const void *src, size_t count,
                       cudaMemcpyKind kind, cudaStream_t stream)
{
    const CUdeviceptr to = (CUdeviceptr)(uintptr_t)dst;
    const CUdeviceptr from = (CUdeviceptr)(uintptr_t)src;

    switch (kind) {
    case cudaMemcpyHostToDevice:
        return (cudaError_t)cu->cuMemcpyHtoDAsync_v2(to, src, count, stream);
    case cudaMemcpyDeviceToHost:
        return (cudaError_t)cu->cuMemcpyDtoHAsync_v2(dst, from, count, stream);
    case cudaMemcpyDeviceToDevice:
        return (cudaError_t)cu->cuMemcpyDtoDAsync_v2(to, from, count, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return (cudaError_t)cu->cuMemcpyAsync(to, from, count, stream);
    }
    return cudaErrorInvalidMemcpyDirection;
}
