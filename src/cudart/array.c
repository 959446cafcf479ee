/* Arrays and mipmapped arrays, which the driver lays out as it likes. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cudart/channel.h"
#include "gen/cudart_calls.h"

/* The checks that NVIDIA's runtime makes before it looks at the channels. */
static bool
is_extent(const cudaExtent *e, unsigned flags)
{
    const bool layered = flags & CUDA_ARRAY3D_LAYERED;

    if (e->width == 0 || (layered && e->depth == 0))
        return false;
    if (flags & CUDA_ARRAY3D_CUBEMAP)
        return e->width == e->height && (layered ? e->depth % 6 == 0 : e->depth == 6);
    /* Without a height there is a depth only if it counts layers. */
    return e->height > 0 || e->depth == 0 || layered;
}

/* An array of this form, as the driver describes it. */
static cudaError_t
array_form(const cudaChannelFormatDesc *desc, const cudaExtent *extent, unsigned flags,
           CUDA_ARRAY3D_DESCRIPTOR_v2 *out)
{
    struct hed_rt_texel texel;
    cudaError_t r;

    if (!is_extent(extent, flags))
        return cudaErrorInvalidValue;
    r = hed_rt_texel(desc, &texel);
    if (r != cudaSuccess)
        return r;
    *out = (CUDA_ARRAY3D_DESCRIPTOR_v2){
        .Width = extent->width,
        .Height = extent->height,
        .Depth = extent->depth,
        .Format = texel.format,
        .NumChannels = texel.channels,
        .Flags = flags,
    };
    return cudaSuccess;
}

cudaError_t
hed_rt_cudaMalloc3DArray(const struct hed_rt_driver *cu, cudaArray_t *array,
                         const cudaChannelFormatDesc *desc, cudaExtent extent, unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 d;
    cudaError_t r;

    if (!array || !desc)
        return cudaErrorInvalidValue;
    *array = NULL;
    r = array_form(desc, &extent, flags, &d);
    return r == cudaSuccess ? (cudaError_t)cu->cuArray3DCreate_v2((CUarray *)array, &d) : r;
}

cudaError_t
hed_rt_cudaMallocArray(const struct hed_rt_driver *cu, cudaArray_t *array,
                       const cudaChannelFormatDesc *desc, size_t width, size_t height,
                       unsigned int flags)
{
    return hed_rt_cudaMalloc3DArray(cu, array, desc, (cudaExtent){width, height, 0}, flags);
}

cudaError_t
hed_rt_cudaMallocMipmappedArray(const struct hed_rt_driver *cu,
                                cudaMipmappedArray_t *mipmappedArray,
                                const cudaChannelFormatDesc *desc, cudaExtent extent,
                                unsigned int numLevels, unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 d;
    cudaError_t r;

    if (!mipmappedArray || !desc)
        return cudaErrorInvalidValue;
    *mipmappedArray = NULL;
    r = array_form(desc, &extent, flags, &d);
    return r == cudaSuccess ? (cudaError_t)cu->cuMipmappedArrayCreate(
                                  (CUmipmappedArray *)mipmappedArray, &d, numLevels)
                            : r;
}

cudaError_t
hed_rt_cudaFreeArray(const struct hed_rt_driver *cu, cudaArray_t array)
{
    return array ? (cudaError_t)cu->cuArrayDestroy((CUarray)array) : cudaSuccess;
}

cudaError_t
hed_rt_cudaFreeMipmappedArray(const struct hed_rt_driver *cu, cudaMipmappedArray_t mipmappedArray)
{
    return mipmappedArray
               ? (cudaError_t)cu->cuMipmappedArrayDestroy((CUmipmappedArray)mipmappedArray)
               : cudaSuccess;
}

/* NVIDIA's runtime writes zeros when the handle is bad. */
cudaError_t
hed_rt_cudaArrayGetInfo(const struct hed_rt_driver *cu, cudaChannelFormatDesc *desc,
                        cudaExtent *extent, unsigned int *flags, cudaArray_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 d = {.Width = 0};
    const CUresult r = cu->cuArray3DGetDescriptor_v2(&d, (CUarray)array);

    if (r != CUDA_SUCCESS)
        d = (CUDA_ARRAY3D_DESCRIPTOR_v2){.Width = 0};
    if (desc)
        *desc = hed_rt_channels(d.Format, d.NumChannels);
    if (extent)
        *extent = (cudaExtent){d.Width, d.Height, d.Depth};
    if (flags)
        *flags = d.Flags;
    return (cudaError_t)r;
}

cudaError_t
hed_rt_cudaGetChannelDesc(const struct hed_rt_driver *cu, cudaChannelFormatDesc *desc,
                          cudaArray_const_t array)
{
    cudaChannelFormatDesc d;
    cudaError_t r;

    if (!desc)
        return cudaErrorInvalidValue;
    /* Unlike that one, it leaves the place alone if it fails. */
    r = hed_rt_cudaArrayGetInfo(cu, &d, NULL, NULL, (cudaArray_t)(uintptr_t)array);
    if (r == cudaSuccess)
        *desc = d;
    return r;
}

cudaError_t
hed_rt_cudaDeviceGetTexture1DLinearMaxWidth(const struct hed_rt_driver *cu,
                                            size_t *maxWidthInElements,
                                            const cudaChannelFormatDesc *fmtDesc, int device)
{
    struct hed_rt_texel texel;
    cudaError_t r;

    if (!maxWidthInElements || !fmtDesc)
        return cudaErrorInvalidValue;
    r = hed_rt_texel(fmtDesc, &texel);
    return r == cudaSuccess ? (cudaError_t)cu->cuDeviceGetTexture1DLinearMaxWidth(
                                  maxWidthInElements, texel.format, texel.channels, device)
                            : r;
}
