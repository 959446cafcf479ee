/* HED_MSG_CALL: a call of the API by its number, made on the chain with the client's arguments.
 *
 *   request ──get_request──> arguments, room for outputs ──each_in──> names become handles
 *       ──> the turn is passed on, if it may block ──> the chain ──> new objects get their names
 *       ──put_reply──> answer, or, where none is wanted, a failure is the context's
 *
 * What cannot travel (addresses of the client's own, functions) is refused: hed_cuda_can_travel().
 */
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/pack.h"
#include "gen/cuda_handles.h"
#include "gen/cuda_travel.h"
#include "gen/cuda_wire.h"
#include "server/worker.h"

#define NAMES_MAX 64 /* objects that one call makes, or frees */

struct doing {
    struct hed_worker *worker;
    const uint64_t *names; /* that the client gives to new objects */
    uint32_t name_count;
    uint32_t made;             /* new objects so far */
    uint64_t freed[NAMES_MAX]; /* names that the call frees */
    uint32_t freed_count;
    bool done; /* the call was made: its result is the backend's */
};

/* Kinds whose values are the backend's own on both sides: kernels are given them. */
static bool
is_value(const char *kind)
{
    return strcmp(kind, "texture") == 0 || strcmp(kind, "surface") == 0;
}

static int
note_freed(void *arg, const char *kind, uint64_t *handle)
{
    struct doing *d = arg;

    if (is_value(kind))
        return 0;
    if (d->freed_count == NAMES_MAX)
        return HED_ELIMIT;
    d->freed[d->freed_count++] = *handle;
    return 0;
}

static int
translate(void *arg, const char *kind, uint64_t *handle)
{
    const struct doing *d = arg;

    if (is_value(kind))
        return 0;
    return hed_name_fits(*handle, kind) ? hed_name_real(d->worker->names, *handle, handle)
                                        : HED_ENOTFOUND;
}

/* A new object gets the client's name; one that the client has no name for is given as it is. */
static int
name_new(void *arg, const char *kind, uint64_t *handle)
{
    struct doing *d = arg;
    const uint64_t name = d->made < d->name_count ? d->names[d->made] : 0;

    d->made++;
    if (!name)
        return 0;

    const int err =
        hed_name_fits(name, kind) ? hed_name_bind(d->worker->names, name, *handle) : HED_EFORMAT;

    *handle = name;
    return err;
}

/* Handles of the backend's that the client did not name mean nothing to it. */
static int
hide(void *arg, const char *kind, uint64_t *handle)
{
    (void)arg;
    if (!is_value(kind))
        *handle = 0;
    return 0;
}

static int
answer_reply(struct hed_worker_lane *l, const struct hed_msg *m, CUresult r, void *args)
{
    static const size_t room = HED_MSG_MAX - sizeof(struct hed_answer);
    uint8_t *body = hed_arena_alloc(&l->arena, room, 16);
    struct hed_enc e = hed_enc_over(body, body ? room : 0);

    if (!body)
        return HED_ENOMEM;
    hed_cuda_put_reply(&e, (enum hed_cuda_call)m->call, args, (int)r);
    if (e.err) {
        hed_warn(SERVER, "the reply of %s is too long", hed_cuda_info[m->call].name);
        return hed_worker_answer(l, m, CUDA_ERROR_NOT_SUPPORTED, NULL, 0);
    }
    return hed_worker_answer(l, m, r, body, (size_t)(e.at - body));
}

/* What the answer is, or that nobody wants one. */
static int
finish(struct hed_worker_lane *l, const struct hed_msg *m, CUresult r, void *args, bool done)
{
    if (!(m->flags & HED_MSG_WANTS_ANSWER)) {
        if (r != CUDA_SUCCESS)
            hed_warn(SERVER, "%s, which nobody waits for, answered %d", hed_cuda_info[m->call].name,
                     (int)r);
        hed_worker_failed(l->worker, m->context, r);
        return 0;
    }

    const int err = m->flags & HED_MSG_BLOCKS ? hed_worker_before_answer(l) : 0;

    if (err)
        return err;
    return done ? answer_reply(l, m, r, args) : hed_worker_answer(l, m, r, NULL, 0);
}

/* Addresses of this process are none of the client's business; those of devices are its own. */
static int
refuse_own(void *arg, const char *kind, uint64_t address)
{
    (void)arg;
    return address == 0 || strcmp(kind, "device") == 0 ? 0 : HED_EFORMAT;
}

/* Makes the call; handles are the backend's then. */
static CUresult
perform(struct hed_worker_lane *l, const struct hed_msg *m, void *args, struct doing *d)
{
    const enum hed_cuda_call id = (enum hed_cuda_call)m->call;

    if (hed_cuda_each_freed(id, args, note_freed, d) != 0 ||
        hed_cuda_each_in(id, args, translate, d) != 0)
        return CUDA_ERROR_INVALID_HANDLE;

    const CUresult refused = hed_memory_guard(l->worker, id, args);

    if (refused != CUDA_SUCCESS)
        return refused;
    if (m->flags & HED_MSG_BLOCKS)
        hed_turn_pass(l);

    uint64_t rooms[HED_CUDA_ROOMS];

    hed_cuda_rooms(id, args, rooms);

    const CUresult r = hed_cuda_invoke(l->worker->top, id, args);

    d->done = true;
    /* Freed is freed, whatever the answer was: CUDA says so of objects of failed contexts. */
    for (uint32_t i = 0; i < d->freed_count && r != CUDA_ERROR_INVALID_VALUE; i++)
        (void)hed_name_unbind(d->worker->names, d->freed[i], NULL);
    if (r != CUDA_SUCCESS) {
        (void)hed_cuda_each_failed(id, args, hide, d);
        return r;
    }
    if (id == HED_cuCtxDestroy_v2 || id == HED_cuDevicePrimaryCtxReset_v2)
        hed_worker_recovered(d->worker, m->context);
    if (!hed_cuda_rooms_fit(id, args, rooms)) {
        hed_warn(SERVER, "%s gave more than there was room for", hed_cuda_info[id].name);
        d->done = false;
        return CUDA_ERROR_UNKNOWN;
    }
    if (hed_cuda_each_new(id, args, name_new, d) != 0) {
        hed_warn(SERVER, "%s: the client gives a name twice, or a wrong one",
                 hed_cuda_info[id].name);
        d->done = false;
        return CUDA_ERROR_INVALID_HANDLE;
    }
    (void)hed_cuda_each_out(id, args, hide, d);
    return CUDA_SUCCESS;
}

/* The names behind the request; false: they are not there. */
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
hed_do_call(struct hed_worker_lane *l, struct hed_msg *m)
{
    const struct hed_call_body *b = (const struct hed_call_body *)(m + 1);
    const enum hed_cuda_call id = (enum hed_cuda_call)m->call;
    struct doing d = {.worker = l->worker};

    if (id == 0 || id >= HED_CUDA_CALLS || !take_names(m, b, &d))
        return HED_EFORMAT;
    if (!hed_cuda_can_travel(id) || (m->flags & HED_MSG_WANTS_ANSWER && !hed_cuda_can_answer(id))) {
        hed_warn(SERVER, "a client sent %s, which cannot travel", hed_cuda_info[id].name);
        return finish(l, m, CUDA_ERROR_NOT_SUPPORTED, NULL, false);
    }

    void *args = hed_arena_alloc(&l->arena, HED_CUDA_MAX_ARGS, 16);
    struct hed_dec dec = hed_dec_over(b + 1, b->request, &l->arena);

    if (!args)
        return HED_ENOMEM;
    memset(args, 0, hed_cuda_info[id].size);
    hed_cuda_get_request(&dec, id, args);
    if (dec.err) {
        hed_warn(SERVER, "%s: %s", hed_cuda_info[id].name, hed_err_text(dec.err));
        return HED_EFORMAT;
    }
    if (hed_cuda_each_address(id, args, refuse_own, NULL) != 0) {
        hed_warn(SERVER, "%s: an address that only the client could follow",
                 hed_cuda_info[id].name);
        return finish(l, m, CUDA_ERROR_NOT_SUPPORTED, NULL, false);
    }

    const CUresult r = perform(l, m, args, &d);

    return finish(l, m, r, args, d.done);
}
