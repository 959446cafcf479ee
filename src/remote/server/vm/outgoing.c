/* What the guest is told: replies, then the streams that have something, in turns. Bytes go from
 * the socket straight into the guest's buffers, many of them at a time. See vsock.h.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/err.h"
#include "remote/server/vm/memory.h"
#include "remote/server/vm/vsock.h"

#define HEADER sizeof(struct virtio_vsock_hdr)

enum { NOTHING, MORE, STARVED }; /* what comes of a turn, besides errors */

/* ---- single packets -------------------------------------------------------------------------- */

/* Puts a packet without bytes into the guest's next buffer. */
static int
tell_header(struct hed_vsock *v, const struct virtio_vsock_hdr *h, struct hed_why *why)
{
    struct hed_chain *c = &v->chains[0];
    const int there = hed_virtq_peek(v->rx, v->memory, 0, true, c, why);

    if (there < 0)
        return there;
    if (there == 0)
        return STARVED;
    if (c->bytes < HEADER) {
        hed_why_set(why, "a buffer of the guest is too small for a header");
        return HED_EFORMAT;
    }
    hed_chain_write(c, 0, h, HEADER);
    hed_virtq_use(v->rx, c, (uint32_t)HEADER);
    return NOTHING;
}

static struct virtio_vsock_hdr
stream_header(const struct hed_vsock *v, const struct hed_vsock_stream *s, uint16_t op)
{
    return (struct virtio_vsock_hdr){
        .src_cid = HED_VSOCK_HOST,
        .dst_cid = v->cid,
        .src_port = v->port,
        .dst_port = s->port,
        .type = VIRTIO_VSOCK_TYPE_STREAM,
        .op = op,
        .buf_alloc = HED_VSOCK_BUFFER,
        .fwd_cnt = s->passed,
    };
}

/* Every packet says how much the guest may send. */
static void
note_told(struct hed_vsock_stream *s, uint32_t wants)
{
    s->wants &= ~(wants | HED_WANT_CREDIT);
    s->passed_told = s->passed;
}

static int
tell_replies(struct hed_vsock *v, struct hed_why *why)
{
    int result = NOTHING;

    while (v->reply_count > 0 && result == NOTHING) {
        const struct hed_vsock_reply *r = &v->replies[v->reply_first];
        const struct virtio_vsock_hdr h = {
            .src_cid = r->cid,
            .dst_cid = v->cid,
            .src_port = r->port,
            .dst_port = r->guest_port,
            .type = r->type,
            .op = VIRTIO_VSOCK_OP_RST,
        };

        result = tell_header(v, &h, why);
        if (result == NOTHING) {
            v->reply_first = (v->reply_first + 1) % HED_VSOCK_REPLIES;
            v->reply_count--;
        }
    }
    return result;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* What the guest says about its buffer may be anything; it only gets what it asked for. */
static uint32_t
stream_credit(const struct hed_vsock_stream *s)
{
    const uint32_t unread = s->sent - s->guest_read;

    return unread < s->guest_buffer ? s->guest_buffer - unread : 0;
}

struct offer { /* buffers of the guest, for one turn */
    int chains, parts;
    uint32_t bytes;
    uint32_t sizes[HED_VSOCK_TURN_CHAINS];
};

/* Collects buffers for `most` bytes. */
static int
offer_make(struct hed_vsock *v, uint32_t most, struct offer *o, struct hed_why *why)
{
    uint32_t left = most < HED_VSOCK_TURN ? most : HED_VSOCK_TURN;

    o->chains = 0;
    o->parts = 0;
    o->bytes = 0;
    while (left > 0 && o->chains < HED_VSOCK_TURN_CHAINS &&
           o->parts <= HED_VSOCK_TURN_PARTS - HED_CHAIN_PARTS) {
        struct hed_chain *c = &v->chains[o->chains];
        const int there = hed_virtq_peek(v->rx, v->memory, (uint32_t)o->chains, true, c, why);

        if (there < 0)
            return there;
        if (there == 0)
            break;
        if (c->bytes <= HEADER) {
            hed_why_set(why, "a buffer of the guest has no room for data");
            return HED_EFORMAT;
        }

        uint32_t n = left < HED_VSOCK_PACKET ? left : HED_VSOCK_PACKET;

        n = c->bytes - HEADER < n ? (uint32_t)(c->bytes - HEADER) : n;
        o->parts += hed_chain_slice(c, HEADER, n, &v->parts[o->parts]);
        o->sizes[o->chains++] = n;
        o->bytes += n;
        left -= n;
    }
    return o->chains > 0 ? NOTHING : STARVED;
}

static void
offer_use(struct hed_vsock *v, struct hed_vsock_stream *s, const struct offer *o, uint32_t got)
{
    struct virtio_vsock_hdr h = stream_header(v, s, VIRTIO_VSOCK_OP_RW);

    note_told(s, 0);
    s->sent += got;
    for (int i = 0; got > 0; i++) {
        h.len = got < o->sizes[i] ? got : o->sizes[i];
        got -= h.len;
        hed_chain_write(&v->chains[i], 0, &h, HEADER);
        hed_virtq_use(v->rx, &v->chains[i], (uint32_t)HEADER + h.len);
    }
}

static int
socket_failed(struct hed_vsock *v, struct hed_vsock_stream *s, int error, struct hed_why *why)
{
    if (error == EAGAIN) {
        s->readable = false;
        return NOTHING;
    }
    if (error == EFAULT) {
        hed_why_set(why, "a file with the guest's memory has become shorter");
        return HED_EFORMAT;
    }
    hed_vsock_host_shut(v, s, HED_VSOCK_BOTH);
    return NOTHING;
}

static int
tell_data(struct hed_vsock *v, struct hed_vsock_stream *s, struct hed_why *why)
{
    const uint32_t credit = stream_credit(s);
    struct offer o;
    ssize_t n;

    if (s->guest_shut & VIRTIO_VSOCK_SHUTDOWN_RCV)
        s->readable = false;
    if (credit == 0 || !s->readable)
        return NOTHING;

    const int result = offer_make(v, credit, &o, why);

    if (result != NOTHING)
        return result;

    struct msghdr m = {.msg_iov = v->parts, .msg_iovlen = (size_t)o.parts};

    do
        n = recvmsg(s->fd, &m, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return socket_failed(v, s, errno, why);
    if (n == 0) {
        /* The end of what the host sends. It may still read, unless it has hung up. */
        hed_vsock_host_shut(v, s, s->hung ? HED_VSOCK_BOTH : VIRTIO_VSOCK_SHUTDOWN_SEND);
        return NOTHING;
    }
    offer_use(v, s, &o, (uint32_t)n);
    if ((uint32_t)n == o.bytes || s->ending)
        return MORE;
    /* The socket is empty. What comes next makes an event of its own. */
    s->readable = false;
    return NOTHING;
}

/* ---- turns ----------------------------------------------------------------------------------- */

static int
tell_one(struct hed_vsock *v, struct hed_vsock_stream *s, enum hed_vsock_want want, uint16_t op,
         uint32_t flags, struct hed_why *why)
{
    if (!(s->wants & want))
        return NOTHING;

    struct virtio_vsock_hdr h = stream_header(v, s, op);

    h.flags = flags;

    const int result = tell_header(v, &h, why);

    if (result == NOTHING)
        note_told(s, want);
    return result;
}

/* One turn of a stream: what it wants to tell, and some of its bytes. */
static int
stream_turn(struct hed_vsock *v, struct hed_vsock_stream *s, struct hed_why *why)
{
    int more = NOTHING;
    int result = tell_one(v, s, HED_WANT_RESET, VIRTIO_VSOCK_OP_RST, 0, why);

    if (s->state == HED_VSOCK_RESET && result == NOTHING) {
        hed_vsock_free(v, s);
        return NOTHING;
    }
    if (result == NOTHING)
        result = tell_one(v, s, HED_WANT_RESPONSE, VIRTIO_VSOCK_OP_RESPONSE, 0, why);
    if (result == NOTHING)
        result = tell_one(v, s, HED_WANT_ANSWER, VIRTIO_VSOCK_OP_CREDIT_REQUEST, 0, why);
    if (result == NOTHING && s->state == HED_VSOCK_OPEN && s->readable)
        result = more = tell_data(v, s, why);
    if (result == MORE)
        result = NOTHING;
    if (result == NOTHING)
        result = tell_one(v, s, HED_WANT_CREDIT, VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0, why);
    if (result == NOTHING)
        result = tell_one(v, s, HED_WANT_SHUTDOWN, VIRTIO_VSOCK_OP_SHUTDOWN, s->host_shut, why);
    return result == NOTHING ? more : result;
}

int
hed_vsock_tell(struct hed_vsock *v, struct hed_why *why)
{
    int result = tell_replies(v, why);

    for (int i = 0; i < HED_VSOCK_BATCH && v->ready_count > 0 && result == NOTHING; i++) {
        struct hed_vsock_stream *s = &v->streams[v->ready[v->ready_first]];

        v->ready_first = (v->ready_first + 1) % v->most;
        v->ready_count--;
        s->queued = false;
        if (s->state == HED_VSOCK_FREE || s->state == HED_VSOCK_LEFT)
            continue;
        result = stream_turn(v, s, why);
        if (result == MORE || result == STARVED)
            hed_vsock_ready(v, s, 0);
        if (result == MORE)
            result = NOTHING;
    }
    v->starved = result == STARVED;
    if (result == NOTHING && v->ready_count > 0)
        v->busy = true;
    return result < 0 ? result : 0;
}
