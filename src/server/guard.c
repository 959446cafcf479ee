/* Calls of the client's that are about memory: which of them may be made, and with which addresses.
 *
 * What makes, maps or frees memory has messages of its own, under the lease (memory.c): as calls
 * they are refused. Addresses of copies, fills and values must be the client's memory: what it has
 * mapped, or variables of its modules.
 */
#include "server/code.h"
#include "server/memory.h"

bool
hed_memory_reaches(struct hed_worker *w, uint64_t at, uint64_t size)
{
    return w->hollow || hed_mapping_covers(w->memory, at, size) ||
           hed_worker_variable_covers(w, at, size);
}

/* Bytes from the first to the last of rows and planes. */
static bool
reaches_box(struct hed_worker *w, uint64_t at, uint64_t pitch, uint64_t slice,
            const CUDA_MEMCPY3D_v2 *c)
{
    uint64_t rows, planes, span;

    if (c->WidthInBytes == 0 || c->Height == 0 || c->Depth == 0)
        return true;
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

        /* Both kinds have the address in the same place. */
        if ((wide || narrow) && !hed_memory_reaches(w, op->waitValue.address, wide ? 8 : 4))
            return false;
    }
    return true;
}

static bool
has_own_message(enum hed_cuda_call id)
{
    switch (id) {
    case HED_cuMemAlloc_v2:
    case HED_cuMemAllocPitch_v2:
    case HED_cuMemAllocManaged:
    case HED_cuMemAllocHost_v2:
    case HED_cuMemHostAlloc:
    case HED_cuMemHostRegister_v2:
    case HED_cuMemHostUnregister:
    case HED_cuMemAllocAsync:
    case HED_cuMemAllocFromPoolAsync:
    case HED_cuMemFreeAsync:
    case HED_cuMemFree_v2:
    case HED_cuMemFreeHost:
    case HED_cuMemCreate:
    case HED_cuMemRelease:
    case HED_cuMemMap:
    case HED_cuMemUnmap:
    case HED_cuMemSetAccess:
    case HED_cuMemAddressReserve:
    case HED_cuMemAddressFree:
    case HED_cuMemRetainAllocationHandle:
    case HED_cuMemcpy:
    case HED_cuMemcpy3D_v2:
    case HED_cuMemcpy2D_v2:
    case HED_cuMemcpy2DAsync_v2:
    case HED_cuMemcpyDtoD_v2:
    case HED_cuMemcpyDtoDAsync_v2:
    case HED_cuMemcpyHtoD_v2:
    case HED_cuMemcpyHtoDAsync_v2:
    case HED_cuMemcpyDtoH_v2:
    case HED_cuMemcpyDtoHAsync_v2:
    case HED_cuMemcpyBatchAsync:
    case HED_cuMemcpyBatchAsync_v2:
    case HED_cuMemcpy3DBatchAsync:
    case HED_cuMemcpy3DBatchAsync_v2:
        return true;
    default:
        return false;
    }
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
        ROW(cuMemsetD8Async, 1)
        ROW(cuMemsetD16Async, 2)
        ROW(cuMemsetD32Async, 4)
        PLANE(cuMemsetD2D8Async, 1)
        PLANE(cuMemsetD2D16Async, 2)
        PLANE(cuMemsetD2D32Async, 4)
    default:
        return has_own_message(id) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    }
}
