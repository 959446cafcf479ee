/* Functions: their attributes, and how many of their blocks fit on a device. */
#include <stdlib.h>

#include "core/stats.h"
#include "driver/module/image.h"
#include "driver/module/module.h"
#include "driver/module/occupancy.h"

#define PORTABLE_CLUSTER 8 /* blocks that every device with clusters accepts */
#define LARGEST_CLUSTER 16 /* if the program allows it */

/* ---- attributes ------------------------------------------------------------------------------ */

static int
load_setting(const _Atomic int *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static uint32_t
shared_default(const struct hed_profile *p)
{
    return hed_profile_number(p, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152);
}

uint32_t
hed_dynamic_shared_max(const struct hed_code_kernel *k, const struct hed_profile *p,
                       const struct hed_settings *s)
{
    const int set = load_setting(&s->max_dynamic_shared);
    const uint32_t limit = shared_default(p);

    if (set >= 0)
        return (uint32_t)set;
    return k->shared < limit ? limit - k->shared : 0;
}

static int
max_threads(const struct hed_code_kernel *k, const struct hed_profile *p)
{
    const uint32_t device = hed_profile_number(p, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024);

    return (int)(k->max_threads && k->max_threads < device ? k->max_threads : device);
}

/* The cluster size that is compiled in or that the program has set. */
static int
required_cluster(const struct hed_code_kernel *k, const struct hed_settings *s, int i)
{
    return k->cluster[0] ? (int)k->cluster[i] : load_setting(&s->cluster[i]);
}

CUresult
hed_attribute_get(const struct hed_code_kernel *k, const struct hed_profile *p,
                  const struct hed_settings *s, CUfunction_attribute a, int *out)
{
    const int values[CU_FUNC_ATTRIBUTE_MAX] = {
        [CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = max_threads(k, p),
        [CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = (int)k->shared,
        [CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES] = (int)k->constant,
        [CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = (int)k->local,
        [CU_FUNC_ATTRIBUTE_NUM_REGS] = (int)k->registers,
        [CU_FUNC_ATTRIBUTE_PTX_VERSION] = (int)k->ptx_version,
        [CU_FUNC_ATTRIBUTE_BINARY_VERSION] = (int)k->binary_version,
        [CU_FUNC_ATTRIBUTE_CACHE_MODE_CA] = 0,
        [CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = (int)hed_dynamic_shared_max(k, p, s),
        [CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = load_setting(&s->carveout),
        [CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET] = k->must_have_cluster,
        [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = required_cluster(k, s, 0),
        [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] = required_cluster(k, s, 1),
        [CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH] = required_cluster(k, s, 2),
        [CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] =
            load_setting(&s->nonportable_cluster),
        [CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE] = load_setting(&s->cluster_policy),
    };

    if (!out || (unsigned)a >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *out = values[a];
    return CUDA_SUCCESS;
}

static CUresult
put_setting(_Atomic int *where, int value, int lowest, int highest)
{
    if (value < lowest || value > highest)
        return CUDA_ERROR_INVALID_VALUE;
    atomic_store_explicit(where, value, memory_order_relaxed);
    return CUDA_SUCCESS;
}

CUresult
hed_attribute_set(const struct hed_code_kernel *k, const struct hed_profile *p,
                  struct hed_settings *s, CUfunction_attribute a, int value)
{
    const uint32_t most = hed_profile_number(
        p, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, shared_default(p));

    switch (a) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return put_setting(&s->max_dynamic_shared, value, 0,
                           most > k->shared ? (int)(most - k->shared) : 0);
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return put_setting(&s->carveout, value, -1, 100);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        /* "If the value is set during compile time, it cannot be set at runtime. Setting the value
         * at runtime will return CUDA_ERROR_NOT_PERMITTED." (cuda.h) */
        if (k->cluster[0])
            return CUDA_ERROR_NOT_PERMITTED;
        return put_setting(&s->cluster[a - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH], value, 0,
                           LARGEST_CLUSTER);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        return put_setting(&s->nonportable_cluster, value != 0, 0, 1);
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return put_setting(&s->cluster_policy, value, CU_CLUSTER_SCHEDULING_POLICY_DEFAULT,
                           CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult
soft_cuFuncGetAttribute(struct hed_layer *self, struct hed_cuFuncGetAttribute *a)
{
    struct hed_function *f;
    CUresult r = hed_function_get(self, a->hfunc, &f);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_attribute_get(hed_function_kernel(f), hed_function_profile(f), f->settings, a->attrib,
                          a->pi);
    hed_object_put(&f->object);
    return r;
}

static CUresult
soft_cuFuncSetAttribute(struct hed_layer *self, struct hed_cuFuncSetAttribute *a)
{
    struct hed_function *f;
    CUresult r = hed_function_get(self, a->hfunc, &f);

    if (r != CUDA_SUCCESS)
        return r;

    const struct hed_code_kernel *k = hed_function_kernel(f);
    const struct hed_profile *p = hed_function_profile(f);
    int before = 0, after = 0;

    (void)hed_attribute_get(k, p, f->settings, a->attrib, &before);
    r = hed_attribute_set(k, p, f->settings, a->attrib, a->value);
    (void)hed_attribute_get(k, p, f->settings, a->attrib, &after);
    /* Programs set the same value again and again, before every launch. */
    if (r == CUDA_SUCCESS && before != after)
        r = f->module->driver->machine->function_set(f->module->driver->machine_state, f, a->attrib,
                                                     a->value);
    hed_object_put(&f->object);
    return r;
}

/* The machine's answer counts, since it knows its device. */
static CUresult
tell_machine(struct hed_function *f, enum hed_cuda_call id, void *args)
{
    const struct hed_driver *d = f->module->driver;

    return d->machine->tell(d->machine_state, f->module->ctx, id, args);
}

static CUresult
soft_cuFuncSetCacheConfig(struct hed_layer *self, struct hed_cuFuncSetCacheConfig *a)
{
    struct hed_function *f;
    CUresult r = hed_function_get(self, a->hfunc, &f);

    if (r != CUDA_SUCCESS)
        return r;
    r = put_setting(&f->settings->cache_config, (int)a->config, CU_FUNC_CACHE_PREFER_NONE,
                    CU_FUNC_CACHE_PREFER_EQUAL);
    if (r == CUDA_SUCCESS)
        r = tell_machine(f, HED_cuFuncSetCacheConfig,
                         &(struct hed_cuFuncSetCacheConfig){f->handle, a->config});
    hed_object_put(&f->object);
    return r;
}

/* "Deprecated": the bank size of shared memory is fixed since compute capability 5.0. */
static CUresult
soft_cuFuncSetSharedMemConfig(struct hed_layer *self, struct hed_cuFuncSetSharedMemConfig *a)
{
    struct hed_function *f;
    CUresult r = hed_function_get(self, a->hfunc, &f);

    if (r != CUDA_SUCCESS)
        return r;
    if ((unsigned)a->config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        r = tell_machine(f, HED_cuFuncSetSharedMemConfig,
                         &(struct hed_cuFuncSetSharedMemConfig){f->handle, a->config});
    hed_object_put(&f->object);
    return r;
}

/* ---- properties ------------------------------------------------------------------------------ */

static CUresult
soft_cuFuncGetModule(struct hed_layer *self, struct hed_cuFuncGetModule *a)
{
    struct hed_function *f;

    if (!a->hmod)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = hed_function_get(self, a->hfunc, &f);

    if (r != CUDA_SUCCESS)
        return r;
    *a->hmod = (CUmodule)(uintptr_t)f->module->object.handle;
    hed_object_put(&f->object);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuFuncGetName(struct hed_layer *self, struct hed_cuFuncGetName *a)
{
    struct hed_function *f;

    if (!a->name)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = hed_function_get(self, a->hfunc, &f);

    if (r != CUDA_SUCCESS)
        return r;
    *a->name = hed_function_kernel(f)->name;
    hed_object_put(&f->object);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuFuncGetParamInfo(struct hed_layer *self, struct hed_cuFuncGetParamInfo *a)
{
    struct hed_function *f;

    if (!a->paramOffset)
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = hed_function_get(self, a->func, &f);

    if (r != CUDA_SUCCESS)
        return r;

    const struct hed_code_kernel *k = hed_function_kernel(f);

    if (a->paramIndex < k->param_count) {
        *a->paramOffset = k->params[a->paramIndex].offset;
        if (a->paramSize)
            *a->paramSize = k->params[a->paramIndex].size;
    } else {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    hed_object_put(&f->object);
    return r;
}

static CUresult
soft_cuFuncIsLoaded(struct hed_layer *self, struct hed_cuFuncIsLoaded *a)
{
    struct hed_function *f;

    if (!a->state)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = hed_function_get(self, a->function, &f);

    if (r != CUDA_SUCCESS)
        return r;
    /* Relaxed: nothing else depends on it. */
    *a->state = atomic_load_explicit(&f->loaded, memory_order_relaxed)
                    ? CU_FUNCTION_LOADING_STATE_LOADED
                    : CU_FUNCTION_LOADING_STATE_UNLOADED;
    hed_object_put(&f->object);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuFuncLoad(struct hed_layer *self, struct hed_cuFuncLoad *a)
{
    struct hed_function *f;
    CUresult r = hed_function_get(self, a->function, &f);

    if (r != CUDA_SUCCESS)
        return r;
    r = hed_function_prepare(f, NULL);
    hed_object_put(&f->object);
    return r;
}

/* ---- occupancy ------------------------------------------------------------------------------- */

static struct hed_need
need_of(const struct hed_function *f, uint32_t threads, uint64_t dynamic_shared)
{
    const struct hed_code_kernel *k = hed_function_kernel(f);

    return (struct hed_need){threads, k->registers, k->shared, dynamic_shared};
}

static uint32_t
blocks_that_fit(const struct hed_function *f, uint32_t threads, uint64_t dynamic_shared)
{
    const struct hed_need need = need_of(f, threads, dynamic_shared);
    const struct hed_code_kernel *k = hed_function_kernel(f);
    const struct hed_profile *p = hed_function_profile(f);

    if (dynamic_shared > hed_dynamic_shared_max(k, p, f->settings))
        return 0;
    return hed_occupancy_blocks(p, &need);
}

/* The function that a call about occupancy names. Such calls need a current context, although the
 * function has one. */
static CUresult
occupancy_function(struct hed_layer *self, CUfunction handle, struct hed_function **out)
{
    struct hed_context *c;
    const CUresult r = hed_current(self, &c);

    return r == CUDA_SUCCESS ? hed_function_or_kernel(self, handle, out) : r;
}

static CUresult
max_active(struct hed_layer *self, int *out, CUfunction handle, int threads, size_t dynamic,
           unsigned flags)
{
    struct hed_function *f;

    if (!out || threads <= 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = occupancy_function(self, handle, &f);

    if (r != CUDA_SUCCESS)
        return r;
    *out = (int)blocks_that_fit(f, (uint32_t)threads, dynamic);
    hed_object_put(&f->object);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuOccupancyMaxActiveBlocksPerMultiprocessor(
    struct hed_layer *self, struct hed_cuOccupancyMaxActiveBlocksPerMultiprocessor *a)
{
    return max_active(self, a->numBlocks, a->func, a->blockSize, a->dynamicSMemSize, 0);
}

static CUresult
soft_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    struct hed_layer *self, struct hed_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags *a)
{
    return max_active(self, a->numBlocks, a->func, a->blockSize, a->dynamicSMemSize, a->flags);
}

/* The block size that keeps most threads busy; the largest of several. The program's function says
 * how much shared memory a block of a given size needs. */
static CUresult
best_block(struct hed_layer *self, struct hed_cuOccupancyMaxPotentialBlockSizeWithFlags *a)
{
    struct hed_function *f;

    if (!a->minGridSize || !a->blockSize || a->blockSizeLimit < 0 ||
        a->flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = occupancy_function(self, a->func, &f);

    if (r != CUDA_SUCCESS)
        return r;

    const struct hed_profile *p = hed_function_profile(f);
    const int most = max_threads(hed_function_kernel(f), p);
    const int limit = a->blockSizeLimit && a->blockSizeLimit < most ? a->blockSizeLimit : most;
    const uint32_t sms = hed_profile_number(p, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
    uint32_t best_size = 0, best_blocks = 0;

    for (int at = (limit + 31) / 32 * 32; at > 0; at -= 32) {
        const int size = at < limit ? at : limit;
        const size_t dynamic = a->blockSizeToDynamicSMemSize ? a->blockSizeToDynamicSMemSize(size)
                                                             : a->dynamicSMemSize;
        const uint32_t blocks = blocks_that_fit(f, (uint32_t)size, dynamic);

        if (blocks * (uint32_t)size > best_blocks * best_size) {
            best_blocks = blocks;
            best_size = (uint32_t)size;
        }
    }
    hed_object_put(&f->object);
    *a->blockSize = (int)best_size;
    *a->minGridSize = (int)(best_blocks * sms);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuOccupancyMaxPotentialBlockSize(struct hed_layer *self,
                                      struct hed_cuOccupancyMaxPotentialBlockSize *a)
{
    return best_block(self,
                      &(struct hed_cuOccupancyMaxPotentialBlockSizeWithFlags){
                          a->minGridSize, a->blockSize, a->func, a->blockSizeToDynamicSMemSize,
                          a->dynamicSMemSize, a->blockSizeLimit, 0});
}

static CUresult
soft_cuOccupancyMaxPotentialBlockSizeWithFlags(
    struct hed_layer *self, struct hed_cuOccupancyMaxPotentialBlockSizeWithFlags *a)
{
    return best_block(self, a);
}

static CUresult
soft_cuOccupancyAvailableDynamicSMemPerBlock(struct hed_layer *self,
                                             struct hed_cuOccupancyAvailableDynamicSMemPerBlock *a)
{
    struct hed_function *f;

    if (!a->dynamicSmemSize || a->numBlocks <= 0 || a->blockSize <= 0)
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = occupancy_function(self, a->func, &f);

    if (r != CUDA_SUCCESS)
        return r;

    const struct hed_need need = need_of(f, (uint32_t)a->blockSize, 0);
    const struct hed_profile *p = hed_function_profile(f);

    if ((uint32_t)a->numBlocks > hed_occupancy_blocks(p, &need)) {
        r = CUDA_ERROR_INVALID_VALUE;
    } else {
        /* No more than a launch would allow, as on NVIDIA's driver. */
        const size_t room = hed_occupancy_shared(p, &need, (uint32_t)a->numBlocks);
        const size_t most = hed_dynamic_shared_max(hed_function_kernel(f), p, f->settings);

        *a->dynamicSmemSize = room < most ? room : most;
    }
    hed_object_put(&f->object);
    return r;
}

/* The number of blocks in the cluster that a configuration asks for; 0 if it asks for none. */
static uint32_t
cluster_blocks(const struct hed_function *f, const CUlaunchConfig *config)
{
    const struct hed_code_kernel *k = hed_function_kernel(f);
    uint32_t n =
        (uint32_t)(required_cluster(k, f->settings, 0) * required_cluster(k, f->settings, 1) *
                   required_cluster(k, f->settings, 2));

    for (unsigned i = 0; config->attrs && i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            n = config->attrs[i].value.clusterDim.x * config->attrs[i].value.clusterDim.y *
                config->attrs[i].value.clusterDim.z;
    return n;
}

/* How many blocks of the configuration the device holds at a time; 0 if it has no clusters. */
static uint32_t
blocks_at_once(const struct hed_function *f, const CUlaunchConfig *config)
{
    const struct hed_profile *p = hed_function_profile(f);
    const uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;

    if (p->major < HED_CLUSTERS_FROM || threads > 1024)
        return 0;
    return blocks_that_fit(f, (uint32_t)threads, config->sharedMemBytes) *
           hed_profile_number(p, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
}

static uint32_t
largest_cluster(const struct hed_function *f)
{
    return load_setting(&f->settings->nonportable_cluster) ? LARGEST_CLUSTER : PORTABLE_CLUSTER;
}

/* Only the device itself knows how clusters fit. False if the machine cannot answer. */
static bool
ask_machine(struct hed_function *f, enum hed_cuda_call id, void *args, CUresult *r)
{
    const struct hed_driver *d = f->module->driver;

    const CUresult answer = d->machine->call(d->machine_state, f->module->ctx, id, args);

    if (answer != CUDA_ERROR_NOT_SUPPORTED)
        *r = answer;
    return answer != CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult
soft_cuOccupancyMaxPotentialClusterSize(struct hed_layer *self,
                                        struct hed_cuOccupancyMaxPotentialClusterSize *a)
{
    struct hed_function *f;

    if (!a->clusterSize || !a->config)
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = occupancy_function(self, a->func, &f);

    if (r != CUDA_SUCCESS)
        return r;
    a->func = f->handle;
    if (ask_machine(f, HED_cuOccupancyMaxPotentialClusterSize, a, &r)) {
        hed_object_put(&f->object);
        return r;
    }

    const uint32_t blocks = blocks_at_once(f, a->config);
    uint32_t size = largest_cluster(f);

    while (size > blocks)
        size /= 2;
    *a->clusterSize = (int)size;
    hed_object_put(&f->object);
    return CUDA_SUCCESS;
}

/* A profile does not say how multiprocessors are grouped, so clusters may lie anywhere. */
static CUresult
soft_cuOccupancyMaxActiveClusters(struct hed_layer *self,
                                  struct hed_cuOccupancyMaxActiveClusters *a)
{
    struct hed_function *f;

    if (!a->numClusters || !a->config)
        return CUDA_ERROR_INVALID_VALUE;

    CUresult r = occupancy_function(self, a->func, &f);

    if (r != CUDA_SUCCESS)
        return r;

    a->func = f->handle;
    if (ask_machine(f, HED_cuOccupancyMaxActiveClusters, a, &r)) {
        hed_object_put(&f->object);
        return r;
    }

    const uint32_t size = cluster_blocks(f, a->config);

    if (size == 0)
        *a->numClusters = 0;
    else if (size > largest_cluster(f))
        r = CUDA_ERROR_INVALID_CLUSTER_SIZE;
    else
        *a->numClusters = (int)(blocks_at_once(f, a->config) / size);
    hed_object_put(&f->object);
    return r;
}

const struct hed_cuda_ops hed_calls_function = {
    .cuFuncGetAttribute = soft_cuFuncGetAttribute,
    .cuFuncSetAttribute = soft_cuFuncSetAttribute,
    .cuFuncSetCacheConfig = soft_cuFuncSetCacheConfig,
    .cuFuncSetSharedMemConfig = soft_cuFuncSetSharedMemConfig,
    .cuFuncGetModule = soft_cuFuncGetModule,
    .cuFuncGetName = soft_cuFuncGetName,
    .cuFuncGetParamInfo = soft_cuFuncGetParamInfo,
    .cuFuncIsLoaded = soft_cuFuncIsLoaded,
    .cuFuncLoad = soft_cuFuncLoad,
    .cuOccupancyMaxActiveBlocksPerMultiprocessor = soft_cuOccupancyMaxActiveBlocksPerMultiprocessor,
    .cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags =
        soft_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
    .cuOccupancyMaxPotentialBlockSize = soft_cuOccupancyMaxPotentialBlockSize,
    .cuOccupancyMaxPotentialBlockSizeWithFlags = soft_cuOccupancyMaxPotentialBlockSizeWithFlags,
    .cuOccupancyAvailableDynamicSMemPerBlock = soft_cuOccupancyAvailableDynamicSMemPerBlock,
    .cuOccupancyMaxPotentialClusterSize = soft_cuOccupancyMaxPotentialClusterSize,
    .cuOccupancyMaxActiveClusters = soft_cuOccupancyMaxActiveClusters,
};
