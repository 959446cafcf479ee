/* What a transport implements to carry messages: the operations of a channel.
 *
 * channel.h says what each function promises to its callers; this page says what an implementation
 * has to know. There is one table per kind of channel: shm.c and window.c (rings in shared memory)
 * and stream.c (bytes over any connection).
 *
 * A channel has one thread that writes and one that reads. Only `flush`, `first`, `beat` and `last`
 * may be called by other threads as well. After an error a channel keeps answering with that error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_channel;
struct hed_conn;
struct hed_end;
struct hed_msg;
struct hed_why;
struct hed_window;

struct hed_channel_ops {
    /* Creates one side of a channel over a connection: the client's, or the worker's, which is
     * created at the same time. The struct that is returned begins with struct hed_channel, which
     * the caller fills in, except for operations that differ from these. On failure the connection
     * stays the caller's. */
    int (*create)(struct hed_conn *conn, bool client, struct hed_channel **out,
                  struct hed_why *why);
    /* The connection has been closed: wakes a peer that sleeps elsewhere. NULL if that is not
     * needed. */
    void (*wake_peer)(struct hed_channel *ch);
    /* Wakes this side's own reader. NULL if ending the connection does so. */
    void (*wake_own)(struct hed_channel *ch);
    void (*free)(struct hed_channel *ch); /* everything except the connection and the message */
    /* In the child of a fork: every later call fails with HED_EIO, and the peer notices nothing. */
    void (*forked)(struct hed_channel *ch);

    /* Both sides see the same memory: the rings, and whatever else they agree on. */
    bool shares;
    /* The channel's share of a window (remote/wire/window.h), and memory for slots in it; or
     * NULL. */
    const struct hed_window *(*window)(struct hed_channel *ch, void **slots);

    /* Writing messages. `begin` may wait for room; `end` never waits for the peer to answer. */
    void *(*begin)(struct hed_channel *ch, uint32_t size);
    int (*end)(struct hed_channel *ch, uint32_t size, bool urgent);
    /* Reading messages: into ch->message, after the size has been checked. */
    int (*next)(struct hed_channel *ch, int timeout_ms);

    /* For a channel that holds messages back until there are many. Any thread may call both. They
     * are NULL if messages are visible to the peer as soon as `end` returns. */
    int (*flush)(struct hed_channel *ch);
    uint64_t (*first)(struct hed_channel *ch);
    /* Signs of life: the worker gives one every beat_ms, from any thread; a client that waits gives
     * up after so many milliseconds without one. */
    void (*beat)(struct hed_channel *ch);
    int (*patience)(struct hed_channel *ch, int ms);
    uint32_t beat_ms;
    /* Sends a last message, after which nothing is sent, if that is possible without waiting. Any
     * thread may call it. */
    void (*last)(struct hed_channel *ch, const struct hed_end *end);
    /* Reads it if it does not come as an ordinary message; or NULL. */
    int (*read_last)(struct hed_channel *ch, struct hed_end *out);

    /* Bulk: bytes that belong to the messages, in their order. */
    int (*bulk_write)(struct hed_channel *ch, const void *p, size_t n);
    int (*bulk_space)(struct hed_channel *ch, size_t want, void **p, size_t *n);
    int (*bulk_put)(struct hed_channel *ch, size_t n);
    int (*bulk_read)(struct hed_channel *ch, void *p, size_t n);
    int (*bulk_peek)(struct hed_channel *ch, size_t most, void **p, size_t *n);
    int (*bulk_done)(struct hed_channel *ch, size_t n); /* HED_EINVAL: more than taken */
    void *(*bulk_area)(struct hed_channel *ch,
                       int direction); /* HED_CHANNEL_STAGED bytes, or NULL */
};

/* What every channel begins with. */
struct hed_channel {
    const struct hed_channel_ops *ops;
    struct hed_conn *conn;   /* owned; NULL after a fork */
    struct hed_msg *message; /* owned; what `next` has read; HED_MSG_MAX bytes */
};

extern const struct hed_channel_ops hed_channel_shm, hed_channel_window, hed_channel_stream;
