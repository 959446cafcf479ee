/* Copies of boxes, between pointers and arrays.
 *
 * The runtime counts in elements of the array that takes part, on both sides, and in bytes if there
 * is none. The driver always counts in bytes. Pitches are in bytes for both; all the same the
 * runtime compares them with the width before it is bytes, and leaves the rest to the driver.
 *
 * Arrays of compressed blocks have extents and positions in texels, and pointers beside them in
 * blocks; the driver counts blocks on both sides.
 */
#include <stdint.h>

#include "cudart/channel.h"
#include "cudart/context.h"
#include "cudart/copy.h"
#include "cudart/driver.h"
#include "gen/cudart_calls.h"

/* What becomes of a copy of nothing. */
static const CUDA_MEMCPY3D_v2 copy_of_nothing = {
    .srcMemoryType = CU_MEMORYTYPE_DEVICE,
    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
    .Height = 1,
    .Depth = 1,
};

cudaError_t
hed_rt_copy_types(cudaMemcpyKind kind, CUmemorytype *src, CUmemorytype *dst)
{
    static const struct {
        CUmemorytype src, dst;
    } types[] = {
        [cudaMemcpyHostToHost] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST},
        [cudaMemcpyHostToDevice] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE},
        [cudaMemcpyDeviceToHost] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST},
        [cudaMemcpyDeviceToDevice] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE},
        [cudaMemcpyDefault] = {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED},
    };

    if ((unsigned)kind >= sizeof types / sizeof types[0])
        return cudaErrorInvalidMemcpyDirection;
    *src = types[kind].src;
    *dst = types[kind].dst;
    return cudaSuccess;
}

cudaError_t
hed_rt_element(const CUDA_ARRAY3D_DESCRIPTOR_v2 *d, struct hed_rt_element *out)
{
    const cudaChannelFormatDesc c = hed_rt_channels(d->Format, d->NumChannels);

    *out = (struct hed_rt_element){(size_t)(c.x + c.y + c.z + c.w) / 8, 1};
    switch ((int)c.f) {
    case cudaChannelFormatKindUnsignedBlockCompressed1:
    case cudaChannelFormatKindUnsignedBlockCompressed1SRGB:
    case cudaChannelFormatKindUnsignedBlockCompressed4:
    case cudaChannelFormatKindSignedBlockCompressed4:
        *out = (struct hed_rt_element){8, 4};
        break;
    case cudaChannelFormatKindUnsignedBlockCompressed2:
    case cudaChannelFormatKindUnsignedBlockCompressed2SRGB:
    case cudaChannelFormatKindUnsignedBlockCompressed3:
    case cudaChannelFormatKindUnsignedBlockCompressed3SRGB:
    case cudaChannelFormatKindUnsignedBlockCompressed5:
    case cudaChannelFormatKindSignedBlockCompressed5:
    case cudaChannelFormatKindUnsignedBlockCompressed6H:
    case cudaChannelFormatKindSignedBlockCompressed6H:
    case cudaChannelFormatKindUnsignedBlockCompressed7:
    case cudaChannelFormatKindUnsignedBlockCompressed7SRGB:
        *out = (struct hed_rt_element){16, 4};
        break;
    default:
        break;
    }
    return out->bytes ? cudaSuccess : cudaErrorInvalidChannelDescriptor;
}

/* What the numbers of a copy count: those of the extent, and the positions at both ends. */
struct units {
    struct hed_rt_element extent, src, dst;
};

static cudaError_t
element_of_array(const struct hed_rt_driver *cu, cudaArray_const_t array,
                 struct hed_rt_element *out)
{
    CUDA_ARRAY3D_DESCRIPTOR_v2 d;
    const CUresult r = cu->cuArray3DGetDescriptor_v2(&d, (CUarray)(uintptr_t)array);

    return r == CUDA_SUCCESS ? hed_rt_element(&d, out) : (cudaError_t)r;
}

static cudaError_t
units_of_copy(const struct hed_rt_driver *cu, cudaArray_const_t src, cudaArray_const_t dst,
              struct units *out)
{
    cudaError_t r = cudaSuccess;

    *out = (struct units){{1, 1}, {1, 1}, {1, 1}};
    if (src)
        r = element_of_array(cu, src, &out->src);
    if (r == cudaSuccess && dst)
        r = element_of_array(cu, dst, &out->dst);
    if (r != cudaSuccess)
        return r;
    if (src && dst && out->src.bytes != out->dst.bytes)
        return cudaErrorInvalidValue;
    out->extent = src ? out->src : out->dst;
    /* Pointers are at rows of blocks. */
    if (!src)
        out->src = (struct hed_rt_element){out->extent.bytes, 1};
    if (!dst)
        out->dst = (struct hed_rt_element){out->extent.bytes, 1};
    return cudaSuccess;
}

static size_t
blocks_of(size_t texels, const struct hed_rt_element *e)
{
    return texels / e->side + (texels % e->side != 0);
}

/* One end of a copy: a pointer or an array, never both. */
static cudaError_t
check_end(cudaArray_const_t array, const cudaPitchedPtr *at, const cudaExtent *extent,
          const struct units *u)
{
    if (!array == !at->ptr)
        return cudaErrorInvalidValue;
    if (array)
        return cudaSuccess;
    if ((extent->height > 1 || extent->depth > 1) && at->pitch < extent->width)
        return cudaErrorInvalidPitchValue;
    if (extent->depth > 1 && at->ysize < blocks_of(extent->height, &u->extent))
        return cudaErrorInvalidPitchValue;
    return cudaSuccess;
}

void
hed_rt_copy_from(CUDA_MEMCPY3D_v2 *c, CUmemorytype type, const void *src, size_t pitch)
{
    c->srcMemoryType = type;
    c->srcPitch = pitch;
    if (type == CU_MEMORYTYPE_HOST)
        c->srcHost = src;
    else
        c->srcDevice = (CUdeviceptr)(uintptr_t)src;
}

void
hed_rt_copy_to(CUDA_MEMCPY3D_v2 *c, CUmemorytype type, void *dst, size_t pitch)
{
    c->dstMemoryType = type;
    c->dstPitch = pitch;
    if (type == CU_MEMORYTYPE_HOST)
        c->dstHost = dst;
    else
        c->dstDevice = (CUdeviceptr)(uintptr_t)dst;
}

cudaError_t
hed_rt_copy(const struct hed_rt_driver *cu, const CUDA_MEMCPY3D_v2 *c, const cudaStream_t *stream)
{
    return (cudaError_t)(stream ? cu->cuMemcpy3DAsync_v2(c, *stream) : cu->cuMemcpy3D_v2(c));
}

static bool
copies_nothing(const cudaExtent *e)
{
    return e->width == 0 || e->height == 0 || e->depth == 0;
}

cudaError_t
hed_rt_copy_3d(const struct hed_rt_driver *cu, const cudaMemcpy3DParms *p, CUDA_MEMCPY3D_v2 *out)
{
    CUmemorytype src, dst;
    struct units u;
    cudaError_t r;

    if (copies_nothing(&p->extent)) {
        *out = copy_of_nothing;
        return cudaSuccess;
    }
    r = hed_rt_copy_types(p->kind, &src, &dst);
    if (r == cudaSuccess)
        r = units_of_copy(cu, p->srcArray, p->dstArray, &u);
    if (r == cudaSuccess)
        r = check_end(p->srcArray, &p->srcPtr, &p->extent, &u);
    /* Arrays are on the device; what the kind says about the destination does not matter then. */
    if (r == cudaSuccess && p->srcArray && src == CU_MEMORYTYPE_HOST)
        r = cudaErrorInvalidValue;
    if (r == cudaSuccess)
        r = check_end(p->dstArray, &p->dstPtr, &p->extent, &u);
    if (r != cudaSuccess)
        return r;
    *out = (CUDA_MEMCPY3D_v2){
        .srcXInBytes = p->srcPos.x / u.src.side * u.src.bytes,
        .srcY = p->srcPos.y / u.src.side,
        .srcZ = p->srcPos.z,
        .srcMemoryType = CU_MEMORYTYPE_ARRAY,
        .srcArray = (CUarray)p->srcArray,
        .dstXInBytes = p->dstPos.x / u.dst.side * u.dst.bytes,
        .dstY = p->dstPos.y / u.dst.side,
        .dstZ = p->dstPos.z,
        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
        .dstArray = (CUarray)p->dstArray,
        .WidthInBytes = blocks_of(p->extent.width, &u.extent) * u.extent.bytes,
        .Height = blocks_of(p->extent.height, &u.extent),
        .Depth = p->extent.depth,
    };
    if (!p->srcArray) {
        hed_rt_copy_from(out, src, p->srcPtr.ptr, p->srcPtr.pitch);
        out->srcHeight = p->srcPtr.ysize;
    }
    if (!p->dstArray) {
        hed_rt_copy_to(out, dst, p->dstPtr.ptr, p->dstPtr.pitch);
        out->dstHeight = p->dstPtr.ysize;
    }
    return cudaSuccess;
}

static cudaMemcpyKind
kind_of_types(CUmemorytype src, CUmemorytype dst)
{
    if (src == CU_MEMORYTYPE_UNIFIED || dst == CU_MEMORYTYPE_UNIFIED)
        return cudaMemcpyDefault;
    if (src == CU_MEMORYTYPE_HOST)
        return dst == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    return dst == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

cudaError_t
hed_rt_copy_3d_back(const struct hed_rt_driver *cu, const CUDA_MEMCPY3D_v2 *copy,
                    cudaMemcpy3DParms *out)
{
    const bool from_array = copy->srcMemoryType == CU_MEMORYTYPE_ARRAY;
    const bool to_array = copy->dstMemoryType == CU_MEMORYTYPE_ARRAY;
    const bool from_host = copy->srcMemoryType == CU_MEMORYTYPE_HOST;
    const bool to_host = copy->dstMemoryType == CU_MEMORYTYPE_HOST;
    struct units u;
    const cudaError_t r = units_of_copy(cu, from_array ? (cudaArray_t)copy->srcArray : NULL,
                                        to_array ? (cudaArray_t)copy->dstArray : NULL, &u);

    if (r != cudaSuccess)
        return r;
    *out = (cudaMemcpy3DParms){
        .srcPos = {copy->srcXInBytes / u.src.bytes * u.src.side, copy->srcY * u.src.side,
                   copy->srcZ},
        .dstPos = {copy->dstXInBytes / u.dst.bytes * u.dst.side, copy->dstY * u.dst.side,
                   copy->dstZ},
        .extent = {copy->WidthInBytes / u.extent.bytes * u.extent.side,
                   copy->Height * u.extent.side, copy->Depth},
        .kind = kind_of_types(copy->srcMemoryType, copy->dstMemoryType),
    };
    if (from_array)
        out->srcArray = (cudaArray_t)copy->srcArray;
    else
        out->srcPtr = (cudaPitchedPtr){
            .ptr =
                from_host ? (void *)(uintptr_t)copy->srcHost : (void *)(uintptr_t)copy->srcDevice,
            .pitch = copy->srcPitch,
            .ysize = copy->srcHeight,
        };
    if (to_array)
        out->dstArray = (cudaArray_t)copy->dstArray;
    else
        out->dstPtr = (cudaPitchedPtr){
            .ptr = to_host ? copy->dstHost : (void *)(uintptr_t)copy->dstDevice,
            .pitch = copy->dstPitch,
            .ysize = copy->dstHeight,
        };
    return cudaSuccess;
}

cudaError_t
hed_rt_copy_1d(void *dst, const void *src, size_t count, cudaMemcpyKind kind, CUDA_MEMCPY3D_v2 *out)
{
    CUDA_MEMCPY3D_v2 c = copy_of_nothing;
    CUmemorytype from, to;
    cudaError_t r;

    if (count) {
        r = hed_rt_copy_types(kind, &from, &to);
        if (r != cudaSuccess)
            return r;
        hed_rt_copy_from(&c, from, src, 0);
        hed_rt_copy_to(&c, to, dst, 0);
        c.WidthInBytes = count;
    }
    *out = c;
    return cudaSuccess;
}

/* ---- calls ----------------------------------------------------------------------------------- */

cudaError_t
hed_rt_cudaMemcpy3D(const struct hed_rt_driver *cu, const cudaMemcpy3DParms *p)
{
    CUDA_MEMCPY3D_v2 c;
    const cudaError_t r = p ? hed_rt_copy_3d(cu, p, &c) : cudaErrorInvalidValue;

    return r == cudaSuccess ? hed_rt_copy(cu, &c, NULL) : r;
}

cudaError_t
hed_rt_cudaMemcpy3DAsync(const struct hed_rt_driver *cu, const cudaMemcpy3DParms *p,
                         cudaStream_t stream)
{
    CUDA_MEMCPY3D_v2 c;
    const cudaError_t r = p ? hed_rt_copy_3d(cu, p, &c) : cudaErrorInvalidValue;

    return r == cudaSuccess ? hed_rt_copy(cu, &c, &stream) : r;
}

/* The devices are checked even if there is nothing to copy. */
static cudaError_t
copy_between_peers(const struct hed_rt_driver *cu, const cudaMemcpy3DPeerParms *p,
                   CUDA_MEMCPY3D_PEER_v1 *out)
{
    CUDA_MEMCPY3D_v2 c;
    CUcontext to, from;
    cudaError_t r;

    if (!p)
        return cudaErrorInvalidValue;
    r = hed_rt_peers(p->dstDevice, p->srcDevice, &to, &from);
    if (r == cudaSuccess)
        r = hed_rt_copy_3d(cu,
                           &(cudaMemcpy3DParms){
                               .srcArray = p->srcArray,
                               .srcPos = p->srcPos,
                               .srcPtr = p->srcPtr,
                               .dstArray = p->dstArray,
                               .dstPos = p->dstPos,
                               .dstPtr = p->dstPtr,
                               .extent = p->extent,
                               .kind = cudaMemcpyDeviceToDevice,
                           },
                           &c);
    if (r == cudaSuccess)
        *out = (CUDA_MEMCPY3D_PEER_v1){
            .srcXInBytes = c.srcXInBytes,
            .srcY = c.srcY,
            .srcZ = c.srcZ,
            .srcMemoryType = c.srcMemoryType,
            .srcDevice = c.srcDevice,
            .srcArray = c.srcArray,
            .srcContext = from,
            .srcPitch = c.srcPitch,
            .srcHeight = c.srcHeight,
            .dstXInBytes = c.dstXInBytes,
            .dstY = c.dstY,
            .dstZ = c.dstZ,
            .dstMemoryType = c.dstMemoryType,
            .dstDevice = c.dstDevice,
            .dstArray = c.dstArray,
            .dstContext = to,
            .dstPitch = c.dstPitch,
            .dstHeight = c.dstHeight,
            .WidthInBytes = c.WidthInBytes,
            .Height = c.Height,
            .Depth = c.Depth,
        };
    return r;
}

cudaError_t
hed_rt_cudaMemcpy3DPeer(const struct hed_rt_driver *cu, const cudaMemcpy3DPeerParms *p)
{
    CUDA_MEMCPY3D_PEER_v1 c;
    const cudaError_t r = copy_between_peers(cu, p, &c);

    return r == cudaSuccess ? (cudaError_t)cu->cuMemcpy3DPeer(&c) : r;
}

cudaError_t
hed_rt_cudaMemcpy3DPeerAsync(const struct hed_rt_driver *cu, const cudaMemcpy3DPeerParms *p,
                             cudaStream_t stream)
{
    CUDA_MEMCPY3D_PEER_v1 c;
    const cudaError_t r = copy_between_peers(cu, p, &c);

    return r == cudaSuccess ? (cudaError_t)cu->cuMemcpy3DPeerAsync(&c, stream) : r;
}
