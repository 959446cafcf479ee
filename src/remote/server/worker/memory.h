/* What is mapped at which address. Shared by memory.c, copy.c and mirror.c.
 *
 * Only the thread that holds the current ticket changes or reads the tables.
 */
#pragma once

#include <pthread.h>

#include "remote/server/worker/worker.h"

enum hed_mapping_kind { HED_MAPPING_BLOCK, HED_MAPPING_VIEW, HED_MAPPING_HOST };

struct hed_mapping {
    uint64_t at, size;
    enum hed_mapping_kind kind;
    int device;        /* ordinal; -1 for host memory */
    uint64_t physical; /* the backend's handle; of a view, the client's number */
    uint64_t window;   /* of host memory: where its piece of the window begins; 0: in none */
    uint8_t *shadow;   /* mirror.c: the client's last known contents; NULL if not yet compared */
    bool missing;      /* the backend had no memory for it, and the client does not know that yet */
    bool offered;      /* other clients may have it: share.c */
    uint8_t key[HED_SHARE_KEY]; /* by which they open it */
};

struct hed_physical_made {
    uint64_t name; /* the client's number */
    uint64_t real;
    uint64_t size;
    int device;
    uint32_t views;             /* mappings of this memory */
    bool released;              /* the client has released it; it is freed with its last view */
    bool offered;               /* other clients may have it: share.c */
    bool opened;                /* it is another client's; not in the lease */
    uint8_t key[HED_SHARE_KEY]; /* of either */
};

struct hed_worker_memory {
    struct hed_mapping *mappings; /* sorted by address, without overlaps */
    size_t count, room;
    struct hed_physical_made *made; /* sorted by name */
    size_t made_count, made_room;
    uint64_t left[64]; /* unused bytes of each device's lease */
    uint64_t host;     /* bytes of pinned memory */
    uint64_t taken;    /* bytes of the lease that others have of what was unmapped last */
    struct hed_deferred_copies *deferred; /* copy.c */
};

/* The mapping that contains an address; NULL if there is none. */
struct hed_mapping *hed_mapping_find(struct hed_worker_memory *m, uint64_t at);

/* Adds a mapping: HED_EFORMAT if it overlaps another, HED_ELIMIT. Removes exactly that mapping:
 * HED_EFORMAT if it does not exist. */
int hed_mapping_enter(struct hed_worker_memory *m, const struct hed_mapping *p);
int hed_mapping_leave(struct hed_worker_memory *m, uint64_t at, uint64_t size,
                      enum hed_mapping_kind kind, struct hed_mapping *out);

/* Makes room for one more entry in a table that doubles. False if there is no memory, or if there
 * are too many entries. */
bool hed_table_grow(void **table, size_t count, size_t *room, size_t most, size_t each);

/* Is all of [at, at + size) mapped, by one mapping or by several that adjoin? */
bool hed_mapping_covers(struct hed_worker_memory *m, uint64_t at, uint64_t size);

/* How many bytes an operation of a batch waits for or writes; 0 if it does neither. */
static inline uint64_t
hed_memory_op_bytes(CUstreamBatchMemOpType operation)
{
    switch (operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return sizeof(uint64_t);
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return sizeof(uint32_t);
    default:
        return 0;
    }
}

/* Physical memory by the client's number; NULL. enter adds it: HED_ELIMIT; its name must be new. */
struct hed_physical_made *hed_physical_by_name(struct hed_worker_memory *m, uint64_t name);
int hed_physical_enter(struct hed_worker_memory *m, const struct hed_physical_made *p);

/* guard.c. Does the memory belong to the client, as a mapping or a variable? */
bool hed_memory_reaches(struct hed_worker *w, uint64_t at, uint64_t size);

/* memory.c. How many bytes of a device the client could have in all, including those that it
 * has. */
uint64_t hed_memory_obtainable(struct hed_worker *w, int device);

/* Is a range inside the arena, in the devices' or in the host's share? */
bool hed_memory_in_arena(const struct hed_worker *w, const struct hed_map *m, bool host,
                         uint64_t unit);
/* Takes pinned memory of what the client, and all clients together, may have. */
bool hed_memory_take_host(struct hed_worker *w, uint64_t size);
void hed_memory_give_host(struct hed_worker *w, uint64_t size);
/* What to answer about an object that is not there: an error of the protocol, unless it could not
 * be created. */
int hed_memory_missing(const struct hed_worker *w);

/* pinned.c. HED_MAP_HOST, as the functions of memory.c do it. */
int hed_pinned_init(struct hed_worker *w, struct hed_why *why);
/* Takes the descriptor of the client's heap, which the client has passed over the connection. */
int hed_pinned_take_heap(struct hed_worker *w, struct hed_conn *conn, struct hed_why *why);
int hed_pinned_map(struct hed_worker *w, const struct hed_map *m, CUresult *r);
int hed_pinned_unmap(struct hed_worker *w, const struct hed_map *m, CUresult *r);
CUresult hed_pinned_register(struct hed_worker *w, uint64_t at, uint64_t size);
/* Where the memory that was mapped at this address begins in the window; 0: in none. */
uint64_t hed_pinned_offset(struct hed_worker *w, uint64_t at);

/* share.c. The memory of a key is not offered any more; returns how many bytes of the lease others
 * have of it. close: the client has opened it, and does not have it any more. */
uint64_t hed_share_withdraw(struct hed_worker *w, const uint8_t key[HED_SHARE_KEY]);
void hed_share_close(struct hed_worker *w, const uint8_t key[HED_SHARE_KEY]);

/* deferred.c. */
struct hed_deferred_copies;
struct hed_deferred_copies *hed_deferred_copies_create(void);

/* Where the host's part of the arena begins. */
static inline uint64_t
hed_worker_host_base(const struct hed_worker *w)
{
    return w->base + (uint64_t)w->device_shares * w->stride;
}
