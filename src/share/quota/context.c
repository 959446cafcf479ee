/* Memory that ends with its context (share/quota/engine.h). Its charges are taken out before the
 * call, because its addresses may be reused right after, and put back if the context did not end.
 */
#include "share/quota/engine.h"

CUresult
hed_quota_end_all(struct hed_layer *self, const struct quota_call *c, struct quota_charges *all)
{
    const CUresult r = quota_next(self, c);

    if (r == CUDA_SUCCESS)
        hed_quota_drop_all(self, all);
    else
        hed_quota_put_all(self->state, all);
    return r;
}

static CUresult
quota_do_context_end(struct hed_layer *self, const struct quota_call *c)
{
    struct quota_charges all;

    hed_quota_take_all(self->state, (CUcontext)c->key, &all);
    return hed_quota_end_all(self, c, &all);
}

HED_CUDA_MEMORY_CONTEXT_END(QUOTA_CALL)

/* A context that was attached more than once lives on. The driver is asked afterwards. */
static CUresult
quota_do_context_detach(struct hed_layer *self, const struct quota_call *c)
{
    const CUcontext context = (CUcontext)c->key;
    const CUresult r = quota_next(self, c);
    unsigned version = 0;

    if (r == CUDA_SUCCESS && context &&
        hed_call(self->next, cuCtxGetApiVersion, .ctx = context, .version = &version) ==
            CUDA_ERROR_INVALID_CONTEXT) {
        struct quota_charges all;

        hed_quota_take_all(self->state, context, &all);
        hed_quota_drop_all(self, &all);
    }
    return r;
}

HED_CUDA_MEMORY_CONTEXT_DETACH(QUOTA_CALL)

/* ---- primary contexts ------------------------------------------------------------------------ */

static CUresult
quota_do_primary_retain(struct hed_layer *self, const struct quota_call *c)
{
    const CUresult r = quota_next(self, c);
    struct quota_device *d =
        r == CUDA_SUCCESS && c->out.at ? hed_quota_device(self, c->device) : NULL;

    if (d) {
        atomic_store_explicit(&d->primary, (CUcontext)hed_place_get(c->out), memory_order_relaxed);
        atomic_fetch_add_explicit(&d->primary_refs, 1, memory_order_relaxed);
    }
    return r;
}

HED_CUDA_MEMORY_PRIMARY_RETAIN(QUOTA_CALL)

/* Before the call: takes out the charges if the primary context is about to end. */
static struct quota_device *
primary_ending(struct hed_layer *self, CUdevice dev, bool reset, struct quota_charges *all)
{
    struct quota_device *d = hed_quota_device(self, dev);
    const bool last =
        d && (reset || atomic_load_explicit(&d->primary_refs, memory_order_relaxed) <= 1);

    hed_quota_take_all(self->state,
                       last ? atomic_load_explicit(&d->primary, memory_order_relaxed) : NULL, all);
    return d;
}

static CUresult
primary_ended(struct hed_layer *self, struct quota_device *d, CUdevice dev, bool reset,
              struct quota_charges *all, CUresult r)
{
    unsigned flags = 0;
    int active = 1;

    if (d && r == CUDA_SUCCESS) {
        uint32_t refs = atomic_load_explicit(&d->primary_refs, memory_order_relaxed);

        while (refs != 0 &&
               !atomic_compare_exchange_weak_explicit(&d->primary_refs, &refs, reset ? 0 : refs - 1,
                                                      memory_order_relaxed, memory_order_relaxed))
            ;
        /* A reset ends the context, even if another thread has retained a new one already. */
        if (reset || (hed_call(self->next, cuDevicePrimaryCtxGetState, .dev = dev, .flags = &flags,
                               .active = &active) == CUDA_SUCCESS &&
                      !active)) {
            hed_quota_drop_all(self, all);
            hed_quota_pools_settle(self, d, false);
            return r;
        }
    }
    hed_quota_put_all(self->state, all);
    return r;
}

static CUresult
end_primary(struct hed_layer *self, const struct quota_call *c, bool reset)
{
    struct quota_charges all;
    struct quota_device *d = primary_ending(self, c->device, reset, &all);
    const CUresult r = quota_next(self, c);

    return primary_ended(self, d, c->device, reset, &all, r);
}

static CUresult
quota_do_primary_release(struct hed_layer *self, const struct quota_call *c)
{
    return end_primary(self, c, false);
}

HED_CUDA_MEMORY_PRIMARY_RELEASE(QUOTA_CALL)

static CUresult
quota_do_primary_reset(struct hed_layer *self, const struct quota_call *c)
{
    return end_primary(self, c, true);
}

HED_CUDA_MEMORY_PRIMARY_RESET(QUOTA_CALL)
