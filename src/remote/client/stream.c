/* Contexts and streams of a worker, and their work, as messages. See remote.h and queue.h.
 *
 * To find out how far a stream has come, this side asks the worker or, over shared memory, reads a
 * slot: a mark on the stream makes the worker, or the device itself, write a number into the
 * stream's slot when it gets there.
 *
 * Invariants:
 * 1. A stream has at most one slot, which it takes with its first mark. The slot is given back
 *    after the last mark has arrived, so nothing is written into a slot that another stream has.
 * 2. A slot may never be written again, because the device has failed. So a thread that only reads
 *    it asks the worker now and then, every LOOK_NS.
 */
#include "base/clock.h"
#include "remote/client/queue.h"
#include "remote/client/remote.h"

#define LOOK_NS (2 * HED_NS_PER_MS)

/* ---- results --------------------------------------------------------------------------------- */

CUresult
hed_remote_waited(struct hed_context *c, CUresult r)
{
    /* Another thread may have destroyed the object that was asked about. */
    if (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_READY && r != CUDA_ERROR_INVALID_HANDLE)
        hed_context_fail(c, r);
    return r;
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* The worker keeps primary contexts once it has them; their contents are destroyed piece by piece.
 * Only one that has failed is reset. */
CUresult
hed_remote_context_tell(struct hed_remote *r, struct hed_context *c)
{
    CUcontext name = hed_context_handle(c);
    const CUdevice device = r->devices[c->device->ordinal].ordinal;
    CUresult result = CUDA_SUCCESS;

    if (!c->primary)
        return hed_remote_ask(r, 0, 0, cuCtxCreate_v2, .pctx = &name, .flags = c->flags,
                              .dev = device);
    /* The name stays the same through a reset. */
    if (c->flags)
        result = hed_remote_ask(r, 0, 0, cuDevicePrimaryCtxSetFlags_v2, .dev = device,
                                .flags = c->flags);
    if (result != CUDA_SUCCESS)
        return result;
    return hed_remote_ask(r, 0, 0, cuDevicePrimaryCtxRetain, .pctx = &name, .dev = device);
}

CUresult
hed_remote_context_made(void *m, struct hed_context *c)
{
    struct hed_remote_context *own = hed_remote_context(c);
    CUresult result = CUDA_SUCCESS;

    if (!c->primary || !own->made || own->reset)
        result = hed_remote_context_tell(hed_remote_of(m), c);
    if (result == CUDA_SUCCESS) {
        own->made = true;
        own->reset = false;
    }
    return result;
}

void
hed_remote_context_gone(void *m, struct hed_context *c)
{
    struct hed_remote *r = hed_remote_of(m);

    if (!c->primary) {
        (void)hed_remote_ask_waiting(r, c->object.handle, 0, cuCtxDestroy_v2,
                                     .ctx = hed_context_handle(c));
    } else if (hed_context_error(c) != CUDA_SUCCESS) {
        (void)hed_remote_ask_waiting(r, c->object.handle, 0, cuDevicePrimaryCtxReset_v2,
                                     .dev = r->devices[c->device->ordinal].ordinal);
        hed_remote_context(c)->reset = true;
        /* Relaxed: it only matters whether it has happened (event.c). */
        atomic_fetch_add_explicit(&hed_remote_context(c)->resets, 1, memory_order_relaxed);
    }
}

CUresult
hed_remote_context_limit(void *m, struct hed_context *c, CUlimit limit, size_t value)
{
    hed_remote_context(c)->limits |= 1u << limit; /* for the next worker */
    return hed_remote_ask(hed_remote_of(m), c->object.handle, 0, cuCtxSetLimit, .limit = limit,
                          .value = value);
}

CUresult
hed_remote_await_context(void *m, struct hed_context *c)
{
    struct hed_remote *r = hed_remote_of(m);
    const CUresult result = hed_remote_wait(r, c->object.handle, 0);

    hed_remote_host_drain(r);
    hed_remote_sync_in(r);
    return hed_remote_waited(c, result);
}

/* ---- streams --------------------------------------------------------------------------------- */

/* The machine's bytes in a stream begin as zeros, so there is nothing to do. */
void
hed_remote_stream_init(void *m, struct hed_stream *s)
{
}

void
hed_remote_stream_made(void *m, struct hed_stream *s)
{
    CUstream name = (CUstream)(uintptr_t)s->object.handle;

    hed_remote_send(hed_remote_of(m), s->ctx->object.handle, 0, 0, cuStreamCreateWithPriority,
                    .phStream = &name,
                    .flags = s->blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING,
                    .priority = s->priority);
}

void
hed_remote_stream_drop(void *m, struct hed_stream *s)
{
    struct hed_remote_stream *q = hed_remote_stream(s);
    struct hed_remote *r = hed_remote_of(m);

    hed_remote_send(r, s->ctx->object.handle, 0, 0, cuStreamDestroy_v2,
                    .hStream = (CUstream)(uintptr_t)s->object.handle);
    if (q->slot)
        hed_remote_slot_leave(r, q->slot, q->marked);
    q->slot = 0;
}

void
hed_remote_stream_set(void *m, struct hed_stream *s, CUlaunchAttributeID id,
                      const CUlaunchAttributeValue *value)
{
    hed_remote_stream(s)->set |= 1u << id; /* for the next worker */
    /* This side decides how a thread waits. The other attributes are hints: it is no failure if a
     * device does not accept one. */
    if (id != CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
        (void)hed_remote_ask(
            hed_remote_of(m), s->ctx->object.handle, hed_stream_name(s), cuStreamSetAttribute,
            .hStream = (CUstream)(uintptr_t)hed_stream_name(s), .attr = id, .param = value);
}

CUresult
hed_remote_await_stream(void *m, struct hed_stream *s)
{
    struct hed_remote *r = hed_remote_of(m);
    const CUresult result = hed_remote_wait(r, s->ctx->object.handle, hed_stream_name(s));

    hed_remote_host_drain(r);
    hed_remote_sync_in(r);
    return hed_remote_waited(s->ctx, result);
}

/* ---- marks ----------------------------------------------------------------------------------- */

bool
hed_remote_mark_locked(struct hed_remote *r, struct hed_stream *s, uint64_t number)
{
    struct hed_remote_stream *q = hed_remote_stream(s);
    struct hed_remote_channel *channel;
    struct hed_msg *m;

    if (!r->slots)
        return false;
    if (!q->slot)
        q->slot = hed_remote_slot_enter(r);
    if (!q->slot)
        return false;
    m = hed_remote_begin(r, HED_MSG_MARK, sizeof *m, s->ctx->object.handle, hed_stream_name(s),
                         number, &channel);
    if (!m)
        return false;
    m->reserved = q->slot;
    q->marked = number;
    return hed_remote_end(channel, m, sizeof *m) == 0;
}

void
hed_remote_read_locked(struct hed_remote *r, struct hed_stream *s)
{
    const struct hed_remote_stream *q = hed_remote_stream(s);

    /* Acquire: pairs with the write into the slot by the worker (remote/server/worker/host.c) or a
     * device; what was done before that becomes visible. */
    if (q->slot && !hed_remote_host_busy(r))
        hed_remote_told_locked(s, atomic_load_explicit(&r->slots[q->slot], memory_order_acquire));
}

bool
hed_remote_is_late_locked(struct hed_stream *s)
{
    struct hed_remote_stream *q = hed_remote_stream(s);
    const uint64_t now = hed_now_ns();

    /* The first look that finds nothing starts the clock. */
    if (!q->asked)
        q->asked = now;
    if (now - q->asked < LOOK_NS)
        return false;
    q->asked = now;
    return true;
}

/* Asks the worker. */
static CUresult
query_stream(struct hed_remote *r, struct hed_stream *s, uint64_t number)
{
    /* Sent as a call that waits, so that everything that comes with an answer is delivered. */
    const CUresult result =
        hed_remote_ask_waiting(r, s->ctx->object.handle, hed_stream_name(s), cuStreamQuery,
                               .hStream = (CUstream)(uintptr_t)hed_stream_name(s));

    if (result == CUDA_SUCCESS && hed_remote_host_busy(r))
        return CUDA_ERROR_NOT_READY;
    if (result == CUDA_SUCCESS) {
        hed_remote_sync_in(r); /* a later wait may be skipped from now on */
        hed_remote_answered(s, number);
    }
    return hed_remote_waited(s->ctx, result);
}

/* Reads the slot. Returns whether the worker must be asked. eager: ask whenever that would tell
 * more. */
static bool
read_stream_slot(struct hed_remote *r, struct hed_stream *s, bool eager, uint64_t *number,
                 bool *done)
{
    bool ask = false;

    hed_lock(&s->lock);
    hed_remote_read_locked(r, s);
    *number = s->submitted;
    *done = s->done >= s->submitted;
    if (!*done && !s->destroyed) {
        const bool fresh = hed_remote_stream(s)->marked < s->submitted;
        const bool has_mark = !fresh || hed_remote_mark_locked(r, s, s->submitted);

        ask = (eager && (fresh || !has_mark)) || hed_remote_is_late_locked(s);
    }
    hed_unlock(&s->lock);
    if (*done && !hed_remote_healthy(r))
        hed_remote_look(r);
    return ask;
}

void
hed_remote_look_at_stream(void *m, struct hed_stream *s)
{
    struct hed_remote *r = hed_remote_of(m);
    uint64_t number;
    bool done;

    if (read_stream_slot(r, s, false, &number, &done))
        (void)query_stream(r, s, number);
}

CUresult
hed_remote_ask_stream(void *m, struct hed_stream *s)
{
    struct hed_remote *r = hed_remote_of(m);
    uint64_t number;
    bool done;

    if (read_stream_slot(r, s, true, &number, &done))
        return query_stream(r, s, number);
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
