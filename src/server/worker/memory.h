/* Between memory.c, copy.c and mirror.c of the worker: what is mapped where.
 *
 * The table is changed, and looked at, only by the thread whose turn it is.
 */
#pragma once

#include <pthread.h>

#include "server/worker/worker.h"

enum hed_mapping_kind { HED_MAPPING_BLOCK, HED_MAPPING_VIEW, HED_MAPPING_HOST };

struct hed_mapping {
    uint64_t at, size;
    enum hed_mapping_kind kind;
    int device;        /* ordinal; -1: the host's */
    uint64_t physical; /* the backend's handle; of a view: the client's number */
    uint8_t *shadow; /* mirror.c: what the client is known to have of it; NULL: not looked at yet */
};

struct hed_physical_made {
    uint64_t name; /* the client's number */
    uint64_t real;
    uint64_t size;
    int device;
    uint32_t views; /* mappings of it */
    bool released;  /* by the client: goes with the last view */
};

struct hed_worker_memory {
    struct hed_mapping *mappings; /* sorted by address; none overlap */
    size_t count, room;
    struct hed_physical_made *made; /* sorted by name */
    size_t made_count, made_room;
    uint64_t left[64];                    /* bytes of each device's lease that are not used */
    uint64_t host;                        /* bytes that are pinned */
    struct hed_deferred_copies *deferred; /* copy.c */
};

/* The mapping that an address is in; NULL: none. */
struct hed_mapping *hed_mapping_find(struct hed_worker_memory *m, uint64_t at);

/* Enters a mapping: HED_EFORMAT if it overlaps another, HED_ELIMIT. Takes exactly that one out:
 * HED_EFORMAT if it is not there. */
int hed_mapping_enter(struct hed_worker_memory *m, const struct hed_mapping *p);
int hed_mapping_leave(struct hed_worker_memory *m, uint64_t at, uint64_t size,
                      enum hed_mapping_kind kind, struct hed_mapping *out);

/* Room for one more in a table that doubles; false: no memory, or too many. */
bool hed_table_grow(void **table, size_t count, size_t *room, size_t most, size_t each);

/* Is all of [at, at + size) mapped, in one mapping or several side by side? */
bool hed_mapping_covers(struct hed_worker_memory *m, uint64_t at, uint64_t size);

/* guard.c. Is that memory of the client's: mapped, or of a variable? */
bool hed_memory_reaches(struct hed_worker *w, uint64_t at, uint64_t size);

/* memory.c. Bytes of a device that the client could have in all, those included that it has. */
uint64_t hed_memory_obtainable(struct hed_worker *w, int device);

/* deferred.c. */
struct hed_deferred_copies;
struct hed_deferred_copies *hed_deferred_copies_create(void);

/* Where the host's share of the arena begins. */
static inline uint64_t
hed_worker_host_base(const struct hed_worker *w)
{
    return w->base + (uint64_t)w->device_count * w->stride;
}
