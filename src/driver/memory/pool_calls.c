/* Calls for memory pools and for memory in stream order. See driver/memory/pool.h. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/stats.h"
#include "driver/ipc/imported.h"
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"
#include "driver/memory/pool.h"
#include "driver/stream/stream.h"
#include "driver/stream/work.h"

/* ---- life ------------------------------------------------------------------------------------ */

static void
destroy_pool(struct hed_object *o)
{
    struct hed_pool *p = (struct hed_pool *)o;

    hed_blocks_trim(&p->blocks, 0);
    hed_blocks_fini(&p->blocks);
    if (p->blocks.file)
        p->driver->machine->memory.physical_free(p->driver->machine_state, p->blocks.file);
    free(p);
}

int
hed_pool_create(struct hed_driver *d, struct hed_device *dev, const CUmemPoolProps_v1 *props,
                struct hed_pool **out)
{
    struct hed_pool *p = calloc(1, sizeof *p);

    if (!p)
        return HED_ENOMEM;
    p->object.destroy = destroy_pool;
    p->driver = d;
    p->device = dev;
    p->props = *props;
    hed_blocks_init(&p->blocks, d, dev ? dev->space : d->host_space, dev, true);
    /* The limit applies to reserved memory, which grows in steps: one step is always allowed. */
    if (props->maxSize)
        p->blocks.limit = hed_blocks_round(props->maxSize);
    for (int i = 0; i < 3; i++)
        p->reuse[i] = 1;

    const int err = hed_handles_add(d->handles, HED_KIND_POOL, &p->object);

    if (err)
        free(p);
    else
        *out = p;
    return err;
}

int
hed_pool_driver_init(struct hed_driver *d)
{
    CUmemPoolProps_v1 props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {.type = CU_MEM_LOCATION_TYPE_HOST}};
    int err = hed_pool_create(d, NULL, &props, &d->memory->host_pool);

    if (!err) {
        d->memory->host_pool->is_default = true;
        d->memory->host_current = d->memory->host_pool;
    }
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    for (int i = 0; !err && i < d->device_count; i++) {
        struct hed_device *dev = &d->devices[i];

        props.location.id = i;
        err = hed_pool_create(d, dev, &props, &dev->default_pool);
        if (!err) {
            dev->default_pool->is_default = true;
            dev->current_pool = dev->default_pool;
        }
    }
    return err;
}

/* The pools go with the table of handles, which holds the only references to them. */
void
hed_pool_driver_fini(struct hed_driver *d)
{
    for (int i = 0; i < d->device_count; i++)
        d->devices[i].default_pool = d->devices[i].current_pool = NULL;
}

static bool
is_host_location(CUmemLocationType type)
{
    return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

/* The device of a location; NULL for the host. */
static CUresult
device_of_location(struct hed_driver *d, const CUmemLocation_v1 *l, struct hed_device **out)
{
    *out = NULL;
    if (is_host_location(l->type))
        return CUDA_SUCCESS;
    if (l->type != CU_MEM_LOCATION_TYPE_DEVICE || l->id < 0 || l->id >= d->device_count)
        return CUDA_ERROR_INVALID_VALUE;
    *out = &d->devices[l->id];
    return CUDA_SUCCESS;
}

static CUresult
check_type(CUmemAllocationType type, enum hed_cuda_call id)
{
    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) {
        hed_stats_unsupported(HED_API_CUDA, id, "a pool of managed memory");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return type == CU_MEM_ALLOCATION_TYPE_PINNED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Can pools there be shared in this way? */
static bool
can_share_pool(const struct hed_driver *d, const struct hed_device *dev,
               CUmemAllocationHandleType types)
{
    return types == CU_MEM_HANDLE_TYPE_NONE ||
           (types == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && dev && hed_ipc_can(d));
}

static CUresult
soft_cuMemPoolCreate(struct hed_layer *self, struct hed_cuMemPoolCreate *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_device *dev;
    struct hed_pool *p;
    CUresult r = hed_memory_initialized(self);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->pool || !a->poolProps)
        return CUDA_ERROR_INVALID_VALUE;
    r = check_type(a->poolProps->allocType, HED_cuMemPoolCreate);
    if (r == CUDA_SUCCESS)
        r = device_of_location(d, &a->poolProps->location, &dev);
    if (r != CUDA_SUCCESS)
        return r;
    if (!can_share_pool(d, dev, a->poolProps->handleTypes)) {
        hed_stats_unsupported(HED_API_CUDA, HED_cuMemPoolCreate, "sharing a pool");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (hed_pool_create(d, dev, a->poolProps, &p))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (a->poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE && hed_pool_make_shareable(p)) {
        hed_pool_unref(
            (struct hed_pool *)hed_handles_remove(d->handles, HED_KIND_POOL, p->object.handle));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *a->pool = (CUmemoryPool)(uintptr_t)p->object.handle;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuMemPoolDestroy(struct hed_layer *self, struct hed_cuMemPoolDestroy *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_pool *p = hed_pool_find(d, a->pool);

    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->is_default) {
        hed_pool_unref(p);
        return CUDA_ERROR_INVALID_VALUE;
    }

    struct hed_object *name =
        hed_handles_remove(d->handles, HED_KIND_POOL, (uint64_t)(uintptr_t)a->pool);

    /* A device that has it as its current pool goes back to its default one. */
    hed_lock(&d->memory_lock);
    for (int i = 0; i < d->device_count; i++)
        if (d->devices[i].current_pool == p)
            d->devices[i].current_pool = d->devices[i].default_pool;
    if (d->memory->host_current == p)
        d->memory->host_current = d->memory->host_pool;
    hed_unlock(&d->memory_lock);
    hed_pool_unref(p);
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    hed_object_put(name);
    return CUDA_SUCCESS;
}

/* ---- which pool ------------------------------------------------------------------------------ */

static CUresult
soft_cuDeviceGetDefaultMemPool(struct hed_layer *self, struct hed_cuDeviceGetDefaultMemPool *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_get(self, a->dev, &dev);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->pool_out)
        return CUDA_ERROR_INVALID_VALUE;
    *a->pool_out = (CUmemoryPool)(uintptr_t)hed_pool_handle(dev->default_pool);
    return CUDA_SUCCESS;
}

static CUmemoryPool
current_pool_of(struct hed_driver *d, struct hed_device *dev)
{
    hed_lock(&d->memory_lock);

    const uint64_t handle = hed_pool_handle(dev ? dev->current_pool : d->memory->host_current);

    hed_unlock(&d->memory_lock);
    return (CUmemoryPool)(uintptr_t)handle;
}

static CUresult
set_current_pool(struct hed_driver *d, struct hed_device *dev, CUmemoryPool handle)
{
    struct hed_pool *p = hed_pool_find(d, handle);

    /* "imported memory pools may not be used in cuDeviceSetMemPool or cuMemAllocFromPoolAsync"
     * (CUDA Driver API, cuMemPoolImportFromShareableHandle) */
    if (!p || p->device != dev || p->imported) {
        hed_pool_unref(p);
        return CUDA_ERROR_INVALID_VALUE;
    }
    hed_lock(&d->memory_lock);
    if (dev)
        dev->current_pool = p;
    else
        d->memory->host_current = p;
    hed_unlock(&d->memory_lock);

    /* If it has been destroyed meanwhile, the thread that did so may have looked before it was
     * current. */
    struct hed_pool *still = hed_pool_find(d, handle);

    if (!still) {
        hed_lock(&d->memory_lock);
        if (dev && dev->current_pool == p)
            dev->current_pool = dev->default_pool;
        if (!dev && d->memory->host_current == p)
            d->memory->host_current = d->memory->host_pool;
        hed_unlock(&d->memory_lock);
    }
    hed_pool_unref(still);
    hed_pool_unref(p);
    return still ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
soft_cuDeviceGetMemPool(struct hed_layer *self, struct hed_cuDeviceGetMemPool *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_get(self, a->dev, &dev);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->pool)
        return CUDA_ERROR_INVALID_VALUE;
    *a->pool = current_pool_of(hed_driver_of(self), dev);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuDeviceSetMemPool(struct hed_layer *self, struct hed_cuDeviceSetMemPool *a)
{
    struct hed_device *dev;
    const CUresult r = hed_device_get(self, a->dev, &dev);

    return r == CUDA_SUCCESS ? set_current_pool(hed_driver_of(self), dev, a->pool) : r;
}

/* The device that a location and a type of memory stand for. */
static CUresult
device_of_typed_location(struct hed_layer *self, const CUmemLocation_v1 *l,
                         CUmemAllocationType type, enum hed_cuda_call id, struct hed_device **out)
{
    CUresult r = hed_memory_initialized(self);

    if (r == CUDA_SUCCESS && !l)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        r = check_type(type, id);
    return r == CUDA_SUCCESS ? device_of_location(hed_driver_of(self), l, out) : r;
}

static CUresult
soft_cuMemGetDefaultMemPool(struct hed_layer *self, struct hed_cuMemGetDefaultMemPool *a)
{
    struct hed_device *dev;
    const CUresult r =
        device_of_typed_location(self, a->location, a->type, HED_cuMemGetDefaultMemPool, &dev);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->pool_out)
        return CUDA_ERROR_INVALID_VALUE;
    *a->pool_out = (CUmemoryPool)(uintptr_t)hed_pool_handle(
        dev ? dev->default_pool : hed_driver_of(self)->memory->host_pool);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuMemGetMemPool(struct hed_layer *self, struct hed_cuMemGetMemPool *a)
{
    struct hed_device *dev;
    const CUresult r =
        device_of_typed_location(self, a->location, a->type, HED_cuMemGetMemPool, &dev);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->pool)
        return CUDA_ERROR_INVALID_VALUE;
    *a->pool = current_pool_of(hed_driver_of(self), dev);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuMemSetMemPool(struct hed_layer *self, struct hed_cuMemSetMemPool *a)
{
    struct hed_device *dev;
    const CUresult r =
        device_of_typed_location(self, a->location, a->type, HED_cuMemSetMemPool, &dev);

    return r == CUDA_SUCCESS ? set_current_pool(hed_driver_of(self), dev, a->pool) : r;
}

/* ---- attributes and access ------------------------------------------------------------------- */

static CUresult
set_attribute_locked(struct hed_pool *p, CUmemPool_attribute attr, const void *value)
{
    uint64_t wide = 0;
    int narrow = 0;

    switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        memcpy(&narrow, value, sizeof narrow);
        p->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = narrow != 0;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        memcpy(&wide, value, sizeof wide);
        p->blocks.keep = wide;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        memcpy(&wide, value, sizeof wide);
        if (wide != 0)
            return CUDA_ERROR_INVALID_VALUE;
        if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
            p->used_high = p->used;
        else
            p->blocks.reserved_high = p->blocks.reserved;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult
get_attribute_locked(const struct hed_pool *p, CUmemPool_attribute attr, void *value)
{
    const uint64_t wide[] = {
        [CU_MEMPOOL_ATTR_RELEASE_THRESHOLD] = p->blocks.keep,
        [CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT] = p->blocks.reserved,
        [CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH] = p->blocks.reserved_high,
        [CU_MEMPOOL_ATTR_USED_MEM_CURRENT] = p->used,
        [CU_MEMPOOL_ATTR_USED_MEM_HIGH] = p->used_high,
    };

    if (attr >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
        attr <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
        memcpy(value, &p->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES],
               sizeof(int));
        return CUDA_SUCCESS;
    }
    if (attr < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD || attr > CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(value, &wide[attr], sizeof wide[attr]);
    return CUDA_SUCCESS;
}

static CUresult
soft_cuMemPoolSetAttribute(struct hed_layer *self, struct hed_cuMemPoolSetAttribute *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_pool *p = hed_pool_find(d, a->pool);
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (p && a->value) {
        hed_lock(&d->memory_lock);
        r = set_attribute_locked(p, a->attr, a->value);
        hed_unlock(&d->memory_lock);
    }
    hed_pool_unref(p);
    return r;
}

static CUresult
soft_cuMemPoolGetAttribute(struct hed_layer *self, struct hed_cuMemPoolGetAttribute *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_pool *p = hed_pool_find(d, a->pool);
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    if (p && a->value) {
        hed_pool_settle(d);
        hed_lock(&d->memory_lock);
        r = get_attribute_locked(p, a->attr, a->value);
        hed_unlock(&d->memory_lock);
    }
    hed_pool_unref(p);
    return r;
}

static CUresult
check_access(const struct hed_pool *p, const CUmemAccessDesc_v1 *m)
{
    const struct hed_driver *d = p->driver;

    if (m->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        (m->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && m->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
         m->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
        return CUDA_ERROR_INVALID_VALUE;
    if (m->location.id < 0 || m->location.id >= d->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    /* The device that owns the memory always has access. */
    if (p->device == &d->devices[m->location.id] && m->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_DEVICE;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuMemPoolSetAccess(struct hed_layer *self, struct hed_cuMemPoolSetAccess *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_pool *p = hed_pool_find(d, a->pool);
    CUresult r = p && a->map && a->count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    for (size_t i = 0; r == CUDA_SUCCESS && i < a->count; i++)
        r = check_access(p, &a->map[i]);
    if (r == CUDA_SUCCESS) {
        hed_lock(&d->memory_lock);
        for (size_t i = 0; i < a->count; i++)
            p->access[a->map[i].location.id] = (uint8_t)a->map[i].flags;
        hed_unlock(&d->memory_lock);
    }
    hed_pool_unref(p);
    return r;
}

static CUresult
soft_cuMemPoolGetAccess(struct hed_layer *self, struct hed_cuMemPoolGetAccess *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_pool *p = hed_pool_find(d, a->memPool);
    struct hed_device *dev;
    CUresult r = p && a->flags && a->location ? device_of_location(d, a->location, &dev)
                                              : CUDA_ERROR_INVALID_VALUE;

    if (r == CUDA_SUCCESS) {
        hed_lock(&d->memory_lock);
        if (dev == p->device)
            *a->flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        else
            *a->flags =
                dev ? (CUmemAccess_flags)p->access[dev->ordinal] : CU_MEM_ACCESS_FLAGS_PROT_NONE;
        hed_unlock(&d->memory_lock);
    }
    hed_pool_unref(p);
    return r;
}

static CUresult
soft_cuMemPoolTrimTo(struct hed_layer *self, struct hed_cuMemPoolTrimTo *a)
{
    struct hed_pool *p = hed_pool_find(hed_driver_of(self), a->pool);

    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    hed_pool_settle(p->driver);
    hed_blocks_trim(&p->blocks, a->minBytesToKeep);
    hed_pool_unref(p);
    return CUDA_SUCCESS;
}

const struct hed_cuda_ops hed_calls_pool = {
    .cuMemPoolCreate = soft_cuMemPoolCreate,
    .cuMemPoolDestroy = soft_cuMemPoolDestroy,
    .cuDeviceGetDefaultMemPool = soft_cuDeviceGetDefaultMemPool,
    .cuDeviceGetMemPool = soft_cuDeviceGetMemPool,
    .cuDeviceSetMemPool = soft_cuDeviceSetMemPool,
    .cuMemGetDefaultMemPool = soft_cuMemGetDefaultMemPool,
    .cuMemGetMemPool = soft_cuMemGetMemPool,
    .cuMemSetMemPool = soft_cuMemSetMemPool,
    .cuMemPoolSetAttribute = soft_cuMemPoolSetAttribute,
    .cuMemPoolGetAttribute = soft_cuMemPoolGetAttribute,
    .cuMemPoolSetAccess = soft_cuMemPoolSetAccess,
    .cuMemPoolGetAccess = soft_cuMemPoolGetAccess,
    .cuMemPoolTrimTo = soft_cuMemPoolTrimTo,
    .cuMemAllocAsync = hed_soft_cuMemAllocAsync,
    .cuMemAllocFromPoolAsync = hed_soft_cuMemAllocFromPoolAsync,
    .cuMemFreeAsync = hed_soft_cuMemFreeAsync,
};
