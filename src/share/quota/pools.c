/* Calls that make, choose, trim or destroy pools, but allocate nothing; and calls that begin a
 * capture, after which streams must be asked whether they capture (share/quota/engine.h). */
#include "share/quota/engine.h"

/* The device whose memory a pool has. Managed memory counts wherever it is: if the pool names no
 * device, the current one is charged. NULL: it is host memory, or another process is charged. */
static struct quota_device *
device_of_pool(struct hed_layer *self, const struct quota_call *c)
{
    if (c->where == CU_MEM_LOCATION_TYPE_DEVICE)
        return hed_quota_device(self, c->device);
    return c->type == CU_MEM_ALLOCATION_TYPE_MANAGED ? hed_quota_current(self) : NULL;
}

static void
forget_current(struct hed_quota *q)
{
    for (uint32_t i = 0; i < QUOTA_DEVICES; i++) {
        struct quota_device *d = atomic_load_explicit(&q->ordinals[i], memory_order_acquire);

        if (d)
            atomic_store_explicit(&d->pool, NULL, memory_order_release);
    }
}

/* A pool that the program makes, imports or is told of. A known pool stays with its device: a pool
 * of another process can be the current one of a device. */
static CUresult
quota_do_pool_seen(struct hed_layer *self, const struct quota_call *c)
{
    const CUresult r = quota_next(self, c);

    if (r == CUDA_SUCCESS && c->out.at)
        (void)hed_quota_pool_learn(self->state, (CUmemoryPool)hed_place_get(c->out),
                                   device_of_pool(self, c));
    return r;
}

HED_CUDA_MEMORY_POOL_SEEN(QUOTA_CALL)

static CUresult
quota_do_pool_choose(struct hed_layer *self, const struct quota_call *c)
{
    const CUresult r = quota_next(self, c);

    forget_current(self->state);
    return r;
}

HED_CUDA_MEMORY_POOL_CHOOSE(QUOTA_CALL)

static CUresult
quota_do_pool_trim(struct hed_layer *self, const struct quota_call *c)
{
    const CUresult r = quota_next(self, c);

    hed_quota_pool_changed(self, (CUmemoryPool)c->key);
    return r;
}

HED_CUDA_MEMORY_POOL_TRIM(QUOTA_CALL)

static CUresult
quota_do_pool_end(struct hed_layer *self, const struct quota_call *c)
{
    /* Before the call: afterwards the handle may be another pool's. */
    struct quota_pool *p = hed_quota_pool_end(self, (CUmemoryPool)c->key);
    const CUresult r = quota_next(self, c);

    forget_current(self->state);
    hed_quota_pool_ended(self, p, r == CUDA_SUCCESS);
    return r;
}

HED_CUDA_MEMORY_POOL_END(QUOTA_CALL)

/* From the first capture on, streams are asked whether they are in one. */
static CUresult
quota_do_capture(struct hed_layer *self, const struct quota_call *c)
{
    atomic_store_explicit(&((struct hed_quota *)self->state)->captures, true, memory_order_relaxed);
    return quota_next(self, c);
}

HED_CUDA_MEMORY_CAPTURE(QUOTA_CALL)
