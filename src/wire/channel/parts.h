/* What the files of channels share: the channel, its memory, its buffers. Not for other rooms;
 * tests look in to play a hostile peer.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "wire/channel/channel.h"
#include "wire/channel/ring.h"

/* The shared memory of a channel: the words of four rings, then their bytes. Everything begins at a
 * multiple of 64 KiB, the largest page there is. The sum is no multiple of 2 MiB, so it cannot be
 * memory of huge pages, which may turn out not to be there when it is touched. */
enum hed_channel_ring {
    HED_CHANNEL_CALL,
    HED_CHANNEL_ANSWER,
    HED_CHANNEL_BULK_IN,
    HED_CHANNEL_BULK_OUT
};
#define HED_CHANNEL_RINGS 4
#define HED_CHANNEL_WORDS (UINT32_C(64) << 10)
#define HED_CHANNEL_CALL_SIZE (UINT32_C(256) << 10)   /* client to worker */
#define HED_CHANNEL_ANSWER_SIZE (UINT32_C(128) << 10) /* worker to client */
#define HED_CHANNEL_SHARED \
    (HED_CHANNEL_WORDS + HED_CHANNEL_CALL_SIZE + HED_CHANNEL_ANSWER_SIZE + 2 * HED_CHANNEL_STAGED)

struct hed_channel_shared {
    struct hed_ring_words rings[HED_CHANNEL_RINGS]; /* enum hed_channel_ring */
};

_Static_assert(sizeof(struct hed_channel_shared) <= HED_CHANNEL_WORDS,
               "the words have their place");
_Static_assert(HED_CHANNEL_SHARED % (2 << 20) != 0, "no memory of huge pages");
_Static_assert(HED_CHANNEL_ANSWER_SIZE >= 2 * HED_MSG_MAX, "a pad and a message always fit");

/* Page-aligned memory of a socket's channel, through which spans of bulk go. */
struct hed_staging {
    uint8_t *bytes;           /* HED_CHANNEL_STAGED; NULL: not used yet */
    uint64_t given, returned; /* positions: handed to the caller, and back */
    struct hed_spans spans;   /* outgoing: what the caller is filling */
};

/* Bytes of messages that are on their way over a socket. */
#define HED_CHANNEL_BUFFER (UINT32_C(128) << 10)
struct hed_outgoing {
    struct hed_lock lock;  /* guards what follows and the connection's writing side */
    uint8_t *bytes;        /* HED_CHANNEL_BUFFER */
    uint32_t sent, filled; /* filled is changed by the channel's writer only */
    uint64_t owed;         /* bulk that messages have announced and that was not written yet */
    uint32_t room;         /* of the message that is being filled, at `filled`; 0: none */
    /* The ticket of the first message that is buffered; 0: none is, or somebody is just writing
     * them all. */
    _Atomic uint64_t first;
    struct hed_staging bulk;
};

struct hed_incoming { /* the reader's alone */
    uint8_t *bytes;   /* HED_CHANNEL_BUFFER */
    uint32_t taken, filled;
    struct hed_staging bulk;
};

struct hed_channel {
    struct hed_conn *conn;   /* NULL after a fork */
    uint8_t *shared;         /* HED_CHANNEL_SHARED bytes; NULL: over a socket */
    struct hed_msg *message; /* the one that hed_channel_next() returned; HED_MSG_MAX bytes */
    _Atomic int error;       /* of a socket; sticky */
    struct hed_ring out, in, bulk_out, bulk_in; /* over shared memory */
    struct hed_outgoing outgoing;               /* over a socket */
    struct hed_incoming incoming;
};

/* channel_socket.c: the functions of channel.h for sockets. */
int hed_channel_socket_init(struct hed_channel *ch);
void hed_channel_socket_fini(struct hed_channel *ch);
void *hed_channel_socket_begin(struct hed_channel *ch, uint32_t size);
int hed_channel_socket_end(struct hed_channel *ch, uint32_t size, bool urgent);
int hed_channel_socket_flush(struct hed_channel *ch);
void hed_channel_socket_beat(struct hed_channel *ch);
int hed_channel_socket_next(struct hed_channel *ch, int timeout_ms);
int hed_channel_socket_write(struct hed_channel *ch, const void *p, size_t n);
int hed_channel_socket_space(struct hed_channel *ch, size_t want, void **p, size_t *n);
int hed_channel_socket_put(struct hed_channel *ch, size_t n);
int hed_channel_socket_read(struct hed_channel *ch, void *p, size_t n);
int hed_channel_socket_peek(struct hed_channel *ch, size_t most, void **p, size_t *n);
int hed_channel_socket_done(struct hed_channel *ch, size_t n);
int hed_channel_socket_failed(struct hed_channel *ch,
                              int error); /* notes it; the first one stays */
