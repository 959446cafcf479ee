/* Memory as the program knows it: which allocation an address is in, and what may be done with it.
 *
 * Invariants:
 * 1. Every allocation, of whatever kind, is in the index exactly once, by its first address;
 *    allocations do not overlap. Reserved ranges are kept beside them: mappings lie inside.
 * 2. device->used counts what the device's profile pays for: plain, pool, managed and physical
 *    memory, and never exceeds profile.memory.
 *
 * All of it is guarded by driver->memory_lock, which is never held while the machine is called:
 * memory that is being mapped or unmapped is in no index and in no block list.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "driver/driver.h"

struct hed_memory_block;
struct hed_copy;
struct hed_fill;
struct hed_pool;
struct hed_work;

/* What it means to the program that the machine has no memory: one that is elsewhere may be lost.
 */
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
    HED_MEMORY_VIRTUAL,  /* a mapping of physical memory into a reserved range */
    HED_MEMORY_RESERVED, /* cuMemAddressReserve: addresses only */
    HED_MEMORY_ARRAY,
    HED_MEMORY_MODULE,     /* a module's variables */
    HED_MEMORY_DESCRIPTOR, /* of a texture or surface object; no address of the program finds it */
    HED_MEMORY_KINDS
};

struct hed_allocation {
    uint64_t at, size; /* as the program asked */
    uint64_t taken;    /* bytes of address space and of memory behind it */
    enum hed_memory_kind kind;
    unsigned flags; /* as given to the call that made it */
    struct hed_device *device;
    struct hed_context *ctx; /* identity only: may be gone; NULL: of no context */
    uint64_t ctx_handle;
    uint64_t ctx_id;
    uint64_t id; /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
    struct hed_pool *pool;
    struct hed_memory_block *block; /* it was cut from; NULL: not ours, or of its own kind */
    void *extra;                    /* of the kind's own file */
    bool sync_memops;

    /* Pool memory. */
    uint32_t frees; /* frees that are on their way */
    bool freeing;   /* freed by the program; waits for the stream to get there */
    bool graph;     /* belongs to a graph: its address stays until the graph dies */
};

/* The index and the blocks that memory is cut from: when the spaces of d and of its devices are
 * there (hed_driver_create). 0 or HED_ENOMEM. */
int hed_memory_driver_init(struct hed_driver *d);
void hed_memory_driver_fini(struct hed_driver *d);

/* Takes addresses and memory for a context's device: OUT_OF_MEMORY at the profile's size. The
 * allocation is in the index. flags, align as the kind wants. */
CUresult hed_memory_take(struct hed_context *c, enum hed_memory_kind kind, uint64_t size,
                         uint64_t align, uint64_t *at);
CUresult hed_memory_take_flags(struct hed_context *c, enum hed_memory_kind kind, uint64_t size,
                               uint64_t align, unsigned flags, uint64_t *at);

/* Gives it back: INVALID_VALUE if no allocation of that kind begins there. */
CUresult hed_memory_give(struct hed_driver *d, enum hed_memory_kind kind, uint64_t at);

/* A copy of the allocation that an address is in; false if it is in none. */
bool hed_memory_find(struct hed_driver *d, uint64_t address, struct hed_allocation *out);

/* Is [at, at + size) inside one allocation that copies may use (or several mapped side by side)? A
 * host address that is in none is the program's own memory and fine: *known is false. */
bool hed_memory_covers(struct hed_driver *d, uint64_t at, uint64_t size, bool *known);

/* Bytes of a device that are mapped and nobody's: they are to be had, and not in `used`. */
uint64_t hed_memory_spare(struct hed_device *dev);

/* Host memory that kernels can reach: managed, and pinned memory that was asked to be mapped. Is
 * there any? The first at or after *at; false: there is none. */
bool hed_memory_has_mapped(struct hed_driver *d);
bool hed_memory_next_mapped(struct hed_driver *d, uint64_t *at, uint64_t *size);

/* A context dies: everything that was allocated in it is given back. */
void hed_memory_context_gone(struct hed_context *c);

/* ---- copies and fills for graph nodes: copy.c ------------------------------------------------ */

/* Checks and resolves a copy or fill as the program describes it. INVALID_VALUE, INVALID_HANDLE. A
 * copy or fill of nothing succeeds with width 0 in *out, and must not be put on a stream. */
CUresult hed_copy_resolve(struct hed_context *c, const CUDA_MEMCPY3D_v2 *given,
                          struct hed_copy *out);
/* The same, and puts it on a stream, as cuMemcpy3DAsync does. */
CUresult hed_copy_submit(struct hed_stream *s, const CUDA_MEMCPY3D_v2 *given);
CUresult hed_fill_resolve(struct hed_context *c, uint64_t to, uint64_t pitch, uint32_t value,
                          unsigned element, size_t width, size_t height, struct hed_fill *out);
/* ---- pools: pool.c --------------------------------------------------------------------------- */

/* The default pools of all devices; after hed_memory_driver_init. 0, HED_ENOMEM, HED_ELIMIT. */
int hed_pool_driver_init(struct hed_driver *d);
void hed_pool_driver_fini(struct hed_driver *d);

/* What work that names a pool holds. NULL is fine. */
void hed_pool_ref(struct hed_pool *pool);
void hed_pool_unref(struct hed_pool *pool);

/* Machines whose streams are elsewhere make a free no work: it is noted here with the last number
 * of its stream, and done when that has been reached, as seen when memory is next taken, trimmed or
 * asked about. False: no memory. */
bool hed_pool_free_behind(struct hed_stream *s, uint64_t at);

/* HED_WORK_ALLOC and HED_WORK_FREE being run. Memory is there since the call that chose the
 * address; it goes when the stream reaches the free. */
CUresult hed_pool_work_alloc(struct hed_work *w);
CUresult hed_pool_work_free(struct hed_work *w);

/* Memory of a graph: taken when the alloc node is made (the pool may be NULL: the device's current
 * one), stays at its address while the graph and what was instantiated from it live, given back
 * with hed_pool_graph_give. Between a run of the free node and the next of the alloc node its
 * content is undefined. */
CUresult hed_pool_graph_take(struct hed_context *c, struct hed_pool *pool, uint64_t size,
                             uint64_t *at);
void hed_pool_graph_give(struct hed_driver *d, uint64_t at);
