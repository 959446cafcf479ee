/* Memory pools: memory that is allocated and freed in the order of streams.
 *
 *   call    cuMemAllocAsync: an address with memory behind it, at once
 *   call    cuMemFreeAsync: `freeing`; the program may not name it any more
 *   stream  HED_WORK_FREE: back to the pool's blocks, which go when more than the threshold is kept
 *
 * Between the last two, an allocation on the same stream may take the memory over, since all that
 * it is used for comes behind the free. The free then finds a live allocation and leaves it alone.
 *
 * Where streams are elsewhere a free is no work: it is a point in its stream, in a list of the
 * driver's, that is looked at when memory is next taken, trimmed or asked about.
 *
 * Invariants, under driver->memory_lock:
 * 1. An allocation of a pool holds a reference to it; a destroyed pool lives on until its last
 *    allocation is freed.
 * 2. allocation->frees is the number of frees of that address that are on streams. The memory goes
 *    when that reaches 0 and the allocation is `freeing`.
 * 3. Exactly the allocations that are `freeing` are in pool->pending.
 */
#pragma once

#include "driver/handle.h"
#include "driver/memory/blocks.h"
#include "driver/memory/memory.h"

struct hed_pending {
    struct hed_pending *next;
    struct hed_stream *stream; /* identity: it lives while a free is on it */
    uint64_t at, taken;
};

struct hed_pool {
    struct hed_object object; /* first */
    struct hed_driver *driver;
    struct hed_device *device; /* NULL: the host's */
    CUmemPoolProps_v1 props;
    bool is_default; /* cannot be destroyed */

    /* Guarded by driver->memory_lock. */
    struct hed_blocks blocks;
    struct hed_pending *pending;
    uint64_t used, used_high;                /* bytes, as the program asked */
    int reuse[3];                            /* CU_MEMPOOL_ATTR_REUSE_..., kept for whoever asks */
    uint8_t access[HED_PROFILE_DEVICES_MAX]; /* CUmemAccess_flags of other devices */
};

/* The pool of a handle, to be put back with hed_pool_unref; NULL: there is none. */
struct hed_pool *hed_pool_find(struct hed_driver *d, CUmemoryPool handle);

/* A free that waits for a point in its stream: hed_pool_free_behind. */
struct hed_waiting_free {
    struct hed_waiting_free *next;
    struct hed_stream *stream; /* a reference */
    uint64_t number;
    uint64_t at;
};

/* Memory for a stream's program order; the stream may be NULL: nothing is taken over. */
CUresult hed_pool_take(struct hed_pool *p, struct hed_context *c, struct hed_stream *s,
                       uint64_t size, bool graph, uint64_t *at);
