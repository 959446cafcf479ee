/* What the guest says. Its bytes go from its memory straight into the socket; what the socket does
 * not take is copied, and the guest may send again as much when it has been passed on. See vsock.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "remote/server/vm/memory.h"
#include "remote/server/vm/vsock.h"

#define HEADER sizeof(struct virtio_vsock_hdr)
#define CREDIT_STEP (HED_VSOCK_BUFFER / 4) /* bytes passed on, of which the guest is told */

/* ---- to the socket --------------------------------------------------------------------------- */

/* Tells epoll whether it should say that the socket takes more. */
static void
watch_socket(struct hed_vsock *v, struct hed_vsock_stream *s, bool full)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET | (full ? EPOLLOUT : 0),
                            .data.u64 = (uint64_t)(s - v->streams)};

    if (s->full != full && epoll_ctl(v->epoll, EPOLL_CTL_MOD, s->fd, &e) == 0)
        s->full = full;
}

/* Returns how many bytes the socket took; -EPIPE if the host reads no more, -EFAULT if the guest's
 * memory is not there. */
static ssize_t
socket_send(const struct hed_vsock_stream *s, struct iovec *parts, int count)
{
    const struct msghdr m = {.msg_iov = parts, .msg_iovlen = (size_t)count};
    ssize_t n;

    do
        n = sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ? 0
           : errno == EFAULT                                      ? -EFAULT
                                                                  : -EPIPE;
}

static void
note_passed(struct hed_vsock *v, struct hed_vsock_stream *s, uint32_t n)
{
    s->passed += n;
    if (s->passed - s->passed_told >= CREDIT_STEP && s->state == HED_VSOCK_OPEN)
        hed_vsock_ready(v, s, HED_WANT_CREDIT);
}

/* Copies the bytes of the chain from an offset on. The caller has made sure that they fit. */
static int
hold_bytes(struct hed_vsock_stream *s, const struct hed_chain *c, size_t offset, uint32_t n)
{
    if (!s->buffer) {
        s->buffer = malloc(HED_VSOCK_BUFFER);
        s->first = 0;
    }
    if (!s->buffer)
        return HED_ENOMEM;

    const uint32_t at = (s->first + s->held) % HED_VSOCK_BUFFER;
    const uint32_t straight = n < HED_VSOCK_BUFFER - at ? n : HED_VSOCK_BUFFER - at;

    hed_chain_read(c, offset, s->buffer + at, straight);
    hed_chain_read(c, offset + straight, s->buffer, n - straight);
    s->held += n;
    return 0;
}

/* All of it has been passed on. */
static void
finish_flush(struct hed_vsock *v, struct hed_vsock_stream *s)
{
    free(s->buffer);
    s->buffer = NULL;
    if (s->state == HED_VSOCK_LEFT) {
        hed_vsock_free(v, s);
        return;
    }
    watch_socket(v, s, false);
    if (s->guest_shut & VIRTIO_VSOCK_SHUTDOWN_SEND)
        (void)shutdown(s->fd, SHUT_WR);
}

void
hed_vsock_flush(struct hed_vsock *v, struct hed_vsock_stream *s)
{
    while (s->held > 0) {
        const uint32_t straight =
            s->held < HED_VSOCK_BUFFER - s->first ? s->held : HED_VSOCK_BUFFER - s->first;
        struct iovec parts[2] = {{.iov_base = s->buffer + s->first, .iov_len = straight},
                                 {.iov_base = s->buffer, .iov_len = s->held - straight}};
        const ssize_t n = socket_send(s, parts, 2);

        if (n < 0) {
            hed_vsock_host_shut(v, s, VIRTIO_VSOCK_SHUTDOWN_RCV);
            return;
        }
        if (n == 0)
            return;
        s->first = (s->first + (uint32_t)n) % HED_VSOCK_BUFFER;
        s->held -= (uint32_t)n;
        note_passed(v, s, (uint32_t)n);
        if (s->held == 0)
            finish_flush(v, s);
    }
}

/* ---- packets --------------------------------------------------------------------------------- */

/* hed_vsock_hear() has made sure that there is room. */
static void
reply_reset(struct hed_vsock *v, const struct hed_vsock_reply *r)
{
    v->replies[(v->reply_first + v->reply_count++) % HED_VSOCK_REPLIES] = *r;
}

static int
hear_data(struct hed_vsock *v, struct hed_vsock_stream *s, const struct hed_chain *c, uint32_t n,
          struct hed_why *why)
{
    struct iovec parts[HED_CHAIN_PARTS];
    ssize_t sent = 0;

    /* It was on its way when the guest was told that nobody reads it. */
    if (s->state != HED_VSOCK_OPEN || (s->host_shut & VIRTIO_VSOCK_SHUTDOWN_RCV))
        return 0;
    if ((s->guest_shut & VIRTIO_VSOCK_SHUTDOWN_SEND) || n > HED_VSOCK_BUFFER - s->held) {
        hed_vsock_reset(v, s);
        return 0;
    }
    if (s->held == 0 && n > 0)
        sent = socket_send(s, parts, hed_chain_slice(c, HEADER, n, parts));
    if (sent == -EFAULT) {
        hed_why_set(why, "a file with the guest's memory has become shorter");
        return HED_EFORMAT;
    }
    if (sent < 0) {
        hed_vsock_host_shut(v, s, VIRTIO_VSOCK_SHUTDOWN_RCV);
        return 0;
    }
    note_passed(v, s, (uint32_t)sent);
    if ((uint32_t)sent == n)
        return 0;
    if (hold_bytes(s, c, HEADER + (size_t)sent, n - (uint32_t)sent) != 0)
        hed_vsock_reset(v, s);
    else
        watch_socket(v, s, true);
    return 0;
}

static void
hear_shutdown(struct hed_vsock *v, struct hed_vsock_stream *s, uint32_t flags)
{
    s->guest_shut |= flags & HED_VSOCK_BOTH;
    if (s->guest_shut == HED_VSOCK_BOTH) {
        /* It waits until it hears that the stream is gone. What is held is passed on all the
         * same. */
        reply_reset(v, &(struct hed_vsock_reply){.cid = HED_VSOCK_HOST,
                                                 .port = v->port,
                                                 .guest_port = s->port,
                                                 .type = VIRTIO_VSOCK_TYPE_STREAM});
        hed_vsock_leave(v, s);
        return;
    }
    if (s->state != HED_VSOCK_OPEN)
        return;
    if ((s->guest_shut & VIRTIO_VSOCK_SHUTDOWN_SEND) && s->held == 0)
        (void)shutdown(s->fd, SHUT_WR);
    if (s->guest_shut & VIRTIO_VSOCK_SHUTDOWN_RCV) {
        (void)shutdown(s->fd, SHUT_RD);
        if (s->hung)
            hed_vsock_host_shut(v, s, HED_VSOCK_BOTH);
    }
}

static int
hear_known(struct hed_vsock *v, struct hed_vsock_stream *s, const struct virtio_vsock_hdr *h,
           const struct hed_chain *c, struct hed_why *why)
{
    if (s->state == HED_VSOCK_RESET) {
        if (h->op == VIRTIO_VSOCK_OP_RST)
            hed_vsock_free(v, s);
        return 0;
    }
    s->guest_buffer = h->buf_alloc;
    s->guest_read = h->fwd_cnt;
    if (s->readable)
        hed_vsock_ready(v, s, 0);
    switch (h->op) {
    case VIRTIO_VSOCK_OP_RW:
        return hear_data(v, s, c, h->len, why);
    case VIRTIO_VSOCK_OP_CREDIT_UPDATE:
        break;
    case VIRTIO_VSOCK_OP_CREDIT_REQUEST:
        hed_vsock_ready(v, s, HED_WANT_CREDIT);
        break;
    case VIRTIO_VSOCK_OP_SHUTDOWN:
        hear_shutdown(v, s, h->flags);
        break;
    case VIRTIO_VSOCK_OP_RST:
        /* What was sent before an orderly end still counts. */
        if (s->guest_shut & VIRTIO_VSOCK_SHUTDOWN_SEND)
            hed_vsock_leave(v, s);
        else
            hed_vsock_free(v, s);
        break;
    default:
        hed_vsock_reset(v, s);
    }
    return 0;
}

/* A packet of a stream that does not exist. */
static void
hear_unknown(struct hed_vsock *v, const struct virtio_vsock_hdr *h, bool ours)
{
    struct hed_vsock_stream *s = NULL;

    if (h->op == VIRTIO_VSOCK_OP_RST)
        return;
    if (ours && h->op == VIRTIO_VSOCK_OP_REQUEST)
        s = hed_vsock_open(v, h->src_port);
    if (s) {
        s->guest_buffer = h->buf_alloc;
        s->guest_read = h->fwd_cnt;
        hed_vsock_ready(v, s, HED_WANT_RESPONSE);
        return;
    }
    reply_reset(
        v, &(struct hed_vsock_reply){
               .cid = h->dst_cid, .port = h->dst_port, .guest_port = h->src_port, .type = h->type});
}

static int
hear_packet(struct hed_vsock *v, const struct hed_chain *c, struct hed_why *why)
{
    struct virtio_vsock_hdr h;

    if (c->bytes < HEADER) {
        hed_why_set(why, "a packet of the guest is shorter than its header");
        return HED_EFORMAT;
    }
    hed_chain_read(c, 0, &h, HEADER);
    if (h.len > c->bytes - HEADER) {
        hed_why_set(why, "a packet of the guest is shorter than it says");
        return HED_EFORMAT;
    }
    if (h.src_cid != v->cid)
        return 0;

    const bool ours =
        h.dst_cid == HED_VSOCK_HOST && h.dst_port == v->port && h.type == VIRTIO_VSOCK_TYPE_STREAM;
    struct hed_vsock_stream *s = ours ? hed_vsock_find(v, h.src_port) : NULL;

    if (s)
        return hear_known(v, s, &h, c, why);
    hear_unknown(v, &h, ours);
    return 0;
}

int
hed_vsock_hear(struct hed_vsock *v, struct hed_why *why)
{
    struct hed_chain *c = &v->chains[0];
    int heard = 0;

    while (heard < HED_VSOCK_BATCH && v->reply_count < HED_VSOCK_REPLIES) {
        const int there = hed_virtq_peek(v->tx, v->memory, 0, false, c, why);

        if (there < 0)
            return there;
        if (there == 0)
            break;

        const int err = hear_packet(v, c, why);

        if (err)
            return err;
        hed_virtq_use(v->tx, c, 0);
        heard++;
    }
    if (heard > 0)
        v->heard_ns = hed_now_ns();
    if (heard == HED_VSOCK_BATCH)
        v->busy = true;
    return 0;
}
