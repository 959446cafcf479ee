/* Pools between processes. All memory of a pool that can be shared lies in one file, at its address
 * less the beginning of the address space. So a descriptor of the file is the pool, also for memory
 * that it gets later, and the data of a pointer is a part of the file.
 *
 * The program passes the descriptor on, over a socket. Whoever has it may use the pool.
 *
 * On a machine with keys (struct hed_machine_keys) blocks are shared one by one, as in memory.c,
 * and the data of a pointer has the key of its block. The descriptor is a small file with the
 * secret of the pool, which the data must have, too.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/sealed.h"
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

    if (err || d->machine->keys)
        return err;
    p->blocks.file_base = d->space_base;
    return d->machine->memory.physical_create(d->machine_state, p->device->ordinal, d->space_size,
                                              &p->blocks.file);
}

/* ---- the descriptor of a pool on a machine with keys ----------------------------------------- */

/* What the file has. It may be anything that a program was given. */
struct pool_file {
    struct hed_ipc_name name; /* HED_IPC_KEY_POOL; the key is that of nothing */
    uint8_t owner[HED_PHYSICAL_OWNER];
};

static int
write_pool_file(const uint8_t owner[HED_PHYSICAL_OWNER], int *out)
{
    static const uint8_t none[HED_IPC_KEY] = {0};
    struct pool_file f;

    hed_ipc_key_name(HED_IPC_KEY_POOL, none, owner + 16, 0, 1, &f.name);
    memcpy(f.owner, owner, sizeof f.owner);
    return hed_fd_write_sealed("heddle-pool", &f, sizeof f, out);
}

static int
read_pool_file(int fd, uint8_t owner[HED_PHYSICAL_OWNER])
{
    struct pool_file f;

    if (hed_fd_read_whole(fd, &f, sizeof f) != 0 || hed_ipc_check(&f.name, HED_IPC_KEY_POOL) != 0 ||
        memcmp(f.name.secret, f.owner + 16, sizeof f.name.secret) != 0)
        return HED_EINVAL;
    memcpy(owner, f.owner, HED_PHYSICAL_OWNER);
    return 0;
}

/* ---- pools ----------------------------------------------------------------------------------- */

static bool
is_shareable(const struct hed_pool *p)
{
    return p && p->props.handleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
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

    if (p && !p->imported && a->handle_out && a->flags == 0 && is_shareable(p) &&
        a->handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        memcpy(owner, p->device->info.uuid, 16);
        memcpy(owner + 16, p->secret, sizeof p->secret);

        const int err =
            d->machine->keys
                ? write_pool_file(owner, &fd)
                : d->machine->memory.physical_export(d->machine_state, p->blocks.file, owner, &fd);

        r = err ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        if (!err)
            *(int *)a->handle_out = fd;
    }
    hed_pool_unref(p);
    return r;
}

/* Makes a pool of a file, which it takes; NULL on a machine with keys. */
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
        if (file)
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
    struct hed_physical_memory *file = NULL;
    uint8_t owner[HED_PHYSICAL_OWNER];
    const CUresult r = hed_memory_initialized(self);

    if (r != CUDA_SUCCESS)
        return r;
    if (!hed_ipc_is_possible(d, HED_cuMemPoolImportFromShareableHandle))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!a->pool_out || a->flags != 0 || (uintptr_t)a->handle > INT_MAX ||
        a->handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;

    const int fd = (int)(uintptr_t)a->handle;
    const int err = d->machine->keys
                        ? read_pool_file(fd, owner)
                        : d->machine->memory.physical_import(d->machine_state, fd, owner, &file);

    if (err)
        return err == HED_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    return import_pool(d, file, owner, a->pool_out);
}

/* The memory of a pool that can be shared, which contains an address. Its block is pinned. */
static bool
pin_pool_memory(struct hed_driver *d, uint64_t address, struct hed_allocation *out)
{
    hed_lock(&d->memory_lock);

    const struct hed_allocation *m = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, address);
    const bool fits = m && m->kind == HED_MEMORY_POOL && !m->freeing && is_shareable(m->pool);

    if (fits) {
        *out = *m;
        hed_blocks_pin_locked(m->block);
    }
    hed_unlock(&d->memory_lock);
    return fits;
}

static int
name_pool_memory(struct hed_driver *d, const struct hed_allocation *m, struct hed_ipc_name *out)
{
    int err;

    if (!d->machine->keys)
        return hed_ipc_name(HED_IPC_POOL, 0, m->pool->secret, m->at - m->pool->blocks.file_base,
                            m->size, out);
    err = hed_block_share(d, m->pool->device, m->block);
    if (!err)
        hed_ipc_key_name(HED_IPC_KEY_POOL, m->block->share->secret, m->pool->secret,
                         m->at - m->block->at, m->size, out);
    return err;
}

static CUresult
soft_cuMemPoolExportPointer(struct hed_layer *self, struct hed_cuMemPoolExportPointer *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_allocation m;
    struct hed_ipc_name n;
    const CUresult r = hed_memory_initialized(self);

    if (r != CUDA_SUCCESS)
        return r;
    if (!a->shareData_out || !pin_pool_memory(d, a->ptr, &m))
        return CUDA_ERROR_INVALID_VALUE;

    const int err = name_pool_memory(d, &m, &n);

    hed_blocks_unpin(m.block);
    if (err)
        return err == HED_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NOT_SUPPORTED;
    memcpy(a->shareData_out, &n, sizeof n);
    return CUDA_SUCCESS;
}

/* Is it a pointer of this pool? */
static bool
is_pool_name(const struct hed_pool *p, const struct hed_ipc_name *n, enum hed_ipc_kind kind)
{
    return hed_ipc_check(n, kind) == 0 && memcmp(n->secret, p->secret, sizeof p->secret) == 0;
}

/* The part of a pool that is meant: in its file, or memory of its own. */
static CUresult
open_pool_memory(struct hed_driver *d, struct hed_pool *p, struct hed_imported *i)
{
    uint8_t owner[HED_PHYSICAL_OWNER];
    int err;

    if (!is_pool_name(p, &i->name, d->machine->keys ? HED_IPC_KEY_POOL : HED_IPC_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    i->memory = p->blocks.file;
    if (!d->machine->keys)
        return CUDA_SUCCESS;
    err = hed_imported_open(d, HED_IPC_KEY_POOL, &i->name, owner, &i->memory);
    return err ? hed_ipc_refused(&i->name, err, "memory of a pool", CUDA_ERROR_INVALID_VALUE)
               : CUDA_SUCCESS;
}

static CUresult
soft_cuMemPoolImportPointer(struct hed_layer *self, struct hed_cuMemPoolImportPointer *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_pool *p = hed_pool_find(d, a->pool);
    struct hed_imported *i = NULL;
    struct hed_context *c;
    uint64_t at;
    CUresult r = hed_current(self, &c);

    if (r == CUDA_SUCCESS && (!p || !p->imported || !a->ptr_out || !a->shareData))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS && !(i = calloc(1, sizeof *i)))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r == CUDA_SUCCESS) {
        memcpy(&i->name, a->shareData, sizeof i->name);
        r = open_pool_memory(d, p, i);
    }
    if (r != CUDA_SUCCESS) {
        free(i);
        hed_pool_unref(p);
        return r;
    }
    i->pool = p; /* with our reference */
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
