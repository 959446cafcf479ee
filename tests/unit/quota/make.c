/* The fake device of make.h. */
#include "unit/quota/make.h"

#include <unistd.h>

#define BASE 0x200000000000ull
#define STRIDE (1ull << 32)
#define POOL_BASE 0x300000000000ull
#define POOL ((CUmemoryPool)(uintptr_t)0x7001)

struct fake fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .pool_step = 512};
_Thread_local uintptr_t fake_context = 1;
_Thread_local CUdevice fake_device;

static void
took(int64_t n)
{
    const int64_t now = atomic_fetch_add(&fake.taken, n) + n;
    int64_t high = atomic_load(&fake.high);

    while (now > high && !atomic_compare_exchange_weak(&fake.high, &high, now))
        ;
}

static CUresult
verdict(void)
{
    atomic_fetch_add(&fake.calls, 1);
    return atomic_exchange(&fake.fail, CUDA_SUCCESS);
}

/* Takes the lowest free slot, so that addresses are used again as soon as possible. */
static CUresult
take_slot(uint64_t *slots, uint64_t base, uint64_t n, CUdeviceptr *out)
{
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

    pthread_mutex_lock(&fake.lock);
    for (uint64_t i = 0; r != CUDA_SUCCESS && i < SLOTS; i++) {
        if (slots[i] == 0) {
            slots[i] = n;
            *out = base + i * STRIDE;
            r = CUDA_SUCCESS;
        }
    }
    pthread_mutex_unlock(&fake.lock);
    return r;
}

static uint64_t
free_slot(uint64_t *slots, uint64_t base, CUdeviceptr p)
{
    uint64_t n = 0;
    const uint64_t i = (p - base) / STRIDE;

    pthread_mutex_lock(&fake.lock);
    if (p >= base && i < SLOTS) {
        n = slots[i];
        slots[i] = 0;
    }
    pthread_mutex_unlock(&fake.lock);
    return n;
}

static CUresult
take_memory(uint64_t n, CUdeviceptr *out)
{
    CUresult r = verdict();

    if (r == CUDA_SUCCESS)
        r = take_slot(fake.size, BASE, n, out);
    if (r == CUDA_SUCCESS)
        took((int64_t)n);
    return r;
}

static CUresult
fake_cuMemAlloc_v2(struct hed_layer *self, struct hed_cuMemAlloc_v2 *a)
{
    return take_memory(a->bytesize, a->dptr);
}

static CUresult
fake_cuMemAllocManaged(struct hed_layer *self, struct hed_cuMemAllocManaged *a)
{
    return take_memory(a->bytesize, a->dptr);
}

static CUresult
fake_cuMemAllocPitch_v2(struct hed_layer *self, struct hed_cuMemAllocPitch_v2 *a)
{
    *a->pPitch = (a->WidthInBytes + 511) / 512 * 512;
    return take_memory(*a->pPitch * a->Height, a->dptr);
}

static CUresult
fake_cuArray3DCreate_v2(struct hed_layer *self, struct hed_cuArray3DCreate_v2 *a)
{
    return a->pAllocateArray ? take_memory(MIB, (CUdeviceptr *)a->pHandle)
                             : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
fake_cuArrayDestroy(struct hed_layer *self, struct hed_cuArrayDestroy *a)
{
    took(-(int64_t)free_slot(fake.size, BASE, (CUdeviceptr)(uintptr_t)a->hArray));
    return CUDA_SUCCESS;
}

/* Counts the memory as free before another thread can get its slot. */
static CUresult
fake_cuMemFree_v2(struct hed_layer *self, struct hed_cuMemFree_v2 *a)
{
    const uint64_t n = free_slot(fake.size, BASE, a->dptr);

    took(-(int64_t)n);
    return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
fake_cuMemCreate(struct hed_layer *self, struct hed_cuMemCreate *a)
{
    return take_memory(a->size, (CUdeviceptr *)a->handle);
}

/* ---- the pool -------------------------------------------------------------------------------- */

static void
pool_fit(bool trim)
{
    const uint64_t step = fake.pool_step;
    const uint64_t want = (fake.pool_used + step - 1) / step * step;

    if (want > fake.pool_reserved || trim) {
        took((int64_t)want - (int64_t)fake.pool_reserved);
        fake.pool_reserved = want;
    }
}

static CUresult
pool_alloc(uint64_t n, CUdeviceptr *out)
{
    CUresult r = verdict();

    if (r == CUDA_SUCCESS)
        r = take_slot(fake.pool, POOL_BASE, n, out);
    if (r != CUDA_SUCCESS)
        return r;
    pthread_mutex_lock(&fake.lock);
    fake.pool_used += n;
    pool_fit(false);
    pthread_mutex_unlock(&fake.lock);
    return r;
}

static CUresult
fake_cuMemAllocAsync(struct hed_layer *self, struct hed_cuMemAllocAsync *a)
{
    return pool_alloc(a->bytesize, a->dptr);
}

static CUresult
fake_cuMemFreeAsync(struct hed_layer *self, struct hed_cuMemFreeAsync *a)
{
    const uint64_t n = free_slot(fake.pool, POOL_BASE, a->dptr);

    pthread_mutex_lock(&fake.lock);
    fake.pool_used -= n;
    pthread_mutex_unlock(&fake.lock);
    return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
fake_cuMemPoolTrimTo(struct hed_layer *self, struct hed_cuMemPoolTrimTo *a)
{
    pthread_mutex_lock(&fake.lock);
    pool_fit(true);
    pthread_mutex_unlock(&fake.lock);
    return CUDA_SUCCESS;
}

static CUresult
fake_cuMemPoolGetAttribute(struct hed_layer *self, struct hed_cuMemPoolGetAttribute *a)
{
    pthread_mutex_lock(&fake.lock);
    *(cuuint64_t *)a->value = fake.pool_reserved;
    pthread_mutex_unlock(&fake.lock);
    return CUDA_SUCCESS;
}

static CUresult
fake_cuDeviceGetMemPool(struct hed_layer *self, struct hed_cuDeviceGetMemPool *a)
{
    *a->pool = POOL;
    return CUDA_SUCCESS;
}

/* ---- graphs: a launch takes memory, which stays until a trim, as with NVIDIA's driver -------- */

static void
graph_fit(void)
{
    if (fake.graph_reserved < fake.graph_node) {
        took((int64_t)(fake.graph_node - fake.graph_reserved));
        fake.graph_reserved = fake.graph_node;
    }
}

static CUresult
fake_cuGraphAddMemAllocNode(struct hed_layer *self, struct hed_cuGraphAddMemAllocNode *a)
{
    fake.graph_node = a->nodeParams->bytesize;
    if (fake.graph_early)
        graph_fit();
    return CUDA_SUCCESS;
}

static CUresult
fake_cuGraphGetNodes(struct hed_layer *self, struct hed_cuGraphGetNodes *a)
{
    if (a->nodes)
        a->nodes[0] = (CUgraphNode)(uintptr_t)5;
    *a->numNodes = 1;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuGraphNodeGetType(struct hed_layer *self, struct hed_cuGraphNodeGetType *a)
{
    *a->type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuGraphMemAllocNodeGetParams(struct hed_layer *self,
                                  struct hed_cuGraphMemAllocNodeGetParams *a)
{
    *a->params_out = (CUDA_MEM_ALLOC_NODE_PARAMS_v1){.bytesize = fake.graph_node};
    a->params_out->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuGraphLaunch(struct hed_layer *self, struct hed_cuGraphLaunch *a)
{
    graph_fit();
    return CUDA_SUCCESS;
}

static CUresult
fake_cuDeviceGraphMemTrim(struct hed_layer *self, struct hed_cuDeviceGraphMemTrim *a)
{
    took(-(int64_t)fake.graph_reserved);
    fake.graph_reserved = 0;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuDeviceGetGraphMemAttribute(struct hed_layer *self,
                                  struct hed_cuDeviceGetGraphMemAttribute *a)
{
    *(cuuint64_t *)a->value = fake.graph_reserved;
    return CUDA_SUCCESS;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static CUresult
fake_cuMemGetInfo_v2(struct hed_layer *self, struct hed_cuMemGetInfo_v2 *a)
{
    *a->free = FAKE_TOTAL - (uint64_t)atomic_load(&fake.taken);
    *a->total = FAKE_TOTAL;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuDeviceTotalMem_v2(struct hed_layer *self, struct hed_cuDeviceTotalMem_v2 *a)
{
    *a->bytes = FAKE_TOTAL;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuModuleLoadData(struct hed_layer *self, struct hed_cuModuleLoadData *a)
{
    fake.module = fake.code;
    took((int64_t)fake.module + (int64_t)fake.others);
    fake.others = 0;
    *a->module = (CUmodule)(uintptr_t)0x4001;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuModuleUnload(struct hed_layer *self, struct hed_cuModuleUnload *a)
{
    took(-(int64_t)fake.module);
    fake.module = 0;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuCtxGetCurrent(struct hed_layer *self, struct hed_cuCtxGetCurrent *a)
{
    *a->pctx = (CUcontext)fake_context;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuCtxGetDevice(struct hed_layer *self, struct hed_cuCtxGetDevice *a)
{
    *a->device = fake_device;
    return fake_context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult
fake_cuCtxDestroy_v2(struct hed_layer *self, struct hed_cuCtxDestroy_v2 *a)
{
    return atomic_exchange(&fake.fail, CUDA_SUCCESS);
}

static CUresult
fake_cuDevicePrimaryCtxRetain(struct hed_layer *self, struct hed_cuDevicePrimaryCtxRetain *a)
{
    fake.primary_refs++;
    *a->pctx = (CUcontext)(uintptr_t)1;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuDevicePrimaryCtxRelease_v2(struct hed_layer *self,
                                  struct hed_cuDevicePrimaryCtxRelease_v2 *a)
{
    fake.primary_refs--;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuDevicePrimaryCtxGetState(struct hed_layer *self, struct hed_cuDevicePrimaryCtxGetState *a)
{
    *a->active = fake.primary_refs > 0;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuDeviceGetUuid_v2(struct hed_layer *self, struct hed_cuDeviceGetUuid_v2 *a)
{
    memset(a->uuid, fake.uuid + a->dev, sizeof *a->uuid);
    return CUDA_SUCCESS;
}

static nvmlReturn_t
fake_nvmlDeviceGetMemoryInfo(struct hed_layer *self, struct hed_nvmlDeviceGetMemoryInfo *a)
{
    a->memory->total = FAKE_TOTAL;
    a->memory->used = (uint64_t)atomic_load(&fake.taken);
    a->memory->free = FAKE_TOTAL - a->memory->used;
    return NVML_SUCCESS;
}

static nvmlReturn_t
fake_nvmlDeviceGetUUID(struct hed_layer *self, struct hed_nvmlDeviceGetUUID *a)
{
    const unsigned b = fake.uuid + (unsigned)(uintptr_t)a->device - 1;

    (void)snprintf(a->uuid, a->length,
                   "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b, b,
                   b, b, b, b, b, b, b, b, b, b, b, b, b, b);
    return NVML_SUCCESS;
}

/* An NVML handle is the device's number plus 1. */
static nvmlReturn_t
fake_nvmlDeviceGetMemoryInfo_v2(struct hed_layer *self, struct hed_nvmlDeviceGetMemoryInfo_v2 *a)
{
    a->memory->total = FAKE_TOTAL;
    a->memory->reserved = 24 * MIB;
    a->memory->used = (uint64_t)atomic_load(&fake.taken);
    a->memory->free = FAKE_TOTAL - a->memory->used - a->memory->reserved;
    return NVML_SUCCESS;
}

static nvmlReturn_t
fake_nvmlDeviceGetComputeRunningProcesses_v3(struct hed_layer *self,
                                             struct hed_nvmlDeviceGetComputeRunningProcesses_v3 *a)
{
    const unsigned room = *a->infoCount;

    *a->infoCount = 3;
    if (room < 3)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < 3; i++)
        a->infos[i] = (nvmlProcessInfo_t){.pid = fake.stranger + i,
                                          .usedGpuMemory = i ? UINT64_MAX : fake.strangers};
    a->infos[2].pid = (unsigned)getpid();
    a->infos[2].usedGpuMemory = (uint64_t)atomic_load(&fake.taken) + 500 * MIB; /* its context */
    return NVML_SUCCESS;
}

static nvmlReturn_t
fake_nvmlDeviceGetGraphicsRunningProcesses(struct hed_layer *self,
                                           struct hed_nvmlDeviceGetGraphicsRunningProcesses *a)
{
    *a->infoCount = 1;
    a->infos[0].pid = fake.stranger;
    a->infos[0].usedGpuMemory = fake.strangers;
    return NVML_SUCCESS;
}

/* ---- contexts' limits, libraries, pools ------------------------------------------------------ */

static CUresult
fake_cuCtxSetLimit(struct hed_layer *self, struct hed_cuCtxSetLimit *a)
{
    const CUresult r = verdict();

    if (r == CUDA_SUCCESS && a->limit < 3)
        fake.limits[a->limit] = (a->value + 511) / 512 * 512;
    return r;
}

static CUresult
fake_cuCtxGetLimit(struct hed_layer *self, struct hed_cuCtxGetLimit *a)
{
    *a->pvalue = a->limit < 3 ? fake.limits[a->limit] : 0;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuDeviceGetAttribute(struct hed_layer *self, struct hed_cuDeviceGetAttribute *a)
{
    *a->pi = a->attrib == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 10 : 1024;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuLibraryGetModule(struct hed_layer *self, struct hed_cuLibraryGetModule *a)
{
    if (fake.library == 0) {
        fake.library = fake.code;
        took((int64_t)fake.code);
    }
    *a->pMod = (CUmodule)(uintptr_t)0x4002;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuLibraryUnload(struct hed_layer *self, struct hed_cuLibraryUnload *a)
{
    took(-(int64_t)fake.library);
    fake.library = 0;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuMemPoolCreate(struct hed_layer *self, struct hed_cuMemPoolCreate *a)
{
    *a->pool = fake.made;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuMemPoolImportFromShareableHandle(struct hed_layer *self,
                                        struct hed_cuMemPoolImportFromShareableHandle *a)
{
    *a->pool_out = fake.made;
    return CUDA_SUCCESS;
}

static CUresult
fake_cuMemAllocFromPoolAsync(struct hed_layer *self, struct hed_cuMemAllocFromPoolAsync *a)
{
    return pool_alloc(a->bytesize, a->dptr);
}

#define E(call) .call = fake_##call

static const struct hed_cuda_ops cuda = {E(cuMemAlloc_v2),
                                         E(cuGraphAddMemAllocNode),
                                         E(cuGraphGetNodes),
                                         E(cuGraphNodeGetType),
                                         E(cuGraphMemAllocNodeGetParams),
                                         E(cuGraphLaunch),
                                         E(cuDeviceGraphMemTrim),
                                         E(cuDeviceGetGraphMemAttribute),
                                         E(cuMemAllocManaged),
                                         E(cuMemAllocPitch_v2),
                                         E(cuArray3DCreate_v2),
                                         E(cuArrayDestroy),
                                         E(cuMemFree_v2),
                                         E(cuMemCreate),
                                         E(cuMemAllocAsync),
                                         E(cuMemFreeAsync),
                                         E(cuMemPoolTrimTo),
                                         E(cuMemPoolGetAttribute),
                                         E(cuDeviceGetMemPool),
                                         E(cuMemGetInfo_v2),
                                         E(cuDeviceTotalMem_v2),
                                         E(cuModuleLoadData),
                                         E(cuModuleUnload),
                                         E(cuCtxGetCurrent),
                                         E(cuCtxGetDevice),
                                         E(cuCtxDestroy_v2),
                                         E(cuDevicePrimaryCtxRetain),
                                         E(cuDevicePrimaryCtxRelease_v2),
                                         E(cuDevicePrimaryCtxGetState),
                                         E(cuCtxSetLimit),
                                         E(cuCtxGetLimit),
                                         E(cuDeviceGetAttribute),
                                         E(cuLibraryGetModule),
                                         E(cuLibraryUnload),
                                         E(cuMemPoolCreate),
                                         E(cuMemPoolImportFromShareableHandle),
                                         E(cuMemAllocFromPoolAsync),
                                         E(cuDeviceGetUuid_v2)};
static const struct hed_nvml_ops nvml = {
    E(nvmlDeviceGetMemoryInfo), E(nvmlDeviceGetMemoryInfo_v2), E(nvmlDeviceGetUUID),
    E(nvmlDeviceGetComputeRunningProcesses_v3), E(nvmlDeviceGetGraphicsRunningProcesses)};

const struct hed_layer_type fake_backend = {.name = "fake",
                                            .cuda = &cuda,
                                            .nvml = &nvml,
                                            .cuda_rest = &hed_cuda_null,
                                            .nvml_rest = &hed_nvml_null};

struct hed_layer *
quota_over(uint64_t limit, const char *group)
{
    static struct hed_config config; /* large */
    static struct hed_layer_room bottom;
    struct hed_layer *top = NULL;
    struct hed_why why = {""};

    hed_config_init(&config);
    config.mem = limit;
    (void)snprintf(config.mem_group, sizeof config.mem_group, "%s", group);
    hed_layer_place(&bottom, &fake_backend, NULL);
    if (hed_layer_create(&hed_quota_layer, &bottom.layer, &config, &top, &why) != 0)
        fail_msg("%s", why.text);
    return top;
}

void
quota_discard(struct hed_layer *l)
{
    struct hed_quota *q = l->state;

    hed_layer_free(l); /* its state stays, for late calls */
    hed_meet_leave(q->meet);
    for (size_t i = 0; i < QUOTA_SHARDS; i++)
        free(q->shards[i].slots);
    for (uint32_t i = 0; i < q->device_count; i++)
        free(q->devices[i]);
    free(q->mappings);
    for (struct quota_pool *p = q->pools, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    free(q);
}

CUdeviceptr
take(struct hed_layer *l, uint64_t n, CUresult expect)
{
    CUdeviceptr p = 0;

    assert_int_equal(CALL(l, cuMemAlloc_v2, &p, n), expect);
    return p;
}

void
give(struct hed_layer *l, CUdeviceptr p)
{
    assert_int_equal(CALL(l, cuMemFree_v2, p), CUDA_SUCCESS);
}

uint64_t
charged(struct hed_layer *l)
{
    struct quota_device *d = hed_quota_device(l, 0);

    return atomic_load(&d->own);
}
