/* Channels over a socket: messages and bulk follow each other on the connection as they are
 * written.
 *
 * Invariants:
 * 1. Who writes to the connection holds outgoing.lock. So a flush by another thread sends whole
 *    messages, never the one that is being filled, which lies behind outgoing.filled.
 * 2. Only the channel's writer moves outgoing.filled; others move outgoing.sent up to it.
 * 3. Bulk never overtakes the messages before it: they go out in one call.
 * 4. Reading never writes what is buffered: two readers that wait for the other to read would wait
 *    for ever.
 * 5. The first error stays. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "wire/channel/parts.h"

#define FULL (64u << 10)        /* buffered bytes that go out unasked */
#define SPAN_LEAST (128u << 10) /* of incoming bulk, where so much is to come */

static int
error_of(struct hed_channel *ch)
{
    /* Relaxed: the number is all there is to know. */
    return atomic_load_explicit(&ch->error, memory_order_relaxed);
}

int
hed_channel_socket_failed(struct hed_channel *ch, int error)
{
    int none = 0;

    /* Relaxed: as in error_of(). */
    atomic_compare_exchange_strong_explicit(&ch->error, &none, error, memory_order_relaxed,
                                            memory_order_relaxed);
    return error_of(ch);
}

int
hed_channel_socket_init(struct hed_channel *ch)
{
    ch->outgoing.bytes = aligned_alloc(HED_MSG_ALIGN, HED_CHANNEL_BUFFER);
    ch->incoming.bytes = aligned_alloc(HED_MSG_ALIGN, HED_CHANNEL_BUFFER);
    return ch->outgoing.bytes && ch->incoming.bytes ? 0 : HED_ENOMEM;
}

static void
free_staging(struct hed_staging *s)
{
    if (s->bytes)
        munmap(s->bytes, HED_CHANNEL_STAGED);
}

void
hed_channel_socket_fini(struct hed_channel *ch)
{
    free_staging(&ch->outgoing.bulk);
    free_staging(&ch->incoming.bulk);
    free(ch->outgoing.bytes);
    free(ch->incoming.bytes);
}

/* ---- out ------------------------------------------------------------------------------------- */

/* What is buffered, and then n bytes of bulk. */
static int
write_locked(struct hed_channel *ch, const void *bulk, size_t n)
{
    struct hed_outgoing *o = &ch->outgoing;
    struct iovec parts[2] = {
        {.iov_base = o->bytes + o->sent, .iov_len = o->filled - o->sent},
        {.iov_base = (void *)bulk, .iov_len = n},
    };
    int e = error_of(ch);

    /* Relaxed: a hint for hed_channel_first(). Before writing, which may take long: whoever flushes
     * other channels is not to wait for this one, which is being flushed already. */
    atomic_store_explicit(&o->first, 0, memory_order_relaxed);
    if (!e && parts[0].iov_len + n > 0)
        e = hed_conn_writev(ch->conn, parts, n ? 2 : 1);
    if (e)
        return hed_channel_socket_failed(ch, e);
    o->sent = o->filled;
    o->owed -= hed_min(o->owed, n);
    return 0;
}

static int
write_out(struct hed_channel *ch, const void *bulk, size_t n)
{
    hed_lock(&ch->outgoing.lock);

    const int e = write_locked(ch, bulk, n);

    hed_unlock(&ch->outgoing.lock);
    return e;
}

void *
hed_channel_socket_begin(struct hed_channel *ch, uint32_t size)
{
    const uint32_t n = hed_align_up(hed_max(size, sizeof(struct hed_msg)), HED_MSG_ALIGN);
    struct hed_outgoing *o = &ch->outgoing;
    void *p = NULL;

    if (size > HED_MSG_MAX || error_of(ch))
        return NULL;
    hed_lock(&o->lock);
    if (HED_CHANNEL_BUFFER - o->filled >= n || write_locked(ch, NULL, 0) == 0) {
        if (o->sent == o->filled)
            o->sent = o->filled = 0;
        o->room = n;
        p = o->bytes + o->filled;
    }
    hed_unlock(&o->lock);
    return p;
}

int
hed_channel_socket_end(struct hed_channel *ch, uint32_t size, bool urgent)
{
    struct hed_outgoing *o = &ch->outgoing;
    uint64_t ticket;
    int e = error_of(ch);

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
        e = write_locked(ch, NULL, 0);
    else if (atomic_load_explicit(&o->first, memory_order_relaxed) == 0)
        atomic_store_explicit(&o->first, ticket ? ticket : 1, memory_order_relaxed); /* a hint */
    hed_unlock(&o->lock);
    return e;
}

int
hed_channel_socket_flush(struct hed_channel *ch)
{
    return write_out(ch, NULL, 0);
}

/* Straight to the connection, since a message may be being filled in the buffer. */
void
hed_channel_socket_beat(struct hed_channel *ch)
{
    static const struct hed_msg beat = {.size = sizeof beat, .kind = HED_MSG_PING};
    struct hed_outgoing *o = &ch->outgoing;

    if (error_of(ch) || !hed_lock_try(&o->lock))
        return;
    if (o->sent == o->filled && o->owed == 0) {
        const ssize_t n = hed_conn_write_now(ch->conn, &beat, sizeof beat);

        /* It has begun, so it must end. */
        if (n > 0 && (size_t)n < sizeof beat &&
            hed_conn_write(ch->conn, (const char *)&beat + n, sizeof beat - (size_t)n) != 0)
            hed_channel_socket_failed(ch, HED_EIO);
    }
    hed_unlock(&o->lock);
}

int
hed_channel_socket_write(struct hed_channel *ch, const void *p, size_t n)
{
    /* It would go in front of what the caller is still filling. */
    return ch->outgoing.bulk.spans.count > 0 ? HED_ESTATE : write_out(ch, p, n);
}

/* ---- in -------------------------------------------------------------------------------------- */

static int
milliseconds_to(uint64_t end)
{
    const uint64_t now = hed_now_ns();

    return end == UINT64_MAX ? -1 : now >= end ? 0 : (int)((end - now + 999999) / 1000000);
}

/* Waits until n bytes, at most HED_MSG_MAX, are buffered. What has come stays if time runs out. */
static int
fill(struct hed_channel *ch, uint32_t n, uint64_t end)
{
    struct hed_incoming *in = &ch->incoming;

    while (in->filled - in->taken < n) {
        if (HED_CHANNEL_BUFFER - in->taken < n || in->taken == in->filled) {
            memmove(in->bytes, in->bytes + in->taken, in->filled - in->taken);
            in->filled -= in->taken;
            in->taken = 0;
        }

        const ssize_t got =
            hed_conn_read_some(ch->conn, in->bytes + in->filled, 1, HED_CHANNEL_BUFFER - in->filled,
                               milliseconds_to(end));

        if (got == HED_ETIME)
            return HED_ETIME;
        if (got <= 0)
            return hed_channel_socket_failed(ch, got < 0 ? (int)got : HED_EIO);
        in->filled += (uint32_t)got;
    }
    return 0;
}

int
hed_channel_socket_next(struct hed_channel *ch, int timeout_ms)
{
    const uint64_t end =
        timeout_ms < 0 ? UINT64_MAX : hed_now_ns() + (uint64_t)timeout_ms * UINT64_C(1000000);
    struct hed_incoming *in = &ch->incoming;
    int e = error_of(ch);
    uint32_t size;

    if (!e)
        e = fill(ch, sizeof(struct hed_msg), end);
    if (e)
        return e;
    memcpy(&size, in->bytes + in->taken, sizeof size);
    if (size < sizeof(struct hed_msg) || size > HED_MSG_MAX) {
        hed_warn(WIRE, "a message of a wrong size came: %u bytes", size);
        return hed_channel_socket_failed(ch, HED_EFORMAT);
    }
    e = fill(ch, hed_align_up(size, HED_MSG_ALIGN), end);
    if (e)
        return e;
    memcpy(ch->message, in->bytes + in->taken, size);
    in->taken += hed_align_up(size, HED_MSG_ALIGN);
    return 0;
}

/* ---- bulk ------------------------------------------------------------------------------------ */

static int
need_staging(struct hed_staging *s)
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

/* The next span of memory that is free, of at most `want` bytes; it is not given out yet. */
static int
find_span(struct hed_staging *s, size_t want, void **p, size_t *n)
{
    const uint64_t offset = s->given % HED_CHANNEL_STAGED;
    const size_t room = HED_CHANNEL_STAGED - (size_t)(s->given - s->returned);
    int e = need_staging(s);

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

int
hed_channel_socket_space(struct hed_channel *ch, size_t want, void **p, size_t *n)
{
    struct hed_staging *s = &ch->outgoing.bulk;
    void *span;
    size_t size;
    int e = error_of(ch);

    if (!e)
        e = find_span(s, want, &span, &size);
    if (!e)
        e = hed_spans_add(&s->spans, size);
    if (e)
        return e;
    s->given += size;
    *p = span;
    *n = size;
    return 0;
}

int
hed_channel_socket_put(struct hed_channel *ch, size_t n)
{
    struct hed_staging *s = &ch->outgoing.bulk;
    int e = error_of(ch);

    if (!e)
        e = hed_spans_take(&s->spans, n);
    if (!e)
        e = write_out(ch, s->bytes + s->returned % HED_CHANNEL_STAGED, n);
    if (e)
        return e;
    s->returned += n;
    if (s->spans.count == 0)
        s->given = s->returned;
    return 0;
}

/* What of the next n bytes came with the messages. */
static size_t
take_buffered(struct hed_incoming *in, void *p, size_t n)
{
    const uint32_t some = (uint32_t)hed_min(in->filled - in->taken, n);

    memcpy(p, in->bytes + in->taken, some);
    in->taken += some;
    return some;
}

int
hed_channel_socket_read(struct hed_channel *ch, void *p, size_t n)
{
    int e = error_of(ch);

    if (e || n == 0)
        return e;

    const size_t some = take_buffered(&ch->incoming, p, n);

    if (some < n)
        e = hed_conn_read(ch->conn, (char *)p + some, n - some, -1);
    return e ? hed_channel_socket_failed(ch, e) : 0;
}

int
hed_channel_socket_peek(struct hed_channel *ch, size_t most, void **p, size_t *n)
{
    struct hed_staging *s = &ch->incoming.bulk;
    void *span;
    size_t size;
    int e = error_of(ch);

    if (!e)
        e = find_span(s, most, &span, &size);
    if (e)
        return e;

    const size_t least = hed_min(size, SPAN_LEAST);
    size_t got = take_buffered(&ch->incoming, span, size);

    if (got < least) {
        const ssize_t more =
            hed_conn_read_some(ch->conn, (char *)span + got, least - got, size - got, -1);

        if (more < 0)
            return hed_channel_socket_failed(ch, (int)more);
        got += (size_t)more;
    }
    s->given += got;
    *p = span;
    *n = got;
    return 0;
}

int
hed_channel_socket_done(struct hed_channel *ch, size_t n)
{
    struct hed_staging *s = &ch->incoming.bulk;

    if (n > s->given - s->returned)
        return HED_EINVAL;
    s->returned += n;
    return 0;
}
