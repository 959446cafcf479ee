/* Shared by the two files of the fake driver. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake.h"
#include "see/inject/cupti.h"

#define FAKE_PUBLIC __attribute__((visibility("default")))
#define FAKE_KERNEL_SIZE 216 /* bytes of CUPTI 13's record */
#define FAKE_COPY_SIZE 96

/* X(function): the functions that CUPTI reports. */
#define FAKE_SEEN(X)             \
    X(cuInit)                    \
    X(cuDevicePrimaryCtxRetain)  \
    X(cuCtxSetCurrent)           \
    X(cuCtxGetCurrent)           \
    X(cuCtxGetDevice)            \
    X(cuDeviceGetUuid_v2)        \
    X(cuCtxSynchronize)          \
    X(cuStreamCreate)            \
    X(cuStreamSynchronize)       \
    X(cuStreamSynchronize_ptsz)  \
    X(cuLaunchKernel)            \
    X(cuLaunchKernel_ptsz)       \
    X(cuLaunchKernelEx)          \
    X(cuLaunchCooperativeKernel) \
    X(cuGraphLaunch)             \
    X(cuMemAlloc_v2)             \
    X(cuMemcpyDtoH_v2)           \
    X(cuMemcpyHtoDAsync_v2)      \
    X(cuKernelGetParamInfo)      \
    X(cuFuncGetParamInfo)        \
    X(cuStreamBeginCapture_v2)   \
    X(cuStreamEndCapture)        \
    X(cuStreamIsCapturing)       \
    X(cuEventCreate)             \
    X(cuEventRecord)             \
    X(cuEventRecord_ptsz)        \
    X(cuEventQuery)              \
    X(cuEventElapsedTime)        \
    X(cuEventDestroy_v2)         \
    X(cuTomorrow)

#define FAKE_NUMBER(name) ID_##name,
enum { ID_NONE, FAKE_SEEN(FAKE_NUMBER) FAKE_CALLS };

extern const char *const fake_names[FAKE_CALLS];
extern bool fake_enabled[FAKE_CALLS];
extern hed_cupti_callback fake_callback; /* NULL: there is no subscriber */
extern bool fake_kinds[64];              /* the activity that the subscriber wants */

bool fake_is(const char *what); /* FAKE_CUPTI */
uint64_t fake_now(void);        /* of the GPU's clock */

/* The GPU has done something. Gives `size` of the `whole` bytes of its record. */
void fake_happened(const void *record, size_t size, size_t whole);
