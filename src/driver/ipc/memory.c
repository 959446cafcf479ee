/* Memory of cuMemAlloc between processes: cuIpcGetMemHandle, cuIpcOpenMemHandle and their
 * relatives.
 *
 *   exporter   the block that the allocation was cut from becomes a file, where it is
 *   importer   the pages around the allocation are mapped somewhere else; another address
 *
 * As with CUDA, small allocations share a block, so their neighbours are in the same file. The
 * exporter may free its memory at any time: the file lives as long as anybody has it mapped.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/number.h"
#include "core/stats.h"
#include "driver/ipc/imported.h"
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"
#include "driver/memory/pool.h"

#define MAP_ALIGN (2ull << 20) /* bytes; as blocks are aligned */

bool
hed_ipc_can(const struct hed_driver *d)
{
    return d->machine->keys ? d->machine->keys->possible(d->machine_state)
                            : d->machine->memory.share != NULL;
}

bool
hed_ipc_is_possible(struct hed_driver *d, enum hed_cuda_call id)
{
    if (hed_ipc_can(d))
        return true;
    hed_stats_unsupported(HED_API_CUDA, id, "sharing with other processes");
    return false;
}

struct hed_device *
hed_ipc_device(struct hed_driver *d, const uint8_t uuid[16])
{
    for (int i = 0; i < d->device_count; i++)
        if (memcmp(uuid, d->devices[i].info.uuid, 16) == 0)
            return &d->devices[i];
    return NULL;
}

CUresult
hed_ipc_refused(const struct hed_ipc_name *n, int err, const char *what, CUresult refused)
{
    switch (err) {
    case HED_EINVAL:
        return refused;
    case HED_ESTATE:
        return CUDA_ERROR_INVALID_CONTEXT; /* in the same process */
    case HED_ENOMEM:
        return CUDA_ERROR_OUT_OF_MEMORY;
    default:
        break;
    }
    if (n->kind >= HED_IPC_KEY_MEMORY) {
        hed_warn(DRIVER,
                 "%s of another program cannot be opened: it is gone, or it is not on this server, "
                 "or belongs to another user or certificate",
                 what);
        return refused;
    }
    switch (err) {
    case HED_ENOTFOUND:
        hed_warn(DRIVER, "%s of process %d cannot be opened: the process has ended or freed it",
                 what, (int)n->pid);
        return refused;
    default:
        hed_warn(DRIVER, "%s of process %d cannot be opened: %s", what, (int)n->pid,
                 err == HED_EACCESS ? "it belongs to another user or is privileged"
                                    : hed_err_text(err));
        return refused;
    }
}

/* ---- exporting ------------------------------------------------------------------------------- */

static void
free_share(struct hed_driver *d, struct hed_share *s)
{
    if (s->memory)
        d->machine->memory.physical_free(d->machine_state, s->memory);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}

/* Turns a block into a file, unless it is one. The share lock is held, which is also what keeps two
 * threads from being in the machine at once. */
static int
share_block_locked(struct hed_driver *d, struct hed_device *dev, struct hed_memory_block *k)
{
    const struct hed_machine_memory *memory = &d->machine->memory;
    uint8_t owner[HED_PHYSICAL_OWNER];
    struct hed_share *s;

    if (k->share)
        return 0;
    s = calloc(1, sizeof *s);
    if (!s)
        return HED_ENOMEM;
    s->fd = -1;

    int err = hed_ipc_secret(s->secret);

    if (!err)
        err = memory->share(d->machine_state, k->at, k->size, &s->memory);
    if (!err) {
        memcpy(owner, dev->info.uuid, 16);
        memcpy(owner + 16, s->secret, sizeof s->secret);
        err = memory->physical_export(d->machine_state, s->memory, owner, &s->fd);
    }
    if (err)
        free_share(d, s);
    else
        k->share = s;
    return err;
}

/* The same on a machine with keys. The machine gives one key to one block, however often it is
 * asked. */
static int
offer_shared_block(struct hed_driver *d, struct hed_device *dev, struct hed_memory_block *k)
{
    uint8_t owner[HED_PHYSICAL_OWNER] = {0};
    struct hed_share *s = calloc(1, sizeof *s);
    int err = s ? 0 : HED_ENOMEM;

    if (err)
        return err;
    s->fd = -1;
    memcpy(owner, dev->info.uuid, 16);
    owner[16] = 1; /* not memory of cuMemCreate */
    err = d->machine->keys->offer(d->machine_state, k->at, k->size, owner, s->secret);
    hed_lock(&d->memory->share_lock);
    if (!err && !k->share) {
        k->share = s;
        s = NULL;
    }
    hed_unlock(&d->memory->share_lock);
    free(s);
    return err;
}

int
hed_block_share(struct hed_driver *d, struct hed_device *dev, struct hed_memory_block *k)
{
    hed_lock(&d->memory->share_lock);

    const bool known = k->share != NULL;
    const int err = known || d->machine->keys ? 0 : share_block_locked(d, dev, k);

    hed_unlock(&d->memory->share_lock);
    return known || !d->machine->keys ? err : offer_shared_block(d, dev, k);
}

/* The name of an allocation whose block is shared. */
static int
name_memory(const struct hed_driver *d, const struct hed_allocation *m, struct hed_ipc_name *out)
{
    const struct hed_share *s = m->block->share;

    if (!d->machine->keys)
        return hed_ipc_name(HED_IPC_MEMORY, s->fd, s->secret, m->at - m->block->at, m->size, out);
    hed_ipc_key_name(HED_IPC_KEY_MEMORY, s->secret, NULL, m->at - m->block->at, m->size, out);
    return 0;
}

/* The allocation of cuMemAlloc that contains an address. Its block is pinned. */
static bool
pin_allocation(struct hed_driver *d, uint64_t address, struct hed_allocation *out)
{
    hed_lock(&d->memory_lock);

    const struct hed_allocation *a = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, address);
    const bool fits = a && a->kind == HED_MEMORY_DEVICE && a->block && !a->freeing;

    if (fits) {
        *out = *a;
        hed_blocks_pin_locked(a->block);
    }
    hed_unlock(&d->memory_lock);
    return fits;
}

static CUresult
soft_cuIpcGetMemHandle(struct hed_layer *self, struct hed_cuIpcGetMemHandle *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_context *c;
    struct hed_allocation m;
    struct hed_ipc_name name;
    const CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!hed_ipc_is_possible(d, HED_cuIpcGetMemHandle))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!a->pHandle || !pin_allocation(d, a->dptr, &m))
        return CUDA_ERROR_INVALID_VALUE;

    int err = hed_block_share(d, m.device, m.block);

    if (!err)
        err = name_memory(d, &m, &name);
    hed_blocks_unpin(m.block);
    if (err) {
        hed_warn(DRIVER, "memory cannot be shared with other processes: %s", hed_err_text(err));
        return err == HED_ENOTSUP ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(a->pHandle, &name, sizeof name);
    return CUDA_SUCCESS;
}

/* ---- importing ------------------------------------------------------------------------------- */

static void
free_imported(struct hed_driver *d, struct hed_imported *i)
{
    if (i->memory && (!i->pool || i->memory != i->pool->blocks.file))
        d->machine->memory.physical_free(d->machine_state, i->memory);
    if (i->pool)
        hed_pool_unref(i->pool);
    free(i);
}

void
hed_imported_release(struct hed_driver *d, const struct hed_allocation *a)
{
    struct hed_imported *i = a->extra;

    d->machine->memory.unmap(d->machine_state, i->base, i->bytes);
    hed_lock(&d->memory_lock);
    (void)hed_space_give(i->space, i->base);
    if (i->link) {
        *i->link = i->next;
        if (i->next)
            i->next->link = i->link;
    }
    hed_unlock(&d->memory_lock);
    free_imported(d, i);
}

static void
list_imported(struct hed_driver *d, struct hed_imported *i)
{
    hed_lock(&d->memory_lock);
    i->next = d->memory->imported;
    i->link = &d->memory->imported;
    if (i->next)
        i->next->link = &i->next;
    d->memory->imported = i;
    hed_unlock(&d->memory_lock);
}

CUresult
hed_imported_map(struct hed_context *c, struct hed_device *dev, struct hed_imported *i,
                 uint64_t *at)
{
    struct hed_driver *d = c->device->driver;
    const struct hed_ipc_name *n = &i->name;
    const bool whole = d->machine->keys != NULL;
    const uint64_t first = whole ? 0 : n->at - n->at % HED_MACHINE_PAGE;
    int err = HED_ERANGE;

    if (hed_range_fits(n->at, n->size, i->memory->size)) {
        i->bytes =
            whole ? i->memory->size : hed_align_up(n->at + n->size, HED_MACHINE_PAGE) - first;
        i->space = c->device->space;
        hed_lock(&d->memory_lock);
        err = hed_space_take(i->space, i->bytes, MAP_ALIGN, &i->base);
        hed_unlock(&d->memory_lock);
    }
    if (err) {
        free_imported(d, i);
        return err == HED_ERANGE ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    i->at = i->base + (n->at - first);
    i->opens = 1;
    i->ctx = c;

    struct hed_allocation a = {
        .at = i->at, .size = n->size, .taken = i->bytes, .kind = HED_MEMORY_IMPORTED, .extra = i};

    hed_memory_mark(&a, c);
    a.device = dev;
    err = d->machine->memory.physical_map(d->machine_state, i->memory, first, i->base, i->bytes);
    if (!err && whole)
        err = d->machine->memory.protect(d->machine_state, i->base, i->bytes, true, true);

    const CUresult r = err ? hed_memory_refused(err) : hed_memory_add(d, &a);

    if (r != CUDA_SUCCESS)
        hed_imported_release(d, &a);
    else
        *at = i->at;
    return r;
}

/* "If the memory handle has already been opened by the current context, the reference count on the
 * handle is incremented by 1 and the existing device pointer is returned." (CUDA Driver API,
 * cuIpcOpenMemHandle) */
static bool
open_imported_again(struct hed_driver *d, const struct hed_context *c, const struct hed_ipc_name *n,
                    uint64_t *at)
{
    struct hed_imported *i;

    hed_lock(&d->memory_lock);
    for (i = d->memory->imported; i; i = i->next)
        if (i->ctx == c && i->opens > 0 && memcmp(&i->name, n, sizeof *n) == 0)
            break;
    if (i) {
        i->opens++;
        *at = i->at;
    }
    hed_unlock(&d->memory_lock);
    return i != NULL;
}

int
hed_imported_open(struct hed_driver *d, enum hed_ipc_kind kind, const struct hed_ipc_name *n,
                  uint8_t owner[HED_PHYSICAL_OWNER], struct hed_physical_memory **out)
{
    const int err = hed_ipc_check(n, kind);

    return err ? err : d->machine->keys->open(d->machine_state, n->key, owner, out);
}

/* Opens the file of a name, which must have the name's secret. */
static int
open_memory(struct hed_driver *d, const struct hed_ipc_name *n, uint8_t owner[HED_PHYSICAL_OWNER],
            struct hed_physical_memory **out)
{
    const struct hed_machine_memory *memory = &d->machine->memory;
    int fd, err;

    if (d->machine->keys)
        return hed_imported_open(d, HED_IPC_KEY_MEMORY, n, owner, out);
    err = hed_ipc_open(n, HED_IPC_MEMORY, &fd);
    if (err)
        return err;
    err = memory->physical_import(d->machine_state, fd, owner, out);
    close(fd);
    if (err)
        return err == HED_EINVAL ? HED_ENOTFOUND : err;
    if (memcmp(owner + 16, n->secret, sizeof n->secret) != 0) {
        memory->physical_free(d->machine_state, *out);
        return HED_ENOTFOUND;
    }
    return 0;
}

static CUresult
open_handle(struct hed_layer *self, enum hed_cuda_call id, CUdeviceptr *out,
            const CUipcMemHandle_v1 *handle, unsigned flags)
{
    struct hed_driver *d = hed_driver_of(self);
    uint8_t owner[HED_PHYSICAL_OWNER];
    struct hed_context *c;
    struct hed_ipc_name n;
    uint64_t at;
    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!hed_ipc_is_possible(d, id))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!out || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&n, handle, sizeof n);
    if (open_imported_again(d, c, &n, &at)) {
        *out = at;
        return CUDA_SUCCESS;
    }

    struct hed_imported *i = calloc(1, sizeof *i);

    if (!i)
        return CUDA_ERROR_OUT_OF_MEMORY;
    i->name = n;

    const int err = open_memory(d, &n, owner, &i->memory);

    if (err) {
        free(i);
        return hed_ipc_refused(&n, err, "memory", CUDA_ERROR_INVALID_VALUE);
    }

    /* "cuIpcOpenMemHandle can open handles to devices that may not be visible in the process." */
    struct hed_device *dev = hed_ipc_device(d, owner);

    r = hed_imported_map(c, dev ? dev : c->device, i, &at);
    if (r == CUDA_SUCCESS) {
        list_imported(d, i);
        *out = at;
    }
    return r;
}

static CUresult
soft_cuIpcOpenMemHandle(struct hed_layer *self, struct hed_cuIpcOpenMemHandle *a)
{
    return open_handle(self, HED_cuIpcOpenMemHandle, a->pdptr, &a->handle, a->Flags);
}

static CUresult
soft_cuIpcOpenMemHandle_v2(struct hed_layer *self, struct hed_cuIpcOpenMemHandle_v2 *a)
{
    return open_handle(self, HED_cuIpcOpenMemHandle_v2, a->pdptr, &a->handle, a->Flags);
}

/* One call of cuIpcOpenMemHandle is undone; true if it was the last. */
static bool
close_once(struct hed_driver *d, uint64_t at, bool *found)
{
    bool last = false;

    hed_lock(&d->memory_lock);

    const struct hed_allocation *m = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, at);

    *found = m && m->at == at && m->kind == HED_MEMORY_IMPORTED && !hed_imported_from_pool(m);
    if (*found) {
        struct hed_imported *i = m->extra;

        *found = i->opens > 0;
        last = *found && --i->opens == 0;
    }
    hed_unlock(&d->memory_lock);
    return last;
}

static CUresult
soft_cuIpcCloseMemHandle(struct hed_layer *self, struct hed_cuIpcCloseMemHandle *a)
{
    struct hed_driver *d = hed_driver_of(self);
    struct hed_allocation m;
    struct hed_context *c;
    bool found;
    CUresult r = hed_current(self, &c);

    if (r != CUDA_SUCCESS)
        return r;
    if (!hed_ipc_is_possible(d, HED_cuIpcCloseMemHandle))
        return CUDA_ERROR_NOT_SUPPORTED;

    const bool last = close_once(d, a->dptr, &found);

    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    if (!last || !hed_memory_find(d, a->dptr, &m))
        return CUDA_SUCCESS;
    r = hed_memory_quiesce(c, &m);

    const CUresult given = hed_memory_give(d, HED_MEMORY_IMPORTED, a->dptr);

    return r != CUDA_SUCCESS ? r : given;
}

const struct hed_cuda_ops hed_calls_ipc_memory = {
    .cuIpcGetMemHandle = soft_cuIpcGetMemHandle,
    .cuIpcOpenMemHandle = soft_cuIpcOpenMemHandle,
    .cuIpcOpenMemHandle_v2 = soft_cuIpcOpenMemHandle_v2,
    .cuIpcCloseMemHandle = soft_cuIpcCloseMemHandle,
};
