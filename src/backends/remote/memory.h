/* Between memory.c, copy.c, deferred.c and mirror.c: what they keep, and where. */
#pragma once

#include <pthread.h>

#include "backends/remote/remote.h"

struct view;

struct hed_remote_mirror { /* memory of this process and of the worker: mirror.c */
    struct hed_remote_mirror *next;
    uint64_t at, size;
    uint8_t *shadow;
};

struct hed_remote_memory {
    struct hed_lock lock;    /* rank HED_RANK_LEASE; nothing is sent under it */
    pthread_cond_t answered; /* asking has changed */
    bool asking[HED_PROFILE_DEVICES_MAX];
    struct view *views; /* mappings of physical memory */
    struct hed_remote_mirror *mirrors;
    struct hed_lock alike; /* rank HED_RANK_MIRRORS; held while a range is made alike: mirror.c */
    /* Bytes of each device that the worker has granted and not been given back. */
    _Atomic uint64_t granted[HED_PROFILE_DEVICES_MAX];
    _Atomic uint64_t names; /* of physical memory; the last that was given */
};

/* A piece of a copy to memory of this process whose bytes have yet to come: deferred.c. */
struct hed_remote_deferred {
    struct hed_remote_deferred *next;
    struct hed_copy_side to; /* where the bytes go */
    struct hed_box box;
};

/* Pieces come on many channels: so many numbers may one be ahead of another that is on its way. */
#define HED_DEFERRED_AHEAD (UINT64_C(1) << 17)

struct hed_remote_copies {
    struct hed_lock lock; /* rank HED_RANK_LEASE; nothing is sent under it */
    pthread_cond_t came;  /* received has changed */
    struct hed_remote_deferred *first, **last;
    uint64_t bytes;                         /* of all of them; at most HED_DEFERRED_MAX */
    _Atomic uint32_t count;                 /* of them */
    _Atomic uint64_t received;              /* the number up to which all pieces have come */
    uint64_t come[HED_DEFERRED_AHEAD / 64]; /* bits, by number: of those above it, which have */
    struct hed_remote_helpers *helpers; /* threads that help with large copies; NULL: none yet */
    bool alone;                         /* there are no cores for them */
};

#define HED_DEFERRED_MAX (UINT64_C(64) << 20) /* bytes; the worker takes a little more */

/* Where the host's share begins. The calling thread's context, as messages name it; 0: none. */
uint64_t hed_remote_host_base(const struct hed_remote *r);
uint64_t hed_remote_current(struct hed_remote *r);

/* deferred.c. May so many more bytes come? Adds a piece before it is asked for; false: no room. */
bool hed_remote_deferred_room(struct hed_remote *r, uint64_t bytes);
bool hed_remote_deferred_add(struct hed_remote *r, const struct hed_remote_deferred *piece);
/* Is any of [at, at + size) yet to be written? Then who reads it waits first. */
bool hed_remote_deferred_touches(struct hed_remote *r, uint64_t at, uint64_t size);

/* helpers.c. A copy by several threads, where there are cores for that. */
struct hed_remote_helpers;
void hed_remote_memcpy(struct hed_remote *r, void *to, const void *from, size_t n, bool large);

/* mirror.c. Host memory was mapped; unmapped. Shared memory has no mirror. */
void hed_remote_mirror_made(struct hed_remote *r, uint64_t at, uint64_t size);
void hed_remote_mirror_gone(struct hed_remote *r, uint64_t at);
/* Bytes of memory that both sides have, as the worker has them. */
int hed_remote_mirror_data(struct hed_remote_channel *channel, const struct hed_data *d);
