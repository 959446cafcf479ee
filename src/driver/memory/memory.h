/* Memory as the program sees it: which allocation an address is in, and what may be done with it.
 *
 * Invariants:
 * 1. Every allocation, of whatever kind, is in the index exactly once, by its first address.
 *    Allocations do not overlap. Reserved ranges are kept apart, since mappings lie inside them.
 * 2. device->used counts what is charged to the device's profile: plain, pool, managed and physical
 *    memory. It never exceeds profile.memory.
 *
 * All of it is guarded by driver->memory_lock, which is never held while the machine is called. So
 * memory that is being mapped or unmapped is in no index and in no list of blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "driver/parts.h"

struct hed_memory_block;
struct hed_copy;
struct hed_fill;
struct hed_pool;
struct hed_work;

/* The program's error when the machine has no memory. A machine that is elsewhere may also be
 * lost. */
static inline CUresult
hed_memory_refused(int err)
{
    return err == HED_EIO ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_ERROR_OUT_OF_MEMORY;
}

enum hed_memory_kind {
    HED_MEMORY_DEVICE,     /* cuMemAlloc, cuMemAllocPitch */
    HED_MEMORY_POOL,       /* cuMemAllocAsync, cuMemAllocFromPoolAsync */
    HED_MEMORY_HOST,       /* cuMemHostAlloc, cuMemAllocHost */
    HED_MEMORY_REGISTERED, /* cuMemHostRegister: the program's own memory */
    HED_MEMORY_MANAGED,
    HED_MEMORY_IMPORTED, /* of another process: cuIpcOpenMemHandle, cuMemPoolImportPointer */
    HED_MEMORY_VIRTUAL,  /* a mapping of physical memory into a reserved range */
    HED_MEMORY_RESERVED, /* cuMemAddressReserve: only addresses */
    HED_MEMORY_ARRAY,
    HED_MEMORY_MODULE,     /* a module's variables */
    HED_MEMORY_DESCRIPTOR, /* of a texture or surface object; cannot be found by address */
    HED_MEMORY_KINDS
};

struct hed_allocation {
    uint64_t at, size; /* as the program asked for */
    uint64_t taken;    /* bytes of address space and of memory behind it */
    enum hed_memory_kind kind;
    unsigned flags; /* as given to the call that made the allocation */
    struct hed_device *device;
    struct hed_context *ctx; /* for comparing only, as it may be gone; NULL if no context owns it */
    uint64_t ctx_handle;
    uint64_t ctx_id;
    uint64_t id; /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
    struct hed_pool *pool;
    struct hed_memory_block *block; /* the block it was cut from; NULL if it was not cut from one */
    void *extra;                    /* for the file that handles this kind */
    bool sync_memops;

    /* Pool memory. */
    uint32_t frees; /* frees that have been queued */
    bool freeing;   /* freed by the program, but the stream is not there yet */
    bool graph;     /* belongs to a graph: keeps its address until the graph is destroyed */
};

/* Makes the index and the blocks. The spaces of d and its devices exist already
 * (hed_driver_create). 0 or HED_ENOMEM. */
int hed_memory_driver_init(struct hed_driver *d);
void hed_memory_driver_fini(struct hed_driver *d);

/* Takes addresses and memory, charged to the context's device: OUT_OF_MEMORY at the profile's size.
 * The allocation is put into the index. The kind determines flags and align. */
CUresult hed_memory_take(struct hed_context *c, enum hed_memory_kind kind, uint64_t size,
                         uint64_t align, uint64_t *at);
CUresult hed_memory_take_flags(struct hed_context *c, enum hed_memory_kind kind, uint64_t size,
                               uint64_t align, unsigned flags, uint64_t *at);

/* Gives memory back: INVALID_VALUE if no allocation of that kind begins there. */
CUresult hed_memory_give(struct hed_driver *d, enum hed_memory_kind kind, uint64_t at);

/* Copies the allocation that contains an address; false if there is none. */
bool hed_memory_find(struct hed_driver *d, uint64_t address, struct hed_allocation *out);

/* May copies use [at, at + size)? It must be inside one allocation, or inside several that are
 * mapped side by side. A host address outside all allocations is the program's own memory, which is
 * fine: then *known is false. */
bool hed_memory_covers(struct hed_driver *d, uint64_t at, uint64_t size, bool *known);

/* Bytes of a device that are mapped but have no owner: they are free to take and not part of
 * `used`. */
uint64_t hed_memory_spare(struct hed_device *dev);
/* Unmaps those outside of pools: the program has not needed memory for a while. */
void hed_memory_drop_spare(struct hed_device *dev);

/* Host memory that kernels can reach: managed memory, and pinned memory that was allocated as
 * mapped. has_mapped says whether there is any; next_mapped finds the first at or after *at. */
bool hed_memory_has_mapped(struct hed_driver *d);
bool hed_memory_next_mapped(struct hed_driver *d, uint64_t *at, uint64_t *size);

/* A context is being destroyed: gives back everything that was allocated in it. */
void hed_memory_context_gone(struct hed_context *c);

/* ---- copies and fills for graph nodes: copy.c ------------------------------------------------ */

/* Checks and resolves a copy or fill as the program describes it. INVALID_VALUE, INVALID_HANDLE. A
 * copy or fill of nothing succeeds with width 0 in *out and must not be put on a stream. */
CUresult hed_copy_resolve(struct hed_context *c, const CUDA_MEMCPY3D_v2 *given,
                          struct hed_copy *out);
/* Resolves it and puts it on a stream, as cuMemcpy3DAsync does. */
CUresult hed_copy_submit(struct hed_stream *s, const CUDA_MEMCPY3D_v2 *given);
/* Is there memory that may be written, for all of a fill? */
bool hed_fill_fits(struct hed_driver *d, const struct hed_fill *f);
CUresult hed_fill_resolve(struct hed_context *c, uint64_t to, uint64_t pitch, uint32_t value,
                          unsigned element, size_t width, size_t height, struct hed_fill *out);
/* ---- pools: pool.c --------------------------------------------------------------------------- */

/* Makes the default pools of all devices; after hed_memory_driver_init(). 0, HED_ENOMEM,
 * HED_ELIMIT. */
int hed_pool_driver_init(struct hed_driver *d);
void hed_pool_driver_fini(struct hed_driver *d);

/* References held by work that names a pool. NULL is fine. */
void hed_pool_ref(struct hed_pool *pool);
void hed_pool_unref(struct hed_pool *pool);

/* For machines whose streams are elsewhere, where a free is not work. Notes the free with the last
 * number of its stream. It is done once that number has been reached, which is checked when memory
 * is next taken, trimmed or queried. False if there is no memory. */
bool hed_pool_free_behind(struct hed_stream *s, uint64_t at);

/* Run HED_WORK_ALLOC and HED_WORK_FREE. The memory exists since the call that chose its address,
 * and is given back when the stream reaches the free. */
CUresult hed_pool_work_alloc(struct hed_work *w);
CUresult hed_pool_work_free(struct hed_work *w);

/* Memory of a graph. It is taken when the allocation node is made (a NULL pool is the device's
 * current one), keeps its address while the graph and everything instantiated from it live, and is
 * given back with hed_pool_graph_give(). Its contents are undefined from a run of the free node to
 * the next run of the allocation node. */
CUresult hed_pool_graph_take(struct hed_context *c, struct hed_pool *pool, uint64_t size,
                             uint64_t *at);
void hed_pool_graph_give(struct hed_driver *d, uint64_t at);
