/* Sockets as connections use them. See socket.h. */
#include "remote/wire/socket.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/number.h"
#include "remote/wire/link/link.h"

#define NS_PER_MS UINT64_C(1000000)

static const struct hed_conn_kernel real = {recvmsg, sendmsg};
static const struct hed_conn_kernel *_Atomic kernel = &real;

void
hed_conn_kernel(const struct hed_conn_kernel *k)
{
    /* Pairs with the acquires below: the table is filled in before it is used. */
    atomic_store_explicit(&kernel, k ? k : &real, memory_order_release);
}

ssize_t
hed_socket_recvmsg(int fd, struct msghdr *m, int flags)
{
    /* Pairs with the release in hed_conn_kernel(). */
    return atomic_load_explicit(&kernel, memory_order_acquire)->recvmsg(fd, m, flags);
}

ssize_t
hed_socket_recv(int fd, void *p, size_t n, int flags)
{
    struct iovec part = {.iov_base = p, .iov_len = n};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

    return hed_socket_recvmsg(fd, &m, flags);
}

ssize_t
hed_socket_sendmsg(int fd, const struct msghdr *m, int flags)
{
    /* Pairs with the release in hed_conn_kernel(). */
    return atomic_load_explicit(&kernel, memory_order_acquire)
        ->sendmsg(fd, m, flags | MSG_NOSIGNAL);
}

uint64_t
hed_socket_end(int timeout_ms)
{
    return timeout_ms < 0 ? UINT64_MAX : hed_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
}

int
hed_socket_wait(int fd, short events, uint64_t end, const struct hed_link *link)
{
    for (;;) {
        const uint64_t now = hed_now_ns();
        /* Rounded up: waking a moment too early would mean waking twice. */
        const uint64_t left = end > now ? hed_divide_up(end - now, NS_PER_MS) : 0;
        const int slice = left > HED_SOCKET_LOOK_MS ? HED_SOCKET_LOOK_MS : (int)left;
        struct pollfd p = {.fd = fd, .events = events};
        const int n = poll(&p, 1, slice);

        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return hed_err_from_errno(errno);
        if (n == 0 && link && hed_link_silent(link, fd))
            return HED_EIO;
        if (hed_now_ns() >= end)
            return HED_ETIME;
    }
}

int
hed_socket_connect(int fd, const struct sockaddr *at, socklen_t size, uint64_t end)
{
    int e = connect(fd, at, size) == 0 ? 0 : errno;
    socklen_t room = sizeof e;

    if (e != EINPROGRESS && e != EINTR)
        return e;
    if (hed_socket_wait(fd, POLLOUT, end, NULL) != 0)
        return ETIMEDOUT;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &room) == 0 ? e : errno;
}

int
hed_socket_looks(int fd)
{
    const struct timeval look = {.tv_sec = HED_SOCKET_LOOK_MS / 1000};

    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &look, sizeof look) != 0)
        return hed_err_from_errno(errno);
    return 0;
}

const char *
hed_socket_is_heddled_there(int error)
{
    return error == ENOENT || error == ECONNREFUSED
               ? " (is heddled running there? `heddle serve` starts it)"
               : "";
}
