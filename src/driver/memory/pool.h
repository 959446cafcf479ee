/* Memory pools: memory that is allocated and freed in stream order.
 *
 *   call    cuMemAllocAsync: an address with memory behind it, at once
 *   call    cuMemFreeAsync: the allocation is `freeing`; the program may not use it any more
 *   stream  HED_WORK_FREE: back to the pool's blocks, which are freed above the threshold
 *
 * Between the last two, an allocation on the same stream may take the memory over, since everything
 * it is used for comes after the free. The free then finds a live allocation and leaves it alone.
 *
 * Where streams are elsewhere, a free is not work but a point in its stream. The driver keeps a
 * list of these, and looks at it when memory is next taken, trimmed or queried.
 *
 * Invariants, under driver->memory_lock:
 * 1. An allocation of a pool holds a reference to it; a destroyed pool lives on until its last
 *    allocation is freed.
 * 2. allocation->frees is the number of frees of that address that are queued on streams. The
 *    memory goes when it reaches 0 and the allocation is `freeing`.
 * 3. Exactly the allocations that are `freeing` are in pool->pending.
 */
#pragma once

#include "driver/handle.h"
#include "driver/memory/blocks.h"
#include "driver/memory/memory.h"

struct hed_pending {
    struct hed_pending *next;
    struct hed_stream *stream; /* for comparing only: it lives while a free is queued on it */
    uint64_t at, taken;
};

struct hed_pool {
    struct hed_object object; /* must come first */
    struct hed_driver *driver;
    struct hed_device *device; /* NULL for the host */
    CUmemPoolProps_v1 props;
    bool is_default;                /* cannot be destroyed */
    bool imported;                  /* another process's: nothing can be allocated from it */
    uint8_t secret[HED_IPC_SECRET]; /* of a pool that can be shared: props.handleTypes */

    /* Guarded by driver->memory_lock. */
    struct hed_blocks blocks;
    struct hed_pending *pending;
    uint64_t used, used_high;                /* bytes, as the program asked for */
    int reuse[3];                            /* CU_MEMPOOL_ATTR_REUSE_..., kept for queries */
    uint8_t access[HED_PROFILE_DEVICES_MAX]; /* CUmemAccess_flags of each device */
};

/* Makes a pool with a handle; dev is NULL for the host. HED_ENOMEM, HED_ELIMIT. pool_calls.c */
int hed_pool_create(struct hed_driver *d, struct hed_device *dev, const CUmemPoolProps_v1 *props,
                    struct hed_pool **out);
/* A new pool's memory can be shared, for which it will be in a file, unless the machine has keys.
 * HED_ENOMEM, HED_EIO. ipc/pool.c */
int hed_pool_make_shareable(struct hed_pool *p);

/* The pool of a handle, with a reference that the caller gives back by hed_pool_unref(); NULL if
 * there is none. */
struct hed_pool *hed_pool_find(struct hed_driver *d, CUmemoryPool handle);

/* A free that waits for a point in its stream: hed_pool_free_behind. */
struct hed_waiting_free {
    struct hed_waiting_free *next;
    struct hed_stream *stream; /* a reference */
    uint64_t number;
    uint64_t at;
};

/* Takes memory for use in the stream's order. The stream may be NULL: then nothing is taken
 * over. */
CUresult hed_pool_take(struct hed_pool *p, struct hed_context *c, struct hed_stream *s,
                       uint64_t size, bool graph, uint64_t *at);
