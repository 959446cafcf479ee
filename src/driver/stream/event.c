/* Events: points in streams that have a handle and a time. See stream.h. */
#include <stdlib.h>

#include "driver/graph/graph.h"
#include "driver/ipc/event.h"
#include "driver/ipc/imported.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"

/* ---- life ------------------------------------------------------------------------------------ */

static void
event_free(struct hed_object *o)
{
    struct hed_event *e = (struct hed_event *)o;

    if (e->capture)
        hed_capture_forget(e);
    if (e->point.stream)
        hed_stream_put(e->point.stream);
    hed_lock_fini(&e->lock);
    hed_context_unref(e->ctx);
    hed_shared_event_free(e->shared);
    free(e);
}

CUresult
hed_event_create(struct hed_context *c, unsigned flags, struct hed_shared_event *shared,
                 CUevent *out)
{
    struct hed_event *e = calloc(1, sizeof *e);
    void *m;

    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->object.destroy = event_free;
    e->ctx = c;
    hed_context_ref(c);
    e->generation = atomic_load_explicit(&c->generation, memory_order_relaxed);
    e->flags = flags;
    hed_lock_init(&e->lock, HED_RANK_EVENT);
    if (hed_handles_add(c->device->driver->handles, HED_KIND_EVENT, &e->object) != 0) {
        event_free(&e->object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    e->shared = shared;
    hed_machine_of(c, &m)->event_made(m, e);
    *out = (CUevent)(uintptr_t)e->object.handle;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuEventCreate(struct hed_layer *self, struct hed_cuEventCreate *a)
{
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    struct hed_shared_event *shared = NULL;
    struct hed_context *c;
    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->phEvent || (a->Flags & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    if (a->Flags & CU_EVENT_INTERPROCESS) {
        if (!(a->Flags & CU_EVENT_DISABLE_TIMING))
            return CUDA_ERROR_INVALID_VALUE;
        if (!hed_ipc_is_possible(c->device->driver, HED_cuEventCreate))
            return CUDA_ERROR_NOT_SUPPORTED;
        if (!c->device->driver->machine->keys &&
            hed_shared_event_create(c->device->info.uuid, &shared) != 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    r = hed_event_create(c, a->Flags, shared, a->phEvent);
    if (r != CUDA_SUCCESS)
        hed_shared_event_free(shared);
    return r;
}

/* CONTEXT_IS_DESTROYED if its context's contents have gone; or the context's sticky error. */
static CUresult
event_state(const struct hed_event *e)
{
    /* Acquire: pairs with the release in close_contents(). */
    if (e->generation != atomic_load_explicit(&e->ctx->generation, memory_order_acquire))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return hed_context_error(e->ctx);
}

struct hed_event *
hed_event_find(struct hed_driver *d, CUevent handle)
{
    return (struct hed_event *)hed_handles_get(d->handles, HED_KIND_EVENT, (uintptr_t)handle);
}

/* An event that calls may use. */
static CUresult
find_event(struct hed_layer *self, CUevent handle, struct hed_event **out)
{
    struct hed_event *e = hed_event_find(hed_driver_of(self), handle);

    if (!e)
        return CUDA_ERROR_INVALID_HANDLE;

    const CUresult r = event_state(e);

    if (r != CUDA_SUCCESS)
        hed_object_put(&e->object);
    else
        *out = e;
    return r;
}

/* Tells the machine once, before the handle can be given to another event. */
static void
tell_gone(struct hed_event *e)
{
    void *m;

    /* Relaxed: only one of the threads that destroy the event can be the first. */
    if (!atomic_exchange_explicit(&e->gone, true, memory_order_relaxed))
        hed_machine_of(e->ctx, &m)->event_gone(m, e);
}

/* The handle is removed at once, and the event goes when no stream has it in its queue any more.
 * This also happens if its context has failed or gone, but then that is the result. */
CUresult
hed_event_drop(struct hed_driver *d, CUevent handle)
{
    struct hed_event *e = hed_event_find(d, handle);

    if (!e)
        return CUDA_ERROR_INVALID_HANDLE;
    tell_gone(e);

    struct hed_object *o = hed_handles_remove(d->handles, HED_KIND_EVENT, (uintptr_t)handle);
    /* Another thread may have destroyed it meanwhile. */
    const CUresult r = o ? event_state(e) : CUDA_ERROR_INVALID_HANDLE;

    if (o) {
        if (e->capture)
            hed_capture_forget(e);
        hed_object_put(o);
    }
    hed_object_put(&e->object);
    return r;
}

static CUresult
soft_cuEventDestroy(struct hed_layer *self, struct hed_cuEventDestroy *a)
{
    return hed_event_drop(hed_driver_of(self), a->hEvent);
}

static CUresult
soft_cuEventDestroy_v2(struct hed_layer *self, struct hed_cuEventDestroy_v2 *a)
{
    return hed_event_drop(hed_driver_of(self), a->hEvent);
}

/* ---- recording and waiting on streams -------------------------------------------------------- */

CUresult
hed_event_submit(struct hed_stream *s, struct hed_event *e, enum hed_work_kind kind, unsigned flags)
{
    struct hed_work *w = hed_work_create(s->ctx, kind);

    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_object_ref(&e->object);
    w->event.event = e;
    w->event.flags = flags;
    if (kind == HED_WORK_EVENT_WAIT && !hed_points_add_event(&w->after, e)) {
        hed_work_free(w);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return hed_submit(s, w);
}

/* Acquire: pairs with the release in hed_capture_join_locked(). */
static bool
event_is_captured(struct hed_stream *s)
{
    return atomic_load_explicit(&s->capture, memory_order_acquire) != NULL;
}

static CUresult
record_on(struct hed_stream *s, struct hed_event *e, unsigned flags)
{
    if (e->ctx != s->ctx)
        return CUDA_ERROR_INVALID_HANDLE;
    if (event_is_captured(s) && !(flags & CU_EVENT_RECORD_EXTERNAL))
        return hed_capture_record(s, e);
    if (!event_is_captured(s)) {
        if (flags & CU_EVENT_RECORD_EXTERNAL)
            return CUDA_ERROR_ILLEGAL_STATE;
        if (e->capture)
            hed_capture_forget(e);
    }
    return hed_event_submit(s, e, HED_WORK_EVENT_RECORD, flags);
}

static CUresult
put_event_record(struct hed_layer *self, CUevent event, CUstream stream, unsigned flags, bool ptds)
{
    struct hed_event *e;
    struct hed_stream *s;
    CUresult r;

    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    r = hed_stream_find(self, stream, ptds, &s);
    if (r != CUDA_SUCCESS)
        return r;
    r = find_event(self, event, &e);
    if (r == CUDA_SUCCESS) {
        r = record_on(s, e, flags);
        hed_object_put(&e->object);
    }
    hed_stream_put(s);
    return r;
}

static CUresult
soft_cuEventRecord(struct hed_layer *self, struct hed_cuEventRecord *a)
{
    return put_event_record(self, a->hEvent, a->hStream, 0, a->ptds);
}

static CUresult
soft_cuEventRecordWithFlags(struct hed_layer *self, struct hed_cuEventRecordWithFlags *a)
{
    return put_event_record(self, a->hEvent, a->hStream, a->flags, a->ptds);
}

/* The event may belong to another context, whose failure does not concern the stream. */
static CUresult
stream_wait_event(struct hed_stream *s, struct hed_event *e, unsigned flags)
{
    const bool external = flags & CU_EVENT_WAIT_EXTERNAL;

    if (external && !event_is_captured(s))
        return CUDA_ERROR_ILLEGAL_STATE;
    if (!external && (event_is_captured(s) || e->capture))
        return hed_capture_wait(s, e);
    return hed_event_submit(s, e, HED_WORK_EVENT_WAIT, flags);
}

static CUresult
soft_cuStreamWaitEvent(struct hed_layer *self, struct hed_cuStreamWaitEvent *a)
{
    struct hed_event *e;
    struct hed_stream *s;
    CUresult r;

    if (a->Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    r = hed_stream_find(self, a->hStream, a->ptds, &s);
    if (r != CUDA_SUCCESS)
        return r;
    r = find_event(self, a->hEvent, &e);
    if (r == CUDA_SUCCESS) {
        r = stream_wait_event(s, e, a->Flags);
        hed_object_put(&e->object);
    }
    hed_stream_put(s);
    return r;
}

/* ---- queries --------------------------------------------------------------------------------- */

struct hed_point
hed_event_point(struct hed_event *e)
{
    hed_lock(&e->lock);

    const struct hed_point p = e->point;

    if (p.stream)
        hed_object_ref(&p.stream->object);
    hed_unlock(&e->lock);
    return p;
}

bool
hed_points_add_event(struct hed_points *p, struct hed_event *e)
{
    const struct hed_point point = hed_event_point(e);
    bool good = true;

    if (point.stream) {
        good = hed_points_add_point(p, point);
        hed_stream_put(point.stream);
    }
    return good;
}

static bool
has_record(struct hed_event *e)
{
    hed_lock(&e->lock);

    const bool recorded = e->recorded;

    hed_unlock(&e->lock);
    return recorded;
}

/* "Operation is not permitted on an event which was last recorded in a capturing stream" (cuda.h,
 * CUDA_ERROR_CAPTURED_EVENT). */
static CUresult
find_asked(struct hed_layer *self, CUevent handle, struct hed_event **out)
{
    const CUresult r = find_event(self, handle, out);

    if (r == CUDA_SUCCESS && (*out)->capture) {
        hed_capture_event_asked(*out);
        hed_object_put(&(*out)->object);
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    return r;
}

static CUresult
soft_cuEventQuery(struct hed_layer *self, struct hed_cuEventQuery *a)
{
    struct hed_event *e;
    CUresult r = find_asked(self, a->hEvent, &e);
    void *m;

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_machine_of(e->ctx, &m)->event_query(m, e);
    if (r == CUDA_SUCCESS)
        r = event_state(e);
    hed_object_put(&e->object);
    return r;
}

static CUresult
soft_cuEventSynchronize(struct hed_layer *self, struct hed_cuEventSynchronize *a)
{
    struct hed_event *e;
    CUresult r = find_asked(self, a->hEvent, &e);
    void *m;

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_machine_of(e->ctx, &m)->event_wait(m, e);
    if (r == CUDA_SUCCESS)
        r = event_state(e);
    hed_object_put(&e->object);
    return r;
}

/* Can the event have a time? Not before it is recorded. */
static bool
has_time(struct hed_event *e)
{
    return !(e->flags & CU_EVENT_DISABLE_TIMING) && has_record(e);
}

static CUresult
elapsed_time(struct hed_layer *self, float *out, CUevent first, CUevent second)
{
    struct hed_event *from = NULL;
    struct hed_event *to = NULL;
    CUresult r = find_asked(self, first, &from);
    void *m;

    if (r != CUDA_SUCCESS)
        return r;
    r = find_asked(self, second, &to);
    if (r != CUDA_SUCCESS) {
        hed_object_put(&from->object);
        return r;
    }
    /* An event that can never have a time is reported before one that has none yet. */
    if (!out || from->ctx != to->ctx || !has_time(from) || !has_time(to))
        r = CUDA_ERROR_INVALID_HANDLE;
    else
        r = hed_machine_of(from->ctx, &m)->event_time(m, from, to, out);
    hed_object_put(&from->object);
    hed_object_put(&to->object);
    return r;
}

static CUresult
soft_cuEventElapsedTime(struct hed_layer *self, struct hed_cuEventElapsedTime *a)
{
    return elapsed_time(self, a->pMilliseconds, a->hStart, a->hEnd);
}

static CUresult
soft_cuEventElapsedTime_v2(struct hed_layer *self, struct hed_cuEventElapsedTime_v2 *a)
{
    return elapsed_time(self, a->pMilliseconds, a->hStart, a->hEnd);
}

const struct hed_cuda_ops hed_calls_event = {
    .cuEventCreate = soft_cuEventCreate,
    .cuEventDestroy = soft_cuEventDestroy,
    .cuEventDestroy_v2 = soft_cuEventDestroy_v2,
    .cuEventElapsedTime = soft_cuEventElapsedTime,
    .cuEventElapsedTime_v2 = soft_cuEventElapsedTime_v2,
    .cuEventQuery = soft_cuEventQuery,
    .cuEventRecord = soft_cuEventRecord,
    .cuEventRecordWithFlags = soft_cuEventRecordWithFlags,
    .cuEventSynchronize = soft_cuEventSynchronize,
    .cuStreamWaitEvent = soft_cuStreamWaitEvent,
};
