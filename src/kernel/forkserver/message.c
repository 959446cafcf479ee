/* Packets with a descriptor. See message.h. */
#include "kernel/forkserver/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union room { /* for one descriptor */
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
};

int
hed_forkserver_send(int socket, const void *head, size_t head_size, const void *tail,
                    size_t tail_size, int fd)
{
    struct iovec parts[] = {{(void *)(uintptr_t)head, head_size},
                            {(void *)(uintptr_t)tail, tail_size}};
    struct msghdr m = {.msg_iov = parts, .msg_iovlen = tail_size ? 2 : 1};
    union room room;
    ssize_t n;

    if (fd >= 0) {
        memset(&room, 0, sizeof room);
        m.msg_control = room.bytes;
        m.msg_controllen = sizeof room.bytes;
        room.head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof fd);
    }
    do
        n = sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

/* The first descriptor that came; others are closed. */
static int
take_descriptor(struct msghdr *m)
{
    int found = -1;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + at, sizeof fd);
            if (found >= 0)
                (void)close(fd);
            else
                found = fd;
        }
    }
    return found;
}

long
hed_forkserver_receive(int socket, void *data, size_t size, int flags, int *fd)
{
    struct iovec part = {data, size};
    union room room;
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = room.bytes,
                       .msg_controllen = sizeof room.bytes};
    ssize_t n;

    *fd = -1;
    do
        n = recvmsg(socket, &m, flags | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    *fd = take_descriptor(&m);
    if (m.msg_flags & MSG_TRUNC) {
        if (*fd >= 0)
            (void)close(*fd);
        *fd = -1;
        return -EMSGSIZE;
    }
    return n;
}

void
hed_forkserver_texts(const struct hed_forkserver_request *r, const unsigned char *tail,
                     struct hed_forkserver_texts *out)
{
    memcpy(out->name, tail, r->name_size);
    out->name[r->name_size] = 0;
    memcpy(out->features, tail + r->name_size, r->features_size);
    out->features[r->features_size] = 0;
}
