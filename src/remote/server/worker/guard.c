/* Which calls a client may make, and with which addresses.
 *
 * Only calls that the remote backend sends are allowed (travel= in the spec). Far more could travel
 * (gen/cuda_travel.h), but every call is a way into the driver. Calls that create, map or free
 * memory have messages of their own, under the lease (memory.c). All memory that a call touches
 * must be the client's: what it has mapped, or variables of its modules. The spec says how far a
 * call reaches (extent=), or which function here looks at which arguments (travel=Roles(...)).
 */
#include "gen/cuda_sets.h"
#include "gen/cuda_work.h"
#include "remote/server/worker/code.h"
#include "remote/server/worker/memory.h"

static CUresult
result_of_check(bool reaches)
{
    return reaches ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool
hed_memory_reaches(struct hed_worker *w, uint64_t at, uint64_t size)
{
    return w->no_memory || hed_mapping_covers(w->memory, at, size) ||
           hed_worker_variable_covers(w, at, size);
}

/* Checks all bytes from the first to the last, over rows and planes. Rows that would overlap are
 * refused, since a driver may take a pitch of 0 to mean the width. */
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

/* Checks one side of a copy as our client sends it: the address is that of the first byte. */
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
guard_memory_ops(struct hed_worker *w, const CUstreamBatchMemOpParams_v1 *ops, unsigned count)
{
    if (count && !ops)
        return false;
    for (unsigned i = 0; i < count; i++) {
        const CUstreamBatchMemOpParams_v1 *op = &ops[i];
        const uint64_t bytes = hed_memory_op_bytes(op->operation);

        /* Waits and writes have the address at the same offset; barriers and flushes have none. */
        if (bytes) {
            if (!hed_memory_reaches(w, op->waitValue.address, bytes))
                return false;
        } else if (op->operation != CU_STREAM_MEM_OP_BARRIER &&
                   op->operation != CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES) {
            return false;
        }
    }
    return true;
}

/* Checks the memory of a texture or a surface. */
static bool
guard_resource(struct hed_worker *w, const CUDA_RESOURCE_DESC_v1 *d)
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
        /* The last row need not be as long as the pitch, but its first byte must be there. */
        return d->res.pitch2D.height > 0 &&
               !__builtin_mul_overflow(d->res.pitch2D.pitchInBytes, d->res.pitch2D.height - 1,
                                       &bytes) &&
               !__builtin_add_overflow(bytes, 1, &bytes) &&
               hed_memory_reaches(w, d->res.pitch2D.devPtr, bytes);
    default:
        return false;
    }
}

static bool
guard_copy(struct hed_worker *w, const CUDA_MEMCPY3D_v2 *c)
{
    return c && reaches_side(w, c, false) && reaches_side(w, c, true);
}

/* Heaps of kernels are device memory that needs no lease. A heap that is larger than all the memory
 * that the client could have is refused. */
static bool
guard_limit(struct hed_worker *w, CUlimit limit, size_t value)
{
    CUdevice device = 0;

    if (limit != CU_LIMIT_MALLOC_HEAP_SIZE && limit != CU_LIMIT_PRINTF_FIFO_SIZE)
        return true;
    if (w->no_memory || hed_worker_do(w, cuCtxGetDevice, .device = &device) != CUDA_SUCCESS)
        return true;
    return value <= hed_memory_obtainable(w, device);
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool
reaches_extents(struct hed_worker *w, enum hed_cuda_call id, const void *args)
{
    struct hed_extent extents[HED_CUDA_EXTENTS];
    const unsigned count = hed_cuda_extents(id, args, extents);

    for (unsigned i = 0; i < count; i++) {
        uint64_t bytes;

        if (!hed_extent_bytes(&extents[i], &bytes) ||
            (bytes && !hed_memory_reaches(w, extents[i].at, bytes)))
            return false;
    }
    return true;
}

#define GUARD(call, class, ...)                                \
    case HED_##call: {                                         \
        const struct hed_##call *a = args;                     \
                                                               \
        return result_of_check(guard_##class(w, __VA_ARGS__)); \
    }

CUresult
hed_memory_guard(struct hed_worker *w, enum hed_cuda_call id, const void *args)
{
    if (!(hed_cuda_info[id].flags & HED_CALL_TRAVEL))
        return CUDA_ERROR_NOT_SUPPORTED;
    switch ((int)id) {
        HED_CUDA_GUARD(GUARD)
    default:
        return result_of_check(reaches_extents(w, id, args));
    }
}
