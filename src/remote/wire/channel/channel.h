/* Channels: messages in both directions between one thread here and one thread of the peer, with
 * bulk data beside them.
 *
 *   out:  hed_channel_begin -> fill in -> hed_channel_end       (bulk, if any, right after it)
 *   in:   hed_channel_next -> a private copy of the message     (bulk, if any, must be taken next)
 *
 * Over shared memory a channel is four rings in one memfd, which the client makes and sends over
 * the connection; the connection then only shows whether the peer is still there. Between a guest
 * and its host the rings are in the guest's window. Over other transports messages and bulk are
 * bytes of the connection itself. ops.h is for those who add a transport.
 *
 * Invariants:
 * 1. Each direction has one thread that writes and one that reads. Nothing here is locked, except
 *    for hed_channel_flush(), hed_channel_first(), hed_channel_beat() and hed_channel_last(),
 *    which any thread may call.
 * 2. The peer sees a message completely or not at all, in the order of hed_channel_end().
 * 3. The reader copies a message out of shared memory once and looks only at the copy. Positions
 *    and sizes that make no sense are HED_EFORMAT, never a wild access.
 * 4. Waiting is a bounded, adaptive spin and then a sleep; with only one core there is no spin. A
 *    wait ends with HED_EIO when the peer is gone, at the latest HED_CHANNEL_LOST_MS after it died.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "remote/wire/channel/ops.h"
#include "remote/wire/conn.h"
#include "remote/wire/wire.h"

#define HED_CHANNEL_LOST_MS 1000

/* Where a connection alone does not show that the peer still works (its process may be stopped, or
 * a proxy may stall), the worker gives a sign of life this often on every channel on which the
 * client may be waiting. A client that has heard nothing for much longer gives the worker up. */
#define HED_CHANNEL_BEAT_MS 2500    /* over a socket */
#define HED_CHANNEL_BEAT_SHM_MS 250 /* in shared memory, where it costs nothing */

/* Create the client's side, or the worker's side, of a channel over this connection, which they
 * take ownership of. Both must use the same operations, which the client's hello has named. */
int hed_channel_create(struct hed_conn *conn, const struct hed_channel_ops *ops,
                       struct hed_channel **out, struct hed_why *why);
int hed_channel_accept(struct hed_conn *conn, const struct hed_channel_ops *ops,
                       struct hed_channel **out, struct hed_why *why);
void hed_channel_free(struct hed_channel *ch); /* NULL is allowed */
void
hed_channel_forked(struct hed_channel *ch); /* in the child of a fork; the peer does not notice */

/* Ends the connection, so that the thread that waits for messages returns with HED_EIO soon. Any
 * thread may call it; the channel must still be freed. */
void hed_channel_stop(struct hed_channel *ch);

static inline struct hed_conn *
hed_channel_conn(struct hed_channel *ch)
{
    return ch->conn;
}

/* Do both sides see the same memory? */
static inline bool
hed_channel_shares(const struct hed_channel *ch)
{
    return ch->ops->shares;
}

/* The window that the channel is in, and memory for HED_CHANNEL_SLOTS bytes of slots in it. NULL if
 * it is in none. */
#define HED_CHANNEL_SLOTS (UINT32_C(64) << 10)
static inline const struct hed_window *
hed_channel_window_of(struct hed_channel *ch, void **slots)
{
    return ch->ops->window ? ch->ops->window(ch, slots) : NULL;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Returns room for a message of `size` bytes, 16-byte aligned; the caller must fill in the head.
 * Waits while there is no room. NULL if the peer is gone. */
static inline void *
hed_channel_begin(struct hed_channel *ch, uint32_t size)
{
    return ch->ops->begin(ch, size);
}

/* Sends the message that was begun. `size` is its final size, at most what hed_channel_begin()
 * reserved. If `urgent`, the peer must see it now. Otherwise the message may stay in a buffer until
 * the buffer is full, an urgent message or bulk follows, or hed_channel_flush() is called. */
static inline int
hed_channel_end(struct hed_channel *ch, uint32_t size, bool urgent)
{
    return ch->ops->end(ch, size, urgent);
}

/* Sends what is buffered. Any thread may call it at any time. */
static inline int
hed_channel_flush(struct hed_channel *ch)
{
    return ch->ops->flush ? ch->ops->flush(ch) : 0;
}

/* The ticket of the first message that is buffered and that no thread is writing out just now; 0 if
 * there is none. It is a hint: to be sure, flush. Any thread may call it. */
static inline uint64_t
hed_channel_first(struct hed_channel *ch)
{
    return ch->ops->first ? ch->ops->first(ch) : 0;
}

/* Sends a sign of life (HED_MSG_PING) between two messages, if that is possible without waiting and
 * if the transport needs one. Any thread may call it. */
static inline void
hed_channel_beat(struct hed_channel *ch)
{
    ch->ops->beat(ch);
}

/* Client: waits for the worker end with HED_EIO after so many milliseconds without a sign of life;
 * over sockets after at least two beats. Called before the channel is used. */
static inline int
hed_channel_patience(struct hed_channel *ch, int ms)
{
    return ch->ops->patience(ch, ms);
}

/* The worker ends the session: sends HED_MSG_END, if that is possible without waiting. Any thread
 * may call it. */
static inline void
hed_channel_last(struct hed_channel *ch, const struct hed_end *end)
{
    ch->ops->last(ch, end);
}

/* Has the peer said why it is gone? For the reader, after HED_EIO. The text ends with 0 and has no
 * characters that a terminal could take for a command. */
bool hed_channel_last_words(struct hed_channel *ch, struct hed_end *out);

/* Gets the next message, in memory that stays valid until the next call. Waits up to timeout_ms or,
 * if that is negative, until the peer is gone. HED_ETIME if there was none, HED_EIO, also after
 * HED_MSG_END, HED_EFORMAT. */
static inline int
hed_channel_next(struct hed_channel *ch, int timeout_ms, struct hed_msg **out)
{
    *out = ch->message; /* always the same memory */

    const int err = ch->ops->next(ch, timeout_ms);

    return err == 0 && ch->message->kind == HED_MSG_END ? HED_EIO : err;
}

/* ---- bulk: bytes of a message, in the order of the messages ---------------------------------- */

#define HED_CHANNEL_STAGED \
    (UINT32_C(8) << 20) /* bytes that may be in use in place, per direction */

/* Writer: sends n bytes, directly from the caller's memory if the transport can. HED_ESTATE while a
 * span is being filled, because these bytes would overtake it. */
static inline int
hed_channel_bulk_write(struct hed_channel *ch, const void *p, size_t n)
{
    return ch->ops->bulk_write(ch, p, n);
}

/* Writer: a span of memory to fill in place, of 1 to *n bytes; hed_channel_bulk_put() then says how
 * many of them count. The memory is part of hed_channel_bulk_area(). `want` is how much will be
 * written in all. Up to 64 spans may be filled at once. They are put in order, and all bytes of
 * every span but the last must count. HED_ESTATE if all of the area is being filled. */
static inline int
hed_channel_bulk_space(struct hed_channel *ch, size_t want, void **p, size_t *n)
{
    return ch->ops->bulk_space(ch, want, p, n);
}

static inline int
hed_channel_bulk_put(struct hed_channel *ch, size_t n)
{
    return ch->ops->bulk_put(ch, n);
}

/* Reader: takes n bytes, directly into the caller's memory if the transport can. */
static inline int
hed_channel_bulk_read(struct hed_channel *ch, void *p, size_t n)
{
    return ch->ops->bulk_read(ch, p, n);
}

/* Reader: a span of 1 to `most` bytes that have arrived. It may be used in place until it is given
 * back by hed_channel_bulk_done(), in order, and possibly after the next span has been taken (a
 * copy engine reads it meanwhile). HED_ESTATE if HED_CHANNEL_STAGED bytes are in use already.
 * `most` is at most what is left of the message's bulk. Bytes that hed_channel_bulk_read() takes
 * after such a span are given back together with it. */
static inline int
hed_channel_bulk_peek(struct hed_channel *ch, size_t most, void **p, size_t *n)
{
    return ch->ops->bulk_peek(ch, most, p, n);
}

void hed_channel_bulk_done(struct hed_channel *ch, size_t n);

/* The memory that spans come from, to be registered with a driver. `direction` is 0 for incoming, 1
 * for outgoing. False if there is none yet, because that direction has not been used. */
bool hed_channel_bulk_area(struct hed_channel *ch, int direction, void **p, size_t *n);
