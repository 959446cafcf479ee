/* Copies of planes and of arrays: the calls, each turned into the one description that copy.c
 * resolves. Those whose name has no version are older forms with 32-bit sizes; where such a form
 * names device memory by a 32-bit address it cannot name any of ours.
 */
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"

#define ROW .Height = 1, .Depth = 1

static CUresult
put(struct hed_layer *self, CUDA_MEMCPY3D_v2 given, bool ptds)
{
    return hed_copy_put(self,
                        &(struct hed_copy_order){.given = given, .ptds = ptds, .waits = true});
}

static CUresult
put_async(struct hed_layer *self, CUDA_MEMCPY3D_v2 given, CUstream stream, bool ptds)
{
    return hed_copy_put(self,
                        &(struct hed_copy_order){.given = given, .stream = stream, .ptds = ptds});
}

/* ---- a row of an array ----------------------------------------------------------------------- */

CUresult
hed_soft_cuMemcpyDtoA_v2(struct hed_layer *self, struct hed_cuMemcpyDtoA_v2 *a)
{
    return put(self,
               (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                  .srcDevice = a->srcDevice,
                                  .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                  .dstArray = a->dstArray,
                                  .dstXInBytes = a->dstOffset,
                                  .WidthInBytes = a->ByteCount,
                                  ROW},
               a->ptds);
}

CUresult
hed_soft_cuMemcpyAtoD_v2(struct hed_layer *self, struct hed_cuMemcpyAtoD_v2 *a)
{
    return put(self,
               (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                  .srcArray = a->srcArray,
                                  .srcXInBytes = a->srcOffset,
                                  .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                  .dstDevice = a->dstDevice,
                                  .WidthInBytes = a->ByteCount,
                                  ROW},
               a->ptds);
}

CUresult
hed_soft_cuMemcpyHtoA_v2(struct hed_layer *self, struct hed_cuMemcpyHtoA_v2 *a)
{
    return put(self,
               (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_HOST,
                                  .srcHost = a->srcHost,
                                  .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                  .dstArray = a->dstArray,
                                  .dstXInBytes = a->dstOffset,
                                  .WidthInBytes = a->ByteCount,
                                  ROW},
               a->ptds);
}

CUresult
hed_soft_cuMemcpyHtoA(struct hed_layer *self, struct hed_cuMemcpyHtoA *a)
{
    return put(self,
               (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_HOST,
                                  .srcHost = a->srcHost,
                                  .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                  .dstArray = a->dstArray,
                                  .dstXInBytes = a->dstOffset,
                                  .WidthInBytes = a->ByteCount,
                                  ROW},
               false);
}

CUresult
hed_soft_cuMemcpyAtoH_v2(struct hed_layer *self, struct hed_cuMemcpyAtoH_v2 *a)
{
    return put(self,
               (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                  .srcArray = a->srcArray,
                                  .srcXInBytes = a->srcOffset,
                                  .dstMemoryType = CU_MEMORYTYPE_HOST,
                                  .dstHost = a->dstHost,
                                  .WidthInBytes = a->ByteCount,
                                  ROW},
               a->ptds);
}

CUresult
hed_soft_cuMemcpyAtoH(struct hed_layer *self, struct hed_cuMemcpyAtoH *a)
{
    return put(self,
               (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                  .srcArray = a->srcArray,
                                  .srcXInBytes = a->srcOffset,
                                  .dstMemoryType = CU_MEMORYTYPE_HOST,
                                  .dstHost = a->dstHost,
                                  .WidthInBytes = a->ByteCount,
                                  ROW},
               false);
}

CUresult
hed_soft_cuMemcpyAtoA_v2(struct hed_layer *self, struct hed_cuMemcpyAtoA_v2 *a)
{
    return put(self,
               (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                  .srcArray = a->srcArray,
                                  .srcXInBytes = a->srcOffset,
                                  .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                  .dstArray = a->dstArray,
                                  .dstXInBytes = a->dstOffset,
                                  .WidthInBytes = a->ByteCount,
                                  ROW},
               a->ptds);
}

CUresult
hed_soft_cuMemcpyAtoA(struct hed_layer *self, struct hed_cuMemcpyAtoA *a)
{
    return put(self,
               (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                  .srcArray = a->srcArray,
                                  .srcXInBytes = a->srcOffset,
                                  .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                  .dstArray = a->dstArray,
                                  .dstXInBytes = a->dstOffset,
                                  .WidthInBytes = a->ByteCount,
                                  ROW},
               false);
}

CUresult
hed_soft_cuMemcpyHtoAAsync_v2(struct hed_layer *self, struct hed_cuMemcpyHtoAAsync_v2 *a)
{
    return put_async(self,
                     (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_HOST,
                                        .srcHost = a->srcHost,
                                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                        .dstArray = a->dstArray,
                                        .dstXInBytes = a->dstOffset,
                                        .WidthInBytes = a->ByteCount,
                                        ROW},
                     a->hStream, a->ptds);
}

CUresult
hed_soft_cuMemcpyHtoAAsync(struct hed_layer *self, struct hed_cuMemcpyHtoAAsync *a)
{
    return put_async(self,
                     (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_HOST,
                                        .srcHost = a->srcHost,
                                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                        .dstArray = a->dstArray,
                                        .dstXInBytes = a->dstOffset,
                                        .WidthInBytes = a->ByteCount,
                                        ROW},
                     a->hStream, false);
}

CUresult
hed_soft_cuMemcpyAtoHAsync_v2(struct hed_layer *self, struct hed_cuMemcpyAtoHAsync_v2 *a)
{
    return put_async(self,
                     (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                        .srcArray = a->srcArray,
                                        .srcXInBytes = a->srcOffset,
                                        .dstMemoryType = CU_MEMORYTYPE_HOST,
                                        .dstHost = a->dstHost,
                                        .WidthInBytes = a->ByteCount,
                                        ROW},
                     a->hStream, a->ptds);
}

CUresult
hed_soft_cuMemcpyAtoHAsync(struct hed_layer *self, struct hed_cuMemcpyAtoHAsync *a)
{
    return put_async(self,
                     (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                        .srcArray = a->srcArray,
                                        .srcXInBytes = a->srcOffset,
                                        .dstMemoryType = CU_MEMORYTYPE_HOST,
                                        .dstHost = a->dstHost,
                                        .WidthInBytes = a->ByteCount,
                                        ROW},
                     a->hStream, false);
}

/* ---- planes and boxes ------------------------------------------------------------------------ */

/* All forms have fields of the same names. */
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

CUresult
hed_soft_cuMemcpy2D_v2(struct hed_layer *self, struct hed_cuMemcpy2D_v2 *a)
{
    if (!a->pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    return hed_copy_put(
        self, &(struct hed_copy_order){.given = PLANE(a->pCopy), .ptds = a->ptds, .waits = true});
}

CUresult
hed_soft_cuMemcpy2D(struct hed_layer *self, struct hed_cuMemcpy2D *a)
{
    if (!a->pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    return hed_copy_put(
        self, &(struct hed_copy_order){.given = PLANE(a->pCopy), .ptds = false, .waits = true});
}

CUresult
hed_soft_cuMemcpy2DUnaligned_v2(struct hed_layer *self, struct hed_cuMemcpy2DUnaligned_v2 *a)
{
    if (!a->pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    return hed_copy_put(
        self, &(struct hed_copy_order){.given = PLANE(a->pCopy), .ptds = a->ptds, .waits = true});
}

CUresult
hed_soft_cuMemcpy2DUnaligned(struct hed_layer *self, struct hed_cuMemcpy2DUnaligned *a)
{
    if (!a->pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    return hed_copy_put(
        self, &(struct hed_copy_order){.given = PLANE(a->pCopy), .ptds = false, .waits = true});
}

CUresult
hed_soft_cuMemcpy2DAsync_v2(struct hed_layer *self, struct hed_cuMemcpy2DAsync_v2 *a)
{
    if (!a->pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    return hed_copy_put(self, &(struct hed_copy_order){
                                  .given = PLANE(a->pCopy), .ptds = a->ptds, .stream = a->hStream});
}

CUresult
hed_soft_cuMemcpy2DAsync(struct hed_layer *self, struct hed_cuMemcpy2DAsync *a)
{
    if (!a->pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    return hed_copy_put(self, &(struct hed_copy_order){
                                  .given = PLANE(a->pCopy), .ptds = false, .stream = a->hStream});
}

CUresult
hed_soft_cuMemcpy3D_v2(struct hed_layer *self, struct hed_cuMemcpy3D_v2 *a)
{
    if (!a->pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    return hed_copy_put(
        self, &(struct hed_copy_order){.given = BOX(a->pCopy), .ptds = a->ptds, .waits = true});
}

CUresult
hed_soft_cuMemcpy3D(struct hed_layer *self, struct hed_cuMemcpy3D *a)
{
    if (!a->pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    return hed_copy_put(
        self, &(struct hed_copy_order){.given = BOX(a->pCopy), .ptds = false, .waits = true});
}

CUresult
hed_soft_cuMemcpy3DAsync_v2(struct hed_layer *self, struct hed_cuMemcpy3DAsync_v2 *a)
{
    if (!a->pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    return hed_copy_put(self, &(struct hed_copy_order){
                                  .given = BOX(a->pCopy), .ptds = a->ptds, .stream = a->hStream});
}

CUresult
hed_soft_cuMemcpy3DAsync(struct hed_layer *self, struct hed_cuMemcpy3DAsync *a)
{
    if (!a->pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    return hed_copy_put(self, &(struct hed_copy_order){
                                  .given = BOX(a->pCopy), .ptds = false, .stream = a->hStream});
}

static bool
are_contexts(struct hed_layer *self, const CUDA_MEMCPY3D_PEER_v1 *p)
{
    struct hed_driver *d = hed_driver_of(self);

    /* NULL stands for the current one; memory of the host has none. */
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
        self, &(struct hed_copy_order){.given = BOX(a->pCopy), .ptds = a->ptds, .waits = true});
}

CUresult
hed_soft_cuMemcpy3DPeerAsync(struct hed_layer *self, struct hed_cuMemcpy3DPeerAsync *a)
{
    if (!a->pCopy)
        return CUDA_ERROR_INVALID_VALUE;
    if (!are_contexts(self, a->pCopy))
        return CUDA_ERROR_INVALID_CONTEXT;
    return hed_copy_put(self, &(struct hed_copy_order){
                                  .given = BOX(a->pCopy), .ptds = a->ptds, .stream = a->hStream});
}
