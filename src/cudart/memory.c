/* Memory of devices and pinned memory of the host. */
#include <stdint.h>

#include "cudart/driver.h"
#include "gen/cudart_calls.h"

cudaError_t
hed_rt_cudaMalloc(const struct hed_rt_driver *cu, void **devPtr, size_t size)
{
    CUdeviceptr p;
    CUresult r;

    if (!devPtr)
        return cudaErrorInvalidValue;
    if (size == 0) {
        *devPtr = NULL;
        return cudaSuccess;
    }
    r = cu->cuMemAlloc_v2(&p, size);
    if (r == CUDA_SUCCESS)
        *devPtr = (void *)(uintptr_t)p;
    return (cudaError_t)r;
}

/* cudaFree(NULL) is how programs ask for a context. */
cudaError_t
hed_rt_cudaFree(const struct hed_rt_driver *cu, void *devPtr)
{
    CUdevice device;

    if (!devPtr)
        return (cudaError_t)cu->cuCtxGetDevice(&device);
    return (cudaError_t)cu->cuMemFree_v2((CUdeviceptr)(uintptr_t)devPtr);
}

cudaError_t
hed_rt_cudaHostAlloc(const struct hed_rt_driver *cu, void **pHost, size_t size, unsigned int flags)
{
    if (!pHost)
        return cudaErrorInvalidValue;
    if (size == 0) {
        *pHost = NULL;
        return cudaSuccess;
    }
    return (cudaError_t)cu->cuMemHostAlloc(pHost, size, flags);
}

cudaError_t
hed_rt_cudaMallocHost(const struct hed_rt_driver *cu, void **ptr, size_t size)
{
    return hed_rt_cudaHostAlloc(cu, ptr, size, 0);
}

cudaError_t
hed_rt_cudaFreeHost(const struct hed_rt_driver *cu, void *ptr)
{
    return ptr ? (cudaError_t)cu->cuMemFreeHost(ptr) : cudaSuccess;
}
