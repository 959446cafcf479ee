/* What memory.c, copy.c, deferred.c and mirror.c share. */
#pragma once

#include <pthread.h>

#include "remote/client/remote.h"

/* Memory that the worker has, for the next worker: mappings.c. */
struct hed_remote_mapping {
    struct hed_remote_mapping *next;
    enum hed_map_kind kind;
    int device; /* ordinal in this program; -1 for the host */
    uint64_t at, size;
    uint64_t physical; /* of HED_MAP_PHYSICAL and HED_MAP_VIEW */
    uint64_t serial;   /* no other mapping has had it; a standby's is that of the program's */
    unsigned access;   /* of HED_MAP_VIEW, if it has been set */
    bool has_access;
    bool offered; /* other programs may have it: share.c */
};

#define HED_MAPPING_BUCKETS 4096u

struct hed_remote_mirror { /* memory that this process and the worker both have: mirror.c */
    struct hed_remote_mirror *next;
    uint64_t at, size;
    uint8_t *shadow;
};

struct hed_remote_memory {
    struct hed_lock lock;    /* rank HED_RANK_LEASE; nothing is sent under it */
    pthread_cond_t answered; /* signals that `asking` has changed */
    bool asking[HED_PROFILE_DEVICES_MAX];
    struct hed_remote_mapping *mappings[HED_MAPPING_BUCKETS];
    struct hed_remote_mirror *mirrors;
    struct hed_lock alike; /* rank HED_RANK_MIRRORS; held while a range is made equal: mirror.c */
    /* Bytes of each device that the worker has granted and not got back. */
    _Atomic uint64_t granted[HED_PROFILE_DEVICES_MAX];
    _Atomic uint64_t names;  /* names of physical memory; the last one given */
    uint64_t serials;        /* of mappings; the last one given */
    _Atomic uint32_t opened; /* memory of other programs */
    _Atomic bool shared;     /* there has been some, or they have had ours */
};

/* A piece of a copy to memory of this process whose bytes have yet to arrive: deferred.c. */
struct hed_remote_deferred {
    struct hed_remote_deferred *next;
    struct hed_copy_side to; /* where the bytes go */
    struct hed_box box;
    uint64_t number; /* of the bytes, if a thread is reading them; else 0 */
};

/* Pieces arrive on many channels. The number of one may be this far ahead of another that has yet
 * to arrive. */
#define HED_DEFERRED_AHEAD (UINT64_C(1) << 17)

struct hed_remote_copies {
    struct hed_lock lock; /* rank HED_RANK_LEASE; nothing is sent under it */
    pthread_cond_t came;  /* signals that `received` has changed */
    struct hed_remote_deferred *first, **last;
    uint64_t bytes;                         /* in all pieces; at most HED_DEFERRED_MAX */
    _Atomic uint32_t count;                 /* number of pieces */
    _Atomic uint64_t received;              /* all pieces up to this number have arrived */
    uint64_t come[HED_DEFERRED_AHEAD / 64]; /* one bit per number above it */
    struct hed_remote_helpers *helpers;     /* for large copies; NULL until they exist */
    bool alone;                             /* there are too few cores for helpers */
};

#define HED_DEFERRED_MAX (UINT64_C(64) << 20) /* bytes; the worker accepts a little more */
#define HED_DEFERRED_PIECES_MAX 32768u        /* before a copy; the worker accepts twice as many */

/* Where the host's share begins. */
static inline uint64_t
hed_remote_host_base(const struct hed_remote *r)
{
    return r->base + (uint64_t)r->device_count * r->stride;
}

/* mappings.c. `key` is the number of physical memory, else the address. access is that of all views
 * in a range. each calls fn for all of a kind, without a lock, and stops when it fails. */
int hed_remote_mapping_add(struct hed_remote *r, const struct hed_remote_mapping *what);
bool hed_remote_mapping_remove(struct hed_remote *r, enum hed_map_kind kind, uint64_t key);
/* Notes that other programs may open it. remove_offered removes it, and says whether they may. */
void hed_remote_mapping_offered(struct hed_remote *r, enum hed_map_kind kind, uint64_t key);
bool hed_remote_mapping_remove_offered(struct hed_remote *r, enum hed_map_kind kind, uint64_t key);
bool hed_remote_mapping_has(struct hed_remote *r, enum hed_map_kind kind, uint64_t key,
                            uint64_t size);
/* Has a standby the same pinned memory? */
bool hed_remote_mapping_same(struct hed_remote *standby, const struct hed_remote_mapping *m);
void hed_remote_mapping_access(struct hed_remote *r, uint64_t at, uint64_t size, unsigned access);
/* A copy of all mappings of a kind, in no order; the caller frees `all`. */
struct hed_remote_mappings {
    struct hed_remote_mapping *all;
    size_t count;
};
int hed_remote_mappings_list(struct hed_remote *r, enum hed_map_kind kind,
                             struct hed_remote_mappings *out);
int hed_remote_mappings_each(struct hed_remote *r, enum hed_map_kind kind,
                             int (*fn)(void *arg, const struct hed_remote_mapping *m), void *arg);
/* heap.c. Moves pinned memory into the heap, in which a worker that shares it will look for it. */
int hed_remote_heap_enter(struct hed_remote *r);
/* lease.c. take: takes bytes from the lease of a device, and asks for more if necessary; false if
 * the server has no more, and none says why. return: gives unmapped bytes back, and to the server
 * those that are unlikely to be needed soon. */
bool hed_remote_lease_take(struct hed_remote *r, int device, uint64_t size);
int hed_remote_lease_none(const struct hed_remote *r);
void hed_remote_lease_return(struct hed_remote *r, int device, uint64_t size);
/* Other programs still have memory that was the lease's; it is not any more. */
void hed_remote_lease_taken(struct hed_remote *r, int device, uint64_t size);
/* Gives back what the program has not used since the last look: others may need it. */
struct hed_remote_rest {
    uint64_t granted, unused; /* bytes of a device at the last look */
};
void hed_remote_lease_rest(struct hed_remote *r, struct hed_remote_rest *seen);
/* Gets leases of a new worker for all device memory that the program has. HED_ENOMEM: the
 * server has less, and the program must not stay. */
int hed_remote_lease_again(struct hed_remote *r, struct hed_why *why);
/* memory.c. Tells a new worker about all memory that the program has. It has that of the standby
 * already, if there is one. */
int hed_remote_map_again(struct hed_remote *r, struct hed_remote *standby, struct hed_why *why);

/* Tells a standby about pinned memory that the program's worker has, too. unmap: the program has
 * not got it any more, and no other memory there. */
int hed_remote_map_at_standby(struct hed_remote *standby, const struct hed_remote_mapping *m);
void hed_remote_unmap_at_standby(struct hed_remote *standby, uint64_t at, uint64_t size);

/* deferred.c. Can this many more bytes be deferred? add enters a piece before it is asked for;
 * false if there is no room. */
bool hed_remote_deferred_room(struct hed_remote *r, uint64_t bytes);
bool hed_remote_deferred_add(struct hed_remote *r, const struct hed_remote_deferred *piece);
/* Is any byte of [at, at + size) yet to be written? Then a thread that reads it waits first. */
bool hed_remote_deferred_touches(struct hed_remote *r, uint64_t at, uint64_t size);

/* helpers.c. Copies with several threads if there are cores for them. */
struct hed_remote_helpers;
void hed_remote_memcpy(struct hed_remote *r, void *to, const void *from, size_t n, bool large);

/* mirror.c. Host memory was mapped, or unmapped. Shared memory has no mirror. */
void hed_remote_mirror_made(struct hed_remote *r, uint64_t at, uint64_t size);
void hed_remote_mirror_gone(struct hed_remote *r, uint64_t at);
/* The shadow of a range, or NULL. It stays as long as the program's allocation there. */
uint8_t *hed_remote_mirror_shadow(struct hed_remote *r, uint64_t at, uint64_t size);
#define HED_MIRROR_GRANULE 65536u /* bytes that are compared and sent at once */
/* The range about which this thread asks the worker; its bytes are taken until size is 0. */
void hed_remote_mirror_expect(uint64_t at, uint64_t size);
/* Takes the worker's bytes of memory that both sides have. */
int hed_remote_mirror_data(struct hed_remote_channel *channel, const struct hed_data *d);
/* sync.c. Sends all of it to a worker that has just been told about it. */
int hed_remote_mirror_again(struct hed_remote *r);
