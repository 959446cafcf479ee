/* Memory of devices, managed memory, and pinned memory of the host.
 *
 * Nothing is a size that all calls accept: they say NULL and make no call of the driver. Except for
 * those with a stream, which leave it to the driver, and two before CUDA 11.
 */
#include <stdint.h>

#include "cudart/driver.h"
#include "cudart/front.h"
#include "gen/cudart_calls.h"

#define PITCH_ELEMENT 4 /* bytes; the driver's pitches are the same for all sizes */

cudaError_t
hed_rt_cudaMalloc(const struct hed_rt_driver *cu, void **devPtr, size_t size)
{
    if (!devPtr)
        return cudaErrorInvalidValue;
    if (size == 0) {
        *devPtr = NULL;
        return cudaSuccess;
    }
    /* A driver without memory also writes there. */
    return (cudaError_t)cu->cuMemAlloc_v2((CUdeviceptr *)(void *)devPtr, size);
}

cudaError_t
hed_rt_cudaMallocManaged(const struct hed_rt_driver *cu, void **devPtr, size_t size,
                         unsigned int flags)
{
    CUdeviceptr p;
    CUresult r;

    if (!devPtr)
        return cudaErrorInvalidValue;
    if (size == 0 && hed_rt_version < 11000)
        return cudaErrorInvalidValue;
    if (size == 0) {
        *devPtr = NULL;
        return cudaSuccess;
    }
    r = cu->cuMemAllocManaged(&p, size, flags);
    if (r == CUDA_SUCCESS)
        *devPtr = (void *)(uintptr_t)p;
    return (cudaError_t)r;
}

cudaError_t
hed_rt_cudaMallocPitch(const struct hed_rt_driver *cu, void **devPtr, size_t *pitch, size_t width,
                       size_t height)
{
    CUdeviceptr p = 0;
    size_t bytes = 0;
    CUresult r = CUDA_SUCCESS;

    if (!devPtr || !pitch)
        return cudaErrorInvalidValue;
    if (width && height)
        r = cu->cuMemAllocPitch_v2(&p, &bytes, width, height, PITCH_ELEMENT);
    if (r == CUDA_SUCCESS) {
        *devPtr = (void *)(uintptr_t)p;
        *pitch = bytes;
    }
    return (cudaError_t)r;
}

cudaError_t
hed_rt_cudaMalloc3D(const struct hed_rt_driver *cu, cudaPitchedPtr *pitchedDevPtr,
                    cudaExtent extent)
{
    void *p;
    size_t pitch, rows;
    cudaError_t r;

    if (!pitchedDevPtr)
        return cudaErrorInvalidValue;
    if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
        return cudaErrorMemoryAllocation;
    r = hed_rt_cudaMallocPitch(cu, &p, &pitch, extent.width, rows);
    if (r == cudaSuccess)
        *pitchedDevPtr = (cudaPitchedPtr){p, pitch, extent.width, extent.height};
    return r;
}

cudaError_t
hed_rt_cudaMallocAsync(const struct hed_rt_driver *cu, void **devPtr, size_t size,
                       cudaStream_t hStream)
{
    CUdeviceptr p;
    CUresult r;

    if (!devPtr)
        return cudaErrorInvalidValue;
    r = cu->cuMemAllocAsync(&p, size, hStream);
    if (r == CUDA_SUCCESS)
        *devPtr = (void *)(uintptr_t)p;
    return (cudaError_t)r;
}

cudaError_t
hed_rt_cudaMallocFromPoolAsync(const struct hed_rt_driver *cu, void **ptr, size_t size,
                               cudaMemPool_t memPool, cudaStream_t stream)
{
    CUdeviceptr p;
    CUresult r;

    if (!ptr)
        return cudaErrorInvalidValue;
    r = cu->cuMemAllocFromPoolAsync(&p, size, memPool, stream);
    if (r == CUDA_SUCCESS)
        *ptr = (void *)(uintptr_t)p;
    return (cudaError_t)r;
}

/* cudaFree(NULL) is how programs ask for a context, which the driver does not need for that. Until
 * errors got the driver's numbers, a bad pointer had an error of its own. */
cudaError_t
hed_rt_cudaFree(const struct hed_rt_driver *cu, void *devPtr)
{
    CUresult r = CUDA_SUCCESS;
    CUdevice device;

    if (!devPtr)
        r = cu->cuCtxGetDevice(&device);
    if (r != CUDA_SUCCESS)
        return (cudaError_t)r;
    r = cu->cuMemFree_v2((CUdeviceptr)(uintptr_t)devPtr);
    return r == CUDA_ERROR_INVALID_VALUE && hed_rt_version < 10010 ? cudaErrorInvalidDevicePointer
                                                                   : (cudaError_t)r;
}

/* ---- of the host ----------------------------------------------------------------------------- */

cudaError_t
hed_rt_cudaHostAlloc(const struct hed_rt_driver *cu, void **pHost, size_t size, unsigned int flags)
{
    if (!pHost)
        return cudaErrorInvalidValue;
    if (size == 0) {
        if (hed_rt_version >= 11000)
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
hed_rt_cudaHostGetDevicePointer(const struct hed_rt_driver *cu, void **pDevice, void *pHost,
                                unsigned int flags)
{
    CUdeviceptr p;
    CUresult r;

    if (!pDevice || !pHost)
        return cudaErrorInvalidValue;
    r = cu->cuMemHostGetDevicePointer_v2(&p, pHost, flags);
    if (r == CUDA_SUCCESS)
        *pDevice = (void *)(uintptr_t)p;
    return (cudaError_t)r;
}
