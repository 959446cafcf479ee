/* Calls that are in one area's table but implemented in several files, and what those files
 * share. */
#pragma once

#include "core/layer.h"
#include "driver/context/context.h"
#include "driver/parts.h"

/* Flags of the API that are macros in NVIDIA's header. */
#define HED_MEMHOSTALLOC_ALL \
    (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define HED_MEMHOST_DEVICEMAP 0x02u
#define HED_MEMHOSTREGISTER_ALL 0x0fu
#define HED_MEMHOSTREGISTER_IOMEMORY 0x04u

struct hed_allocation;

#define HED_SOFT(call) CUresult hed_soft_##call(struct hed_layer *self, struct hed_##call *a)

/* managed.c */
HED_SOFT(cuMemAllocManaged);
HED_SOFT(cuMemAdvise);
HED_SOFT(cuMemAdvise_v2);
HED_SOFT(cuMemPrefetchAsync);
HED_SOFT(cuMemPrefetchAsync_v2);
HED_SOFT(cuMemPrefetchBatchAsync);
HED_SOFT(cuMemDiscardBatchAsync);
HED_SOFT(cuMemDiscardAndPrefetchBatchAsync);
HED_SOFT(cuMemRangeGetAttribute);
HED_SOFT(cuMemRangeGetAttributes);

/* pointer.c */
HED_SOFT(cuPointerGetAttribute);
HED_SOFT(cuPointerGetAttributes);
HED_SOFT(cuPointerSetAttribute);

/* copy_array.c */
HED_SOFT(cuMemcpyDtoA_v2);
HED_SOFT(cuMemcpyAtoD_v2);
HED_SOFT(cuMemcpyHtoA);
HED_SOFT(cuMemcpyHtoA_v2);
HED_SOFT(cuMemcpyAtoH);
HED_SOFT(cuMemcpyAtoH_v2);
HED_SOFT(cuMemcpyAtoA);
HED_SOFT(cuMemcpyAtoA_v2);
HED_SOFT(cuMemcpyHtoAAsync);
HED_SOFT(cuMemcpyHtoAAsync_v2);
HED_SOFT(cuMemcpyAtoHAsync);
HED_SOFT(cuMemcpyAtoHAsync_v2);
HED_SOFT(cuMemcpy2D);
HED_SOFT(cuMemcpy2D_v2);
HED_SOFT(cuMemcpy2DUnaligned);
HED_SOFT(cuMemcpy2DUnaligned_v2);
HED_SOFT(cuMemcpy2DAsync);
HED_SOFT(cuMemcpy2DAsync_v2);
HED_SOFT(cuMemcpy3D);
HED_SOFT(cuMemcpy3D_v2);
HED_SOFT(cuMemcpy3DAsync);
HED_SOFT(cuMemcpy3DAsync_v2);
HED_SOFT(cuMemcpy3DPeer);
HED_SOFT(cuMemcpy3DPeerAsync);

/* copy_batch.c */
HED_SOFT(cuMemcpyBatchAsync);
HED_SOFT(cuMemcpyBatchAsync_v2);
HED_SOFT(cuMemcpy3DBatchAsync);
HED_SOFT(cuMemcpy3DBatchAsync_v2);

/* fill.c */
HED_SOFT(cuMemsetD8_v2);
HED_SOFT(cuMemsetD16_v2);
HED_SOFT(cuMemsetD32_v2);
HED_SOFT(cuMemsetD2D8_v2);
HED_SOFT(cuMemsetD2D16_v2);
HED_SOFT(cuMemsetD2D32_v2);
HED_SOFT(cuMemsetD8Async);
HED_SOFT(cuMemsetD16Async);
HED_SOFT(cuMemsetD32Async);
HED_SOFT(cuMemsetD2D8Async);
HED_SOFT(cuMemsetD2D16Async);
HED_SOFT(cuMemsetD2D32Async);

/* pool.c */
HED_SOFT(cuMemAllocAsync);
HED_SOFT(cuMemAllocFromPoolAsync);
HED_SOFT(cuMemFreeAsync);

/* mipmap.c */
HED_SOFT(cuMipmappedArrayCreate);
HED_SOFT(cuMipmappedArrayGetLevel);
HED_SOFT(cuMipmappedArrayDestroy);
HED_SOFT(cuMipmappedArrayGetMemoryRequirements);
HED_SOFT(cuMipmappedArrayGetSparseProperties);

/* physical.c */
HED_SOFT(cuMemCreate);
HED_SOFT(cuMemRelease);
HED_SOFT(cuMemGetAllocationGranularity);
HED_SOFT(cuMemGetAllocationPropertiesFromHandle);
HED_SOFT(cuMemExportToShareableHandle);
HED_SOFT(cuMemImportFromShareableHandle);

/* texture.c */
HED_SOFT(cuTexObjectCreate);
HED_SOFT(cuTexObjectDestroy);
HED_SOFT(cuTexObjectGetResourceDesc);
HED_SOFT(cuTexObjectGetTextureDesc);
HED_SOFT(cuTexObjectGetResourceViewDesc);
HED_SOFT(cuSurfObjectCreate);
HED_SOFT(cuSurfObjectDestroy);
HED_SOFT(cuSurfObjectGetResourceDesc);

/* A copy on a stream. */
struct hed_copy_call {
    CUDA_MEMCPY3D_v2 given;
    CUstream stream;
    bool ptds;
    bool waits; /* the call returns when the copy is done */
};

/* Checks the copy and puts it on its stream. */
CUresult hed_copy_put(struct hed_layer *self, const struct hed_copy_call *o);

/* n bytes in one row; the types are CU_MEMORYTYPE_HOST, DEVICE or UNIFIED. */
CUDA_MEMCPY3D_v2 hed_copy_row(CUmemorytype to_type, uint64_t to, CUmemorytype from_type,
                              uint64_t from, size_t n);

/* For calls that need no context: NOT_INITIALIZED, or success. */
static inline CUresult
hed_memory_initialized(struct hed_layer *self)
{
    /* Relaxed: a program that uses the driver from several threads orders cuInit itself. */
    return atomic_load_explicit(&hed_driver_of(self)->initialized, memory_order_relaxed)
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_INITIALIZED;
}

/* The current context, for a call that is forbidden during a stream capture: as hed_current(), or
 * STREAM_CAPTURE_UNSUPPORTED. */
CUresult hed_memory_begin(struct hed_layer *self, struct hed_context **out);

/* The same for a call that frees something, for which no context need be current: *out is then
 * NULL, and hed_memory_owner() finds the context to free it in. */
CUresult hed_memory_begin_free(struct hed_layer *self, struct hed_context **out);

/* The context that an allocation belongs to, or else any of its device; NULL if there is none.
 * Valid for the length of the call. */
struct hed_context *hed_memory_owner(struct hed_driver *d, const struct hed_allocation *a);

/* Waits until no work on a stream can use an allocation any more. */
CUresult hed_memory_quiesce(struct hed_context *c, const struct hed_allocation *a);
