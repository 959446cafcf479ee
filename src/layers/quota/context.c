/* What goes with a context (layers/quota/quota.h): its records are taken out before the call that
 * ends it, as its addresses may be others' right after, and put back if it was not its end. */
#include "layers/quota/quota.h"

#define DESTROY(call)                                                   \
    CUresult quota_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                   \
        struct quota_charges all;                                       \
                                                                        \
        quota_take_all(self->state, a->ctx, &all);                      \
                                                                        \
        const CUresult r = hed_next(self, call, a);                     \
                                                                        \
        if (r == CUDA_SUCCESS)                                          \
            quota_drop_all(self, &all);                                 \
        else                                                            \
            quota_put_all(self->state, &all);                           \
        return r;                                                       \
    }

DESTROY(cuCtxDestroy)
DESTROY(cuCtxDestroy_v2)

/* The end of a context that was not attached as often. */
CUresult
quota_cuCtxDetach(struct hed_layer *self, struct hed_cuCtxDetach *a)
{
    const CUcontext context = a->ctx;
    const CUresult r = hed_next(self, cuCtxDetach, a);
    unsigned version = 0;
    struct hed_cuCtxGetApiVersion get = {context, &version};

    if (r == CUDA_SUCCESS && context &&
        hed_next(self, cuCtxGetApiVersion, &get) == CUDA_ERROR_INVALID_CONTEXT) {
        struct quota_charges all;

        quota_take_all(self->state, context, &all);
        quota_drop_all(self, &all);
    }
    return r;
}

/* ---- primary contexts ------------------------------------------------------------------------ */

CUresult
quota_cuDevicePrimaryCtxRetain(struct hed_layer *self, struct hed_cuDevicePrimaryCtxRetain *a)
{
    const CUresult r = hed_next(self, cuDevicePrimaryCtxRetain, a);
    struct quota_device *d = r == CUDA_SUCCESS && a->pctx ? quota_device(self, a->dev) : NULL;

    if (d) {
        atomic_store_explicit(&d->primary, *a->pctx, memory_order_relaxed);
        atomic_fetch_add_explicit(&d->primary_refs, 1, memory_order_relaxed);
    }
    return r;
}

/* Before: takes what goes if this is the end of the primary context. */
static struct quota_device *
primary_ending(struct hed_layer *self, CUdevice dev, bool reset, struct quota_charges *all)
{
    struct quota_device *d = quota_device(self, dev);
    const bool last =
        d && (reset || atomic_load_explicit(&d->primary_refs, memory_order_relaxed) <= 1);

    quota_take_all(self->state,
                   last ? atomic_load_explicit(&d->primary, memory_order_relaxed) : NULL, all);
    return d;
}

static CUresult
primary_ended(struct hed_layer *self, struct quota_device *d, CUdevice dev, bool reset,
              struct quota_charges *all, CUresult r)
{
    unsigned flags = 0;
    int active = 1;
    struct hed_cuDevicePrimaryCtxGetState get = {dev, &flags, &active};

    if (d && r == CUDA_SUCCESS) {
        uint32_t refs = atomic_load_explicit(&d->primary_refs, memory_order_relaxed);

        while (refs != 0 &&
               !atomic_compare_exchange_weak_explicit(&d->primary_refs, &refs, reset ? 0 : refs - 1,
                                                      memory_order_relaxed, memory_order_relaxed))
            ;
        /* A reset ends what is there, even if somebody has made it anew already. */
        if (reset ||
            (hed_next(self, cuDevicePrimaryCtxGetState, &get) == CUDA_SUCCESS && !active)) {
            quota_drop_all(self, all);
            quota_pools_settle(self, d, false);
            return r;
        }
    }
    quota_put_all(self->state, all);
    return r;
}

#define PRIMARY(call, reset)                                                \
    CUresult quota_##call(struct hed_layer *self, struct hed_##call *a)     \
    {                                                                       \
        struct quota_charges all;                                           \
        struct quota_device *d = primary_ending(self, a->dev, reset, &all); \
        const CUresult r = hed_next(self, call, a);                         \
                                                                            \
        return primary_ended(self, d, a->dev, reset, &all, r);              \
    }

PRIMARY(cuDevicePrimaryCtxRelease, false)
PRIMARY(cuDevicePrimaryCtxRelease_v2, false)
PRIMARY(cuDevicePrimaryCtxReset, true)
PRIMARY(cuDevicePrimaryCtxReset_v2, true)
