/* Texture and surface objects.
 *
 * The descriptions of older editions are beginnings of today's, so each call of theirs widens or
 * narrows them and is otherwise today's call.
 */
#include "cudart/texture.h"

#include <stdint.h>
#include <string.h>

#include "gen/cudart_calls.h"

/* ---- to the driver --------------------------------------------------------------------------- */

/* NVIDIA's runtime does not pass on flags, which only exist since CUDA 13. */
static cudaError_t
resource_to_driver(const struct hed_rt_driver *cu, const cudaResourceDesc *in,
                   CUDA_RESOURCE_DESC_v1 *out, CUarray_format *format)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 d = {.Width = 0};
    struct hed_rt_texel texel = {.channels = 0};
    CUarray array = (CUarray)in->res.array.array;
    CUresult r = CUDA_SUCCESS;
    cudaError_t bad = cudaSuccess;

    memset(out, 0, sizeof *out);
    out->resType = (CUresourcetype)in->resType;
    switch (in->resType) {
    case cudaResourceTypeMipmappedArray:
        out->res.mipmap.hMipmappedArray = (CUmipmappedArray)in->res.mipmap.mipmap;
        r = cu->cuMipmappedArrayGetLevel(&array, out->res.mipmap.hMipmappedArray, 0);
        if (r == CUDA_SUCCESS)
            r = cu->cuArray3DGetDescriptor_v2(&d, array);
        break;
    case cudaResourceTypeArray:
        out->res.array.hArray = array;
        r = cu->cuArray3DGetDescriptor_v2(&d, array);
        break;
    case cudaResourceTypeLinear:
        bad = hed_rt_texel(&in->res.linear.desc, &texel);
        out->res.linear.devPtr = (CUdeviceptr)(uintptr_t)in->res.linear.devPtr;
        out->res.linear.format = texel.format;
        out->res.linear.numChannels = texel.channels;
        out->res.linear.sizeInBytes = in->res.linear.sizeInBytes;
        break;
    case cudaResourceTypePitch2D:
        bad = hed_rt_texel(&in->res.pitch2D.desc, &texel);
        out->res.pitch2D.devPtr = (CUdeviceptr)(uintptr_t)in->res.pitch2D.devPtr;
        out->res.pitch2D.format = texel.format;
        out->res.pitch2D.numChannels = texel.channels;
        out->res.pitch2D.width = in->res.pitch2D.width;
        out->res.pitch2D.height = in->res.pitch2D.height;
        out->res.pitch2D.pitchInBytes = in->res.pitch2D.pitchInBytes;
        break;
    default:
        return cudaErrorInvalidValue;
    }
    *format = texel.channels ? texel.format : d.Format;
    return r != CUDA_SUCCESS ? (cudaError_t)r : bad;
}

cudaError_t
hed_rt_check_reading(CUarray_format format, cudaTextureReadMode read, cudaTextureFilterMode filter)
{
    const bool normalized = read == cudaReadModeNormalizedFloat;

    if (hed_rt_is_integer(format)) {
        if (filter == cudaFilterModeLinear && (!normalized || hed_rt_is_wide(format)))
            return cudaErrorInvalidFilterSetting;
        return normalized && hed_rt_is_wide(format) ? cudaErrorInvalidNormSetting : cudaSuccess;
    }
    if (hed_rt_is_normalized(format))
        return normalized ? cudaSuccess : cudaErrorInvalidNormSetting;
    if (format == CU_AD_FORMAT_FLOAT || format == CU_AD_FORMAT_HALF)
        return normalized ? cudaErrorInvalidNormSetting : cudaSuccess;
    return cudaSuccess; /* the driver knows compressed formats better */
}

static cudaError_t
texture_to_driver(const cudaTextureDesc *in, CUarray_format format, CUDA_TEXTURE_DESC_v1 *out)
{
    const cudaError_t r = hed_rt_check_reading(format, in->readMode, in->filterMode);

    if (r != cudaSuccess)
        return r;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < 3; i++)
        out->addressMode[i] = (CUaddress_mode)in->addressMode[i];
    out->filterMode = (CUfilter_mode)in->filterMode;
    if (hed_rt_is_integer(format) && in->readMode != cudaReadModeNormalizedFloat)
        out->flags |= CU_TRSF_READ_AS_INTEGER;
    if (in->normalizedCoords)
        out->flags |= CU_TRSF_NORMALIZED_COORDINATES;
    if (in->sRGB)
        out->flags |= CU_TRSF_SRGB;
    if (in->disableTrilinearOptimization)
        out->flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
    if (in->seamlessCubemap)
        out->flags |= CU_TRSF_SEAMLESS_CUBEMAP;
    out->maxAnisotropy = in->maxAnisotropy;
    out->mipmapFilterMode = (CUfilter_mode)in->mipmapFilterMode;
    out->mipmapLevelBias = in->mipmapLevelBias;
    out->minMipmapLevelClamp = in->minMipmapLevelClamp;
    out->maxMipmapLevelClamp = in->maxMipmapLevelClamp;
    memcpy(out->borderColor, in->borderColor, sizeof out->borderColor);
    return cudaSuccess;
}

/* The two say the same, with other names. */
_Static_assert(sizeof(cudaResourceViewDesc) == sizeof(CUDA_RESOURCE_VIEW_DESC_v1), "views differ");
_Static_assert(offsetof(cudaResourceViewDesc, lastLayer) ==
                   offsetof(CUDA_RESOURCE_VIEW_DESC_v1, lastLayer),
               "views differ");

cudaError_t
hed_rt_cudaCreateTextureObject(const struct hed_rt_driver *cu, cudaTextureObject_t *pTexObject,
                               const cudaResourceDesc *pResDesc, const cudaTextureDesc *pTexDesc,
                               const cudaResourceViewDesc *pResViewDesc)
{
    CUDA_RESOURCE_DESC_v1 resource;
    CUDA_TEXTURE_DESC_v1 texture;
    CUDA_RESOURCE_VIEW_DESC_v1 view;
    CUarray_format format;
    cudaError_t r;

    if (!pResDesc)
        return cudaErrorInvalidValue;
    if (!pTexDesc)
        return cudaErrorInvalidResourceHandle;
    r = resource_to_driver(cu, pResDesc, &resource, &format);
    if (r == cudaSuccess)
        r = texture_to_driver(pTexDesc, format, &texture);
    if (r != cudaSuccess)
        return r;
    if (pResViewDesc)
        memcpy(&view, pResViewDesc, sizeof view);
    return (cudaError_t)cu->cuTexObjectCreate((CUtexObject *)pTexObject, &resource, &texture,
                                              pResViewDesc ? &view : NULL);
}

cudaError_t
hed_rt_cudaCreateSurfaceObject(const struct hed_rt_driver *cu, cudaSurfaceObject_t *pSurfObject,
                               const cudaResourceDesc *pResDesc)
{
    CUDA_RESOURCE_DESC_v1 resource;
    CUarray_format format;
    cudaError_t r;

    if (!pSurfObject || !pResDesc)
        return cudaErrorInvalidValue;
    r = resource_to_driver(cu, pResDesc, &resource, &format);
    return r == cudaSuccess
               ? (cudaError_t)cu->cuSurfObjectCreate((CUsurfObject *)pSurfObject, &resource)
               : r;
}

/* ---- from the driver ------------------------------------------------------------------------- */

static cudaError_t
resource_from_driver(const struct hed_rt_driver *cu, const CUDA_RESOURCE_DESC_v1 *in,
                     cudaResourceDesc *out, CUarray_format *format)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 d = {.Width = 0};
    CUarray array = in->res.array.hArray;
    CUresult r = CUDA_SUCCESS;

    memset(out, 0, sizeof *out);
    out->resType = (cudaResourceType)in->resType;
    switch (in->resType) {
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        out->res.mipmap.mipmap = (cudaMipmappedArray_t)in->res.mipmap.hMipmappedArray;
        r = cu->cuMipmappedArrayGetLevel(&array, in->res.mipmap.hMipmappedArray, 0);
        if (r == CUDA_SUCCESS)
            r = cu->cuArray3DGetDescriptor_v2(&d, array);
        break;
    case CU_RESOURCE_TYPE_ARRAY:
        out->res.array.array = (cudaArray_t)array;
        r = cu->cuArray3DGetDescriptor_v2(&d, array);
        break;
    case CU_RESOURCE_TYPE_LINEAR:
        d.Format = in->res.linear.format;
        out->res.linear.devPtr = (void *)(uintptr_t)in->res.linear.devPtr;
        out->res.linear.desc = hed_rt_channels(d.Format, in->res.linear.numChannels);
        out->res.linear.sizeInBytes = in->res.linear.sizeInBytes;
        break;
    case CU_RESOURCE_TYPE_PITCH2D:
        d.Format = in->res.pitch2D.format;
        out->res.pitch2D.devPtr = (void *)(uintptr_t)in->res.pitch2D.devPtr;
        out->res.pitch2D.desc = hed_rt_channels(d.Format, in->res.pitch2D.numChannels);
        out->res.pitch2D.width = in->res.pitch2D.width;
        out->res.pitch2D.height = in->res.pitch2D.height;
        out->res.pitch2D.pitchInBytes = in->res.pitch2D.pitchInBytes;
        break;
    }
    *format = d.Format;
    return (cudaError_t)r;
}

/* What a texture is of, and its format. */
static cudaError_t
texture_resource(const struct hed_rt_driver *cu, cudaTextureObject_t object, cudaResourceDesc *out,
                 CUarray_format *format)
{
    CUDA_RESOURCE_DESC_v1 resource;
    const CUresult r = cu->cuTexObjectGetResourceDesc(&resource, (CUtexObject)object);

    return r == CUDA_SUCCESS ? resource_from_driver(cu, &resource, out, format) : (cudaError_t)r;
}

cudaError_t
hed_rt_cudaGetTextureObjectResourceDesc(const struct hed_rt_driver *cu, cudaResourceDesc *pResDesc,
                                        cudaTextureObject_t texObject)
{
    CUarray_format format;
    cudaResourceDesc found;
    cudaError_t r;

    if (!pResDesc)
        return cudaErrorInvalidValue;
    r = texture_resource(cu, texObject, &found, &format);
    if (r == cudaSuccess)
        *pResDesc = found;
    return r;
}

cudaError_t
hed_rt_cudaGetTextureObjectTextureDesc(const struct hed_rt_driver *cu, cudaTextureDesc *pTexDesc,
                                       cudaTextureObject_t texObject)
{
    CUDA_TEXTURE_DESC_v1 d;
    cudaResourceDesc resource;
    CUarray_format format;
    cudaError_t r;

    if (!pTexDesc)
        return cudaErrorInvalidResourceHandle;
    r = texture_resource(cu, texObject, &resource, &format);
    if (r == cudaSuccess)
        r = (cudaError_t)cu->cuTexObjectGetTextureDesc(&d, (CUtexObject)texObject);
    if (r != cudaSuccess)
        return r;
    *pTexDesc = (cudaTextureDesc){
        .addressMode = {(cudaTextureAddressMode)d.addressMode[0],
                        (cudaTextureAddressMode)d.addressMode[1],
                        (cudaTextureAddressMode)d.addressMode[2]},
        .filterMode = (cudaTextureFilterMode)d.filterMode,
        .readMode = !(d.flags & CU_TRSF_READ_AS_INTEGER) &&
                            (hed_rt_is_integer(format) || hed_rt_is_normalized(format))
                        ? cudaReadModeNormalizedFloat
                        : cudaReadModeElementType,
        .sRGB = (d.flags & CU_TRSF_SRGB) != 0,
        .normalizedCoords = (d.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0,
        .maxAnisotropy = d.maxAnisotropy,
        .mipmapFilterMode = (cudaTextureFilterMode)d.mipmapFilterMode,
        .mipmapLevelBias = d.mipmapLevelBias,
        .minMipmapLevelClamp = d.minMipmapLevelClamp,
        .maxMipmapLevelClamp = d.maxMipmapLevelClamp,
        .disableTrilinearOptimization = (d.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0,
        .seamlessCubemap = (d.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0,
    };
    memcpy(pTexDesc->borderColor, d.borderColor, sizeof d.borderColor);
    return cudaSuccess;
}

cudaError_t
hed_rt_cudaGetTextureObjectResourceViewDesc(const struct hed_rt_driver *cu,
                                            cudaResourceViewDesc *pResViewDesc,
                                            cudaTextureObject_t texObject)
{
    CUDA_RESOURCE_VIEW_DESC_v1 view;
    CUresult r;

    if (!pResViewDesc)
        return cudaErrorInvalidValue;
    r = cu->cuTexObjectGetResourceViewDesc(&view, (CUtexObject)texObject);
    if (r == CUDA_SUCCESS)
        memcpy(pResViewDesc, &view, sizeof view);
    return (cudaError_t)r;
}

/* Without a place for the answer, NVIDIA's runtime blames the device. */
cudaError_t
hed_rt_cudaGetSurfaceObjectResourceDesc(const struct hed_rt_driver *cu, cudaResourceDesc *pResDesc,
                                        cudaSurfaceObject_t surfObject)
{
    CUDA_RESOURCE_DESC_v1 resource;
    cudaResourceDesc found;
    CUarray_format format;
    cudaError_t r;

    if (!pResDesc)
        return cudaErrorInvalidDevice;
    r = (cudaError_t)cu->cuSurfObjectGetResourceDesc(&resource, (CUsurfObject)surfObject);
    if (r == cudaSuccess)
        r = resource_from_driver(cu, &resource, &found, &format);
    if (r == cudaSuccess)
        *pResDesc = found;
    return r;
}
