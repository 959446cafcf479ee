/* Inside of memory.c and its neighbours: the trees of allocations, and what a driver's memory is.
 *
 * Three trees by first address: allocations; reserved ranges, which mappings lie in; descriptors of
 * texture and surface objects, which no address of the program finds.
 *
 * Functions that end in _locked need driver->memory_lock; what they return is good while it is
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
    uint64_t random;         /* state of the priorities' generator */
    uint64_t ids;            /* the last BUFFER_ID given out */
    _Atomic uint32_t mapped; /* allocations that hed_memory_is_mapped */
    struct hed_blocks host;
    struct hed_blocks plain[HED_PROFILE_DEVICES_MAX];
    struct hed_blocks managed[HED_PROFILE_DEVICES_MAX];
    struct hed_waiting_free *waiting, **waiting_last; /* oldest first: pool.c */
    struct hed_pool *host_pool,
        *host_current; /* of the host: default and current; current is guarded */
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

/* The one with the greatest first address that is not above, the least that is not below. */
struct hed_allocation *hed_memory_floor_locked(struct hed_memory *m, enum hed_memory_tree t,
                                               uint64_t address);
struct hed_allocation *hed_memory_ceiling_locked(struct hed_memory *m, enum hed_memory_tree t,
                                                 uint64_t address);

/* The one that an address is in. */
struct hed_allocation *hed_memory_in_locked(struct hed_memory *m, enum hed_memory_tree t,
                                            uint64_t address);

/* The first that [at, at + size) touches. */
struct hed_allocation *hed_memory_first_locked(struct hed_memory *m, enum hed_memory_tree t,
                                               uint64_t at, uint64_t size);

/* A node is made before the lock is taken, and freed after. */
struct hed_memory_node *hed_memory_node_create(const struct hed_allocation *a);
void hed_memory_node_free(struct hed_memory_node *n);
struct hed_allocation *hed_memory_node_allocation(struct hed_memory_node *n); /* before insert */
struct hed_allocation *hed_memory_insert_locked(struct hed_memory *m, struct hed_memory_node *n);
struct hed_memory_node *hed_memory_remove_locked(struct hed_memory *m,
                                                 const struct hed_allocation *a);

/* Puts an allocation into the index; its id is given here. OUT_OF_MEMORY. Takes the lock. */
CUresult hed_memory_add(struct hed_driver *d, const struct hed_allocation *a);

/* Takes the allocation out that begins at an address and is of the kind; false: there is none.
 * Takes the lock. */
bool hed_memory_remove(struct hed_driver *d, enum hed_memory_kind kind, uint64_t at,
                       struct hed_allocation *out);

/* Gives back what was behind an allocation that is in the index no more. The lock is not held. */
void hed_memory_release(struct hed_driver *d, const struct hed_allocation *a);

/* As hed_memory_covers, for reading or writing; *first (may be NULL) takes a copy of the allocation
 * that the first byte is in, where there is one. */
bool hed_memory_usable(struct hed_driver *d, uint64_t at, uint64_t size, bool write, bool *known,
                       struct hed_allocation *first);

/* Of the context: what identifies it in an allocation. */
void hed_memory_mark(struct hed_allocation *a, struct hed_context *c);

/* hed_memory_release's other half, each in its own file. */
void hed_pool_release(const struct hed_allocation *a);                        /* pool.c */
void hed_array_release(struct hed_driver *d, const struct hed_allocation *a); /* array.c */

void hed_virtual_release(const struct hed_allocation *a); /* virtual.c */

/* Memory is short: what the device's pools keep without using it goes. pool.c */
void hed_pool_trim_device(struct hed_device *dev);

/* pool.c. Does the waiting frees that streams have come to; forgets those of a dead context. */
void hed_pool_settle(struct hed_driver *d);
void hed_pool_context_gone(struct hed_context *c);

/* Spare bytes of the device's default and current pools. pool.c */
uint64_t hed_pool_spare_locked(const struct hed_device *dev);

/* Memory is short: pools' and spare blocks of a device go; NULL: the host's. memory.c */
void hed_memory_trim(struct hed_driver *d, struct hed_device *dev);

/* The handle of a pool; 0 for NULL. pool.c */
uint64_t hed_pool_handle(const struct hed_pool *pool);
