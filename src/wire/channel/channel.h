/* Channels: messages both ways between one thread and one thread, and bulk data beside them.
 *
 * Over shared memory a channel is two rings of messages and two of bulk in one memfd, which the
 * client makes and sends over the connection; the connection stays, to notice that the peer is
 * gone. Over a socket it is the connection itself, with a buffer in each direction.
 *
 *   out:  hed_channel_begin -> fill in -> hed_channel_end        (bulk, if any, right behind it)
 *   in:   hed_channel_next -> a private copy of the message   (bulk, if any, must be taken next)
 *
 * Invariants:
 * 1. Each direction has one writer thread and one reader thread; nothing here is locked, but for
 *    hed_channel_flush(), which any thread may call.
 * 2. A message is seen by the peer whole or not at all, in the order of hed_channel_end().
 * 3. The reader copies a message out of shared memory once and looks only at the copy; ring
 *    positions and sizes that make no sense are HED_EFORMAT, never a wild access.
 * 4. Waiting is a bounded, adaptive spin and then a sleep (futex or poll); no time at all is spun
 *    where there is one core. Waiting ends, with HED_EIO, when the peer is gone, and the peer's
 *    death is noticed within HED_CHANNEL_LOST_MS even if it says nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/conn.h"
#include "wire/wire.h"

#define HED_CHANNEL_LOST_MS 1000

/* Over sockets the worker gives a sign of life (hed_channel_beat) so often on every channel where
 * the client may wait for it; a client that hears nothing for much longer takes it for lost, though
 * the connection be there: its process may be stopped, or a proxy in between. */
#define HED_CHANNEL_BEAT_MS 2500
#define HED_CHANNEL_SILENT_MS 10000

struct hed_channel;

/* Takes the connection. shared: over shared memory (the connection is a unix socket). The client's
 * side makes the memory and sends it; the worker's takes it. Bulk memory is not touched before it
 * is used. */
int hed_channel_create(struct hed_conn *conn, bool shared, struct hed_channel **out,
                       struct hed_why *why);
int hed_channel_accept(struct hed_conn *conn, bool shared, struct hed_channel **out,
                       struct hed_why *why);
void hed_channel_free(struct hed_channel *ch);   /* NULL is fine */
void hed_channel_forked(struct hed_channel *ch); /* in the child of a fork: closes without a word */
struct hed_conn *hed_channel_conn(struct hed_channel *ch);

/* Room for a message of `size` bytes (HED_MSG_ALIGN is added as needed), 16-byte aligned; the head
 * must be filled in. Waits while there is no room. NULL: the peer is gone. */
void *hed_channel_begin(struct hed_channel *ch, uint32_t size);

/* The message that was begun, now of `size` bytes (not more than was begun), is out. urgent: the
 * peer is to see it now; else it may stay in a buffer until that is full, something urgent comes,
 * bulk follows, or hed_channel_flush(). Over shared memory everything is seen at once. */
int hed_channel_end(struct hed_channel *ch, uint32_t size, bool urgent);

/* What is buffered goes out. Any thread, at any time. */
int hed_channel_flush(struct hed_channel *ch);
bool hed_channel_dirty(struct hed_channel *ch); /* is anything buffered? Any thread. */

/* A sign of life (HED_MSG_PING) between two messages, if it can be sent now; over sockets. Any
 * thread. */
void hed_channel_beat(struct hed_channel *ch);
/* Which ticket has the first message that is buffered and that nobody writes just now? 0: none. Any
 * thread. */
uint64_t hed_channel_first(struct hed_channel *ch);

/* The next message, in a buffer that stays until the next call. Waits up to timeout_ms (< 0: until
 * the peer is gone): HED_ETIME when there is none by then. HED_EIO, HED_EFORMAT. */
int hed_channel_next(struct hed_channel *ch, int timeout_ms, struct hed_msg **out);

/* ---- bulk: bytes of a message, in the order of the messages ---------------------------------- */

/* Writer: all of it, straight from the caller's memory where the transport can. HED_ESTATE while a
 * span is being filled, which it would overtake. */
int hed_channel_bulk_write(struct hed_channel *ch, const void *p, size_t n);
/* Writer: a span of memory to be filled in place, at least one byte, at most *n; then how much of
 * it counts. The memory is part of hed_channel_bulk_area(). `want` is what will be written in all.
 * Several spans (64 at most) may be filled at once; they are put in order, and of all but the last
 * everything counts. HED_ESTATE when all of the area is being filled. */
int hed_channel_bulk_space(struct hed_channel *ch, size_t want, void **p, size_t *n);
int hed_channel_bulk_put(struct hed_channel *ch, size_t n);

/* Reader: all of it, straight to the caller's memory where the transport can. */
int hed_channel_bulk_read(struct hed_channel *ch, void *p, size_t n);
/* Reader: a span of what has come, at least one byte, at most `most`. It may be used in place until
 * it is given back: in order, also later than the next span is taken (a copy engine reads it
 * meanwhile), but never more than HED_CHANNEL_STAGED bytes at once: HED_ESTATE. `most` is at most
 * what is left of the message's bulk. What is read by hed_channel_bulk_read() behind such a span is
 * given back together with it. */
#define HED_CHANNEL_STAGED (UINT32_C(8) << 20)
int hed_channel_bulk_peek(struct hed_channel *ch, size_t most, void **p, size_t *n);
void hed_channel_bulk_done(struct hed_channel *ch, size_t n);

/* The memory that spans come from, for registering with a driver: 0 for the incoming, 1 for the
 * outgoing direction. False: none yet (it is made at the first use of that direction). */
bool hed_channel_bulk_area(struct hed_channel *ch, int direction, void **p, size_t *n);
