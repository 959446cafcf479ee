/* Pools and stream-ordered allocations (share/quota/engine.h).
 *
 * A pool is charged with what it keeps, which is at least what the program has allocated from it:
 *
 *     charged = max(reserved, as the layer below reports it; live)
 *
 * An allocation adds to `live` and charges what `live` then exceeds `charged` by; after the call
 * the report settles the charge. The driver chooses the steps in which a pool grows. A step that
 * does not fit is undone: the new allocation is freed and the pool trimmed. A stream-ordered free
 * lowers `live` at the call; the memory belongs to the pool until the pool gives it up, by itself
 * or because it is trimmed. Pools are trimmed before any call is refused.
 *
 * A report may be older than what another thread has done since. So it lowers a charge only if no
 * other call has begun meanwhile (`serial`).
 */
#include <stdlib.h>

#include "base/log.h"
#include "core/stream.h"
#include "share/quota/engine.h"

/* Finds or makes the struct of a pool. NULL: no memory. Pools are few, so their structs are never
 * freed; that of a pool that has gone is used again. */
struct quota_pool *
hed_quota_pool_learn(struct hed_quota *q, CUmemoryPool handle, struct quota_device *d)
{
    struct quota_pool *p;
    struct quota_pool *spare = NULL;

    hed_lock_brief(&q->lock);
    for (p = q->pools; p && (p->gone || p->handle != handle); p = p->next)
        if (p->gone && p->live == 0 && p->charged == 0)
            spare = p;
    if (!p && (p = spare) != NULL) {
        p->handle = handle;
        p->device = d;
        p->gone = false;
        atomic_store_explicit(&p->mute, false, memory_order_relaxed);
    } else if (!p && (p = calloc(1, sizeof *p)) != NULL) {
        p->handle = handle;
        p->device = d;
        p->next = q->pools;
        q->pools = p;
    }
    hed_unlock_brief(&q->lock);
    return p;
}

static struct quota_pool *
find_pool(struct hed_quota *q, CUmemoryPool handle)
{
    struct quota_pool *p;

    hed_lock_brief(&q->lock);
    for (p = q->pools; p && (p->gone || p->handle != handle); p = p->next)
        ;
    hed_unlock_brief(&q->lock);
    return p;
}

static uint64_t
pool_measure(struct hed_quota *q, struct quota_pool *p, bool *gone)
{
    hed_lock_brief(&q->lock);

    const uint64_t serial = ++p->serial;

    *gone = p->gone;
    hed_unlock_brief(&q->lock);
    return serial;
}

/* How much the layer below says the pool has; 0 if it does not say. */
static uint64_t
ask_reserved(struct hed_layer *self, struct quota_pool *p)
{
    cuuint64_t n = 0;

    if (atomic_load_explicit(&p->mute, memory_order_relaxed))
        return 0;

    const CUresult r = hed_call(self->next, cuMemPoolGetAttribute, .pool = p->handle,
                                .attr = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, .value = &n);

    if (r == CUDA_ERROR_NOT_SUPPORTED)
        atomic_store_explicit(&p->mute, true, memory_order_relaxed);
    return r == CUDA_SUCCESS ? n : 0;
}

static void
trim_pool(struct hed_layer *self, struct quota_pool *p)
{
    (void)hed_call(self->next, cuMemPoolTrimTo, .pool = p->handle, .minBytesToKeep = 0);
}

/* Makes the charge what it should be. False: the pool is larger than the limit allows. It is
 * charged all the same. */
static bool
pool_settle(struct hed_layer *self, struct quota_pool *p)
{
    struct hed_quota *q = self->state;
    bool gone;
    const uint64_t serial = pool_measure(q, p, &gone);
    const uint64_t n = gone ? 0 : ask_reserved(self, p);
    bool fits = true;

    hed_lock(&q->lock);

    const uint64_t want = n > p->live ? n : p->live;

    if (want > p->charged) {
        fits = hed_quota_reserve(p->device, want - p->charged);
        if (!fits)
            hed_quota_force(p->device, want - p->charged);
        p->charged = want;
    } else if (want < p->charged && serial == p->serial) {
        hed_quota_give(p->device, p->charged - want);
        p->charged = want;
    }
    hed_unlock(&q->lock);
    return fits;
}

/* Charges n bytes that an allocation may take. False: they do not fit. */
static bool
charge_live(struct hed_quota *q, struct quota_pool *p, uint64_t n)
{
    bool good = true;

    hed_lock(&q->lock);
    p->serial++;
    if (n > UINT64_MAX / 2 - p->live)
        good = false;
    else if (p->live + n > p->charged) {
        good = hed_quota_reserve(p->device, p->live + n - p->charged);
        if (good)
            p->charged = p->live + n;
    }
    if (good)
        p->live += n;
    hed_unlock(&q->lock);
    return good;
}

void
hed_quota_pool_freed(struct hed_layer *self, struct quota_pool *p, uint64_t n)
{
    struct hed_quota *q = self->state;

    hed_lock_brief(&q->lock);
    p->live -= n;
    p->serial++;
    hed_unlock_brief(&q->lock);
    (void)pool_settle(self, p);
}

/* Settles all pools of a device. With `trim`, those that keep more than the program has are trimmed
 * first. */
void
hed_quota_pools_settle(struct hed_layer *self, struct quota_device *d, bool trim)
{
    struct hed_quota *q = self->state;
    struct quota_pool *p;

    hed_lock_brief(&q->lock);
    p = q->pools;
    hed_unlock_brief(&q->lock);
    /* The list only grows, at its front. */
    for (; p; p = p->next) {
        hed_lock_brief(&q->lock);

        const bool keeps = p->device == d && p->charged > p->live;
        const bool gone = p->gone;

        hed_unlock_brief(&q->lock);
        if (!keeps)
            continue;
        if (trim && !gone)
            trim_pool(self, p);
        (void)pool_settle(self, p);
    }
}

/* Before a pool is destroyed: it is not found any more. NULL: it was not known. */
struct quota_pool *
hed_quota_pool_end(struct hed_layer *self, CUmemoryPool handle)
{
    struct hed_quota *q = self->state;
    struct quota_pool *p = find_pool(q, handle);

    hed_lock_brief(&q->lock);
    if (p)
        p->gone = true;
    hed_unlock_brief(&q->lock);
    return p;
}

void
hed_quota_pool_ended(struct hed_layer *self, struct quota_pool *p, bool done)
{
    struct hed_quota *q = self->state;

    if (!p)
        return;
    if (!done) {
        hed_lock_brief(&q->lock);
        p->gone = false;
        hed_unlock_brief(&q->lock);
    }
    if (p->device)
        (void)pool_settle(self, p);
}

void
hed_quota_pool_changed(struct hed_layer *self, CUmemoryPool handle)
{
    struct quota_pool *p = find_pool(self->state, handle);

    if (p && p->device)
        (void)pool_settle(self, p);
}

/* ---- allocating ------------------------------------------------------------------------------ */

/* Whether a call on this stream becomes part of a graph. */
static bool
is_capturing(struct hed_layer *self, uint64_t stream, bool ptds)
{
    const struct hed_quota *q = self->state;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return atomic_load_explicit(&q->captures, memory_order_relaxed) &&
           hed_call(self->next, cuStreamIsCapturing, .hStream = (CUstream)stream,
                    .captureStatus = &status, .ptds = ptds) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Where a call on a stream allocates. The thread that makes it need not have a context. */
struct charge_place {
    CUcontext context;
    struct quota_device *device; /* NULL: not known */
};

/* The stream's own, or the current one for the default streams. A stream that captures may be asked
 * for its context, but not for its device, which would end the capture. */
static struct charge_place
place_to_charge(struct hed_layer *self, CUstream stream)
{
    struct charge_place p = {.context = hed_quota_context(self)};
    CUcontext context = p.context;

    if ((uintptr_t)stream > HED_STREAM_PER_THREAD)
        (void)hed_call(self->next, cuStreamGetCtx, .hStream = stream, .pctx = &context);
    if (context == p.context ||
        hed_call(self->next, cuCtxPushCurrent_v2, .ctx = context) != CUDA_SUCCESS) {
        p.device = hed_quota_current(self);
        return p;
    }
    p = (struct charge_place){.context = context, .device = hed_quota_current(self)};
    (void)hed_call(self->next, cuCtxPopCurrent_v2, .pctx = &context);
    return p;
}

static struct quota_pool *
current_pool(struct hed_layer *self, struct quota_device *d)
{
    struct quota_pool *p = atomic_load_explicit(&d->pool, memory_order_acquire);
    CUmemoryPool handle = NULL;

    if (p)
        return p;
    for (CUdevice i = 0; i < QUOTA_DEVICES; i++) {
        struct hed_quota *q = self->state;

        if (atomic_load_explicit(&q->ordinals[i], memory_order_acquire) != d)
            continue;
        if (hed_call(self->next, cuDeviceGetMemPool, .pool = &handle, .dev = i) != CUDA_SUCCESS)
            break;
        p = hed_quota_pool_learn(q, handle, d);
        atomic_store_explicit(&d->pool, p, memory_order_release);
        break;
    }
    return p;
}

/* Undoes an allocation that made its pool too large. */
static CUresult
undo_pool_alloc(struct hed_layer *self, const struct quota_call *c, struct quota_pool *p,
                uint64_t n)
{
    (void)hed_call(self->next, cuMemFreeAsync, .dptr = hed_place_get(c->out),
                   .hStream = (CUstream)c->stream, .ptds = c->ptds);
    trim_pool(self, p);
    hed_quota_pool_freed(self, p, n);
    hed_info(QUOTA, "a pool's step does not fit");
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* After an allocation of n bytes, which ends with the context. */
static CUresult
pool_allocated(struct hed_layer *self, const struct quota_call *c, struct quota_pool *p,
               CUcontext context, uint64_t n)
{
    const struct quota_charge charge = {.key = hed_place_get(c->out),
                                        .bytes = n,
                                        .device = p->device,
                                        .context = context,
                                        .thing = p,
                                        .kind = QUOTA_MEMORY};

    if (!pool_settle(self, p)) {
        trim_pool(self, p);
        (void)pool_settle(self, p);
        if (hed_quota_used(p->device) > p->device->limit)
            return undo_pool_alloc(self, c, p, n);
    }
    return hed_quota_put(self->state, &charge) == 0 ? CUDA_SUCCESS : undo_pool_alloc(self, c, p, n);
}

/* Charges n bytes of a pool, after making room if necessary. */
static bool
pool_claim(struct hed_layer *self, struct quota_pool *p, uint64_t n)
{
    if (charge_live(self->state, p, n))
        return true;
    hed_quota_relieve(self, p->device);
    return charge_live(self->state, p, n);
}

static uint64_t
pool_round(uint64_t n)
{
    return n > UINT64_MAX - 511 ? UINT64_MAX : (n + 511) & ~511ull;
}

/* The pool that a call allocates from: the one it names, or the current one of the device. NULL:
 * it is not known. */
static struct quota_pool *
pool_of_call(struct hed_layer *self, const struct quota_call *c, struct quota_device *d)
{
    struct hed_quota *q = self->state;
    const CUmemoryPool handle = (CUmemoryPool)c->key;
    struct quota_pool *p;

    if (!handle)
        return current_pool(self, d);
    p = find_pool(q, handle);
    return p ? p : hed_quota_pool_learn(q, handle, d); /* it came from a call that we did not see */
}

/* A captured allocation is a memory node of the graph (graph.c). */
static CUresult
captured_alloc(struct hed_layer *self, const struct quota_call *c, struct quota_device *d)
{
    atomic_store_explicit(&((struct hed_quota *)self->state)->memory_nodes, true,
                          memory_order_relaxed);
    if (!hed_quota_graph_begin(self, d, c->bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;

    const CUresult r = quota_next(self, c);

    hed_quota_graph_added(self, d, c->bytes);
    return r;
}

static CUresult
quota_do_pool_alloc(struct hed_layer *self, const struct quota_call *c)
{
    const bool capturing = is_capturing(self, c->stream, c->ptds);
    const uint64_t n = pool_round(c->bytes);
    const struct charge_place at = c->out.at && c->bytes
                                       ? place_to_charge(self, (CUstream)c->stream)
                                       : (struct charge_place){.device = NULL};
    struct quota_device *d = at.device;
    struct quota_pool *p = d && (c->key || !capturing) ? pool_of_call(self, c, d) : NULL;

    if (capturing && c->key)
        d = p ? p->device : NULL;
    if (d && capturing)
        return captured_alloc(self, c, d);
    if (!p || !p->device)
        return quota_next(self, c);
    if (!pool_claim(self, p, n))
        return CUDA_ERROR_OUT_OF_MEMORY;

    const CUresult r = quota_next(self, c);

    if (r == CUDA_SUCCESS)
        return pool_allocated(self, c, p, at.context, n);
    hed_quota_pool_freed(self, p, n);
    return r;
}

HED_CUDA_MEMORY_POOL_ALLOC(QUOTA_CALL)
