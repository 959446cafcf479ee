/* Channels over a connection: messages and bulk are bytes of the connection, in the order in which
 * they are written. The transports unix: and tcp:// use them; so can any link.
 *
 * Invariants:
 * 1. A thread that writes to the connection holds outgoing.lock. So when another thread flushes, it
 *    sends complete messages, never the one that is being filled, which lies behind
 *    outgoing.filled.
 * 2. Only the channel's writer moves outgoing.filled; other threads move outgoing.sent up to it.
 * 3. Bulk never overtakes the messages before it: they go out in one call.
 * 4. Reading never writes what is buffered: two readers, each waiting for the other to read, would
 *    wait for ever.
 * 5. The first error stays.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/number.h"
#include "remote/wire/channel/channel.h"
#include "remote/wire/channel/ring.h"

#define BUFFER (UINT32_C(128) << 10) /* bytes of messages, in each direction */
#define FULL (UINT32_C(64) << 10)    /* so many buffered bytes are sent without an urgent message */
#define SPAN_LEAST (128u << 10)      /* bytes of incoming bulk per span, if that many are to come */

/* Page-aligned memory through which spans of bulk go. */
struct staging {
    uint8_t *bytes;           /* HED_CHANNEL_STAGED; NULL if not used yet */
    uint64_t given, returned; /* positions: handed to the caller, and handed back */
    struct hed_spans spans;   /* outgoing: what the caller is filling */
};

struct outgoing {
    struct hed_lock lock;  /* guards the following, and writing to the connection */
    uint8_t *bytes;        /* BUFFER */
    uint32_t sent, filled; /* only the channel's writer changes `filled` */
    uint64_t owed;         /* bulk that messages have announced and that was not written yet */
    uint32_t room;         /* of the message that is being filled, at `filled`; 0 for none */
    /* The ticket of the first buffered message; 0 if nothing is buffered, or a thread is just
     * writing all of it. */
    _Atomic uint64_t first;
    struct staging bulk;
};

struct incoming {   /* used by the reader only */
    uint8_t *bytes; /* BUFFER */
    uint32_t taken, filled;
    struct staging bulk;
};

struct stream {
    struct hed_channel channel;
    _Atomic int error; /* sticky */
    struct outgoing outgoing;
    struct incoming incoming;
};

static inline struct stream *
stream_of(struct hed_channel *ch)
{
    return (struct stream *)ch;
}

static int
stream_error(struct stream *s)
{
    /* Relaxed: the number is all there is to know. */
    return atomic_load_explicit(&s->error, memory_order_relaxed);
}

/* Notes the first error, and returns it. */
static int
stream_fail(struct stream *s, int error)
{
    int none = 0;

    /* Relaxed: as in stream_error(). */
    atomic_compare_exchange_strong_explicit(&s->error, &none, error, memory_order_relaxed,
                                            memory_order_relaxed);
    return stream_error(s);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void
staging_free(struct staging *s)
{
    if (s->bytes)
        munmap(s->bytes, HED_CHANNEL_STAGED);
}

static void
stream_channel_free(struct hed_channel *ch)
{
    struct stream *s = stream_of(ch);

    staging_free(&s->outgoing.bulk);
    staging_free(&s->incoming.bulk);
    free(s->outgoing.bytes);
    free(s->incoming.bytes);
    hed_lock_fini(&s->outgoing.lock);
    free(s);
}

static int
stream_create(struct hed_conn *conn, bool client, struct hed_channel **out, struct hed_why *why)
{
    struct stream *s = calloc(1, sizeof *s);

    (void)conn, (void)client, (void)why;
    if (!s)
        return HED_ENOMEM;
    hed_lock_init(&s->outgoing.lock, HED_RANK_CHANNEL);
    s->outgoing.bytes = aligned_alloc(HED_MSG_ALIGN, BUFFER);
    s->incoming.bytes = aligned_alloc(HED_MSG_ALIGN, BUFFER);
    if (!s->outgoing.bytes || !s->incoming.bytes) {
        stream_channel_free(&s->channel);
        return HED_ENOMEM;
    }
    *out = &s->channel;
    return 0;
}

static void
stream_forked(struct hed_channel *ch)
{
    (void)stream_fail(stream_of(ch), HED_EIO);
}

/* ---- out ------------------------------------------------------------------------------------- */

/* Writes what is buffered, and then n bytes of bulk. */
static int
stream_write_locked(struct stream *s, const void *bulk, size_t n)
{
    struct outgoing *o = &s->outgoing;
    struct iovec parts[2] = {
        {.iov_base = o->bytes + o->sent, .iov_len = o->filled - o->sent},
        {.iov_base = (void *)bulk, .iov_len = n},
    };
    int e = stream_error(s);

    /* Relaxed: a hint for hed_channel_first(). It is cleared before the write, which may take long,
     * so that a thread which flushes other channels does not wait for this one. */
    atomic_store_explicit(&o->first, 0, memory_order_relaxed);
    if (!e && parts[0].iov_len + n > 0)
        e = hed_conn_writev(s->channel.conn, parts, n ? 2 : 1);
    if (e)
        return stream_fail(s, e);
    o->sent = o->filled;
    o->owed -= hed_min(o->owed, n);
    return 0;
}

static int
stream_write(struct stream *s, const void *bulk, size_t n)
{
    hed_lock(&s->outgoing.lock);

    const int e = stream_write_locked(s, bulk, n);

    hed_unlock(&s->outgoing.lock);
    return e;
}

static void *
stream_begin(struct hed_channel *ch, uint32_t size)
{
    struct stream *s = stream_of(ch);
    const uint32_t n = hed_align_up(hed_max(size, sizeof(struct hed_msg)), HED_MSG_ALIGN);
    struct outgoing *o = &s->outgoing;
    void *p = NULL;

    if (size > HED_MSG_MAX || stream_error(s))
        return NULL;
    hed_lock(&o->lock);
    if (BUFFER - o->filled >= n || stream_write_locked(s, NULL, 0) == 0) {
        if (o->sent == o->filled)
            o->sent = o->filled = 0;
        o->room = n;
        p = o->bytes + o->filled;
    }
    hed_unlock(&o->lock);
    return p;
}

static int
stream_end(struct hed_channel *ch, uint32_t size, bool urgent)
{
    struct stream *s = stream_of(ch);
    struct outgoing *o = &s->outgoing;
    uint64_t ticket;
    int e = stream_error(s);

    if (e)
        return e;
    if (size < sizeof(struct hed_msg) || hed_align_up(size, HED_MSG_ALIGN) > o->room)
        return o->room ? HED_EINVAL : HED_ESTATE;
    hed_lock(&o->lock);
    ticket = ((const struct hed_msg *)(const void *)(o->bytes + o->filled))->ticket;
    memcpy(o->bytes + o->filled, &size, sizeof size);
    memset(o->bytes + o->filled + size, 0, hed_align_up(size, HED_MSG_ALIGN) - size);
    o->owed += ((const struct hed_msg *)(const void *)(o->bytes + o->filled))->bulk;
    o->filled += hed_align_up(size, HED_MSG_ALIGN);
    o->room = 0;
    if (urgent || o->filled - o->sent >= FULL)
        e = stream_write_locked(s, NULL, 0);
    else if (atomic_load_explicit(&o->first, memory_order_relaxed) == 0)
        atomic_store_explicit(&o->first, ticket ? ticket : 1, memory_order_relaxed); /* a hint */
    hed_unlock(&o->lock);
    return e;
}

static int
stream_flush(struct hed_channel *ch)
{
    struct stream *s = stream_of(ch);
    return stream_write(s, NULL, 0);
}

static uint64_t
stream_first(struct hed_channel *ch)
{
    /* Relaxed: a hint; a thread that needs to be sure flushes. */
    return atomic_load_explicit(&stream_of(ch)->outgoing.first, memory_order_relaxed);
}

/* Sends a message between two others. It goes directly to the connection, because a message may
 * just be filled in the buffer. */
static void
stream_send_between(struct hed_channel *ch, const void *message, size_t size)
{
    struct stream *s = stream_of(ch);
    struct outgoing *o = &s->outgoing;

    if (stream_error(s) || !hed_lock_try(&o->lock))
        return;
    if (o->sent == o->filled && o->owed == 0) {
        const ssize_t n = hed_conn_write_now(ch->conn, message, size);

        /* A part of it is out, so the rest must follow. */
        if (n > 0 && (size_t)n < size &&
            hed_conn_write(ch->conn, (const char *)message + n, size - (size_t)n) != 0)
            stream_fail(s, HED_EIO);
    }
    hed_unlock(&o->lock);
}

static void
stream_beat(struct hed_channel *ch)
{
    static const struct hed_msg beat = {.size = sizeof beat, .kind = HED_MSG_PING};

    stream_send_between(ch, &beat, sizeof beat);
}

static int
stream_patience(struct hed_channel *ch, int ms)
{
    return hed_conn_patience(ch->conn, ms < 2 * HED_CHANNEL_BEAT_MS ? 2 * HED_CHANNEL_BEAT_MS : ms);
}

static void
stream_last(struct hed_channel *ch, const struct hed_end *end)
{
    stream_send_between(ch, end, sizeof *end);
}

static int
stream_bulk_write(struct hed_channel *ch, const void *p, size_t n)
{
    struct stream *s = stream_of(ch);
    /* It would overtake what the caller is still filling. */
    return s->outgoing.bulk.spans.count > 0 ? HED_ESTATE : stream_write(s, p, n);
}

/* ---- in -------------------------------------------------------------------------------------- */

static int
milliseconds_to(uint64_t end)
{
    const uint64_t now = hed_now_ns();

    return end == UINT64_MAX ? -1 : now >= end ? 0 : (int)((end - now + 999999) / 1000000);
}

/* Waits until n bytes, at most HED_MSG_MAX, are buffered. If time runs out, what has come stays. */
static int
fill_incoming(struct stream *s, uint32_t n, uint64_t end)
{
    struct incoming *in = &s->incoming;

    while (in->filled - in->taken < n) {
        if (BUFFER - in->taken < n || in->taken == in->filled) {
            memmove(in->bytes, in->bytes + in->taken, in->filled - in->taken);
            in->filled -= in->taken;
            in->taken = 0;
        }

        const ssize_t got = hed_conn_read_some(s->channel.conn, in->bytes + in->filled, 1,
                                               BUFFER - in->filled, milliseconds_to(end));

        if (got == HED_ETIME)
            return HED_ETIME;
        if (got <= 0)
            return stream_fail(s, got < 0 ? (int)got : HED_EIO);
        in->filled += (uint32_t)got;
    }
    return 0;
}

static int
stream_next(struct hed_channel *ch, int timeout_ms)
{
    struct stream *s = stream_of(ch);
    const uint64_t end =
        timeout_ms < 0 ? UINT64_MAX : hed_now_ns() + (uint64_t)timeout_ms * UINT64_C(1000000);
    struct incoming *in = &s->incoming;
    int e = stream_error(s);
    uint32_t size;

    if (!e)
        e = fill_incoming(s, sizeof(struct hed_msg), end);
    if (e)
        return e;
    memcpy(&size, in->bytes + in->taken, sizeof size);
    if (size < sizeof(struct hed_msg) || size > HED_MSG_MAX) {
        hed_warn(WIRE, "the peer sent a message of %u bytes, which is not a valid size", size);
        return stream_fail(s, HED_EFORMAT);
    }
    e = fill_incoming(s, hed_align_up(size, HED_MSG_ALIGN), end);
    if (e)
        return e;
    memcpy(ch->message, in->bytes + in->taken, size);
    in->taken += hed_align_up(size, HED_MSG_ALIGN);
    return 0;
}

/* ---- bulk ------------------------------------------------------------------------------------ */

static int
staging_map(struct staging *s)
{
    if (s->bytes)
        return 0;

    void *p = mmap(NULL, HED_CHANNEL_STAGED, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return HED_ENOMEM;
    s->bytes = p;
    return 0;
}

/* Finds the next free span, of at most `want` bytes. It is not given out yet. */
static int
staging_find(struct staging *s, size_t want, void **p, size_t *n)
{
    const uint64_t offset = s->given % HED_CHANNEL_STAGED;
    const size_t room = HED_CHANNEL_STAGED - (size_t)(s->given - s->returned);
    int e = staging_map(s);

    if (!e && want == 0)
        e = HED_EINVAL;
    if (!e && room == 0)
        e = HED_ESTATE;
    if (e)
        return e;
    *p = s->bytes + offset;
    *n = hed_min(hed_min(want, HED_CHANNEL_STAGED - offset), room);
    return 0;
}

static int
stream_bulk_space(struct hed_channel *ch, size_t want, void **p, size_t *n)
{
    struct stream *s = stream_of(ch);
    struct staging *g = &s->outgoing.bulk;
    void *span;
    size_t size;
    int e = stream_error(s);

    if (!e)
        e = staging_find(g, want, &span, &size);
    if (!e)
        e = hed_spans_add(&g->spans, size);
    if (e)
        return e;
    g->given += size;
    *p = span;
    *n = size;
    return 0;
}

static int
stream_bulk_put(struct hed_channel *ch, size_t n)
{
    struct stream *s = stream_of(ch);
    struct staging *g = &s->outgoing.bulk;
    int e = stream_error(s);

    if (!e)
        e = hed_spans_take(&g->spans, n);
    if (!e)
        e = stream_write(s, g->bytes + g->returned % HED_CHANNEL_STAGED, n);
    if (e)
        return e;
    g->returned += n;
    if (g->spans.count == 0)
        g->given = g->returned;
    return 0;
}

/* Takes those of the next n bytes that came along with messages. Returns how many. */
static size_t
incoming_take(struct incoming *in, void *p, size_t n)
{
    const uint32_t some = (uint32_t)hed_min(in->filled - in->taken, n);

    memcpy(p, in->bytes + in->taken, some);
    in->taken += some;
    return some;
}

static int
stream_bulk_read(struct hed_channel *ch, void *p, size_t n)
{
    struct stream *s = stream_of(ch);
    int e = stream_error(s);

    if (e || n == 0)
        return e;

    const size_t some = incoming_take(&s->incoming, p, n);

    if (some < n)
        e = hed_conn_read(ch->conn, (char *)p + some, n - some, -1);
    return e ? stream_fail(s, e) : 0;
}

static int
stream_bulk_peek(struct hed_channel *ch, size_t most, void **p, size_t *n)
{
    struct stream *s = stream_of(ch);
    struct staging *g = &s->incoming.bulk;
    void *span;
    size_t size;
    int e = stream_error(s);

    if (!e)
        e = staging_find(g, most, &span, &size);
    if (e)
        return e;

    const size_t least = hed_min(size, SPAN_LEAST);
    size_t got = incoming_take(&s->incoming, span, size);

    if (got < least) {
        const ssize_t more =
            hed_conn_read_some(ch->conn, (char *)span + got, least - got, size - got, -1);

        if (more < 0)
            return stream_fail(s, (int)more);
        got += (size_t)more;
    }
    g->given += got;
    *p = span;
    *n = got;
    return 0;
}

static int
stream_bulk_done(struct hed_channel *ch, size_t n)
{
    struct stream *s = stream_of(ch);
    struct staging *g = &s->incoming.bulk;

    if (n > g->given - g->returned)
        return HED_EINVAL;
    g->returned += n;
    return 0;
}

static void *
stream_bulk_area(struct hed_channel *ch, int direction)
{
    struct stream *s = stream_of(ch);

    return direction ? s->outgoing.bulk.bytes : s->incoming.bulk.bytes;
}

const struct hed_channel_ops hed_channel_stream = {
    .create = stream_create,
    .free = stream_channel_free,
    .forked = stream_forked,
    .begin = stream_begin,
    .end = stream_end,
    .next = stream_next,
    .flush = stream_flush,
    .first = stream_first,
    .beat = stream_beat,
    .patience = stream_patience,
    .beat_ms = HED_CHANNEL_BEAT_MS,
    .last = stream_last,
    .bulk_write = stream_bulk_write,
    .bulk_space = stream_bulk_space,
    .bulk_put = stream_bulk_put,
    .bulk_read = stream_bulk_read,
    .bulk_peek = stream_bulk_peek,
    .bulk_done = stream_bulk_done,
    .bulk_area = stream_bulk_area,
};
