/* Virtual memory management: reserved ranges of addresses, physical memory, and mappings of the
 * latter into the former.
 *
 *   cuMemAddressReserve -> HED_MEMORY_RESERVED    addresses of a space
 *   cuMemCreate         -> struct hed_physical    memory, charged to its device: physical.c
 *   cuMemMap            -> HED_MEMORY_VIRTUAL     inside a reserved range; no access
 *   cuMemSetAccess      -> its flags              what a device or the host may do
 *
 * Physical memory lives while it has names (cuMemCreate, cuMemRetainAllocationHandle) or mappings.
 */
#include <stdlib.h>

#include "core/stats.h"
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"
#include "driver/memory/physical.h"

#define GRANULARITY HED_PHYSICAL_UNIT
#define ACCESS_HOST HED_PROFILE_DEVICES_MAX /* index of the host in mapping.access */
#define ACCESS_COUNT (HED_PROFILE_DEVICES_MAX + 1)

struct mapping {                   /* hed_allocation.extra */
    struct hed_physical *physical; /* a reference */
    uint8_t access[ACCESS_COUNT];  /* CUmemAccess_flags; guarded by driver->memory_lock */
};

static bool
is_whole_units(uint64_t n)
{
    return n != 0 && n % GRANULARITY == 0;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* The spaces in order of preference: the current device's, the others', the host's. */
static struct hed_space *
space_at(struct hed_driver *d, int first, int i)
{
    return i < d->device_count ? d->devices[(first + i) % d->device_count].space : d->host_space;
}

static struct hed_space *
reserve_range_locked(struct hed_driver *d, int first, uint64_t size, uint64_t align, uint64_t want,
                     uint64_t *at)
{
    if (want && want % GRANULARITY == 0 && want % align == 0)
        for (int i = 0; i <= d->device_count; i++)
            if (hed_space_take_at(space_at(d, first, i), want, size) == 0) {
                *at = want;
                return space_at(d, first, i);
            }
    for (int i = 0; i <= d->device_count; i++)
        if (hed_space_take(space_at(d, first, i), size, align, at) == 0)
            return space_at(d, first, i);
    return NULL;
}

static CUresult
soft_cuMemAddressReserve(struct hed_layer *self, struct hed_cuMemAddressReserve *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_allocation m = {.size = a->size, .taken = a->size, .kind = HED_MEMORY_RESERVED};
    const CUresult r = hed_memory_initialized(self);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->ptr || !is_whole_units(a->size) || (a->alignment & (a->alignment - 1)) || a->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;

    struct hed_memory_node *n = hed_memory_node_create(&m);
    const struct hed_context *c = hed_thread_context(d);
    const uint64_t align = a->alignment > GRANULARITY ? a->alignment : GRANULARITY;

    if (!n)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_lock(&d->memory_lock);

    struct hed_allocation *in = hed_memory_node_allocation(n);
    struct hed_space *space =
        reserve_range_locked(d, c ? c->device->ordinal : 0, a->size, align, a->addr, &in->at);

    if (space) {
        in->extra = space;
        *a->ptr = in->at;
        hed_memory_insert_locked(d->memory, n);
    }
    hed_unlock(&d->memory_lock);
    if (!space)
        hed_memory_node_free(n);
    return space ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
soft_cuMemAddressFree(struct hed_layer *self, struct hed_cuMemAddressFree *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_memory_node *n = NULL;
    const CUresult r = hed_memory_initialized(self);

    if (r != CUDA_SUCCESS)
        return r;
    hed_lock(&d->memory_lock);

    struct hed_allocation *m = hed_memory_in_locked(d->memory, HED_TREE_RESERVED, a->ptr);

    if (m && m->at == a->ptr && m->size == a->size &&
        !hed_memory_first_locked(d->memory, HED_TREE_ALLOCATIONS, m->at, m->size)) {
        (void)hed_space_give(m->extra, m->at);
        n = hed_memory_remove_locked(d->memory, m);
    }
    hed_unlock(&d->memory_lock);
    if (!n)
        return CUDA_ERROR_INVALID_VALUE;
    hed_memory_node_free(n);
    return CUDA_SUCCESS;
}

/* ---- mappings -------------------------------------------------------------------------------- */

void
hed_virtual_release(const struct hed_allocation *a)
{
    struct mapping *m = a->extra;
    struct hed_driver *d = m->physical->driver;

    d->machine->memory.unmap(d->machine_state, a->at, a->size);
    hed_physical_lose(m->physical, &m->physical->mappings);
    hed_object_put(&m->physical->object);
    free(m);
}

/* Puts a mapping without access rights into the index. */
static CUresult
insert_mapping(struct hed_driver *d, const struct hed_allocation *m, struct hed_physical *p)
{
    struct hed_memory_node *n = hed_memory_node_create(m);
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (!n)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_lock(&d->memory_lock);

    const struct hed_allocation *range = hed_memory_in_locked(d->memory, HED_TREE_RESERVED, m->at);

    if (range && m->size <= range->size - (m->at - range->at) &&
        !hed_memory_first_locked(d->memory, HED_TREE_ALLOCATIONS, m->at, m->size)) {
        hed_memory_insert_locked(d->memory, n);
        p->mappings++;
        /* Relaxed: the caller has a reference. */
        atomic_fetch_add_explicit(&p->object.refs, 1, memory_order_relaxed);
        r = CUDA_SUCCESS;
    }
    hed_unlock(&d->memory_lock);
    if (r != CUDA_SUCCESS)
        hed_memory_node_free(n);
    return r;
}

static CUresult
map_physical(struct hed_driver *d, struct hed_physical *p, uint64_t at, uint64_t size)
{
    struct mapping *extra = calloc(1, sizeof *extra);
    struct hed_allocation m = {.at = at,
                               .size = size,
                               .taken = size,
                               .kind = HED_MEMORY_VIRTUAL,
                               .device = p->device,
                               .extra = extra};
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

    if (extra) {
        extra->physical = p;
        r = insert_mapping(d, &m, p);
    }
    if (r != CUDA_SUCCESS) {
        free(extra);
        return r;
    }

    int err = d->machine->memory.physical_map(d->machine_state, p->memory, 0, at, size);

    if (!err)
        err = d->machine->memory.protect(d->machine_state, at, size, false, false);
    if (err)
        r = hed_memory_refused(err);
    if (r != CUDA_SUCCESS)
        (void)hed_memory_give(d, HED_MEMORY_VIRTUAL, at);
    return r;
}

static CUresult
soft_cuMemMap(struct hed_layer *self, struct hed_cuMemMap *a)
{
    struct hed_driver *d = hed_driver_of(self);
    CUresult r = hed_memory_initialized(self);

    if (r != CUDA_SUCCESS)
        return r;
    if (!is_whole_units(a->size) || a->ptr % GRANULARITY || a->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;

    struct hed_physical *p = hed_physical_find(d, a->handle);

    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    /* cuda.h: "offset - currently must be zero". NVIDIA's driver answers NOT_SUPPORTED to other
     * offsets, and to sizes that are not the allocation's. */
    if (a->offset != 0 || a->size != p->size) {
        hed_stats_unsupported(HED_API_CUDA, HED_cuMemMap, "a part of physical memory");
        r = CUDA_ERROR_NOT_SUPPORTED;
    } else {
        r = map_physical(d, p, a->ptr, a->size);
    }
    hed_object_put(&p->object);
    return r;
}

/* Are all mappings that overlap a range wholly inside it? *bytes is how much they cover. */
static bool
are_whole_locked(struct hed_driver *d, uint64_t at, uint64_t size, uint64_t *bytes)
{
    const uint64_t end = at + size;
    const struct hed_allocation *m;

    *bytes = 0;
    for (uint64_t from = at; from < end; from = m->at + m->size) {
        m = hed_memory_first_locked(d->memory, HED_TREE_ALLOCATIONS, from, end - from);
        if (!m)
            break;
        if (m->kind != HED_MEMORY_VIRTUAL || m->at < at || m->size > end - m->at)
            return false;
        *bytes += m->size;
    }
    return true;
}

static CUresult
soft_cuMemUnmap(struct hed_layer *self, struct hed_cuMemUnmap *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_context *c = hed_thread_context(d);
    uint64_t bytes = 0;
    const CUresult r = hed_memory_initialized(self);

    if (r != CUDA_SUCCESS)
        return r;
    if (!is_whole_units(a->size) || a->ptr % GRANULARITY || a->size > UINT64_MAX - a->ptr)
        return CUDA_ERROR_INVALID_VALUE;
    /* Queued work may use it. */
    if (c)
        (void)hed_context_synchronize(c);
    hed_lock(&d->memory_lock);

    const bool ok = hed_memory_in_locked(d->memory, HED_TREE_RESERVED, a->ptr) &&
                    are_whole_locked(d, a->ptr, a->size, &bytes);

    hed_unlock(&d->memory_lock);
    if (!ok)
        return CUDA_ERROR_INVALID_VALUE;
    for (;;) {
        hed_lock(&d->memory_lock);

        const struct hed_allocation *m =
            hed_memory_first_locked(d->memory, HED_TREE_ALLOCATIONS, a->ptr, a->size);
        const uint64_t at = m ? m->at : 0;

        hed_unlock(&d->memory_lock);
        if (!m || hed_memory_give(d, HED_MEMORY_VIRTUAL, at) != CUDA_SUCCESS)
            return CUDA_SUCCESS;
    }
}

/* ---- access ---------------------------------------------------------------------------------- */

/* The index of a location in mapping.access; -1 if it has none. */
static int
access_index(const struct hed_driver *d, const CUmemLocation_v1 *l)
{
    switch (l->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return l->id >= 0 && l->id < d->device_count ? l->id : -1;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return ACCESS_HOST;
    default:
        return -1;
    }
}

static bool
are_descriptions(const struct hed_driver *d, const CUmemAccessDesc_v1 *desc, size_t count)
{
    if (!desc || count == 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (access_index(d, &desc[i].location) < 0 ||
            (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
             desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
             desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
            return false;
    return true;
}

/* Kernels of all devices and the host share one address space: if one may access it, all can. */
static void
allow_locked(struct hed_driver *d, struct hed_allocation *m, const CUmemAccessDesc_v1 *desc,
             size_t count)
{
    struct mapping *extra = m->extra;

    for (size_t i = 0; i < count; i++)
        extra->access[access_index(d, &desc[i].location)] = (uint8_t)desc[i].flags;
    m->flags = 0;
    for (int i = 0; i < ACCESS_COUNT; i++)
        m->flags |= extra->access[i];
}

static CUresult
soft_cuMemSetAccess(struct hed_layer *self, struct hed_cuMemSetAccess *a)
{
    struct hed_driver *d = hed_driver_of(self);
    uint64_t bytes = 0;
    const CUresult r = hed_memory_initialized(self);

    if (r != CUDA_SUCCESS)
        return r;
    if (!is_whole_units(a->size) || a->ptr % GRANULARITY || a->size > UINT64_MAX - a->ptr ||
        !are_descriptions(d, a->desc, a->count))
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&d->memory_lock);

    const bool ok = are_whole_locked(d, a->ptr, a->size, &bytes) && bytes == a->size;

    hed_unlock(&d->memory_lock);
    if (!ok)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = a->ptr; at < a->ptr + a->size;) {
        uint64_t size = 0;
        unsigned flags = 0;

        hed_lock(&d->memory_lock);

        struct hed_allocation *m = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, at);

        if (m && m->kind == HED_MEMORY_VIRTUAL) {
            allow_locked(d, m, a->desc, a->count);
            size = m->size;
            flags = m->flags;
        }
        hed_unlock(&d->memory_lock);

        const int err =
            size ? d->machine->memory.protect(d->machine_state, at, size, flags & 1, flags & 2)
                 : HED_EINVAL;

        if (err)
            return err == HED_EINVAL ? CUDA_ERROR_INVALID_VALUE : hed_memory_refused(err);
        at += size;
    }
    return CUDA_SUCCESS;
}

static CUresult
soft_cuMemGetAccess(struct hed_layer *self, struct hed_cuMemGetAccess *a)
{
    struct hed_driver *d = hed_driver_of(self);
    const CUresult r = hed_memory_initialized(self);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->flags || !a->location || access_index(d, a->location) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&d->memory_lock);

    const struct hed_allocation *m = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, a->ptr);
    const bool ok = m && m->kind == HED_MEMORY_VIRTUAL;

    if (ok)
        *a->flags = ((const struct mapping *)m->extra)->access[access_index(d, a->location)];
    hed_unlock(&d->memory_lock);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
soft_cuMemRetainAllocationHandle(struct hed_layer *self, struct hed_cuMemRetainAllocationHandle *a)
{
    struct hed_driver *d = hed_driver_of(self);
    CUresult r = hed_memory_initialized(self);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->handle)
        return CUDA_ERROR_INVALID_VALUE;
    hed_lock(&d->memory_lock);

    const struct hed_allocation *m =
        hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, (uint64_t)(uintptr_t)a->addr);
    struct hed_physical *p =
        m && m->kind == HED_MEMORY_VIRTUAL ? ((const struct mapping *)m->extra)->physical : NULL;

    r = p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS) {
        p->names++;
        *a->handle = p->object.handle;
    }
    hed_unlock(&d->memory_lock);
    return r;
}

const struct hed_cuda_ops hed_calls_virtual = {
    .cuMemAddressReserve = soft_cuMemAddressReserve,
    .cuMemAddressFree = soft_cuMemAddressFree,
    .cuMemCreate = hed_soft_cuMemCreate,
    .cuMemRelease = hed_soft_cuMemRelease,
    .cuMemGetAllocationGranularity = hed_soft_cuMemGetAllocationGranularity,
    .cuMemGetAllocationPropertiesFromHandle = hed_soft_cuMemGetAllocationPropertiesFromHandle,
    .cuMemExportToShareableHandle = hed_soft_cuMemExportToShareableHandle,
    .cuMemImportFromShareableHandle = hed_soft_cuMemImportFromShareableHandle,
    .cuMemMap = soft_cuMemMap,
    .cuMemUnmap = soft_cuMemUnmap,
    .cuMemSetAccess = soft_cuMemSetAccess,
    .cuMemGetAccess = soft_cuMemGetAccess,
    .cuMemRetainAllocationHandle = soft_cuMemRetainAllocationHandle,
};
