/* Calls about streams: creating, queries, waiting, functions of the program, attributes. Captures
 * are in capture_calls.c, events in event.c, values in memory in memop.c. */
#include <string.h>

#include "driver/graph/graph.h"
#include "driver/memory/memory.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"

/* ---- creating -------------------------------------------------------------------------------- */

static CUresult
create_stream(struct hed_layer *self, unsigned flags, int priority, CUstream *out)
{
    struct hed_context *c;
    const CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!out || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    return hed_stream_create(c, flags, priority, out);
}

static CUresult
soft_cuStreamCreate(struct hed_layer *self, struct hed_cuStreamCreate *a)
{
    return create_stream(self, a->Flags, 0, a->phStream);
}

static CUresult
soft_cuStreamCreateWithPriority(struct hed_layer *self, struct hed_cuStreamCreateWithPriority *a)
{
    return create_stream(self, a->flags, a->priority, a->phStream);
}

/* The handle is removed now, and queued work still runs. A failed context does not keep its
 * streams, but its error is the result. The machine is told before the handle can be given to
 * another stream. */
static CUresult
destroy_stream(struct hed_layer *self, CUstream handle)
{
    struct hed_handles *handles = hed_driver_of(self)->handles;
    struct hed_object *o = hed_handles_get(handles, HED_KIND_STREAM, (uintptr_t)handle);

    if (!o)
        return CUDA_ERROR_INVALID_HANDLE;

    struct hed_stream *s = (struct hed_stream *)o;
    CUresult r = hed_context_error(s->ctx);

    hed_capture_stream_destroyed(s);
    hed_stream_end(s);
    o = hed_handles_remove(handles, HED_KIND_STREAM, (uintptr_t)handle);
    if (o)
        hed_object_put(o);
    else
        r = CUDA_ERROR_INVALID_HANDLE; /* another thread has destroyed it meanwhile */
    hed_stream_put(s);
    return r;
}

static CUresult
soft_cuStreamDestroy(struct hed_layer *self, struct hed_cuStreamDestroy *a)
{
    return destroy_stream(self, a->hStream);
}

static CUresult
soft_cuStreamDestroy_v2(struct hed_layer *self, struct hed_cuStreamDestroy_v2 *a)
{
    return destroy_stream(self, a->hStream);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* A stream that may be queried for its progress: not a capturing one. */
static CUresult
find_running(struct hed_layer *self, CUstream handle, bool ptds, struct hed_stream **out)
{
    struct hed_stream *s;
    CUresult r = hed_stream_find(self, handle, ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    /* Acquire: pairs with the release in hed_capture_join_locked(). */
    if (atomic_load_explicit(&s->capture, memory_order_acquire))
        r = hed_capture_broken(s);
    else if (s->is_legacy)
        r = hed_capture_implicit(s->ctx);
    if (r != CUDA_SUCCESS)
        hed_stream_put(s);
    else
        *out = s;
    return r;
}

static CUresult
soft_cuStreamQuery(struct hed_layer *self, struct hed_cuStreamQuery *a)
{
    struct hed_stream *s;
    CUresult r = find_running(self, a->hStream, a->ptds, &s);
    void *m;

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_machine_of(s->ctx, &m)->stream_query(m, s);
    hed_stream_put(s);
    return r;
}

static CUresult
soft_cuStreamSynchronize(struct hed_layer *self, struct hed_cuStreamSynchronize *a)
{
    struct hed_stream *s;
    CUresult r = find_running(self, a->hStream, a->ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_stream_synchronize(s);
    hed_stream_put(s);
    return r;
}

/* ---- the program's functions ----------------------------------------------------------------- */

static CUresult
soft_cuLaunchHostFunc(struct hed_layer *self, struct hed_cuLaunchHostFunc *a)
{
    struct hed_stream *s;
    CUresult r = hed_stream_find(self, a->hStream, a->ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_work *w = a->fn ? hed_work_create(s->ctx, HED_WORK_HOST) : NULL;

    if (w) {
        w->host.fn = a->fn;
        w->host.data = a->userData;
        r = hed_submit(s, w);
    } else {
        r = a->fn ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    }
    hed_stream_put(s);
    return r;
}

static CUresult
soft_cuStreamAddCallback(struct hed_layer *self, struct hed_cuStreamAddCallback *a)
{
    const bool good = a->callback && a->flags == 0;
    struct hed_stream *s;
    CUresult r = hed_stream_find(self, a->hStream, a->ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_work *w = good ? hed_work_create(s->ctx, HED_WORK_CALLBACK) : NULL;

    if (w) {
        w->callback.fn = a->callback;
        w->callback.data = a->userData;
        w->callback.stream = a->hStream;
        r = hed_submit(s, w);
    } else {
        r = good ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    }
    hed_stream_put(s);
    return r;
}

/* All memory can be reached from everywhere at any time, so there is nothing to attach. The call
 * takes its place in the stream's order, and invalid arguments are refused. */
static CUresult
soft_cuStreamAttachMemAsync(struct hed_layer *self, struct hed_cuStreamAttachMemAsync *a)
{
    struct hed_allocation m;
    struct hed_stream *s;
    CUresult r = hed_stream_find(self, a->hStream, a->ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    if ((a->flags != CU_MEM_ATTACH_GLOBAL && a->flags != CU_MEM_ATTACH_HOST &&
         a->flags != CU_MEM_ATTACH_SINGLE) ||
        (a->flags == CU_MEM_ATTACH_SINGLE && s->is_legacy) ||
        !hed_memory_find(hed_driver_of(self), a->dptr, &m) || m.kind != HED_MEMORY_MANAGED ||
        m.at != a->dptr || (a->length != 0 && a->length != m.size)) {
        r = CUDA_ERROR_INVALID_VALUE;
    } else {
        struct hed_work *w = hed_work_create(s->ctx, HED_WORK_NONE);

        r = w ? hed_submit(s, w) : CUDA_ERROR_OUT_OF_MEMORY;
    }
    hed_stream_put(s);
    return r;
}

/* ---- queries --------------------------------------------------------------------------------- */

static CUresult
soft_cuStreamGetFlags(struct hed_layer *self, struct hed_cuStreamGetFlags *a)
{
    struct hed_stream *s;
    const CUresult r = hed_stream_find(self, a->hStream, a->ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    if (a->flags)
        *a->flags = s->flags;
    hed_stream_put(s);
    return a->flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int
priority_of(struct hed_stream *s)
{
    hed_lock(&s->lock);

    const int priority = s->priority;

    hed_unlock(&s->lock);
    return priority;
}

static CUresult
soft_cuStreamGetPriority(struct hed_layer *self, struct hed_cuStreamGetPriority *a)
{
    struct hed_stream *s;
    const CUresult r = hed_stream_find(self, a->hStream, a->ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    if (a->priority)
        *a->priority = priority_of(s);
    hed_stream_put(s);
    return a->priority ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
soft_cuStreamGetId(struct hed_layer *self, struct hed_cuStreamGetId *a)
{
    struct hed_stream *s;
    const CUresult r = hed_stream_find(self, a->hStream, a->ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    if (a->streamId)
        *a->streamId = s->id;
    hed_stream_put(s);
    return a->streamId ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
soft_cuStreamGetDevice(struct hed_layer *self, struct hed_cuStreamGetDevice *a)
{
    struct hed_stream *s;
    const CUresult r = hed_stream_find(self, a->hStream, a->ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    if (a->device)
        *a->device = s->ctx->device->ordinal;
    hed_stream_put(s);
    return a->device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
get_context(struct hed_layer *self, CUstream stream, bool ptds, CUcontext *out)
{
    struct hed_stream *s;
    const CUresult r = hed_stream_find(self, stream, ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    if (out)
        *out = hed_context_handle(s->ctx);
    hed_stream_put(s);
    return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
soft_cuStreamGetCtx(struct hed_layer *self, struct hed_cuStreamGetCtx *a)
{
    return get_context(self, a->hStream, a->ptds, a->pctx);
}

/* There are no green contexts, so no stream belongs to one. */
static CUresult
soft_cuStreamGetCtx_v2(struct hed_layer *self, struct hed_cuStreamGetCtx_v2 *a)
{
    const CUresult r = get_context(self, a->hStream, a->ptds, a->pCtx);

    if (r == CUDA_SUCCESS && a->pGreenCtx)
        *a->pGreenCtx = NULL;
    return r;
}

static CUresult
soft_cuStreamGetGreenCtx(struct hed_layer *self, struct hed_cuStreamGetGreenCtx *a)
{
    struct hed_stream *s;
    const CUresult r = hed_stream_find(self, a->hStream, false, &s);

    if (r != CUDA_SUCCESS)
        return r;
    hed_stream_put(s);
    if (!a->phCtx)
        return CUDA_ERROR_INVALID_VALUE;
    *a->phCtx = NULL;
    return CUDA_SUCCESS;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static bool
is_stream_attribute(CUlaunchAttributeID id)
{
    return id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
           id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY || id == CU_LAUNCH_ATTRIBUTE_PRIORITY ||
           id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP ||
           id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

static bool
is_good_window(const struct hed_profile *p, const CUaccessPolicyWindow_v1 *w)
{
    const int most = p->attributes[CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE];

    return w->num_bytes <= (size_t)(most > 0 ? most : 0) && w->hitRatio >= 0 && w->hitRatio <= 1 &&
           (unsigned)w->hitProp <= CU_ACCESS_PROPERTY_PERSISTING &&
           (unsigned)w->missProp <= CU_ACCESS_PROPERTY_STREAMING;
}

static bool
is_good_value(const struct hed_stream *s, CUlaunchAttributeID id, const CUlaunchAttributeValue *v)
{
    const struct hed_profile *p = &s->ctx->device->info.profile;
    const int domains = p->attributes[CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT];

    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        return is_good_window(p, &v->accessPolicyWindow);
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        return v->syncPolicy >= CU_SYNC_POLICY_AUTO &&
               v->syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        /* A device without domains has one, with the number 0. */
        return v->memSyncDomainMap.default_ < (domains > 0 ? domains : 1) &&
               v->memSyncDomainMap.remote < (domains > 0 ? domains : 1);
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return (unsigned)v->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    default:
        return id == CU_LAUNCH_ATTRIBUTE_PRIORITY; /* any value is valid: it is clamped */
    }
}

static void
set_locked(struct hed_stream *s, CUlaunchAttributeID id, const CUlaunchAttributeValue *v)
{
    void *m;

    s->attributes[id] = *v;
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
        s->priority = hed_stream_priority(v->priority);
    hed_machine_of(s->ctx, &m)->stream_set(m, s, id, v);
}

static CUresult
soft_cuStreamGetAttribute(struct hed_layer *self, struct hed_cuStreamGetAttribute *a)
{
    struct hed_stream *s;
    CUresult r = hed_stream_find(self, a->hStream, a->ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    r = CUDA_ERROR_INVALID_VALUE;
    if (a->value && is_stream_attribute(a->attr)) {
        hed_lock(&s->lock);
        if (a->attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            s->attributes[a->attr].priority = s->priority;
        *a->value = s->attributes[a->attr];
        hed_unlock(&s->lock);
        r = CUDA_SUCCESS;
    }
    hed_stream_put(s);
    return r;
}

static CUresult
soft_cuStreamSetAttribute(struct hed_layer *self, struct hed_cuStreamSetAttribute *a)
{
    struct hed_stream *s;
    CUresult r = hed_stream_find(self, a->hStream, a->ptds, &s);

    if (r != CUDA_SUCCESS)
        return r;
    r = CUDA_ERROR_INVALID_VALUE;
    if (a->param && is_good_value(s, a->attr, a->param)) {
        hed_lock(&s->lock);
        set_locked(s, a->attr, a->param);
        hed_unlock(&s->lock);
        r = CUDA_SUCCESS;
    }
    hed_stream_put(s);
    return r;
}

/* cuda.h: "Both streams must have the same context." */
static CUresult
copy_attributes(struct hed_stream *to, struct hed_stream *from)
{
    CUlaunchAttributeValue values[sizeof from->attributes / sizeof from->attributes[0]];

    if (to->ctx != from->ctx)
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&from->lock);
    memcpy(values, from->attributes, sizeof values);
    values[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority = from->priority;
    hed_unlock(&from->lock);
    hed_lock(&to->lock);
    for (int i = 0; i < (int)(sizeof values / sizeof values[0]); i++)
        if (is_stream_attribute((CUlaunchAttributeID)i))
            set_locked(to, (CUlaunchAttributeID)i, &values[i]);
    hed_unlock(&to->lock);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuStreamCopyAttributes(struct hed_layer *self, struct hed_cuStreamCopyAttributes *a)
{
    struct hed_stream *to;
    struct hed_stream *from;
    CUresult r = hed_stream_find(self, a->dstStream, a->ptds, &to);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_stream_find(self, a->srcStream, a->ptds, &from);
    if (r == CUDA_SUCCESS) {
        r = copy_attributes(to, from);
        hed_stream_put(from);
    }
    hed_stream_put(to);
    return r;
}

const struct hed_cuda_ops hed_calls_stream = {
    .cuLaunchHostFunc = soft_cuLaunchHostFunc,
    .cuStreamAddCallback = soft_cuStreamAddCallback,
    .cuStreamAttachMemAsync = soft_cuStreamAttachMemAsync,
    .cuStreamCopyAttributes = soft_cuStreamCopyAttributes,
    .cuStreamCreate = soft_cuStreamCreate,
    .cuStreamCreateWithPriority = soft_cuStreamCreateWithPriority,
    .cuStreamDestroy = soft_cuStreamDestroy,
    .cuStreamDestroy_v2 = soft_cuStreamDestroy_v2,
    .cuStreamGetAttribute = soft_cuStreamGetAttribute,
    .cuStreamGetCtx = soft_cuStreamGetCtx,
    .cuStreamGetCtx_v2 = soft_cuStreamGetCtx_v2,
    .cuStreamGetDevice = soft_cuStreamGetDevice,
    .cuStreamGetFlags = soft_cuStreamGetFlags,
    .cuStreamGetGreenCtx = soft_cuStreamGetGreenCtx,
    .cuStreamGetId = soft_cuStreamGetId,
    .cuStreamGetPriority = soft_cuStreamGetPriority,
    .cuStreamQuery = soft_cuStreamQuery,
    .cuStreamSetAttribute = soft_cuStreamSetAttribute,
    .cuStreamSynchronize = soft_cuStreamSynchronize,
};
