/* Plays NVIDIA's driver and CUPTI for the injection library: one library with the functions of
 * both.
 *
 * It does as the real ones do (seen on an H200, driver 580): cuInit loads $CUDA_INJECTION64_PATH; a
 * callback gets the very arguments that are used after it; a launch with an empty grid is refused;
 * the program gets what a callback writes to the return value; kernels are CUkernels, which
 * cuFuncGetParamInfo does not know. A kernel runs when its launch arrives. FAKE_CUPTI is "refuse"
 * (there is another subscriber), "clock" (CUPTI cannot use the tool's clock) or "deaf" (the driver
 * keeps a copy of the arguments). */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_inner.h"
#include "gen/cuda_calls.h"
#include "gen/cuda_front.h"

/* A call's structure may end in a word that only heddle needs. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

FAKE_PUBLIC struct fake_seen fake_seen;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gpu = PTHREAD_MUTEX_INITIALIZER; /* one kernel at a time */
static _Atomic uint32_t calls;
static uint64_t capturing;
static __thread CUcontext current;

CUresult cuTomorrow(int *out);

/* ---- a call ---------------------------------------------------------------------------------- */

/* The call that the thread is in. */
static __thread uint32_t correlation;
static __thread const char *function;

/* The function may jump out of the call, as a signal handler may. */
static void
take_signal(void)
{
    void (*handler)(void) = fake_seen.signal;

    fake_seen.signal = NULL;
    handler();
}

/* `body` gets the values that `params` have after the callback has returned. */
static CUresult
make_call(int id, void *params, size_t size, CUresult (*body)(void *params))
{
    struct hed_cupti_call c = {.function = fake_names[id], .params = params, .context = current};
    const uint32_t outer = correlation;
    const char *const outer_function = function;
    CUresult result = CUDA_SUCCESS;
    _Alignas(16) unsigned char before[256];

    if (params)
        memcpy(before, params, size);
    c.correlation = atomic_fetch_add(&calls, 1) + 1;
    if (fake_callback && fake_enabled[id]) {
        c.site = HED_CUPTI_ENTER;
        fake_callback(NULL, HED_CUPTI_DRIVER_API, (uint32_t)id, &c);
    }
    correlation = c.correlation;
    function = fake_names[id];
    if (fake_seen.signal)
        take_signal();
    result = body(params && fake_is("deaf") ? before : params);
    correlation = outer;
    function = outer_function;
    if (fake_callback && fake_enabled[id]) {
        c.site = HED_CUPTI_EXIT;
        c.returns = &result;
        fake_callback(NULL, HED_CUPTI_DRIVER_API, (uint32_t)id, &c);
    }
    if (params && memcmp(before, params, size) != 0)
        atomic_fetch_add(&fake_seen.broken, 1);
    return result;
}

#define CALL(name, body, ...)             \
    struct hed_##name p_ = {__VA_ARGS__}; \
                                          \
    return make_call(ID_##name, &p_, sizeof p_, body)

static CUresult
nothing(void *params)
{
    return CUDA_SUCCESS;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    unsigned count;
    size_t offset[2], size[2];
} kernels[FAKE_KERNELS] = {
    [FAKE_MIX] = {"mix", 2, {0, 8}, {8, 4}},
    [FAKE_WIDE] = {"wide", 2, {0, 24}, {24, 8}},
};

static void
execute(struct fake_launch *l, void **params)
{
    const uint64_t start = fake_now();
    uint64_t *p;
    uint64_t wide[3];

    if (l->kernel == FAKE_MIX) {
        memcpy(&p, params[0], sizeof p);
        l->value = *(const uint32_t *)params[1];
        *p = *p * 31 + l->value;
    } else if (l->kernel == FAKE_WIDE) {
        memcpy(wide, params[0], sizeof wide);
        memcpy(&p, params[1], sizeof p);
        *p += wide[0] + wide[1] + wide[2];
    }
    if (fake_kinds[HED_CUPTI_KERNEL])
        fake_happened(&(struct hed_cupti_kernel){.kind = HED_CUPTI_KERNEL,
                                                 .start = start,
                                                 .end = fake_now() + 1,
                                                 .stream = (uint32_t)l->stream,
                                                 .context = 1,
                                                 .grid = {(int)l->grid, 1, 1},
                                                 .block = {(int)l->block, 1, 1},
                                                 .correlation = l->correlation,
                                                 .name = kernels[l->kernel].name},
                      sizeof(struct hed_cupti_kernel), FAKE_KERNEL_SIZE);
}

static CUresult
run_launch(CUfunction f, unsigned grid, unsigned block, unsigned shared, CUstream stream,
           void **params)
{
    struct fake_launch l = {
        .kernel = (enum fake_kernel)((uintptr_t)f - 0x5000),
        .function = function,
        .grid = grid,
        .block = block,
        .shared = shared,
        .stream = (uint64_t)(uintptr_t)stream,
        .thread = gettid(),
        .correlation = correlation,
        .captured = capturing && capturing == (uint64_t)(uintptr_t)stream,
    };

    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (l.kernel >= FAKE_KERNELS)
        return CUDA_ERROR_INVALID_HANDLE;
    if (grid == 0) {
        atomic_fetch_add(&fake_seen.refused, 1);
        return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_lock(&gpu);
    if (!l.captured)
        execute(&l, params);
    pthread_mutex_lock(&lock);

    const unsigned n = atomic_load(&fake_seen.count);

    if (n < FAKE_LAUNCHES)
        fake_seen.launches[n] = l;
    atomic_store(&fake_seen.count, n + 1);
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&gpu);
    return CUDA_SUCCESS;
}

static CUresult
launch_kernel(void *params)
{
    const struct hed_cuLaunchKernel *a = params;

    return run_launch(a->f, a->gridDimX, a->blockDimX, a->sharedMemBytes, a->hStream,
                      a->kernelParams);
}

static CUresult
launch_cooperative(void *params)
{
    const struct hed_cuLaunchCooperativeKernel *a = params;

    return run_launch(a->f, a->gridDimX, a->blockDimX, a->sharedMemBytes, a->hStream,
                      a->kernelParams);
}

static CUresult
launch_ex(void *params)
{
    const struct hed_cuLaunchKernelEx *a = params;
    const CUlaunchConfig *c = a->config;

    return run_launch(a->f, c->gridDimX, c->blockDimX, c->sharedMemBytes, c->hStream,
                      a->kernelParams);
}

static CUresult
launch_graph(void *params)
{
    const struct hed_cuGraphLaunch *a = params;

    return run_launch((CUfunction)(uintptr_t)(0x5000 + FAKE_GRAPH), 1, 1, 0, a->hStream, NULL);
}

FAKE_PUBLIC CUresult
cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
               unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
    CALL(cuLaunchKernel, launch_kernel, f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                             unsigned by, unsigned bz, unsigned shared, CUstream stream,
                             void **params, void **extra);

FAKE_PUBLIC CUresult
cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                    unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
    struct hed_cuLaunchKernel p = {f, gx, gy, gz, bx, by, bz, shared, stream, params, extra, 0};

    return make_call(ID_cuLaunchKernel_ptsz, &p, sizeof p, launch_kernel);
}

FAKE_PUBLIC CUresult
cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params)
{
    CALL(cuLaunchCooperativeKernel, launch_cooperative, f, gx, gy, gz, bx, by, bz, shared, stream,
         params);
}

FAKE_PUBLIC CUresult
cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
    CALL(cuLaunchKernelEx, launch_ex, config, f, params, extra);
}

FAKE_PUBLIC CUresult
cuGraphLaunch(CUgraphExec graph, CUstream stream)
{
    CALL(cuGraphLaunch, launch_graph, graph, stream);
}

static CUresult
kernel_param_info(void *params)
{
    const struct hed_cuKernelGetParamInfo *a = params;
    const size_t k = (uintptr_t)a->kernel - 0x5000;

    if (k >= FAKE_KERNELS)
        return CUDA_ERROR_INVALID_HANDLE;
    if (a->paramIndex >= kernels[k].count)
        return CUDA_ERROR_INVALID_VALUE;
    *a->paramOffset = kernels[k].offset[a->paramIndex];
    if (a->paramSize)
        *a->paramSize = kernels[k].size[a->paramIndex];
    return CUDA_SUCCESS;
}

FAKE_PUBLIC CUresult
cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
    CALL(cuKernelGetParamInfo, kernel_param_info, kernel, index, offset, size);
}

static CUresult
not_a_function(void *params)
{
    return CUDA_ERROR_INVALID_HANDLE;
}

FAKE_PUBLIC CUresult
cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    CALL(cuFuncGetParamInfo, not_a_function, f, index, offset, size);
}

/* ---- the rest of a driver -------------------------------------------------------------------- */

FAKE_PUBLIC CUresult
cuInit(unsigned flags)
{
    static bool done;
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path && !done ? dlopen(path, RTLD_NOW) : NULL;
    int (*begin)(void);

    done = true;
    *(void **)&begin = library ? dlsym(library, "InitializeInjection") : NULL;
    if (path && !library)
        fprintf(stderr, "%s\n", dlerror());
    if (begin && begin() != 1)
        return CUDA_ERROR_UNKNOWN;

    CALL(cuInit, nothing, flags);
}

static CUresult
retain(void *params)
{
    *((struct hed_cuDevicePrimaryCtxRetain *)params)->pctx = (CUcontext)0x1000;
    return CUDA_SUCCESS;
}

FAKE_PUBLIC CUresult
cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    CALL(cuDevicePrimaryCtxRetain, retain, out, device);
}

static CUresult
set_current(void *params)
{
    current = ((struct hed_cuCtxSetCurrent *)params)->ctx;
    return CUDA_SUCCESS;
}

FAKE_PUBLIC CUresult
cuCtxSetCurrent(CUcontext context)
{
    CALL(cuCtxSetCurrent, set_current, context);
}

static CUresult
get_current(void *params)
{
    *((struct hed_cuCtxGetCurrent *)params)->pctx = current;
    return CUDA_SUCCESS;
}

FAKE_PUBLIC CUresult
cuCtxGetCurrent(CUcontext *out)
{
    CALL(cuCtxGetCurrent, get_current, out);
}

static CUresult
get_device(void *params)
{
    *((struct hed_cuCtxGetDevice *)params)->device = 0;
    return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

FAKE_PUBLIC CUresult
cuCtxGetDevice(CUdevice *out)
{
    CALL(cuCtxGetDevice, get_device, out);
}

static CUresult
get_uuid(void *params)
{
    memcpy(((struct hed_cuDeviceGetUuid_v2 *)params)->uuid, "a made-up device", 16);
    return CUDA_SUCCESS;
}

FAKE_PUBLIC CUresult
cuDeviceGetUuid_v2(CUuuid *out, CUdevice device)
{
    CALL(cuDeviceGetUuid_v2, get_uuid, out, device);
}

FAKE_PUBLIC CUresult
cuCtxSynchronize(void)
{
    return make_call(ID_cuCtxSynchronize, NULL, 0, nothing); /* CUPTI has no structure for it */
}

static CUresult
create_stream(void *params)
{
    static _Atomic uintptr_t next = 0x2000;

    *((struct hed_cuStreamCreate *)params)->phStream = (CUstream)(atomic_fetch_add(&next, 16));
    return CUDA_SUCCESS;
}

FAKE_PUBLIC CUresult
cuStreamCreate(CUstream *out, unsigned flags)
{
    CALL(cuStreamCreate, create_stream, out, flags);
}

FAKE_PUBLIC CUresult
cuStreamSynchronize(CUstream stream)
{
    CALL(cuStreamSynchronize, nothing, stream);
}

CUresult cuStreamSynchronize_ptsz(CUstream stream);

FAKE_PUBLIC CUresult
cuStreamSynchronize_ptsz(CUstream stream)
{
    struct hed_cuStreamSynchronize p = {stream, 0};

    return make_call(ID_cuStreamSynchronize_ptsz, &p, sizeof p, nothing);
}

static CUresult
allocate(void *params)
{
    const struct hed_cuMemAlloc_v2 *a = params;
    void *p = calloc(1, a->bytesize);

    *a->dptr = (CUdeviceptr)(uintptr_t)p;
    return p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

FAKE_PUBLIC CUresult
cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    CALL(cuMemAlloc_v2, allocate, out, bytes);
}

static void
copied(size_t bytes, uint8_t from, uint8_t to)
{
    struct hed_cupti_copy c = {.kind = HED_CUPTI_COPY,
                               .from = from,
                               .to = to,
                               .bytes = bytes,
                               .start = fake_now(),
                               .end = fake_now() + 1,
                               .correlation = correlation};

    if (!fake_kinds[HED_CUPTI_COPY])
        return;
    fake_happened(&c, sizeof c, FAKE_COPY_SIZE);
    /* Also one whose times could not be measured: CUPTI then gives zeros. */
    c.start = c.end = 0;
    fake_happened(&c, sizeof c, FAKE_COPY_SIZE);
}

static CUresult
copy_out(void *params)
{
    const struct hed_cuMemcpyDtoH_v2 *a = params;

    memcpy(a->dstHost, (const void *)(uintptr_t)a->srcDevice, a->ByteCount);
    copied(a->ByteCount, 3, 1);
    return CUDA_SUCCESS;
}

FAKE_PUBLIC CUresult
cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    CALL(cuMemcpyDtoH_v2, copy_out, to, from, bytes);
}

static CUresult
copy_in(void *params)
{
    const struct hed_cuMemcpyHtoDAsync_v2 *a = params;

    memcpy((void *)(uintptr_t)a->dstDevice, a->srcHost, a->ByteCount);
    copied(a->ByteCount, 1, 3);
    return CUDA_SUCCESS;
}

FAKE_PUBLIC CUresult
cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    CALL(cuMemcpyHtoDAsync_v2, copy_in, to, from, bytes, stream);
}

static CUresult
begin_capture(void *params)
{
    capturing = (uint64_t)(uintptr_t)((struct hed_cuStreamBeginCapture_v2 *)params)->hStream;
    return CUDA_SUCCESS;
}

FAKE_PUBLIC CUresult
cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    CALL(cuStreamBeginCapture_v2, begin_capture, stream, mode);
}

static CUresult
end_capture(void *params)
{
    *((struct hed_cuStreamEndCapture *)params)->phGraph = (CUgraph)0x7000;
    capturing = 0;
    return CUDA_SUCCESS;
}

FAKE_PUBLIC CUresult
cuStreamEndCapture(CUstream stream, CUgraph *out)
{
    CALL(cuStreamEndCapture, end_capture, stream, out);
}

static CUresult
is_capturing(void *params)
{
    const struct hed_cuStreamIsCapturing *a = params;

    *a->captureStatus = capturing && capturing == (uint64_t)(uintptr_t)a->hStream
                            ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                            : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

FAKE_PUBLIC CUresult
cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    CALL(cuStreamIsCapturing, is_capturing, stream, status);
}

static CUresult
create_event(void *params)
{
    *((struct hed_cuEventCreate *)params)->phEvent = (CUevent)0x8000;
    return CUDA_SUCCESS;
}

FAKE_PUBLIC CUresult
cuEventCreate(CUevent *out, unsigned flags)
{
    CALL(cuEventCreate, create_event, out, flags);
}

FAKE_PUBLIC CUresult
cuEventRecord(CUevent event, CUstream stream)
{
    CALL(cuEventRecord, nothing, event, stream);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream);

FAKE_PUBLIC CUresult
cuEventRecord_ptsz(CUevent event, CUstream stream)
{
    struct hed_cuEventRecord p = {event, stream, 0};

    return make_call(ID_cuEventRecord_ptsz, &p, sizeof p, nothing);
}

FAKE_PUBLIC CUresult
cuEventQuery(CUevent event)
{
    CALL(cuEventQuery, nothing, event);
}

static CUresult
elapsed(void *params)
{
    *((struct hed_cuEventElapsedTime *)params)->pMilliseconds = 0.01f;
    return CUDA_SUCCESS;
}

FAKE_PUBLIC CUresult
cuEventElapsedTime(float *out, CUevent a, CUevent b)
{
    CALL(cuEventElapsedTime, elapsed, out, a, b);
}

FAKE_PUBLIC CUresult
cuEventDestroy_v2(CUevent event)
{
    CALL(cuEventDestroy_v2, nothing, event);
}

/* A function that only a driver newer than heddle has. Returns how many launches there were. */
static CUresult
tomorrow(void *params)
{
    **(int **)params = (int)atomic_load(&fake_seen.count);
    return CUDA_SUCCESS;
}

FAKE_PUBLIC CUresult
cuTomorrow(int *out)
{
    struct {
        int *out;
    } p = {out};

    return make_call(ID_cuTomorrow, &p, sizeof p, tomorrow);
}
