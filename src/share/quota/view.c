/* What a program is told about a device's memory (share/quota/engine.h): never more than the limit,
 * and never more than the device has.
 *
 *     total = min(the device's, limit)        free = min(really free, limit - used)
 */
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "share/quota/engine.h"

static uint64_t
left_on(struct quota_device *d)
{
    const uint64_t used = hed_quota_used(d);

    return used < d->limit ? d->limit - used : 0;
}

/* ---- CUDA ------------------------------------------------------------------------------------ */

/* The current device, after pools that have given memory up are settled. */
static struct quota_device *
current_settled_device(struct hed_layer *self)
{
    struct quota_device *d = hed_quota_current(self);

    if (d)
        hed_quota_pools_settle(self, d, false);
    return d;
}

static void
lower_to(struct hed_place place, uint64_t most)
{
    hed_place_put(place, hed_min(hed_place_get(place), most));
}

static CUresult
quota_do_tell_free(struct hed_layer *self, const struct quota_call *c)
{
    const CUresult r = quota_next(self, c);
    struct quota_device *d = r == CUDA_SUCCESS ? current_settled_device(self) : NULL;

    if (d) {
        lower_to(c->free, left_on(d));
        lower_to(c->total, d->limit);
    }
    return r;
}

HED_CUDA_MEMORY_TELL_FREE(QUOTA_CALL)

static CUresult
quota_do_tell_total(struct hed_layer *self, const struct quota_call *c)
{
    const CUresult r = quota_next(self, c);
    const struct hed_quota *q = self->state;

    if (r == CUDA_SUCCESS)
        lower_to(c->total, q->limit);
    return r;
}

HED_CUDA_MEMORY_TELL_TOTAL(QUOTA_CALL)

/* ---- NVML ------------------------------------------------------------------------------------ */

/* In "GPU-01234567-89ab-..." the digits are the bytes of the UUID. */
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
device_of_nvml(struct hed_layer *self, const struct quota_nvml_call *c)
{
    const nvmlDevice_t device = (nvmlDevice_t)c->device;
    char uuid[96] = "";
    unsigned index = 0;
    uint64_t key[2];

    if (hed_call_nvml(self->next, nvmlDeviceGetUUID, .device = device, .uuid = uuid,
                      .length = sizeof uuid - 1) == NVML_SUCCESS &&
        parse_uuid(uuid, key))
        return hed_quota_device_by_key(self->state, key);
    if (hed_call_nvml(self->next, nvmlDeviceGetIndex, .device = device, .index = &index) !=
        NVML_SUCCESS)
        return NULL;
    hed_quota_key_of_ordinal(index, key);
    return hed_quota_device_by_key(self->state, key);
}

static nvmlReturn_t
next_nvml(struct hed_layer *self, const struct quota_nvml_call *c)
{
    return hed_nvml_invoke(self->next, c->id, c->args);
}

/* What the driver keeps for itself (`reserved`, where the call tells it) is no part of a limited
 * device. */
static nvmlReturn_t
quota_do_tell_memory(struct hed_layer *self, const struct quota_nvml_call *c)
{
    const nvmlReturn_t r = next_nvml(self, c);
    struct quota_device *d = r == NVML_SUCCESS && c->total.at ? device_of_nvml(self, c) : NULL;

    if (!d)
        return r;

    const uint64_t total = hed_min(hed_place_get(c->total), d->limit);
    const bool limited = hed_place_get(c->total) > d->limit;
    const uint64_t reserved = limited ? 0 : hed_min(hed_place_get(c->reserved), total);
    const uint64_t free = hed_min(hed_min(hed_place_get(c->free), left_on(d)), total - reserved);

    hed_place_put(c->total, total);
    hed_place_put(c->reserved, reserved);
    hed_place_put(c->free, free);
    hed_place_put(c->used, total - reserved - free);
    return r;
}

HED_NVML_MEMORY_TELL_MEMORY(QUOTA_NVML_CALL)

/* One process of a list: this process has what it is charged with, others have at most the limit.
 */
static void
limit_process(struct quota_device *d, unsigned pid, struct hed_place used)
{
    uint64_t n = hed_place_get(used);

    if (n == (unsigned long long)NVML_VALUE_NOT_AVAILABLE)
        return;
    n = pid == (unsigned)getpid() ? atomic_load_explicit(&d->own, memory_order_relaxed) : n;
    hed_place_put(used, hed_min(n, d->limit));
}

/* The same place in the i-th entry of a list. */
static struct hed_place
in_entry(const struct quota_nvml_call *c, struct hed_place first, uint64_t i)
{
    first.at = (char *)first.at + i * c->list.size;
    return first;
}

static nvmlReturn_t
quota_do_tell_processes(struct hed_layer *self, const struct quota_nvml_call *c)
{
    const nvmlReturn_t r = next_nvml(self, c);
    struct quota_device *d = r == NVML_SUCCESS && c->list.at ? device_of_nvml(self, c) : NULL;

    for (uint64_t i = 0; d && i < hed_place_get(c->count); i++)
        limit_process(d, (unsigned)hed_place_get(in_entry(c, c->pid, i)), in_entry(c, c->used, i));
    return r;
}

HED_NVML_MEMORY_TELL_PROCESSES(QUOTA_NVML_CALL)

static nvmlReturn_t
quota_do_tell_details(struct hed_layer *self, const struct quota_nvml_call *c)
{
    const nvmlReturn_t r = next_nvml(self, c);
    nvmlProcessDetailList_v1_t *list = c->details;
    struct quota_device *d =
        r == NVML_SUCCESS && list && list->procArray ? device_of_nvml(self, c) : NULL;

    for (unsigned i = 0; d && i < list->numProcArrayEntries; i++)
        limit_process(d, list->procArray[i].pid, HED_PLACE(&list->procArray[i].usedGpuMemory));
    return r;
}

HED_NVML_MEMORY_TELL_DETAILS(QUOTA_NVML_CALL)
