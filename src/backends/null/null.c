/* The null backend's answers that are more than zeros. */
#include "backends/null/null.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/str.h"
#include "core/errors.h"
#include "core/session.h"
#include "core/stats.h"

#define DRIVER_VERSION 13000
#define MEMORY_BYTES (16ull << 30)   /* what the device claims to have */
#define ARENA_BASE 0x200000000000ull /* DESIGN: device addresses start here on soft backends */
#define CLEAR_MAX (64u << 20)        /* bytes of an out-array that are cleared */

static _Atomic uint64_t next_number = ARENA_BASE;

uint64_t
hed_null_mint(struct hed_layer *self)
{
    return atomic_fetch_add_explicit(&next_number, 512, memory_order_relaxed);
}

void
hed_null_clear(void *p, uint64_t count, size_t size)
{
    if (count <= CLEAR_MAX / size)
        memset(p, 0, (size_t)count * size);
}

static CUresult
null_cuInit(struct hed_layer *self, struct hed_cuInit *a)
{
    if (a->Flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    atomic_store_explicit(&hed_session.soft_initialized, true, memory_order_relaxed);
    return CUDA_SUCCESS;
}

static CUresult
null_cuDriverGetVersion(struct hed_layer *self, struct hed_cuDriverGetVersion *a)
{
    if (!a->driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    *a->driverVersion = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

static CUresult
null_cuGetErrorName(struct hed_layer *self, struct hed_cuGetErrorName *a)
{
    return hed_cuda_error_name(a->error, a->pStr);
}

static CUresult
null_cuGetErrorString(struct hed_layer *self, struct hed_cuGetErrorString *a)
{
    return hed_cuda_error_text(a->error, a->pStr);
}

/* No table is served: NVIDIA's own runtime does not start on this backend, and says so. */
static CUresult
null_cuGetExportTable(struct hed_layer *self, struct hed_cuGetExportTable *a)
{
    hed_stats_unsupported(HED_API_CUDA, HED_cuGetExportTable, "the null backend");
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult
null_cuDeviceGetCount(struct hed_layer *self, struct hed_cuDeviceGetCount *a)
{
    if (!a->count)
        return CUDA_ERROR_INVALID_VALUE;
    *a->count = 1;
    return CUDA_SUCCESS;
}

static CUresult
null_cuDeviceGet(struct hed_layer *self, struct hed_cuDeviceGet *a)
{
    if (!a->device)
        return CUDA_ERROR_INVALID_VALUE;
    if (a->ordinal != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *a->device = 0;
    return CUDA_SUCCESS;
}

static CUresult
null_cuDeviceGetName(struct hed_layer *self, struct hed_cuDeviceGetName *a)
{
    if (!a->name || a->len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    (void)hed_str_copy(a->name, (size_t)a->len, "heddle null device");
    return CUDA_SUCCESS;
}

static CUresult
null_cuDeviceTotalMem_v2(struct hed_layer *self, struct hed_cuDeviceTotalMem_v2 *a)
{
    if (!a->bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *a->bytes = MEMORY_BYTES;
    return CUDA_SUCCESS;
}

static CUresult
null_cuMemGetInfo_v2(struct hed_layer *self, struct hed_cuMemGetInfo_v2 *a)
{
    if (!a->free || !a->total)
        return CUDA_ERROR_INVALID_VALUE;
    *a->free = MEMORY_BYTES;
    *a->total = MEMORY_BYTES;
    return CUDA_SUCCESS;
}

static CUresult
null_cuMemAlloc_v2(struct hed_layer *self, struct hed_cuMemAlloc_v2 *a)
{
    if (!a->dptr || a->bytesize == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (a->bytesize > MEMORY_BYTES)
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* Ranges do not overlap, as a program may compare addresses. */
    *a->dptr = atomic_fetch_add_explicit(&next_number, (a->bytesize + 511) & ~511ull,
                                         memory_order_relaxed);
    return CUDA_SUCCESS;
}

/* Host memory is real, and what is freed must be what was given out. */
struct host_block {
    struct host_block *next;
    max_align_t data[];
};

static struct hed_lock host_lock = HED_LOCK_INIT(HED_RANK_STATS);
static struct host_block *host_blocks; /* guarded by host_lock */

static CUresult
host_alloc(void **pp, size_t bytes)
{
    if (!pp || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;

    struct host_block *b = bytes > MEMORY_BYTES ? NULL : calloc(1, sizeof *b + bytes);

    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_lock(&host_lock);
    b->next = host_blocks;
    host_blocks = b;
    hed_unlock(&host_lock);
    *pp = b->data;
    return CUDA_SUCCESS;
}

static CUresult
null_cuMemAllocHost_v2(struct hed_layer *self, struct hed_cuMemAllocHost_v2 *a)
{
    return host_alloc(a->pp, a->bytesize);
}

static CUresult
null_cuMemHostAlloc(struct hed_layer *self, struct hed_cuMemHostAlloc *a)
{
    return host_alloc(a->pp, a->bytesize);
}

static CUresult
null_cuMemFreeHost(struct hed_layer *self, struct hed_cuMemFreeHost *a)
{
    struct host_block **at = &host_blocks;

    hed_lock(&host_lock);
    while (*at && (void *)(*at)->data != a->p)
        at = &(*at)->next;

    struct host_block *b = *at;

    if (b)
        *at = b->next;
    hed_unlock(&host_lock);
    free(b);
    return b ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A program reads and writes managed memory itself, and kernels would have to as well. */
static CUresult
null_cuMemAllocManaged(struct hed_layer *self, struct hed_cuMemAllocManaged *a)
{
    hed_stats_unsupported(HED_API_CUDA, HED_cuMemAllocManaged, "the null backend");
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* The front knows its own functions; there is none behind them to ask. */
static CUresult
check_proc(const char *symbol, void **pfn, cuuint64_t flags)
{
    return symbol && pfn && flags <= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
null_cuGetProcAddress(struct hed_layer *self, struct hed_cuGetProcAddress *a)
{
    return check_proc(a->symbol, a->pfn, a->flags);
}

static CUresult
null_cuGetProcAddress_v2(struct hed_layer *self, struct hed_cuGetProcAddress_v2 *a)
{
    return check_proc(a->symbol, a->pfn, a->flags);
}

static nvmlReturn_t
null_nvmlDeviceGetCount_v2(struct hed_layer *self, struct hed_nvmlDeviceGetCount_v2 *a)
{
    if (!a->deviceCount)
        return NVML_ERROR_INVALID_ARGUMENT;
    *a->deviceCount = 1;
    return NVML_SUCCESS;
}

static nvmlReturn_t
null_nvmlDeviceGetName(struct hed_layer *self, struct hed_nvmlDeviceGetName *a)
{
    if (!a->name)
        return NVML_ERROR_INVALID_ARGUMENT;
    return hed_str_copy(a->name, a->length, "heddle null device") ? NVML_SUCCESS
                                                                  : NVML_ERROR_INSUFFICIENT_SIZE;
}

static const struct hed_cuda_ops null_cuda = {
    .cuInit = null_cuInit,
    .cuDriverGetVersion = null_cuDriverGetVersion,
    .cuGetErrorName = null_cuGetErrorName,
    .cuGetErrorString = null_cuGetErrorString,
    .cuGetExportTable = null_cuGetExportTable,
    .cuGetProcAddress = null_cuGetProcAddress,
    .cuGetProcAddress_v2 = null_cuGetProcAddress_v2,
    .cuDeviceGetCount = null_cuDeviceGetCount,
    .cuDeviceGet = null_cuDeviceGet,
    .cuDeviceGetName = null_cuDeviceGetName,
    .cuDeviceTotalMem_v2 = null_cuDeviceTotalMem_v2,
    .cuMemGetInfo_v2 = null_cuMemGetInfo_v2,
    .cuMemAlloc_v2 = null_cuMemAlloc_v2,
    .cuMemAllocHost_v2 = null_cuMemAllocHost_v2,
    .cuMemHostAlloc = null_cuMemHostAlloc,
    .cuMemFreeHost = null_cuMemFreeHost,
    .cuMemAllocManaged = null_cuMemAllocManaged,
};

static const struct hed_nvml_ops null_nvml = {
    .nvmlDeviceGetCount_v2 = null_nvmlDeviceGetCount_v2,
    .nvmlDeviceGetName = null_nvmlDeviceGetName,
};

const struct hed_layer_type hed_null_backend = {
    .name = "null",
    .cuda = &null_cuda,
    .nvml = &null_nvml,
    .cuda_rest = &hed_cuda_null,
    .nvml_rest = &hed_nvml_null,
    .soft = true,
};
