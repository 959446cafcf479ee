/* The system calls of the keeper and of gates (remote/server/gate): a socket that is there already,
 * memory, time, and another process of the same kind. All files have been read. What is not listed
 * does not exist (ENOSYS).
 */
#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>

#include "remote/server/sandbox/rows.h"

/* As the C library forks: no namespaces, no threads. */
static const uint32_t fork_flags[] = {CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | SIGCHLD};
static const uint32_t socket_options[] = SOCKET_OPTIONS;
static const uint32_t fcntl_commands[] = {F_GETFD, F_SETFD, F_GETFL, F_SETFL};
static const uint32_t ioctl_requests[] = {FIONREAD, SIOCOUTQ};

static const struct hed_filter_row gate_calls[] = {
    ALWAYS(recvmsg),
    ALWAYS(sendmsg),
    ALWAYS(recvfrom),
    ALWAYS(sendto),
    ALWAYS(ppoll),
    ALWAYS(read),
    ALWAYS(write),
    ALWAYS(close),
    ALWAYS(dup),
    ALWAYS(shutdown),
    ALWAYS(getsockopt),
    AMONG(setsockopt, 2, socket_options, EPERM),
    AMONG(fcntl, 1, fcntl_commands, EINVAL),
    AMONG(ioctl, 1, ioctl_requests, ENOTTY),

    AMONG(clone, 0, fork_flags, EPERM),
    ALWAYS(wait4),
};

int
hed_filter_gate(void)
{
    const struct hed_filter_list lists[] = {LIST(gate_calls), hed_filter_helper, {0}};

    return hed_filter_apply(lists);
}
