/* A namespace in which a restored process has its old number, although another process has it here.
 * See live.h. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "move/command/command.h"

/* In process 1 of the namespace: /proc must show its processes. */
static void
enter_new_pids(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) {
        perror("heddle: snap: cannot mount /proc for new numbers of processes");
        _exit(1);
    }
}

int
hed_snap_new_pids(pid_t *child, struct hed_why *why)
{
    fflush(NULL);
    /* As fork(2), and with a namespace. unshare(2) would do so once only. */
    *child = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
    if (*child < 0) {
        hed_why_set(why, "cannot make a namespace for processes: %s%s", strerror(errno),
                    errno == EPERM ? " (root may)" : "");
        return HED_EACCESS;
    }
    if (*child == 0)
        enter_new_pids();
    return 0;
}

/* The number here of the child of process 1 that listens; 0 if there is none. */
static pid_t
find_listener(pid_t init, int fd)
{
    char path[64];
    char text[4096];
    struct ucred c;
    socklen_t size = sizeof c;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &size) != 0)
        return 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)init, (int)init);
    (void)hed_read_small(path, text, sizeof text);
    for (char *at = text; *at;) {
        char *end = at;
        const long pid = strtol(at, &end, 10);

        if (end == at)
            break;
        if (pid == c.pid)
            return c.pid;
        at = end;
    }
    return 0;
}

int
hed_snap_rename_socket(pid_t init, const char *inner, pid_t *out, struct hed_why *why)
{
    char path[HED_TALK_PATH_MAX];
    int fd;
    int err = hed_talk_open_at(inner, &fd, why);

    if (err != 0)
        return err;

    const pid_t pid = find_listener(init, fd);
    const char *slash = strrchr(inner, '/');

    close(fd);
    if (pid == 0 || !slash ||
        (size_t)snprintf(path, sizeof path, "%.*s/snap-%d", (int)(slash - inner), inner,
                         (int)pid) >= sizeof path) {
        hed_why_set(why, "cannot find out the number of the restored program");
        return HED_ENOTFOUND;
    }
    if (rename(inner, path) != 0) {
        hed_why_set(why, "%s: %s", path, strerror(errno));
        err = hed_err_from_errno(errno);
    }
    *out = pid;
    return err;
}
