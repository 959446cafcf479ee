/* Calls for plain, pitched and host memory. Managed memory is in managed.c, and pointer attributes
 * are in pointer.c. */
#include "driver/memory/memory_calls.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/number.h"
#include "core/stats.h"
#include "driver/graph/graph.h"
#include "driver/ipc/imported.h"
#include "driver/memory/memory_index.h"
#include "driver/stream/stream.h"

#define PITCH 512 /* bytes; rows of pitched memory begin at multiples of this */

CUresult
hed_memory_begin(struct hed_layer *self, struct hed_context **out)
{
    const CUresult r = hed_current(self, out);

    return r == CUDA_SUCCESS ? hed_capture_unsafe(self) : r;
}

CUresult
hed_memory_begin_free(struct hed_layer *self, struct hed_context **out)
{
    const CUresult r = hed_current_if_any(self, out);

    return r == CUDA_SUCCESS ? hed_capture_unsafe(self) : r;
}

struct hed_context *
hed_memory_owner(struct hed_driver *d, const struct hed_allocation *a)
{
    struct hed_context *c =
        a->ctx ? hed_context_find(d, (CUcontext)(uintptr_t)a->ctx_handle) : NULL;

    return c ? c : hed_context_any(d, a->device ? a->device->ordinal : -1);
}

CUresult
hed_memory_quiesce(struct hed_context *c, const struct hed_allocation *a)
{
    struct hed_context *owner = NULL;

    if (a->ctx && a->ctx != c)
        owner = hed_context_find(c->device->driver, (CUcontext)(uintptr_t)a->ctx_handle);

    const CUresult theirs = owner ? hed_context_synchronize(owner) : CUDA_SUCCESS;
    const CUresult ours = hed_context_synchronize(c);

    return ours != CUDA_SUCCESS ? ours : theirs;
}

/* The same, with a context or without. Other contexts than the owner's are not waited for then: a
 * kernel there may wait for this thread. */
static CUresult
wait_for_users(struct hed_driver *d, struct hed_context *c, const struct hed_allocation *a)
{
    if (!c)
        c = hed_memory_owner(d, a);
    return c ? hed_memory_quiesce(c, a) : CUDA_SUCCESS;
}

/* The allocation that begins at an address. */
static bool
begins_at(struct hed_driver *d, uint64_t at, struct hed_allocation *out)
{
    return hed_memory_find(d, at, out) && out->at == at;
}

static CUresult
soft_cuMemGetInfo_v2(struct hed_layer *self, struct hed_cuMemGetInfo_v2 *a)
{
    struct hed_context *c;
    const CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_device *dev = c->device;
    void *m;
    /* Other processes use the device too: it may have less left than this driver has not used. */
    const size_t left = hed_machine_of(c, &m)->memory_left(m, c);

    hed_lock_brief(&dev->driver->memory_lock);

    const uint64_t unused = dev->info.profile.memory - dev->used;

    hed_unlock_brief(&dev->driver->memory_lock);
    /* As on NVIDIA's driver, either pointer may be NULL. */
    if (a->free)
        *a->free = unused < left ? unused : left;
    if (a->total)
        *a->total = dev->info.profile.memory;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuMemGetInfo(struct hed_layer *self, struct hed_cuMemGetInfo *a)
{
    size_t free, total;
    const CUresult r =
        soft_cuMemGetInfo_v2(self, &(struct hed_cuMemGetInfo_v2){.free = &free, .total = &total});

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->free || !a->total)
        return CUDA_ERROR_INVALID_VALUE;
    *a->free = free > UINT32_MAX ? UINT32_MAX : (unsigned)free;
    *a->total = total > UINT32_MAX ? UINT32_MAX : (unsigned)total;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuMemAlloc_v2(struct hed_layer *self, struct hed_cuMemAlloc_v2 *a)
{
    struct hed_context *c;
    uint64_t at;
    CUresult r = hed_memory_begin(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->dptr || a->bytesize == 0)
        return CUDA_ERROR_INVALID_VALUE;
    r = hed_memory_take(c, HED_MEMORY_DEVICE, a->bytesize, 0, &at);
    *a->dptr = r == CUDA_SUCCESS ? at : 0; /* as on an H200 */
    return r == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_OUT_OF_MEMORY : r;
}

static CUresult
soft_cuMemAllocPitch_v2(struct hed_layer *self, struct hed_cuMemAllocPitch_v2 *a)
{
    struct hed_context *c;
    uint64_t at;
    size_t bytes;
    CUresult r = hed_memory_begin(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->dptr || !a->pPitch || a->WidthInBytes == 0 || a->Height == 0 ||
        (a->ElementSizeBytes != 4 && a->ElementSizeBytes != 8 && a->ElementSizeBytes != 16))
        return CUDA_ERROR_INVALID_VALUE;
    if (a->WidthInBytes > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;

    const size_t pitch = hed_round_up(a->WidthInBytes, PITCH);

    if (__builtin_mul_overflow(pitch, a->Height, &bytes) || bytes > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = hed_memory_take(c, HED_MEMORY_DEVICE, bytes, 0, &at);
    if (r == CUDA_SUCCESS) {
        *a->dptr = at;
        *a->pPitch = pitch;
    }
    return r;
}

static CUresult
soft_cuMemFree_v2(struct hed_layer *self, struct hed_cuMemFree_v2 *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_allocation m;
    struct hed_context *c;
    CUresult r = a->dptr ? hed_memory_begin_free(self, &c) : hed_memory_begin(self, &c);

    /* NVIDIA's driver needs no context for this, but one that has failed says so. */
    if (a->dptr == 0 && (r == CUDA_ERROR_INVALID_CONTEXT || r == CUDA_ERROR_CONTEXT_IS_DESTROYED))
        return CUDA_SUCCESS;
    if (r != CUDA_SUCCESS || a->dptr == 0)
        return r;
    if (!begins_at(d, a->dptr, &m) || m.freeing ||
        (m.kind != HED_MEMORY_DEVICE && m.kind != HED_MEMORY_MANAGED && m.kind != HED_MEMORY_POOL &&
         !hed_imported_from_pool(&m)))
        return CUDA_ERROR_INVALID_VALUE;
    r = wait_for_users(d, c, &m);
    if (m.kind == HED_MEMORY_POOL)
        hed_pool_settle(d);
    /* Memory of a graph stays: the graph may run again and use the same address. */
    if (m.graph)
        return r;

    const CUresult given = hed_memory_give(d, m.kind, a->dptr);

    return r != CUDA_SUCCESS ? r : given;
}

static CUresult
soft_cuMemGetAddressRange_v2(struct hed_layer *self, struct hed_cuMemGetAddressRange_v2 *a)
{
    struct hed_allocation m;
    struct hed_context *c;
    const CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!hed_memory_find(c->device->driver, a->dptr, &m))
        return CUDA_ERROR_NOT_FOUND;
    if (a->pbase)
        *a->pbase = m.at;
    if (a->psize)
        *a->psize = m.size;
    return CUDA_SUCCESS;
}

/* ---- host memory ----------------------------------------------------------------------------- */

static CUresult
alloc_host_memory(struct hed_layer *self, void **pp, size_t size, unsigned flags)
{
    struct hed_context *c;
    uint64_t at;
    CUresult r = hed_memory_begin(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!pp || (flags & ~HED_MEMHOSTALLOC_ALL))
        return CUDA_ERROR_INVALID_VALUE;
    if (size == 0) { /* succeeds and does nothing, as on NVIDIA's driver */
        *pp = NULL;
        return CUDA_SUCCESS;
    }
    r = hed_memory_take_flags(c, HED_MEMORY_HOST, size, 0, flags, &at);
    if (r == CUDA_SUCCESS)
        *pp = (void *)(uintptr_t)at;
    return r == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_OUT_OF_MEMORY : r;
}

static CUresult
soft_cuMemAllocHost(struct hed_layer *self, struct hed_cuMemAllocHost *a)
{
    return alloc_host_memory(self, a->pp, a->bytesize, 0);
}

static CUresult
soft_cuMemAllocHost_v2(struct hed_layer *self, struct hed_cuMemAllocHost_v2 *a)
{
    return alloc_host_memory(self, a->pp, a->bytesize, 0);
}

static CUresult
soft_cuMemHostAlloc(struct hed_layer *self, struct hed_cuMemHostAlloc *a)
{
    return alloc_host_memory(self, a->pp, a->bytesize, a->Flags);
}

static CUresult
soft_cuMemFreeHost(struct hed_layer *self, struct hed_cuMemFreeHost *a)
{
    const uint64_t at = (uint64_t)(uintptr_t)a->p;
    struct hed_driver *d = hed_driver_of(self);
    struct hed_allocation m;
    struct hed_context *c;
    CUresult r = hed_memory_begin_free(self, &c);

    if (r != CUDA_SUCCESS || !a->p)
        return r;
    if (!begins_at(d, at, &m) || m.kind != HED_MEMORY_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    r = wait_for_users(d, c, &m);

    const CUresult given = hed_memory_give(d, HED_MEMORY_HOST, at);

    return r != CUDA_SUCCESS ? r : given;
}

/* Kernels may use host memory from now on. A machine that does not share it with its devices has to
 * keep both copies the same. */
static void
map_host_memory(struct hed_driver *d, uint64_t at)
{
    hed_lock(&d->memory_lock);

    struct hed_allocation *a = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, at);

    if (a && a->kind == HED_MEMORY_HOST && !hed_memory_is_mapped(a)) {
        a->flags |= CU_MEMHOSTALLOC_DEVICEMAP;
        atomic_fetch_add_explicit(&d->memory->mapped, 1, memory_order_relaxed);
    }
    hed_unlock(&d->memory_lock);
}

static CUresult
soft_cuMemHostGetDevicePointer_v2(struct hed_layer *self,
                                  struct hed_cuMemHostGetDevicePointer_v2 *a)
{
    const uint64_t at = (uint64_t)(uintptr_t)a->p;
    struct hed_allocation m;
    struct hed_context *c;
    const CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->pdptr || a->Flags != 0 || !hed_memory_find(c->device->driver, at, &m) ||
        (m.kind != HED_MEMORY_HOST && m.kind != HED_MEMORY_REGISTERED))
        return CUDA_ERROR_INVALID_VALUE;
    /* A kernel would fault there. */
    if (m.kind == HED_MEMORY_REGISTERED && !c->device->driver->machine->registered) {
        hed_stats_unsupported(HED_API_CUDA, HED_cuMemHostGetDevicePointer_v2,
                              "a remote GPU (kernels cannot reach memory of cuMemHostRegister)");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    map_host_memory(c->device->driver, m.at);
    *a->pdptr = at; /* there is one address space: host and device addresses are the same */
    return CUDA_SUCCESS;
}

static CUresult
soft_cuMemHostGetFlags(struct hed_layer *self, struct hed_cuMemHostGetFlags *a)
{
    struct hed_allocation m;
    struct hed_context *c;
    const CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->pFlags || !hed_memory_find(c->device->driver, (uint64_t)(uintptr_t)a->p, &m) ||
        (m.kind != HED_MEMORY_HOST && m.kind != HED_MEMORY_REGISTERED))
        return CUDA_ERROR_INVALID_VALUE;
    *a->pFlags = m.flags | HED_MEMHOST_DEVICEMAP; /* with one address space all of it is mapped */
    return CUDA_SUCCESS;
}

/* ---- registered memory ----------------------------------------------------------------------- */

/* Is there memory behind all of [p, p + size)? */
static bool
is_mapped(uint64_t p, size_t size)
{
    const uint64_t start = p & ~(uint64_t)4095;
    const int e = errno;
    const bool mapped = msync((void *)(uintptr_t)start, p + size - start, MS_ASYNC) == 0;

    /* EINVAL: pages are larger here, and the range does not begin on one. The answer is unknown. */
    const bool unknown = !mapped && errno == EINVAL;

    errno = e;
    return mapped || unknown;
}

/* Puts a range into the index unless some of it is there already: ALREADY_REGISTERED, or
 * INVALID_VALUE if that is memory of another kind. */
static CUresult
add_registered(struct hed_driver *d, const struct hed_allocation *m)
{
    struct hed_memory_node *n = hed_memory_node_create(m);

    if (!n)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_lock(&d->memory_lock);

    const struct hed_allocation *other =
        hed_memory_first_locked(d->memory, HED_TREE_ALLOCATIONS, m->at, m->size);
    CUresult r = CUDA_SUCCESS;

    if (!other)
        hed_memory_insert_locked(d->memory, n);
    else if (other->kind == HED_MEMORY_REGISTERED)
        r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    else
        r = CUDA_ERROR_INVALID_VALUE;
    hed_unlock(&d->memory_lock);
    if (r != CUDA_SUCCESS)
        hed_memory_node_free(n);
    return r;
}

static CUresult
host_register(struct hed_layer *self, enum hed_cuda_call id, void *p, size_t size, unsigned flags)
{
    struct hed_allocation m = {
        .at = (uint64_t)(uintptr_t)p, .size = size, .kind = HED_MEMORY_REGISTERED, .flags = flags};
    struct hed_context *c;
    CUresult r = hed_memory_begin(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!p || size == 0 || size > UINT64_MAX - m.at || (flags & ~HED_MEMHOSTREGISTER_ALL))
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & HED_MEMHOSTREGISTER_IOMEMORY) {
        hed_stats_unsupported(HED_API_CUDA, id, "memory of other devices");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!is_mapped(m.at, size))
        return CUDA_ERROR_INVALID_VALUE;
    hed_memory_mark(&m, c);
    return add_registered(c->device->driver, &m);
}

static CUresult
soft_cuMemHostRegister(struct hed_layer *self, struct hed_cuMemHostRegister *a)
{
    return host_register(self, HED_cuMemHostRegister, a->p, a->bytesize, a->Flags);
}

static CUresult
soft_cuMemHostRegister_v2(struct hed_layer *self, struct hed_cuMemHostRegister_v2 *a)
{
    return host_register(self, HED_cuMemHostRegister_v2, a->p, a->bytesize, a->Flags);
}

static CUresult
soft_cuMemHostUnregister(struct hed_layer *self, struct hed_cuMemHostUnregister *a)
{
    const uint64_t at = (uint64_t)(uintptr_t)a->p;
    struct hed_driver *d = hed_driver_of(self);
    struct hed_allocation m;
    struct hed_context *c;
    CUresult r = hed_memory_begin_free(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->p)
        return CUDA_ERROR_INVALID_VALUE;
    if (!hed_memory_find(d, at, &m))
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (m.at != at || m.kind != HED_MEMORY_REGISTERED)
        return CUDA_ERROR_INVALID_VALUE;
    /* The program may free the memory after this. */
    r = wait_for_users(d, c, &m);
    if (hed_memory_give(d, HED_MEMORY_REGISTERED, at) != CUDA_SUCCESS)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    return r;
}

const struct hed_cuda_ops hed_calls_memory = {
    .cuMemGetInfo = soft_cuMemGetInfo,
    .cuMemGetInfo_v2 = soft_cuMemGetInfo_v2,
    .cuMemAlloc_v2 = soft_cuMemAlloc_v2,
    .cuMemAllocPitch_v2 = soft_cuMemAllocPitch_v2,
    .cuMemFree_v2 = soft_cuMemFree_v2,
    .cuMemGetAddressRange_v2 = soft_cuMemGetAddressRange_v2,
    .cuMemAllocHost = soft_cuMemAllocHost,
    .cuMemAllocHost_v2 = soft_cuMemAllocHost_v2,
    .cuMemFreeHost = soft_cuMemFreeHost,
    .cuMemHostAlloc = soft_cuMemHostAlloc,
    .cuMemHostGetDevicePointer_v2 = soft_cuMemHostGetDevicePointer_v2,
    .cuMemHostGetFlags = soft_cuMemHostGetFlags,
    .cuMemHostRegister = soft_cuMemHostRegister,
    .cuMemHostRegister_v2 = soft_cuMemHostRegister_v2,
    .cuMemHostUnregister = soft_cuMemHostUnregister,
    .cuMemAllocManaged = hed_soft_cuMemAllocManaged,
    .cuMemAdvise = hed_soft_cuMemAdvise,
    .cuMemAdvise_v2 = hed_soft_cuMemAdvise_v2,
    .cuMemPrefetchAsync = hed_soft_cuMemPrefetchAsync,
    .cuMemPrefetchAsync_v2 = hed_soft_cuMemPrefetchAsync_v2,
    .cuMemPrefetchBatchAsync = hed_soft_cuMemPrefetchBatchAsync,
    .cuMemDiscardBatchAsync = hed_soft_cuMemDiscardBatchAsync,
    .cuMemDiscardAndPrefetchBatchAsync = hed_soft_cuMemDiscardAndPrefetchBatchAsync,
    .cuMemRangeGetAttribute = hed_soft_cuMemRangeGetAttribute,
    .cuMemRangeGetAttributes = hed_soft_cuMemRangeGetAttributes,
    .cuPointerGetAttribute = hed_soft_cuPointerGetAttribute,
    .cuPointerGetAttributes = hed_soft_cuPointerGetAttributes,
    .cuPointerSetAttribute = hed_soft_cuPointerSetAttribute,
};
