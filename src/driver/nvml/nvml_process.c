/* NVML: memory and the processes that use it, and values by field number. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "driver/nvml/nvml.h"

#define LIST_MAX 1024 /* processes that are listed at most */

/* ---- memory ---------------------------------------------------------------------------------- */

static nvmlReturn_t
soft_nvmlDeviceGetMemoryInfo(struct hed_layer *self, struct hed_nvmlDeviceGetMemoryInfo *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->memory, &d);

    if (r != NVML_SUCCESS)
        return r;
    a->memory->total = d.profile->memory;
    a->memory->used = hed_shared_used(d.driver, d.index);
    a->memory->free = a->memory->total - a->memory->used;
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlDeviceGetMemoryInfo_v2(struct hed_layer *self, struct hed_nvmlDeviceGetMemoryInfo_v2 *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->memory, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (a->memory->version != HED_NVML_VERSION(nvmlMemory_v2_t, 2u))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    a->memory->total = d.profile->memory;
    a->memory->reserved = 0;
    a->memory->used = hed_shared_used(d.driver, d.index);
    a->memory->free = a->memory->total - a->memory->used;
    return NVML_SUCCESS;
}

static nvmlReturn_t
soft_nvmlDeviceGetBAR1MemoryInfo(struct hed_layer *self, struct hed_nvmlDeviceGetBAR1MemoryInfo *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->bar1Memory, &d);
    unsigned long long total = 1ull << 28;

    if (r != NVML_SUCCESS)
        return r;
    /* BAR1 is a window over all memory, and its size is a power of two. */
    while (total < d.profile->memory)
        total *= 2;
    a->bar1Memory->bar1Total = total;
    a->bar1Memory->bar1Used = 0;
    a->bar1Memory->bar1Free = total;
    return NVML_SUCCESS;
}

static unsigned
bus_width(const struct hed_profile *p)
{
    const int width = p->attributes[CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH];

    return width > 0 ? (unsigned)width : 0;
}

HED_NVML_ANSWER(nvmlDeviceGetMemoryBusWidth, busWidth, bus_width(d.profile))

/* ---- processes ------------------------------------------------------------------------------- */

/* Writes entry i of a list; the three versions of the struct differ. */
typedef void (*put_fn)(void *list, size_t i, const struct hed_shared_process *p);

static void
put_v1(void *list, size_t i, const struct hed_shared_process *p)
{
    ((nvmlProcessInfo_v1_t *)list)[i] = (nvmlProcessInfo_v1_t){(unsigned)p->pid, p->used};
}

/* No device is divided, so the ids of instances are all ones. */
static void
put_v2(void *list, size_t i, const struct hed_shared_process *p)
{
    ((nvmlProcessInfo_v2_t *)list)[i] =
        (nvmlProcessInfo_v2_t){(unsigned)p->pid, p->used, UINT32_MAX, UINT32_MAX};
}

static void
put_v3(void *list, size_t i, const struct hed_shared_process *p)
{
    ((nvmlProcessInfo_t *)list)[i] =
        (nvmlProcessInfo_t){(unsigned)p->pid, p->used, UINT32_MAX, UINT32_MAX};
}

static nvmlReturn_t
list_processes(struct hed_layer *self, nvmlDevice_t device, unsigned *count, void *list, put_fn put)
{
    struct hed_nvml_device d;
    nvmlReturn_t r = hed_nvml_find(self, device, count, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (*count && !list)
        return NVML_ERROR_INVALID_ARGUMENT;

    struct hed_shared_process *found = calloc(LIST_MAX, sizeof *found);

    if (!found)
        return NVML_ERROR_MEMORY;

    const size_t all = hed_shared_processes(d.driver, d.index, found, LIST_MAX);
    const size_t n = all < LIST_MAX ? all : LIST_MAX;

    if (n > *count)
        r = NVML_ERROR_INSUFFICIENT_SIZE;
    for (size_t i = 0; r == NVML_SUCCESS && i < n; i++)
        put(list, i, &found[i]);
    *count = (unsigned)n;
    free(found);
    return r;
}

static nvmlReturn_t
soft_nvmlDeviceGetComputeRunningProcesses(struct hed_layer *self,
                                          struct hed_nvmlDeviceGetComputeRunningProcesses *a)
{
    return list_processes(self, a->device, a->infoCount, a->infos, put_v1);
}

static nvmlReturn_t
soft_nvmlDeviceGetComputeRunningProcesses_v2(struct hed_layer *self,
                                             struct hed_nvmlDeviceGetComputeRunningProcesses_v2 *a)
{
    return list_processes(self, a->device, a->infoCount, a->infos, put_v2);
}

static nvmlReturn_t
soft_nvmlDeviceGetComputeRunningProcesses_v3(struct hed_layer *self,
                                             struct hed_nvmlDeviceGetComputeRunningProcesses_v3 *a)
{
    return list_processes(self, a->device, a->infoCount, a->infos, put_v3);
}

/* No process uses graphics or MPS. */
HED_NVML_ANSWER(nvmlDeviceGetGraphicsRunningProcesses, infoCount, 0)
HED_NVML_ANSWER(nvmlDeviceGetGraphicsRunningProcesses_v2, infoCount, 0)
HED_NVML_ANSWER(nvmlDeviceGetGraphicsRunningProcesses_v3, infoCount, 0)
HED_NVML_ANSWER(nvmlDeviceGetMPSComputeRunningProcesses, infoCount, 0)
HED_NVML_ANSWER(nvmlDeviceGetMPSComputeRunningProcesses_v2, infoCount, 0)
HED_NVML_ANSWER(nvmlDeviceGetMPSComputeRunningProcesses_v3, infoCount, 0)

/* One sample per process. Work is only counted per device, so each process gets an equal share. */
static nvmlReturn_t
soft_nvmlDeviceGetProcessUtilization(struct hed_layer *self,
                                     struct hed_nvmlDeviceGetProcessUtilization *a)
{
    struct hed_nvml_device d;
    nvmlReturn_t r = hed_nvml_find(self, a->device, a->processSamplesCount, &d);
    const unsigned room = r == NVML_SUCCESS && a->utilization ? *a->processSamplesCount : 0;

    if (r != NVML_SUCCESS)
        return r;

    struct hed_shared_process *found = calloc(LIST_MAX, sizeof *found);

    if (!found)
        return NVML_ERROR_MEMORY;

    const size_t all = hed_shared_processes(d.driver, d.index, found, LIST_MAX);
    const unsigned n = (unsigned)(all < LIST_MAX ? all : LIST_MAX);
    const unsigned load = n ? hed_shared_load(d.driver, d.index) : 0;

    if (load == 0)
        r = NVML_ERROR_NOT_FOUND; /* no sample since lastSeenTimeStamp */
    else if (n > room)
        r = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; r == NVML_SUCCESS && i < n; i++)
        a->utilization[i] = (nvmlProcessUtilizationSample_t){
            .pid = (unsigned)found[i].pid,
            .timeStamp = hed_wall_ns() / 1000,
            .smUtil = load / n,
            .memUtil = load / n / 2,
        };
    *a->processSamplesCount = n;
    free(found);
    return r;
}

HED_NVML_REFUSE(nvmlDeviceGetRunningProcessDetailList, plist)
HED_NVML_REFUSE(nvmlDeviceGetProcessesUtilizationInfo, procesesUtilInfo)

/* ---- values by number ------------------------------------------------------------------------ */

/* The value of a field; false if the device does not have it. */
static bool
field_number(const struct hed_nvml_device *d, unsigned id, unsigned *out)
{
    const struct hed_profile *p = d->profile;

    switch (id) {
    case NVML_FI_DEV_ECC_CURRENT:
    case NVML_FI_DEV_ECC_PENDING:
        *out = p->attributes[CU_DEVICE_ATTRIBUTE_ECC_ENABLED] != 0;
        return true;
    case NVML_FI_DEV_MEMORY_TEMP:
        *out = hed_nvml_temperature(d);
        return true;
    case NVML_FI_DEV_NVLINK_LINK_COUNT:
    case NVML_FI_DEV_PCIE_REPLAY_COUNTER:
    case NVML_FI_DEV_C2C_LINK_COUNT:
        *out = 0;
        return true;
    case NVML_FI_DEV_POWER_AVERAGE:
    case NVML_FI_DEV_POWER_INSTANT:
        *out = hed_nvml_power(d);
        return true;
    case NVML_FI_DEV_POWER_MIN_LIMIT:
        *out = hed_nvml_power_least(p);
        return true;
    case NVML_FI_DEV_POWER_MAX_LIMIT:
    case NVML_FI_DEV_POWER_DEFAULT_LIMIT:
    case NVML_FI_DEV_POWER_CURRENT_LIMIT:
    case NVML_FI_DEV_POWER_REQUESTED_LIMIT:
        *out = p->power_limit;
        return true;
    default:
        return false;
    }
}

static nvmlReturn_t
soft_nvmlDeviceGetFieldValues(struct hed_layer *self, struct hed_nvmlDeviceGetFieldValues *a)
{
    struct hed_nvml_device d;
    const nvmlReturn_t r = hed_nvml_find(self, a->device, a->values, &d);

    if (r != NVML_SUCCESS)
        return r;
    if (a->valuesCount <= 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < a->valuesCount; i++) {
        nvmlFieldValue_t *v = &a->values[i];

        v->timestamp = (long long)(hed_wall_ns() / 1000);
        v->latencyUsec = 0;
        v->nvmlReturn = NVML_SUCCESS;
        memset(&v->value, 0, sizeof v->value);
        if (v->fieldId == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION) {
            v->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
            v->value.ullVal = hed_nvml_energy(&d);
        } else if (field_number(&d, v->fieldId, &v->value.uiVal)) {
            v->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
        } else {
            v->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        }
    }
    return NVML_SUCCESS;
}

HED_NVML_ANSWER(nvmlDeviceGetSupportedEventTypes, eventTypes, 0)

#define ENTRY(call) .call = soft_##call

const struct hed_nvml_ops hed_calls_nvml_process = {
    ENTRY(nvmlDeviceGetMemoryInfo),
    ENTRY(nvmlDeviceGetMemoryInfo_v2),
    ENTRY(nvmlDeviceGetBAR1MemoryInfo),
    ENTRY(nvmlDeviceGetMemoryBusWidth),
    ENTRY(nvmlDeviceGetComputeRunningProcesses),
    ENTRY(nvmlDeviceGetComputeRunningProcesses_v2),
    ENTRY(nvmlDeviceGetComputeRunningProcesses_v3),
    ENTRY(nvmlDeviceGetGraphicsRunningProcesses),
    ENTRY(nvmlDeviceGetGraphicsRunningProcesses_v2),
    ENTRY(nvmlDeviceGetGraphicsRunningProcesses_v3),
    ENTRY(nvmlDeviceGetMPSComputeRunningProcesses),
    ENTRY(nvmlDeviceGetMPSComputeRunningProcesses_v2),
    ENTRY(nvmlDeviceGetMPSComputeRunningProcesses_v3),
    ENTRY(nvmlDeviceGetProcessUtilization),
    ENTRY(nvmlDeviceGetRunningProcessDetailList),
    ENTRY(nvmlDeviceGetProcessesUtilizationInfo),
    ENTRY(nvmlDeviceGetFieldValues),
    ENTRY(nvmlDeviceGetSupportedEventTypes),
};
