/* Calls about pools that allocate nothing: which pools there are, and what they keep. */
#include "layers/quota/quota.h"

/* A pool that the program was told of. */
static void
learn_pool(struct hed_layer *self, CUmemoryPool pool, const CUmemLocation_v1 *where)
{
    const bool device = where && where->type == CU_MEM_LOCATION_TYPE_DEVICE;
    struct quota_device *d = device ? quota_device(self, where->id) : NULL;

    (void)quota_pool_learn(self->state, pool, d);
}

/* Managed memory counts wherever it is: with no device of its own, on the current one. */
static void
learn_typed(struct hed_layer *self, CUmemoryPool pool, const CUmemLocation_v1 *where,
            CUmemAllocationType type)
{
    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED &&
        (!where || where->type != CU_MEM_LOCATION_TYPE_DEVICE))
        (void)quota_pool_learn(self->state, pool, quota_current(self));
    else
        learn_pool(self, pool, where);
}

static void
forget_current(struct quota *q)
{
    for (uint32_t i = 0; i < QUOTA_DEVICES; i++) {
        struct quota_device *d = atomic_load_explicit(&q->ordinals[i], memory_order_acquire);

        if (d)
            atomic_store_explicit(&d->pool, NULL, memory_order_release);
    }
}

CUresult
quota_cuMemPoolCreate(struct hed_layer *self, struct hed_cuMemPoolCreate *a)
{
    const CUresult r = hed_next(self, cuMemPoolCreate, a);

    if (r == CUDA_SUCCESS && a->pool && a->poolProps)
        learn_typed(self, *a->pool, &a->poolProps->location, a->poolProps->allocType);
    return r;
}

/* It and its memory are another process's, which is charged. */
CUresult
quota_cuMemPoolImportFromShareableHandle(struct hed_layer *self,
                                         struct hed_cuMemPoolImportFromShareableHandle *a)
{
    const CUresult r = hed_next(self, cuMemPoolImportFromShareableHandle, a);

    if (r == CUDA_SUCCESS && a->pool_out)
        learn_pool(self, *a->pool_out, NULL);
    return r;
}

CUresult
quota_cuMemPoolDestroy(struct hed_layer *self, struct hed_cuMemPoolDestroy *a)
{
    /* Before: the handle may be another pool's right after. */
    struct quota_pool *p = quota_pool_end(self, a->pool);
    const CUresult r = hed_next(self, cuMemPoolDestroy, a);

    forget_current(self->state);
    quota_pool_ended(self, p, r == CUDA_SUCCESS);
    return r;
}

CUresult
quota_cuMemPoolTrimTo(struct hed_layer *self, struct hed_cuMemPoolTrimTo *a)
{
    const CUresult r = hed_next(self, cuMemPoolTrimTo, a);

    quota_pool_changed(self, a->pool);
    return r;
}

CUresult
quota_cuDeviceGetDefaultMemPool(struct hed_layer *self, struct hed_cuDeviceGetDefaultMemPool *a)
{
    const CUresult r = hed_next(self, cuDeviceGetDefaultMemPool, a);

    if (r == CUDA_SUCCESS && a->pool_out)
        learn_pool(self, *a->pool_out, &(CUmemLocation_v1){CU_MEM_LOCATION_TYPE_DEVICE, a->dev});
    return r;
}

CUresult
quota_cuDeviceGetMemPool(struct hed_layer *self, struct hed_cuDeviceGetMemPool *a)
{
    const CUresult r = hed_next(self, cuDeviceGetMemPool, a);

    /* Pools of other processes can be current, too; then this is not their first sight. */
    if (r == CUDA_SUCCESS && a->pool)
        learn_pool(self, *a->pool, &(CUmemLocation_v1){CU_MEM_LOCATION_TYPE_DEVICE, a->dev});
    return r;
}

CUresult
quota_cuMemGetDefaultMemPool(struct hed_layer *self, struct hed_cuMemGetDefaultMemPool *a)
{
    const CUresult r = hed_next(self, cuMemGetDefaultMemPool, a);

    if (r == CUDA_SUCCESS && a->pool_out)
        learn_typed(self, *a->pool_out, a->location, a->type);
    return r;
}

CUresult
quota_cuMemGetMemPool(struct hed_layer *self, struct hed_cuMemGetMemPool *a)
{
    const CUresult r = hed_next(self, cuMemGetMemPool, a);

    if (r == CUDA_SUCCESS && a->pool)
        learn_typed(self, *a->pool, a->location, a->type);
    return r;
}

CUresult
quota_cuDeviceSetMemPool(struct hed_layer *self, struct hed_cuDeviceSetMemPool *a)
{
    const CUresult r = hed_next(self, cuDeviceSetMemPool, a);

    forget_current(self->state);
    return r;
}

CUresult
quota_cuMemSetMemPool(struct hed_layer *self, struct hed_cuMemSetMemPool *a)
{
    const CUresult r = hed_next(self, cuMemSetMemPool, a);

    forget_current(self->state);
    return r;
}

/* From the first capture on, streams are asked whether they are in one. */
static void
note_first_capture(struct hed_layer *self)
{
    atomic_store_explicit(&((struct quota *)self->state)->captures, true, memory_order_relaxed);
}

CUresult
quota_cuStreamBeginCapture(struct hed_layer *self, struct hed_cuStreamBeginCapture *a)
{
    note_first_capture(self);
    return hed_next(self, cuStreamBeginCapture, a);
}

CUresult
quota_cuStreamBeginCapture_v2(struct hed_layer *self, struct hed_cuStreamBeginCapture_v2 *a)
{
    note_first_capture(self);
    return hed_next(self, cuStreamBeginCapture_v2, a);
}

CUresult
quota_cuStreamBeginCaptureToGraph(struct hed_layer *self, struct hed_cuStreamBeginCaptureToGraph *a)
{
    note_first_capture(self);
    return hed_next(self, cuStreamBeginCaptureToGraph, a);
}
