/* Kinds of calls that have succeeded, and the streams, events and graphs that they used. Only calls
 * with a known kind and known handles are deferred, so that a call which CUDA refuses at once is
 * still refused at once. */
#include <stdlib.h>
#include <string.h>

#include "record/engine.h"

#define PROBES 8

/* ---- handles --------------------------------------------------------------------------------- */

static struct hed_record_handle *
handle_at(struct hed_record_client *c, uint64_t handle, unsigned probe)
{
    const uint64_t hash = hed_record_mix(2, handle) >> 32;

    return &c->handles[(hash + probe) & (HED_RECORD_HANDLES - 1)];
}

bool
hed_record_known_locked(struct hed_record_client *c, uint64_t handle, CUcontext context)
{
    if (hed_record_is_default(handle))
        return true;
    for (unsigned i = 0; i < PROBES; i++) {
        const struct hed_record_handle *h = handle_at(c, handle, i);

        if (h->handle == handle)
            return h->context == context;
    }
    return false;
}

static void
add_handle_locked(struct hed_record_client *c, uint64_t handle, CUcontext context)
{
    struct hed_record_handle *slot = handle_at(c, handle, 0); /* replaced if none is free */

    if (hed_record_is_default(handle))
        return;
    for (unsigned i = 0; i < PROBES; i++) {
        struct hed_record_handle *h = handle_at(c, handle, i);

        if (h->handle == handle) {
            slot = h;
            break;
        }
        if (h->handle == 0 && slot->handle != 0)
            slot = h;
    }
    *slot = (struct hed_record_handle){handle, context};
}

void
hed_record_forget_handle(struct hed_recorder *r, uint64_t handle)
{
    /* Acquire: see hed_record_wait_others. */
    const uint32_t clients = atomic_load_explicit(&r->count, memory_order_acquire);

    for (uint32_t i = 0; i < clients; i++) {
        struct hed_record_client *c = r->clients[i];

        hed_lock_brief(&c->lock);
        for (unsigned k = 0; k < PROBES; k++)
            if (handle_at(c, handle, k)->handle == handle)
                *handle_at(c, handle, k) = (struct hed_record_handle){0};
        hed_unlock_brief(&c->lock);
    }
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static struct hed_record_kind *
kind_at(struct hed_record_client *c, uint64_t key, unsigned probe)
{
    return &c->kinds[((key >> 32) + probe) & (HED_RECORD_KINDS - 1)];
}

struct hed_record_kind *
hed_record_find_kind_locked(struct hed_record_client *c, uint64_t key)
{
    for (unsigned i = 0; i < PROBES; i++)
        if (kind_at(c, key, i)->key == key)
            return kind_at(c, key, i);
    return NULL;
}

static void
clear_kind(struct hed_record_kind *k)
{
    free(k->layout);
    *k = (struct hed_record_kind){0};
}

void
hed_record_forget_all_locked(struct hed_record_client *c)
{
    for (unsigned i = 0; i < HED_RECORD_KINDS; i++)
        clear_kind(&c->kinds[i]);
    memset(c->handles, 0, sizeof c->handles);
    c->epoch = atomic_load_explicit(&c->engine->epoch, memory_order_acquire);
}

/* The function's limit of dynamic shared memory has changed: forgets its kinds that need more. */
void
hed_record_forget_shared(struct hed_recorder *r, CUfunction f, uint32_t shared)
{
    /* Acquire: see hed_record_wait_others. */
    const uint32_t clients = atomic_load_explicit(&r->count, memory_order_acquire);

    for (uint32_t i = 0; i < clients; i++) {
        struct hed_record_client *c = r->clients[i];

        hed_lock(&c->lock);
        for (unsigned k = 0; k < HED_RECORD_KINDS; k++)
            if (c->kinds[k].function == f && c->kinds[k].shared > shared)
                clear_kind(&c->kinds[k]);
        hed_unlock(&c->lock);
    }
}

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
    *out = realloc(l, sizeof *l + l->count * sizeof *l->at);
    *out = *out ? *out : l;
    return true;
}

static void
add_kind_locked(struct hed_record_client *c, const struct hed_record_kind *kind)
{
    struct hed_record_kind *k = hed_record_find_kind_locked(c, kind->key);

    for (unsigned i = 0; !k && i < PROBES; i++)
        if (kind_at(c, kind->key, i)->key == 0)
            k = kind_at(c, kind->key, i);
    k = k ? k : kind_at(c, kind->key, 0); /* replaces another kind */
    clear_kind(k);
    *k = *kind;
}

void
hed_record_learn(struct hed_record_client *c, const struct hed_record_candidate *t)
{
    struct hed_record_kind kind = {.key = t->kind, .function = t->function, .shared = t->shared};

    if (t->has_params && !ask_layout(c->engine->next, t->function, &kind.layout))
        return;
    hed_lock(&c->lock);
    if (c->epoch != atomic_load_explicit(&c->engine->epoch, memory_order_acquire))
        hed_record_forget_all_locked(c);
    if (!t->swapped)
        add_handle_locked(c, t->stream, t->context);
    if (t->touches)
        add_handle_locked(c, t->touches, t->context);
    add_kind_locked(c, &kind);
    hed_unlock(&c->lock);
}
