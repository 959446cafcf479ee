/* The messages of vhost-user on their way here: they come in pieces, with descriptors. See vhost.h.
 */
#include "remote/server/vm/vhost.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"

#define VERSION 1 /* the flags of a message: the lowest two bits, and then */
#define VERSION_MASK 3
#define IS_REPLY 4
#define NEEDS_REPLY 8

#define MESSAGES_AT_ONCE 32 /* before others have their turn */

static void
drop_fds(struct hed_vhost *v)
{
    for (uint32_t i = 0; i < v->fd_count; i++)
        (void)close(v->fds[i]);
    v->fd_count = 0;
}

static void
acknowledge(struct hed_vhost *v)
{
    memset(v->message.payload, 0, sizeof(uint64_t));
    v->message.head.size = sizeof(uint64_t);
}

static int
answer_message(struct hed_vhost *v, struct hed_why *why)
{
    const size_t size = sizeof v->message.head + v->message.head.size;
    ssize_t n;

    v->message.head.flags = VERSION | IS_REPLY;
    do
        n = send(v->fd, &v->message, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size ? 0 : hed_vhost_refuse(why, "it does not read its answers");
}

/* The head is complete. */
static int
check_head(const struct hed_vhost *v, struct hed_why *why)
{
    const struct hed_vhost_head *h = &v->message.head;
    const struct hed_vhost_request *r = h->request > 0 && h->request <= hed_vhost_request_count
                                            ? &hed_vhost_requests[h->request - 1]
                                            : NULL;

    if (!r || !r->handle) {
        hed_why_set(why, "the front end: the message %s (number %u) is not supported",
                    r ? r->name : "of a newer version", h->request);
        return HED_ENOTSUP;
    }
    if ((h->flags & VERSION_MASK) != VERSION || (h->flags & IS_REPLY) || h->size < r->least ||
        h->size > r->most) {
        hed_why_set(why, "the front end: the message %s has a wrong head", r->name);
        return HED_EFORMAT;
    }
    return 0;
}

static int
handle_message(struct hed_vhost *v, struct hed_why *why)
{
    const struct hed_vhost_request *r = &hed_vhost_requests[v->message.head.request - 1];
    const bool wanted =
        (v->message.head.flags & NEEDS_REPLY) && (v->protocol >> HED_VHOST_REPLY_ACK & 1);
    int err = 0;

    if (v->fd_count > r->fds)
        err = hed_vhost_refuse(why, "a message has too many descriptors");
    if (!err)
        err = r->handle(v, why);
    drop_fds(v);
    if (!err && !r->answered && wanted)
        acknowledge(v);
    if (!err && (r->answered || wanted))
        err = answer_message(v, why);
    v->have = 0;
    return err;
}

/* Keeps the descriptors of what has arrived. They are part of the message that is arriving, because
 * nothing beyond it is read. */
static int
keep_fds(struct hed_vhost *v, struct msghdr *m, struct hed_why *why)
{
    bool fits = !(m->msg_flags & MSG_CTRUNC);

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;

        const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (v->fd_count < HED_VHOST_FDS) {
                v->fds[v->fd_count++] = fd;
            } else {
                (void)close(fd);
                fits = false;
            }
        }
    }
    return fits ? 0 : hed_vhost_refuse(why, "a message has too many descriptors");
}

/* Reads up to the end of the head, or of the message. 0: there is something new; 1: nothing now;
 * HED_EIO: QEMU is gone. */
static int
read_some(struct hed_vhost *v, struct hed_why *why)
{
    const size_t head = sizeof v->message.head;
    const size_t end = v->have < head ? head : head + v->message.head.size;
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(HED_VHOST_FDS * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = (uint8_t *)&v->message + v->have, .iov_len = end - v->have};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    ssize_t n;

    do
        n = recvmsg(v->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? 1 : HED_EIO;
    if (n == 0)
        return HED_EIO;
    v->have += (uint32_t)n;
    return keep_fds(v, &m, why);
}

int
hed_vhost_hear(struct hed_vhost *v, struct hed_why *why)
{
    const uint32_t head = sizeof v->message.head;

    for (int i = 0; i < MESSAGES_AT_ONCE;) {
        int err = read_some(v, why);

        if (err)
            return err == HED_EIO ? 1 : err == 1 ? 0 : err;
        if (v->have < head)
            continue;
        err = check_head(v, why);
        if (err)
            return err;
        if (v->have < head + v->message.head.size)
            continue;
        err = handle_message(v, why);
        if (err)
            return err;
        i++;
    }
    return 0;
}

void
hed_vhost_init(struct hed_vhost *v, int fd, int epoll, uint64_t cid)
{
    *v = (struct hed_vhost){.fd = fd, .epoll = epoll, .cid = cid};
    for (int i = 0; i < HED_VHOST_QUEUES; i++)
        hed_virtq_init(&v->queues[i]);
}

void
hed_vhost_fini(struct hed_vhost *v)
{
    drop_fds(v);
    for (int i = 0; i < HED_VHOST_QUEUES; i++) {
        hed_vhost_drop_kick(v, &v->queues[i]);
        hed_virtq_fini(&v->queues[i]);
    }
    hed_guest_unmap(&v->memory);
}
