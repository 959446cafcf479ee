/* The calls of CUDA's device runtime: what kernels use to launch kernels (dynamic parallelism).
 *
 * Several rooms must know the same of them: the tiers of the CPU GPU call them for PTX, the lifter
 * writes such PTX for machine code, and the CPU GPU carries them out. So their names and arguments
 * are here, in one table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum hed_device_call_number {
    HED_DEVICE_GET_PARAMETER_BUFFER,
    HED_DEVICE_LAUNCH,
    HED_DEVICE_GET_LAST_ERROR,
    HED_DEVICE_PEEK_LAST_ERROR,
    HED_DEVICE_SET_LAST_ERROR,
    HED_DEVICE_STREAM_CREATE,
    HED_DEVICE_STREAM_DESTROY,
    HED_DEVICE_STREAM_WAIT_EVENT,
    HED_DEVICE_EVENT_CREATE,
    HED_DEVICE_EVENT_RECORD,
    HED_DEVICE_EVENT_DESTROY,
    HED_DEVICE_MEMCPY,
    HED_DEVICE_MEMCPY_2D,
    HED_DEVICE_MEMSET,
    HED_DEVICE_MEMSET_2D,
    HED_DEVICE_MALLOC,
    HED_DEVICE_FREE,
    HED_DEVICE_GET_DEVICE,
    HED_DEVICE_GET_DEVICE_COUNT,
    HED_DEVICE_GET_ATTRIBUTE,
    HED_DEVICE_GET_LIMIT,
    HED_DEVICE_FUNC_GET_ATTRIBUTES,
    HED_DEVICE_OCCUPANCY,
    HED_DEVICE_OCCUPANCY_WITH_FLAGS,
    HED_DEVICE_RUNTIME_GET_VERSION,
    HED_DEVICE_CALLS
};

#define HED_DEVICE_WORDS 8 /* arguments of a call at most, with each word of a dim3 counted */

struct hed_device_call {
    const char *name; /* what follows "__cudaCDP2" */
    /* One letter each: w for 32 bits, l for 64 bits, p for the address of memory, d for a dim3. */
    const char *args;
    char result; /* w or l */
    /* NVIDIA's library has a body for it that takes arguments from the stack. Machine code that
     * was linked with it uses that. */
    bool on_stack;
};

extern const struct hed_device_call hed_device_calls[HED_DEVICE_CALLS];

/* Which call a function is, by the name that device code has for it: "__cudaCDP2LaunchDeviceV2",
 * "cudaLaunchDeviceV2" (before CUDA 12), or the system function behind it,
 * "__cuda_syscall_cnpv2LaunchDeviceV2". `size` is the length of the name. With `has_body`, the
 * program defines the function: it is a call only if the name cannot be one of its own. -1 if it is
 * none. */
int hed_device_call_find(const char *name, size_t size, bool has_body);
