/* Copies of bytes between memories. */
#include <stdint.h>

#include "cudart/context.h"
#include "cudart/copy.h"
#include "cudart/driver.h"
#include "gen/cudart_calls.h"

/* On the host: the driver has no call that takes two pointers of the host for what they are. */
static CUDA_MEMCPY2D_v2
copy_on_host(void *dst, const void *src, size_t count)
{
    return (CUDA_MEMCPY2D_v2){
        .srcMemoryType = CU_MEMORYTYPE_HOST,
        .srcHost = src,
        .srcPitch = count,
        .dstMemoryType = CU_MEMORYTYPE_HOST,
        .dstHost = dst,
        .dstPitch = count,
        .WidthInBytes = count,
        .Height = 1,
    };
}

cudaError_t
hed_rt_cudaMemcpy(const struct hed_rt_driver *cu, void *dst, const void *src, size_t count,
                  cudaMemcpyKind kind)
{
    const CUdeviceptr to = (CUdeviceptr)(uintptr_t)dst;
    const CUdeviceptr from = (CUdeviceptr)(uintptr_t)src;

    if (count == 0)
        return cudaSuccess;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return (cudaError_t)cu->cuMemcpyHtoD_v2(to, src, count);
    case cudaMemcpyDeviceToHost:
        return (cudaError_t)cu->cuMemcpyDtoH_v2(dst, from, count);
    case cudaMemcpyDeviceToDevice:
        return (cudaError_t)cu->cuMemcpyDtoD_v2(to, from, count);
    case cudaMemcpyHostToHost: {
        const CUDA_MEMCPY2D_v2 c = copy_on_host(dst, src, count);

        return (cudaError_t)cu->cuMemcpy2DUnaligned_v2(&c);
    }
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

    if (count == 0)
        return cudaSuccess;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return (cudaError_t)cu->cuMemcpyHtoDAsync_v2(to, src, count, stream);
    case cudaMemcpyDeviceToHost:
        return (cudaError_t)cu->cuMemcpyDtoHAsync_v2(dst, from, count, stream);
    case cudaMemcpyDeviceToDevice:
        return (cudaError_t)cu->cuMemcpyDtoDAsync_v2(to, from, count, stream);
    case cudaMemcpyHostToHost: {
        const CUDA_MEMCPY2D_v2 c = copy_on_host(dst, src, count);

        return (cudaError_t)cu->cuMemcpy2DAsync_v2(&c, stream);
    }
    case cudaMemcpyDefault:
        return (cudaError_t)cu->cuMemcpyAsync(to, from, count, stream);
    }
    return cudaErrorInvalidMemcpyDirection;
}

/* Drivers do it as a list of one copy. */
cudaError_t
hed_rt_cudaMemcpyWithAttributesAsync(const struct hed_rt_driver *cu, void *dst, const void *src,
                                     size_t size, cudaMemcpyAttributes *attr, cudaStream_t stream)
{
    CUdeviceptr to = (CUdeviceptr)(uintptr_t)dst;
    CUdeviceptr from = (CUdeviceptr)(uintptr_t)src;
    size_t first = 0;

    return (cudaError_t)cu->cuMemcpyBatchAsync_v2(&to, &from, &size, 1,
                                                  (CUmemcpyAttributes_v1 *)attr, &first, 1, stream);
}

/* ---- between devices ------------------------------------------------------------------------- */

cudaError_t
hed_rt_peers(int dst, int src, CUcontext *to, CUcontext *from)
{
    const cudaError_t r = hed_rt_peer(dst, to);

    return r == cudaSuccess ? hed_rt_peer(src, from) : r;
}

cudaError_t
hed_rt_cudaMemcpyPeer(const struct hed_rt_driver *cu, void *dst, int dstDevice, const void *src,
                      int srcDevice, size_t count)
{
    CUcontext to, from;
    const cudaError_t r = count ? hed_rt_peers(dstDevice, srcDevice, &to, &from) : cudaSuccess;

    if (r != cudaSuccess || count == 0)
        return r;
    return (cudaError_t)cu->cuMemcpyPeer((CUdeviceptr)(uintptr_t)dst, to,
                                         (CUdeviceptr)(uintptr_t)src, from, count);
}

cudaError_t
hed_rt_cudaMemcpyPeerAsync(const struct hed_rt_driver *cu, void *dst, int dstDevice,
                           const void *src, int srcDevice, size_t count, cudaStream_t stream)
{
    CUcontext to, from;
    const cudaError_t r = count ? hed_rt_peers(dstDevice, srcDevice, &to, &from) : cudaSuccess;

    if (r != cudaSuccess || count == 0)
        return r;
    return (cudaError_t)cu->cuMemcpyPeerAsync((CUdeviceptr)(uintptr_t)dst, to,
                                              (CUdeviceptr)(uintptr_t)src, from, count, stream);
}
