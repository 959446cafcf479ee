/* Namespaces of its own: a network without interfaces, System V IPC, the host's name. A server that
 * is not root needs a user namespace for that, in which the worker keeps its number.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/server/sandbox/steps.h"

static int
write_map(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    const int error = errno;

    if (fd >= 0)
        (void)close(fd);
    return n == (ssize_t)strlen(text) ? 0 : -error;
}

static int
map_user(uid_t uid, gid_t gid)
{
    char text[64];
    int err = write_map("/proc/self/setgroups", "deny");

    (void)snprintf(text, sizeof text, "%u %u 1", uid, uid);
    if (!err)
        err = write_map("/proc/self/uid_map", text);
    (void)snprintf(text, sizeof text, "%u %u 1", gid, gid);
    return err ? err : write_map("/proc/self/gid_map", text);
}

int
hed_step_namespaces(const struct hed_sandbox *s, struct hed_why *why)
{
    const bool root = geteuid() == 0;
    const uid_t uid = geteuid();
    const gid_t gid = getegid();

    if (unshare((root ? 0 : CLONE_NEWUSER) | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0)
        return -errno;
    return root ? 0 : map_user(uid, gid);
}
