/* Stops the program between two calls, with all of its work done. See snap.h.
 *
 * Work is asked for, not waited for: a stream may wait for something that only the program can do,
 * and then it goes on unharmed.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/call.h"
#include "driver/driver.h"
#include "move/session/reopen.h"
#include "move/session/snap.h"
#include "remote/client.h"

#define LOOK_FIRST_NS 20000u /* between two looks at streams; doubles up to LOOK_MOST_NS */
#define LOOK_MOST_NS 200000u

/* ---- work ------------------------------------------------------------------------------------ */

static bool
is_context_done(struct hed_remote *r, struct hed_context *c)
{
    struct hed_points p = {0};
    bool done = hed_points_add_all(&p, c, false);

    for (unsigned i = 0; i < p.count && done; i++)
        done = hed_remote_point_reached(r, p.at[i]);
    hed_points_clear(&p);
    return done;
}

/* The program is held, so the list does not change. */
static bool
is_all_done(struct hed_remote *r)
{
    bool done = !hed_remote_functions_wait(r);

    for (struct hed_context *c = r->driver->contexts; c && done; c = c->next)
        if (hed_context_alive(c) && hed_context_error(c) == CUDA_SUCCESS)
            done = is_context_done(r, c);
    return done;
}

static int
drain_work(struct hed_remote *r, uint64_t end, struct hed_why *why)
{
    uint64_t pause = LOOK_FIRST_NS;

    while (!is_all_done(r)) {
        if (hed_now_ns() >= end) {
            hed_why_set(why, "work on its streams is not done in time: a kernel runs long, or a "
                             "stream waits for the program itself");
            return HED_ETIME;
        }
        hed_sleep_ns(pause);
        pause = pause * 2 < LOOK_MOST_NS ? pause * 2 : LOOK_MOST_NS;
    }
    /* What comes with answers only: copies to the program's memory, output of kernels. */
    for (struct hed_context *c = r->driver->contexts; c; c = c->next)
        if (hed_context_alive(c) && hed_context_error(c) == CUDA_SUCCESS)
            (void)hed_remote_context_wait(r, c);
    hed_pool_settle(r->driver);
    hed_remote_sync_out(r);
    /* Relaxed: this thread would have noticed. */
    if (atomic_load_explicit(&r->lost, memory_order_relaxed)) {
        hed_why_set(why, "its server is lost");
        return HED_EIO;
    }
    return 0;
}

/* ---- what cannot be taken away --------------------------------------------------------------- */

static int
refuse_linker(void *arg, struct hed_object *o)
{
    (void)o;
    hed_why_set(arg, "it is linking code, which cannot be taken to another worker");
    return HED_ENOTSUP;
}

static int
check_movable(struct hed_remote *r, struct hed_why *why)
{
    for (const struct hed_context *c = r->driver->contexts; c; c = c->next)
        if (hed_context_alive(c) && hed_context_error(c) != CUDA_SUCCESS) {
            hed_why_set(why, "a context has failed (CUDA error %d), and its memory is lost",
                        (int)hed_context_error(c));
            return HED_ENOTSUP;
        }
    if (hed_remote_is_sharing(r)) {
        hed_why_set(why, "it shares memory or events with other programs (CUDA IPC)");
        return HED_ENOTSUP;
    }
    if (r->in_window) {
        hed_why_set(why, "its pinned memory is in the window of a QEMU guest");
        return HED_ENOTSUP;
    }

    const char *kernel = hed_remote_allocating_kernel(r);

    if (kernel) {
        hed_why_set(why,
                    "its kernels allocate memory on the device themselves (malloc in the code of "
                    "%s), and what they have there cannot be taken along",
                    kernel);
        return HED_ENOTSUP;
    }
    return hed_handles_each(r->driver->handles, HED_KIND_LINK, refuse_linker, why);
}

/* ---- slots and times of the old worker ------------------------------------------------------- */

static void
leave_slot(struct hed_remote *r, struct hed_stream *s)
{
    struct hed_remote_stream *q = hed_remote_stream(s);

    hed_lock(&s->lock);
    if (q->slot)
        hed_remote_slot_give(r, q->slot);
    q->slot = 0;
    q->marked = 0;
    hed_unlock(&s->lock);
}

/* All marks have arrived, so no slot is written any more. */
static int
leave_stream_slot(void *arg, struct hed_object *o)
{
    leave_slot(arg, (struct hed_stream *)o);
    return 0;
}

struct timing {
    struct hed_remote *remote;
    struct hed_object now; /* an event of ours, recorded last; its handle is its name */
    const struct hed_context *ctx;
};

static void
keep_nothing(struct hed_object *o)
{
    (void)o;
}

static int
keep_event_time(void *arg, struct hed_object *o)
{
    const struct timing *t = arg;
    struct hed_event *e = (struct hed_event *)o;

    /* Relaxed: the program is held. */
    if (&t->now == o || e->ctx != t->ctx || !e->recorded || e->flags & CU_EVENT_DISABLE_TIMING ||
        !atomic_load_explicit(&e->mirrored, memory_order_relaxed))
        return 0;
    return hed_remote_event_keep(t->remote, e, (CUevent)(uintptr_t)t->now.handle);
}

static int
count_timed(void *arg, struct hed_object *o)
{
    const struct hed_event *e = (const struct hed_event *)o;

    return e->ctx == arg && e->recorded && !(e->flags & CU_EVENT_DISABLE_TIMING) ? HED_EEXIST : 0;
}

/* Times between events are differences to this moment from now on. */
static void
keep_times(struct hed_remote *r, struct hed_context *c)
{
    struct hed_handles *handles = r->driver->handles;
    struct timing t = {.remote = r, .ctx = c, .now.destroy = keep_nothing};
    const uint64_t context = c->object.handle;

    if (hed_handles_each(handles, HED_KIND_EVENT, count_timed, c) == 0 ||
        hed_handles_add(handles, HED_KIND_EVENT, &t.now) != 0)
        return;

    CUevent name = (CUevent)(uintptr_t)t.now.handle;

    hed_remote_send(r, context, 0, 0, cuEventCreate, .phEvent = &name, .Flags = 0);
    hed_remote_send(r, context, 1, 0, cuEventRecord, .hEvent = name,
                    .hStream = (CUstream)(uintptr_t)1);
    (void)hed_remote_ask_waiting(r, context, 0, cuEventSynchronize, .hEvent = name);
    (void)hed_handles_remove(handles, HED_KIND_EVENT, t.now.handle);
    (void)hed_handles_each(handles, HED_KIND_EVENT, keep_event_time, &t);
    hed_remote_send(r, context, 0, 0, cuEventDestroy_v2, .hEvent = name);
}

/* Memory that nothing lives in is not taken along. */
static void
trim_memory(struct hed_driver *d)
{
    for (int i = 0; i < d->device_count; i++)
        hed_memory_trim(d, &d->devices[i]);
    hed_memory_trim(d, NULL);
}

static void
settle_old_worker(struct hed_remote *r)
{
    /* A standby has it already, so that it need not be unmapped now. */
    if (!r->moving->standby)
        trim_memory(r->driver);
    (void)hed_handles_each(r->driver->handles, HED_KIND_STREAM, leave_stream_slot, r);
    for (struct hed_context *c = r->driver->contexts; c; c = c->next) {
        if (!hed_context_alive(c))
            continue;
        leave_slot(r, c->legacy);
        keep_times(r, c);
    }
    /* A worker frees the pages of pinned memory that it unmaps. By the time that a slow one does,
     * another worker may have been given memory at the same place. So it is waited for. */
    if (r->shares_heap)
        hed_remote_look(r);
}

/* ---- hold and release ------------------------------------------------------------------------ */

int
hed_remote_hold(struct hed_remote *r, int deadline_ms, struct hed_why *why)
{
    const uint64_t end = hed_now_ns() + (uint64_t)deadline_ms * HED_NS_PER_MS;
    struct hed_remote_laps laps = {.last = hed_now_ns()};
    int call = 0;
    int err = hed_hold_close(&r->moving->hold, deadline_ms, &call);

    if (err) {
        const struct hed_call_info *info =
            call == HED_HOLD_NVML ? NULL : hed_call_info(HED_API_CUDA, (uint32_t)call);

        hed_why_set(why, "a call has not returned in %d ms (%s)", deadline_ms,
                    info ? info->name : "NVML");
        return err;
    }
    r->moving->holder = pthread_self();
    r->moving->laps = laps;
    hed_remote_lap(r, HED_TALK_STOP);
    err = check_movable(r, why);
    if (!err)
        err = drain_work(r, end, why);
    if (!err)
        err = check_movable(r, why); /* work may have failed meanwhile */
    hed_remote_lap(r, HED_TALK_DRAIN);
    if (err)
        hed_hold_open(&r->moving->hold);
    else
        settle_old_worker(r);
    if (!err)
        hed_remote_lap(r, HED_TALK_SETTLE);
    return err;
}

void
hed_remote_release(struct hed_remote *r)
{
    hed_hold_open(&r->moving->hold);
    hed_remote_lap(r, HED_TALK_LEAVE);
    hed_remote_attachment_leave(r);
}
