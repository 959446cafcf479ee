/* Streams of a worker: sending work, and waiting for it. What is known of it is in progress.c. See
 * queue.h.
 *
 * Invariant: work gets its number and is sent under the stream's lock, so the worker sees the
 * numbers in order. Work that takes many messages gets its number after the last one.
 */
#include "remote/client/queue.h"

#include "base/clock.h"
#include "driver/driver.h"
#include "remote/client/remote.h"

#define NAP_NS (50 * UINT64_C(1000))

/* Has its handle, and with it its name at the worker, been removed? */
static bool
is_stream_over(struct hed_stream *s)
{
    hed_lock(&s->lock);

    const bool over = s->destroyed;

    hed_unlock(&s->lock);
    return over;
}

/* ---- handing over ---------------------------------------------------------------------------- */

/* Numbers work that is one message, and keeps the stream locked until it has been sent.
 * INVALID_HANDLE: the stream has been destroyed. */
static CUresult
begin_put(struct hed_stream *s, uint64_t *number)
{
    hed_lock(&s->lock);
    if (s->destroyed) {
        hed_unlock(&s->lock);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    hed_remote_refresh_locked(s);
    *number = ++s->submitted;
    return CUDA_SUCCESS;
}

static void
end_put(struct hed_stream *s)
{
    hed_remote_sent_locked(s);
    hed_unlock(&s->lock);
}

static CUresult
put_work(void *m, struct hed_stream *s, struct hed_work *w)
{
    CUresult r = begin_put(s, &w->number);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_remote_put(m, s, w);
    end_put(s);
    return r;
}

/* As in driver/near/queue.c, the event's lock is held until the event knows its point. */
static CUresult
put_record(void *m, struct hed_stream *s, struct hed_work *w)
{
    struct hed_event *e = w->event.event;
    struct hed_stream *before = NULL;

    hed_lock(&e->lock);
    w->event.record = e->records + 1;

    const CUresult r = put_work(m, s, w);

    if (r == CUDA_SUCCESS) {
        before = e->point.stream;
        hed_object_ref(&s->object);
        e->point = (struct hed_point){s, w->number};
        e->records++;
        e->recorded = true;
        e->time = 0;
    }
    hed_unlock(&e->lock);
    if (before)
        hed_stream_put(before);
    return r;
}

/* An event that other programs have. The worker answers, because they may be told next that it has
 * been recorded, or that it may be recorded again. */
static CUresult
put_shared(void *m, struct hed_stream *s, struct hed_work *w)
{
    struct hed_event *e = w->event.event;
    const bool record = w->kind == HED_WORK_EVENT_RECORD;
    struct hed_stream *before = NULL;
    const CUresult r =
        is_stream_over(s) ? CUDA_ERROR_INVALID_HANDLE : hed_remote_put_shared(m, s, e, record);

    if (r != CUDA_SUCCESS)
        return r;
    w->number = hed_remote_sent(s, false);
    if (!record)
        return CUDA_SUCCESS;
    hed_lock(&e->lock);
    before = e->point.stream;
    hed_object_ref(&s->object);
    e->point = (struct hed_point){s, w->number};
    e->records++;
    e->recorded = true;
    hed_unlock(&e->lock);
    if (before)
        hed_stream_put(before);
    return CUDA_SUCCESS;
}

static bool
is_of_shared_event(const struct hed_work *w)
{
    return (w->kind == HED_WORK_EVENT_RECORD || w->kind == HED_WORK_EVENT_WAIT) &&
           w->event.event->flags & CU_EVENT_INTERPROCESS;
}

/* Is it a wait for an event that has been reached already? */
static bool
is_needless(const struct hed_work *w)
{
    bool all = w->kind == HED_WORK_EVENT_WAIT && !is_of_shared_event(w);

    for (unsigned i = 0; i < w->after.count && all; i++)
        all = hed_remote_is_known_done(w->after.at[i].stream, w->after.at[i].number, false);
    return all;
}

/* Does work that needs no message. If it returns true, the work is done and *r is the result. */
static bool
do_here(void *m, struct hed_stream *s, struct hed_work *w, CUresult *r)
{
    struct hed_driver *d = s->ctx->device->driver;

    *r = CUDA_SUCCESS;
    if (w->kind == HED_WORK_FILL && hed_remote_fill_is_private(m, d, &w->fill))
        *r = hed_remote_fill_here(s, &w->fill);
    else if (w->kind == HED_WORK_FREE)
        *r = hed_pool_free_behind(s, w->memory.at) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    else
        return is_needless(w);
    return true;
}

CUresult
hed_remote_submit(void *m, struct hed_stream *s, struct hed_work *w, bool wait)
{
    CUresult r;

    hed_remote_settle(m, s);
    if (do_here(m, s, w, &r)) {
        hed_work_free(w);
        return r;
    }
    if (is_of_shared_event(w))
        r = put_shared(m, s, w);
    else
        r = w->kind == HED_WORK_EVENT_RECORD ? put_record(m, s, w) : put_work(m, s, w);

    const uint64_t number = w->number;

    hed_work_free(w);
    if (r == CUDA_SUCCESS && wait)
        r = hed_remote_point_wait(m, (struct hed_point){s, number});
    return r;
}

/* Waits for the last work on the stream, which must run alone (atomics.c), but not for ever: it may
 * wait for the program. */
static void
wait_alone(void *m, struct hed_stream *s, const struct hed_launch *l)
{
    const uint64_t end = hed_now_ns() + hed_remote_patience_alone(l);

    while (hed_remote_stream_query(m, s) == CUDA_ERROR_NOT_READY) {
        if (hed_now_ns() > end) {
            hed_remote_not_alone(l);
            return;
        }
        hed_sleep_ns(NAP_NS);
    }
}

CUresult
hed_remote_launch(void *m, struct hed_stream *s, const struct hed_launch *l)
{
    uint64_t number;

    hed_remote_settle(m, s);

    CUresult r = begin_put(s, &number);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_remote_put_launch(m, s, l, number);
    end_put(s);
    /* Relaxed: a thread that uses managed memory knows that it exists. */
    if (r == CUDA_SUCCESS &&
        atomic_load_explicit(&s->ctx->device->driver->managed, memory_order_relaxed) &&
        hed_remote_must_run_alone(m, s, l))
        wait_alone(m, s, l);
    return r;
}

/* ---- asking and waiting ---------------------------------------------------------------------- */

bool
hed_remote_point_reached(void *m, struct hed_point p)
{
    if (hed_remote_is_known_done(p.stream, p.number, false))
        return true;
    hed_remote_look_at_stream(m, p.stream);
    return hed_remote_is_known_done(p.stream, p.number, false);
}

/* The sticky error takes precedence, because it is what the program sees. */
static CUresult
sticky_or(const struct hed_context *c, CUresult r)
{
    const CUresult sticky = hed_context_error(c);

    return sticky != CUDA_SUCCESS ? sticky : r;
}

/* Asks the worker to wait for all work on the stream. */
static CUresult
await_stream(void *m, struct hed_stream *s)
{
    const uint64_t number = hed_stream_now(s);

    /* A stream without a name can only be waited for together with all others. */
    if (is_stream_over(s) && !s->is_legacy)
        return hed_remote_context_wait(m, s->ctx);

    const CUresult r = hed_remote_await_stream(m, s);

    if (r == CUDA_SUCCESS)
        hed_remote_answered(s, number);
    else if (r == CUDA_ERROR_INVALID_HANDLE && is_stream_over(s)) /* destroyed meanwhile */
        return hed_remote_context_wait(m, s->ctx);
    return sticky_or(s->ctx, r);
}

CUresult
hed_remote_point_wait(void *m, struct hed_point p)
{
    if (hed_remote_is_known_done(p.stream, p.number, true))
        return hed_context_error(p.stream->ctx);
    return await_stream(m, p.stream);
}

/* ---- copies that the program considers done -------------------------------------------------- */

/* Adds the last such copy of another stream, unless it is done or work on s comes behind it anyway,
 * by the rules of the default streams. */
static bool
add_copied(struct hed_points *p, const struct hed_stream *s, struct hed_stream *other)
{
    if (other == s || (other->is_legacy && s->blocking) || (s->is_legacy && other->blocking))
        return true;
    hed_lock(&other->lock);
    hed_remote_refresh_locked(other);

    const uint64_t number = hed_remote_stream(other)->copied;
    const bool done = other->done >= number;

    hed_unlock(&other->lock);
    return done || hed_points_add_point(p, (struct hed_point){other, number});
}

void
hed_remote_settle_now(void *m, struct hed_stream *s)
{
    struct hed_context *c = s->ctx;
    /* Acquire: as in hed_remote_settle(). */
    const uint64_t seen =
        atomic_load_explicit(&hed_remote_context(c)->copies, memory_order_acquire);
    struct hed_points p = {0};
    bool good = true;

    hed_lock(&c->lock);
    for (struct hed_stream *other = c->streams; other && good; other = other->next)
        good = add_copied(&p, s, other);
    if (good && c->legacy)
        good = add_copied(&p, s, c->legacy);
    hed_unlock(&c->lock);
    for (unsigned i = 0; i < p.count; i++)
        (void)hed_remote_point_wait(m, p.at[i]);
    hed_points_clear(&p);
    if (good)
        atomic_store_explicit(&hed_remote_stream(s)->settled, seen, memory_order_relaxed);
}

/* ---- queries --------------------------------------------------------------------------------- */

/* A query about the legacy stream includes the blocking streams; each is asked separately. */
static CUresult
ask_blocking(void *m, struct hed_stream *legacy)
{
    struct hed_points p = {0};
    bool good = hed_points_add_all(&p, legacy->ctx, true);
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < p.count && good; i++)
        good = hed_remote_point_reached(m, p.at[i]);
    if (!good)
        r = CUDA_ERROR_NOT_READY;
    hed_points_clear(&p);
    return r;
}

CUresult
hed_remote_stream_query(void *m, struct hed_stream *s)
{
    CUresult r = hed_remote_is_known_done(s, HED_ALL_WORK, false) ? CUDA_SUCCESS
                                                                  : hed_remote_ask_stream(m, s);

    if (r == CUDA_SUCCESS && s->is_legacy)
        r = ask_blocking(m, s);
    /* A stream that has failed, or was destroyed meanwhile, does nothing more. */
    return sticky_or(s->ctx, r == CUDA_ERROR_NOT_READY ? r : CUDA_SUCCESS);
}

CUresult
hed_remote_stream_wait(void *m, struct hed_stream *s)
{
    struct hed_points p = {0};
    const bool idle = hed_remote_is_known_done(s, HED_ALL_WORK, true) &&
                      (!s->is_legacy || (hed_points_add_all(&p, s->ctx, true) && p.count == 0));

    hed_points_clear(&p);
    return idle ? hed_context_error(s->ctx) : await_stream(m, s);
}

/* Relaxed: the lock of the list, which is taken next, orders this before looks at the list. The
 * value never goes down, even if another thread has changed it meanwhile. */
static void
note_left(struct hed_context *c)
{
    const uint64_t begun =
        atomic_load_explicit(&hed_remote_context(c)->begun, memory_order_relaxed);
    uint64_t left = atomic_load_explicit(&hed_remote_context(c)->left, memory_order_relaxed);

    while (left < begun &&
           !atomic_compare_exchange_weak_explicit(&hed_remote_context(c)->left, &left, begun,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

bool
hed_remote_stream_gone(void *m, struct hed_stream *s)
{
    /* The name is removed at the worker, too. From now on unfinished work of the stream can only be
     * waited for together with the whole context. */
    if (!s->is_legacy)
        hed_remote_stream_drop(m, s);
    if (hed_remote_stream(s)->answered < s->submitted)
        note_left(s->ctx);
    return true;
}

/* Has an answer covered all work on the context's streams? */
static bool
is_context_known(struct hed_context *c)
{
    bool known = true;

    /* Acquire: pairs with the release below. Relaxed: it is written before a stream leaves the
     * list. */
    if (atomic_load_explicit(&hed_remote_context(c)->left, memory_order_relaxed) >=
        atomic_load_explicit(&hed_remote_context(c)->synced, memory_order_acquire))
        return false;
    hed_lock(&c->lock);
    for (struct hed_stream *s = c->streams; s && known; s = s->next)
        known = hed_remote_is_known_done(s, HED_ALL_WORK, true);
    if (known && c->legacy)
        known = hed_remote_is_known_done(c->legacy, HED_ALL_WORK, true);
    hed_unlock(&c->lock);
    return known;
}

CUresult
hed_remote_context_wait(void *m, struct hed_context *c)
{
    if (is_context_known(c))
        return hed_context_error(c);

    /* Relaxed: the fence orders it before the message, for hed_remote_sent_locked(). */
    const uint64_t mine =
        atomic_fetch_add_explicit(&hed_remote_context(c)->begun, 1, memory_order_relaxed) + 1;

    atomic_thread_fence(memory_order_seq_cst);

    const CUresult r = hed_remote_await_context(m, c);
    uint64_t last = atomic_load_explicit(&hed_remote_context(c)->synced, memory_order_relaxed);

    /* Release: pairs with hed_remote_refresh_locked(). */
    while (r == CUDA_SUCCESS && last < mine &&
           !atomic_compare_exchange_weak_explicit(&hed_remote_context(c)->synced, &last, mine,
                                                  memory_order_release, memory_order_relaxed))
        ;
    return sticky_or(c, r);
}

/* ---- events ---------------------------------------------------------------------------------- */

CUresult
hed_remote_event_query(void *m, struct hed_event *e)
{
    const struct hed_point p = hed_event_point(e);
    CUresult r = CUDA_SUCCESS;

    if (e->flags & CU_EVENT_INTERPROCESS)
        r = sticky_or(e->ctx, hed_remote_ask_shared(m, e));
    if (!p.stream)
        return r;
    if (!(e->flags & CU_EVENT_INTERPROCESS) &&
        !hed_remote_is_known_done(p.stream, p.number, false)) {
        r = hed_remote_ask_event(m, e);
        if (r == CUDA_SUCCESS)
            r = hed_context_error(e->ctx);
    }
    hed_stream_put(p.stream);
    return r;
}

CUresult
hed_remote_event_wait(void *m, struct hed_event *e)
{
    const struct hed_point p = hed_event_point(e);
    CUresult r = CUDA_SUCCESS;

    if (e->flags & CU_EVENT_INTERPROCESS)
        r = hed_remote_await_shared(m, e);
    if (!p.stream)
        return sticky_or(e->ctx, r);
    if (!(e->flags & CU_EVENT_INTERPROCESS) &&
        !hed_remote_is_known_done(p.stream, p.number, true)) {
        r = hed_remote_await_event(m, e);
        if (r == CUDA_SUCCESS && hed_remote_is_last(e, p))
            hed_remote_answered(p.stream, p.number);
        else if (r == CUDA_SUCCESS)
            r = hed_remote_point_wait(m, p);
    }
    hed_stream_put(p.stream);
    return sticky_or(e->ctx, r);
}
