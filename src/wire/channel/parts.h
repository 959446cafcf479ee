/* What the files of lanes share: the lane, its memory, its buffers. Not for other rooms; tests look
 * in to play a hostile peer.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "wire/channel/channel.h"
#include "wire/channel/ring.h"

/* The shared memory of a lane: the words of four rings, then their bytes. Everything begins at a
 * multiple of 64 KiB, the largest page there is. The sum is no multiple of 2 MiB, so it cannot be
 * memory of huge pages, which may turn out not to be there when it is touched. */
enum hed_lane_ring { HED_LANE_CALL, HED_LANE_ANSWER, HED_LANE_BULK_IN, HED_LANE_BULK_OUT };
#define HED_LANE_RINGS 4
#define HED_LANE_WORDS (UINT32_C(64) << 10)
#define HED_LANE_CALL_SIZE (UINT32_C(256) << 10)   /* client to worker */
#define HED_LANE_ANSWER_SIZE (UINT32_C(128) << 10) /* worker to client */
#define HED_LANE_SHARED \
    (HED_LANE_WORDS + HED_LANE_CALL_SIZE + HED_LANE_ANSWER_SIZE + 2 * HED_LANE_STAGED)

struct hed_lane_shared {
    struct hed_ring_words rings[HED_LANE_RINGS]; /* enum hed_lane_ring */
};

_Static_assert(sizeof(struct hed_lane_shared) <= HED_LANE_WORDS, "the words have their place");
_Static_assert(HED_LANE_SHARED % (2 << 20) != 0, "no memory of huge pages");
_Static_assert(HED_LANE_ANSWER_SIZE >= 2 * HED_MSG_MAX, "a pad and a message always fit");

/* Page-aligned memory of a socket's lane, through which spans of bulk go. */
struct hed_staging {
    uint8_t *bytes;           /* HED_LANE_STAGED; NULL: not used yet */
    uint64_t given, returned; /* positions: handed to the caller, and back */
    struct hed_spans spans;   /* outgoing: what the caller is filling */
};

/* Bytes of messages that are on their way over a socket. */
#define HED_LANE_BUFFER (UINT32_C(128) << 10)
struct hed_outgoing {
    struct hed_lock lock;  /* guards what follows and the connection's writing side */
    uint8_t *bytes;        /* HED_LANE_BUFFER */
    uint32_t sent, filled; /* filled is changed by the lane's writer only */
    uint64_t owed;         /* bulk that messages have announced and that was not written yet */
    uint32_t room;         /* of the message that is being filled, at `filled`; 0: none */
    /* The ticket of the first message that is buffered; 0: none is, or somebody is just writing
     * them all. */
    _Atomic uint64_t first;
    struct hed_staging bulk;
};

struct hed_incoming { /* the reader's alone */
    uint8_t *bytes;   /* HED_LANE_BUFFER */
    uint32_t taken, filled;
    struct hed_staging bulk;
};

struct hed_lane {
    struct hed_conn *conn;   /* NULL after a fork */
    uint8_t *shared;         /* HED_LANE_SHARED bytes; NULL: over a socket */
    struct hed_msg *message; /* the one that hed_lane_next() returned; HED_MSG_MAX bytes */
    _Atomic int error;       /* of a socket; sticky */
    struct hed_ring out, in, bulk_out, bulk_in; /* over shared memory */
    struct hed_outgoing outgoing;               /* over a socket */
    struct hed_incoming incoming;
};

/* lane_socket.c: the functions of lane.h for sockets. */
int hed_lane_socket_init(struct hed_lane *l);
void hed_lane_socket_fini(struct hed_lane *l);
void *hed_lane_socket_begin(struct hed_lane *l, uint32_t size);
int hed_lane_socket_end(struct hed_lane *l, uint32_t size, bool urgent);
int hed_lane_socket_flush(struct hed_lane *l);
void hed_lane_socket_beat(struct hed_lane *l);
int hed_lane_socket_next(struct hed_lane *l, int timeout_ms);
int hed_lane_socket_write(struct hed_lane *l, const void *p, size_t n);
int hed_lane_socket_space(struct hed_lane *l, size_t want, void **p, size_t *n);
int hed_lane_socket_put(struct hed_lane *l, size_t n);
int hed_lane_socket_read(struct hed_lane *l, void *p, size_t n);
int hed_lane_socket_peek(struct hed_lane *l, size_t most, void **p, size_t *n);
int hed_lane_socket_done(struct hed_lane *l, size_t n);
int hed_lane_socket_failed(struct hed_lane *l, int error); /* notes it; the first one stays */
