/* Physical memory: see driver/memory/physical.h. virtual.c maps it. */
#include "driver/memory/physical.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/stats.h"
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"

static void
destroy_physical(struct hed_object *o)
{
    struct hed_physical *p = (struct hed_physical *)o;
    struct hed_driver *d = p->driver;

    d->machine->memory.physical_free(d->machine_state, p->memory);
    hed_lock(&d->memory_lock);
    hed_device_discharge(p->imported ? NULL : p->device, p->size);
    hed_unlock(&d->memory_lock);
    free(p);
}

struct hed_physical *
hed_physical_find(struct hed_driver *d, CUmemGenericAllocationHandle handle)
{
    struct hed_physical *p =
        (struct hed_physical *)hed_handles_get(d->handles, HED_KIND_PHYSICAL, handle);

    if (!p)
        return NULL;
    hed_lock(&d->memory_lock);

    const bool named = p->names > 0;

    hed_unlock(&d->memory_lock);
    if (named)
        return p;
    hed_object_put(&p->object);
    return NULL;
}

void
hed_physical_lose(struct hed_physical *p, uint32_t *count)
{
    struct hed_driver *d = p->driver;

    hed_lock(&d->memory_lock);
    if (*count > 0)
        --*count;

    const bool last = p->names == 0 && p->mappings == 0;

    hed_unlock(&d->memory_lock);
    /* When the driver is freed, the table of handles has gone already. */
    if (last && d->handles) {
        struct hed_object *name =
            hed_handles_remove(d->handles, HED_KIND_PHYSICAL, p->object.handle);

        if (name)
            hed_object_put(name);
    }
}

bool
hed_physical_can_export(const struct hed_driver *d)
{
    return d->machine->memory.physical_export &&
           (!d->machine->keys || d->machine->keys->possible(d->machine_state));
}

/* Can memory be exported in all of these ways? A machine with keys has none for the host's. */
static bool
can_export(const struct hed_driver *d, const CUmemAllocationProp_v1 *p)
{
    return p->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE ||
           (p->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
            hed_physical_can_export(d) &&
            (!d->machine->keys || p->location.type == CU_MEM_LOCATION_TYPE_DEVICE));
}

static CUresult
check_prop(struct hed_driver *d, const CUmemAllocationProp_v1 *p, enum hed_cuda_call id,
           struct hed_device **dev)
{
    *dev = NULL;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->type == CU_MEM_ALLOCATION_TYPE_MANAGED || !can_export(d, p)) {
        hed_stats_unsupported(HED_API_CUDA, id, "managed or shared physical memory");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (p->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    switch (p->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        if (p->location.id < 0 || p->location.id >= d->device_count)
            return CUDA_ERROR_INVALID_DEVICE;
        *dev = &d->devices[p->location.id];
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Physical memory that is charged to its device, with one name. */
static CUresult
create_physical(struct hed_driver *d, struct hed_device *dev, uint64_t size,
                const CUmemAllocationProp_v1 *prop, struct hed_physical **out)
{
    struct hed_physical *p = calloc(1, sizeof *p);

    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->object.destroy = destroy_physical;
    p->driver = d;
    p->device = dev;
    p->size = size;
    p->prop = *prop;
    p->names = 1;
    hed_lock(&d->memory_lock);

    const bool paid = hed_device_charge(dev, size);

    hed_unlock(&d->memory_lock);

    const int err = !paid ? HED_ENOMEM
                          : d->machine->memory.physical_create(
                                d->machine_state, dev ? dev->ordinal : -1, size, &p->memory);

    if (!err) {
        if (hed_handles_add(d->handles, HED_KIND_PHYSICAL, &p->object) == 0) {
            *out = p;
            return CUDA_SUCCESS;
        }
        d->machine->memory.physical_free(d->machine_state, p->memory);
    }
    hed_lock(&d->memory_lock);
    hed_device_discharge(paid ? dev : NULL, size);
    hed_unlock(&d->memory_lock);
    free(p);
    return hed_memory_refused(err);
}

CUresult
hed_soft_cuMemCreate(struct hed_layer *self, struct hed_cuMemCreate *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_physical *p;
    struct hed_device *dev;
    CUresult r = hed_memory_initialized(self);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->handle || (a->size == 0 || a->size % HED_PHYSICAL_UNIT) || a->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    r = check_prop(d, a->prop, HED_cuMemCreate, &dev);
    if (r == CUDA_SUCCESS)
        r = create_physical(d, dev, a->size, a->prop, &p);
    if (r == CUDA_SUCCESS)
        *a->handle = p->object.handle;
    return r;
}

/* ---- other processes ------------------------------------------------------------------------- */

/* "requestedHandleTypes" must have named the type when the memory was made. */
CUresult
hed_soft_cuMemExportToShareableHandle(struct hed_layer *self,
                                      struct hed_cuMemExportToShareableHandle *a)
{
    struct hed_driver *d = hed_driver_of(self);
    uint8_t owner[HED_PHYSICAL_OWNER] = {0}; /* zeros for the host */
    CUresult r = hed_memory_initialized(self);
    int fd = -1;

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_physical *p =
        a->shareableHandle && a->flags == 0 ? hed_physical_find(d, a->handle) : NULL;

    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->device)
        memcpy(owner, p->device->info.uuid, sizeof p->device->info.uuid);
    if (a->handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        p->prop.requestedHandleTypes != a->handleType)
        r = CUDA_ERROR_INVALID_VALUE;
    else if (d->machine->memory.physical_export(d->machine_state, p->memory, owner, &fd) != 0)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    else
        *(int *)a->shareableHandle = fd;
    hed_object_put(&p->object);
    return r;
}

/* Gives imported memory its properties: the device that it belongs to must be visible here. */
static CUresult
describe_imported(struct hed_driver *d, const uint8_t owner[HED_PHYSICAL_OWNER],
                  struct hed_physical *p)
{
    static const uint8_t host[16] = {0};

    /* With a secret, it is a pool, or memory of cuMemAlloc. */
    if (memcmp(owner + sizeof host, host, sizeof host) != 0)
        return CUDA_ERROR_INVALID_VALUE;

    p->prop =
        (CUmemAllocationProp_v1){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_HOST}};
    if (memcmp(owner, host, sizeof host) == 0)
        return CUDA_SUCCESS;
    for (int i = 0; i < d->device_count; i++)
        if (memcmp(owner, d->devices[i].info.uuid, 16) == 0) {
            p->device = &d->devices[i];
            p->prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
            p->prop.location.id = i;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_DEVICE;
}

/* Makes an object of memory that another process has exported. */
static CUresult
import_physical(struct hed_driver *d, int fd, CUmemGenericAllocationHandle *handle)
{
    struct hed_physical *p = calloc(1, sizeof *p);
    uint8_t owner[HED_PHYSICAL_OWNER];

    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->object.destroy = destroy_physical;
    p->driver = d;
    p->imported = true;
    p->names = 1;

    const int err = d->machine->memory.physical_import(d->machine_state, fd, owner, &p->memory);

    if (err) {
        free(p);
        return err == HED_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    }
    p->size = p->memory->size;

    CUresult r =
        p->size % HED_PHYSICAL_UNIT ? CUDA_ERROR_INVALID_VALUE : describe_imported(d, owner, p);

    if (r == CUDA_SUCCESS && hed_handles_add(d->handles, HED_KIND_PHYSICAL, &p->object) != 0)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r == CUDA_SUCCESS)
        *handle = p->object.handle;
    else
        destroy_physical(&p->object);
    return r;
}

CUresult
hed_soft_cuMemImportFromShareableHandle(struct hed_layer *self,
                                        struct hed_cuMemImportFromShareableHandle *a)
{
    struct hed_driver *d = hed_driver_of(self);
    const CUresult r = hed_memory_initialized(self);

    if (r != CUDA_SUCCESS)
        return r;
    if (a->shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !hed_physical_can_export(d)) {
        hed_stats_unsupported(HED_API_CUDA, HED_cuMemImportFromShareableHandle,
                              "a handle of this type");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!a->handle || (uintptr_t)a->osHandle > INT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    return import_physical(d, (int)(uintptr_t)a->osHandle, a->handle);
}

CUresult
hed_soft_cuMemRelease(struct hed_layer *self, struct hed_cuMemRelease *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_physical *p = hed_physical_find(d, a->handle);

    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    hed_physical_lose(p, &p->names);
    hed_object_put(&p->object);
    return CUDA_SUCCESS;
}

CUresult
hed_soft_cuMemGetAllocationGranularity(struct hed_layer *self,
                                       struct hed_cuMemGetAllocationGranularity *a)
{
    struct hed_device *dev;
    CUresult r = hed_memory_initialized(self);

    if (r == CUDA_SUCCESS && (!a->granularity || !a->prop ||
                              (a->option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
                               a->option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS) {
        /* A program may ask about memory that cannot be made. */
        CUmemAllocationProp_v1 prop = *a->prop;

        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
        r = check_prop(hed_driver_of(self), &prop, HED_cuMemGetAllocationGranularity, &dev);
    }
    if (r == CUDA_SUCCESS)
        *a->granularity = HED_PHYSICAL_UNIT;
    return r;
}

CUresult
hed_soft_cuMemGetAllocationPropertiesFromHandle(
    struct hed_layer *self, struct hed_cuMemGetAllocationPropertiesFromHandle *a)
{
    struct hed_physical *p = hed_physical_find(hed_driver_of(self), a->handle);
    const CUresult r = p && a->prop ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    if (r == CUDA_SUCCESS)
        *a->prop = p->prop;
    if (p)
        hed_object_put(&p->object);
    return r;
}
