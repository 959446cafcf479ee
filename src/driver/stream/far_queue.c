/* Streams whose work is done elsewhere: handing over, and knowing how far it has come. See
 * driver/far.h and stream.h.
 *
 * What is known, from weak to strong, of the numbers of a stream:
 *
 *   done      the far side has come so far: enough for questions (cuEventQuery, points)
 *   answered  an answer said so: what comes with answers (copies to the program's memory, what
 *             kernels print) is here, so that waiting again can be left out
 *
 * Both may lag. A wait for a whole context says it of all its streams at once, without a look at
 * each: such waits are numbered (far_begun), a stream knows how many had begun when it last got
 * work, and a later one that has succeeded (far_synced) was a wait for that work too.
 *
 * Invariants:
 * 1. answered <= done <= submitted.
 * 2. Work has its number when it is handed over, both under the stream's lock: the numbers' order
 *    is the far side's. What is many messages gets its number after the last one.
 */
#include "driver/driver.h"
#include "driver/far.h"
#include "driver/memory/memory.h"
#include "driver/stream/stream.h"

const struct hed_far *
hed_far_of(const struct hed_context *c, void **m)
{
    const struct hed_driver *d = c->device->driver;

    *m = d->machine_state;
    return d->machine->far;
}

/* ---- what is known --------------------------------------------------------------------------- */

/* Takes note of waits for the whole context. Acquire: pairs with the release in
 * hed_far_context_wait; what came with that answer is seen. */
static void
refresh_locked(struct hed_stream *s)
{
    if (s->far.begun < atomic_load_explicit(&s->ctx->far_synced, memory_order_acquire))
        s->far.answered = s->submitted;
    if (s->done < s->far.answered)
        s->done = s->far.answered;
}

void
hed_far_answered(struct hed_stream *s, uint64_t number)
{
    hed_lock(&s->lock);
    if (s->far.answered < number)
        s->far.answered = number;
    refresh_locked(s);
    hed_unlock(&s->lock);
}

void
hed_far_told_locked(struct hed_stream *s, uint64_t number)
{
    refresh_locked(s);
    if (number > s->submitted)
        number = s->submitted; /* the far side is not trusted */
    if (s->far.late > s->far.answered && number >= s->far.late)
        number = s->far.late - 1;
    if (s->done < number)
        s->done = number;
}

uint64_t
hed_far_now(struct hed_stream *s)
{
    hed_lock(&s->lock);

    const uint64_t number = s->submitted;

    hed_unlock(&s->lock);
    return number;
}

static bool
is_known(struct hed_stream *s, uint64_t number, bool answered)
{
    hed_lock(&s->lock);
    refresh_locked(s);

    const bool known = (answered ? s->far.answered : s->done) >= number;

    hed_unlock(&s->lock);
    return known;
}

/* The same of everything that was put on it. */
static bool
is_idle(struct hed_stream *s, bool answered)
{
    hed_lock(&s->lock);
    refresh_locked(s);

    const bool idle = (answered ? s->far.answered : s->done) >= s->submitted;

    hed_unlock(&s->lock);
    return idle;
}

/* Has its handle, and so its name at the far side, gone? */
static bool
is_over(struct hed_stream *s)
{
    hed_lock(&s->lock);

    const bool over = s->destroyed;

    hed_unlock(&s->lock);
    return over;
}

/* ---- handing over ---------------------------------------------------------------------------- */

/* After it has been sent. The fence pairs with the one in hed_far_context_wait: a wait that comes
 * before this work at the far side had begun, and that is seen here. */
static void
sent_locked(struct hed_stream *s)
{
    atomic_thread_fence(memory_order_seq_cst);
    s->far.begun = atomic_load_explicit(&s->ctx->far_begun, memory_order_relaxed);
}

CUresult
hed_far_begin(struct hed_stream *s, uint64_t *number)
{
    hed_lock(&s->lock);
    if (s->destroyed) {
        hed_unlock(&s->lock);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    refresh_locked(s);
    *number = ++s->submitted;
    return CUDA_SUCCESS;
}

void
hed_far_end(struct hed_stream *s)
{
    sent_locked(s);
    hed_unlock(&s->lock);
}

uint64_t
hed_far_sent(struct hed_stream *s, bool late)
{
    hed_lock(&s->lock);
    refresh_locked(s);

    const uint64_t number = ++s->submitted;

    if (late)
        s->far.late = number;
    sent_locked(s);
    hed_unlock(&s->lock);
    return number;
}

static CUresult
put(struct hed_stream *s, struct hed_work *w)
{
    void *m;
    const struct hed_far *far = hed_far_of(s->ctx, &m);
    CUresult r = hed_far_begin(s, &w->number);

    if (r != CUDA_SUCCESS)
        return r;
    r = far->put(m, s, w);
    hed_far_end(s);
    return r;
}

/* As in queue.c: the event's lock is held until it knows its point. */
static CUresult
put_record(struct hed_stream *s, struct hed_work *w)
{
    struct hed_event *e = w->event.event;
    struct hed_stream *before = NULL;

    hed_lock(&e->lock);
    w->event.record = e->records + 1;

    const CUresult r = put(s, w);

    if (r == CUDA_SUCCESS) {
        before = e->point.stream;
        hed_object_ref(&s->object);
        e->point = (struct hed_point){s, w->number};
        e->records++;
        e->recorded = true;
    }
    hed_unlock(&e->lock);
    if (before)
        hed_stream_put(before);
    return r;
}

/* Is it a wait for an event that is known to have been reached? */
static bool
is_needless(const struct hed_work *w)
{
    bool all = w->kind == HED_WORK_EVENT_WAIT;

    for (unsigned i = 0; i < w->after.count && all; i++)
        all = is_known(w->after.at[i].stream, w->after.at[i].number, false);
    return all;
}

CUresult
hed_far_submit(struct hed_stream *s, struct hed_work *w, bool wait)
{
    hed_far_settle(s);
    if (is_needless(w)) {
        hed_work_free(w);
        return CUDA_SUCCESS;
    }

    if (w->kind == HED_WORK_FILL && hed_fill_is_here(s->ctx->device->driver, &w->fill)) {
        const CUresult filled = hed_fill_here(s, &w->fill);

        hed_work_free(w);
        return filled;
    }

    CUresult r = w->kind == HED_WORK_EVENT_RECORD ? put_record(s, w) : put(s, w);
    const uint64_t number = w->number;

    hed_work_free(w);
    if (r == CUDA_SUCCESS && wait)
        r = hed_far_wait((struct hed_point){s, number});
    return r;
}

/* ---- asking and waiting ---------------------------------------------------------------------- */

bool
hed_far_reached(struct hed_point p)
{
    void *m;

    if (is_known(p.stream, p.number, false))
        return true;
    hed_far_of(p.stream->ctx, &m)->stream_look(m, p.stream);
    return is_known(p.stream, p.number, false);
}

/* The sticky error first: it is what the program is told. */
static CUresult
result(const struct hed_context *c, CUresult r)
{
    const CUresult sticky = hed_context_error(c);

    return sticky != CUDA_SUCCESS ? sticky : r;
}

/* Asks the far side to wait for everything on the stream. */
static CUresult
wait_stream(struct hed_stream *s)
{
    void *m;
    const struct hed_far *far = hed_far_of(s->ctx, &m);
    const uint64_t number = hed_far_now(s);

    /* A stream that has no name any more can only be waited for with all others. */
    if (is_over(s) && !s->is_legacy)
        return hed_far_context_wait(s->ctx);

    const CUresult r = far->stream_wait(m, s);

    if (r == CUDA_SUCCESS)
        hed_far_answered(s, number);
    else if (r == CUDA_ERROR_INVALID_HANDLE && is_over(s)) /* meanwhile */
        return hed_far_context_wait(s->ctx);
    return result(s->ctx, r);
}

CUresult
hed_far_wait(struct hed_point p)
{
    if (is_known(p.stream, p.number, true))
        return hed_context_error(p.stream->ctx);
    return wait_stream(p.stream);
}

/* ---- copies that the program takes to be done ------------------------------------------------ */

void
hed_far_copied(struct hed_stream *s)
{
    hed_lock(&s->lock);
    s->far.copied = s->submitted;
    hed_unlock(&s->lock);
    /* Release: pairs with hed_far_settle. */
    atomic_fetch_add_explicit(&s->ctx->far_copies, 1, memory_order_release);
}

/* Adds the last such copy of another stream, unless it is done or the default streams' rules put
 * work on s behind it anyway. */
static bool
add_copied(struct hed_points *p, const struct hed_stream *s, struct hed_stream *other)
{
    if (other == s || (other->is_legacy && s->blocking) || (s->is_legacy && other->blocking))
        return true;
    hed_lock(&other->lock);
    refresh_locked(other);

    const uint64_t number = other->far.copied;
    const bool done = other->done >= number;

    hed_unlock(&other->lock);
    return done || hed_points_add_point(p, (struct hed_point){other, number});
}

void
hed_far_settle_now(struct hed_stream *s)
{
    struct hed_context *c = s->ctx;
    /* Acquire: as in hed_far_settle. */
    const uint64_t seen = atomic_load_explicit(&c->far_copies, memory_order_acquire);
    struct hed_points p = {0};
    bool good = true;

    hed_lock(&c->lock);
    for (struct hed_stream *other = c->streams; other && good; other = other->next)
        good = add_copied(&p, s, other);
    if (good && c->legacy)
        good = add_copied(&p, s, c->legacy);
    hed_unlock(&c->lock);
    for (unsigned i = 0; i < p.count; i++)
        (void)hed_far_wait(p.at[i]);
    hed_points_clear(&p);
    if (good)
        atomic_store_explicit(&s->far.settled, seen, memory_order_relaxed);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* The legacy stream's questions are about blocking streams, too: each is asked on its own. */
static CUresult
query_all(struct hed_stream *legacy)
{
    struct hed_points p = {0};
    bool good = hed_points_add_all(&p, legacy->ctx, true);
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < p.count && good; i++)
        good = hed_far_reached(p.at[i]);
    if (!good)
        r = CUDA_ERROR_NOT_READY;
    hed_points_clear(&p);
    return r;
}

CUresult
hed_far_stream_query(struct hed_stream *s)
{
    void *m;
    const struct hed_far *far = hed_far_of(s->ctx, &m);
    CUresult r = is_idle(s, false) ? CUDA_SUCCESS : far->stream_query(m, s);

    if (r == CUDA_SUCCESS && s->is_legacy)
        r = query_all(s);
    return result(s->ctx, r);
}

CUresult
hed_far_stream_synchronize(struct hed_stream *s)
{
    struct hed_points p = {0};
    const bool idle = is_idle(s, true) &&
                      (!s->is_legacy || (hed_points_add_all(&p, s->ctx, true) && p.count == 0));

    hed_points_clear(&p);
    return idle ? hed_context_error(s->ctx) : wait_stream(s);
}

/* Relaxed: the list's lock, which comes next, orders it before looks at the list. Never less than
 * another thread has noted meanwhile. */
void
hed_far_left(struct hed_context *c)
{
    const uint64_t begun = atomic_load_explicit(&c->far_begun, memory_order_relaxed);
    uint64_t left = atomic_load_explicit(&c->far_left, memory_order_relaxed);

    while (left < begun &&
           !atomic_compare_exchange_weak_explicit(&c->far_left, &left, begun, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

/* Has an answer told of everything that was put on the context's streams? */
static bool
is_context_known(struct hed_context *c)
{
    bool known = true;

    /* Acquire: pairs with the release below. Relaxed: written before a stream leaves the list. */
    if (atomic_load_explicit(&c->far_left, memory_order_relaxed) >=
        atomic_load_explicit(&c->far_synced, memory_order_acquire))
        return false;
    hed_lock(&c->lock);
    for (struct hed_stream *s = c->streams; s && known; s = s->next)
        known = is_idle(s, true);
    if (known && c->legacy)
        known = is_idle(c->legacy, true);
    hed_unlock(&c->lock);
    return known;
}

CUresult
hed_far_context_wait(struct hed_context *c)
{
    void *m;
    const struct hed_far *far = hed_far_of(c, &m);

    if (is_context_known(c))
        return hed_context_error(c);

    /* Relaxed: the fence orders it before the message, for sent_locked. */
    const uint64_t mine = atomic_fetch_add_explicit(&c->far_begun, 1, memory_order_relaxed) + 1;

    atomic_thread_fence(memory_order_seq_cst);

    const CUresult r = far->context_wait(m, c);
    uint64_t last = atomic_load_explicit(&c->far_synced, memory_order_relaxed);

    /* Release: pairs with refresh_locked. */
    while (r == CUDA_SUCCESS && last < mine &&
           !atomic_compare_exchange_weak_explicit(&c->far_synced, &last, mine, memory_order_release,
                                                  memory_order_relaxed))
        ;
    return result(c, r);
}

/* ---- events ---------------------------------------------------------------------------------- */

bool
hed_far_is_last(struct hed_event *e, struct hed_point p)
{
    hed_lock(&e->lock);

    const bool same = e->point.stream == p.stream && e->point.number == p.number;

    hed_unlock(&e->lock);
    return same;
}

CUresult
hed_far_event_query(struct hed_event *e)
{
    void *m;
    const struct hed_far *far = hed_far_of(e->ctx, &m);
    const struct hed_point p = hed_event_point(e);
    CUresult r = CUDA_SUCCESS;

    if (!p.stream)
        return CUDA_SUCCESS;
    if (!is_known(p.stream, p.number, false)) {
        r = far->event_query(m, e);
        if (r == CUDA_SUCCESS)
            r = hed_context_error(e->ctx);
    }
    hed_stream_put(p.stream);
    return r;
}

CUresult
hed_far_event_synchronize(struct hed_event *e)
{
    void *m;
    const struct hed_far *far = hed_far_of(e->ctx, &m);
    const struct hed_point p = hed_event_point(e);
    CUresult r = CUDA_SUCCESS;

    if (!p.stream)
        return CUDA_SUCCESS;
    if (!is_known(p.stream, p.number, true)) {
        r = far->event_wait(m, e);
        if (r == CUDA_SUCCESS && hed_far_is_last(e, p))
            hed_far_answered(p.stream, p.number);
        else if (r == CUDA_SUCCESS)
            r = hed_far_wait(p);
    }
    hed_stream_put(p.stream);
    return result(e->ctx, r);
}
