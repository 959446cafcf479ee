/* What a program is told of a device's memory (layers/quota/quota.h): never more than the limit,
 * never more than there is.
 *
 *     total = min(there is, limit)        free = min(really free, limit - used)
 */
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "layers/quota/quota.h"

static uint64_t
left(struct quota_device *d)
{
    const uint64_t used = quota_used(d);

    return used < d->limit ? d->limit - used : 0;
}

/* ---- CUDA ------------------------------------------------------------------------------------ */

/* Pools may have given memory up since. */
static struct quota_device *
current_settled_device(struct hed_layer *self)
{
    struct quota_device *d = quota_current(self);

    if (d)
        quota_pools_settle(self, d, false);
    return d;
}

CUresult
quota_cuMemGetInfo(struct hed_layer *self, struct hed_cuMemGetInfo *a)
{
    const CUresult r = hed_next(self, cuMemGetInfo, a);
    struct quota_device *d = r == CUDA_SUCCESS ? current_settled_device(self) : NULL;

    if (d && a->free)
        *a->free = (unsigned)hed_min(*a->free, left(d));
    if (d && a->total)
        *a->total = (unsigned)hed_min(*a->total, d->limit);
    return r;
}

CUresult
quota_cuMemGetInfo_v2(struct hed_layer *self, struct hed_cuMemGetInfo_v2 *a)
{
    const CUresult r = hed_next(self, cuMemGetInfo_v2, a);
    struct quota_device *d = r == CUDA_SUCCESS ? current_settled_device(self) : NULL;

    if (d && a->free)
        *a->free = hed_min(*a->free, left(d));
    if (d && a->total)
        *a->total = hed_min(*a->total, d->limit);
    return r;
}

CUresult
quota_cuDeviceTotalMem(struct hed_layer *self, struct hed_cuDeviceTotalMem *a)
{
    const CUresult r = hed_next(self, cuDeviceTotalMem, a);
    const struct quota *q = self->state;

    if (r == CUDA_SUCCESS && a->bytes)
        *a->bytes = (unsigned)hed_min(*a->bytes, q->limit);
    return r;
}

CUresult
quota_cuDeviceTotalMem_v2(struct hed_layer *self, struct hed_cuDeviceTotalMem_v2 *a)
{
    const CUresult r = hed_next(self, cuDeviceTotalMem_v2, a);
    const struct quota *q = self->state;

    if (r == CUDA_SUCCESS && a->bytes)
        *a->bytes = hed_min(*a->bytes, q->limit);
    return r;
}

/* ---- NVML ------------------------------------------------------------------------------------ */

/* "GPU-01234567-89ab-...": the digits are the UUID's bytes. */
static bool
parse_uuid(const char *text, uint64_t key[2])
{
    unsigned char bytes[16] = {0};
    unsigned n = 0;
    const char *c = strchr(text, '-');

    for (; c && *c && n < 32; c++) {
        const char digit = (char)(*c | 0x20);
        const int v = *c >= '0' && *c <= '9'         ? *c - '0'
                      : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                                     : -1;

        if (v >= 0) {
            bytes[n / 2] = (unsigned char)(bytes[n / 2] << 4 | v);
            n++;
        }
    }
    memcpy(key, bytes, sizeof bytes);
    return n == 32 && (key[0] || key[1]);
}

static struct quota_device *
device_of_nvml(struct hed_layer *self, nvmlDevice_t device)
{
    char uuid[96] = "";
    unsigned index = 0;
    uint64_t key[2];
    struct hed_nvmlDeviceGetUUID get = {device, uuid, sizeof uuid - 1};
    struct hed_nvmlDeviceGetIndex number = {device, &index};

    if (hed_next_nvml(self, nvmlDeviceGetUUID, &get) == NVML_SUCCESS && parse_uuid(uuid, key))
        return quota_device_by_key(self->state, key);
    if (hed_next_nvml(self, nvmlDeviceGetIndex, &number) != NVML_SUCCESS)
        return NULL;
    quota_key_of_ordinal(index, key);
    return quota_device_by_key(self->state, key);
}

nvmlReturn_t
quota_nvmlDeviceGetMemoryInfo(struct hed_layer *self, struct hed_nvmlDeviceGetMemoryInfo *a)
{
    const nvmlReturn_t r = hed_next_nvml(self, nvmlDeviceGetMemoryInfo, a);
    struct quota_device *d =
        r == NVML_SUCCESS && a->memory ? device_of_nvml(self, a->device) : NULL;

    if (d) {
        nvmlMemory_t *m = a->memory;

        m->total = hed_min(m->total, d->limit);
        m->free = hed_min(hed_min(m->free, left(d)), m->total);
        m->used = m->total - m->free;
    }
    return r;
}

/* What the driver keeps for itself is no part of a limited device. */
nvmlReturn_t
quota_nvmlDeviceGetMemoryInfo_v2(struct hed_layer *self, struct hed_nvmlDeviceGetMemoryInfo_v2 *a)
{
    const nvmlReturn_t r = hed_next_nvml(self, nvmlDeviceGetMemoryInfo_v2, a);
    struct quota_device *d =
        r == NVML_SUCCESS && a->memory ? device_of_nvml(self, a->device) : NULL;

    if (d) {
        nvmlMemory_v2_t *m = a->memory;

        if (m->total > d->limit) {
            m->total = d->limit;
            m->reserved = 0;
        }
        m->reserved = hed_min(m->reserved, m->total);
        m->free = hed_min(hed_min(m->free, left(d)), m->total - m->reserved);
        m->used = m->total - m->reserved - m->free;
    }
    return r;
}

/* One process of a list: this one has what it is charged with, another not more than the limit. */
static void
limit_process(struct quota_device *d, unsigned pid, unsigned long long *used)
{
    if (*used == (unsigned long long)NVML_VALUE_NOT_AVAILABLE)
        return;
    *used = pid == (unsigned)getpid() ? atomic_load_explicit(&d->own, memory_order_relaxed) : *used;
    *used = hed_min(*used, d->limit);
}

#define PROCESSES(call)                                                        \
    nvmlReturn_t quota_##call(struct hed_layer *self, struct hed_##call *a)    \
    {                                                                          \
        const nvmlReturn_t r = hed_next_nvml(self, call, a);                   \
        struct quota_device *d = r == NVML_SUCCESS && a->infos && a->infoCount \
                                     ? device_of_nvml(self, a->device)         \
                                     : NULL;                                   \
                                                                               \
        for (unsigned i = 0; d && i < *a->infoCount; i++)                      \
            limit_process(d, a->infos[i].pid, &a->infos[i].usedGpuMemory);     \
        return r;                                                              \
    }

PROCESSES(nvmlDeviceGetComputeRunningProcesses)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

nvmlReturn_t
quota_nvmlDeviceGetRunningProcessDetailList(struct hed_layer *self,
                                            struct hed_nvmlDeviceGetRunningProcessDetailList *a)
{
    const nvmlReturn_t r = hed_next_nvml(self, nvmlDeviceGetRunningProcessDetailList, a);
    struct quota_device *d = r == NVML_SUCCESS && a->plist && a->plist->procArray
                                 ? device_of_nvml(self, a->device)
                                 : NULL;

    for (unsigned i = 0; d && i < a->plist->numProcArrayEntries; i++)
        limit_process(d, a->plist->procArray[i].pid, &a->plist->procArray[i].usedGpuMemory);
    return r;
}
