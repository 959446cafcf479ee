/* Pools between processes. All memory of a pool that can be shared lies in one file, at its address
 * less the beginning of the address space. So a descriptor of the file is the pool, also for memory
 * that it gets later, and the data of a pointer is a part of the file.
 *
 * The program passes the descriptor on, over a socket. Whoever has it may use the pool.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "driver/ipc/imported.h"
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"
#include "driver/memory/pool.h"

_Static_assert(sizeof(CUmemPoolPtrExportData_v1) == sizeof(struct hed_ipc_name), "the same size");

int
hed_pool_make_shareable(struct hed_pool *p)
{
    struct hed_driver *d = p->driver;
    const int err = hed_ipc_secret(p->secret);

    if (err)
        return err;
    p->blocks.file_base = d->space_base;
    return d->machine->memory.physical_create(d->machine_state, p->device->ordinal, d->space_size,
                                              &p->blocks.file);
}

static CUresult
soft_cuMemPoolExportToShareableHandle(struct hed_layer *self,
                                      struct hed_cuMemPoolExportToShareableHandle *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_pool *p = hed_pool_find(d, a->pool);
    uint8_t owner[HED_PHYSICAL_OWNER];
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    int fd;

    if (p && !p->imported && a->handle_out && a->flags == 0 && p->blocks.file &&
        a->handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        memcpy(owner, p->device->info.uuid, 16);
        memcpy(owner + 16, p->secret, sizeof p->secret);

        const int err =
            d->machine->memory.physical_export(d->machine_state, p->blocks.file, owner, &fd);

        r = err ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        if (!err)
            *(int *)a->handle_out = fd;
    }
    hed_pool_unref(p);
    return r;
}

/* Makes a pool of a file, which it takes. */
static CUresult
import_pool(struct hed_driver *d, struct hed_physical_memory *file,
            const uint8_t owner[HED_PHYSICAL_OWNER], CUmemoryPool *out)
{
    static const uint8_t none[HED_IPC_SECRET] = {0};
    struct hed_device *dev = hed_ipc_device(d, owner);
    struct hed_pool *p = NULL;
    CUresult r = CUDA_SUCCESS;

    /* Without a secret it is memory of cuMemCreate. */
    if (memcmp(owner + 16, none, sizeof none) == 0)
        r = CUDA_ERROR_INVALID_VALUE;
    else if (!dev)
        r = CUDA_ERROR_INVALID_DEVICE;
    if (r == CUDA_SUCCESS) {
        const CUmemPoolProps_v1 props = {
            .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dev->ordinal}};

        if (hed_pool_create(d, dev, &props, &p) != 0)
            r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (r != CUDA_SUCCESS) {
        d->machine->memory.physical_free(d->machine_state, file);
        return r;
    }
    p->imported = true;
    p->blocks.file = file;
    memcpy(p->secret, owner + 16, sizeof p->secret);
    *out = (CUmemoryPool)(uintptr_t)p->object.handle;
    return CUDA_SUCCESS;
}

static CUresult
soft_cuMemPoolImportFromShareableHandle(struct hed_layer *self,
                                        struct hed_cuMemPoolImportFromShareableHandle *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_physical_memory *file;
    uint8_t owner[HED_PHYSICAL_OWNER];
    const CUresult r = hed_memory_initialized(self);

    if (r != CUDA_SUCCESS)
        return r;
    if (!hed_ipc_is_possible(d, HED_cuMemPoolImportFromShareableHandle))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!a->pool_out || a->flags != 0 || (uintptr_t)a->handle > INT_MAX ||
        a->handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;

    const int err = d->machine->memory.physical_import(d->machine_state, (int)(uintptr_t)a->handle,
                                                       owner, &file);

    if (err)
        return err == HED_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    return import_pool(d, file, owner, a->pool_out);
}

static CUresult
soft_cuMemPoolExportPointer(struct hed_layer *self, struct hed_cuMemPoolExportPointer *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_ipc_name n;
    CUresult r = hed_memory_initialized(self);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->shareData_out)
        return CUDA_ERROR_INVALID_VALUE;
    r = CUDA_ERROR_INVALID_VALUE;
    hed_lock(&d->memory_lock);

    const struct hed_allocation *m = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, a->ptr);

    if (m && m->kind == HED_MEMORY_POOL && !m->freeing && m->pool->blocks.file) {
        const int err = hed_ipc_name(HED_IPC_POOL, 0, m->pool->secret,
                                     m->at - m->pool->blocks.file_base, m->size, &n);

        r = err ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    }
    hed_unlock(&d->memory_lock);
    if (r == CUDA_SUCCESS)
        memcpy(a->shareData_out, &n, sizeof n);
    return r;
}

static CUresult
soft_cuMemPoolImportPointer(struct hed_layer *self, struct hed_cuMemPoolImportPointer *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_pool *p = hed_pool_find(d, a->pool);
    struct hed_imported *i = NULL;
    struct hed_context *c;
    CUresult r = hed_current(self, &c);

    if (r == CUDA_SUCCESS && (!p || !p->imported || !a->ptr_out || !a->shareData))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS && !(i = calloc(1, sizeof *i)))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r != CUDA_SUCCESS) {
        hed_pool_unref(p);
        return r;
    }
    memcpy(&i->name, a->shareData, sizeof i->name);
    i->memory = p->blocks.file;
    i->pool = p; /* with our reference */
    if (hed_ipc_check(&i->name, HED_IPC_POOL) != 0 ||
        memcmp(i->name.secret, p->secret, sizeof p->secret) != 0) {
        free(i);
        hed_pool_unref(p);
        return CUDA_ERROR_INVALID_VALUE;
    }

    uint64_t at;

    r = hed_imported_map(c, p->device, i, &at);
    if (r == CUDA_SUCCESS)
        *a->ptr_out = at;
    return r;
}

const struct hed_cuda_ops hed_calls_ipc_pool = {
    .cuMemPoolExportToShareableHandle = soft_cuMemPoolExportToShareableHandle,
    .cuMemPoolImportFromShareableHandle = soft_cuMemPoolImportFromShareableHandle,
    .cuMemPoolExportPointer = soft_cuMemPoolExportPointer,
    .cuMemPoolImportPointer = soft_cuMemPoolImportPointer,
};
