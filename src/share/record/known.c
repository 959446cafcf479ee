/* Kinds of calls that have succeeded, and the streams, events and graphs that they used. Only calls
 * with a known kind and known handles are deferred, so that a call which CUDA refuses at once is
 * still refused at once. */
#include <stdlib.h>
#include <string.h>

#include "share/record/engine.h"

#define PROBES 8

/* ---- handles --------------------------------------------------------------------------------- */

static struct hed_record_handle *
handle_at(struct hed_record_known *k, uint64_t handle, unsigned probe)
{
    const uint64_t hash = hed_record_mix(2, handle) >> 32;

    return &k->handles[(hash + probe) & (HED_RECORD_HANDLES - 1)];
}

bool
hed_record_knows_handle(struct hed_record_known *k, uint64_t handle, CUcontext context)
{
    if (hed_record_is_default(handle))
        return true;
    for (unsigned i = 0; i < PROBES; i++) {
        const struct hed_record_handle *h = handle_at(k, handle, i);

        if (h->handle == handle)
            return h->context == context;
    }
    return false;
}

static void
add_known_handle(struct hed_record_known *k, uint64_t handle, CUcontext context)
{
    struct hed_record_handle *slot = handle_at(k, handle, 0); /* replaced if none is free */

    if (hed_record_is_default(handle))
        return;
    for (unsigned i = 0; i < PROBES; i++) {
        struct hed_record_handle *h = handle_at(k, handle, i);

        if (h->handle == handle) {
            slot = h;
            break;
        }
        if (h->handle == 0 && slot->handle != 0)
            slot = h;
    }
    *slot = (struct hed_record_handle){handle, context};
}

static void
add_handles(struct hed_record_known *k, const struct hed_record_candidate *t)
{
    if (!t->swapped)
        add_known_handle(k, t->stream, t->context);
    if (t->touches)
        add_known_handle(k, t->touches, t->context);
}

static bool
knows_handles(struct hed_record_known *k, const struct hed_record_candidate *t)
{
    return (t->swapped || hed_record_knows_handle(k, t->stream, t->context)) &&
           (!t->touches || hed_record_knows_handle(k, t->touches, t->context));
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static struct hed_record_kind *
kind_at(struct hed_record_known *k, uint64_t key, unsigned probe)
{
    return &k->kinds[((key >> 32) + probe) & (HED_RECORD_KINDS - 1)];
}

struct hed_record_kind *
hed_record_find_kind(struct hed_record_known *k, uint64_t key)
{
    for (unsigned i = 0; i < PROBES; i++)
        if (kind_at(k, key, i)->key == key)
            return kind_at(k, key, i);
    return NULL;
}

static void
clear_kind(struct hed_record_kind *kind)
{
    free(kind->layout);
    *kind = (struct hed_record_kind){0};
}

/* Takes ownership of the kind's layout. */
static void
add_kind(struct hed_record_known *k, const struct hed_record_kind *kind)
{
    struct hed_record_kind *slot = hed_record_find_kind(k, kind->key);

    for (unsigned i = 0; !slot && i < PROBES; i++)
        if (kind_at(k, kind->key, i)->key == 0)
            slot = kind_at(k, kind->key, i);
    slot = slot ? slot : kind_at(k, kind->key, 0); /* replaces another kind */
    clear_kind(slot);
    *slot = *kind;
}

static size_t
layout_size(const struct hed_record_layout *l)
{
    return sizeof *l + l->count * sizeof *l->at;
}

/* False: there is no memory. */
static bool
copy_kind(const struct hed_record_kind *kind, struct hed_record_kind *out)
{
    *out = *kind;
    if (kind->layout)
        out->layout = malloc(layout_size(kind->layout));
    if (out->layout)
        memcpy(out->layout, kind->layout, layout_size(kind->layout));
    return out->layout || !kind->layout;
}

/* ---- learning -------------------------------------------------------------------------------- */

/* Asks for one parameter. A program may pass a CUkernel as a CUfunction, but the driver answers
 * questions about a CUkernel only in the call for kernels. */
static CUresult
ask_param(struct hed_layer *next, CUfunction f, bool kernel, size_t i, size_t *offset, size_t *size)
{
    return kernel ? hed_call(next, cuKernelGetParamInfo, (CUkernel)(void *)f, i, offset, size)
                  : hed_call(next, cuFuncGetParamInfo, f, i, offset, size);
}

/* Asks for the parameters of a function. False: the driver does not tell. *out is NULL if there are
 * none. */
static bool
ask_layout(struct hed_layer *next, CUfunction f, struct hed_record_layout **out)
{
    struct hed_record_layout *l = malloc(sizeof *l + HED_RECORD_PARAMS * sizeof *l->at);
    bool kernel = false;
    CUresult r = CUDA_SUCCESS;

    *out = NULL;
    if (!l)
        return false;
    l->count = l->bytes = 0;
    while (l->count <= HED_RECORD_PARAMS) {
        size_t offset = 0;
        size_t size = 0;

        r = ask_param(next, f, kernel, l->count, &offset, &size);
        if (r != CUDA_SUCCESS && r != CUDA_ERROR_INVALID_VALUE && !kernel && l->count == 0) {
            kernel = true;
            continue;
        }
        if (r == CUDA_SUCCESS && size == 0)
            r = CUDA_ERROR_INVALID_VALUE; /* another answer that means: no such parameter */
        if (r != CUDA_SUCCESS || offset + size > UINT16_MAX || l->count == HED_RECORD_PARAMS)
            break;
        l->at[l->count++] = (struct hed_record_param){(uint16_t)offset, (uint16_t)size};
        l->bytes = l->bytes > offset + size ? l->bytes : (uint32_t)(offset + size);
    }
    /* CUDA_ERROR_INVALID_VALUE is the driver's answer if there is no such parameter. */
    if (r != CUDA_ERROR_INVALID_VALUE || l->count == 0) {
        free(l);
        return r == CUDA_ERROR_INVALID_VALUE;
    }

    struct hed_record_layout *smaller = realloc(l, layout_size(l));

    *out = smaller ? smaller : l;
    return true;
}

static void
forget_if_old(const struct hed_recorder *r, struct hed_record_known *k)
{
    /* Acquire: pairs with the threads that change the epoch. */
    const uint32_t epoch = atomic_load_explicit(&r->epoch, memory_order_acquire);

    if (k->epoch != epoch)
        hed_record_forget_all(k, epoch);
}

void
hed_record_learn(struct hed_record_client *c, const struct hed_record_candidate *t)
{
    struct hed_record_kind kind = {.key = t->kind, .function = t->function, .shared = t->shared};

    if (t->has_params && !ask_layout(c->engine->next, t->function, &kind.layout))
        return;
    hed_lock(&c->lock);
    forget_if_old(c->engine, &c->known);
    add_handles(&c->known, t);
    add_kind(&c->known, &kind);
    hed_unlock(&c->lock);
}

bool
hed_record_copy_known(struct hed_record_queue *q, const struct hed_record_candidate *t)
{
    struct hed_record_client *c = q->client;
    /* Sequentially consistent: a thread that forgets changes it first, and goes to the queue
     * last. */
    const uint32_t forgets = atomic_load_explicit(&c->forgets, memory_order_seq_cst);
    const struct hed_record_kind *known;
    struct hed_record_kind kind;
    uint32_t epoch;
    bool copied;

    hed_lock(&c->lock);
    forget_if_old(c->engine, &c->known);
    epoch = c->known.epoch;
    known = knows_handles(&c->known, t) ? hed_record_find_kind(&c->known, t->kind) : NULL;
    copied = known && copy_kind(known, &kind);
    hed_unlock(&c->lock);
    if (!copied)
        return false;
    hed_lock(&q->lock);
    forget_if_old(c->engine, &q->known);
    copied = q->known.epoch == epoch &&
             atomic_load_explicit(&c->forgets, memory_order_seq_cst) == forgets;
    if (copied) {
        add_handles(&q->known, t);
        add_kind(&q->known, &kind);
    }
    hed_unlock(&q->lock);
    if (!copied)
        clear_kind(&kind);
    return copied;
}

/* ---- forgetting ------------------------------------------------------------------------------ */

void
hed_record_forget_all(struct hed_record_known *k, uint32_t epoch)
{
    for (unsigned i = 0; i < HED_RECORD_KINDS; i++)
        clear_kind(&k->kinds[i]);
    memset(k->handles, 0, sizeof k->handles);
    k->epoch = epoch;
}

static void
forget_handle(struct hed_record_known *k, uint64_t handle)
{
    for (unsigned i = 0; i < PROBES; i++)
        if (handle_at(k, handle, i)->handle == handle)
            *handle_at(k, handle, i) = (struct hed_record_handle){0};
}

static void
forget_shared(struct hed_record_known *k, CUfunction f, uint32_t shared)
{
    for (unsigned i = 0; i < HED_RECORD_KINDS; i++)
        if (k->kinds[i].function == f && k->kinds[i].shared > shared)
            clear_kind(&k->kinds[i]);
}

/* Forgets a handle, or kinds of a function, in a client and then in its queues. */
static void
forget_in_client(struct hed_record_client *c, uint64_t handle, CUfunction f, uint32_t shared)
{
    struct hed_record_known *k = &c->known;
    struct hed_lock *lock = &c->lock;

    /* Sequentially consistent: see hed_record_copy_known. */
    atomic_fetch_add_explicit(&c->forgets, 1, memory_order_seq_cst);

    /* Acquire: see hed_record_choose. */
    const uint32_t count = atomic_load_explicit(&c->count, memory_order_acquire);

    for (uint32_t i = 0; i <= count; i++) {
        hed_lock_brief(lock);
        if (handle)
            forget_handle(k, handle);
        else
            forget_shared(k, f, shared);
        hed_unlock_brief(lock);
        if (i < count) {
            k = &c->queues[i]->known;
            lock = &c->queues[i]->lock;
        }
    }
}

static void
forget_in_all(struct hed_recorder *r, uint64_t handle, CUfunction f, uint32_t shared)
{
    /* Acquire: see hed_record_wait_others. */
    const uint32_t clients = atomic_load_explicit(&r->count, memory_order_acquire);

    for (uint32_t i = 0; i < clients; i++)
        forget_in_client(r->clients[i], handle, f, shared);
}

void
hed_record_forget_handle(struct hed_recorder *r, uint64_t handle)
{
    if (handle)
        forget_in_all(r, handle, NULL, 0);
}

/* The function's limit of dynamic shared memory has changed: forgets its kinds that need more. */
void
hed_record_forget_shared(struct hed_recorder *r, CUfunction f, uint32_t shared)
{
    forget_in_all(r, 0, f, shared);
}
