/* Calls about primary contexts, and about the limits and caches of any context. The errors for
 * invalid arguments, and the limits' default values and bounds, were measured on NVIDIA's driver
 * 580 (H200). */
#include "driver/context/context.h"

#include "base/number.h"

#define STACK_STEP 16ull
#define STACK_FIRST 1024ull
#define STACK_MOST (512ull << 10)
#define PRINTF_FIRST_PER_SM 65536ull
#define PRINTF_LEAST (512ull << 10)
#define PRINTF_MOST (2ull << 30)
#define HEAP_FIRST (8ull << 20)
#define HEAP_LEAST (4ull << 20)
#define LAUNCHES_FIRST 2048ull
#define LAUNCHES_LEAST 32ull
#define LAUNCHES_MOST (512ull << 10)
#define FETCH_FIRST 64ull
#define FETCH_MOST 128ull
#define L2_PARTS 16ull /* the share of the cache for persisting lines is counted in sixteenths */

/* ---- primary contexts ------------------------------------------------------------------------ */

static CUresult
soft_cuDevicePrimaryCtxRetain(struct hed_layer *self, struct hed_cuDevicePrimaryCtxRetain *a)
{
    struct hed_device *dev;
    struct hed_context *c;
    CUresult r = hed_device_get(self, a->dev, &dev);

    if (r == CUDA_SUCCESS && !a->pctx)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        r = hed_primary_retain(dev, &c);
    if (r == CUDA_SUCCESS)
        *a->pctx = hed_context_handle(c);
    return r;
}

static CUresult
release_primary(struct hed_layer *self, CUdevice ordinal)
{
    struct hed_device *dev;
    const CUresult r = hed_device_get(self, ordinal, &dev);

    return r == CUDA_SUCCESS ? hed_primary_release(dev) : r;
}

static CUresult
soft_cuDevicePrimaryCtxRelease(struct hed_layer *self, struct hed_cuDevicePrimaryCtxRelease *a)
{
    return release_primary(self, a->dev);
}

static CUresult
soft_cuDevicePrimaryCtxRelease_v2(struct hed_layer *self,
                                  struct hed_cuDevicePrimaryCtxRelease_v2 *a)
{
    return release_primary(self, a->dev);
}

static CUresult
reset_primary(struct hed_layer *self, CUdevice ordinal)
{
    struct hed_device *dev;
    const CUresult r = hed_device_get(self, ordinal, &dev);

    return r == CUDA_SUCCESS ? hed_primary_reset(dev) : r;
}

static CUresult
soft_cuDevicePrimaryCtxReset(struct hed_layer *self, struct hed_cuDevicePrimaryCtxReset *a)
{
    return reset_primary(self, a->dev);
}

static CUresult
soft_cuDevicePrimaryCtxReset_v2(struct hed_layer *self, struct hed_cuDevicePrimaryCtxReset_v2 *a)
{
    return reset_primary(self, a->dev);
}

/* Before version 11 the flags could not be changed while the context was active. */
static CUresult
set_flags(struct hed_layer *self, CUdevice ordinal, unsigned flags, bool also_when_active)
{
    struct hed_driver *d = hed_driver_of(self);
    const unsigned schedule = flags & CU_CTX_SCHED_MASK;
    const unsigned known = CU_CTX_FLAGS_MASK & ~CU_CTX_MAP_HOST;
    struct hed_device *dev;
    CUresult r = hed_device_get(self, ordinal, &dev);

    if (r == CUDA_SUCCESS && ((flags & ~known) || (schedule & (schedule - 1))))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r != CUDA_SUCCESS)
        return r;
    hed_lock(&d->contexts_lock);
    if (hed_context_alive(dev->primary) && !also_when_active) {
        r = CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
    } else {
        dev->primary->flags = flags;
        dev->primary->state_flags = flags;
    }
    hed_unlock(&d->contexts_lock);
    return r;
}

static CUresult
soft_cuDevicePrimaryCtxSetFlags(struct hed_layer *self, struct hed_cuDevicePrimaryCtxSetFlags *a)
{
    return set_flags(self, a->dev, a->flags, false);
}

static CUresult
soft_cuDevicePrimaryCtxSetFlags_v2(struct hed_layer *self,
                                   struct hed_cuDevicePrimaryCtxSetFlags_v2 *a)
{
    return set_flags(self, a->dev, a->flags, true);
}

static CUresult
soft_cuDevicePrimaryCtxGetState(struct hed_layer *self, struct hed_cuDevicePrimaryCtxGetState *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_device *dev;
    CUresult r = hed_device_get(self, a->dev, &dev);

    if (r == CUDA_SUCCESS && (!a->flags || !a->active))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r != CUDA_SUCCESS)
        return r;
    hed_lock(&d->contexts_lock);
    *a->flags = dev->primary->state_flags;
    *a->active = hed_context_alive(dev->primary);
    hed_unlock(&d->contexts_lock);
    return CUDA_SUCCESS;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static uint64_t
device_attribute(const struct hed_context *c, CUdevice_attribute a)
{
    const int value = c->device->info.profile.attributes[a];

    return value > 0 ? (uint64_t)value : 0;
}

static void
store_limit(struct hed_context *c, CUlimit limit, uint64_t value)
{
    /* Relaxed: a launch on another thread uses the old value or the new one. */
    atomic_store_explicit(&c->limits[limit], value, memory_order_relaxed);
}

void
hed_context_default_limits(struct hed_context *c)
{
    const uint64_t l2 = device_attribute(c, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    const uint64_t printf_size =
        device_attribute(c, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) * PRINTF_FIRST_PER_SM;

    for (int i = 0; i < HED_LIMITS; i++)
        store_limit(c, (CUlimit)i, 0);
    store_limit(c, CU_LIMIT_STACK_SIZE, STACK_FIRST);
    store_limit(c, CU_LIMIT_PRINTF_FIFO_SIZE, printf_size < 1u << 20 ? 1u << 20 : printf_size);
    store_limit(c, CU_LIMIT_MALLOC_HEAP_SIZE, HEAP_FIRST);
    store_limit(c, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2);
    store_limit(c, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, LAUNCHES_FIRST);
    store_limit(c, CU_LIMIT_MAX_L2_FETCH_GRANULARITY, FETCH_FIRST);
    if (device_attribute(c, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE))
        store_limit(c, CU_LIMIT_PERSISTING_L2_CACHE_SIZE, l2 / L2_PARTS * 3);
    store_limit(c, CU_LIMIT_SHMEM_SIZE,
                device_attribute(c, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
}

/* Does this device have the limit? */
static CUresult
check_limit_id(const struct hed_context *c, CUlimit limit)
{
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (limit == CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED ||
        (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH && c->device->info.profile.major >= 9) ||
        (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE &&
         !device_attribute(c, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE)))
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    return CUDA_SUCCESS;
}

/* The largest stack for which a device full of threads has memory. */
static uint64_t
most_stack(const struct hed_context *c)
{
    const uint64_t threads =
        device_attribute(c, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
        device_attribute(c, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    const uint64_t share = threads ? c->device->info.profile.memory / threads : STACK_MOST;

    return share < STACK_MOST ? share : STACK_MOST;
}

static CUresult
set_persisting(struct hed_context *c, uint64_t value)
{
    const uint64_t part = device_attribute(c, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) / L2_PARTS;

    if (value > device_attribute(c, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE))
        return CUDA_ERROR_INVALID_VALUE;
    store_limit(c, CU_LIMIT_PERSISTING_L2_CACHE_SIZE, part ? hed_round_up(value, part) : value);
    return CUDA_SUCCESS;
}

static CUresult
set_limit(struct hed_context *c, CUlimit limit, uint64_t value)
{
    switch (limit) {
    case CU_LIMIT_STACK_SIZE:
        if (value > most_stack(c))
            return CUDA_ERROR_INVALID_VALUE;
        store_limit(c, limit, hed_round_up(value, STACK_STEP));
        return CUDA_SUCCESS;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
        store_limit(c, limit, hed_clamp(value, PRINTF_LEAST, PRINTF_MOST));
        return CUDA_SUCCESS;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
        store_limit(c, limit, hed_clamp(value, HEAP_LEAST, c->device->info.profile.memory / 8));
        return CUDA_SUCCESS;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
        store_limit(c, limit, hed_clamp(value, 2, 24));
        return CUDA_SUCCESS;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
        store_limit(c, limit, hed_clamp(value, LAUNCHES_LEAST, LAUNCHES_MOST));
        return CUDA_SUCCESS;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
        if (value > FETCH_MOST)
            return CUDA_ERROR_INVALID_VALUE;
        store_limit(c, limit, value);
        return CUDA_SUCCESS;
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
        return set_persisting(c, value);
    default:
        return CUDA_ERROR_NOT_PERMITTED; /* read-only: CU_LIMIT_SHMEM_SIZE, CU_LIMIT_CIG_ENABLED */
    }
}

static CUresult
soft_cuCtxSetLimit(struct hed_layer *self, struct hed_cuCtxSetLimit *a)
{
    struct hed_context *c;
    CUresult r = hed_current(self, &c);
    void *m;

    if (r == CUDA_SUCCESS)
        r = check_limit_id(c, a->limit);
    if (r == CUDA_SUCCESS)
        r = set_limit(c, a->limit, a->value);
    if (r == CUDA_SUCCESS)
        r = hed_machine_of(c, &m)->context_limit(
            m, c, a->limit, atomic_load_explicit(&c->limits[a->limit], memory_order_relaxed));
    return r;
}

static CUresult
soft_cuCtxGetLimit(struct hed_layer *self, struct hed_cuCtxGetLimit *a)
{
    struct hed_context *c;
    CUresult r = hed_current(self, &c);

    if (r == CUDA_SUCCESS && !a->pvalue)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        r = check_limit_id(c, a->limit);
    if (r == CUDA_SUCCESS)
        *a->pvalue = atomic_load_explicit(&c->limits[a->limit], memory_order_relaxed);
    return r;
}

/* ---- caches ---------------------------------------------------------------------------------- */

/* NOT_INITIALIZED comes before INVALID_VALUE, and both come before the context is looked at. */
static CUresult
check_answer(struct hed_layer *self, const void *answer)
{
    const CUresult r = hed_driver_ready(hed_driver_of(self));

    return r == CUDA_SUCCESS && !answer ? CUDA_ERROR_INVALID_VALUE : r;
}

static CUresult
soft_cuCtxGetCacheConfig(struct hed_layer *self, struct hed_cuCtxGetCacheConfig *a)
{
    struct hed_context *c;
    CUresult r = check_answer(self, a->pconfig);

    if (r == CUDA_SUCCESS)
        r = hed_current(self, &c);
    if (r == CUDA_SUCCESS)
        *a->pconfig = (CUfunc_cache)atomic_load_explicit(&c->cache_config, memory_order_relaxed);
    return r;
}

static CUresult
soft_cuCtxSetCacheConfig(struct hed_layer *self, struct hed_cuCtxSetCacheConfig *a)
{
    struct hed_context *c;
    CUresult r = hed_current(self, &c);

    if (r == CUDA_SUCCESS && (unsigned)a->config > CU_FUNC_CACHE_PREFER_EQUAL)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        atomic_store_explicit(&c->cache_config, (int)a->config, memory_order_relaxed);
    return r;
}

static CUresult
soft_cuCtxGetSharedMemConfig(struct hed_layer *self, struct hed_cuCtxGetSharedMemConfig *a)
{
    struct hed_context *c;
    CUresult r = check_answer(self, a->pConfig);

    if (r == CUDA_SUCCESS)
        r = hed_current(self, &c);
    if (r == CUDA_SUCCESS)
        *a->pConfig = c->shared_config;
    return r;
}

/* Shared memory banks have had one width since Maxwell: the setting is accepted and has no
 * effect. */
static CUresult
soft_cuCtxSetSharedMemConfig(struct hed_layer *self, struct hed_cuCtxSetSharedMemConfig *a)
{
    struct hed_context *c;
    const CUresult r = hed_current(self, &c);

    if (r == CUDA_SUCCESS && (unsigned)a->config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    return r;
}

/* There is no cache with persisting lines. */
static CUresult
soft_cuCtxResetPersistingL2Cache(struct hed_layer *self, struct hed_cuCtxResetPersistingL2Cache *a)
{
    struct hed_context *c;

    (void)a;
    return hed_current(self, &c);
}

const struct hed_cuda_ops hed_calls_primary = {
    .cuDevicePrimaryCtxRetain = soft_cuDevicePrimaryCtxRetain,
    .cuDevicePrimaryCtxRelease = soft_cuDevicePrimaryCtxRelease,
    .cuDevicePrimaryCtxRelease_v2 = soft_cuDevicePrimaryCtxRelease_v2,
    .cuDevicePrimaryCtxReset = soft_cuDevicePrimaryCtxReset,
    .cuDevicePrimaryCtxReset_v2 = soft_cuDevicePrimaryCtxReset_v2,
    .cuDevicePrimaryCtxSetFlags = soft_cuDevicePrimaryCtxSetFlags,
    .cuDevicePrimaryCtxSetFlags_v2 = soft_cuDevicePrimaryCtxSetFlags_v2,
    .cuDevicePrimaryCtxGetState = soft_cuDevicePrimaryCtxGetState,
    .cuCtxSetLimit = soft_cuCtxSetLimit,
    .cuCtxGetLimit = soft_cuCtxGetLimit,
    .cuCtxGetCacheConfig = soft_cuCtxGetCacheConfig,
    .cuCtxSetCacheConfig = soft_cuCtxSetCacheConfig,
    .cuCtxGetSharedMemConfig = soft_cuCtxGetSharedMemConfig,
    .cuCtxSetSharedMemConfig = soft_cuCtxSetSharedMemConfig,
    .cuCtxResetPersistingL2Cache = soft_cuCtxResetPersistingL2Cache,
};
