/* The calls of CUDA's device runtime. See device_calls.h. */
#include "base/device_calls.h"

#include <string.h>

const struct hed_device_call hed_device_calls[HED_DEVICE_CALLS] = {
    [HED_DEVICE_GET_PARAMETER_BUFFER] = {"GetParameterBufferV2", "lddw", 'l', false},
    [HED_DEVICE_LAUNCH] = {"LaunchDeviceV2", "ll", 'w', false},
    [HED_DEVICE_GET_LAST_ERROR] = {"GetLastError", "", 'w', false},
    [HED_DEVICE_PEEK_LAST_ERROR] = {"PeekAtLastError", "", 'w', false},
    [HED_DEVICE_SET_LAST_ERROR] = {"SetLastError", "w", 'w', false},
    [HED_DEVICE_STREAM_CREATE] = {"StreamCreateWithFlags", "pw", 'w', false},
    [HED_DEVICE_STREAM_DESTROY] = {"StreamDestroy", "l", 'w', false},
    [HED_DEVICE_STREAM_WAIT_EVENT] = {"StreamWaitEvent", "llw", 'w', false},
    [HED_DEVICE_EVENT_CREATE] = {"EventCreateWithFlags", "pw", 'w', false},
    [HED_DEVICE_EVENT_RECORD] = {"EventRecord", "ll", 'w', false},
    [HED_DEVICE_EVENT_DESTROY] = {"EventDestroy", "l", 'w', false},
    [HED_DEVICE_MEMCPY] = {"MemcpyAsync", "pplwl", 'w', false},
    [HED_DEVICE_MEMCPY_2D] = {"Memcpy2DAsync", "plplllwl", 'w', true},
    [HED_DEVICE_MEMSET] = {"MemsetAsync", "pwll", 'w', false},
    [HED_DEVICE_MEMSET_2D] = {"Memset2DAsync", "plwlll", 'w', false},
    [HED_DEVICE_MALLOC] = {"Malloc", "pl", 'w', false},
    [HED_DEVICE_FREE] = {"Free", "p", 'w', false},
    [HED_DEVICE_GET_DEVICE] = {"GetDevice", "p", 'w', false},
    [HED_DEVICE_GET_DEVICE_COUNT] = {"GetDeviceCount", "p", 'w', false},
    [HED_DEVICE_GET_ATTRIBUTE] = {"DeviceGetAttribute", "pww", 'w', false},
    [HED_DEVICE_GET_LIMIT] = {"DeviceGetLimit", "pw", 'w', false},
    [HED_DEVICE_FUNC_GET_ATTRIBUTES] = {"FuncGetAttributes", "pl", 'w', false},
    [HED_DEVICE_OCCUPANCY] = {"OccupancyMaxActiveBlocksPerMultiprocessor", "plwl", 'w', false},
    [HED_DEVICE_OCCUPANCY_WITH_FLAGS] = {"OccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
                                         "plwlw", 'w', false},
    [HED_DEVICE_RUNTIME_GET_VERSION] = {"RuntimeGetVersion", "p", 'w', false},
};

/* If the text begins with `prefix`, skips it. */
static bool
skip_prefix(const char **text, size_t *size, const char *prefix)
{
    const size_t n = strlen(prefix);

    if (*size < n || memcmp(*text, prefix, n) != 0)
        return false;
    *text += n;
    *size -= n;
    return true;
}

static bool
is_text(const char *text, size_t size, const char *other)
{
    return size == strlen(other) && memcmp(text, other, size) == 0;
}

/* The system functions on which the bodies of NVIDIA's library are built. Only those are known that
 * bodies need which are not replaced as a whole. */
static int
find_system_function(const char *name, size_t size)
{
    if (is_text(name, size, "GetParameterBufferV2"))
        return HED_DEVICE_GET_PARAMETER_BUFFER;
    if (is_text(name, size, "LaunchDeviceV2"))
        return HED_DEVICE_LAUNCH;
    if (is_text(name, size, "SetLastError"))
        return HED_DEVICE_SET_LAST_ERROR;
    /* This one leaves the error as it is. */
    if (is_text(name, size, "GetLastError"))
        return HED_DEVICE_PEEK_LAST_ERROR;
    return -1;
}

int
hed_device_call_find(const char *name, size_t size, bool has_body)
{
    static const char per_thread[] = "_ptsz"; /* of programs with a default stream per thread */
    const size_t suffix = sizeof per_thread - 1;

    if (skip_prefix(&name, &size, "__cuda_syscall_cnpv2"))
        return find_system_function(name, size);
    if (!skip_prefix(&name, &size, "__cudaCDP2") &&
        (has_body || !skip_prefix(&name, &size, "cuda")))
        return -1;
    if (size > suffix && memcmp(name + size - suffix, per_thread, suffix) == 0)
        size -= suffix;
    for (int i = 0; i < HED_DEVICE_CALLS; i++)
        if (i != HED_DEVICE_SET_LAST_ERROR && is_text(name, size, hed_device_calls[i].name))
            return i;
    return -1;
}
