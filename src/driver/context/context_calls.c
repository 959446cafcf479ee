/* Calls about contexts. The errors for invalid arguments were measured on NVIDIA's driver 580. */
#include "driver/context/context.h"

#include "core/stats.h"
#include "driver/stream/stream.h"
#include "driver/stream/work.h"

#define PRIORITY_LEAST 0
#define PRIORITY_GREATEST (-5) /* the range of every device since Volta */

/* The context that a call names. NULL is the current one, alive or not. */
static CUresult
named_context(struct hed_layer *self, CUcontext handle, struct hed_context **out)
{
    struct hed_driver *d = hed_driver_of(self);
    const CUresult r = hed_driver_ready(d);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_context *c = handle ? hed_context_find_inactive(d, handle) : hed_thread_context(d);

    if (!c)
        return hed_handle_kind((uintptr_t)handle) == HED_KIND_CONTEXT
                   ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                   : CUDA_ERROR_INVALID_CONTEXT;
    *out = c;
    return CUDA_SUCCESS;
}

/* The same, but the context must be alive and have no sticky error. */
static CUresult
usable_context(struct hed_layer *self, CUcontext handle, struct hed_context **out)
{
    struct hed_context *c;
    CUresult r = named_context(self, handle, &c);

    if (r == CUDA_SUCCESS && !hed_context_alive(c))
        r = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (r == CUDA_SUCCESS)
        r = hed_context_error(c);
    if (r == CUDA_SUCCESS)
        *out = c;
    return r;
}

/* For calls that a failed context still answers if it is named, but not as the current context. */
static CUresult
named_or_usable(struct hed_layer *self, CUcontext handle, struct hed_context **out)
{
    if (!handle)
        return usable_context(self, NULL, out);

    const CUresult r = named_context(self, handle, out);

    return r == CUDA_SUCCESS && !hed_context_alive(*out) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : r;
}

/* NOT_INITIALIZED takes precedence over errors in the arguments. */
static CUresult
ready_and(struct hed_layer *self, bool arguments_are_fine)
{
    const CUresult r = hed_driver_ready(hed_driver_of(self));

    if (r == CUDA_SUCCESS && !arguments_are_fine)
        return CUDA_ERROR_INVALID_VALUE;
    return r;
}

/* At most one way of waiting, and no unknown bit. */
static bool
flags_are_fine(unsigned flags)
{
    const unsigned schedule = flags & CU_CTX_SCHED_MASK;

    return (flags & ~(unsigned)CU_CTX_FLAGS_MASK) == 0 && (schedule & (schedule - 1)) == 0;
}

/* ---- created contexts ------------------------------------------------------------------------ */

static CUresult
create_context(struct hed_layer *self, CUcontext *out, unsigned flags, CUdevice ordinal)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_device *dev;
    struct hed_context *c;
    CUresult r = ready_and(self, out != NULL && flags_are_fine(flags));

    if (r == CUDA_SUCCESS)
        r = hed_device_get(self, ordinal, &dev);
    /* NVIDIA's driver reports only CU_CTX_COREDUMP_ENABLE for a context that may dump core on
     * request. */
    if (flags & CU_CTX_USER_COREDUMP_ENABLE)
        flags = (flags & ~(unsigned)CU_CTX_USER_COREDUMP_ENABLE) | CU_CTX_COREDUMP_ENABLE;
    if (r == CUDA_SUCCESS)
        r = hed_context_create(dev, flags, &c);
    if (r != CUDA_SUCCESS)
        return r;
    if (!hed_thread_push(d, c)) {
        (void)hed_context_destroy(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = hed_context_handle(c);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuCtxCreate(struct hed_layer *self, struct hed_cuCtxCreate *a)
{
    return create_context(self, a->pctx, a->flags, a->dev);
}

static CUresult
soft_cuCtxCreate_v2(struct hed_layer *self, struct hed_cuCtxCreate_v2 *a)
{
    return create_context(self, a->pctx, a->flags, a->dev);
}

/* Execution affinity needs NVIDIA's MPS; without it: "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY" (CUDA
 * Driver API, cuCtxCreate). */
static CUresult
create_with(struct hed_layer *self, CUcontext *out, const CUexecAffinityParam_v1 *params, int count,
            unsigned flags, CUdevice dev)
{
    const CUresult r = ready_and(self, count >= 0 && (count == 0 || params));

    if (r != CUDA_SUCCESS)
        return r;
    if (count > 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create_context(self, out, flags, dev);
}

static CUresult
soft_cuCtxCreate_v3(struct hed_layer *self, struct hed_cuCtxCreate_v3 *a)
{
    return create_with(self, a->pctx, a->paramsArray, a->numParams, a->flags, a->dev);
}

static CUresult
soft_cuCtxCreate_v4(struct hed_layer *self, struct hed_cuCtxCreate_v4 *a)
{
    const CUctxCreateParams *p = a->ctxCreateParams;

    if (p && p->cigParams) {
        hed_stats_unsupported(HED_API_CUDA, HED_cuCtxCreate_v4, "the soft driver (graphics)");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return create_with(self, a->pctx, p ? p->execAffinityParams : NULL,
                       p ? p->numExecAffinityParams : 0, a->flags, a->dev);
}

static CUresult
destroy_context(struct hed_layer *self, CUcontext handle)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_context *c;

    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = named_context(self, handle, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (c->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    r = hed_context_destroy(c);
    /* "If ctx is current to the calling thread then ctx will also be popped from the current
     * thread's context stack" (CUDA Driver API, cuCtxDestroy). */
    if (r == CUDA_SUCCESS && hed_thread_context(d) == c)
        hed_thread_pop(d);
    return r;
}

static CUresult
soft_cuCtxDestroy(struct hed_layer *self, struct hed_cuCtxDestroy *a)
{
    return destroy_context(self, a->ctx);
}

static CUresult
soft_cuCtxDestroy_v2(struct hed_layer *self, struct hed_cuCtxDestroy_v2 *a)
{
    return destroy_context(self, a->ctx);
}

static CUresult
soft_cuCtxAttach(struct hed_layer *self, struct hed_cuCtxAttach *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_context *c;
    CUresult r = ready_and(self, a->pctx != NULL && a->flags == 0);

    if (r == CUDA_SUCCESS)
        r = usable_context(self, NULL, &c);
    if (r != CUDA_SUCCESS)
        return r;
    hed_lock(&d->contexts_lock);
    c->attaches++;
    hed_unlock(&d->contexts_lock);
    *a->pctx = hed_context_handle(c);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuCtxDetach(struct hed_layer *self, struct hed_cuCtxDetach *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_context *c;
    const CUresult r = named_context(self, a->ctx, &c);

    if (r != CUDA_SUCCESS)
        return r;
    /* "This function [...] must be the current one" of the caller (CUDA Driver API). */
    if (c != hed_thread_context(d) || !a->ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (c->primary)
        return CUDA_SUCCESS;
    hed_lock(&d->contexts_lock);

    const bool last = c->attaches <= 1;

    if (!last)
        c->attaches--;
    hed_unlock(&d->contexts_lock);
    return last ? destroy_context(self, a->ctx) : CUDA_SUCCESS;
}

/* ---- the stack ------------------------------------------------------------------------------- */

static CUresult
push_context(struct hed_layer *self, CUcontext handle)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_context *c;
    CUresult r = ready_and(self, handle != NULL);

    if (r == CUDA_SUCCESS)
        r = named_context(self, handle, &c);
    if (r == CUDA_SUCCESS && !hed_thread_push(d, c))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    return r;
}

static CUresult
soft_cuCtxPushCurrent(struct hed_layer *self, struct hed_cuCtxPushCurrent *a)
{
    return push_context(self, a->ctx);
}

static CUresult
soft_cuCtxPushCurrent_v2(struct hed_layer *self, struct hed_cuCtxPushCurrent_v2 *a)
{
    return push_context(self, a->ctx);
}

static CUresult
pop_context(struct hed_layer *self, CUcontext *out)
{
    struct hed_context *c;
    const CUresult r = named_context(self, NULL, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (out)
        *out = hed_context_handle(c);
    hed_thread_pop(hed_driver_of(self));
    return CUDA_SUCCESS;
}

static CUresult
soft_cuCtxPopCurrent(struct hed_layer *self, struct hed_cuCtxPopCurrent *a)
{
    return pop_context(self, a->pctx);
}

static CUresult
soft_cuCtxPopCurrent_v2(struct hed_layer *self, struct hed_cuCtxPopCurrent_v2 *a)
{
    return pop_context(self, a->pctx);
}

static CUresult
soft_cuCtxSetCurrent(struct hed_layer *self, struct hed_cuCtxSetCurrent *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_context *c;
    CUresult r = hed_driver_ready(d);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->ctx) {
        hed_thread_pop(d);
        return CUDA_SUCCESS;
    }
    r = named_context(self, a->ctx, &c);
    if (r == CUDA_SUCCESS && !hed_thread_set(d, c))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    return r;
}

static CUresult
soft_cuCtxGetCurrent(struct hed_layer *self, struct hed_cuCtxGetCurrent *a)
{
    const CUresult r = ready_and(self, a->pctx != NULL);

    if (r != CUDA_SUCCESS)
        return r;
    if (hed_in_callback())
        return CUDA_ERROR_NOT_PERMITTED;

    const struct hed_context *c = hed_thread_context(hed_driver_of(self));

    *a->pctx = c ? hed_context_handle(c) : NULL;
    return CUDA_SUCCESS;
}

/* ---- queries --------------------------------------------------------------------------------- */

static CUresult
get_device(struct hed_layer *self, CUdevice *out, CUcontext handle)
{
    struct hed_context *c;
    CUresult r = ready_and(self, out != NULL);

    if (r == CUDA_SUCCESS)
        r = named_context(self, handle, &c);
    if (r == CUDA_SUCCESS)
        *out = c->device->ordinal;
    return r;
}

static CUresult
soft_cuCtxGetDevice(struct hed_layer *self, struct hed_cuCtxGetDevice *a)
{
    return get_device(self, a->device, NULL);
}

static CUresult
soft_cuCtxGetDevice_v2(struct hed_layer *self, struct hed_cuCtxGetDevice_v2 *a)
{
    return get_device(self, a->device, a->ctx);
}

static CUresult
soft_cuCtxGetFlags(struct hed_layer *self, struct hed_cuCtxGetFlags *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_context *c;
    CUresult r = ready_and(self, a->flags != NULL);

    if (r == CUDA_SUCCESS)
        r = named_context(self, NULL, &c);
    if (r != CUDA_SUCCESS)
        return r;
    hed_lock(&d->contexts_lock);
    *a->flags = c->flags | (c->primary ? CU_CTX_MAP_HOST : 0);
    hed_unlock(&d->contexts_lock);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuCtxSetFlags(struct hed_layer *self, struct hed_cuCtxSetFlags *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_context *c;
    CUresult r = usable_context(self, NULL, &c);

    if (r == CUDA_SUCCESS && !flags_are_fine(a->flags))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r != CUDA_SUCCESS)
        return r;
    hed_lock(&d->contexts_lock);
    c->flags = a->flags;
    hed_unlock(&d->contexts_lock);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuCtxGetId(struct hed_layer *self, struct hed_cuCtxGetId *a)
{
    struct hed_context *c;
    CUresult r = ready_and(self, a->ctxId != NULL);

    if (r == CUDA_SUCCESS)
        r = named_or_usable(self, a->ctx, &c);
    if (r == CUDA_SUCCESS)
        *a->ctxId = hed_context_id(c);
    return r;
}

static CUresult
soft_cuCtxGetDevResource(struct hed_layer *self, struct hed_cuCtxGetDevResource *a)
{
    struct hed_context *c;
    CUresult r = ready_and(self, a->resource != NULL);

    if (r == CUDA_SUCCESS)
        r = named_or_usable(self, a->hCtx, &c);
    return r == CUDA_SUCCESS ? hed_device_resource(c->device, a->type, a->resource) : r;
}

#define API_VERSION 3020 /* the answer for all contexts since CUDA 3.2 */

static CUresult
soft_cuCtxGetApiVersion(struct hed_layer *self, struct hed_cuCtxGetApiVersion *a)
{
    struct hed_context *c;
    CUresult r = ready_and(self, a->version != NULL);

    if (r == CUDA_SUCCESS)
        r = named_or_usable(self, a->ctx, &c);
    if (r == CUDA_SUCCESS)
        *a->version = API_VERSION;
    /* Only this call answers INVALID_CONTEXT for a named context that has been destroyed. */
    return a->ctx && r == CUDA_ERROR_CONTEXT_IS_DESTROYED ? CUDA_ERROR_INVALID_CONTEXT : r;
}

static CUresult
soft_cuCtxGetStreamPriorityRange(struct hed_layer *self, struct hed_cuCtxGetStreamPriorityRange *a)
{
    struct hed_context *c;
    const CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (a->leastPriority)
        *a->leastPriority = PRIORITY_LEAST;
    if (a->greatestPriority)
        *a->greatestPriority = PRIORITY_GREATEST;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuCtxGetExecAffinity(struct hed_layer *self, struct hed_cuCtxGetExecAffinity *a)
{
    struct hed_context *c;
    CUresult r = ready_and(self, a->pExecAffinity != NULL);

    if (r == CUDA_SUCCESS)
        r = hed_current(self, &c);
    if (r != CUDA_SUCCESS)
        return r;
    if (a->type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    a->pExecAffinity->type = a->type;
    a->pExecAffinity->param.smCount.val =
        (unsigned)c->device->info.profile.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    return CUDA_SUCCESS;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static CUresult
synchronize_context(struct hed_layer *self, CUcontext handle)
{
    struct hed_context *c;
    CUresult r = usable_context(self, handle, &c);

    if (r == CUDA_SUCCESS)
        r = hed_stream_context_uncaptured(c);
    return r == CUDA_SUCCESS ? hed_context_synchronize(c) : r;
}

static CUresult
soft_cuCtxSynchronize(struct hed_layer *self, struct hed_cuCtxSynchronize *a)
{
    (void)a;
    return synchronize_context(self, NULL);
}

static CUresult
soft_cuCtxSynchronize_v2(struct hed_layer *self, struct hed_cuCtxSynchronize_v2 *a)
{
    return synchronize_context(self, a->ctx);
}

/* ---- peers ----------------------------------------------------------------------------------- */

static CUresult
peer_contexts(struct hed_layer *self, CUcontext handle, struct hed_context **mine,
              struct hed_context **peer)
{
    CUresult r = hed_current(self, mine);

    if (r != CUDA_SUCCESS)
        return r;
    if (!handle)
        return CUDA_ERROR_INVALID_CONTEXT;
    r = usable_context(self, handle, peer);
    return r;
}

/* Tells the machine that kernels may reach a peer's memory, or may no longer. */
static CUresult
tell_peers(struct hed_context *mine, enum hed_cuda_call id, void *args)
{
    void *m;

    return hed_machine_of(mine, &m)->tell(m, mine, id, args);
}

static CUresult
soft_cuCtxEnablePeerAccess(struct hed_layer *self, struct hed_cuCtxEnablePeerAccess *a)
{
    struct hed_context *mine;
    struct hed_context *peer;
    CUresult r = peer_contexts(self, a->peerContext, &mine, &peer);

    if (r != CUDA_SUCCESS)
        return r;
    if (a->Flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (mine->device == peer->device)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;

    const uint64_t bit = 1ull << peer->device->ordinal;

    /* Relaxed: the program orders this call and later uses of the memory itself. */
    if (atomic_fetch_or_explicit(&mine->peers, bit, memory_order_relaxed) & bit)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    r = tell_peers(mine, HED_cuCtxEnablePeerAccess, a);
    if (r != CUDA_SUCCESS)
        atomic_fetch_and_explicit(&mine->peers, ~bit, memory_order_relaxed);
    return r;
}

static CUresult
soft_cuCtxDisablePeerAccess(struct hed_layer *self, struct hed_cuCtxDisablePeerAccess *a)
{
    struct hed_context *mine;
    struct hed_context *peer;
    const CUresult r = peer_contexts(self, a->peerContext, &mine, &peer);

    if (r != CUDA_SUCCESS)
        return r;

    const uint64_t bit = 1ull << peer->device->ordinal;

    if (!(atomic_fetch_and_explicit(&mine->peers, ~bit, memory_order_relaxed) & bit))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    return tell_peers(mine, HED_cuCtxDisablePeerAccess, a);
}

const struct hed_cuda_ops hed_calls_context = {
    .cuCtxCreate = soft_cuCtxCreate,
    .cuCtxCreate_v2 = soft_cuCtxCreate_v2,
    .cuCtxCreate_v3 = soft_cuCtxCreate_v3,
    .cuCtxCreate_v4 = soft_cuCtxCreate_v4,
    .cuCtxDestroy = soft_cuCtxDestroy,
    .cuCtxDestroy_v2 = soft_cuCtxDestroy_v2,
    .cuCtxAttach = soft_cuCtxAttach,
    .cuCtxDetach = soft_cuCtxDetach,
    .cuCtxPushCurrent = soft_cuCtxPushCurrent,
    .cuCtxPushCurrent_v2 = soft_cuCtxPushCurrent_v2,
    .cuCtxPopCurrent = soft_cuCtxPopCurrent,
    .cuCtxPopCurrent_v2 = soft_cuCtxPopCurrent_v2,
    .cuCtxSetCurrent = soft_cuCtxSetCurrent,
    .cuCtxGetCurrent = soft_cuCtxGetCurrent,
    .cuCtxGetDevice = soft_cuCtxGetDevice,
    .cuCtxGetDevice_v2 = soft_cuCtxGetDevice_v2,
    .cuCtxGetFlags = soft_cuCtxGetFlags,
    .cuCtxSetFlags = soft_cuCtxSetFlags,
    .cuCtxGetId = soft_cuCtxGetId,
    .cuCtxGetDevResource = soft_cuCtxGetDevResource,
    .cuCtxGetApiVersion = soft_cuCtxGetApiVersion,
    .cuCtxGetStreamPriorityRange = soft_cuCtxGetStreamPriorityRange,
    .cuCtxGetExecAffinity = soft_cuCtxGetExecAffinity,
    .cuCtxSynchronize = soft_cuCtxSynchronize,
    .cuCtxSynchronize_v2 = soft_cuCtxSynchronize_v2,
    .cuCtxEnablePeerAccess = soft_cuCtxEnablePeerAccess,
    .cuCtxDisablePeerAccess = soft_cuCtxDisablePeerAccess,
};
