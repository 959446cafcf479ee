/* The null backend's answers that are more than zeros or values (null= in the spec). */
#include "backends/null/null.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "backends/null/tables.h"
#include "base/lock.h"
#include "core/errors.h"
#include "core/session.h"
#include "core/stats.h"
#include "gen/cuda_sets.h"

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

/* Each answer takes the number of the call, and the arguments that null= in the spec names. */

static CUresult
null_init(enum hed_cuda_call id, unsigned flags)
{
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    atomic_store_explicit(&hed_session.soft_initialized, true, memory_order_relaxed);
    return CUDA_SUCCESS;
}

/* Managed memory would have to be read and written by kernels. */
static CUresult
null_refuse(enum hed_cuda_call id, CUresult result)
{
    hed_stats_unsupported(HED_API_CUDA, id, "the null backend");
    return result;
}

static CUresult
null_find_device(enum hed_cuda_call id, CUdevice *device, int ordinal)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (ordinal != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = 0;
    return CUDA_SUCCESS;
}

static CUresult
null_alloc(enum hed_cuda_call id, CUdeviceptr *address, size_t bytes)
{
    if (!address || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > HED_NULL_MEMORY)
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* Ranges do not overlap, as a program may compare addresses. */
    *address =
        atomic_fetch_add_explicit(&next_number, (bytes + 511) & ~511ull, memory_order_relaxed);
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
null_alloc_host(enum hed_cuda_call id, void **pp, size_t bytes)
{
    if (!pp || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;

    struct host_block *b = bytes > HED_NULL_MEMORY ? NULL : calloc(1, sizeof *b + bytes);

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
null_free_host(enum hed_cuda_call id, uint64_t address)
{
    struct host_block **at = &host_blocks;

    hed_lock(&host_lock);
    while (*at && (uint64_t)(uintptr_t)(*at)->data != address)
        at = &(*at)->next;

    struct host_block *b = *at;

    if (b)
        *at = b->next;
    hed_unlock(&host_lock);
    free(b);
    return b ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
null_find_table(enum hed_cuda_call id, const void **table, const CUuuid *uuid)
{
    return hed_null_table(table, uuid);
}

/* The front knows its own functions; there is none behind them to ask. */
static CUresult
null_check_proc(enum hed_cuda_call id, const char *symbol, void **pfn, cuuint64_t flags)
{
    return symbol && pfn && flags <= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

#define CALL(call, function, ...)                                             \
    static CUresult null_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                         \
        return null_##function(HED_##call, __VA_ARGS__);                      \
    }

HED_CUDA_NULL(CALL)

#define OFFLINE_CALL(call, function, ...)                                     \
    static CUresult null_##call(struct hed_layer *self, struct hed_##call *a) \
    {                                                                         \
        return hed_cuda_##function(__VA_ARGS__);                              \
    }

HED_CUDA_OFFLINE(OFFLINE_CALL)

#define ENTRY(call, ...) .call = null_##call,

static const struct hed_cuda_ops null_cuda = {HED_CUDA_NULL(ENTRY) HED_CUDA_OFFLINE(ENTRY)};

const struct hed_layer_type hed_null_backend = {
    .name = "null",
    .cuda = &null_cuda,
    .cuda_rest = &hed_cuda_null,
    .nvml_rest = &hed_nvml_null,
    .soft = true,
};
