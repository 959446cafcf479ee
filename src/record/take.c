/* Which calls may be deferred, and what must be copied for that. The program's thread examines the
 * call and asks the driver about its memory. A call is deferred only if all answers are certain. */
#include <limits.h>
#include <stddef.h>

#include "record/engine.h"

#define GRID_YZ_MAX 65535u

/* ---- launches -------------------------------------------------------------------------------- */

/* Whether a launch with this grid fails for every kernel. */
static bool
grid_is_bad(unsigned x, unsigned y, unsigned z)
{
    return x == 0 || y == 0 || z == 0 || x > INT_MAX || y > GRID_YZ_MAX || z > GRID_YZ_MAX;
}

static uint64_t
mix_grid(uint64_t hash, unsigned x, unsigned y, unsigned z)
{
    return hed_record_mix(hed_record_mix(hash, (uint64_t)x << 32 | y), z);
}

/* Packed arguments in `extra`. False: they do not have the documented form. */
static bool
examine_extra(struct hed_record_candidate *t, void **extra, size_t at)
{
    const void *data = NULL;
    const size_t *size = NULL;

    for (int i = 0; extra[i] != HED_PARAM_END; i += 2) {
        if (i == 4)
            return false;
        if (extra[i] == HED_PARAM_BUFFER_POINTER)
            data = extra[i + 1];
        else if (extra[i] == HED_PARAM_BUFFER_SIZE)
            size = extra[i + 1];
        else
            return false;
    }
    if (!data || !size || *size > HED_RECORD_MAX)
        return false;
    t->data = data;
    t->size = *size;
    t->data_at = at;
    t->packed = true;
    t->kind = hed_record_mix(t->kind, t->size + 1);
    return true;
}

/* Finds the kernel's arguments. */
static bool
examine_arguments(struct hed_record_candidate *t, void **params, size_t params_at, void **extra,
                  size_t extra_at)
{
    if (extra && params)
        return false;
    if (extra)
        return examine_extra(t, extra, extra_at);
    t->has_params = true;
    t->params = params;
    t->params_at = params_at;
    t->kind = hed_record_mix(t->kind, params == NULL);
    return true;
}

static void
set_kernel(struct hed_record_candidate *t, CUfunction f, const unsigned block[3], unsigned shared)
{
    t->function = f;
    t->shared = shared;
    t->kind = hed_record_mix(t->id, (uint64_t)(uintptr_t)f);
    t->kind = hed_record_mix(t->kind, (uint64_t)block[0] << 32 | shared);
    t->kind = hed_record_mix(t->kind, (uint64_t)block[1] << 32 | block[2]);
}

static bool
examine_launch(struct hed_record_candidate *t)
{
    const struct hed_cuLaunchKernel *a = t->args;
    const unsigned block[3] = {a->blockDimX, a->blockDimY, a->blockDimZ};

    if (!a->f || grid_is_bad(a->gridDimX, a->gridDimY, a->gridDimZ))
        return false;
    set_kernel(t, a->f, block, a->sharedMemBytes);
    return examine_arguments(t, a->kernelParams, offsetof(struct hed_cuLaunchKernel, kernelParams),
                             a->extra, offsetof(struct hed_cuLaunchKernel, extra));
}

static bool
examine_cooperative(struct hed_record_candidate *t)
{
    const struct hed_cuLaunchCooperativeKernel *a = t->args;
    const unsigned block[3] = {a->blockDimX, a->blockDimY, a->blockDimZ};

    if (!a->f || grid_is_bad(a->gridDimX, a->gridDimY, a->gridDimZ))
        return false;
    set_kernel(t, a->f, block, a->sharedMemBytes);
    /* The driver refuses a cooperative grid that does not fit on the GPU as a whole. */
    t->kind = mix_grid(t->kind, a->gridDimX, a->gridDimY, a->gridDimZ);
    return examine_arguments(t, a->kernelParams,
                             offsetof(struct hed_cuLaunchCooperativeKernel, kernelParams), NULL, 0);
}

/* Adds the values of an attribute for which a launch may be refused to its kind, and notes its
 * event. False: the attribute is unknown, or the launch would write an answer for the caller. */
static bool
examine_attribute(struct hed_record_candidate *t, const CUlaunchAttribute *a)
{
    const CUlaunchAttributeValue *v = &a->value;

    t->kind = hed_record_mix(t->kind, (uint64_t)a->id);
    switch ((int)a->id) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        t->kind = mix_grid(t->kind, v->clusterDim.x, v->clusterDim.y, v->clusterDim.z);
        return true;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        t->kind = hed_record_mix(t->kind, (uint32_t)v->cooperative);
        return true;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
        return true;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        if (t->touches)
            return false;
        t->touches = (uint64_t)(uintptr_t)v->programmaticEvent.event;
        return t->touches;
    default:
        return false;
    }
}

static bool
examine_launch_ex(struct hed_record_candidate *t)
{
    const struct hed_cuLaunchKernelEx *a = t->args;
    const CUlaunchConfig *k = a->config;

    if (!k || !a->f || grid_is_bad(k->gridDimX, k->gridDimY, k->gridDimZ) || k->numAttrs > 64 ||
        (k->numAttrs && !k->attrs))
        return false;

    const unsigned block[3] = {k->blockDimX, k->blockDimY, k->blockDimZ};

    set_kernel(t, a->f, block, k->sharedMemBytes);
    if (k->numAttrs)
        t->kind = mix_grid(t->kind, k->gridDimX, k->gridDimY, k->gridDimZ);
    for (unsigned i = 0; i < k->numAttrs; i++)
        if (!examine_attribute(t, &k->attrs[i]))
            return false;
    t->config = k;
    return examine_arguments(t, a->kernelParams,
                             offsetof(struct hed_cuLaunchKernelEx, kernelParams), a->extra,
                             offsetof(struct hed_cuLaunchKernelEx, extra));
}

/* ---- events, functions, words ---------------------------------------------------------------- */

static bool
examine_event(struct hed_record_candidate *t, CUevent event, unsigned flags)
{
    t->touches = (uint64_t)(uintptr_t)event;
    return event && flags == 0;
}

/* Words in memory that a stream waits for or writes. The flags decide what the driver refuses. */
static bool
examine_word(struct hed_recorder *r, struct hed_record_candidate *t, CUdeviceptr at, unsigned flags,
             size_t size)
{
    t->kind = hed_record_mix(t->id, flags);
    return at % size == 0 &&
           (hed_record_is_device(r, at, size) || hed_record_is_pinned(r, at, size));
}

#define WORD(call, bytes)                                                  \
    case HED_##call:                                                       \
        return examine_word(r, t, ((const struct hed_##call *)args)->addr, \
                            ((const struct hed_##call *)args)->flags, bytes);

static bool
examine_order(struct hed_recorder *r, struct hed_record_candidate *t)
{
    const void *args = t->args;
    const struct hed_cuEventRecord *rec = args;
    const struct hed_cuEventRecordWithFlags *flagged = args;
    const struct hed_cuStreamWaitEvent *wait = args;
    const struct hed_cuStreamAddCallback *callback = args;

    switch ((int)t->id) {
    case HED_cuEventRecord:
        return examine_event(t, rec->hEvent, 0);
    case HED_cuEventRecordWithFlags:
        return examine_event(t, flagged->hEvent, flagged->flags);
    case HED_cuStreamWaitEvent:
        return examine_event(t, wait->hEvent, wait->Flags);
    case HED_cuLaunchHostFunc:
        return ((const struct hed_cuLaunchHostFunc *)args)->fn;
    case HED_cuStreamAddCallback:
        /* With stream=own the callback must get the program's stream (see stream.c). */
        return callback->callback && callback->flags == 0 && !r->own;
    case HED_cuMemFreeAsync:
        t->frees = ((const struct hed_cuMemFreeAsync *)args)->dptr;
        return hed_record_is_allocation(r, t->frees);
        WORD(cuStreamWriteValue32, 4)
        WORD(cuStreamWriteValue32_v2, 4)
        WORD(cuStreamWriteValue64, 8)
        WORD(cuStreamWriteValue64_v2, 8)
        WORD(cuStreamWaitValue32, 4)
        WORD(cuStreamWaitValue32_v2, 4)
        WORD(cuStreamWaitValue64, 8)
        WORD(cuStreamWaitValue64_v2, 8)
    default:
        return false;
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

unsigned
hed_record_sort(enum hed_cuda_call id)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    if (!(info->flags & HED_CALL_DEFER))
        return 0;
    if (info->does == HED_DOES_LAUNCH)
        return HED_RECORD_LAUNCHES;
    return info->does == HED_DOES_ORDER ? HED_RECORD_ORDER : HED_RECORD_COPIES;
}

static bool
examine_by_call(struct hed_recorder *r, struct hed_record_candidate *t)
{
    switch ((int)t->id) {
    case HED_cuLaunchKernel:
        return examine_launch(t);
    case HED_cuLaunchKernelEx:
        return examine_launch_ex(t);
    case HED_cuLaunchCooperativeKernel:
        return examine_cooperative(t);
    case HED_cuGraphLaunch:
        t->touches = (uint64_t)(uintptr_t)((const struct hed_cuGraphLaunch *)t->args)->hGraph;
        return t->touches;
    default:
        return hed_record_sort(t->id) == HED_RECORD_COPIES ? hed_record_examine_copy(r, t)
                                                           : examine_order(r, t);
    }
}

bool
hed_record_examine(struct hed_recorder *r, struct hed_record_candidate *t)
{
    if (!examine_by_call(r, t))
        return false;
    /* Every call needs a kind that has succeeded in this context: in a context that has failed, no
     * call succeeds. */
    t->kind = t->kind ? t->kind : hed_record_mix(1, t->id);
    t->kind = hed_record_mix(t->kind, (uint64_t)(uintptr_t)t->context) | 1;
    return true;
}
