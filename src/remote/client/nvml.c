/* NVML of the worker's devices. The worker is asked for what changes there (memory, load,
 * temperature), by the calls that say travel= in the spec; the soft driver knows what a device is.
 * A program sees only itself among the processes that use a device, since a server tells no client
 * about others. On the wire, a device is named by the worker's number of it plus one. */
#include "driver/driver.h"

#include "gen/nvml_sets.h"
#include "remote/client/remote.h"

static nvmlReturn_t
ask_worker(struct hed_layer *self, enum hed_nvml_call id, nvmlDevice_t *device, void *args)
{
    struct hed_remote *r = hed_driver_of(self)->machine_state;
    const nvmlDevice_t given = *device;
    struct hed_nvml_device d;
    nvmlReturn_t result = hed_nvml_find(self, given, args, &d);

    if (result != NVML_SUCCESS)
        return result;
    if (d.index >= (size_t)r->device_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = (nvmlDevice_t)(uintptr_t)(r->devices[d.index].ordinal + 1);
    result = hed_remote_ask_nvml(r, id, args);
    *device = given;
    return result;
}

#define ASK(call)                                                                   \
    static nvmlReturn_t remote_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                               \
        return ask_worker(self, HED_##call, &a->device, a);                         \
    }

HED_NVML_TRAVEL(ASK)

#define ENTRY(call) .call = remote_##call,

const struct hed_nvml_ops hed_remote_nvml = {HED_NVML_TRAVEL(ENTRY)};
