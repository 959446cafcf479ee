/* Calls about the driver and about which devices there are. Calls about what the devices are like
 * are in device_info.c. The errors for invalid arguments were measured on NVIDIA's driver 580. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/errors.h"
#include "core/session.h"
#include "core/stats.h"
#include "driver/context/context.h"

#define PCI_ID_LEAST 13 /* "0000:00:00.0" and its terminating 0 */

CUresult
hed_device_get(struct hed_layer *self, CUdevice ordinal, struct hed_device **out)
{
    struct hed_driver *d = hed_driver_of(self);
    const CUresult r = hed_driver_ready(d);

    if (r != CUDA_SUCCESS)
        return r;
    if (ordinal < 0 || ordinal >= d->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    *out = &d->devices[ordinal];
    return CUDA_SUCCESS;
}

CUresult
hed_device_for(struct hed_layer *self, CUdevice ordinal, const void *answer,
               struct hed_device **out)
{
    const CUresult r = hed_driver_ready(hed_driver_of(self));

    if (r != CUDA_SUCCESS)
        return r;
    return answer ? hed_device_get(self, ordinal, out) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- the driver ------------------------------------------------------------------------------ */

static CUresult
soft_cuInit(struct hed_layer *self, struct hed_cuInit *a)
{
    struct hed_driver *d = hed_driver_of(self);

    if (a->Flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load_explicit(&d->ended, memory_order_relaxed))
        return CUDA_ERROR_DEINITIALIZED;
    if (d->device_count == 0)
        return CUDA_ERROR_NO_DEVICE;
    atomic_store_explicit(&d->initialized, true, memory_order_relaxed);
    atomic_store_explicit(&hed_session.soft_initialized, true, memory_order_relaxed);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuDriverGetVersion(struct hed_layer *self, struct hed_cuDriverGetVersion *a)
{
    (void)self;
    if (!a->driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    *a->driverVersion = HED_DRIVER_VERSION;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuGetErrorName(struct hed_layer *self, struct hed_cuGetErrorName *a)
{
    (void)self;
    return a->pStr ? hed_cuda_error_name(a->error, a->pStr) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
soft_cuGetErrorString(struct hed_layer *self, struct hed_cuGetErrorString *a)
{
    (void)self;
    return a->pStr ? hed_cuda_error_text(a->error, a->pStr) : CUDA_ERROR_INVALID_VALUE;
}

/* Only the arguments are checked here: the front knows its own functions and finds them itself
 * (front/cuda.c). */
static CUresult
check_proc_arguments(const char *symbol, void **pfn, cuuint64_t flags)
{
    return symbol && pfn && flags <= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
soft_cuGetProcAddress(struct hed_layer *self, struct hed_cuGetProcAddress *a)
{
    (void)self;
    return check_proc_arguments(a->symbol, a->pfn, a->flags);
}

static CUresult
soft_cuGetProcAddress_v2(struct hed_layer *self, struct hed_cuGetProcAddress_v2 *a)
{
    (void)self;
    return check_proc_arguments(a->symbol, a->pfn, a->flags);
}

/* All devices share one memory, so writes of other devices are seen at once. */
static CUresult
soft_cuFlushGPUDirectRDMAWrites(struct hed_layer *self, struct hed_cuFlushGPUDirectRDMAWrites *a)
{
    struct hed_context *c;
    const CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    return a->target == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX &&
                   (a->scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER ||
                    a->scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

/* "If profiling is already enabled, then cuProfilerStart() has no effect" (CUDA Driver API): no
 * profiler is attached, so there is none to start. */
static CUresult
soft_cuProfilerStart(struct hed_layer *self, struct hed_cuProfilerStart *a)
{
    struct hed_context *c;

    (void)a;
    return hed_current(self, &c);
}

static CUresult
soft_cuProfilerStop(struct hed_layer *self, struct hed_cuProfilerStop *a)
{
    struct hed_context *c;

    (void)a;
    return hed_current(self, &c);
}

/* ---- the list of devices --------------------------------------------------------------------- */

static CUresult
soft_cuDeviceGetCount(struct hed_layer *self, struct hed_cuDeviceGetCount *a)
{
    struct hed_driver *d = hed_driver_of(self);
    const CUresult r = hed_driver_ready(d);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->count)
        return CUDA_ERROR_INVALID_VALUE;
    *a->count = d->device_count;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuDeviceGet(struct hed_layer *self, struct hed_cuDeviceGet *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_for(self, a->ordinal, a->device, &dev);

    if (r == CUDA_SUCCESS)
        *a->device = a->ordinal;
    return r;
}

static CUresult
soft_cuDeviceGetName(struct hed_layer *self, struct hed_cuDeviceGetName *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_for(self, a->dev, a->name, &dev);

    if (r != CUDA_SUCCESS)
        return r;
    if (a->len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    (void)hed_str_copy(a->name, (size_t)a->len, dev->info.profile.name);
    return CUDA_SUCCESS;
}

static CUresult
get_uuid(struct hed_layer *self, CUuuid *out, CUdevice ordinal)
{
    struct hed_device *dev;
    const CUresult r = hed_device_for(self, ordinal, out, &dev);

    if (r == CUDA_SUCCESS)
        memcpy(out, dev->info.uuid, sizeof dev->info.uuid);
    return r;
}

static CUresult
soft_cuDeviceGetUuid(struct hed_layer *self, struct hed_cuDeviceGetUuid *a)
{
    return get_uuid(self, a->uuid, a->dev);
}

static CUresult
soft_cuDeviceGetUuid_v2(struct hed_layer *self, struct hed_cuDeviceGetUuid_v2 *a)
{
    return get_uuid(self, a->uuid, a->dev);
}

/* Only Windows has LUIDs. */
static CUresult
soft_cuDeviceGetLuid(struct hed_layer *self, struct hed_cuDeviceGetLuid *a)
{
    struct hed_device *dev;
    const bool answer = a->luid && a->deviceNodeMask;
    const CUresult r = hed_device_for(self, a->dev, answer ? a : NULL, &dev);

    return r == CUDA_SUCCESS ? CUDA_ERROR_NOT_SUPPORTED : r;
}

/* "[domain]:[bus]:[device].[function]", "[domain]:[bus]:[device]" or "[bus]:[device].[function]",
 * all hexadecimal; every device here is function 0. */
static bool
parse_pci_id(const char *text, unsigned long part[4])
{
    unsigned long numbers[4] = {0};
    unsigned colons = 0;
    bool dot = false;
    unsigned n = 0;

    for (const char *at = text;; at++) {
        char *end;

        if (n == 4 || !strchr("0123456789abcdefABCDEF", *at) || !*at)
            return false;
        numbers[n++] = strtoul(at, &end, 16);
        at = end;
        if (!*at)
            break;
        if (dot || (*at != ':' && *at != '.'))
            return false;
        colons += *at == ':';
        dot = *at == '.';
    }
    if (colons == 2)
        memcpy(part, numbers, sizeof numbers);
    else if (colons == 1 && dot)
        memcpy(part + 1, numbers, 3 * sizeof numbers[0]);
    else
        return false;
    return true;
}

static CUresult
soft_cuDeviceGetByPCIBusId(struct hed_layer *self, struct hed_cuDeviceGetByPCIBusId *a)
{
    struct hed_driver *d = hed_driver_of(self);
    const CUresult r = hed_driver_ready(d);
    unsigned long part[4] = {0};

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->dev || !a->pciBusId || !parse_pci_id(a->pciBusId, part))
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < d->device_count; i++) {
        const struct hed_profile_device *info = &d->devices[i].info;

        if (part[0] == (unsigned long)info->pci_domain && part[1] == (unsigned long)info->pci_bus &&
            part[2] == (unsigned long)info->pci_slot && part[3] == 0) {
            *a->dev = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

static CUresult
soft_cuDeviceGetPCIBusId(struct hed_layer *self, struct hed_cuDeviceGetPCIBusId *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_for(self, a->dev, a->pciBusId, &dev);

    if (r != CUDA_SUCCESS)
        return r;
    if (a->len < PCI_ID_LEAST)
        return CUDA_ERROR_INVALID_VALUE;
    (void)snprintf(a->pciBusId, (size_t)a->len, "%04X:%02X:%02X.0", (unsigned)dev->info.pci_domain,
                   (unsigned)dev->info.pci_bus, (unsigned)dev->info.pci_slot);
    return CUDA_SUCCESS;
}

const struct hed_cuda_ops hed_calls_device = {
    .cuInit = soft_cuInit,
    .cuDriverGetVersion = soft_cuDriverGetVersion,
    .cuGetErrorName = soft_cuGetErrorName,
    .cuGetErrorString = soft_cuGetErrorString,
    .cuGetProcAddress = soft_cuGetProcAddress,
    .cuGetProcAddress_v2 = soft_cuGetProcAddress_v2,
    .cuFlushGPUDirectRDMAWrites = soft_cuFlushGPUDirectRDMAWrites,
    .cuProfilerStart = soft_cuProfilerStart,
    .cuProfilerStop = soft_cuProfilerStop,
    .cuDeviceGetCount = soft_cuDeviceGetCount,
    .cuDeviceGet = soft_cuDeviceGet,
    .cuDeviceGetName = soft_cuDeviceGetName,
    .cuDeviceGetUuid = soft_cuDeviceGetUuid,
    .cuDeviceGetUuid_v2 = soft_cuDeviceGetUuid_v2,
    .cuDeviceGetLuid = soft_cuDeviceGetLuid,
    .cuDeviceGetByPCIBusId = soft_cuDeviceGetByPCIBusId,
    .cuDeviceGetPCIBusId = soft_cuDeviceGetPCIBusId,
};
