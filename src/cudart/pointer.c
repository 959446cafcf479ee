/* What a pointer is. The struct that says so has changed with CUDA 10, 11 and 13. */
#include <stdint.h>

#include "cudart/driver.h"
#include "gen/cudart_calls.h"

#define NO_DEVICE (-2) /* cudaInvalidDeviceId */

/* What the driver knows. */
struct pointer {
    CUmemorytype type; /* 0: memory that CUDA does not know */
    int device;
    CUdeviceptr at_device;
    void *at_host;
    unsigned managed;
};

static cudaError_t
look_at_pointer(const struct hed_rt_driver *cu, const void *ptr, struct pointer *out)
{
    CUpointer_attribute which[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,
    };
    void *where[] = {&out->type, &out->device, &out->at_device, &out->at_host, &out->managed};

    *out = (struct pointer){0};
    return (cudaError_t)cu->cuPointerGetAttributes(sizeof which / sizeof which[0], which, where,
                                                   (CUdeviceptr)(uintptr_t)ptr);
}

cudaError_t
hed_rt_cudaPointerGetAttributes_12(const struct hed_rt_driver *cu,
                                   cudaPointerAttributes_12 *attributes, const void *ptr)
{
    struct pointer p;
    const cudaError_t r = attributes ? look_at_pointer(cu, ptr, &p) : cudaErrorInvalidValue;

    if (r != cudaSuccess)
        return r;
    if ((int)p.type == 0)
        *attributes = (cudaPointerAttributes_12){
            .type = cudaMemoryTypeUnregistered,
            .device = NO_DEVICE,
            .hostPointer = (void *)(uintptr_t)ptr,
        };
    else
        *attributes = (cudaPointerAttributes_12){
            .type = p.managed                        ? cudaMemoryTypeManaged
                    : p.type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                                     : cudaMemoryTypeHost,
            .device = p.device,
            .devicePointer = (void *)(uintptr_t)p.at_device,
            .hostPointer = p.at_host,
        };
    return cudaSuccess;
}

cudaError_t
hed_rt_cudaPointerGetAttributes(const struct hed_rt_driver *cu, cudaPointerAttributes *attributes,
                                const void *ptr)
{
    cudaPointerAttributes_12 a;
    const cudaError_t r =
        attributes ? hed_rt_cudaPointerGetAttributes_12(cu, &a, ptr) : cudaErrorInvalidValue;

    if (r == cudaSuccess)
        *attributes = (cudaPointerAttributes){.type = a.type,
                                              .device = a.device,
                                              .devicePointer = a.devicePointer,
                                              .hostPointer = a.hostPointer};
    return r;
}

/* ---- before CUDA 11 -------------------------------------------------------------------------- */

/* "In CUDA 11.0 forward passing host pointer will return ::cudaMemoryTypeUnregistered in
 * ::cudaPointerAttributes::type and call will return ::cudaSuccess." (cuda_runtime_api.h) Before,
 * it was cudaErrorInvalidValue, which programs ignore that look at the struct only: 10.2 clears it.
 * Managed memory counts as memory of the device. */
cudaError_t
hed_rt_cudaPointerGetAttributes_10(const struct hed_rt_driver *cu,
                                   cudaPointerAttributes_10 *attributes, const void *ptr)
{
    struct pointer p;
    const cudaError_t r = attributes ? look_at_pointer(cu, ptr, &p) : cudaErrorInvalidValue;

    if (r != cudaSuccess)
        return r;
    if ((int)p.type == 0) {
        *attributes = (cudaPointerAttributes_10){.device = -1};
        return cudaErrorInvalidValue;
    }
    *attributes = (cudaPointerAttributes_10){
        .memoryType = p.type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice : cudaMemoryTypeHost,
        .device = p.device,
        .devicePointer = (void *)(uintptr_t)p.at_device,
        .hostPointer = p.at_host,
        .isManaged = (int)p.managed,
    };
    attributes->type = p.managed ? cudaMemoryTypeManaged : attributes->memoryType;
    return cudaSuccess;
}

cudaError_t
hed_rt_cudaPointerGetAttributes_8(const struct hed_rt_driver *cu,
                                  cudaPointerAttributes_8 *attributes, const void *ptr)
{
    cudaPointerAttributes_10 a;
    const cudaError_t r =
        attributes ? hed_rt_cudaPointerGetAttributes_10(cu, &a, ptr) : cudaErrorInvalidValue;

    if (r == cudaSuccess)
        *attributes = (cudaPointerAttributes_8){.memoryType = a.memoryType,
                                                .device = a.device,
                                                .devicePointer = a.devicePointer,
                                                .hostPointer = a.hostPointer,
                                                .isManaged = a.isManaged};
    return r;
}
