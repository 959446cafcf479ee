/* The bridge: one loop over QEMU's socket, the kicks of the guest and the sockets of its streams.
 * See bridge.h.
 */
#include "remote/server/vm/bridge.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "remote/server/sandbox/sandbox.h"
#include "remote/server/vm/vhost.h"
#include "remote/server/vm/vsock.h"

#define EVENTS_AT_ONCE 64
#define BRIDGE_BYTES (UINT64_C(64) << 20) /* private memory, without what streams hold */

/* What events have as data, besides the places of streams and HED_VHOST_KICK. */
#define EVENT_VHOST (UINT64_C(2) << 32)
#define EVENT_LISTENER (UINT64_C(3) << 32)

struct hed_bridge {
    int vhost_fd, listener, epoll; /* owned */
    struct hed_vhost vhost;
    struct hed_vsock vsock;
};

static int
watch_fd(const struct hed_bridge *b, int fd, uint32_t events, uint64_t data)
{
    struct epoll_event e = {.events = events, .data.u64 = data};

    return epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : HED_EIO;
}

int
hed_bridge_open(const struct hed_bridge_start *start, struct hed_bridge **out)
{
    const bool possible = start->connections > 0 && start->connections <= HED_BRIDGE_CONNECTIONS &&
                          start->cid > HED_VSOCK_HOST && start->cid <= UINT32_MAX;
    struct hed_bridge *b = possible ? calloc(1, sizeof *b) : NULL;

    if (!b) {
        (void)close(start->vhost);
        (void)close(start->listener);
        return possible ? HED_ENOMEM : HED_EINVAL;
    }
    b->vhost_fd = start->vhost;
    b->listener = start->listener;
    b->epoll = epoll_create1(EPOLL_CLOEXEC);
    hed_vhost_init(&b->vhost, b->vhost_fd, b->epoll, start->cid);
    b->vsock.cid = start->cid;
    b->vsock.port = start->port;
    b->vsock.listener = b->listener;
    b->vsock.epoll = b->epoll;
    b->vsock.memory = &b->vhost.memory;
    b->vsock.rx = &b->vhost.queues[0];
    b->vsock.tx = &b->vhost.queues[1];

    int err = hed_vsock_init(&b->vsock, start->connections, start->silent_ms);

    if (!err)
        err = watch_fd(b, b->vhost_fd, EPOLLIN, EVENT_VHOST);
    if (!err)
        err = watch_fd(b, b->listener, 0, EVENT_LISTENER); /* when it hangs up */
    if (err)
        hed_bridge_close(b);
    else
        *out = b;
    return err;
}

void
hed_bridge_close(struct hed_bridge *b)
{
    hed_vsock_fini(&b->vsock);
    hed_vhost_fini(&b->vhost);
    (void)close(b->vhost_fd);
    (void)close(b->listener);
    if (b->epoll >= 0)
        (void)close(b->epoll);
    free(b);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* 0; 1: it is the end; or an error. */
static int
take_event(struct hed_bridge *b, const struct epoll_event *e, struct hed_why *why)
{
    const uint64_t data = e->data.u64;
    int result = 0;

    if (data < HED_VHOST_KICK)
        hed_vsock_event(&b->vsock, (uint32_t)data, e->events);
    else if (data == EVENT_VHOST)
        result = hed_vhost_hear(&b->vhost, why);
    else if (data == EVENT_LISTENER)
        result = 1;
    if (b->vhost.renewed)
        hed_vsock_forget_all(&b->vsock);
    b->vhost.renewed = false;
    return result;
}

/* Hears and tells the guest, a batch of each, with one interrupt at most for both queues. Kicks are
 * wanted only while there is nothing to do. */
static int
serve_guest(struct hed_bridge *b, struct hed_why *why)
{
    struct hed_vsock *v = &b->vsock;

    v->busy = false;
    (void)hed_virtq_want_kicks(v->tx, false);

    int err = hed_vsock_hear(v, why);

    if (!err) {
        hed_vsock_tick(v);
        err = hed_vsock_tell(v, why);
    }
    hed_virtq_publish(v->rx);
    hed_virtq_publish(v->tx);
    if (!v->busy && v->reply_count < HED_VSOCK_REPLIES)
        v->busy = hed_virtq_want_kicks(v->tx, true);
    if (hed_virtq_want_kicks(v->rx, v->starved))
        v->busy = true;
    return err;
}

/* Until the guest has to be asked, or what is given is over. */
static int
wait_ms(const struct hed_bridge *b, int timeout_ms)
{
    const uint64_t tick = hed_vsock_next_tick(&b->vsock);
    const uint64_t now = tick != UINT64_MAX ? hed_now_ns() : 0;
    uint64_t ms = timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms;

    if (b->vsock.busy)
        return 0;
    if (tick != UINT64_MAX) {
        const uint64_t until = tick > now ? (tick - now) / HED_NS_PER_MS + 1 : 0;

        ms = until < ms ? until : ms;
    }
    return ms > INT32_MAX ? -1 : (int)ms;
}

int
hed_bridge_turn(struct hed_bridge *b, int timeout_ms, struct hed_why *why)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    const int n = epoll_wait(b->epoll, events, EVENTS_AT_ONCE, wait_ms(b, timeout_ms));
    int result = n < 0 && errno != EINTR ? HED_EIO : 0;

    for (int i = 0; i < n && result == 0; i++)
        result = take_event(b, &events[i], why);
    return result ? result : serve_guest(b, why);
}

int
hed_bridge_run(const struct hed_bridge_start *start)
{
    struct hed_why why = {""};
    struct hed_bridge *b = NULL;
    int result = hed_bridge_open(start, &b);

    while (result == 0)
        result = hed_bridge_turn(b, -1, &why);
    /* Before the listener sees the end: it waits for no last words. */
    if (result < 0)
        hed_error(SERVER, "the bridge to the guest with CID %llu ends: %s",
                  (unsigned long long)start->cid, why.text[0] ? why.text : hed_err_text(result));
    if (b)
        hed_bridge_close(b);
    return result < 0 ? result : 0;
}

int
hed_bridge_confine(struct hed_sandbox *box, const struct hed_bridge_start *start,
                   struct hed_why *why)
{
    box->bridge = true;
    box->gate = false;
    box->driver = false;
    box->steps &= ~(UINT32_C(1) << HED_STEP_CGROUP); /* it stays in the listener's */
    if (box->memory)
        box->memory = BRIDGE_BYTES + (uint64_t)start->connections * HED_VSOCK_BUFFER;
    box->variable = NULL;
    for (int i = 0; i < HED_SANDBOX_FOLDERS; i++)
        box->folders[i] = -1;
    return box->steps ? hed_sandbox_enter(box, why) : 0;
}
