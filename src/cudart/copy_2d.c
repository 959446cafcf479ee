/* Copies of rows, between pointers and arrays. Widths and places in arrays are in bytes here.
 *
 * Checks are made in this order: nothing to copy, pitches, kind, array.
 */
#include <stdint.h>

#include "cudart/copy.h"
#include "cudart/driver.h"
#include "cudart/front.h"
#include "gen/cudart_calls.h"

/* One row needs no pitch. */
static bool
pitch_is_small(size_t pitch, size_t width, size_t height)
{
    return height > 1 && pitch < width;
}

static cudaError_t
describe_rows(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
              cudaMemcpyKind kind, CUDA_MEMCPY2D_v2 *out)
{
    CUmemorytype from, to;
    cudaError_t r;

    if (pitch_is_small(dpitch, width, height) || pitch_is_small(spitch, width, height))
        return cudaErrorInvalidPitchValue;
    r = hed_rt_copy_types(kind, &from, &to);
    if (r != cudaSuccess)
        return hed_rt_version < 11000 ? cudaErrorInvalidValue : r;
    *out = (CUDA_MEMCPY2D_v2){
        .srcMemoryType = from,
        .srcPitch = spitch,
        .dstMemoryType = to,
        .dstPitch = dpitch,
        .WidthInBytes = width,
        .Height = height,
    };
    if (from == CU_MEMORYTYPE_HOST)
        out->srcHost = src;
    else
        out->srcDevice = (CUdeviceptr)(uintptr_t)src;
    if (to == CU_MEMORYTYPE_HOST)
        out->dstHost = dst;
    else
        out->dstDevice = (CUdeviceptr)(uintptr_t)dst;
    return cudaSuccess;
}

cudaError_t
hed_rt_cudaMemcpy2D(const struct hed_rt_driver *cu, void *dst, size_t dpitch, const void *src,
                    size_t spitch, size_t width, size_t height, cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D_v2 c;
    cudaError_t r;

    if (width == 0 || height == 0)
        return cudaSuccess;
    r = describe_rows(dst, dpitch, src, spitch, width, height, kind, &c);
    return r == cudaSuccess ? (cudaError_t)cu->cuMemcpy2DUnaligned_v2(&c) : r;
}

cudaError_t
hed_rt_cudaMemcpy2DAsync(const struct hed_rt_driver *cu, void *dst, size_t dpitch, const void *src,
                         size_t spitch, size_t width, size_t height, cudaMemcpyKind kind,
                         cudaStream_t stream)
{
    CUDA_MEMCPY2D_v2 c;
    cudaError_t r;

    if (width == 0 || height == 0)
        return cudaSuccess;
    r = describe_rows(dst, dpitch, src, spitch, width, height, kind, &c);
    return r == cudaSuccess ? (cudaError_t)cu->cuMemcpy2DAsync_v2(&c, stream) : r;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* The driver tells a handle that is none from a copy that does not fit only when it is asked. */
static cudaError_t
check_array(const struct hed_rt_driver *cu, cudaArray_const_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 d;
    struct hed_rt_element element;
    const CUresult r = cu->cuArray3DGetDescriptor_v2(&d, (CUarray)(uintptr_t)array);

    return r == CUDA_SUCCESS ? hed_rt_element(&d, &element) : (cudaError_t)r;
}

static cudaError_t
copy_rows_to_array(const struct hed_rt_driver *cu, cudaArray_t dst, size_t x, size_t y,
                   const void *src, size_t spitch, size_t width, size_t height, cudaMemcpyKind kind,
                   const cudaStream_t *stream)
{
    CUDA_MEMCPY3D_v2 c = {
        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
        .dstArray = (CUarray)dst,
        .dstXInBytes = x,
        .dstY = y,
        .WidthInBytes = width,
        .Height = height,
        .Depth = 1,
    };
    CUmemorytype from, to;
    cudaError_t r;

    if (width == 0 || height == 0)
        return cudaSuccess;
    if (pitch_is_small(spitch, width, height))
        return cudaErrorInvalidPitchValue;
    r = hed_rt_copy_types(kind, &from, &to);
    if (r != cudaSuccess)
        return r;
    if (to == CU_MEMORYTYPE_HOST)
        return cudaErrorInvalidMemcpyDirection;
    hed_rt_copy_from(&c, from, src, spitch);
    r = check_array(cu, dst);
    return r == cudaSuccess ? hed_rt_copy(cu, &c, stream) : r;
}

cudaError_t
hed_rt_cudaMemcpy2DToArray(const struct hed_rt_driver *cu, cudaArray_t dst, size_t wOffset,
                           size_t hOffset, const void *src, size_t spitch, size_t width,
                           size_t height, cudaMemcpyKind kind)
{
    return copy_rows_to_array(cu, dst, wOffset, hOffset, src, spitch, width, height, kind, NULL);
}

cudaError_t
hed_rt_cudaMemcpy2DToArrayAsync(const struct hed_rt_driver *cu, cudaArray_t dst, size_t wOffset,
                                size_t hOffset, const void *src, size_t spitch, size_t width,
                                size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_rows_to_array(cu, dst, wOffset, hOffset, src, spitch, width, height, kind, &stream);
}

static cudaError_t
copy_rows_from_array(const struct hed_rt_driver *cu, void *dst, size_t dpitch,
                     cudaArray_const_t src, size_t x, size_t y, size_t width, size_t height,
                     cudaMemcpyKind kind, const cudaStream_t *stream)
{
    CUDA_MEMCPY3D_v2 c = {
        .srcMemoryType = CU_MEMORYTYPE_ARRAY,
        .srcArray = (CUarray)(uintptr_t)src,
        .srcXInBytes = x,
        .srcY = y,
        .WidthInBytes = width,
        .Height = height,
        .Depth = 1,
    };
    CUmemorytype from, to;
    cudaError_t r;

    if (width == 0 || height == 0)
        return cudaSuccess;
    if (pitch_is_small(dpitch, width, height))
        return cudaErrorInvalidPitchValue;
    r = hed_rt_copy_types(kind, &from, &to);
    if (r != cudaSuccess)
        return r;
    if (from == CU_MEMORYTYPE_HOST)
        return cudaErrorInvalidMemcpyDirection;
    hed_rt_copy_to(&c, to, dst, dpitch);
    r = check_array(cu, src);
    return r == cudaSuccess ? hed_rt_copy(cu, &c, stream) : r;
}

cudaError_t
hed_rt_cudaMemcpy2DFromArray(const struct hed_rt_driver *cu, void *dst, size_t dpitch,
                             cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t width,
                             size_t height, cudaMemcpyKind kind)
{
    return copy_rows_from_array(cu, dst, dpitch, src, wOffset, hOffset, width, height, kind, NULL);
}

cudaError_t
hed_rt_cudaMemcpy2DFromArrayAsync(const struct hed_rt_driver *cu, void *dst, size_t dpitch,
                                  cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                  size_t width, size_t height, cudaMemcpyKind kind,
                                  cudaStream_t stream)
{
    return copy_rows_from_array(cu, dst, dpitch, src, wOffset, hOffset, width, height, kind,
                                &stream);
}

cudaError_t
hed_rt_cudaMemcpy2DArrayToArray(const struct hed_rt_driver *cu, cudaArray_t dst, size_t wOffsetDst,
                                size_t hOffsetDst, cudaArray_const_t src, size_t wOffsetSrc,
                                size_t hOffsetSrc, size_t width, size_t height, cudaMemcpyKind kind)
{
    const CUDA_MEMCPY3D_v2 c = {
        .srcMemoryType = CU_MEMORYTYPE_ARRAY,
        .srcArray = (CUarray)(uintptr_t)src,
        .srcXInBytes = wOffsetSrc,
        .srcY = hOffsetSrc,
        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
        .dstArray = (CUarray)dst,
        .dstXInBytes = wOffsetDst,
        .dstY = hOffsetDst,
        .WidthInBytes = width,
        .Height = height,
        .Depth = 1,
    };
    cudaError_t r;

    if (width == 0 || height == 0)
        return cudaSuccess;
    if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    r = check_array(cu, src);
    return r == cudaSuccess ? hed_rt_copy(cu, &c, NULL) : r;
}
