/* The record engine: what is done about a call before and after it. */
#include "record/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/session.h"
#include "record/engine.h"

#define EXIT_NS (5 * HED_NS_PER_S) /* for what is queued when the process ends */

static _Thread_local struct hed_record_thread thread;

struct hed_record_thread *
hed_record_thread(void)
{
    return &thread;
}

bool
hed_recorder_inside(void)
{
    return thread.inside;
}

void
hed_recorder_set_tag(uint64_t tag)
{
    thread.tag = tag;
}

uint64_t
hed_recorder_tag(void)
{
    return thread.issuing;
}

/* ---- clients --------------------------------------------------------------------------------- */

static struct hed_record_client *
add_client_locked(struct hed_recorder *r, const char *name, const char *text)
{
    const uint32_t count = atomic_load_explicit(&r->count, memory_order_relaxed);
    struct hed_record_client *c = count < HED_RECORD_CLIENTS ? calloc(1, sizeof *c) : NULL;

    if (!c)
        return NULL;
    c->engine = r;
    (void)strncpy(c->name, name, sizeof c->name - 1);
    (void)strncpy(c->text, text, sizeof c->text - 1);
    hed_lock_init(&c->lock, HED_RANK_SCHED);
    atomic_init(&c->wake_at, UINT64_MAX);
    r->clients[count] = c;
    /* Release: pairs with the acquires of all who go through the clients. */
    atomic_store_explicit(&r->count, count + 1, memory_order_release);
    return c;
}

static struct hed_record_client *
find_client(struct hed_recorder *r, const char *name, const char *text)
{
    struct hed_record_client *c = NULL;

    hed_lock(&r->lock);
    for (uint32_t i = 0; !c && i < r->count; i++)
        if (strcmp(r->clients[i]->name, name) == 0)
            c = r->clients[i];
    if (!c)
        c = add_client_locked(r, name, text);
    hed_unlock(&r->lock);
    return c;
}

void
hed_recorder_set_client(struct hed_recorder *r, const char *text, bool below)
{
    char name[HED_SCHED_NAME] = "";
    struct hed_sched_settings settings = {0};
    struct hed_record_client *c = NULL;

    /* What is wrong with it goes to the log once: by the layer sched, where that is there. */
    if (text && *text && hed_sched_parse_client(text, name, &settings, NULL) == 0)
        c = find_client(r, name, text);
    thread.engine = r;
    thread.client = c ? c : r->clients[0];
    if (below && r->sched)
        hed_sched_set_client(r->sched, text);
}

static struct hed_record_client *
my_client(struct hed_recorder *r)
{
    return thread.engine == r ? thread.client : r->clients[0];
}

static bool
several(const struct hed_recorder *r)
{
    return atomic_load_explicit(&r->count, memory_order_relaxed) > 1;
}

/* ---- deferring ------------------------------------------------------------------------------- */

/* Where the client's work in this context counts as queued. */
static struct hed_gate *
gpu_of(struct hed_recorder *r, struct hed_record_client *c, CUcontext context)
{
    const uint32_t epoch = atomic_load_explicit(&r->epoch, memory_order_relaxed);

    if (thread.gpu_client == c && thread.gpu_context == context && thread.gpu_epoch == epoch)
        return thread.gpu;
    thread.gpu_client = c;
    thread.gpu_context = context;
    thread.gpu_epoch = epoch;
    thread.gpu = hed_gate_current(r->sched);
    return thread.gpu;
}

/* Looks at a call: where it runs, what it needs. False: it cannot be deferred. */
static bool
look(struct hed_recorder *r, struct hed_record_candidate *t)
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
        return false; /* this thread's own stream: in another thread it would be another */
    }
    return hed_record_examine(r, t);
}

static bool
take_error(struct hed_record_client *c, CUresult *result)
{
    /* Relaxed: one word, and whoever waited for the record has seen its end. */
    if (!atomic_load_explicit(&c->error, memory_order_relaxed))
        return false;
    *result = (CUresult)atomic_exchange_explicit(&c->error, 0, memory_order_relaxed);
    return *result != CUDA_SUCCESS;
}

/* Has any client queued something that touches that handle? */
static bool
is_queued(struct hed_recorder *r, uint64_t handle, bool everything)
{
    /* Acquire: as in hed_record_wait_others. */
    const uint32_t clients = atomic_load_explicit(&r->count, memory_order_acquire);
    bool queued = false;

    for (uint32_t i = 0; !queued && i < clients; i++)
        queued = hed_record_has(r->clients[i], handle, everything);
    return queued;
}

/* Into the queue with it, if it can be. */
static enum hed_record_verdict
defer(struct hed_recorder *r, struct hed_record_client *c, struct hed_record_candidate *t,
      unsigned sort, struct hed_record_call *call, CUresult *result)
{
    if (!look(r, t) || (t->frees && is_queued(r, t->frees, false)))
        return HED_RECORD_MAKE; /* what is given back twice is refused the second time */
    if (take_error(c, result))
        return HED_RECORD_ANSWER;
    if (several(r)) {
        const uint64_t touched[] = {t->stream, t->touches};

        hed_record_wait_others(r, c, touched, t->touches ? 2 : 1, false);
    }
    if (r->sched && sort != HED_RECORD_ORDER)
        t->gpu = gpu_of(r, c, t->context);

    const enum hed_record_push pushed = hed_record_push(c, t);

    call->tried = pushed == HED_PUSH_UNKNOWN;
    return pushed == HED_PUSH_TAKEN ? HED_RECORD_TAKEN : HED_RECORD_MAKE;
}

/* ---- before ---------------------------------------------------------------------------------- */

/* A question whether work is done: it is not if it is queued. */
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

/* Calls that tell the program of errors: those that put work on the GPU or wait for it. Others
 * would leave something behind if they were not made. */
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

/* What a call that is about to be made takes away. */
static void
forget(struct hed_recorder *r, enum hed_cuda_call id, const void *args)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    switch (info->does) {
    case HED_DOES_END:
        forget_ended(r, info, args);
        break;
    case HED_DOES_ORDER:
        /* An event of a capture cannot be waited for when the capture has ended; the driver says so
         * at once. */
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

/* Whether a call only makes memory. */
static bool
makes_memory(const struct hed_call_info *info)
{
    return info->does == HED_DOES_MAKE &&
           (info->new_kind == HED_CUDA_KIND_MEMORY || info->new_kind == HED_CUDA_KIND_HOST);
}

/* What other clients have queued and the call may not overtake: what touches its stream or event,
 * nothing if it only makes something, and else everything. */
static void
settle_others(struct hed_recorder *r, const struct hed_record_client *c, enum hed_cuda_call id,
              const void *args)
{
    const struct hed_call_info *info = &hed_cuda_info[id];
    uint64_t handles[2] = {0};
    unsigned count = 0;

    if (makes_memory(info))
        return;
    if (info->of_kind == HED_CUDA_KIND_EVENT)
        handles[count++] = hed_call_about(info, args);
    if (info->after == HED_AFTER_STREAM && hed_call_stream(info, args, &handles[count]))
        count++;
    hed_record_wait_others(r, c, handles, count, count == 0 || r->own);
}

/* Everything that the call may not overtake is issued. */
static void
settle(struct hed_recorder *r, struct hed_record_client *c, enum hed_cuda_call id, const void *args)
{
    if (several(r))
        settle_others(r, c, id, args);
    hed_record_drain(c, atomic_load_explicit(&c->in, memory_order_relaxed), true);
}

/* Is that work that has no stream to be named? */
static bool
is_streamless_work(enum hed_cuda_call id)
{
    return hed_cuda_info[id].stream < 0 && hed_call_is_work(&hed_cuda_info[id]);
}

/* stream=own, before a call that is made: it goes to our stream, or waits for it. What waits for
 * all work, to free or to end something, waits for ours, too. */
static CUresult
prepare_own(struct hed_recorder *r, enum hed_cuda_call id, void *args, struct hed_record_call *call)
{
    const CUcontext context = hed_current_context(r->next);

    hed_record_swap(r, id, args, context, call);
    if (!context || !is_streamless_work(id))
        return CUDA_SUCCESS;
    /* Those two come after the work of other contexts as well. */
    if (id == HED_cuMemcpyPeer || id == HED_cuMemcpy3DPeer)
        return hed_record_wait_own(r, NULL);
    return hed_record_wait_own(r, context);
}

/* Recording is off: what is queued goes first. */
static void
pass(struct hed_recorder *r)
{
    hed_recorder_drain_all(r);
    if (!r->own || atomic_load_explicit(&r->passing, memory_order_relaxed) ||
        atomic_load_explicit(&r->capturing, memory_order_acquire))
        return;
    (void)hed_record_wait_own(r, NULL);
    atomic_store_explicit(&r->passing, true, memory_order_relaxed);
}

/* A call that is made in this thread, in its turn. */
static enum hed_record_verdict
make(struct hed_recorder *r, enum hed_cuda_call id, void *args, struct hed_record_call *call,
     CUresult *result)
{
    struct hed_record_client *c = call->client;

    if (is_not_ready(r, id, args)) {
        *result = CUDA_ERROR_NOT_READY;
        return HED_RECORD_ANSWER;
    }
    settle(r, c, id, args);
    if (tells_errors(&hed_cuda_info[id]) && take_error(c, result))
        return HED_RECORD_ANSWER;
    forget(r, id, args);
    if (r->own && (*result = prepare_own(r, id, args, call)) != CUDA_SUCCESS)
        return HED_RECORD_ANSWER;
    /* A thread of the program that is held at the gate holds all that it would queue: nothing is to
     * be waited for then. */
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
    /* Relaxed: switches, not barriers. */
    if (thread.inside || atomic_load_explicit(&r->off, memory_order_relaxed))
        return HED_RECORD_MAKE;
    call->client = c = my_client(r);
    call->tried = call->swapped = call->joins = false;
    call->hurried = NULL;
    call->passed = !hed_session_recording();
    /* Captures count also while recording is off: it may be on again before they end. */
    if (hed_cuda_info[id].does == HED_DOES_BEGIN_CAPTURE)
        atomic_fetch_add_explicit(&r->capturing, 1, memory_order_seq_cst);
    if (call->passed) {
        pass(r);
        forget(r, id, args);
        return HED_RECORD_MAKE;
    }
    /* Acquire: pairs with the count of who begins a capture, before it drains. */
    if (sort && !atomic_load_explicit(&r->capturing, memory_order_acquire)) {
        const enum hed_record_verdict verdict = defer(r, c, &t, sort, call, result);

        if (verdict != HED_RECORD_MAKE)
            return verdict;
    }
    if (hed_cuda_info[id].after == HED_AFTER_NONE)
        return HED_RECORD_MAKE;
    return make(r, id, args, call, result);
}

/* ---- after ----------------------------------------------------------------------------------- */

/* Captures for which there is no room are never known to have ended: nothing is deferred then. */
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
        /* "Capture must be ended on the same thread": another's attempt does not end it. */
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
    /* Release: pairs with the acquire in hed_record_own_stream, which waits for what was made. */
    if (call->passed && r->own)
        atomic_fetch_add_explicit(&r->passed, 1, memory_order_release);
    if (call->hurried)
        hed_gate_sync_end(call->hurried);
    hed_record_put_back(id, args, call, made);
    after_capture(r, id, args, made);
    if (made != CUDA_SUCCESS) {
        /* The context has failed: nothing succeeds there any more, and that is to be said. */
        if (hed_cuda_info[id].does == HED_DOES_WAIT)
            atomic_fetch_add_explicit(&r->epoch, 1, memory_order_release);
        return made;
    }
    after_attribute(r, id, args);
    if (r->own && !call->passed && (made = hed_record_catch_up(r, id, args, call)) != CUDA_SUCCESS)
        return made;
    if (call->tried && !atomic_load_explicit(&r->capturing, memory_order_acquire) && look(r, &t))
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
        hed_lock_init(&r->lock, HED_RANK_SCHED);
    }
    if (!r || !add_client_locked(r, "", "")) {
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
    /* Acquire: as in hed_record_wait_others. */
    const uint32_t clients = atomic_load_explicit(&r->count, memory_order_acquire);

    for (uint32_t i = 0; i < clients; i++) {
        struct hed_record_client *c = r->clients[i];

        hed_record_drain(c, atomic_load_explicit(&c->in, memory_order_relaxed), c == my_client(r));
    }
}

void
hed_recorder_fini(struct hed_recorder *r)
{
    const uint64_t end = hed_now_ns() + EXIT_NS;
    /* Acquire: as in hed_record_wait_others. */
    const uint32_t clients = atomic_load_explicit(&r->count, memory_order_acquire);

    /* In the child of a fork, what is queued is the parent's. */
    if (atomic_exchange_explicit(&r->off, true, memory_order_relaxed))
        return;
    if (r->sched)
        hed_sched_open_gates(r->sched);
    for (uint32_t i = 0; i < clients && !thread.inside; i++)
        if (!hed_record_settle(r->clients[i], end))
            hed_warn(SCHED, "what is left in a queue cannot be issued: the process ends without");
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
    for (uint32_t i = 0; i < r->count; i++) {
        struct hed_record_client *c = r->clients[i];

        hed_record_stop(c);
        hed_record_forget_all_locked(c);
        free(c->ring);
        hed_lock_fini(&c->lock);
        free(c);
    }
    hed_lock_fini(&r->lock);
    free(r);
}
