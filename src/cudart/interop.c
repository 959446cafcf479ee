/* Memory and semaphores of other APIs. Since CUDA 13 the runtime's descriptions are the driver's;
 * before, they lack the room that the driver's keep for later members. */
#include <stdlib.h>
#include <string.h>

#include "cudart/channel.h"
#include "gen/cudart_calls.h"

/* ---- memory ---------------------------------------------------------------------------------- */

_Static_assert(sizeof(cudaExternalMemoryHandleDesc) == sizeof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1),
               "one layout");
_Static_assert(sizeof(cudaExternalMemoryBufferDesc) == sizeof(CUDA_EXTERNAL_MEMORY_BUFFER_DESC_v1),
               "one layout");
_Static_assert(sizeof(cudaExternalSemaphoreHandleDesc) ==
                   sizeof(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_v1),
               "one layout");
_Static_assert(sizeof(cudaExternalSemaphoreSignalParams) ==
                   sizeof(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1),
               "one layout");
_Static_assert(sizeof(cudaExternalSemaphoreWaitParams) ==
                   sizeof(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1),
               "one layout");

cudaError_t
hed_rt_cudaImportExternalMemory(const struct hed_rt_driver *cu, cudaExternalMemory_t *extMem_out,
                                const cudaExternalMemoryHandleDesc *memHandleDesc)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1 desc;

    if (!memHandleDesc)
        return cudaErrorInvalidValue;
    memcpy(&desc, memHandleDesc, sizeof desc);
    return (cudaError_t)cu->cuImportExternalMemory((CUexternalMemory *)extMem_out, &desc);
}

cudaError_t
hed_rt_cudaImportExternalMemory_12(const struct hed_rt_driver *cu, cudaExternalMemory_t *extMem_out,
                                   const cudaExternalMemoryHandleDesc_12 *memHandleDesc)
{
    cudaExternalMemoryHandleDesc desc = {0};

    if (!memHandleDesc)
        return cudaErrorInvalidValue;
    memcpy(&desc, memHandleDesc, offsetof(cudaExternalMemoryHandleDesc, reserved));
    return hed_rt_cudaImportExternalMemory(cu, extMem_out, &desc);
}

cudaError_t
hed_rt_cudaExternalMemoryGetMappedBuffer(const struct hed_rt_driver *cu, void **devPtr,
                                         cudaExternalMemory_t extMem,
                                         const cudaExternalMemoryBufferDesc *bufferDesc)
{
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC_v1 desc;

    if (!bufferDesc)
        return cudaErrorInvalidValue;
    memcpy(&desc, bufferDesc, sizeof desc);
    return (cudaError_t)cu->cuExternalMemoryGetMappedBuffer((CUdeviceptr *)devPtr,
                                                            (CUexternalMemory)extMem, &desc);
}

cudaError_t
hed_rt_cudaExternalMemoryGetMappedBuffer_12(const struct hed_rt_driver *cu, void **devPtr,
                                            cudaExternalMemory_t extMem,
                                            const cudaExternalMemoryBufferDesc_12 *bufferDesc)
{
    cudaExternalMemoryBufferDesc desc = {0};

    if (!bufferDesc)
        return cudaErrorInvalidValue;
    desc.offset = bufferDesc->offset;
    desc.size = bufferDesc->size;
    desc.flags = bufferDesc->flags;
    return hed_rt_cudaExternalMemoryGetMappedBuffer(cu, devPtr, extMem, &desc);
}

/* Both layouts of the description begin alike. */
cudaError_t
hed_rt_cudaExternalMemoryGetMappedMipmappedArray_12(
    const struct hed_rt_driver *cu, cudaMipmappedArray_t *mipmap, cudaExternalMemory_t extMem,
    const cudaExternalMemoryMipmappedArrayDesc_12 *mipmapDesc)
{
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_v1 desc = {0};
    struct hed_rt_texel texel;
    cudaError_t r;

    if (!mipmapDesc)
        return cudaErrorInvalidValue;
    r = hed_rt_texel(&mipmapDesc->formatDesc, &texel);
    if (r != cudaSuccess)
        return r;
    desc.offset = mipmapDesc->offset;
    desc.arrayDesc.Width = mipmapDesc->extent.width;
    desc.arrayDesc.Height = mipmapDesc->extent.height;
    desc.arrayDesc.Depth = mipmapDesc->extent.depth;
    desc.arrayDesc.Format = texel.format;
    desc.arrayDesc.NumChannels = texel.channels;
    desc.arrayDesc.Flags = mipmapDesc->flags;
    desc.numLevels = mipmapDesc->numLevels;
    return (cudaError_t)cu->cuExternalMemoryGetMappedMipmappedArray(
        (CUmipmappedArray *)mipmap, (CUexternalMemory)extMem, &desc);
}

cudaError_t
hed_rt_cudaExternalMemoryGetMappedMipmappedArray(
    const struct hed_rt_driver *cu, cudaMipmappedArray_t *mipmap, cudaExternalMemory_t extMem,
    const cudaExternalMemoryMipmappedArrayDesc *mipmapDesc)
{
    cudaExternalMemoryMipmappedArrayDesc_12 desc;

    if (!mipmapDesc)
        return cudaErrorInvalidValue;
    memcpy(&desc, mipmapDesc, sizeof desc);
    return hed_rt_cudaExternalMemoryGetMappedMipmappedArray_12(cu, mipmap, extMem, &desc);
}

/* ---- semaphores ------------------------------------------------------------------------------ */

cudaError_t
hed_rt_cudaImportExternalSemaphore(const struct hed_rt_driver *cu,
                                   cudaExternalSemaphore_t *extSem_out,
                                   const cudaExternalSemaphoreHandleDesc *semHandleDesc)
{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_v1 desc;

    if (!semHandleDesc)
        return cudaErrorInvalidValue;
    memcpy(&desc, semHandleDesc, sizeof desc);
    return (cudaError_t)cu->cuImportExternalSemaphore((CUexternalSemaphore *)extSem_out, &desc);
}

cudaError_t
hed_rt_cudaImportExternalSemaphore_12(const struct hed_rt_driver *cu,
                                      cudaExternalSemaphore_t *extSem_out,
                                      const cudaExternalSemaphoreHandleDesc_12 *semHandleDesc)
{
    cudaExternalSemaphoreHandleDesc desc = {0};

    if (!semHandleDesc)
        return cudaErrorInvalidValue;
    memcpy(&desc, semHandleDesc, offsetof(cudaExternalSemaphoreHandleDesc, reserved));
    return hed_rt_cudaImportExternalSemaphore(cu, extSem_out, &desc);
}

/* Until CUDA 12, programs that were compiled before 11.2 call these; later ones the _v2 calls,
 * whose parameters are the driver's. */
cudaError_t
hed_rt_cudaSignalExternalSemaphoresAsync_12(const struct hed_rt_driver *cu,
                                            const cudaExternalSemaphore_t *extSemArray,
                                            const cudaExternalSemaphoreSignalParams_v1 *paramsArray,
                                            unsigned int numExtSems, cudaStream_t stream)
{
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1 *params;
    CUresult r;

    if (!paramsArray)
        return cudaErrorInvalidValue;
    params = calloc((size_t)numExtSems + 1, sizeof *params);
    if (!params)
        return cudaErrorMemoryAllocation;
    for (unsigned i = 0; i < numExtSems; i++) {
        params[i].params.fence.value = paramsArray[i].params.fence.value;
        params[i].params.nvSciSync.reserved = paramsArray[i].params.nvSciSync.reserved;
        params[i].params.keyedMutex.key = paramsArray[i].params.keyedMutex.key;
        params[i].flags = paramsArray[i].flags;
    }
    r = cu->cuSignalExternalSemaphoresAsync((const CUexternalSemaphore *)extSemArray, params,
                                            numExtSems, (CUstream)stream);
    free(params);
    return (cudaError_t)r;
}

cudaError_t
hed_rt_cudaWaitExternalSemaphoresAsync_12(const struct hed_rt_driver *cu,
                                          const cudaExternalSemaphore_t *extSemArray,
                                          const cudaExternalSemaphoreWaitParams_v1 *paramsArray,
                                          unsigned int numExtSems, cudaStream_t stream)
{
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1 *params;
    CUresult r;

    if (!paramsArray)
        return cudaErrorInvalidValue;
    params = calloc((size_t)numExtSems + 1, sizeof *params);
    if (!params)
        return cudaErrorMemoryAllocation;
    for (unsigned i = 0; i < numExtSems; i++) {
        params[i].params.fence.value = paramsArray[i].params.fence.value;
        params[i].params.nvSciSync.reserved = paramsArray[i].params.nvSciSync.reserved;
        params[i].params.keyedMutex.key = paramsArray[i].params.keyedMutex.key;
        params[i].params.keyedMutex.timeoutMs = paramsArray[i].params.keyedMutex.timeoutMs;
        params[i].flags = paramsArray[i].flags;
    }
    r = cu->cuWaitExternalSemaphoresAsync((const CUexternalSemaphore *)extSemArray, params,
                                          numExtSems, (CUstream)stream);
    free(params);
    return (cudaError_t)r;
}
