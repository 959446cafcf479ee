/* Events of a worker, as messages. See remote.h and queue.h.
 *
 * The worker gets an event when the event is first used there: many programs make events that they
 * never record. A mark follows each record (stream.c), so over shared memory a query only reads a
 * word.
 *
 * Invariant: an event's creation, its uses and its destruction reach the worker in this order. Its
 * creation and destruction are sent under events_lock, and `mirrored` is set when the creation has
 * its ticket.
 */
#include <string.h>

#include "base/err.h"
#include "remote/client/queue.h"
#include "remote/client/remote.h"

static CUevent
event_name(const struct hed_event *e)
{
    return (CUevent)(uintptr_t)e->object.handle;
}

/* ---- events that other programs have (share.c) ----------------------------------------------- */

CUresult
hed_remote_send_share(struct hed_remote *r, uint64_t context, uint64_t stream,
                      const struct hed_share_body *what, bool waits,
                      struct hed_share_answer *answer)
{
    struct hed_remote_channel *channel;
    struct hed_share_body *b =
        hed_remote_begin(r, HED_MSG_SHARE, sizeof *b, context, stream, 0, &channel);

    if (!b)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    b->op = what->op;
    b->at = what->at;
    b->size = what->size;
    b->name = what->name;
    memcpy(b->key, what->key, sizeof b->key);
    memcpy(b->owner, what->owner, sizeof b->owner);
    b->head.flags = (answer ? HED_MSG_WANTS_ANSWER : 0) | (waits ? HED_MSG_BLOCKS : 0);
    if (hed_remote_end(channel, &b->head, sizeof *b) != 0)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (!answer)
        return CUDA_SUCCESS;

    const struct hed_answer *a = hed_remote_answer(channel);

    if (!a)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (a->head.size < sizeof *answer) {
        hed_remote_lose(r, "the worker sent an invalid answer about shared memory");
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    }
    memcpy(answer, a, sizeof *answer);
    return (CUresult)a->result;
}

static void
send_shared_made(struct hed_remote *r, const struct hed_event *e)
{
    const struct hed_share_body what = {.op = HED_SHARE_EVENT_MADE, .name = e->object.handle};

    (void)hed_remote_send_share(r, e->ctx->object.handle, 0, &what, false, NULL);
}

static void
send_shared_gone(struct hed_remote *r, const struct hed_event *e)
{
    const struct hed_share_body what = {.op = HED_SHARE_EVENT_GONE, .name = e->object.handle};

    (void)hed_remote_send_share(r, 0, 0, &what, false, NULL);
}

/* ---- life ------------------------------------------------------------------------------------ */

void
hed_remote_event_made(void *m, struct hed_event *e)
{
    (void)m, (void)e;
}

void
hed_remote_need_event(struct hed_remote *r, struct hed_event *e)
{
    CUevent name = event_name(e);

    /* Acquire: pairs with the release below; the creation has a lower ticket than what follows. */
    if (atomic_load_explicit(&e->mirrored, memory_order_acquire))
        return;
    hed_lock(&r->events_lock);
    /* Relaxed, both: under the lock. An event that has been destroyed is not made any more. */
    if (!atomic_load_explicit(&e->mirrored, memory_order_relaxed) &&
        !atomic_load_explicit(&e->gone, memory_order_relaxed)) {
        if (hed_remote_event_is_shared(e))
            send_shared_made(r, e);
        else
            hed_remote_send(r, e->ctx->object.handle, 0, 0, cuEventCreate, .phEvent = &name,
                            .Flags = e->flags);
        atomic_store_explicit(&e->mirrored, true, memory_order_release);
    }
    hed_unlock(&r->events_lock);
}

void
hed_remote_event_gone(void *m, struct hed_event *e)
{
    struct hed_remote *r = hed_remote_of(m);
    const struct hed_context *c = e->ctx;

    hed_lock(&r->events_lock);
    if (hed_remote_event_is_shared(e)) {
        if (atomic_load_explicit(&e->mirrored, memory_order_relaxed)) /* under the lock */
            send_shared_gone(r, e);
        hed_unlock(&r->events_lock);
        return;
    }
    /* Acquire: pairs with the release in close_contents(). The contents of a created context have
     * gone with it; the worker keeps those of a primary context, unless it was reset. */
    if (atomic_load_explicit(&e->mirrored, memory_order_relaxed) && /* under the lock */
        (e->generation == atomic_load_explicit(&c->generation, memory_order_acquire) ||
         (c->primary &&
          atomic_load_explicit(&hed_remote_context(c)->resets, memory_order_relaxed) == 0)))
        hed_remote_send(r, e->ctx->object.handle, 0, 0, cuEventDestroy_v2, .hEvent = event_name(e));
    hed_unlock(&r->events_lock);
}

CUresult
hed_remote_put_event(struct hed_remote *r, struct hed_stream *s, struct hed_work *w)
{
    const uint64_t stream = hed_stream_name(s);
    const CUevent event = event_name(w->event.event);

    hed_remote_need_event(r, w->event.event);
    if (w->kind == HED_WORK_EVENT_WAIT) {
        hed_remote_send(r, s->ctx->object.handle, stream, w->number, cuStreamWaitEvent,
                        .hStream = (CUstream)(uintptr_t)stream, .hEvent = event);
        return CUDA_SUCCESS;
    }
    hed_remote_send(r, s->ctx->object.handle, stream, w->number, cuEventRecord, .hEvent = event,
                    .hStream = (CUstream)(uintptr_t)stream);
    (void)hed_remote_mark_locked(r, s, w->number);
    return CUDA_SUCCESS;
}

static CUresult
ask_shared_event(struct hed_remote *r, struct hed_event *e, struct hed_stream *s,
                 enum hed_share_op op)
{
    const struct hed_share_body what = {.op = op, .name = e->object.handle};
    const struct hed_context *c = s ? s->ctx : e->ctx;
    struct hed_share_answer a;

    hed_remote_need_event(r, e);
    return hed_remote_send_share(r, c->object.handle, s ? hed_stream_name(s) : 0, &what,
                                 op == HED_SHARE_EVENT_SYNC, &a);
}

CUresult
hed_remote_put_shared(void *m, struct hed_stream *s, struct hed_event *e, bool record)
{
    return ask_shared_event(hed_remote_of(m), e, s,
                            record ? HED_SHARE_EVENT_RECORD : HED_SHARE_EVENT_WAIT);
}

/* What an answer to a wait for the device means for the program's memory. */
static CUresult
waited_for(struct hed_remote *r, struct hed_event *e, CUresult result)
{
    hed_remote_host_drain(r);
    hed_remote_sync_in(r);
    return hed_remote_waited(e->ctx, result);
}

CUresult
hed_remote_await_shared(void *m, struct hed_event *e)
{
    struct hed_remote *r = hed_remote_of(m);

    return waited_for(r, e, ask_shared_event(r, e, NULL, HED_SHARE_EVENT_SYNC));
}

CUresult
hed_remote_ask_shared(void *m, struct hed_event *e)
{
    struct hed_remote *r = hed_remote_of(m);
    const CUresult result =
        hed_remote_waited(e->ctx, ask_shared_event(r, e, NULL, HED_SHARE_EVENT_QUERY));

    if (result == CUDA_SUCCESS && hed_remote_host_busy(r))
        return CUDA_ERROR_NOT_READY;
    if (result == CUDA_SUCCESS)
        hed_remote_sync_in(r);
    return result;
}

CUresult
hed_remote_await_event(void *m, struct hed_event *e)
{
    struct hed_remote *r = hed_remote_of(m);
    const CUresult result = hed_remote_ask_waiting(r, e->ctx->object.handle, 0, cuEventSynchronize,
                                                   .hEvent = event_name(e));

    return waited_for(r, e, result);
}

/* Has the slot reached the point? *ask: the slot cannot tell, so the worker must be asked. */
static bool
is_reached(struct hed_remote *r, struct hed_point p, bool *ask)
{
    struct hed_stream *s = p.stream;
    const struct hed_remote_stream *q = hed_remote_stream(s);

    hed_lock(&s->lock);
    hed_remote_read_locked(r, s);

    const bool reached = s->done >= p.number;
    /* Results that come only with an answer hold `done` back. */
    const bool told =
        q->slot && q->marked >= p.number && (q->late <= q->answered || q->late > p.number);

    *ask = !reached && (!told || hed_remote_is_late_locked(s));
    hed_unlock(&s->lock);
    return reached;
}

CUresult
hed_remote_ask_event(void *m, struct hed_event *e)
{
    struct hed_remote *r = hed_remote_of(m);
    const struct hed_point p = hed_event_point(e);
    bool ask = false;
    CUresult result = CUDA_SUCCESS;

    if (!p.stream)
        return CUDA_SUCCESS;
    if (!is_reached(r, p, &ask))
        result = CUDA_ERROR_NOT_READY;
    else if (!hed_remote_healthy(r))
        hed_remote_look(r);
    if (ask) {
        result = hed_remote_ask_waiting(r, e->ctx->object.handle, 0, cuEventQuery,
                                        .hEvent = event_name(e));
        result = hed_remote_waited(e->ctx, result);
        if (result == CUDA_SUCCESS && hed_remote_host_busy(r))
            result = CUDA_ERROR_NOT_READY;
        if (result == CUDA_SUCCESS) {
            hed_remote_sync_in(r); /* as in stream.c */
            if (hed_remote_is_last(e, p))
                hed_remote_answered(p.stream, p.number);
        }
    }
    hed_stream_put(p.stream);
    return result;
}

static CUresult
ask_time(struct hed_remote *r, struct hed_event *begin, struct hed_event *end, float *ms)
{
    return hed_remote_ask(r, begin->ctx->object.handle, 0, cuEventElapsedTime, .pMilliseconds = ms,
                          .hStart = event_name(begin), .hEnd = event_name(end));
}

/* How long before the present worker an event was recorded, in ms; negative if it was not. */
static double
event_age(struct hed_event *e)
{
    hed_lock(&e->lock);

    const uint64_t time = e->time;

    hed_unlock(&e->lock);
    return time ? (double)(time - 1) / 1e6 : -1;
}

/* An event that was recorded before has been recorded again when this worker began. */
CUresult
hed_remote_event_time(void *m, struct hed_event *begin, struct hed_event *end, float *ms)
{
    const double from = event_age(begin), to = event_age(end);
    CUresult r = CUDA_SUCCESS;
    float since = 0;

    if (from < 0 || to < 0)
        r = ask_time(hed_remote_of(m), begin, end, &since);
    if (r == CUDA_SUCCESS)
        *ms = (float)((from > 0 ? from : 0) - (to > 0 ? to : 0)) + since;
    return r;
}

void
hed_remote_event_again(struct hed_remote *r, struct hed_event *e)
{
    CUevent name = event_name(e);

    hed_remote_send(r, e->ctx->object.handle, 0, 0, cuEventCreate, .phEvent = &name,
                    .Flags = e->flags);
    if (e->recorded)
        hed_remote_send(r, e->ctx->object.handle, 1, 0, cuEventRecord, .hEvent = name,
                        .hStream = (CUstream)(uintptr_t)1);
}

int
hed_remote_event_keep(struct hed_remote *r, struct hed_event *e, CUevent now)
{
    float ms = 0;

    if (hed_remote_ask(r, e->ctx->object.handle, 0, cuEventElapsedTime, .pMilliseconds = &ms,
                       .hStart = event_name(e), .hEnd = now) != CUDA_SUCCESS)
        return HED_EIO;
    hed_lock(&e->lock);
    e->time = (e->time ? e->time : 1) + (ms > 0 ? (uint64_t)((double)ms * 1e6) : 0);
    hed_unlock(&e->lock);
    return 0;
}
