/* stream=own: a client's work runs on one stream of heddle's in each context, instead of the
 * program's streams. All work keeps its order, and no two pieces of work run at the same time. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "share/record/engine.h"

/* heddle's stream of that context, 0 if there is none, and the calls that it comes after. */
static uint64_t
find_own_stream(struct hed_recorder *r, CUcontext context, uint32_t *after)
{
    uint64_t stream = 0;

    hed_lock(&r->lock);
    for (unsigned i = 0; !stream && i < HED_RECORD_CONTEXTS; i++) {
        if (r->streams[i].context != context)
            continue;
        stream = (uint64_t)(uintptr_t)r->streams[i].stream;
        *after = r->streams[i].after;
    }
    hed_unlock(&r->lock);
    return stream;
}

/* Keeps a new stream. False: another thread has created one in the meantime, or there is no
 * room. */
static bool
keep_own_stream(struct hed_recorder *r, CUcontext context, CUstream stream)
{
    bool kept = false;

    hed_lock(&r->lock);
    for (unsigned i = 0; !kept && i < HED_RECORD_CONTEXTS; i++) {
        if (r->streams[i].context == context)
            break;
        if (r->streams[i].context)
            continue;
        r->streams[i].context = context;
        r->streams[i].stream = stream;
        r->streams[i].after = 0;
        kept = true;
    }
    hed_unlock(&r->lock);
    return kept;
}

static void
set_stream_after(struct hed_recorder *r, uint64_t stream, uint32_t after)
{
    hed_lock(&r->lock);
    for (unsigned i = 0; i < HED_RECORD_CONTEXTS; i++)
        if ((uint64_t)(uintptr_t)r->streams[i].stream == stream)
            r->streams[i].after = after;
    hed_unlock(&r->lock);
}

static uint64_t
create_own_stream(struct hed_recorder *r, CUcontext context)
{
    CUstream made = NULL;
    uint32_t after;
    const CUresult result =
        hed_call(r->next, cuStreamCreate, .phStream = &made, .Flags = CU_STREAM_NON_BLOCKING);

    if (result != CUDA_SUCCESS) {
        hed_warn(SCHED,
                 "stream=own: cannot create a stream (CUDA error %d): the program's are used",
                 (int)result);
        return 0;
    }
    if (keep_own_stream(r, context, made))
        return (uint64_t)(uintptr_t)made;
    (void)hed_call(r->next, cuStreamDestroy_v2, .hStream = made);
    return find_own_stream(r, context, &after);
}

static CUresult
wait_for_context(struct hed_recorder *r)
{
    return hed_call(r->next, cuCtxSynchronize, 0);
}

static CUresult
wait_for_stream(struct hed_recorder *r, CUstream stream, bool ptds)
{
    return hed_call(r->next, cuStreamSynchronize, .hStream = stream, .ptds = ptds);
}

uint64_t
hed_record_own_stream(struct hed_recorder *r, CUcontext context)
{
    /* Acquire: pairs with the count in hed_recorder_after. */
    const uint32_t passed = atomic_load_explicit(&r->passed, memory_order_acquire);
    uint32_t after = passed;
    uint64_t stream = context ? find_own_stream(r, context, &after) : 0;

    if (atomic_load_explicit(&r->passing, memory_order_relaxed))
        atomic_store_explicit(&r->passing, false, memory_order_relaxed);
    /* While a stream captures, no stream is created, and nothing is waited for. */
    if (!context || (stream && after == passed) ||
        atomic_load_explicit(&r->capturing, memory_order_acquire))
        return stream;
    if (!stream)
        stream = create_own_stream(r, context);
    /* Work that went to the program's streams while recording was off, or before heddle's stream
     * existed, comes before the work on heddle's stream. */
    if (stream && wait_for_context(r) == CUDA_SUCCESS)
        set_stream_after(r, stream, passed);
    return stream;
}

uint64_t
hed_record_own_stream_of(struct hed_recorder *r, CUcontext context, uint64_t stream)
{
    CUcontext its = context;
    uint32_t after;

    /* 2 is the per-thread default stream, which needs no other treatment here. */
    if (hed_record_is_default(stream) || stream == 2 ||
        hed_call(r->next, cuStreamGetCtx, .hStream = (CUstream)(uintptr_t)stream, .pctx = &its) !=
            CUDA_SUCCESS ||
        its == context)
        return hed_record_own_stream(r, context);
    /* A stream that is missing is created when that context is current. */
    return find_own_stream(r, its, &after);
}

/* Waits for the work on heddle's streams, in this context or in all. */
CUresult
hed_record_wait_own(struct hed_recorder *r, CUcontext context)
{
    CUstream waits[HED_RECORD_CONTEXTS];
    unsigned count = 0;
    CUresult result = CUDA_SUCCESS;

    hed_lock(&r->lock);
    for (unsigned i = 0; i < HED_RECORD_CONTEXTS; i++)
        if (r->streams[i].context && (!context || r->streams[i].context == context))
            waits[count++] = r->streams[i].stream;
    hed_unlock(&r->lock);
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = wait_for_stream(r, waits[i], false);
    return result;
}

/* Whether the stream captures. Calls on such a stream are not changed. */
static bool
stream_captures(struct hed_recorder *r, uint64_t stream, bool ptds)
{
    return atomic_load_explicit(&r->capturing, memory_order_acquire) &&
           hed_stream_captures(r->next, stream, ptds);
}

/* Whether the call's stream is where work goes, and not the object that the call is about. */
static bool
swaps_stream(enum hed_cuda_call id)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    return info->stream >= 0 && (info->stream_in < 0 || info->does == HED_DOES_LAUNCH) &&
           info->does >= HED_DOES_LAUNCH && info->does <= HED_DOES_POLL;
}

/* A callback gets its stream as an argument: this must be the program's stream, not heddle's. */
struct told {
    CUstreamCallback callback;
    void *user;
    CUstream stream;
};

static void
call_program_back(CUstream own, CUresult status, void *data)
{
    const struct told t = *(struct told *)data;

    free(data);
    t.callback(t.stream, status, t.user);
}

static void
swap_callback(struct hed_cuStreamAddCallback *a, struct hed_record_call *c)
{
    struct told *t = a->callback ? malloc(sizeof *t) : NULL;

    c->told = t;
    if (!t)
        return;
    *t = (struct told){a->callback, a->userData, (CUstream)(uintptr_t)c->stream};
    c->callback = a->callback;
    c->user = a->userData;
    a->callback = call_program_back;
    a->userData = t;
}

static void
put_back_callback(struct hed_cuStreamAddCallback *a, const struct hed_record_call *c, CUresult made)
{
    if (!c->told)
        return;
    a->callback = c->callback;
    a->userData = c->user;
    if (made != CUDA_SUCCESS) /* the callback is not called then */
        free(c->told);
}

/* The config of a launch that has its stream in there. */
static const CUlaunchConfig **
config_of(const struct hed_call_info *info, void *args)
{
    return (const CUlaunchConfig **)(void *)((char *)args + info->stream);
}

void
hed_record_swap(struct hed_recorder *r, enum hed_cuda_call id, void *args, CUcontext context,
                struct hed_record_call *c)
{
    const struct hed_call_info *info = &hed_cuda_info[id];
    bool *ptds = info->ptds >= 0 ? (bool *)((char *)args + info->ptds) : NULL;
    uint64_t own;

    if (!swaps_stream(id) || !hed_call_stream(info, args, &c->stream) ||
        stream_captures(r, c->stream, ptds && *ptds))
        return;
    /* A stream that waits for an event of a capture joins the capture, and no call tells whether an
     * event belongs to one. See hed_record_catch_up. */
    if (id == HED_cuStreamWaitEvent && atomic_load_explicit(&r->capturing, memory_order_acquire)) {
        c->joins = true;
        return;
    }
    own = hed_record_own_stream_of(r, context, c->stream);
    if (!own)
        return;
    c->swapped = true;
    c->ptds = ptds && *ptds;
    if (ptds)
        *ptds = false;
    if (info->stream_in >= 0) {
        const CUlaunchConfig **config = config_of(info, args);

        c->given = *config;
        c->config = **config;
        c->config.hStream = (CUstream)(uintptr_t)own;
        *config = &c->config;
    } else {
        memcpy((char *)args + info->stream, &own, sizeof own);
    }
    if (id == HED_cuStreamAddCallback)
        swap_callback(args, c);
}

void
hed_record_put_back(enum hed_cuda_call id, void *args, const struct hed_record_call *c,
                    CUresult made)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    if (!c->swapped)
        return;
    if (info->ptds >= 0)
        *(bool *)((char *)args + info->ptds) = c->ptds;
    if (info->stream_in >= 0)
        *config_of(info, args) = c->given;
    else
        memcpy((char *)args + info->stream, &c->stream, sizeof c->stream);
    if (id == HED_cuStreamAddCallback)
        put_back_callback(args, c, made);
}

/* After the program's stream has waited for an event. If it has not joined a capture, the event
 * belongs to ordinary work, and heddle's stream must wait for it as well. */
static CUresult
wait_for_event(struct hed_recorder *r, const struct hed_cuStreamWaitEvent *a)
{
    const uint64_t stream = (uint64_t)(uintptr_t)a->hStream;
    uint64_t own;

    if (stream_captures(r, stream, a->ptds))
        return CUDA_SUCCESS;
    own = hed_record_own_stream_of(r, hed_current_context(r->next), stream);
    return own ? hed_call(r->next, cuStreamWaitEvent, .hStream = (CUstream)(uintptr_t)own,
                          .hEvent = a->hEvent, .Flags = a->Flags)
               : CUDA_SUCCESS;
}

CUresult
hed_record_catch_up(struct hed_recorder *r, enum hed_cuda_call id, void *args,
                    const struct hed_record_call *c)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    if (c->joins)
        return wait_for_event(r, args);
    if (info->stream >= 0 || !hed_call_is_work(info))
        return CUDA_SUCCESS;
    /* The work ran on the default stream, for which heddle's stream does not wait. A wait for the
     * whole context would end a capture. */
    if (!atomic_load_explicit(&r->capturing, memory_order_acquire))
        return wait_for_context(r);
    return wait_for_stream(r, NULL, hed_call_ptds(info, args));
}

/* A context may end, and heddle's stream with it. */
void
hed_record_forget_streams(struct hed_recorder *r)
{
    hed_lock(&r->lock);
    memset(r->streams, 0, sizeof r->streams);
    hed_unlock(&r->lock);
}
