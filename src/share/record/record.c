/* The record engine: the steps before and after a call. */
#include "share/record/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/session.h"
#include "share/record/engine.h"

#define EXIT_NS (5 * HED_NS_PER_S) /* for the queued calls when the process ends */

static _Atomic uint64_t engines; /* ever created */

bool
hed_recorder_inside(void)
{
    return hed_record_thread()->inside;
}

void
hed_recorder_set_tag(uint64_t tag)
{
    hed_record_thread()->tag = tag;
}

uint64_t
hed_recorder_tag(void)
{
    return hed_record_thread()->issuing;
}

static bool
has_several_clients(const struct hed_recorder *r)
{
    return atomic_load_explicit(&r->count, memory_order_relaxed) > 1;
}

/* ---- deferring ------------------------------------------------------------------------------- */

/* The gate that counts the client's queued work in this context. */
static struct hed_gate *
gate_of_client(struct hed_recorder *r, struct hed_record_client *c, CUcontext context)
{
    struct hed_record_thread *me = hed_record_thread();
    const uint32_t epoch = atomic_load_explicit(&r->epoch, memory_order_relaxed);

    if (me->engine == r->id && me->gpu_client == c && me->gpu_context == context &&
        me->gpu_epoch == epoch)
        return me->gpu;
    me->gpu_client = c;
    me->gpu_context = context;
    me->gpu_epoch = epoch;
    me->gpu = hed_gate_current(r->sched);
    return me->gpu;
}

/* Finds out where a call runs and what it needs. False: it cannot be deferred. */
static bool
examine_call(struct hed_recorder *r, struct hed_record_candidate *t)
{
    bool ptds;

    t->info = &hed_cuda_info[t->id];
    ptds = hed_call_ptds(t->info, t->args);
    t->context = hed_current_context(r->next);
    if (!t->context || !hed_call_stream(t->info, t->args, &t->stream))
        return false;
    if (r->own) {
        t->swapped = true;
        t->stream = hed_record_own_stream_of(r, t->context, t->stream);
        if (!t->stream)
            return false;
    } else if (t->stream == 2 || (t->stream == 0 && ptds)) {
        return false; /* the per-thread default stream would be another one in another thread */
    }
    return hed_record_examine(r, t);
}

static bool
take_client_error(struct hed_record_client *c, CUresult *result)
{
    /* Relaxed: it is one word, and a thread that waited for the record has seen it issued. */
    if (!atomic_load_explicit(&c->error, memory_order_relaxed))
        return false;
    *result = (CUresult)atomic_exchange_explicit(&c->error, 0, memory_order_relaxed);
    return *result != CUDA_SUCCESS;
}

/* Whether any client has a queued record that touches the handle. */
static bool
is_queued(struct hed_recorder *r, uint64_t handle, bool everything)
{
    /* Acquire: see hed_record_wait_others. */
    const uint32_t clients = atomic_load_explicit(&r->count, memory_order_acquire);
    bool queued = false;

    for (uint32_t i = 0; !queued && i < clients; i++)
        queued = hed_record_has(r->clients[i], handle, everything);
    return queued;
}

/* Puts the call into the queue if that is possible. */
static enum hed_record_verdict
defer_call(struct hed_recorder *r, struct hed_record_client *c, struct hed_record_candidate *t,
           unsigned sort, struct hed_record_call *call, CUresult *result)
{
    if (!examine_call(r, t) || (t->frees && is_queued(r, t->frees, false)))
        return HED_RECORD_MAKE; /* the driver must be able to refuse memory that is freed twice */
    if (take_client_error(c, result))
        return HED_RECORD_ANSWER;
    if (has_several_clients(r)) {
        const uint64_t touched[] = {t->stream, t->touches};

        hed_record_wait_others(r, c, touched, t->touches ? 2 : 1, false);
    }
    if (r->sched && sort != HED_RECORD_ORDER)
        t->gpu = gate_of_client(r, c, t->context);

    const enum hed_record_push pushed = hed_record_push(c, t);

    call->tried = pushed == HED_PUSH_UNKNOWN;
    return pushed == HED_PUSH_TAKEN ? HED_RECORD_TAKEN : HED_RECORD_MAKE;
}

/* ---- before ---------------------------------------------------------------------------------- */

/* Whether the call asks if work is done that is still queued: the answer is that it is not. */
static bool
is_not_ready(struct hed_recorder *r, enum hed_cuda_call id, const void *args)
{
    const struct hed_call_info *info = &hed_cuda_info[id];
    uint64_t stream;

    if (info->does != HED_DOES_POLL)
        return false;
    if (hed_call_stream(info, args, &stream))
        return is_queued(r, stream, r->own);
    return is_queued(r, hed_call_about(info, args), false);
}

/* Whether a call may answer with an error of earlier work: if it puts work on the GPU or waits for
 * it. Other calls, such as frees, must be made in any case. */
static bool
tells_errors(const struct hed_call_info *info)
{
    return hed_call_is_work(info) || info->does == HED_DOES_WAIT || info->does == HED_DOES_POLL;
}

static void
forget_ended(struct hed_recorder *r, const struct hed_call_info *info, const void *args)
{
    switch (info->of_kind) {
    case HED_CUDA_KIND_STREAM:
    case HED_CUDA_KIND_EVENT:
    case HED_CUDA_KIND_GRAPH_EXEC:
        hed_record_forget_handle(r, hed_call_about(info, args));
        break;
    case HED_CUDA_KIND_MODULE:
    case HED_CUDA_KIND_LIBRARY:
        atomic_fetch_add_explicit(&r->epoch, 1, memory_order_release);
        break;
    default:
        break;
    }
}

/* Forgets the handles and kinds that a call is about to end. */
static void
forget_targets(struct hed_recorder *r, enum hed_cuda_call id, const void *args)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    switch (info->does) {
    case HED_DOES_END:
        forget_ended(r, info, args);
        break;
    case HED_DOES_ORDER:
        /* The driver refuses to wait for an event of a capture that has ended, and does so at
         * once. */
        if (info->of_kind == HED_CUDA_KIND_EVENT &&
            atomic_load_explicit(&r->capturing, memory_order_acquire))
            hed_record_forget_handle(r, hed_call_about(info, args));
        break;
    case HED_DOES_END_CONTEXT:
        atomic_fetch_add_explicit(&r->epoch, 1, memory_order_release);
        hed_record_forget_streams(r);
        break;
    default:
        break;
    }
}

/* Whether a call only allocates memory. */
static bool
makes_memory(const struct hed_call_info *info)
{
    return info->does == HED_DOES_MAKE &&
           (info->new_kind == HED_CUDA_KIND_MEMORY || info->new_kind == HED_CUDA_KIND_HOST);
}

/* The streams and events that decide which queued calls this call may not overtake. 0: all. */
static unsigned
find_handles(const struct hed_record_candidate *t, uint64_t handles[3])
{
    const struct hed_call_info *info = &hed_cuda_info[t->id];
    unsigned count = 0;

    if (info->of_kind == HED_CUDA_KIND_EVENT)
        handles[count++] = hed_call_about(info, t->args);
    if (info->after == HED_AFTER_STREAM && hed_call_stream(info, t->args, &handles[count]))
        count++;
    if (count && t->touches)
        handles[count++] = t->touches;
    return count;
}

/* Issues every queued call that this call may not overtake: those of the same thread, and those on
 * its stream or event. A call that names neither comes after everything. Nothing may be issued
 * while a stream captures, so that a capture comes after everything as well. */
static void
settle_before(struct hed_recorder *r, struct hed_record_client *c,
              const struct hed_record_candidate *t)
{
    const struct hed_record_thread *me = hed_record_thread();
    const struct hed_call_info *info = &hed_cuda_info[t->id];
    uint64_t handles[3];
    const unsigned count = find_handles(t, handles);
    const bool all = count == 0 || r->own || info->does == HED_DOES_BEGIN_CAPTURE;

    /* Memory is allocated without regard to other clients, which may be held. */
    if (has_several_clients(r) && !makes_memory(info))
        hed_record_wait_others(r, c, handles, count, all);
    if (me->engine == r->id && me->last)
        hed_record_drain(me->last, me->number, true);
    hed_record_wait_client(c, handles, count, all || r->queues == 1, true);
}

/* Whether a call is work but names no stream. */
static bool
is_streamless_work(enum hed_cuda_call id)
{
    return hed_cuda_info[id].stream < 0 && hed_call_is_work(&hed_cuda_info[id]);
}

/* stream=own, before a call that is made now: work goes to heddle's stream, or waits for it if it
 * names no stream. */
static CUresult
prepare_own(struct hed_recorder *r, enum hed_cuda_call id, void *args, struct hed_record_call *call)
{
    const CUcontext context = hed_current_context(r->next);

    hed_record_swap(r, id, args, context, call);
    if (!context || !is_streamless_work(id))
        return CUDA_SUCCESS;
    /* Copies between contexts come after the work of other contexts as well. */
    if (id == HED_cuMemcpyPeer || id == HED_cuMemcpy3DPeer)
        return hed_record_wait_own(r, NULL);
    return hed_record_wait_own(r, context);
}

/* Recording is off: the queued calls go first. */
static void
pass_unrecorded(struct hed_recorder *r)
{
    hed_recorder_drain_all(r);
    if (!r->own || atomic_load_explicit(&r->passing, memory_order_relaxed) ||
        atomic_load_explicit(&r->capturing, memory_order_acquire))
        return;
    (void)hed_record_wait_own(r, NULL);
    atomic_store_explicit(&r->passing, true, memory_order_relaxed);
}

/* Prepares a call that the program's thread makes now. */
static enum hed_record_verdict
make_in_thread(struct hed_recorder *r, const struct hed_record_candidate *t,
               struct hed_record_call *call, CUresult *result)
{
    struct hed_record_client *c = call->client;
    const enum hed_cuda_call id = t->id;
    void *args = t->args;

    if (is_not_ready(r, id, args)) {
        *result = CUDA_ERROR_NOT_READY;
        return HED_RECORD_ANSWER;
    }
    settle_before(r, c, t);
    if (tells_errors(&hed_cuda_info[id]) && take_client_error(c, result))
        return HED_RECORD_ANSWER;
    forget_targets(r, id, args);
    if (r->own && (*result = prepare_own(r, id, args, call)) != CUDA_SUCCESS)
        return HED_RECORD_ANSWER;
    /* A program thread that is held at the gate cannot queue more calls. So it counts as waiting
     * for the GPU, and a batch is not held for its sake. */
    if (r->sched && hed_call_is_work(&hed_cuda_info[id]) &&
        (call->hurried = hed_gate_current(r->sched)) != NULL)
        hed_gate_sync_begin(call->hurried);
    return HED_RECORD_MAKE;
}

enum hed_record_verdict
hed_recorder_before(struct hed_recorder *r, enum hed_cuda_call id, void *args,
                    struct hed_record_call *call, CUresult *result)
{
    struct hed_record_candidate t = {.id = id, .args = args};
    const unsigned sort = hed_record_sort(id) & r->defer;
    struct hed_record_client *c;

    call->client = NULL;
    *result = CUDA_SUCCESS;
    /* Relaxed: it is a switch, not a barrier. */
    if (hed_record_thread()->inside || atomic_load_explicit(&r->off, memory_order_relaxed))
        return HED_RECORD_MAKE;
    call->client = c = hed_record_client_of_thread(r);
    call->tried = call->swapped = call->joins = false;
    call->hurried = NULL;
    call->passed = !hed_session_recording();
    /* Captures also count while recording is off: it may be on again before they end. */
    if (hed_cuda_info[id].does == HED_DOES_BEGIN_CAPTURE)
        atomic_fetch_add_explicit(&r->capturing, 1, memory_order_seq_cst);
    if (call->passed) {
        pass_unrecorded(r);
        forget_targets(r, id, args);
        return HED_RECORD_MAKE;
    }
    /* Acquire: pairs with the count of a thread that begins a capture, before it drains. */
    if (sort && !atomic_load_explicit(&r->capturing, memory_order_acquire)) {
        const enum hed_record_verdict verdict = defer_call(r, c, &t, sort, call, result);

        if (verdict != HED_RECORD_MAKE)
            return verdict;
    }
    if (hed_cuda_info[id].after == HED_AFTER_NONE)
        return HED_RECORD_MAKE;
    return make_in_thread(r, &t, call, result);
}

/* ---- after ----------------------------------------------------------------------------------- */

/* Replaces one capture's stream in the list, 0 being a free entry. A capture that finds no free
 * entry is never known to have ended, and no call is deferred any more. */
static void
note_capture(struct hed_recorder *r, uint64_t from, uint64_t to)
{
    bool found = false;

    hed_lock(&r->lock);
    for (unsigned i = 0; !found && i < HED_RECORD_CAPTURES; i++) {
        found = r->captures[i] == from;
        if (found)
            r->captures[i] = to;
    }
    hed_unlock(&r->lock);
    if (found && !to)
        atomic_fetch_sub_explicit(&r->capturing, 1, memory_order_seq_cst);
}

static void
after_capture(struct hed_recorder *r, enum hed_cuda_call id, const void *args, CUresult made)
{
    switch (hed_cuda_info[id].does) {
    case HED_DOES_BEGIN_CAPTURE:
        if (made == CUDA_SUCCESS)
            note_capture(r, 0, hed_call_stream_key(&hed_cuda_info[id], args));
        else
            atomic_fetch_sub_explicit(&r->capturing, 1, memory_order_seq_cst);
        break;
    case HED_DOES_END_CAPTURE:
        /* "Capture must be ended on the same thread": another thread's attempt does not end it. */
        if (made != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
            note_capture(r, hed_call_stream_key(&hed_cuda_info[id], args), 0);
        break;
    case HED_DOES_END:
        if (hed_cuda_info[id].of_kind == HED_CUDA_KIND_STREAM && made == CUDA_SUCCESS &&
            atomic_load_explicit(&r->capturing, memory_order_relaxed))
            note_capture(r, hed_call_stream_key(&hed_cuda_info[id], args), 0);
        break;
    default:
        break;
    }
}

static void
after_attribute(struct hed_recorder *r, enum hed_cuda_call id, const void *args)
{
    const struct hed_cuFuncSetAttribute *f = args;
    const struct hed_cuKernelSetAttribute *k = args;

    if (id == HED_cuFuncSetAttribute &&
        f->attrib == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        hed_record_forget_shared(r, f->hfunc, (uint32_t)f->value);
    if (id == HED_cuKernelSetAttribute &&
        k->attrib == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        hed_record_forget_shared(r, (CUfunction)(void *)k->kernel, (uint32_t)k->val);
}

CUresult
hed_recorder_after(struct hed_recorder *r, enum hed_cuda_call id, void *args,
                   struct hed_record_call *call, CUresult made)
{
    struct hed_record_candidate t = {.id = id, .args = args};

    if (!call->client)
        return made;
    /* Release: pairs with the acquire in hed_record_own_stream, which waits for such calls. */
    if (call->passed && r->own)
        atomic_fetch_add_explicit(&r->passed, 1, memory_order_release);
    if (call->hurried)
        hed_gate_sync_end(call->hurried);
    hed_record_put_back(id, args, call, made);
    after_capture(r, id, args, made);
    if (made != CUDA_SUCCESS) {
        /* The context has failed. Every later call fails, and must say so at once. */
        if (hed_cuda_info[id].does == HED_DOES_WAIT)
            atomic_fetch_add_explicit(&r->epoch, 1, memory_order_release);
        return made;
    }
    after_attribute(r, id, args);
    if (r->own && !call->passed && (made = hed_record_catch_up(r, id, args, call)) != CUDA_SUCCESS)
        return made;
    if (call->tried && !atomic_load_explicit(&r->capturing, memory_order_acquire) &&
        examine_call(r, &t))
        hed_record_learn(call->client, &t);
    return made;
}

/* ---- the engine's life ----------------------------------------------------------------------- */

int
hed_recorder_create(struct hed_layer *next, struct hed_sched *sched,
                    const struct hed_sched_settings *settings, unsigned defer,
                    struct hed_recorder **out, struct hed_why *why)
{
    struct hed_recorder *r = calloc(1, sizeof *r);

    if (r) {
        r->next = next;
        r->sched = sched;
        r->own = settings->own_stream;
        r->defer = defer;
        r->queue = settings->queue ? settings->queue : HED_SCHED_QUEUE;
        r->queues = settings->queues ? settings->queues : HED_SCHED_QUEUES;
        /* Relaxed: only the value matters. */
        r->id = 1 + atomic_fetch_add_explicit(&engines, 1, memory_order_relaxed);
        hed_lock_init(&r->lock, HED_RANK_SCHED);
    }
    if (!r || !hed_record_add_client_locked(r, "", "")) {
        free(r);
        hed_why_set(why, "record: %s", hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    *out = r;
    return 0;
}

void
hed_recorder_drain_all(struct hed_recorder *r)
{
    /* Acquire: see hed_record_wait_others. */
    const uint32_t clients = atomic_load_explicit(&r->count, memory_order_acquire);

    for (uint32_t i = 0; i < clients; i++) {
        struct hed_record_client *c = r->clients[i];

        hed_record_wait_client(c, NULL, 0, true, c == hed_record_client_of_thread(r));
    }
}

/* At exit: issues the client's queued calls. False: some are left at the time `end`. */
static bool
settle_client(struct hed_record_client *c, uint64_t end)
{
    /* Acquire: see hed_record_choose. */
    const uint32_t count = atomic_load_explicit(&c->count, memory_order_acquire);
    bool settled = true;

    for (uint32_t i = 0; i < count; i++)
        settled = hed_record_settle(c->queues[i], end) && settled;
    return settled;
}

void
hed_recorder_fini(struct hed_recorder *r)
{
    const uint64_t end = hed_now_ns() + EXIT_NS;
    /* Acquire: see hed_record_wait_others. */
    const uint32_t clients = atomic_load_explicit(&r->count, memory_order_acquire);

    /* In the child of a fork, the queued calls are the parent's. */
    if (atomic_exchange_explicit(&r->off, true, memory_order_relaxed))
        return;
    if (r->sched)
        hed_sched_open_gates(r->sched);
    for (uint32_t i = 0; i < clients && !hed_record_thread()->inside; i++)
        if (!settle_client(r->clients[i], end))
            hed_warn(SCHED, "the process ends, and queued calls that took over 5 s are lost");
}

void
hed_recorder_forked(struct hed_recorder *r)
{
    atomic_store_explicit(&r->off, true, memory_order_relaxed);
}

void
hed_recorder_free(struct hed_recorder *r)
{
    if (!r)
        return;
    atomic_store_explicit(&r->stop, true, memory_order_seq_cst);
    for (uint32_t i = 0; i < r->count; i++)
        hed_record_free_client(r->clients[i]);
    hed_lock_fini(&r->lock);
    free(r);
}
