/* The streams of a guest: their table, and how they begin and end. See vsock.h. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "remote/server/vm/bridge.h"
#include "remote/server/vm/vsock.h"
#include "remote/wire/conn.h"

#define SOCKET_BUFFER (1 << 20) /* bytes that should fit between bridge and worker */

/* Sockets tell by edges: whether one is readable is remembered in its stream, so that a guest that
 * takes nothing costs no time. */
#define SOCKET_EVENTS (EPOLLIN | EPOLLRDHUP | EPOLLET)

/* ---- the table ------------------------------------------------------------------------------- */

static uint32_t
stream_place(const struct hed_vsock *v, const struct hed_vsock_stream *s)
{
    return (uint32_t)(s - v->streams);
}

int
hed_vsock_init(struct hed_vsock *v, uint32_t streams, uint32_t silent_ms)
{
    uint32_t index_size = 16;

    while (index_size < streams)
        index_size *= 2;
    v->most = streams;
    v->index_mask = index_size - 1;
    v->silent_ns = silent_ms * HED_NS_PER_MS;
    v->streams = calloc(streams, sizeof *v->streams);
    v->ready = calloc(streams, sizeof *v->ready);
    v->index = malloc(index_size * sizeof *v->index);
    if (!v->streams || !v->ready || !v->index)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < index_size; i++)
        v->index[i] = HED_VSOCK_NONE;
    for (uint32_t i = 0; i < streams; i++)
        v->streams[i] =
            (struct hed_vsock_stream){.fd = -1, .after = i + 1 < streams ? i + 1 : HED_VSOCK_NONE};
    return 0;
}

void
hed_vsock_fini(struct hed_vsock *v)
{
    for (uint32_t i = 0; v->streams && i < v->most; i++) {
        if (v->streams[i].fd >= 0)
            (void)close(v->streams[i].fd);
        free(v->streams[i].buffer);
    }
    free(v->streams);
    free(v->ready);
    free(v->index);
}

struct hed_vsock_stream *
hed_vsock_find(const struct hed_vsock *v, uint32_t port)
{
    uint32_t at = v->index[port & v->index_mask];

    while (at != HED_VSOCK_NONE && v->streams[at].port != port)
        at = v->streams[at].after;
    return at != HED_VSOCK_NONE ? &v->streams[at] : NULL;
}

static void
port_add(struct hed_vsock *v, struct hed_vsock_stream *s)
{
    uint32_t *first = &v->index[s->port & v->index_mask];

    s->after = *first;
    *first = stream_place(v, s);
}

static void
port_remove(struct hed_vsock *v, struct hed_vsock_stream *s)
{
    uint32_t *at = &v->index[s->port & v->index_mask];

    while (*at != stream_place(v, s))
        at = &v->streams[*at].after;
    *at = s->after;
}

void
hed_vsock_ready(struct hed_vsock *v, struct hed_vsock_stream *s, uint32_t wants)
{
    s->wants |= wants;
    if (s->queued)
        return;
    s->queued = true;
    v->ready[(v->ready_first + v->ready_count++) % v->most] = stream_place(v, s);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* One socket for us, and one for the listener, which gets it at once. */
static int
make_socket(struct hed_vsock *v, uint32_t place, uint32_t port)
{
    const struct hed_bridge_hello hello = {.port = port};
    const int size = SOCKET_BUFFER;
    struct epoll_event e = {.events = SOCKET_EVENTS, .data.u64 = place};
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    for (int i = 0; i < 2; i++)
        (void)setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if (epoll_ctl(v->epoll, EPOLL_CTL_ADD, ends[0], &e) != 0 ||
        hed_fd_send(v->listener, &ends[1], 1, &hello, sizeof hello) != 0) {
        (void)close(ends[0]);
        ends[0] = -1;
    }
    (void)close(ends[1]);
    return ends[0];
}

struct hed_vsock_stream *
hed_vsock_open(struct hed_vsock *v, uint32_t port)
{
    const uint32_t place = v->free;
    const int fd = place != HED_VSOCK_NONE ? make_socket(v, place, port) : -1;

    if (fd < 0)
        return NULL;

    struct hed_vsock_stream *s = &v->streams[place];

    v->free = s->after;
    /* The place may still be among those that have something to tell, from its last stream. */
    *s = (struct hed_vsock_stream){
        .state = HED_VSOCK_OPEN, .port = port, .fd = fd, .queued = s->queued};
    port_add(v, s);
    v->known++;
    return s;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
stream_drop_held(struct hed_vsock_stream *s)
{
    free(s->buffer);
    s->buffer = NULL;
    s->held = 0;
}

/* Closes the host's side. */
static void
stream_cut(struct hed_vsock_stream *s)
{
    if (s->fd >= 0)
        (void)close(s->fd);
    s->fd = -1;
    s->readable = false;
    stream_drop_held(s);
}

static bool
stream_is_known(const struct hed_vsock_stream *s)
{
    return s->state == HED_VSOCK_OPEN || s->state == HED_VSOCK_CLOSED;
}

void
hed_vsock_host_shut(struct hed_vsock *v, struct hed_vsock_stream *s, uint32_t shut)
{
    if (s->state == HED_VSOCK_LEFT) {
        if (shut & VIRTIO_VSOCK_SHUTDOWN_RCV)
            hed_vsock_free(v, s);
        return;
    }
    if ((s->host_shut & shut) == shut)
        return;
    s->host_shut |= shut;
    if (shut & VIRTIO_VSOCK_SHUTDOWN_RCV)
        stream_drop_held(s);
    if (shut & VIRTIO_VSOCK_SHUTDOWN_SEND)
        s->readable = false;
    if (s->host_shut == HED_VSOCK_BOTH) {
        stream_cut(s);
        s->state = HED_VSOCK_CLOSED;
    }
    hed_vsock_ready(v, s, HED_WANT_SHUTDOWN);
}

void
hed_vsock_reset(struct hed_vsock *v, struct hed_vsock_stream *s)
{
    if (stream_is_known(s))
        v->known--;
    stream_cut(s);
    s->state = HED_VSOCK_RESET;
    s->wants = 0;
    hed_vsock_ready(v, s, HED_WANT_RESET);
}

void
hed_vsock_free(struct hed_vsock *v, struct hed_vsock_stream *s)
{
    if (stream_is_known(s))
        v->known--;
    if (s->state != HED_VSOCK_LEFT)
        port_remove(v, s);
    stream_cut(s);
    s->state = HED_VSOCK_FREE;
    s->wants = 0;
    s->after = v->free;
    v->free = stream_place(v, s);
}

void
hed_vsock_leave(struct hed_vsock *v, struct hed_vsock_stream *s)
{
    if (s->state != HED_VSOCK_OPEN || s->held == 0) {
        hed_vsock_free(v, s);
        return;
    }
    port_remove(v, s);
    v->known--;
    s->state = HED_VSOCK_LEFT;
    s->wants = 0;
    s->readable = false;
}

void
hed_vsock_reset_all(struct hed_vsock *v)
{
    for (uint32_t i = 0; i < v->most; i++)
        if (stream_is_known(&v->streams[i]))
            hed_vsock_reset(v, &v->streams[i]);
}

void
hed_vsock_forget_all(struct hed_vsock *v)
{
    for (uint32_t i = 0; i < v->most; i++)
        if (stream_is_known(&v->streams[i]) || v->streams[i].state == HED_VSOCK_RESET)
            hed_vsock_free(v, &v->streams[i]);
    v->reply_count = 0;
}

void
hed_vsock_event(struct hed_vsock *v, uint32_t place, uint32_t events)
{
    struct hed_vsock_stream *s = place < v->most ? &v->streams[place] : NULL;

    /* An event may be that of a socket which another event of the same round has closed. */
    if (!s || s->fd < 0)
        return;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        s->ending = true;
    if (events & (EPOLLHUP | EPOLLERR))
        s->hung = true;
    if (s->full || s->hung)
        hed_vsock_flush(v, s);
    if (s->fd < 0) /* that was the end of it */
        return;
    if (s->hung && (s->guest_shut & VIRTIO_VSOCK_SHUTDOWN_RCV))
        hed_vsock_host_shut(v, s, HED_VSOCK_BOTH);
    if (s->state == HED_VSOCK_OPEN && (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))) {
        s->readable = true;
        hed_vsock_ready(v, s, 0);
    }
}

/* ---- a guest that says nothing --------------------------------------------------------------- */

/* It is asked after a third of the time, and has the rest to answer. That counts from the question:
 * this process may have been stopped, too. */
uint64_t
hed_vsock_next_tick(const struct hed_vsock *v)
{
    if (v->silent_ns == 0 || v->known == 0)
        return UINT64_MAX;
    return v->asked_ns > v->heard_ns ? v->asked_ns + v->silent_ns - v->silent_ns / 3
                                     : v->heard_ns + v->silent_ns / 3;
}

void
hed_vsock_tick(struct hed_vsock *v)
{
    const uint64_t now = hed_now_ns();

    if (now < hed_vsock_next_tick(v))
        return;
    if (v->asked_ns > v->heard_ns) {
        hed_warn(SERVER, "the guest with CID %llu does not answer: its connections (%u) are closed",
                 (unsigned long long)v->cid, v->known);
        hed_vsock_reset_all(v);
        return;
    }
    v->asked_ns = now;
    for (uint32_t i = 0; i < v->most; i++) {
        v->asked = (v->asked + 1) % v->most;
        if (stream_is_known(&v->streams[v->asked])) {
            hed_vsock_ready(v, &v->streams[v->asked], HED_WANT_ANSWER);
            return;
        }
    }
}
