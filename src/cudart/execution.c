/* Execution contexts of CUDA 13: primary contexts, and green ones, which own some of a device's
 * multiprocessors. A cudaExecutionContext_t is a CUcontext; calls take it as an argument and
 * leave alone what is current.
 *
 * Invariant: `greens` has the green contexts that the runtime has made and not yet destroyed.
 */
#include <stdlib.h>

#include "base/lock.h"
#include "cudart/context.h"
#include "gen/cudart_calls.h"

struct green_entry {
    CUcontext context;
    CUgreenCtx green;
    struct green_entry *next;
};

static struct hed_lock greens_lock = HED_LOCK_INIT(HED_RANK_RUNTIME);
static struct green_entry *greens;

static CUgreenCtx
find_green(CUcontext context)
{
    CUgreenCtx found = NULL;

    hed_lock(&greens_lock);
    for (struct green_entry *e = greens; e && !found; e = e->next)
        if (e->context == context)
            found = e->green;
    hed_unlock(&greens_lock);
    return found;
}

static struct green_entry *
take_green(CUcontext context)
{
    struct green_entry *taken = NULL;

    hed_lock(&greens_lock);
    for (struct green_entry **e = &greens; *e; e = &(*e)->next)
        if ((*e)->context == context) {
            taken = *e;
            *e = taken->next;
            break;
        }
    hed_unlock(&greens_lock);
    return taken;
}

static void
keep_green(struct green_entry *e)
{
    hed_lock(&greens_lock);
    e->next = greens;
    greens = e;
    hed_unlock(&greens_lock);
}

cudaError_t
hed_rt_cudaDeviceGetExecutionCtx(const struct hed_rt_driver *cu, cudaExecutionContext_t *ctx,
                                 int device)
{
    return ctx ? hed_rt_peer(device, (CUcontext *)ctx) : cudaErrorInvalidValue;
}

cudaError_t
hed_rt_cudaGreenCtxCreate(const struct hed_rt_driver *cu, cudaExecutionContext_t *phCtx,
                          cudaDevResourceDesc_t desc, int device, unsigned int flags)
{
    struct green_entry *e;
    CUresult r;

    if (!phCtx || !desc || flags)
        return cudaErrorInvalidValue;
    e = calloc(1, sizeof *e);
    if (!e)
        return cudaErrorMemoryAllocation;
    r = cu->cuGreenCtxCreate(&e->green, (CUdevResourceDesc)desc, device,
                             CU_GREEN_CTX_DEFAULT_STREAM);
    if (r == CUDA_SUCCESS) {
        r = cu->cuCtxFromGreenCtx(&e->context, e->green);
        if (r != CUDA_SUCCESS)
            (void)cu->cuGreenCtxDestroy(e->green);
    }
    if (r != CUDA_SUCCESS) {
        free(e);
        return (cudaError_t)r;
    }
    *phCtx = (cudaExecutionContext_t)e->context;
    keep_green(e);
    return cudaSuccess;
}

/* Primary contexts end otherwise: with cudaDeviceReset(). A call that fails may be made again. */
cudaError_t
hed_rt_cudaExecutionCtxDestroy(const struct hed_rt_driver *cu, cudaExecutionContext_t ctx)
{
    struct green_entry *e = ctx ? take_green((CUcontext)ctx) : NULL;
    CUresult r;

    if (!e)
        return cudaErrorInvalidValue;
    r = cu->cuGreenCtxDestroy(e->green);
    if (r == CUDA_SUCCESS)
        free(e);
    else
        keep_green(e);
    return (cudaError_t)r;
}

cudaError_t
hed_rt_cudaExecutionCtxStreamCreate(const struct hed_rt_driver *cu, cudaStream_t *phStream,
                                    cudaExecutionContext_t ctx, unsigned int flags, int priority)
{
    CUcontext popped;
    CUgreenCtx green;
    CUresult r;

    if (!ctx || !phStream)
        return cudaErrorInvalidValue;
    green = find_green((CUcontext)ctx);
    if (green)
        return (cudaError_t)cu->cuGreenCtxStreamCreate((CUstream *)phStream, green, flags,
                                                       priority);
    r = cu->cuCtxPushCurrent_v2((CUcontext)ctx);
    if (r != CUDA_SUCCESS)
        return (cudaError_t)r;
    r = cu->cuStreamCreateWithPriority((CUstream *)phStream, flags, priority);
    (void)cu->cuCtxPopCurrent_v2(&popped);
    return (cudaError_t)r;
}

/* ---- one driver call each, which would take NULL for the current context -------------------- */

cudaError_t
hed_rt_cudaExecutionCtxGetDevice(const struct hed_rt_driver *cu, int *device,
                                 cudaExecutionContext_t ctx)
{
    return ctx ? (cudaError_t)cu->cuCtxGetDevice_v2(device, (CUcontext)ctx) : cudaErrorInvalidValue;
}

cudaError_t
hed_rt_cudaExecutionCtxGetDevResource(const struct hed_rt_driver *cu, cudaExecutionContext_t ctx,
                                      void *resource, cudaDevResourceType type)
{
    return ctx ? (cudaError_t)cu->cuCtxGetDevResource((CUcontext)ctx, resource,
                                                      (CUdevResourceType)type)
               : cudaErrorInvalidValue;
}

cudaError_t
hed_rt_cudaExecutionCtxGetId(const struct hed_rt_driver *cu, cudaExecutionContext_t ctx,
                             unsigned long long *ctxId)
{
    return ctx ? (cudaError_t)cu->cuCtxGetId((CUcontext)ctx, ctxId) : cudaErrorInvalidValue;
}

cudaError_t
hed_rt_cudaExecutionCtxSynchronize(const struct hed_rt_driver *cu, cudaExecutionContext_t ctx)
{
    return ctx ? (cudaError_t)cu->cuCtxSynchronize_v2((CUcontext)ctx) : cudaErrorInvalidValue;
}

cudaError_t
hed_rt_cudaExecutionCtxRecordEvent(const struct hed_rt_driver *cu, cudaExecutionContext_t ctx,
                                   cudaEvent_t event)
{
    return ctx ? (cudaError_t)cu->cuCtxRecordEvent((CUcontext)ctx, (CUevent)event)
               : cudaErrorInvalidValue;
}

cudaError_t
hed_rt_cudaExecutionCtxWaitEvent(const struct hed_rt_driver *cu, cudaExecutionContext_t ctx,
                                 cudaEvent_t event)
{
    return ctx ? (cudaError_t)cu->cuCtxWaitEvent((CUcontext)ctx, (CUevent)event)
               : cudaErrorInvalidValue;
}
