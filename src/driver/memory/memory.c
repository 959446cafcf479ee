/* The index of allocations, and taking and giving back memory that is cut from blocks. */
#include "driver/memory/memory.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "driver/context/context.h"
#include "driver/memory/memory_index.h"

/* Bytes of host memory: pinned memory, unlike a device's, must really exist. 0 if unknown. */
static uint64_t
physical_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

int
hed_memory_driver_init(struct hed_driver *d)
{
    struct hed_memory *m = calloc(1, sizeof *m);

    if (!m)
        return HED_ENOMEM;
    m->random = 0x9e3779b97f4a7c15ull;
    m->waiting_last = &m->waiting;
    hed_lock_init(&m->share_lock, HED_RANK_IPC);
    hed_blocks_init(&m->host, d, d->host_space, NULL, false);
    m->host.limit = physical_memory();
    for (int i = 0; i < d->device_count; i++) {
        struct hed_device *dev = &d->devices[i];

        hed_blocks_init(&m->plain[i], d, dev->space, dev, false);
        hed_blocks_init(&m->managed[i], d, d->host_space, dev, false);
    }
    d->memory = m;
    return 0;
}

void
hed_memory_driver_fini(struct hed_driver *d)
{
    struct hed_memory *m = d->memory;

    if (!m)
        return;
    /* The table of handles has been freed, and with it every object to which only its handle
     * referred. */
    d->handles = NULL;
    for (int t = 0; t < HED_TREE_COUNT; t++) {
        struct hed_allocation *a;

        while ((a = hed_memory_ceiling_locked(m, (enum hed_memory_tree)t, 0))) {
            const struct hed_allocation gone = *a;

            hed_memory_node_free(hed_memory_remove_locked(m, a));
            hed_memory_release(d, &gone);
        }
    }
    for (int i = 0; i < d->device_count; i++) {
        hed_blocks_fini(&m->plain[i]);
        hed_blocks_fini(&m->managed[i]);
    }
    hed_blocks_fini(&m->host);
    hed_lock_fini(&m->share_lock);
    free(m);
    d->memory = NULL;
}

void
hed_memory_mark(struct hed_allocation *a, struct hed_context *c)
{
    a->device = c->device;
    a->ctx = c;
    a->ctx_handle = c->object.handle;
    a->ctx_id = hed_context_id(c);
}

static struct hed_blocks *
blocks_for_kind(struct hed_context *c, enum hed_memory_kind kind)
{
    struct hed_memory *m = c->device->driver->memory;

    switch (kind) {
    case HED_MEMORY_DEVICE:
    case HED_MEMORY_ARRAY:
    case HED_MEMORY_MODULE:
        return &m->plain[c->device->ordinal];
    case HED_MEMORY_MANAGED:
        return &m->managed[c->device->ordinal];
    case HED_MEMORY_HOST:
    case HED_MEMORY_DESCRIPTOR:
        return &m->host;
    default:
        return NULL;
    }
}

void
hed_memory_trim(struct hed_driver *d, struct hed_device *dev)
{
    if (dev) {
        hed_pool_settle(d);
        hed_pool_trim_device(dev);
        hed_blocks_trim(&d->memory->plain[dev->ordinal], 0);
        hed_blocks_trim(&d->memory->managed[dev->ordinal], 0);
    } else {
        hed_blocks_trim(&d->memory->host, 0);
    }
}

void
hed_memory_drop_spare(struct hed_device *dev)
{
    hed_blocks_trim(&dev->driver->memory->plain[dev->ordinal], UINT64_MAX);
}

uint64_t
hed_memory_spare(struct hed_device *dev)
{
    struct hed_driver *d = dev->driver;

    hed_lock_brief(&d->memory_lock);

    const uint64_t bytes = d->memory->plain[dev->ordinal].spare_bytes + hed_pool_spare_locked(dev);

    hed_unlock_brief(&d->memory_lock);
    return bytes;
}

CUresult
hed_memory_take_flags(struct hed_context *c, enum hed_memory_kind kind, uint64_t size,
                      uint64_t align, unsigned flags, uint64_t *at)
{
    struct hed_blocks *b = blocks_for_kind(c, kind);
    struct hed_allocation a = {.size = size, .kind = kind, .flags = flags};

    if (!b) {
        hed_bug("memory of kind %d is not cut from blocks", (int)kind);
        return CUDA_ERROR_UNKNOWN;
    }
    hed_memory_mark(&a, c);

    CUresult r = hed_blocks_take(b, size, align, &a.at, &a.taken, &a.block);

    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        hed_memory_trim(c->device->driver, b->payer);
        r = hed_blocks_take(b, size, align, &a.at, &a.taken, &a.block);
    }
    if (r != CUDA_SUCCESS)
        return r;
    r = hed_memory_add(c->device->driver, &a);
    if (r != CUDA_SUCCESS)
        hed_blocks_give(a.block, a.at, a.taken);
    else
        *at = a.at;
    return r;
}

CUresult
hed_memory_take(struct hed_context *c, enum hed_memory_kind kind, uint64_t size, uint64_t align,
                uint64_t *at)
{
    return hed_memory_take_flags(c, kind, size, align, 0, at);
}

void
hed_memory_release(struct hed_driver *d, const struct hed_allocation *a)
{
    switch (a->kind) {
    case HED_MEMORY_POOL:
        hed_pool_release(a);
        return;
    case HED_MEMORY_VIRTUAL:
        hed_virtual_release(a);
        return;
    case HED_MEMORY_IMPORTED:
        hed_imported_release(d, a);
        return;
    case HED_MEMORY_ARRAY:
        hed_array_release(d, a);
        break;
    case HED_MEMORY_MANAGED:
    case HED_MEMORY_DESCRIPTOR:
        free(a->extra);
        break;
    default:
        break;
    }
    if (a->block)
        hed_blocks_give(a->block, a->at, a->taken);
}

CUresult
hed_memory_give(struct hed_driver *d, enum hed_memory_kind kind, uint64_t at)
{
    struct hed_allocation a;

    if (!hed_memory_remove(d, kind, at, &a))
        return CUDA_ERROR_INVALID_VALUE;
    hed_memory_release(d, &a);
    return CUDA_SUCCESS;
}

bool
hed_memory_find(struct hed_driver *d, uint64_t address, struct hed_allocation *out)
{
    hed_lock(&d->memory_lock);

    const struct hed_allocation *a = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, address);

    if (!a)
        a = hed_memory_in_locked(d->memory, HED_TREE_RESERVED, address);
    if (a)
        *out = *a;
    hed_unlock(&d->memory_lock);
    return a != NULL;
}

bool
hed_memory_has_mapped(struct hed_driver *d)
{
    /* Relaxed: see hed_memory_insert_locked(). */
    return d->memory && atomic_load_explicit(&d->memory->mapped, memory_order_relaxed) > 0;
}

bool
hed_memory_next_mapped(struct hed_driver *d, uint64_t *at, uint64_t *size)
{
    hed_lock(&d->memory_lock);

    const struct hed_allocation *a =
        hed_memory_ceiling_locked(d->memory, HED_TREE_ALLOCATIONS, *at);

    while (a && !hed_memory_is_mapped(a))
        a = hed_memory_ceiling_locked(d->memory, HED_TREE_ALLOCATIONS, a->at + 1);
    if (a) {
        *at = a->at;
        *size = a->size;
    }
    hed_unlock(&d->memory_lock);
    return a != NULL;
}

/* May a copy read, or write, this allocation? */
static bool
open_to_copies(const struct hed_allocation *a, bool write)
{
    if (a->freeing)
        return false;
    switch (a->kind) {
    case HED_MEMORY_VIRTUAL:
        return write ? a->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE : a->flags != 0;
    case HED_MEMORY_ARRAY:
    case HED_MEMORY_RESERVED:
    case HED_MEMORY_DESCRIPTOR:
        return false;
    default:
        return true;
    }
}

/* Is a range outside all allocations the program's own memory? */
static bool
is_foreign(const struct hed_driver *d, uint64_t at, uint64_t size)
{
    return (at >= d->space_base && at - d->space_base >= d->space_size) ||
           (at < d->space_base && size <= d->space_base - at);
}

static bool
usable_locked(struct hed_driver *d, uint64_t at, uint64_t size, bool write)
{
    struct hed_memory *m = d->memory;
    const struct hed_allocation *a = hed_memory_in_locked(m, HED_TREE_ALLOCATIONS, at);

    if (!a)
        return is_foreign(d, at, size);
    for (;;) {
        const uint64_t rest = a->size - (at - a->at);

        if (!open_to_copies(a, write))
            return false;
        if (size <= rest)
            return true;
        at += rest;
        size -= rest;
        /* Only adjacent mappings in a reserved range count as one object for the program. */
        if (a->kind != HED_MEMORY_VIRTUAL)
            return false;
        a = hed_memory_in_locked(m, HED_TREE_ALLOCATIONS, at);
        if (!a || a->kind != HED_MEMORY_VIRTUAL)
            return false;
    }
}

bool
hed_memory_usable(struct hed_driver *d, uint64_t at, uint64_t size, bool write, bool *known,
                  struct hed_allocation *first)
{
    if (size > UINT64_MAX - at)
        return false;
    hed_lock(&d->memory_lock);

    const struct hed_allocation *a = hed_memory_in_locked(d->memory, HED_TREE_ALLOCATIONS, at);
    const bool usable = usable_locked(d, at, size, write);

    *known = a != NULL;
    if (a && first)
        *first = *a;
    hed_unlock(&d->memory_lock);
    return usable;
}

bool
hed_memory_covers(struct hed_driver *d, uint64_t at, uint64_t size, bool *known)
{
    return hed_memory_usable(d, at, size, false, known, NULL);
}

/* Takes one allocation of the context out of the index: the first at or after *from. */
static bool
remove_next(struct hed_driver *d, enum hed_memory_tree t, const struct hed_context *c,
            uint64_t *from, struct hed_allocation *out)
{
    struct hed_memory_node *n = NULL;

    hed_lock(&d->memory_lock);

    struct hed_allocation *a = hed_memory_ceiling_locked(d->memory, t, *from);

    while (a && a->ctx != c)
        a = hed_memory_ceiling_locked(d->memory, t, a->at + 1);
    if (a) {
        *out = *a;
        *from = a->at + 1;
        n = hed_memory_remove_locked(d->memory, a);
    }
    hed_unlock(&d->memory_lock);
    hed_memory_node_free(n);
    return a != NULL;
}

void
hed_memory_context_gone(struct hed_context *c)
{
    struct hed_driver *d = c->device->driver;

    if (d->memory)
        hed_pool_context_gone(c);
    for (int t = 0; d->memory && t < HED_TREE_COUNT; t++) {
        struct hed_allocation a;
        uint64_t from = 0;

        while (remove_next(d, (enum hed_memory_tree)t, c, &from, &a))
            hed_memory_release(d, &a);
    }
}
