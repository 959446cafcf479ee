/* Filling memory with a byte. */
#include <stdint.h>

#include "cudart/driver.h"
#include "cudart/front.h"
#include "gen/cudart_calls.h"

cudaError_t
hed_rt_cudaMemset(const struct hed_rt_driver *cu, void *devPtr, int value, size_t count)
{
    if (count == 0)
        return cudaSuccess;
    return (cudaError_t)cu->cuMemsetD8_v2((CUdeviceptr)(uintptr_t)devPtr, (unsigned char)value,
                                          count);
}

cudaError_t
hed_rt_cudaMemsetAsync(const struct hed_rt_driver *cu, void *devPtr, int value, size_t count,
                       cudaStream_t stream)
{
    if (count == 0)
        return cudaSuccess;
    return (cudaError_t)cu->cuMemsetD8Async((CUdeviceptr)(uintptr_t)devPtr, (unsigned char)value,
                                            count, stream);
}

cudaError_t
hed_rt_cudaMemset2D(const struct hed_rt_driver *cu, void *devPtr, size_t pitch, int value,
                    size_t width, size_t height)
{
    if (width == 0 || height == 0)
        return cudaSuccess;
    return (cudaError_t)cu->cuMemsetD2D8_v2((CUdeviceptr)(uintptr_t)devPtr, pitch,
                                            (unsigned char)value, width, height);
}

cudaError_t
hed_rt_cudaMemset2DAsync(const struct hed_rt_driver *cu, void *devPtr, size_t pitch, int value,
                         size_t width, size_t height, cudaStream_t stream)
{
    if (width == 0 || height == 0)
        return cudaSuccess;
    return (cudaError_t)cu->cuMemsetD2D8Async((CUdeviceptr)(uintptr_t)devPtr, pitch,
                                              (unsigned char)value, width, height, stream);
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* Some rows; stream NULL: when the call returns they are filled, as far as cudaMemset2D() does. */
static cudaError_t
fill_rows(const struct hed_rt_driver *cu, void *at, size_t pitch, int value, size_t width,
          size_t height, const cudaStream_t *stream)
{
    if (stream)
        return hed_rt_cudaMemset2DAsync(cu, at, pitch, value, width, height, *stream);
    return hed_rt_cudaMemset2D(cu, at, pitch, value, width, height);
}

static cudaError_t
fill_box(const struct hed_rt_driver *cu, const cudaPitchedPtr *p, int value,
         const cudaExtent *extent, const cudaStream_t *stream)
{
    const size_t layer = p->pitch * p->ysize; /* bytes */
    cudaError_t r = cudaSuccess;

    if (extent->width == 0 || extent->height == 0 || extent->depth == 0)
        return cudaSuccess;
    /* Before CUDA 11, the height of a layer only mattered if there was another one behind it. */
    if ((extent->height > p->ysize && (extent->depth > 1 || hed_rt_version >= 11000)) ||
        ((extent->height > 1 || extent->depth > 1) && extent->width > p->pitch))
        return cudaErrorInvalidValue;
    /* Without gaps it is one run of bytes; without gaps between the layers, one sheet. */
    if (extent->height == p->ysize && extent->width == p->pitch)
        return stream ? hed_rt_cudaMemsetAsync(cu, p->ptr, value, layer * extent->depth, *stream)
                      : hed_rt_cudaMemset(cu, p->ptr, value, layer * extent->depth);
    if (extent->height == p->ysize)
        return fill_rows(cu, p->ptr, p->pitch, value, extent->width, extent->height * extent->depth,
                         stream);
    for (size_t z = 0; z < extent->depth && r == cudaSuccess; z++)
        r = fill_rows(cu, (char *)p->ptr + z * layer, p->pitch, value, extent->width,
                      extent->height, stream);
    return r;
}

cudaError_t
hed_rt_cudaMemset3D(const struct hed_rt_driver *cu, cudaPitchedPtr pitchedDevPtr, int value,
                    cudaExtent extent)
{
    return fill_box(cu, &pitchedDevPtr, value, &extent, NULL);
}

cudaError_t
hed_rt_cudaMemset3DAsync(const struct hed_rt_driver *cu, cudaPitchedPtr pitchedDevPtr, int value,
                         cudaExtent extent, cudaStream_t stream)
{
    return fill_box(cu, &pitchedDevPtr, value, &extent, &stream);
}
