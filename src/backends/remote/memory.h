/* Between memory.c, copy.c, later.c and twin.c: what they keep, and where. */
#pragma once

#include <pthread.h>

#include "backends/remote/remote.h"

struct view;

struct hed_remote_twin { /* memory of this process and of the worker: twin.c */
    struct hed_remote_twin *next;
    uint64_t at, size;
    uint8_t *shadow;
};

struct hed_remote_memory {
    struct hed_lock lock;    /* rank HED_RANK_LEASE; nothing is sent under it */
    pthread_cond_t answered; /* asking has changed */
    bool asking[HED_PROFILE_DEVICES_MAX];
    struct view *views; /* mappings of physical memory */
    struct hed_remote_twin *twins;
    struct hed_lock alike; /* rank HED_RANK_TWINS; held while a range is made alike: twin.c */
    /* Bytes of each device that the worker has granted and not been given back. */
    _Atomic uint64_t granted[HED_PROFILE_DEVICES_MAX];
    _Atomic uint64_t names; /* of physical memory; the last that was given */
};

/* A piece of a copy to memory of this process whose bytes have yet to come: later.c. */
struct hed_remote_later {
    struct hed_remote_later *next;
    uint64_t at, pitch, slice; /* where the bytes go */
    uint64_t width, height, depth;
};

/* Pieces come on many channels: so many numbers may one be ahead of another that is on its way. */
#define HED_LATER_AHEAD (UINT64_C(1) << 17)

struct hed_remote_copies {
    struct hed_lock lock; /* rank HED_RANK_LEASE; nothing is sent under it */
    pthread_cond_t came;  /* received has changed */
    struct hed_remote_later *first, **last;
    uint64_t bytes;                      /* of all of them; at most HED_LATER_MAX */
    _Atomic uint32_t count;              /* of them */
    _Atomic uint64_t received;           /* the number up to which all pieces have come */
    uint64_t come[HED_LATER_AHEAD / 64]; /* bits, by number: of those above it, which have */
    struct hed_remote_helpers *helpers;  /* threads that help with large copies; NULL: none yet */
    bool alone;                          /* there are no cores for them */
};

#define HED_LATER_MAX (UINT64_C(64) << 20) /* bytes; the worker takes a little more */

/* Where the host's share begins. The calling thread's context, as messages name it; 0: none. */
uint64_t hed_remote_host_base(const struct hed_remote *r);
uint64_t hed_remote_current(struct hed_remote *r);

/* later.c. May so many bytes more come later? A piece, before it is asked for; false: no memory. */
bool hed_remote_later_room(struct hed_remote *r, uint64_t bytes);
bool hed_remote_later_add(struct hed_remote *r, const struct hed_remote_later *piece);
/* Is any of [at, at + size) yet to be written? Then who reads it waits first. */
bool hed_remote_later_touches(struct hed_remote *r, uint64_t at, uint64_t size);

/* helpers.c. A copy by several threads, where there are cores for that. */
struct hed_remote_helpers;
void hed_remote_memcpy(struct hed_remote *r, void *to, const void *from, size_t n, bool large);

/* twin.c. Host memory was mapped; unmapped. Shared memory has no twin. */
void hed_remote_twin_made(struct hed_remote *r, uint64_t at, uint64_t size);
void hed_remote_twin_gone(struct hed_remote *r, uint64_t at);
/* Bytes of memory that both sides have, as the worker has them. */
int hed_remote_twin_data(struct hed_remote_channel *channel, const struct hed_data *d);
