/* What the messages of vhost-user do, and the table of them. See vhost.h. */
#include "remote/server/vm/vhost.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_config.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"

/* Bits of the features that are no device's. */
#define F_PROTOCOL 30
#define PROTOCOL_MQ 0
#define PROTOCOL_CONFIG 9
#define PROTOCOL_RESET_DEVICE 13

#define FEATURES                                                     \
    (UINT64_C(1) << VIRTIO_F_VERSION_1 | UINT64_C(1) << F_PROTOCOL | \
     UINT64_C(1) << VIRTIO_RING_F_INDIRECT_DESC | UINT64_C(1) << VIRTIO_RING_F_EVENT_IDX)
#define PROTOCOL                                                       \
    (UINT64_C(1) << PROTOCOL_MQ | UINT64_C(1) << HED_VHOST_REPLY_ACK | \
     UINT64_C(1) << PROTOCOL_CONFIG | UINT64_C(1) << PROTOCOL_RESET_DEVICE)

#define QUEUE_MASK 0xff /* a number of a queue with a descriptor, or */
#define NO_FD 0x100     /* without one */

struct vhost_state {
    uint32_t queue, number;
};

struct vhost_address {
    uint32_t queue, flags;
    uint64_t desc, used, avail, log;
};

struct vhost_memory {
    uint32_t count, padding;
    struct hed_guest_place places[HED_GUEST_REGIONS];
};

struct vhost_config {
    uint32_t offset, size, flags;
    uint8_t bytes[256];
};

/* ---- what messages do ------------------------------------------------------------------------ */

int
hed_vhost_refuse(struct hed_why *why, const char *text)
{
    hed_why_set(why, "the front end: %s", text);
    return HED_EFORMAT;
}

static uint64_t
payload_number(const struct hed_vhost *v)
{
    uint64_t n;

    memcpy(&n, v->message.payload, sizeof n);
    return n;
}

/* Makes the message its own answer. */
static void
answer_bytes(struct hed_vhost *v, const void *p, uint32_t size)
{
    memcpy(v->message.payload, p, size);
    v->message.head.size = size;
}

static int
answer_number(struct hed_vhost *v, uint64_t n)
{
    answer_bytes(v, &n, sizeof n);
    return 0;
}

static int
get_features(struct hed_vhost *v, struct hed_why *why)
{
    return answer_number(v, FEATURES);
}

static int
set_features(struct hed_vhost *v, struct hed_why *why)
{
    const uint64_t chosen = payload_number(v);

    if (chosen & ~FEATURES)
        return hed_vhost_refuse(why, "it chooses features that were not offered");
    v->features = chosen;
    for (int i = 0; i < HED_VHOST_QUEUES; i++) {
        v->queues[i].events = chosen >> VIRTIO_RING_F_EVENT_IDX & 1;
        v->queues[i].indirect = chosen >> VIRTIO_RING_F_INDIRECT_DESC & 1;
    }
    return 0;
}

static int
get_protocol(struct hed_vhost *v, struct hed_why *why)
{
    return answer_number(v, PROTOCOL);
}

static int
set_protocol(struct hed_vhost *v, struct hed_why *why)
{
    const uint64_t chosen = payload_number(v);

    if (chosen & ~PROTOCOL)
        return hed_vhost_refuse(why, "it chooses features that were not offered");
    v->protocol = chosen;
    return 0;
}

static int
get_queue_count(struct hed_vhost *v, struct hed_why *why)
{
    return answer_number(v, HED_VHOST_QUEUES);
}

static int
set_owner(struct hed_vhost *v, struct hed_why *why)
{
    return 0;
}

/* The guest sees its own address in the device's configuration. An answer without bytes says that
 * there is no such part of it. */
static int
get_config(struct hed_vhost *v, struct hed_why *why)
{
    struct vhost_config c = {0};
    const uint32_t size = v->message.head.size;
    const uint32_t head = offsetof(struct vhost_config, bytes);

    memcpy(&c, v->message.payload, size);
    if (c.size != size - head)
        return hed_vhost_refuse(why, "the size of a question about the device is wrong");
    if (c.offset > sizeof v->cid || c.size > sizeof v->cid - c.offset) {
        v->message.head.size = 0;
        return 0;
    }
    memcpy(c.bytes, (const uint8_t *)&v->cid + c.offset, c.size);
    answer_bytes(v, &c, size);
    return 0;
}

static int
set_memory(struct hed_vhost *v, struct hed_why *why)
{
    struct vhost_memory m;
    const uint32_t size = v->message.head.size;

    memcpy(&m, v->message.payload, size);
    if (m.count > HED_GUEST_REGIONS || v->fd_count != m.count ||
        size != offsetof(struct vhost_memory, places) + m.count * sizeof m.places[0])
        return hed_vhost_refuse(why, "the table of memory has a wrong size");

    int err = hed_guest_map(&v->memory, m.places, v->fds, m.count, why);

    /* Queues that are used now lie elsewhere, here. */
    for (int i = 0; i < HED_VHOST_QUEUES && !err; i++)
        if (v->queues[i].started)
            err = hed_virtq_place(&v->queues[i], &v->memory, why);
    return err;
}

/* ---- queues ---------------------------------------------------------------------------------- */

static struct hed_virtq *
queue_of(struct hed_vhost *v, uint64_t number, struct hed_why *why)
{
    if (number < HED_VHOST_QUEUES)
        return &v->queues[number];
    (void)hed_vhost_refuse(why, "there is no such queue");
    return NULL;
}

/* For messages with the number of a queue and another. */
static struct hed_virtq *
queue_of_state(struct hed_vhost *v, struct vhost_state *s, struct hed_why *why)
{
    memcpy(s, v->message.payload, sizeof *s);
    return queue_of(v, s->queue, why);
}

static int
set_queue_size(struct hed_vhost *v, struct hed_why *why)
{
    struct vhost_state s;
    struct hed_virtq *q = queue_of_state(v, &s, why);

    if (!q)
        return HED_EFORMAT;
    if (q->started || s.number == 0 || s.number > HED_VIRTQ_SIZE || (s.number & (s.number - 1)))
        return hed_vhost_refuse(
            why, "the size of a queue is impossible, or it changes while it is used");
    q->size = s.number;
    return 0;
}

static int
set_queue_base(struct hed_vhost *v, struct hed_why *why)
{
    struct vhost_state s;
    struct hed_virtq *q = queue_of_state(v, &s, why);

    if (!q)
        return HED_EFORMAT;
    if (q->started || s.number > UINT16_MAX)
        return hed_vhost_refuse(why,
                                "the beginning of a queue is impossible, or it changes while it is "
                                "used");
    /* A guest that was only stopped goes on where it was. */
    if (v->stopped[s.queue] && s.number != q->next)
        v->renewed = true;
    v->stopped[s.queue] = false;
    q->next = (uint16_t)s.number;
    return 0;
}

static int
set_queue_address(struct hed_vhost *v, struct hed_why *why)
{
    struct vhost_address a;

    memcpy(&a, v->message.payload, sizeof a);

    struct hed_virtq *q = queue_of(v, a.queue, why);

    if (!q)
        return HED_EFORMAT;
    q->desc_user = a.desc;
    q->avail_user = a.avail;
    q->used_user = a.used;
    q->placed = true;
    return q->started ? hed_virtq_place(q, &v->memory, why) : 0;
}

void
hed_vhost_drop_kick(struct hed_vhost *v, struct hed_virtq *q)
{
    if (q->kick < 0)
        return;
    /* QEMU has it open, too, so closing it does not end its events. */
    (void)epoll_ctl(v->epoll, EPOLL_CTL_DEL, q->kick, NULL);
    (void)close(q->kick);
    q->kick = -1;
}

static void
stop_queue(struct hed_vhost *v, struct hed_virtq *q)
{
    hed_virtq_publish(q);
    hed_virtq_stop(q);
    hed_vhost_drop_kick(v, q);
    if (q->call >= 0)
        (void)close(q->call);
    q->call = -1;
}

static int
take_back_queue(struct hed_vhost *v, struct hed_why *why)
{
    struct vhost_state s;
    struct hed_virtq *q = queue_of_state(v, &s, why);

    if (!q)
        return HED_EFORMAT;
    stop_queue(v, q);
    v->stopped[s.queue] = true;
    s.number = q->next;
    answer_bytes(v, &s, sizeof s);
    return 0;
}

/* The queue of a message that brings an eventfd for it, in *fd, or -1. */
static struct hed_virtq *
queue_of_fd(struct hed_vhost *v, int *fd, struct hed_why *why)
{
    const uint64_t n = payload_number(v);
    const bool none = n & NO_FD;

    if ((n & ~(uint64_t)(QUEUE_MASK | NO_FD)) || v->fd_count != (none ? 0 : 1)) {
        (void)hed_vhost_refuse(why,
                               "a message for a queue does not have the descriptor that it should");
        return NULL;
    }

    struct hed_virtq *q = queue_of(v, n & QUEUE_MASK, why);

    *fd = none ? -1 : v->fds[0];
    if (q)
        v->fd_count = 0;
    if (q && *fd >= 0)
        (void)fcntl(*fd, F_SETFL, O_NONBLOCK); /* a full one must not stop us */
    return q;
}

/* With its kick, a queue is handed over. Edges are enough: nobody needs the count. */
static int
set_queue_kick(struct hed_vhost *v, struct hed_why *why)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLET};
    int fd;
    struct hed_virtq *q = queue_of_fd(v, &fd, why);

    if (!q)
        return HED_EFORMAT;
    if (fd < 0)
        return hed_vhost_refuse(why, "it wants a queue to be polled");
    hed_vhost_drop_kick(v, q);
    q->kick = fd;
    e.data.u64 = HED_VHOST_KICK + (uint64_t)(q - v->queues);
    if (epoll_ctl(v->epoll, EPOLL_CTL_ADD, fd, &e) != 0)
        return hed_vhost_refuse(why, "a kick is not a descriptor that can be waited for");
    if (!(v->features >> F_PROTOCOL & 1))
        q->enabled = true;
    return q->started ? 0 : hed_virtq_start(q, &v->memory, why);
}

static int
set_queue_call(struct hed_vhost *v, struct hed_why *why)
{
    int fd;
    struct hed_virtq *q = queue_of_fd(v, &fd, why);

    if (!q)
        return HED_EFORMAT;
    if (q->call >= 0)
        (void)close(q->call);
    q->call = fd;
    hed_virtq_call(q); /* what was used before it was there */
    return 0;
}

/* Errors end the bridge, which QEMU notices. */
static int
set_queue_error(struct hed_vhost *v, struct hed_why *why)
{
    int fd;

    if (!queue_of_fd(v, &fd, why))
        return HED_EFORMAT;
    if (fd >= 0)
        (void)close(fd);
    return 0;
}

static int
enable_queue(struct hed_vhost *v, struct hed_why *why)
{
    struct vhost_state s;
    struct hed_virtq *q = queue_of_state(v, &s, why);

    if (!q || s.number > 1)
        return hed_vhost_refuse(why, "it enables a queue in an impossible way");
    q->enabled = s.number;
    return 0;
}

static int
reset_device(struct hed_vhost *v, struct hed_why *why)
{
    for (int i = 0; i < HED_VHOST_QUEUES; i++) {
        stop_queue(v, &v->queues[i]);
        v->queues[i].enabled = false;
        v->stopped[i] = false;
    }
    v->renewed = true;
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define ROW(token, size, count, reply, function)             \
    {                                                        \
#token, (size), (size), (count), (reply), (function) \
    }
#define REFUSED(token)                                           \
    {                                                            \
#token, 0, HED_VHOST_PAYLOAD, HED_VHOST_FDS, false, NULL \
    }
#define NUMBER sizeof(uint64_t)
#define STATE sizeof(struct vhost_state)

/* In the order of their numbers, from 1. Those without a function belong to features that were not
 * offered, or to other devices. */
const struct hed_vhost_request hed_vhost_requests[] = {
    ROW(GET_FEATURES, 0, 0, true, get_features),
    ROW(SET_FEATURES, NUMBER, 0, false, set_features),
    ROW(SET_OWNER, 0, 0, false, set_owner),
    ROW(RESET_OWNER, 0, 0, false, reset_device),
    {"SET_MEM_TABLE", offsetof(struct vhost_memory, places), sizeof(struct vhost_memory),
     HED_GUEST_REGIONS, false, set_memory},
    REFUSED(SET_LOG_BASE),
    REFUSED(SET_LOG_FD),
    ROW(SET_VRING_NUM, STATE, 0, false, set_queue_size),
    ROW(SET_VRING_ADDR, sizeof(struct vhost_address), 0, false, set_queue_address),
    ROW(SET_VRING_BASE, STATE, 0, false, set_queue_base),
    ROW(GET_VRING_BASE, STATE, 0, true, take_back_queue),
    ROW(SET_VRING_KICK, NUMBER, 1, false, set_queue_kick),
    ROW(SET_VRING_CALL, NUMBER, 1, false, set_queue_call),
    ROW(SET_VRING_ERR, NUMBER, 1, false, set_queue_error),
    ROW(GET_PROTOCOL_FEATURES, 0, 0, true, get_protocol),
    ROW(SET_PROTOCOL_FEATURES, NUMBER, 0, false, set_protocol),
    ROW(GET_QUEUE_NUM, 0, 0, true, get_queue_count),
    ROW(SET_VRING_ENABLE, STATE, 0, false, enable_queue),
    REFUSED(SEND_RARP),
    REFUSED(NET_SET_MTU),
    REFUSED(SET_BACKEND_REQ_FD),
    REFUSED(IOTLB_MSG),
    REFUSED(SET_VRING_ENDIAN),
    {"GET_CONFIG", offsetof(struct vhost_config, bytes), sizeof(struct vhost_config), 0, true,
     get_config},
    REFUSED(SET_CONFIG),
    REFUSED(CREATE_CRYPTO_SESSION),
    REFUSED(CLOSE_CRYPTO_SESSION),
    REFUSED(POSTCOPY_ADVISE),
    REFUSED(POSTCOPY_LISTEN),
    REFUSED(POSTCOPY_END),
    REFUSED(GET_INFLIGHT_FD),
    REFUSED(SET_INFLIGHT_FD),
    REFUSED(GPU_SET_SOCKET),
    ROW(RESET_DEVICE, 0, 0, false, reset_device),
};

const uint32_t hed_vhost_request_count = sizeof hed_vhost_requests / sizeof *hed_vhost_requests;
