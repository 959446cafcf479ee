/* Connections: reading, writing, descriptors, closing. open.c creates them. See conn.h.
 *
 * Invariants:
 * 1. The descriptor blocks. With a timeout, calls are made with MSG_DONTWAIT and poll does the
 *    waiting. So reading without a timeout costs one system call per piece.
 * 2. The blocking calls of a TCP socket return with EAGAIN once a second (hed_socket_tune), and
 *    then the connection checks whether the peer is silent.
 */
#include "remote/wire/conn.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/wire/link/link.h"
#include "remote/wire/socket.h"

#define FDS_MARK 'F'       /* the byte that carries descriptors */
#define FDS_ROOM 253       /* the most descriptors that the kernel lets a message carry */
#define GATHER 16384       /* bytes of a TLS record */
#define TAKEN_AT_ONCE 4096 /* bytes that a socket with room takes without blocking */
#define ENOUGH_SAID 32768  /* bytes that wait to be read; with so many, no more may arrive */
#define LAST_WORDS 1048576 /* bytes that are still read from a peer when its connection is closed */

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads at least one byte, at most n. */
static ssize_t
read_once(struct hed_conn *c, void *p, size_t n, uint64_t end)
{
    const bool timed = end != UINT64_MAX;

    if (c->tls && !timed && c->patience) {
        const ssize_t got =
            hed_tls_read(c->tls, p, n, hed_socket_end(c->patience * HED_SOCKET_LOOK_MS));

        return got == HED_ETIME ? HED_EIO : got;
    }
    if (c->tls)
        return hed_tls_read(c->tls, p, n, end);
    for (int looks = 1;; looks++) {
        const ssize_t got = hed_socket_recv(c->fd, p, n, timed ? MSG_DONTWAIT : 0);

        if (got > 0)
            return got;
        if (got == 0)
            return HED_EIO;
        if (errno == EINTR) {
            looks--;
            continue;
        }
        if (errno != EAGAIN)
            return HED_EIO;
        if (!timed && (hed_link_silent(c->link, c->fd) || looks == c->patience))
            return HED_EIO;

        const int err = timed ? hed_socket_wait(c->fd, POLLIN, end, c->link) : 0;

        if (err)
            return err;
    }
}

ssize_t
hed_conn_read_some(struct hed_conn *c, void *p, size_t least, size_t n, int timeout_ms)
{
    const uint64_t end = hed_socket_end(timeout_ms);
    size_t got = 0;

    if (least > n || n > SSIZE_MAX)
        return HED_EINVAL;
    while (got < least) {
        const ssize_t more = read_once(c, (char *)p + got, n - got, end);

        if (more < 0)
            return more;
        got += (size_t)more;
    }
    return (ssize_t)got;
}

int
hed_conn_read(struct hed_conn *c, void *p, size_t n, int timeout_ms)
{
    const ssize_t got = hed_conn_read_some(c, p, n, n, timeout_ms);

    return got < 0 ? (int)got : 0;
}

ssize_t
hed_conn_peek(struct hed_conn *c, void *p, size_t n)
{
    ssize_t got;

    if (c->tls)
        return HED_ENOTSUP;
    do
        got = hed_socket_recv(c->fd, p, n, MSG_PEEK | MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    return got > 0 ? got : got < 0 && errno == EAGAIN ? 0 : HED_EIO;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Removes n bytes from the front of the parts. */
static void
skip_bytes(struct iovec **parts, size_t *count, size_t n)
{
    while (*count > 0 && n >= (*parts)->iov_len) {
        n -= (*parts)->iov_len;
        (*parts)++;
        (*count)--;
    }
    if (*count > 0) {
        (*parts)->iov_base = (char *)(*parts)->iov_base + n;
        (*parts)->iov_len -= n;
    }
}

/* Joins small parts into one TLS record. */
static int
write_secured(struct hed_conn *c, const struct iovec *parts, size_t count)
{
    char gathered[GATHER];
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        const struct iovec *p = &parts[i];

        if (p->iov_len <= sizeof gathered - n) {
            if (p->iov_len)
                memcpy(gathered + n, p->iov_base, p->iov_len);
            n += p->iov_len;
            continue;
        }

        int err = n ? hed_tls_write(c->tls, gathered, n) : 0;

        n = 0;
        if (!err)
            err = hed_tls_write(c->tls, p->iov_base, p->iov_len);
        if (err)
            return err;
    }
    return n ? hed_tls_write(c->tls, gathered, n) : 0;
}

/* A write has blocked for a second: is the peer silent in either direction? What it sends waits to
 * be read, so the amount that waits grows. If much waits, the peer was not silent. */
static bool
is_silent(const struct hed_conn *c, int *looks, int *waiting)
{
    int now = 0;

    if (hed_link_silent(c->link, c->fd))
        return true;
    if (!c->patience || ioctl(c->fd, FIONREAD, &now) != 0)
        return false;
    *looks = now == *waiting ? *looks + 1 : 0;
    *waiting = now;
    return *looks >= c->patience && now < ENOUGH_SAID;
}

int
hed_conn_writev(struct hed_conn *c, struct iovec *parts, int count)
{
    size_t left = count > 0 ? (size_t)count : 0;
    int looks = 0, waiting = -1;

    if (c->tls)
        return write_secured(c, parts, left);
    skip_bytes(&parts, &left, 0); /* skips empty parts */
    while (left > 0) {
        const struct msghdr m = {.msg_iov = parts, .msg_iovlen = left < IOV_MAX ? left : IOV_MAX};
        const ssize_t sent = hed_socket_sendmsg(c->fd, &m, 0);

        if (sent >= 0)
            skip_bytes(&parts, &left, (size_t)sent);
        else if (errno == EAGAIN ? is_silent(c, &looks, &waiting) : errno != EINTR)
            return HED_EIO;
    }
    return 0;
}

int
hed_conn_write(struct hed_conn *c, const void *p, size_t n)
{
    struct iovec part = {.iov_base = (void *)p, .iov_len = n};

    return hed_conn_writev(c, &part, 1);
}

ssize_t
hed_conn_write_now(struct hed_conn *c, const void *p, size_t n)
{
    struct iovec part = {.iov_base = (void *)p, .iov_len = n};
    const struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    struct pollfd room = {.fd = c->fd, .events = POLLOUT};
    ssize_t sent;

    if (c->tls) {
        /* A socket that takes anything takes a few kilobytes. */
        if (poll(&room, 1, 0) <= 0)
            return 0;
        n = n < TAKEN_AT_ONCE ? n : TAKEN_AT_ONCE;

        const int err = hed_tls_write(c->tls, p, n);

        return err ? err : (ssize_t)n;
    }
    do
        sent = hed_socket_sendmsg(c->fd, &m, MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent >= 0 ? sent : errno == EAGAIN ? 0 : HED_EIO;
}

int
hed_conn_patience(struct hed_conn *c, int ms)
{
    c->patience = ms / HED_SOCKET_LOOK_MS;
    return hed_socket_looks(c->fd);
}

void
hed_conn_break(struct hed_conn *c)
{
    (void)shutdown(c->fd, SHUT_RDWR);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

union fds_room {
    char bytes[CMSG_SPACE(FDS_ROOM * sizeof(int))];
    struct cmsghdr align;
};

/* Makes one call. Returns how many bytes, or -1 and errno. */
static ssize_t
send_fds(int socket, const int *fds, int count, const void *p, size_t n, int flags)
{
    const size_t bytes = (size_t)count * sizeof(int);
    union fds_room room;
    struct iovec part = {.iov_base = (void *)p, .iov_len = n};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = room.bytes,
                       .msg_controllen = CMSG_SPACE(bytes)};

    memset(&room, 0, sizeof room);

    struct cmsghdr *h = CMSG_FIRSTHDR(&m);

    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(h), fds, bytes);
    return hed_socket_sendmsg(socket, &m, flags);
}

int
hed_conn_send_fds(struct hed_conn *c, const int *fds, int count)
{
    const char mark = FDS_MARK;
    ssize_t sent;

    if (!c->link->local)
        return HED_ENOTSUP;
    if (count < 1 || count > HED_CONN_FDS)
        return HED_EINVAL;
    do
        sent = send_fds(c->fd, fds, count, &mark, 1, 0);
    while (sent < 0 && (errno == EINTR || errno == EAGAIN));
    return sent == 1 ? 0 : HED_EIO;
}

bool
hed_fd_hung_up(int socket)
{
    char byte;

    return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

int
hed_fd_send(int socket, const int *fds, int count, const void *p, size_t n)
{
    ssize_t sent;

    if (count < 1 || count > HED_CONN_FDS || n == 0)
        return HED_EINVAL;
    do
        sent = send_fds(socket, fds, count, p, n, MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent == (ssize_t)n)
        return 0;
    /* The second means that too many descriptors of this user are on their way. */
    return errno == EAGAIN || errno == ETOOMANYREFS ? HED_ETIME : HED_EIO;
}

/* Collects the descriptors of a message: keeps the first `most` and closes the others. Returns how
 * many there were. */
static int
collect_fds(struct msghdr *m, int *fds, int most)
{
    int n = 0;

    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;

        const size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
            if (n < most)
                fds[n] = fd;
            else
                close(fd);
            n++;
        }
    }
    return n;
}

/* Takes a message with `least` to `count` descriptors; *n is how many. Returns 0, HED_ETIME if
 * there is nothing, HED_EIO or HED_EFORMAT. */
static int
take_some_fds(int socket, int *fds, int least, int count, int *n, void *p, size_t size, int flags)
{
    union fds_room room;
    int kept[HED_CONN_FDS];
    struct iovec part = {.iov_base = p, .iov_len = size};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = room.bytes,
                       .msg_controllen = sizeof room.bytes};
    ssize_t got;

    do
        got = hed_socket_recvmsg(socket, &m, flags | MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return got < 0 && errno == EAGAIN ? HED_ETIME : HED_EIO;
    *n = collect_fds(&m, kept, count);
    if (*n >= least && *n <= count && got == (ssize_t)size &&
        !(m.msg_flags & (MSG_CTRUNC | MSG_TRUNC))) {
        memcpy(fds, kept, (size_t)*n * sizeof *fds);
        return 0;
    }
    for (int i = 0; i < *n && i < count; i++)
        close(kept[i]);
    return HED_EFORMAT;
}

/* The same, of what is there now, with exactly `count`. */
static int
take_fds(int socket, int *fds, int count, void *p, size_t size)
{
    int n;

    return take_some_fds(socket, fds, count, count, &n, p, size, MSG_DONTWAIT);
}

int
hed_conn_take_fds(struct hed_conn *c, int *fds, int count, int timeout_ms)
{
    const uint64_t end = hed_socket_end(timeout_ms);
    char mark = 0;
    int err;

    if (!c->link->local)
        return HED_ENOTSUP;
    if (count < 1 || count > HED_CONN_FDS)
        return HED_EINVAL;
    while ((err = take_fds(c->fd, fds, count, &mark, 1)) == HED_ETIME) {
        err = hed_socket_wait(c->fd, POLLIN, end, c->link);
        if (err)
            break;
    }
    if (err || mark == FDS_MARK)
        return err;
    for (int i = 0; i < count; i++)
        close(fds[i]);
    return HED_EFORMAT;
}

int
hed_fd_take(int socket, int *fds, int count, void *p, size_t n)
{
    return count < 1 || count > HED_CONN_FDS || n == 0 ? HED_EINVAL
                                                       : take_fds(socket, fds, count, p, n);
}

int
hed_fd_take_maybe(int socket, int *fd, void *p, size_t n, bool wait)
{
    int count = 0;
    const int err = take_some_fds(socket, fd, 0, 1, &count, p, n, wait ? 0 : MSG_DONTWAIT);

    if (err || count == 0)
        *fd = -1;
    return err;
}

/* ---- the connection itself ------------------------------------------------------------------- */

/* If a TCP socket is closed while something is unread, the peer is told at once and throws away
 * what we sent last, such as the reason why it was refused. So what has arrived is read first. */
static void
drain_socket(int fd)
{
    char rest[4096];
    size_t n = 0;
    ssize_t got;

    (void)shutdown(fd, SHUT_WR);
    do {
        got = recv(fd, rest, sizeof rest, MSG_DONTWAIT);
        n += got > 0 ? (size_t)got : 0;
    } while ((got > 0 && n < LAST_WORDS) || (got < 0 && errno == EINTR));
}

void
hed_conn_close(struct hed_conn *c)
{
    if (!c)
        return;
    if (c->tls)
        hed_tls_close(c->tls, true);
    if (!c->link->local)
        drain_socket(c->fd);
    close(c->fd);
    free(c);
}

int
hed_conn_suspend(struct hed_conn *c, struct hed_conn_state *out)
{
    const int err = c->tls ? hed_tls_suspend(c->tls, out) : 0;

    if (err)
        return err;
    if (c->tls)
        hed_tls_close(c->tls, true); /* it says nothing any more */
    else
        *out = (struct hed_conn_state){.cipher = 0};
    close(c->fd);
    free(c);
    return 0;
}

void
hed_conn_forget(struct hed_conn *c)
{
    if (!c)
        return;
    if (c->tls)
        hed_tls_close(c->tls, false);
    close(c->fd);
    free(c);
}

void
hed_conn_set_window(struct hed_conn *c, const struct hed_window *window)
{
    c->window = window;
}

int
hed_conn_fd(const struct hed_conn *c)
{
    return c->fd;
}

bool
hed_conn_secure(const struct hed_conn *c)
{
    return c->tls != NULL;
}

const struct hed_conn_who *
hed_conn_who(const struct hed_conn *c)
{
    static const struct hed_conn_who nobody;

    return c->tls ? hed_tls_who(c->tls) : &nobody;
}

void
hed_conn_show_name(char *name)
{
    for (char *p = name; *p; p++)
        if ((unsigned char)*p < ' ' || (unsigned char)*p >= 0x7f)
            *p = '?';
}

int
hed_conn_peer(const struct hed_conn *c, uid_t *uid, gid_t *gid, pid_t *pid)
{
    return c->link->local ? hed_fd_peer(c->fd, uid, gid, pid) : HED_ENOTSUP;
}

int
hed_fd_peer(int socket, uid_t *uid, gid_t *gid, pid_t *pid)
{
    struct ucred who;
    socklen_t size = sizeof who;

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
        return hed_err_from_errno(errno);
    *uid = who.uid;
    *gid = who.gid;
    *pid = who.pid;
    return 0;
}

bool
hed_conn_gone(struct hed_conn *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
    int n;

    do
        n = poll(&p, 1, 0);
    while (n < 0 && errno == EINTR);
    if (n > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL))
        return true;
    return hed_link_silent(c->link, c->fd);
}
