/* Launching a kernel: makes every check that CUDA makes before the call returns, copies the
 * parameters, and hands the launch to the stream's machine. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "core/stats.h"
#include "driver/module/launch.h"
#include "driver/module/module.h"
#include "driver/module/occupancy.h"
#include "driver/module/old_launch.h"
#include "driver/stream/stream.h"
#include "driver/stream/work.h"

#define EXTRA_MAX 64 /* entries of `extra` that are read */

#define PARAMS_ON_STACK 4096 /* bytes; most devices allow no more */

/* ---- sizes ----------------------------------------------------------------------------------- */

static uint32_t
launch_limit(const struct hed_function *f, CUdevice_attribute a, uint32_t otherwise)
{
    return hed_profile_number(hed_function_profile(f), a, otherwise);
}

/* All blocks of a cooperative grid must be on the device at once. */
static CUresult
check_cooperative(const struct hed_function *f, const struct hed_launch *l)
{
    const struct hed_code_kernel *k = hed_function_kernel(f);
    const struct hed_need need = {l->block[0] * l->block[1] * l->block[2], k->registers, k->shared,
                                  l->dynamic_shared};
    const uint64_t room = (uint64_t)hed_occupancy_blocks(hed_function_profile(f), &need) *
                          launch_limit(f, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);

    if (!launch_limit(f, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1))
        return CUDA_ERROR_NOT_SUPPORTED;
    return (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] <= room
               ? CUDA_SUCCESS
               : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* Copies one parameter. Most are pointers or plain numbers. With the size known to the compiler the
 * copy is an instruction or two instead of a call, and launches are the hot path. */
static inline void
copy_param(unsigned char *to, const void *from, uint32_t size)
{
    if (size == 8)
        memcpy(to, from, 8);
    else if (size == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, size);
}

/* Copies the parameters from an array with one pointer per parameter. */
static CUresult
copy_each(const struct hed_code_kernel *k, void *const *params, unsigned char *to)
{
    for (uint32_t i = 0; i < k->param_count; i++) {
        if (!params[i])
            return CUDA_ERROR_INVALID_VALUE;
        copy_param(to + k->params[i].offset, params[i], k->params[i].size);
    }
    return CUDA_SUCCESS;
}

/* Copies the parameters from a buffer that has all of them. */
static CUresult
copy_buffer(const struct hed_code_kernel *k, void *const *extra, unsigned char *to)
{
    const void *buffer = NULL;
    const size_t *size = NULL;

    for (unsigned i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[i + 1];
        else
            return CUDA_ERROR_INVALID_VALUE;
        if (i >= EXTRA_MAX)
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (k->param_bytes == 0)
        return CUDA_SUCCESS;
    if (!buffer || !size || *size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    /* NVIDIA's drivers accept a buffer that is too short, and refuse one that is too long with
     * exactly this error (measured on 580). */
    if (*size > k->param_bytes)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    memcpy(to, buffer, *size);
    return CUDA_SUCCESS;
}

/* Copies the parameters to `room`, which has k->param_bytes or is NULL: then memory is
 * allocated. */
static CUresult
take_params(const struct hed_code_kernel *k, void **params, void **extra, unsigned char *room,
            struct hed_launch *l)
{
    if (params && extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (k->param_bytes == 0)
        return extra ? copy_buffer(k, extra, NULL) : CUDA_SUCCESS;
    if (!params && !extra)
        return CUDA_ERROR_INVALID_VALUE;

    /* Zeroed, so that padding between parameters does not leak other data. */
    unsigned char *to = room ? memset(room, 0, k->param_bytes) : hed_params_create(k->param_bytes);

    if (!to)
        return CUDA_ERROR_OUT_OF_MEMORY;
    l->params = to;
    l->param_bytes = k->param_bytes;
    return params ? copy_each(k, params, to) : copy_buffer(k, extra, to);
}

/* ---- work ------------------------------------------------------------------------------------ */

/* Fills in a launch, except for its parameters, and makes the checks that CUDA makes before the
 * call returns. The caller has set sizes and attributes. */
static CUresult
check_launch(struct hed_function *f, struct hed_launch *l)
{
    const struct hed_code_kernel *k = hed_function_kernel(f);
    const struct hed_context *c = f->module->ctx;
    CUresult r;

    l->function = f;
    l->code = f->module->code;
    l->kernel = f->kernel;
    l->variables = f->module->variables;
    l->device = c->device->ordinal;
    l->profile = &c->device->info.profile;
    l->stack_limit = c->limits[CU_LIMIT_STACK_SIZE];
    l->heap_limit = c->limits[CU_LIMIT_MALLOC_HEAP_SIZE];
    l->printf_limit = c->limits[CU_LIMIT_PRINTF_FIFO_SIZE];
    l->pending_limit = c->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT];
    r = hed_launch_shape_fits(k, l->profile, l->grid, l->block) ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS &&
        l->dynamic_shared > hed_dynamic_shared_max(k, hed_function_profile(f), f->settings))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        r = hed_launch_attributes(f, l, l->attributes, l->attribute_count);
    if (r == CUDA_SUCCESS && l->cooperative)
        r = check_cooperative(f, l);
    return r;
}

/* Makes work that owns its copy of the launch. The caller keeps its reference to the function. */
static CUresult
make_kernel_work(struct hed_context *c, struct hed_function *f, const struct hed_launch *given,
                 void **params, void **extra, struct hed_work **out)
{
    struct hed_work *w = hed_work_create(c, HED_WORK_KERNEL);
    CUresult r;

    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    w->kernel = *given;
    hed_object_ref(&f->object);
    r = check_launch(f, &w->kernel);

    const CUresult kept = hed_launch_keep(&w->kernel, given->attributes, given->attribute_count);

    if (r == CUDA_SUCCESS)
        r = kept;
    if (r == CUDA_SUCCESS)
        r = take_params(hed_function_kernel(f), params, extra, NULL, &w->kernel);
    if (r == CUDA_SUCCESS)
        r = hed_function_prepare(f, w->kernel.block);
    if (r == CUDA_SUCCESS)
        *out = w;
    else
        hed_work_free(w);
    return r;
}

static struct hed_launch
launch_of(CUfunction f, const CUlaunchConfig *config)
{
    return (struct hed_launch){
        .given = f,
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .dynamic_shared = config->sharedMemBytes,
        .attributes = config->attrs,
        .attribute_count = config->numAttrs,
    };
}

CUresult
hed_kernel_work_create(struct hed_context *c, CUfunction handle, const CUlaunchConfig *config,
                       void **params, void **extra, struct hed_work **out)
{
    const struct hed_launch l = launch_of(handle, config);
    struct hed_function *f;
    CUresult r = hed_function_find(c, handle, &f);

    if (r != CUDA_SUCCESS)
        return r;
    r = make_kernel_work(c, f, &l, params, extra, out);
    hed_object_put(&f->object);
    return r;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool
event_of(const CUlaunchAttribute *a, CUevent *out)
{
    if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
        *out = a->value.programmaticEvent.event;
    else if (a->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
        *out = a->value.launchCompletionEvent.event;
    else
        return false;
    return true;
}

/* Records the events of a launch behind it, which is as late as CUDA allows. */
static CUresult
record_events(struct hed_layer *self, const struct hed_launch *l, CUstream stream, bool ptds)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < l->attribute_count && r == CUDA_SUCCESS; i++) {
        CUevent event;

        if (event_of(&l->attributes[i], &event))
            r = self->cuda->cuEventRecord(
                self,
                &(struct hed_cuEventRecord){.hEvent = event, .hStream = stream, .ptds = ptds});
    }
    return r;
}

static CUresult
check_events(struct hed_layer *self, const struct hed_launch *l)
{
    for (unsigned i = 0; i < l->attribute_count; i++) {
        const CUlaunchAttribute *a = &l->attributes[i];
        CUevent event;

        if (!event_of(a, &event))
            continue;

        struct hed_event *e = hed_event_find(hed_driver_of(self), event);

        if (!e)
            return CUDA_ERROR_INVALID_HANDLE;
        hed_object_put(&e->object);
    }
    return CUDA_SUCCESS;
}

/* Adds a node to the graph that is being captured. */
static CUresult
capture_kernel_launch(struct hed_stream *s, struct hed_function *f, const struct hed_launch *l,
                      void **params, void **extra)
{
    struct hed_work *w;
    const CUresult r = make_kernel_work(s->ctx, f, l, params, extra, &w);

    return r == CUDA_SUCCESS ? hed_submit(s, w) : r;
}

/* Launches on a stream that is not capturing. */
static CUresult
launch_now(struct hed_stream *s, struct hed_function *f, struct hed_launch *l, void **params,
           void **extra)
{
    _Alignas(HED_PARAMS_ALIGN) unsigned char on_stack[PARAMS_ON_STACK];
    const struct hed_code_kernel *k = hed_function_kernel(f);
    const bool large = k->param_bytes > PARAMS_ON_STACK;
    CUresult r = hed_submit_allowed(s);
    void *m;

    if (r == CUDA_SUCCESS)
        r = check_launch(f, l);
    if (r == CUDA_SUCCESS)
        r = take_params(k, params, extra, large ? NULL : on_stack, l);
    if (r == CUDA_SUCCESS)
        r = hed_function_prepare(f, l->block);
    if (r == CUDA_SUCCESS)
        r = hed_machine_of(s->ctx, &m)->launch(m, s, l);
    if (large)
        free((void *)(uintptr_t)l->params);
    return r;
}

/* The launch runs in the stream's context, even if another context is current. */
static CUresult
launch_on_stream(struct hed_layer *self, struct hed_launch *l, void **params, void **extra,
                 CUstream stream, bool ptds)
{
    struct hed_function *f;
    struct hed_stream *s;
    CUresult r = hed_stream_find(self, stream, ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    r = check_events(self, l);
    if (r == CUDA_SUCCESS)
        r = hed_function_find(s->ctx, l->given, &f);
    if (r == CUDA_SUCCESS) {
        /* Acquire: pairs with the release in hed_capture_join_locked(). */
        r = atomic_load_explicit(&s->capture, memory_order_acquire)
                ? capture_kernel_launch(s, f, l, params, extra)
                : launch_now(s, f, l, params, extra);
        hed_object_put(&f->object);
    }
    hed_stream_put(s);
    if (r == CUDA_SUCCESS && l->attribute_count)
        r = record_events(self, l, stream, ptds);
    return r;
}

static CUresult
soft_cuLaunchKernel(struct hed_layer *self, struct hed_cuLaunchKernel *a)
{
    struct hed_launch l = {.given = a->f,
                           .grid = {a->gridDimX, a->gridDimY, a->gridDimZ},
                           .block = {a->blockDimX, a->blockDimY, a->blockDimZ},
                           .dynamic_shared = a->sharedMemBytes};

    return launch_on_stream(self, &l, a->kernelParams, a->extra, a->hStream, a->ptds);
}

static CUresult
soft_cuLaunchKernelEx(struct hed_layer *self, struct hed_cuLaunchKernelEx *a)
{
    struct hed_launch l;

    if (!a->config || (a->config->numAttrs && !a->config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    l = launch_of(a->f, a->config);
    return launch_on_stream(self, &l, a->kernelParams, a->extra, a->config->hStream, a->ptds);
}

static CUresult
soft_cuLaunchCooperativeKernel(struct hed_layer *self, struct hed_cuLaunchCooperativeKernel *a)
{
    CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    struct hed_launch l = {.given = a->f,
                           .grid = {a->gridDimX, a->gridDimY, a->gridDimZ},
                           .block = {a->blockDimX, a->blockDimY, a->blockDimZ},
                           .dynamic_shared = a->sharedMemBytes,
                           .attributes = &cooperative,
                           .attribute_count = 1};

    return launch_on_stream(self, &l, a->kernelParams, NULL, a->hStream, a->ptds);
}

const struct hed_cuda_ops hed_calls_launch = {
    .cuLaunchKernel = soft_cuLaunchKernel,
    .cuLaunchKernelEx = soft_cuLaunchKernelEx,
    .cuLaunchCooperativeKernel = soft_cuLaunchCooperativeKernel,
    .cuFuncSetBlockShape = hed_old_cuFuncSetBlockShape,
    .cuFuncSetSharedSize = hed_old_cuFuncSetSharedSize,
    .cuParamSetSize = hed_old_cuParamSetSize,
    .cuParamSeti = hed_old_cuParamSeti,
    .cuParamSetf = hed_old_cuParamSetf,
    .cuParamSetv = hed_old_cuParamSetv,
    .cuLaunch = hed_old_cuLaunch,
    .cuLaunchGrid = hed_old_cuLaunchGrid,
    .cuLaunchGridAsync = hed_old_cuLaunchGridAsync,
};
