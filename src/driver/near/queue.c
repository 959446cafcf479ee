/* The queues of streams: adding work, running it in order, waiting for it. See near.h.
 *
 *   submit ────────── the queue is empty, and the work takes no time ──> run here, at once
 *         ╲────────── else ──> queue ──> runner: waits for the work's points, runs it
 *   submit and wait ─ the queue is empty ──> run here, after waiting for its points
 *                  ╲─ else ──> queue, and waits for its number
 *   wait ──────────── nobody runs the queue's first work yet ──> run here, until the number is done
 *
 * A stream that has work has a runner: a thread that is started for the first work and ends when
 * there has been none for a while. Functions of the program (callbacks) run on runners only. A
 * program that waits right after a launch runs it itself, while the runner is still waking up.
 *
 * Invariants:
 * 1. running is true while exactly one thread, which set it, runs work of the stream. That thread
 *    took the work with the number done + 1, and no other.
 * 2. There is work in the queue only if there is a runner, or a thread that is about to start one.
 * 3. Work is freed before its number is done: a thread that waited for it must not use it.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "core/activity.h"
#include "core/refusal.h"
#include "driver/ipc/event.h"
#include "driver/near/near.h"
#include "driver/parts.h"
#include "driver/stream/stream.h"

#define IDLE_NS HED_NS_PER_S    /* how long a runner without work stays */
#define QUEUE_MOST 4096         /* length of a queue; a thread that adds more waits */
#define QUICK_BYTES (64u << 10) /* copying this many bytes takes less time than waking a thread */

/* ---- life ------------------------------------------------------------------------------------ */

static void
stream_fini(struct hed_stream *s)
{
    struct hed_near_stream *q = hed_near_stream(s);

    (void)pthread_cond_destroy(&q->finished);
    (void)pthread_cond_destroy(&q->filled);
}

void
hed_near_stream_init(void *m, struct hed_stream *s)
{
    struct hed_near_stream *q = hed_near_stream(s);

    s->fini = stream_fini;
    q->machine = m;
    q->executor = ((const struct hed_near *)m)->executor;
    q->last = &q->first;
    q->wanted = UINT64_MAX;
    (void)pthread_cond_init(&q->finished, NULL);
    (void)pthread_cond_init(&q->filled, NULL);
}

bool
hed_near_stream_gone(void *m, struct hed_stream *s)
{
    struct hed_near_stream *q = hed_near_stream(s);

    /* A sleeping runner wakes up and ends. */
    (void)pthread_cond_broadcast(&q->filled);
    return !q->first && !q->running;
}

/* ---- points ---------------------------------------------------------------------------------- */

static void
wait_for_number_locked(struct hed_stream *s, uint64_t number)
{
    struct hed_near_stream *q = hed_near_stream(s);

    if (q->wanted > number)
        q->wanted = number;
    (void)hed_lock_wait(&s->lock, &q->finished, UINT64_MAX);
}

/* For runners: they run the work of their own stream only. */
static void
wait_for_point(struct hed_point p)
{
    hed_lock(&p.stream->lock);
    while (p.stream->done < p.number)
        wait_for_number_locked(p.stream, p.number);
    hed_unlock(&p.stream->lock);
}

bool
hed_near_point_reached(void *m, struct hed_point p)
{
    hed_lock(&p.stream->lock);

    const bool reached = p.stream->done >= p.number;

    hed_unlock(&p.stream->lock);
    return reached;
}

/* Adds the points that new work must wait for by the rules of the default streams, except those
 * that have been reached. */
static bool
add_default_points(struct hed_stream *s, struct hed_points *after)
{
    bool good = true;

    if (s->is_legacy)
        return hed_points_add_all(after, s->ctx, true);
    if (!s->blocking)
        return true;
    hed_lock(&s->ctx->lock);
    if (s->ctx->legacy)
        good = hed_points_add(after, s->ctx->legacy);
    hed_unlock(&s->ctx->lock);
    return good;
}

/* ---- running work ---------------------------------------------------------------------------- */

/* After a context has failed, events are still reached, callbacks called and memory given back; no
 * other work runs. */
static bool
runs_after_failure(enum hed_work_kind kind)
{
    return kind == HED_WORK_CALLBACK || kind == HED_WORK_EVENT_RECORD || kind == HED_WORK_FREE;
}

/* Takes the work with the number done + 1: waits for its points, runs it, frees it. */
static void
perform_work(struct hed_work *w)
{
    struct hed_why why = {""};
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < w->after.count; i++)
        wait_for_point(w->after.at[i]);

    const CUresult failed = hed_context_error(w->ctx);

    if (failed == CUDA_SUCCESS || runs_after_failure(w->kind)) {
        r = hed_near_run(w, w, &why);
        if (r != CUDA_SUCCESS) {
            hed_error(DRIVER, "work on a stream failed with error %d%s%s", (int)r,
                      why.text[0] ? ": " : "", why.text);
            hed_problem_cause(why.text);
            hed_context_fail(w->ctx, r);
        }
    }
    if (w->result)
        *w->result = r != CUDA_SUCCESS ? r : failed;
    hed_work_free(w);
}

static void
work_done_locked(struct hed_stream *s, uint64_t number)
{
    struct hed_near_stream *q = hed_near_stream(s);

    q->running = false;
    s->done = number;
    if (number >= q->wanted) {
        /* Threads that wait for a later number set it again. */
        q->wanted = UINT64_MAX;
        (void)pthread_cond_broadcast(&q->finished);
    }
}

/* ---- threads that wait ----------------------------------------------------------------------- */

/* May a thread of the program that waits for it run it? Not functions of the program, nor what may
 * contain them; and a value in memory may be waited for better elsewhere. */
static bool
waiter_may_run(const struct hed_work *w)
{
    switch (w->kind) {
    case HED_WORK_HOST:
    case HED_WORK_CALLBACK:
    case HED_WORK_GRAPH:
    case HED_WORK_MEMOP:
        return false;
    case HED_WORK_EVENT_WAIT:
        return !w->event.event->shared; /* it waits for another process */
    default:
        return true;
    }
}

static struct hed_work *
take_first_locked(struct hed_near_stream *q)
{
    struct hed_work *w = q->first;

    q->first = w->next;
    if (!q->first)
        q->last = &q->first;
    q->running = true;
    return w;
}

/* The lock is not held while the work is performed. */
static void
run_first_locked(struct hed_stream *s)
{
    struct hed_work *w = take_first_locked(hed_near_stream(s));
    const uint64_t number = w->number;

    hed_unlock(&s->lock);
    perform_work(w);
    hed_lock(&s->lock);
    work_done_locked(s, number);
}

/* The runner may have gone to sleep because this thread ran the stream's work. */
static void
pass_on_locked(struct hed_near_stream *q)
{
    if (q->first && !q->running)
        (void)pthread_cond_signal(&q->filled);
}

/* Runs the stream's work up to a number, as far as this thread may. Whether it ran any. The
 * executor prepares the thread once for all of it, unless a runner's function waits here: that
 * thread is prepared already. */
static bool
run_until_locked(struct hed_stream *s, uint64_t number)
{
    struct hed_near_stream *q = hed_near_stream(s);
    const struct hed_executor *e = q->executor;
    const bool prepare =
        e->runner_begins && e->runner_ends && number - s->done > 1 && !hed_in_callback();
    bool ran = false;

    while (s->done < number && q->first && !q->running && waiter_may_run(q->first)) {
        if (prepare && !ran)
            e->runner_begins(q->machine, false);
        run_first_locked(s);
        ran = true;
    }
    if (prepare && ran)
        e->runner_ends(q->machine);
    return ran;
}

CUresult
hed_near_point_wait(void *m, struct hed_point p)
{
    struct hed_stream *s = p.stream;
    struct hed_near_stream *q = hed_near_stream(s);
    bool ran = false;

    hed_lock(&s->lock);
    while (s->done < p.number) {
        if (run_until_locked(s, p.number)) {
            ran = true;
            continue;
        }
        pass_on_locked(q);
        wait_for_number_locked(s, p.number);
    }
    pass_on_locked(q);

    /* A runner that ended meanwhile left this to us. */
    const bool over = ran && s->destroyed && !q->first && !q->running && !q->has_runner;

    hed_unlock(&s->lock);
    if (over)
        hed_stream_retire(s);
    return CUDA_SUCCESS;
}

/* ---- runners --------------------------------------------------------------------------------- */

/* Waits for work that can be taken. False: there has been none for a while, or no more will come.
 * If `linger` is false it does not wait for more to be added. */
static bool
queue_wait_locked(struct hed_stream *s, bool linger)
{
    struct hed_near_stream *q = hed_near_stream(s);
    int err = 0;

    if (q->first && !q->running)
        return true;

    const uint64_t end = hed_now_ns() + IDLE_NS;

    while (!q->first || q->running) {
        if (!q->first && (s->destroyed || !linger || err == ETIMEDOUT))
            return false;
        err = hed_lock_wait(&s->lock, &q->filled, q->first ? UINT64_MAX : end);
    }
    return true;
}

static void
run_queue(struct hed_stream *s, bool linger)
{
    struct hed_near_stream *q = hed_near_stream(s);

    hed_lock(&s->lock);
    while (queue_wait_locked(s, linger))
        run_first_locked(s);
    q->has_runner = false;

    const bool over = s->destroyed && !q->running;

    hed_unlock(&s->lock);
    if (over)
        hed_stream_retire(s);
}

static void *
stream_runner(void *arg)
{
    struct hed_stream *s = arg;
    const struct hed_near_stream *q = hed_near_stream(s);

    (void)pthread_setname_np(pthread_self(), "heddle-stream");
    if (q->executor->runner_begins)
        q->executor->runner_begins(q->machine, false);
    run_queue(s, true);
    if (q->executor->runner_ends)
        q->executor->runner_ends(q->machine);
    hed_stream_put(s);
    return NULL;
}

/* Starts a thread for the stream; the caller has set has_runner. Signals that kernels cause belong
 * to the executor. */
static void
start_runner(struct hed_stream *s)
{
    int err;

    hed_object_ref(&s->object); /* the runner's reference */
    err = hed_thread_detached(&(struct hed_thread_how){.faults = true}, stream_runner, s);
    if (err) {
        /* Late is better than never: the caller runs everything itself. */
        hed_warn(DRIVER, "cannot start a thread for a stream: %s", hed_err_text(err));
        run_queue(s, false);
        hed_stream_put(s);
    }
}

/* ---- adding work ----------------------------------------------------------------------------- */

enum queued {
    REFUSED,   /* the stream has been destroyed */
    QUEUED,    /* the runner will run it */
    NO_RUNNER, /* the same, but the caller must start the runner */
    OURS,      /* running is set: the caller must run it and report when it is done */
};

/* Where work is in its queue. */
struct place {
    uint64_t number;
    uint64_t ahead; /* how much work is before it, running or waiting */
};

/* Numbers the work. Unless it is OURS, it may be run and freed as soon as this returns. */
static enum queued
queue_put(struct hed_stream *s, struct hed_work *w, bool here, struct place *place)
{
    struct hed_near_stream *q = hed_near_stream(s);
    enum queued where = REFUSED;

    hed_lock(&s->lock);
    if (!s->destroyed) {
        place->ahead = s->submitted - s->done;
        place->number = w->number = ++s->submitted;
        if (here && !q->first && !q->running) {
            q->running = true;
            where = OURS;
        } else {
            w->next = NULL;
            *q->last = w;
            q->last = &w->next;
            where = q->has_runner ? QUEUED : NO_RUNNER;
            q->has_runner = true;
            if (where == QUEUED)
                (void)pthread_cond_signal(&q->filled);
        }
    }
    hed_unlock(&s->lock);
    return where;
}

/* The event's lock is held from before the number is given until the event knows it. Reaching the
 * record takes that lock too, so it cannot happen earlier. */
static enum queued
queue_put_record(struct hed_stream *s, struct hed_work *w, bool here, struct place *place)
{
    struct hed_event *e = w->event.event;
    struct hed_stream *before = NULL;

    hed_lock(&e->lock);
    w->event.record = e->records + 1;
    if (e->shared)
        w->event.shared = hed_shared_event_begin(e->shared);

    const enum queued where = queue_put(s, w, here, place);

    if (where != REFUSED) {
        before = e->point.stream;
        hed_object_ref(&s->object);
        e->point = (struct hed_point){s, place->number};
        e->records++;
        e->recorded = true;
        if (!(w->event.flags & HED_EVENT_OF_GRAPH))
            e->time = 0;
    }
    hed_unlock(&e->lock);
    if (before)
        hed_stream_put(before);
    return where;
}

/* Runs work that is OURS, then lets others run the stream's work. */
static void
perform_ours(struct hed_stream *s, struct hed_work *w)
{
    struct hed_near_stream *q = hed_near_stream(s);
    const uint64_t number = w->number;

    perform_work(w);
    hed_lock(&s->lock);
    work_done_locked(s, number);

    const bool start = q->first && !q->has_runner;
    const bool over = s->destroyed && !q->first && !q->has_runner;

    if (start)
        q->has_runner = true;
    else if (q->first)
        (void)pthread_cond_signal(&q->filled);
    hed_unlock(&s->lock);
    if (start)
        start_runner(s);
    if (over)
        hed_stream_retire(s);
}

/* Can a thread that does not want to wait run it at once? Never functions of the program, nor
 * kernels, which may wait for the program. */
static bool
is_quick(const struct hed_work *w)
{
    const struct hed_box *b = &w->copy.box;

    switch (w->kind) {
    case HED_WORK_NONE:
    case HED_WORK_EVENT_RECORD:
    case HED_WORK_ALLOC:
    case HED_WORK_FREE:
        return true;
    case HED_WORK_EVENT_WAIT:
        return !w->event.event->shared ||
               hed_shared_event_is_reached(w->event.event->shared, w->event.shared);
    case HED_WORK_COPY:
        return b->width <= QUICK_BYTES && b->height <= QUICK_BYTES &&
               b->width * b->height <= QUICK_BYTES && b->depth <= QUICK_BYTES &&
               hed_box_bytes(b) <= QUICK_BYTES;
    case HED_WORK_FILL:
        return w->fill.width <= QUICK_BYTES && w->fill.height <= QUICK_BYTES &&
               w->fill.width * w->fill.height <= QUICK_BYTES / 4;
    default:
        return false;
    }
}

/* A program that adds work faster than it runs must not fill the memory: as with a GPU's queue, it
 * waits until half of it has run. Functions of the program do not wait, since queues wait for them.
 */
static void
wait_for_queue_room(struct hed_stream *s, const struct place *last)
{
    if (last->ahead >= QUEUE_MOST && !hed_in_callback())
        (void)hed_near_point_wait(NULL, (struct hed_point){s, last->number - QUEUE_MOST / 2});
}

CUresult
hed_near_submit(void *m, struct hed_stream *s, struct hed_work *w, bool wait)
{
    CUresult result = CUDA_SUCCESS;
    struct place place = {0};

    if (!add_default_points(s, &w->after)) {
        hed_work_free(w);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    hed_points_prune(&w->after);
    if (w->kind == HED_WORK_EVENT_WAIT && w->event.event->shared)
        w->event.shared = hed_shared_event_last(w->event.event->shared);
    /* The thread that runs the work writes this before the number is done; it is read after
     * waiting. */
    w->result = wait ? &result : NULL;
    if (hed_watcher_get()) {
        w->stream = s->id;
        w->cause = hed_activity_cause();
    }

    const bool here = wait || (w->after.count == 0 && is_quick(w));
    const enum queued where = w->kind == HED_WORK_EVENT_RECORD
                                  ? queue_put_record(s, w, here, &place)
                                  : queue_put(s, w, here, &place);

    if (where == REFUSED) {
        hed_work_free(w);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (where == OURS)
        perform_ours(s, w);
    else if (where == NO_RUNNER)
        start_runner(s);
    if (!wait) {
        wait_for_queue_room(s, &place);
        return CUDA_SUCCESS;
    }
    (void)hed_near_point_wait(NULL, (struct hed_point){s, place.number});
    return result != CUDA_SUCCESS ? result : hed_context_error(s->ctx);
}

/* ---- asking and waiting ---------------------------------------------------------------------- */

/* Adds the points that a query about a stream concerns. For the legacy stream these include the
 * blocking streams. */
static bool
add_pending(struct hed_stream *s, struct hed_points *p)
{
    return hed_points_add(p, s) && (!s->is_legacy || hed_points_add_all(p, s->ctx, true));
}

static void
wait_for_all(struct hed_points *p)
{
    for (unsigned i = 0; i < p->count; i++)
        (void)hed_near_point_wait(NULL, p->at[i]);
    hed_points_clear(p);
}

CUresult
hed_near_stream_query(void *m, struct hed_stream *s)
{
    struct hed_points p = {0};
    const bool idle = add_pending(s, &p) && p.count == 0;

    hed_points_clear(&p);
    return idle ? hed_context_error(s->ctx) : CUDA_ERROR_NOT_READY;
}

CUresult
hed_near_stream_wait(void *m, struct hed_stream *s)
{
    struct hed_points p = {0};
    const bool good = add_pending(s, &p);

    wait_for_all(&p);
    return good ? hed_context_error(s->ctx) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
hed_near_context_wait(void *m, struct hed_context *c)
{
    struct hed_points p = {0};
    const bool good = hed_points_add_all(&p, c, false);

    wait_for_all(&p);
    return good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
