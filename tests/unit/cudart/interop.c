/* Tests of cudart/interop: descriptions of before CUDA 13 reach the driver, with zeros behind. */
#include "harness/unit.h"

#include <string.h>

#include "cudart/front.h"
#include "gen/cudart_calls.h"

const int hed_rt_version = 12090;

static struct hed_rt_driver *const cu = &hed_rt_legacy;
static CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1 memory;
static CUDA_EXTERNAL_MEMORY_BUFFER_DESC_v1 buffer;
static CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_v1 mipmap;
static CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1 waits[2];

static CUresult
play_import(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1 *desc)
{
    memory = *desc;
    *out = (CUexternalMemory)(uintptr_t)0x10;
    return CUDA_SUCCESS;
}

static CUresult
play_buffer(CUdeviceptr *out, CUexternalMemory handle,
            const CUDA_EXTERNAL_MEMORY_BUFFER_DESC_v1 *desc)
{
    buffer = *desc;
    *out = (uintptr_t)handle;
    return CUDA_SUCCESS;
}

static CUresult
play_mipmap(CUmipmappedArray *out, CUexternalMemory handle,
            const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_v1 *desc)
{
    mipmap = *desc;
    *out = (CUmipmappedArray)handle;
    return CUDA_SUCCESS;
}

static CUresult
play_wait(const CUexternalSemaphore *semaphores,
          const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1 *params, unsigned count, CUstream stream)
{
    memcpy(waits, params, count * sizeof *waits);
    return CUDA_SUCCESS;
}

static bool
all_zero(const void *from, size_t size)
{
    const unsigned char *p = from;

    while (size > 0 && p[size - 1] == 0)
        size--;
    return size == 0;
}

static void
external_memory_of_old_programs(void **state)
{
    /* What follows the description in the program's memory is not a part of it. */
    struct {
        cudaExternalMemoryHandleDesc_12 desc;
        char behind[64];
    } given;
    cudaExternalMemory_t handle = NULL;

    atomic_store(&cu->cuImportExternalMemory, play_import);
    memset(&given, 0xff, sizeof given);
    given.desc.type = 1;
    given.desc.handle.fd = 5;
    given.desc.size = 4096;
    given.desc.flags = 1;
    assert_int_equal(hed_rt_cudaImportExternalMemory_12(cu, &handle, &given.desc), cudaSuccess);
    assert_ptr_equal(handle, (void *)(uintptr_t)0x10);
    assert_int_equal(memory.type, 1);
    assert_int_equal(memory.handle.fd, 5);
    assert_int_equal(memory.size, 4096);
    assert_int_equal(memory.flags, 1);
    assert_true(all_zero(memory.reserved, sizeof memory.reserved));
    assert_int_equal(hed_rt_cudaImportExternalMemory_12(cu, &handle, NULL), cudaErrorInvalidValue);
}

static void
external_buffers_and_mipmaps(void **state)
{
    const cudaExternalMemoryBufferDesc_12 range = {.offset = 64, .size = 128, .flags = 0};
    const cudaExternalMemoryMipmappedArrayDesc_12 levels = {
        .offset = 64,
        .formatDesc = {8, 8, 0, 0, cudaChannelFormatKindUnsigned},
        .extent = {16, 8, 4},
        .flags = 2,
        .numLevels = 3,
    };
    cudaExternalMemory_t handle = (cudaExternalMemory_t)(uintptr_t)0x20;
    cudaMipmappedArray_t array = NULL;
    void *address = NULL;

    atomic_store(&cu->cuExternalMemoryGetMappedBuffer, play_buffer);
    atomic_store(&cu->cuExternalMemoryGetMappedMipmappedArray, play_mipmap);
    assert_int_equal(hed_rt_cudaExternalMemoryGetMappedBuffer_12(cu, &address, handle, &range),
                     cudaSuccess);
    assert_int_equal(buffer.offset, 64);
    assert_int_equal(buffer.size, 128);
    assert_true(all_zero(buffer.reserved, sizeof buffer.reserved));
    assert_int_equal(
        hed_rt_cudaExternalMemoryGetMappedMipmappedArray_12(cu, &array, handle, &levels),
        cudaSuccess);
    assert_int_equal(mipmap.offset, 64);
    assert_int_equal(mipmap.numLevels, 3);
    assert_int_equal(mipmap.arrayDesc.Depth, 4);
    assert_int_equal(mipmap.arrayDesc.Format, CU_AD_FORMAT_UNSIGNED_INT8);
    assert_int_equal(mipmap.arrayDesc.NumChannels, 2);
    assert_int_equal(mipmap.arrayDesc.Flags, 2);
}

static void
external_semaphores_of_old_programs(void **state)
{
    const cudaExternalSemaphoreWaitParams_v1 params[2] = {
        {.params = {.fence = {1}, .nvSciSync = {.reserved = 2}, .keyedMutex = {3, 4}}, .flags = 5},
        {.params = {.fence = {6}}},
    };
    const cudaExternalSemaphore_t handles[2] = {NULL, NULL};

    atomic_store(&cu->cuWaitExternalSemaphoresAsync, play_wait);
    assert_int_equal(hed_rt_cudaWaitExternalSemaphoresAsync_12(cu, handles, params, 2, NULL),
                     cudaSuccess);
    assert_int_equal(waits[0].params.fence.value, 1);
    assert_int_equal(waits[0].params.nvSciSync.reserved, 2);
    assert_int_equal(waits[0].params.keyedMutex.key, 3);
    assert_int_equal(waits[0].params.keyedMutex.timeoutMs, 4);
    assert_int_equal(waits[0].flags, 5);
    assert_int_equal(waits[1].params.fence.value, 6);
    assert_int_equal(hed_rt_cudaWaitExternalSemaphoresAsync_12(cu, handles, NULL, 2, NULL),
                     cudaErrorInvalidValue);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(external_memory_of_old_programs),
    cmocka_unit_test(external_buffers_and_mipmaps),
    cmocka_unit_test(external_semaphores_of_old_programs),
};

HED_UNIT_MAIN(tests)
