/* The functions of the driver that the engine of sharing needs. `below` is the layer under
 * sched. */
#include <string.h>

#include "core/nvtx.h"
#include "core/stream.h"
#include "core/usage.h"
#include "layers/sched/sched.h"

#define EVENT(handle) ((CUevent)(uintptr_t)(handle))

static bool
driver_get_device(void *below, int *device)
{
    struct hed_layer *at = below;
    CUdevice d = -1;

    if (hed_call(at, cuCtxGetDevice, .device = &d) != CUDA_SUCCESS)
        return false;
    *device = d;
    return true;
}

static bool
driver_get_uuid(void *below, int device, unsigned char uuid[16])
{
    struct hed_layer *at = below;
    CUuuid u = {{0}};

    if (hed_call(at, cuDeviceGetUuid_v2, .uuid = &u, .dev = device) != CUDA_SUCCESS)
        return false;
    memcpy(uuid, &u, 16);
    return true;
}

static uint64_t
driver_get_context(void *below)
{
    return (uint64_t)(uintptr_t)hed_current_context(below);
}

static bool
driver_is_capturing(void *below, uint64_t stream, bool ptds)
{
    return hed_stream_captures(below, stream, ptds);
}

static uint64_t
driver_create_event(void *below)
{
    struct hed_layer *at = below;
    CUevent e = NULL;
    const CUresult r = hed_call(at, cuEventCreate, .phEvent = &e, .Flags = CU_EVENT_DEFAULT);

    return r == CUDA_SUCCESS ? (uint64_t)(uintptr_t)e : 0;
}

static void
driver_destroy_event(void *below, uint64_t event)
{
    struct hed_layer *at = below;

    (void)hed_call(at, cuEventDestroy_v2, .hEvent = EVENT(event));
}

static bool
driver_record_event(void *below, uint64_t event, uint64_t stream, bool ptds)
{
    struct hed_layer *at = below;

    return hed_call(at, cuEventRecord, .hEvent = EVENT(event),
                    .hStream = (CUstream)(uintptr_t)stream, .ptds = ptds) == CUDA_SUCCESS;
}

static enum hed_event_state
driver_query_event(void *below, uint64_t event)
{
    struct hed_layer *at = below;
    const CUresult r = hed_call(at, cuEventQuery, .hEvent = EVENT(event));

    return r == CUDA_SUCCESS           ? HED_EVENT_DONE
           : r == CUDA_ERROR_NOT_READY ? HED_EVENT_PENDING
                                       : HED_EVENT_FAILED;
}

static double
driver_elapsed_ms(void *below, uint64_t start, uint64_t end)
{
    struct hed_layer *at = below;
    float ms = -1;
    const CUresult r = hed_call(at, cuEventElapsedTime, .pMilliseconds = &ms,
                                .hStart = EVENT(start), .hEnd = EVENT(end));

    return r == CUDA_SUCCESS ? (double)ms : -1;
}

static void
driver_show_memory(int device, struct hed_sched_slot *slot)
{
    hed_usage_publish(device, slot ? &(struct hed_usage_words){.used = &slot->memory_used,
                                                               .limit = &slot->memory_limit,
                                                               .known = &slot->memory_known}
                                   : NULL);
}

static bool
driver_has_ranges(void)
{
    return hed_nvtx_on();
}

const struct hed_sched_driver hed_sched_driver = {
    .get_device = driver_get_device,
    .get_uuid = driver_get_uuid,
    .get_context = driver_get_context,
    .is_capturing = driver_is_capturing,
    .create_event = driver_create_event,
    .destroy_event = driver_destroy_event,
    .record_event = driver_record_event,
    .query_event = driver_query_event,
    .elapsed_ms = driver_elapsed_ms,
    .show_memory = driver_show_memory,
    .has_ranges = driver_has_ranges,
    .push_range = hed_nvtx_push,
    .pop_range = hed_nvtx_pop,
};
