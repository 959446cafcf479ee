/* For memory.c and its neighbours only: the trees of allocations, and the memory of a driver.
 *
 * There are three trees, ordered by first address: allocations; reserved ranges, in which mappings
 * lie; and descriptors of texture and surface objects, which cannot be found by address.
 *
 * Functions that end in _locked need driver->memory_lock; what they return is valid while it is
 * held.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/memory/blocks.h"
#include "driver/memory/memory.h"

enum hed_memory_tree {
    HED_TREE_ALLOCATIONS,
    HED_TREE_RESERVED,
    HED_TREE_DESCRIPTORS,
    HED_TREE_COUNT
};

struct hed_memory_node;

struct hed_memory {
    struct hed_memory_node *root[HED_TREE_COUNT];
    uint64_t random;         /* state of the generator of priorities */
    uint64_t ids;            /* the last BUFFER_ID given out */
    _Atomic uint32_t mapped; /* number of allocations for which hed_memory_is_mapped() */
    struct hed_blocks host;
    struct hed_blocks plain[HED_PROFILE_DEVICES_MAX];
    struct hed_blocks managed[HED_PROFILE_DEVICES_MAX];
    struct hed_waiting_free *waiting, **waiting_last; /* oldest first: pool.c */
    _Atomic uint32_t waiting_count;                   /* their number; read without the lock */
    struct hed_pool *host_pool;                       /* the host's default pool */
    struct hed_pool *host_current;                    /* its current pool; guarded */
    struct hed_imported *imported; /* by cuIpcOpenMemHandle: driver/ipc/memory.c */
    struct hed_lock share_lock; /* held while a block is turned into a file, also by the machine */
};

static inline bool
hed_memory_is_mapped(const struct hed_allocation *a)
{
    return a->kind == HED_MEMORY_MANAGED ||
           (a->kind == HED_MEMORY_HOST && (a->flags & CU_MEMHOSTALLOC_DEVICEMAP));
}

static inline enum hed_memory_tree
hed_memory_tree_of(enum hed_memory_kind kind)
{
    if (kind == HED_MEMORY_RESERVED)
        return HED_TREE_RESERVED;
    return kind == HED_MEMORY_DESCRIPTOR ? HED_TREE_DESCRIPTORS : HED_TREE_ALLOCATIONS;
}

/* The allocation with the greatest first address at or below; with the least at or above. */
struct hed_allocation *hed_memory_floor_locked(struct hed_memory *m, enum hed_memory_tree t,
                                               uint64_t address);
struct hed_allocation *hed_memory_ceiling_locked(struct hed_memory *m, enum hed_memory_tree t,
                                                 uint64_t address);

/* The allocation that contains an address. */
struct hed_allocation *hed_memory_in_locked(struct hed_memory *m, enum hed_memory_tree t,
                                            uint64_t address);

/* The first allocation that overlaps [at, at + size). */
struct hed_allocation *hed_memory_first_locked(struct hed_memory *m, enum hed_memory_tree t,
                                               uint64_t at, uint64_t size);

/* A node is made before the lock is taken, and freed after it is released. */
struct hed_memory_node *hed_memory_node_create(const struct hed_allocation *a);
void hed_memory_node_free(struct hed_memory_node *n);
struct hed_allocation *hed_memory_node_allocation(struct hed_memory_node *n); /* before insert */
struct hed_allocation *hed_memory_insert_locked(struct hed_memory *m, struct hed_memory_node *n);
struct hed_memory_node *hed_memory_remove_locked(struct hed_memory *m,
                                                 const struct hed_allocation *a);

/* Puts an allocation into the index and gives it its id. OUT_OF_MEMORY. Takes the lock. */
CUresult hed_memory_add(struct hed_driver *d, const struct hed_allocation *a);

/* Takes the allocation that begins at an address out of the index; false if there is none of that
 * kind. Takes the lock. */
bool hed_memory_remove(struct hed_driver *d, enum hed_memory_kind kind, uint64_t at,
                       struct hed_allocation *out);

/* Gives back the memory of an allocation that has left the index. The lock is not held. */
void hed_memory_release(struct hed_driver *d, const struct hed_allocation *a);

/* Like hed_memory_covers(), for reading or writing. *first (may be NULL) takes a copy of the
 * allocation that contains the first byte, if there is one. */
bool hed_memory_usable(struct hed_driver *d, uint64_t at, uint64_t size, bool write, bool *known,
                       struct hed_allocation *first);

/* Sets the fields that identify an allocation's context. */
void hed_memory_mark(struct hed_allocation *a, struct hed_context *c);

/* The parts of hed_memory_release() that are in other files. */
void hed_pool_release(const struct hed_allocation *a);                        /* pool.c */
void hed_array_release(struct hed_driver *d, const struct hed_allocation *a); /* array.c */

void hed_virtual_release(const struct hed_allocation *a);                        /* virtual.c */
void hed_imported_release(struct hed_driver *d, const struct hed_allocation *a); /* ipc/memory.c */

/* Memory is short: frees what the device's pools keep without using it. pool.c */
void hed_pool_trim_device(struct hed_device *dev);

/* settle does the waiting frees whose point has been reached; context_gone does those of a context
 * that is being destroyed. pool.c */
void hed_pool_settle(struct hed_driver *d);
void hed_pool_context_gone(struct hed_context *c);

/* Spare bytes of the device's default and current pools. pool.c */
uint64_t hed_pool_spare_locked(const struct hed_device *dev);

/* Memory is short: frees the spare blocks and the unused blocks of pools, of a device or, if dev is
 * NULL, of the host. memory.c */
void hed_memory_trim(struct hed_driver *d, struct hed_device *dev);

/* The handle of a pool; 0 for NULL. pool.c */
uint64_t hed_pool_handle(const struct hed_pool *pool);
