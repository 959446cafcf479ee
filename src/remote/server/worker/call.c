/* HED_MSG_CALL: a call of the API by its number, made on the chain with the client's arguments.
 *
 *   request ──get_request──> arguments, room for outputs ──each_in──> names become handles
 *       ──> the ticket is passed on, if it may block ──> the chain ──> new objects get their names
 *       ──put_reply──> answer, or, where none is wanted, a failure is the context's
 *
 * Arguments that cannot travel (addresses of the client's own memory, functions) are refused:
 * hed_cuda_can_travel().
 */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/pack.h"
#include "gen/cuda_handles.h"
#include "gen/cuda_travel.h"
#include "gen/cuda_wire.h"
#include "remote/server/worker/code.h"
#include "remote/server/worker/worker.h"

#define NAMES_MAX 64     /* objects that one call creates or frees */
#define CONTEXTS_MAX 256 /* per client: each takes device memory that no lease counts */

struct freed {
    const char *kind;
    uint64_t name, real;
};

struct doing {
    struct hed_worker *worker;
    enum hed_cuda_call id;
    const uint64_t *names; /* the client's names for new objects */
    uint32_t name_count;
    uint32_t made;                 /* new objects so far */
    struct freed freed[NAMES_MAX]; /* the objects that the call frees */
    uint32_t freed_count;
    uint64_t ends; /* the context that the call ends; 0 for none */
    bool done;     /* the call was made: its result is the backend's */
    bool nonsense; /* the session must end */
};

/* Kinds whose values are the backend's on both sides, because kernels get them as arguments. */
static bool
is_value(const char *kind)
{
    return strcmp(kind, "texture") == 0 || strcmp(kind, "surface") == 0;
}

static bool
is_surface(const char *kind)
{
    return strcmp(kind, "surface") == 0;
}

static int
note_freed(void *arg, const char *kind, uint64_t *handle)
{
    struct doing *d = arg;

    if (d->freed_count == NAMES_MAX)
        return HED_ELIMIT;
    d->freed[d->freed_count++] = (struct freed){.kind = kind, .name = *handle};
    return 0;
}

static int
translate_handle(void *arg, const char *kind, uint64_t *handle)
{
    const struct doing *d = arg;

    if (is_value(kind))
        return hed_value_has(d->worker->values, is_surface(kind), *handle) ? 0 : HED_ENOTFOUND;
    return hed_name_fits(*handle, kind) ? hed_name_real(d->worker->names, *handle, handle)
                                        : HED_ENOTFOUND;
}

/* Unbinds the names of the objects that the call frees. Another channel, whose ticket may come
 * before the call is made, then neither finds nor frees them again. False if one had no name. */
static bool
take_freed(struct doing *d)
{
    for (uint32_t i = 0; i < d->freed_count; i++) {
        struct freed *f = &d->freed[i];
        const bool had = is_value(f->kind)
                             ? hed_value_remove(d->worker->values, is_surface(f->kind), f->name)
                             : hed_name_unbind(d->worker->names, f->name, &f->real) == 0;

        if (!had) {
            d->freed_count = i;
            return false;
        }
    }
    return true;
}

static void
give_freed_back(struct doing *d)
{
    for (uint32_t i = 0; i < d->freed_count; i++) {
        const struct freed *f = &d->freed[i];

        if (is_value(f->kind))
            (void)hed_value_add(d->worker->values, is_surface(f->kind), f->name);
        else
            (void)hed_name_bind(d->worker->names, f->name, f->real);
    }
}

/* A device has one primary context. It keeps its name however often it is retained, and does not
 * count as one that the client has created. */
static bool
retains_primary(enum hed_cuda_call id)
{
    return id == HED_cuDevicePrimaryCtxRetain;
}

static bool
creates_context(enum hed_cuda_call id)
{
    return hed_cuda_info[id].does == HED_DOES_BEGIN_CONTEXT && !retains_primary(id);
}

/* Binds the client's name to a new object. Without a name, nobody could free it. A primary context
 * keeps its name when it is reset. */
static int
name_new(void *arg, const char *kind, uint64_t *handle)
{
    struct doing *d = arg;
    struct hed_names *names = d->worker->names;
    const uint64_t name = d->made < d->name_count ? d->names[d->made] : 0;
    int err = HED_EFORMAT;

    d->made++;
    if (is_value(kind))
        return hed_value_add(d->worker->values, is_surface(kind), *handle);
    if (name && hed_name_fits(name, kind)) {
        if (retains_primary(d->id))
            (void)hed_name_unbind(names, name, NULL);
        err = hed_name_bind(names, name, *handle);
    }
    *handle = name;
    return err;
}

/* Hides handles of the backend that the client did not name, since they mean nothing to it. */
static int
hide_handle(void *arg, const char *kind, uint64_t *handle)
{
    (void)arg;
    if (!is_value(kind))
        *handle = 0;
    return 0;
}

static int
answer_reply(struct hed_worker_channel *ch, const struct hed_msg *m, CUresult r, void *args)
{
    static const size_t room = HED_MSG_MAX - sizeof(struct hed_answer);
    uint8_t small[512]; /* enough for most */
    uint8_t *body = small;
    struct hed_enc e = hed_enc_over(small, sizeof small);

    hed_cuda_put_reply(&e, (enum hed_cuda_call)m->call, args, (int)r);
    if (e.err) {
        body = hed_arena_alloc(&ch->arena, room, 16);
        if (!body)
            return HED_ENOMEM;
        e = hed_enc_over(body, room);
        hed_cuda_put_reply(&e, (enum hed_cuda_call)m->call, args, (int)r);
    }
    if (e.err) {
        hed_warn(SERVER, "the reply of %s is too long", hed_cuda_info[m->call].name);
        return hed_worker_answer(ch, m, CUDA_ERROR_NOT_SUPPORTED, NULL, 0);
    }
    return hed_worker_answer(ch, m, r, body, (size_t)(e.at - body));
}

int
hed_do_wait(struct hed_worker_channel *ch, struct hed_msg *m)
{
    struct hed_worker *w = ch->worker;
    CUresult r = CUDA_ERROR_INVALID_HANDLE;
    CUstream stream = NULL;
    int err;

    if (!(m->flags & HED_MSG_WANTS_ANSWER))
        return HED_EFORMAT;
    if (m->stream == 0 || hed_worker_stream(ch, m, &stream) == 0) {
        hed_ticket_pass(ch);
        r = m->stream ? hed_worker_do(w, cuStreamSynchronize, .hStream = stream)
                      : hed_worker_do(w, cuCtxSynchronize, 0);
    }
    err = hed_worker_before_answer(ch);
    return err ? err : hed_worker_answer(ch, m, (int)r, NULL, 0);
}

/* Sends the answer, if the client wants one; else notes a failure. */
static int
answer_call(struct hed_worker_channel *ch, const struct hed_msg *m, CUresult r, void *args,
            bool done)
{
    if (!(m->flags & HED_MSG_WANTS_ANSWER)) {
        if (r != CUDA_SUCCESS)
            hed_warn(SERVER, "%s, whose answer nobody waits for, failed with error %d",
                     hed_cuda_info[m->call].name, (int)r);
        hed_worker_failed(ch->worker, m->context, r);
        return 0;
    }

    const int err = m->flags & HED_MSG_BLOCKS ? hed_worker_before_answer(ch) : 0;

    if (err)
        return err;
    return done ? answer_reply(ch, m, r, args) : hed_worker_answer(ch, m, r, NULL, 0);
}

/* Refuses addresses of this process. Those of devices are the client's own. */
static int
refuse_own(void *arg, const char *kind, uint64_t address)
{
    (void)arg;
    return address == 0 || strcmp(kind, "device") == 0 ? 0 : HED_EFORMAT;
}

/* Checks whether the call may be made and translates its handles. Objects that it frees lose their
 * names. */
static CUresult
prepare_call(struct hed_worker *w, enum hed_cuda_call id, uint64_t context, void *args,
             struct doing *d)
{
    if (!w->values && !(w->values = hed_values_create()))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (hed_cuda_each_freed(id, args, note_freed, d) != 0 ||
        hed_cuda_each_in(id, args, translate_handle, d) != 0)
        return CUDA_ERROR_INVALID_HANDLE;

    const CUresult refused = hed_memory_guard(w, id, args);

    if (refused != CUDA_SUCCESS)
        return refused;
    /* Relaxed, here and below: it is only a limit and orders nothing. */
    if (creates_context(id) &&
        atomic_load_explicit(&w->contexts, memory_order_relaxed) >= CONTEXTS_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!take_freed(d)) {
        give_freed_back(d);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    /* A context that is destroyed is an argument; a primary one is that of the message. */
    if (hed_cuda_info[id].does == HED_DOES_END_CONTEXT) {
        const bool destroyed = hed_cuda_info[id].of_kind == HED_CUDA_KIND_CONTEXT;

        d->ends = destroyed && d->freed_count ? d->freed[0].name : context;
        if (!destroyed || d->freed_count)
            hed_worker_functions_forget(w, d->ends, NULL);
    }
    return CUDA_SUCCESS;
}

static void
note_contexts(struct hed_worker *w, enum hed_cuda_call id, uint64_t context)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    if (creates_context(id))
        atomic_fetch_add_explicit(&w->contexts, 1, memory_order_relaxed);
    if (info->does != HED_DOES_END_CONTEXT)
        return;
    if (info->of_kind == HED_CUDA_KIND_CONTEXT)
        atomic_fetch_sub_explicit(&w->contexts, 1, memory_order_relaxed);
    hed_worker_context_ended(w, context);
}

/* Makes the call, with the backend's handles. */
static CUresult
perform_call(struct hed_worker_channel *ch, const struct hed_msg *m, void *args, struct doing *d)
{
    const enum hed_cuda_call id = (enum hed_cuda_call)m->call;
    const CUresult refused = hed_worker_explain(ch->worker, m->context,
                                                prepare_call(ch->worker, id, m->context, args, d));
    uint64_t rooms[HED_CUDA_ROOMS];

    if (refused != CUDA_SUCCESS)
        return refused;
    if (m->flags & HED_MSG_BLOCKS)
        hed_ticket_pass(ch);
    if (d->ends)
        hed_shared_events_context_ends(ch->worker, d->ends);
    hed_cuda_rooms(id, args, rooms);
    hed_warm_before(ch->worker, m, retains_primary(id), args);

    const CUresult r = hed_cuda_invoke(ch->worker->top, id, args);

    hed_warm_after(ch->worker, m);
    d->done = true;
    /* After any other error the object is freed all the same; CUDA says so of objects in failed
     * contexts. */
    if (r == CUDA_ERROR_INVALID_VALUE)
        give_freed_back(d);
    if (r != CUDA_SUCCESS) {
        (void)hed_cuda_each_failed(id, args, hide_handle, d);
        return r;
    }
    note_contexts(ch->worker, id, m->context);
    if (m->number) /* it is work on a stream, such as a graph */
        hed_progress_put(ch, m);
    if (!hed_cuda_rooms_fit(id, args, rooms)) {
        hed_warn(SERVER, "%s returned more than there was room for", hed_cuda_info[id].name);
        d->done = false;
        return CUDA_ERROR_UNKNOWN;
    }
    if (hed_cuda_each_new(id, args, name_new, d) != 0) {
        hed_warn(SERVER, "%s: the client used a name twice, or a wrong one",
                 hed_cuda_info[id].name);
        d->nonsense = true; /* the new object has no name, and the client must not repeat that */
        return CUDA_ERROR_INVALID_HANDLE;
    }
    (void)hed_cuda_each_out(id, args, hide_handle, d);
    return CUDA_SUCCESS;
}

/* Finds the names after the request. False if they are not there. */
static bool
take_names(const struct hed_msg *m, const struct hed_call_body *b, struct doing *d)
{
    const size_t begin = (sizeof *m + sizeof *b + (size_t)b->request + 7) / 8 * 8;

    if (b->request > m->size - sizeof *m - sizeof *b || b->names > NAMES_MAX)
        return false;
    d->names = (const uint64_t *)(const void *)((const char *)m + begin);
    d->name_count = b->names;
    return b->names == 0 || (begin <= m->size && b->names * sizeof *d->names <= m->size - begin);
}

int
hed_do_call(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_call_body *b = (const struct hed_call_body *)(m + 1);
    const enum hed_cuda_call id = (enum hed_cuda_call)m->call;
    struct doing d = {.worker = ch->worker, .id = id};

    if (id == 0 || id >= HED_CUDA_CALLS || !take_names(m, b, &d))
        return HED_EFORMAT;
    if (!hed_cuda_can_travel(id) || (m->flags & HED_MSG_WANTS_ANSWER && !hed_cuda_can_answer(id))) {
        hed_warn(SERVER, "a client sent %s, which cannot be called remotely",
                 hed_cuda_info[id].name);
        return answer_call(ch, m, CUDA_ERROR_NOT_SUPPORTED, NULL, false);
    }

    void *args = hed_arena_alloc(&ch->arena, HED_CUDA_MAX_ARGS, 16);
    struct hed_dec dec = hed_dec_over(b + 1, b->request, &ch->arena);

    if (!args)
        return HED_ENOMEM;
    memset(args, 0, hed_cuda_info[id].size);
    hed_cuda_get_request(&dec, id, args);
    if (dec.err) {
        hed_warn(SERVER, "%s: %s", hed_cuda_info[id].name, hed_err_text(dec.err));
        return HED_EFORMAT;
    }
    if (hed_cuda_each_address(id, args, refuse_own, NULL) != 0) {
        hed_warn(SERVER, "%s: the client sent an address that only it can use",
                 hed_cuda_info[id].name);
        return answer_call(ch, m, CUDA_ERROR_NOT_SUPPORTED, NULL, false);
    }

    const CUresult r = perform_call(ch, m, args, &d);

    return d.nonsense ? HED_EFORMAT : answer_call(ch, m, r, args, d.done);
}
