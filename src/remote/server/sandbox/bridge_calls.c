/* The system calls of a bridge (remote/server/vm): sockets that are there already, pairs of new
 * ones, memory that comes with a descriptor, and time. It opens no file and starts no process. What
 * is not listed does not exist (ENOSYS).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "remote/server/sandbox/rows.h"

static const uint32_t pair_families[] = {AF_UNIX};
static const uint32_t fcntl_commands[] = {F_GETFD, F_SETFD, F_GETFL, F_SETFL};

/* Most frequent first: older kernels go through the list at each call. */
static const struct hed_filter_row bridge_calls[] = {
    ALWAYS(epoll_pwait),   ALWAYS(sendmsg),
    ALWAYS(recvmsg),       ALWAYS(write),
    ALWAYS(epoll_ctl),     ALWAYS(close),
    ALWAYS(recvfrom),      ALWAYS(sendto),
    ALWAYS(read),          ALWAYS(readv),
    ALWAYS(writev),        ALWAYS(ppoll),
    ALWAYS(shutdown),      ALWAYS(setsockopt),
    ALWAYS(getsockopt),    AMONG(socketpair, 0, pair_families, EACCES),
    ALWAYS(epoll_create1), AMONG(fcntl, 1, fcntl_commands, EINVAL),

    ALWAYS(fstat),         ALWAYS(newfstatat),
    ALWAYS(sigaltstack),
#ifdef __x86_64__
    ALWAYS(epoll_wait),
#endif
};

int
hed_filter_bridge(void)
{
    const struct hed_filter_list lists[] = {LIST(bridge_calls), hed_filter_helper, {0}};

    return hed_filter_apply(lists);
}
