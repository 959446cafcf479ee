/* Sockets as connections use them. See socket.h.
 *
 * A TCP peer whose machine is gone says nothing. While nothing is under way to it, the kernel's
 * keep-alive finds out. While something is, keep-alive rests and the kernel would try for a quarter
 * of an hour; TCP_USER_TIMEOUT would end that, but it also ends connections to a peer that is well
 * and only reads nothing for a while, as a worker does whose stream is busy. So whoever waits here
 * looks, once a second, at what the kernel knows of the peer.
 */
#include "wire/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/number.h"
#include "wire/conn.h"

#define NS_PER_MS UINT64_C(1000000)

/* Keep-alive: IDLE + PROBES * INTERVAL is HED_CONN_LOST_MS. */
#define IDLE_S 4
#define INTERVAL_S 2
#define PROBES 3

/* Retries without any answer, on top of the time, that make a peer silent. */
#define RETRIES 3

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

bool
hed_socket_silent(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof info;

    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return false;
    /* Retries that were answered count from 0 again: a peer with no room is not silent. */
    return info.tcpi_last_ack_recv >= HED_CONN_LOST_MS &&
           ((info.tcpi_unacked > 0 && info.tcpi_retransmits >= RETRIES) ||
            info.tcpi_probes >= RETRIES);
}

int
hed_socket_wait(int fd, short events, uint64_t end, bool tcp)
{
    for (;;) {
        const uint64_t now = hed_now_ns();
        /* Rounded up: to wake a moment early would be to wake twice. */
        const uint64_t left = end > now ? hed_divide_up(end - now, NS_PER_MS) : 0;
        const int slice = left > HED_SOCKET_LOOK_MS ? HED_SOCKET_LOOK_MS : (int)left;
        struct pollfd p = {.fd = fd, .events = events};
        const int n = poll(&p, 1, slice);

        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return hed_err_from_errno(errno);
        if (tcp && n == 0 && hed_socket_silent(fd))
            return HED_EIO;
        if (hed_now_ns() >= end)
            return HED_ETIME;
    }
}

static int
set_int(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) == 0 ? 0 : -1;
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

int
hed_socket_tune(int fd)
{
    if (set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1) || set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1) ||
        set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S) ||
        set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, INTERVAL_S) ||
        set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES))
        return hed_err_from_errno(errno);
    return hed_socket_looks(fd);
}
