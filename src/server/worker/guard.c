/* Which calls a client may have made, and with which addresses.
 *
 * Only those that the remote backend sends: what can travel at all (gen/cuda_travel.h) is far more,
 * and every call is a way into the driver. What makes, maps or frees memory has messages of its
 * own, under the lease (memory.c). Addresses of copies, fills, values and textures must be the
 * client's memory: what it has mapped, or variables of its modules.
 */
#include "server/worker/code.h"
#include "server/worker/memory.h"

bool
hed_memory_reaches(struct hed_worker *w, uint64_t at, uint64_t size)
{
    return w->no_memory || hed_mapping_covers(w->memory, at, size) ||
           hed_worker_variable_covers(w, at, size);
}

/* Bytes from the first to the last of rows and planes. Rows that would overlap are refused: a
 * driver may take a pitch of 0 to mean the width. */
static bool
reaches_box(struct hed_worker *w, uint64_t at, uint64_t pitch, uint64_t slice,
            const CUDA_MEMCPY3D_v2 *c)
{
    uint64_t rows, planes, span;

    if (c->WidthInBytes == 0 || c->Height == 0 || c->Depth == 0)
        return true;
    if (c->Height > 1 && pitch < c->WidthInBytes)
        return false;
    if (c->Depth > 1 && (slice < c->WidthInBytes || slice / c->Height < pitch))
        return false;
    return !__builtin_mul_overflow(pitch, c->Height - 1, &rows) &&
           !__builtin_mul_overflow(slice, c->Depth - 1, &planes) &&
           !__builtin_add_overflow(rows, planes, &span) &&
           !__builtin_add_overflow(span, c->WidthInBytes, &span) && hed_memory_reaches(w, at, span);
}

/* A side of a copy as this client sends it: the address is that of the first byte. */
static bool
reaches_side(struct hed_worker *w, const CUDA_MEMCPY3D_v2 *c, bool to)
{
    const CUmemorytype type = to ? c->dstMemoryType : c->srcMemoryType;
    const uint64_t pitch = to ? c->dstPitch : c->srcPitch;
    const uint64_t height = to ? c->dstHeight : c->srcHeight;
    uint64_t slice;

    if (type == CU_MEMORYTYPE_ARRAY)
        return true;
    if (type != CU_MEMORYTYPE_UNIFIED ||
        (to ? c->dstXInBytes | c->dstY | c->dstZ : c->srcXInBytes | c->srcY | c->srcZ) ||
        __builtin_mul_overflow(pitch, height, &slice))
        return false;
    return reaches_box(w, to ? c->dstDevice : c->srcDevice, pitch, slice, c);
}

static bool
reaches_fill(struct hed_worker *w, uint64_t at, uint64_t pitch, uint64_t width, uint64_t height,
             unsigned element)
{
    CUDA_MEMCPY3D_v2 c = {.Height = height, .Depth = 1};

    return !__builtin_mul_overflow(width, (uint64_t)element, &c.WidthInBytes) &&
           reaches_box(w, at, pitch, 0, &c);
}

static bool
reaches_values(struct hed_worker *w, const struct hed_cuStreamBatchMemOp_v2 *a)
{
    for (unsigned i = 0; i < a->count; i++) {
        const CUstreamBatchMemOpParams_v1 *op = &a->paramArray[i];
        const bool wide = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                          op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
        const bool narrow = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
                            op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32;

        /* Both kinds have the address in the same place; barriers and flushes have none. */
        if (wide || narrow) {
            if (!hed_memory_reaches(w, op->waitValue.address, wide ? 8 : 4))
                return false;
        } else if (op->operation != CU_STREAM_MEM_OP_BARRIER &&
                   op->operation != CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES) {
            return false;
        }
    }
    return true;
}

/* What a texture or a surface is of. */
static bool
reaches_resource(struct hed_worker *w, const CUDA_RESOURCE_DESC_v1 *d)
{
    uint64_t bytes;

    if (!d)
        return false;
    switch (d->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        return d->res.array.hArray != NULL;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        return d->res.mipmap.hMipmappedArray != NULL;
    case CU_RESOURCE_TYPE_LINEAR:
        return hed_memory_reaches(w, d->res.linear.devPtr, d->res.linear.sizeInBytes);
    case CU_RESOURCE_TYPE_PITCH2D:
        /* The last row need not have all of its pitch; but it has that of the first byte. */
        return d->res.pitch2D.height > 0 &&
               !__builtin_mul_overflow(d->res.pitch2D.pitchInBytes, d->res.pitch2D.height - 1,
                                       &bytes) &&
               !__builtin_add_overflow(bytes, 1, &bytes) &&
               hed_memory_reaches(w, d->res.pitch2D.devPtr, bytes);
    default:
        return false;
    }
}

/* Calls without an address: handles and numbers only. */
static bool
is_sent(enum hed_cuda_call id)
{
    switch (id) {
    case HED_cuCtxCreate_v2:
    case HED_cuCtxDestroy_v2:
    case HED_cuCtxDisablePeerAccess:
    case HED_cuCtxEnablePeerAccess:
    case HED_cuCtxSynchronize:
    case HED_cuDeviceCanAccessPeer:
    case HED_cuDeviceGetP2PAttribute:
    case HED_cuDevicePrimaryCtxRetain:
    case HED_cuDevicePrimaryCtxReset_v2:
    case HED_cuDevicePrimaryCtxSetFlags_v2:
    case HED_cuEventCreate:
    case HED_cuEventDestroy_v2:
    case HED_cuEventElapsedTime:
    case HED_cuEventQuery:
    case HED_cuEventRecord:
    case HED_cuEventSynchronize:
    case HED_cuFuncLoad:
    case HED_cuFuncSetAttribute:
    case HED_cuFuncSetCacheConfig:
    case HED_cuFuncSetSharedMemConfig:
    case HED_cuGraphLaunch:
    case HED_cuOccupancyMaxActiveClusters:
    case HED_cuOccupancyMaxPotentialClusterSize:
    case HED_cuStreamCreateWithPriority:
    case HED_cuStreamDestroy_v2:
    case HED_cuStreamQuery:
    case HED_cuStreamSetAttribute:
    case HED_cuStreamSynchronize:
    case HED_cuStreamWaitEvent:
    case HED_cuSurfObjectDestroy:
    case HED_cuTexObjectDestroy:
    /* Of these the address is only written into what kernels are given. */
    case HED_cuTensorMapEncodeIm2col:
    case HED_cuTensorMapEncodeIm2colWide:
    case HED_cuTensorMapEncodeTiled:
    case HED_cuTensorMapReplaceAddress:
        return true;
    default:
        return false;
    }
}

/* Heaps of kernels are memory of the device that no lease is asked for: one that is larger than all
 * that the client could have is refused. */
static CUresult
check_limit(struct hed_worker *w, const struct hed_cuCtxSetLimit *a)
{
    CUdevice device = 0;

    if (a->limit != CU_LIMIT_MALLOC_HEAP_SIZE && a->limit != CU_LIMIT_PRINTF_FIFO_SIZE)
        return CUDA_SUCCESS;
    if (w->no_memory || hed_worker_do(w, cuCtxGetDevice, .device = &device) != CUDA_SUCCESS)
        return CUDA_SUCCESS;
    return a->value <= hed_memory_obtainable(w, device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

#define ROW(call, element)                                                              \
    case HED_##call: {                                                                  \
        const struct hed_##call *a = args;                                              \
                                                                                        \
        return reaches_fill(w, a->dstDevice, 0, a->N, 1, element) ? CUDA_SUCCESS : bad; \
    }
#define PLANE(call, element)                                                            \
    case HED_##call: {                                                                  \
        const struct hed_##call *a = args;                                              \
                                                                                        \
        return reaches_fill(w, a->dstDevice, a->dstPitch, a->Width, a->Height, element) \
                   ? CUDA_SUCCESS                                                       \
                   : bad;                                                               \
    }

CUresult
hed_memory_guard(struct hed_worker *w, enum hed_cuda_call id, const void *args)
{
    const CUresult bad = CUDA_ERROR_INVALID_VALUE;

    switch (id) {
    case HED_cuMemcpyAsync: {
        const struct hed_cuMemcpyAsync *a = args;

        return a->ByteCount == 0 || (hed_memory_reaches(w, a->dst, a->ByteCount) &&
                                     hed_memory_reaches(w, a->src, a->ByteCount))
                   ? CUDA_SUCCESS
                   : bad;
    }
    case HED_cuMemcpy3DAsync_v2: {
        const CUDA_MEMCPY3D_v2 *c = ((const struct hed_cuMemcpy3DAsync_v2 *)args)->pCopy;

        return c && reaches_side(w, c, false) && reaches_side(w, c, true) ? CUDA_SUCCESS : bad;
    }
    case HED_cuStreamBatchMemOp_v2:
        return reaches_values(w, args) ? CUDA_SUCCESS : bad;
    case HED_cuCtxSetLimit:
        return check_limit(w, args);
    case HED_cuTexObjectCreate:
        return reaches_resource(w, ((const struct hed_cuTexObjectCreate *)args)->pResDesc)
                   ? CUDA_SUCCESS
                   : bad;
    case HED_cuSurfObjectCreate:
        return reaches_resource(w, ((const struct hed_cuSurfObjectCreate *)args)->pResDesc)
                   ? CUDA_SUCCESS
                   : bad;
        ROW(cuMemsetD8Async, 1)
        ROW(cuMemsetD16Async, 2)
        ROW(cuMemsetD32Async, 4)
        PLANE(cuMemsetD2D8Async, 1)
        PLANE(cuMemsetD2D16Async, 2)
        PLANE(cuMemsetD2D32Async, 4)
    default:
        return is_sent(id) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    }
}
