/* Copies of planes and of arrays: each call is turned into the one description that copy.c
 * resolves. Calls without a version in their name are older forms with 32-bit sizes. If such a form
 * has a 32-bit device address, it cannot address any of our memory. */
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"

/* ---- a row of an array ----------------------------------------------------------------------- */

/* The two sides of a row; all calls use the same argument names. */
#define FROM_HOST .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = a->srcHost
#define FROM_DEVICE .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = a->srcDevice
#define FROM_ARRAY \
    .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = a->srcArray, .srcXInBytes = a->srcOffset
#define TO_HOST .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = a->dstHost
#define TO_DEVICE .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = a->dstDevice
#define TO_ARRAY \
    .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = a->dstArray, .dstXInBytes = a->dstOffset

/* A copy of one row. The further arguments say on which stream, and whether the caller waits. */
#define COPY_ROW(call, from, to, ...)                                                             \
    HED_SOFT(call)                                                                                \
    {                                                                                             \
        return hed_copy_put(                                                                      \
            self, &(struct hed_copy_call){                                                        \
                      .given = {from, to, .WidthInBytes = a->ByteCount, .Height = 1, .Depth = 1}, \
                      __VA_ARGS__});                                                              \
    }

COPY_ROW(cuMemcpyDtoA_v2, FROM_DEVICE, TO_ARRAY, .ptds = a->ptds, .waits = true)
COPY_ROW(cuMemcpyAtoD_v2, FROM_ARRAY, TO_DEVICE, .ptds = a->ptds, .waits = true)
COPY_ROW(cuMemcpyHtoA_v2, FROM_HOST, TO_ARRAY, .ptds = a->ptds, .waits = true)
COPY_ROW(cuMemcpyHtoA, FROM_HOST, TO_ARRAY, .waits = true)
COPY_ROW(cuMemcpyAtoH_v2, FROM_ARRAY, TO_HOST, .ptds = a->ptds, .waits = true)
COPY_ROW(cuMemcpyAtoH, FROM_ARRAY, TO_HOST, .waits = true)
COPY_ROW(cuMemcpyAtoA_v2, FROM_ARRAY, TO_ARRAY, .ptds = a->ptds, .waits = true)
COPY_ROW(cuMemcpyAtoA, FROM_ARRAY, TO_ARRAY, .waits = true)
COPY_ROW(cuMemcpyHtoAAsync_v2, FROM_HOST, TO_ARRAY, .ptds = a->ptds, .stream = a->hStream)
COPY_ROW(cuMemcpyHtoAAsync, FROM_HOST, TO_ARRAY, .stream = a->hStream)
COPY_ROW(cuMemcpyAtoHAsync_v2, FROM_ARRAY, TO_HOST, .ptds = a->ptds, .stream = a->hStream)
COPY_ROW(cuMemcpyAtoHAsync, FROM_ARRAY, TO_HOST, .stream = a->hStream)

/* ---- planes and boxes ------------------------------------------------------------------------ */

/* All forms have fields with the same names. */
#define PLANE(p)                                             \
    ((CUDA_MEMCPY3D_v2){.srcXInBytes = (p)->srcXInBytes,     \
                        .srcY = (p)->srcY,                   \
                        .srcMemoryType = (p)->srcMemoryType, \
                        .srcHost = (p)->srcHost,             \
                        .srcDevice = (p)->srcDevice,         \
                        .srcArray = (p)->srcArray,           \
                        .srcPitch = (p)->srcPitch,           \
                        .dstXInBytes = (p)->dstXInBytes,     \
                        .dstY = (p)->dstY,                   \
                        .dstMemoryType = (p)->dstMemoryType, \
                        .dstHost = (p)->dstHost,             \
                        .dstDevice = (p)->dstDevice,         \
                        .dstArray = (p)->dstArray,           \
                        .dstPitch = (p)->dstPitch,           \
                        .WidthInBytes = (p)->WidthInBytes,   \
                        .Height = (p)->Height,               \
                        .Depth = 1})

#define BOX(p)                                               \
    ((CUDA_MEMCPY3D_v2){.srcXInBytes = (p)->srcXInBytes,     \
                        .srcY = (p)->srcY,                   \
                        .srcZ = (p)->srcZ,                   \
                        .srcLOD = (p)->srcLOD,               \
                        .srcMemoryType = (p)->srcMemoryType, \
                        .srcHost = (p)->srcHost,             \
                        .srcDevice = (p)->srcDevice,         \
                        .srcArray = (p)->srcArray,           \
                        .srcPitch = (p)->srcPitch,           \
                        .srcHeight = (p)->srcHeight,         \
                        .dstXInBytes = (p)->dstXInBytes,     \
                        .dstY = (p)->dstY,                   \
                        .dstZ = (p)->dstZ,                   \
                        .dstLOD = (p)->dstLOD,               \
                        .dstMemoryType = (p)->dstMemoryType, \
                        .dstHost = (p)->dstHost,             \
                        .dstDevice = (p)->dstDevice,         \
                        .dstArray = (p)->dstArray,           \
                        .dstPitch = (p)->dstPitch,           \
                        .dstHeight = (p)->dstHeight,         \
                        .WidthInBytes = (p)->WidthInBytes,   \
                        .Height = (p)->Height,               \
                        .Depth = (p)->Depth})

/* A copy described by a struct. The further arguments say on which stream, and whether the caller
 * waits. */
#define COPY(call, shape, ...)                                                                     \
    HED_SOFT(call)                                                                                 \
    {                                                                                              \
        if (!a->pCopy)                                                                             \
            return CUDA_ERROR_INVALID_VALUE;                                                       \
        return hed_copy_put(self, &(struct hed_copy_call){.given = shape(a->pCopy), __VA_ARGS__}); \
    }

COPY(cuMemcpy2D_v2, PLANE, .ptds = a->ptds, .waits = true)
COPY(cuMemcpy2D, PLANE, .waits = true)
COPY(cuMemcpy2DUnaligned_v2, PLANE, .ptds = a->ptds, .waits = true)
COPY(cuMemcpy2DUnaligned, PLANE, .waits = true)
COPY(cuMemcpy2DAsync_v2, PLANE, .ptds = a->ptds, .stream = a->hStream)
COPY(cuMemcpy2DAsync, PLANE, .stream = a->hStream)
COPY(cuMemcpy3D_v2, BOX, .ptds = a->ptds, .waits = true)
COPY(cuMemcpy3D, BOX, .waits = true)
COPY(cuMemcpy3DAsync_v2, BOX, .ptds = a->ptds, .stream = a->hStream)
COPY(cuMemcpy3DAsync, BOX, .stream = a->hStream)

static bool
are_contexts(struct hed_layer *self, const CUDA_MEMCPY3D_PEER_v1 *p)
{
    struct hed_driver *d = hed_driver_of(self);

    /* NULL stands for the current context; host memory has none. */
    return (!p->srcContext || hed_context_find(d, p->srcContext)) &&
           (!p->dstContext || hed_context_find(d, p->dstContext));
}

CUresult
hed_soft_cuMemcpy3DPeer(struct hed_layer *self, struct hed_cuMemcpy3DPeer *a)
{
    if (!a->pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    if (!are_contexts(self, a->pCopy))
        return CUDA_ERROR_INVALID_CONTEXT;
    return hed_copy_put(
        self, &(struct hed_copy_call){.given = BOX(a->pCopy), .ptds = a->ptds, .waits = true});
}

CUresult
hed_soft_cuMemcpy3DPeerAsync(struct hed_layer *self, struct hed_cuMemcpy3DPeerAsync *a)
{
    if (!a->pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    if (!are_contexts(self, a->pCopy))
        return CUDA_ERROR_INVALID_CONTEXT;
    return hed_copy_put(self, &(struct hed_copy_call){
                                  .given = BOX(a->pCopy), .ptds = a->ptds, .stream = a->hStream});
}
