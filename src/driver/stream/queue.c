/* The queues of streams: putting work in, doing it in order, waiting for it. See stream.h.
 *
 *   hed_submit ---- nothing in the queue, and it takes no time --> done here, at once
 *              \--- else --> queue --> runner: waits for the work's points, does it
 *   hed_submit_wait - nothing in the queue --> done here, after waiting for its points
 *                  \- else --> queue, and waits for its number
 *
 * Invariants:
 * 1. running is true while exactly one thread, which set it, does work of the stream. That thread
 *    took the work with the number done + 1, and no other.
 * 2. There is work in the queue only if there is a runner, or a thread that is about to make one.
 * 3. When a number is done, the work is freed: nobody who waited for it meets anything of it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "driver/driver.h"
#include "driver/graph/graph.h"
#include "driver/stream/stream.h"

#define IDLE_NS HED_NS_PER_S    /* a runner without work stays so long */
#define QUEUE_MOST 8192         /* work in a queue, about; who puts in more waits */
#define QUICK_BYTES (64u << 10) /* a copy of so many bytes takes less than waking a thread */

/* ---- points ---------------------------------------------------------------------------------- */

/* Is its work done elsewhere (far_queue.c)? Nothing of this file but the calls is used then. */
static bool
is_far(const struct hed_stream *s)
{
    return s->ctx->device->driver->machine->far != NULL;
}

void
hed_point_wait(struct hed_point p)
{
    struct hed_stream *s = p.stream;

    if (!s)
        return;
    if (is_far(s)) {
        (void)hed_far_wait(p);
        return;
    }
    hed_lock(&s->lock);
    while (s->done < p.number) {
        if (s->wanted > p.number)
            s->wanted = p.number;
        (void)hed_lock_wait(&s->lock, &s->finished, NULL);
    }
    hed_unlock(&s->lock);
}

bool
hed_point_reached(struct hed_point p)
{
    if (!p.stream)
        return true;
    if (is_far(p.stream))
        return hed_far_reached(p);
    hed_lock(&p.stream->lock);

    const bool reached = p.stream->done >= p.number;

    hed_unlock(&p.stream->lock);
    return reached;
}

CUresult
hed_stream_wait(struct hed_stream *s, uint64_t number)
{
    hed_point_wait((struct hed_point){s, number});
    return hed_context_error(s->ctx);
}

/* The default streams' rules, as points; those reached already are left out. */
static bool
add_defaults(struct hed_stream *s, struct hed_points *after)
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

/* ---- doing work ------------------------------------------------------------------------------ */

/* What happens to work when its context has failed: events are reached, callbacks are told, memory
 * is given back; nothing else is done. */
static bool
runs_after_failure(enum hed_work_kind kind)
{
    return kind == HED_WORK_CALLBACK || kind == HED_WORK_EVENT_RECORD || kind == HED_WORK_FREE;
}

static CUresult
do_work(struct hed_work *w)
{
    struct hed_why why = {""};
    const CUresult failed = hed_context_error(w->ctx);

    if (failed != CUDA_SUCCESS && !runs_after_failure(w->kind))
        return failed;

    const CUresult r = hed_work_run(w, &why);

    if (r != CUDA_SUCCESS) {
        hed_error(DRIVER, "work on a stream failed with error %d%s%s", (int)r,
                  why.text[0] ? ": " : "", why.text);
        hed_context_fail(w->ctx, r);
    }
    return r != CUDA_SUCCESS ? r : failed;
}

/* The work with the number done + 1: waits for its points, does it, frees it. */
static void
perform(struct hed_work *w)
{
    for (unsigned i = 0; i < w->after.count; i++)
        hed_point_wait(w->after.at[i]);

    const CUresult r = do_work(w);

    if (w->result)
        *w->result = r;
    hed_work_free(w);
}

/* Takes the next work, which there is, with running set. */
static struct hed_work *
take_locked(struct hed_stream *s)
{
    struct hed_work *w = s->first;

    s->first = w->next;
    if (!s->first)
        s->last = &s->first;
    s->running = true;
    return w;
}

static void
done_locked(struct hed_stream *s, uint64_t number)
{
    s->running = false;
    s->done = number;
    if (number >= s->wanted) {
        /* Who waits for a later number says so again. */
        s->wanted = UINT64_MAX;
        (void)pthread_cond_broadcast(&s->finished);
    }
}

/* ---- runners --------------------------------------------------------------------------------- */

/* Waits for work that can be taken; false: there has been none for a while, or none will come. With
 * linger false it does not wait for more to be put in. */
static bool
next_locked(struct hed_stream *s, bool linger)
{
    const uint64_t until = hed_now_ns() + IDLE_NS;
    const struct timespec end = {(time_t)(until / HED_NS_PER_S), (long)(until % HED_NS_PER_S)};
    int err = 0;

    while (!s->first || s->running) {
        if (!s->first && (s->destroyed || !linger || err == ETIMEDOUT))
            return false;
        err = hed_lock_wait(&s->lock, &s->filled, s->first ? NULL : &end);
    }
    return true;
}

static void
run_queue(struct hed_stream *s, bool linger)
{
    hed_lock(&s->lock);
    while (next_locked(s, linger)) {
        struct hed_work *w = take_locked(s);
        const uint64_t number = w->number;

        hed_unlock(&s->lock);
        perform(w);
        hed_lock(&s->lock);
        done_locked(s, number);
    }
    s->has_runner = false;

    const bool over = s->destroyed && !s->running;

    hed_unlock(&s->lock);
    if (over)
        hed_stream_retire(s);
}

static void *
runner(void *arg)
{
    struct hed_stream *s = arg;

    (void)pthread_setname_np(pthread_self(), "heddle-stream");
    run_queue(s, true);
    hed_stream_put(s);
    return NULL;
}

/* A thread for the stream, whose has_runner the caller has set. The program's signals are for the
 * program's threads; those that come from what kernels do are the machine's. */
static void
start_runner(struct hed_stream *s)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked;
    sigset_t before;
    pthread_attr_t attr;
    pthread_t thread;
    int err;

    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        (void)sigdelset(&blocked, own[i]);
    hed_object_ref(&s->object); /* the runner's */
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
    err = pthread_create(&thread, &attr, runner, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    if (err) {
        /* Late is better than never: the caller does it all. */
        hed_warn(DRIVER, "no thread for a stream: %s", hed_err_text(hed_err_from_errno(err)));
        run_queue(s, false);
        hed_stream_put(s);
    }
}

/* ---- putting work in ------------------------------------------------------------------------- */

enum place {
    REFUSED,   /* the stream is destroyed */
    QUEUED,    /* it is the runner's now */
    NO_RUNNER, /* the same, and the caller must make the runner */
    OURS,      /* running is set: the caller must do it, and say when it is done */
};

/* Numbers the work. It may be done and freed as soon as this returns, unless it is OURS. */
static enum place
place(struct hed_stream *s, struct hed_work *w, bool here, uint64_t *number)
{
    enum place where = REFUSED;

    hed_lock(&s->lock);
    if (!s->destroyed) {
        *number = w->number = ++s->submitted;
        if (here && !s->first && !s->running) {
            s->running = true;
            where = OURS;
        } else {
            w->next = NULL;
            *s->last = w;
            s->last = &w->next;
            where = s->has_runner ? QUEUED : NO_RUNNER;
            s->has_runner = true;
            if (where == QUEUED)
                (void)pthread_cond_signal(&s->filled);
        }
    }
    hed_unlock(&s->lock);
    return where;
}

/* The event's lock is held from before the number is given until the event knows it: reaching the
 * record takes that lock too, so it cannot come first. */
static enum place
place_record(struct hed_stream *s, struct hed_work *w, bool here, uint64_t *number)
{
    struct hed_event *e = w->event.event;
    struct hed_stream *before = NULL;

    hed_lock(&e->lock);
    w->event.record = e->records + 1;

    const enum place where = place(s, w, here, number);

    if (where != REFUSED) {
        before = e->point.stream;
        hed_object_ref(&s->object);
        e->point = (struct hed_point){s, *number};
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

/* Does work that is OURS, and hands the stream on. */
static void
do_ours(struct hed_stream *s, struct hed_work *w)
{
    const uint64_t number = w->number;

    perform(w);
    hed_lock(&s->lock);
    done_locked(s, number);

    const bool start = s->first && !s->has_runner;
    const bool over = s->destroyed && !s->first && !s->has_runner;

    if (start)
        s->has_runner = true;
    else if (s->first)
        (void)pthread_cond_signal(&s->filled);
    hed_unlock(&s->lock);
    if (start)
        start_runner(s);
    if (over)
        hed_stream_retire(s);
}

/* Can it be done at once by a thread that does not want to wait? Never functions of the program,
 * and no kernels, which may wait for the program. */
static bool
is_quick(const struct hed_work *w)
{
    switch (w->kind) {
    case HED_WORK_NONE:
    case HED_WORK_EVENT_RECORD:
    case HED_WORK_EVENT_WAIT:
    case HED_WORK_ALLOC:
    case HED_WORK_FREE:
        return true;
    case HED_WORK_COPY:
        return w->copy.width <= QUICK_BYTES && w->copy.height <= QUICK_BYTES &&
               w->copy.width * w->copy.height <= QUICK_BYTES && w->copy.depth <= QUICK_BYTES &&
               w->copy.width * w->copy.height * w->copy.depth <= QUICK_BYTES;
    case HED_WORK_FILL:
        return w->fill.width <= QUICK_BYTES && w->fill.height <= QUICK_BYTES &&
               w->fill.width * w->fill.height <= QUICK_BYTES / 4;
    default:
        return false;
    }
}

/* A program that puts in more than is done must not fill the memory: as with a GPU's queue, it
 * waits until half of it is gone. Functions of the program, which queues wait for, do not. */
static void
wait_for_room(struct hed_stream *s)
{
    hed_lock(&s->lock);

    const uint64_t last = s->submitted;
    const bool full = last - s->done >= QUEUE_MOST;

    hed_unlock(&s->lock);
    if (full && !hed_in_callback())
        hed_point_wait((struct hed_point){s, last - QUEUE_MOST / 2});
}

/* Takes the work. With wait, does not return before it is done. */
static CUresult
put_in(struct hed_stream *s, struct hed_work *w, bool wait)
{
    uint64_t number = 0;

    wait_for_room(s);
    if (!add_defaults(s, &w->after)) {
        hed_work_free(w);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    hed_points_prune(&w->after);

    const bool here = wait || (w->after.count == 0 && is_quick(w));
    const enum place where = w->kind == HED_WORK_EVENT_RECORD ? place_record(s, w, here, &number)
                                                              : place(s, w, here, &number);

    if (where == REFUSED) {
        hed_work_free(w);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (where == OURS)
        do_ours(s, w);
    else if (where == NO_RUNNER)
        start_runner(s);
    if (wait)
        hed_point_wait((struct hed_point){s, number});
    return CUDA_SUCCESS;
}

/* What CUDA answers before it takes anything: the context's failure, or that blocking streams are
 * capturing. */
CUresult
hed_submit_allowed(struct hed_stream *s)
{
    const CUresult r = hed_context_error(s->ctx);

    if (r == CUDA_SUCCESS && s->is_legacy)
        return hed_capture_implicit(s->ctx);
    return r;
}

CUresult
hed_submit(struct hed_stream *s, struct hed_work *w)
{
    const CUresult r = hed_submit_allowed(s);

    if (r != CUDA_SUCCESS) {
        hed_work_free(w);
        return r;
    }
    /* Acquire: pairs with the capture's beginning. */
    if (atomic_load_explicit(&s->capture, memory_order_acquire))
        return hed_capture_add(s, w);
    return is_far(s) ? hed_far_submit(s, w, false) : put_in(s, w, false);
}

CUresult
hed_submit_wait(struct hed_stream *s, struct hed_work *w)
{
    CUresult result = CUDA_SUCCESS;
    CUresult r = hed_submit_allowed(s);

    /* Acquire: as above. */
    if (r == CUDA_SUCCESS && atomic_load_explicit(&s->capture, memory_order_acquire))
        r = hed_capture_broken(s);
    if (r != CUDA_SUCCESS) {
        hed_work_free(w);
        return r;
    }
    if (is_far(s))
        return hed_far_submit(s, w, true);
    /* Written by whoever does the work, before the number is done: read after waiting for that. */
    w->result = &result;
    r = put_in(s, w, true);
    if (r != CUDA_SUCCESS || result != CUDA_SUCCESS)
        return r != CUDA_SUCCESS ? r : result;
    return hed_context_error(s->ctx);
}
