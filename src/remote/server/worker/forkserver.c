/* The process that compiles a worker's kernels. It is a fork of the worker, made when the worker
 * has given up everything but the right to fork; so it has no more rights, and it holds nothing of
 * the client but its ends of the sockets.
 */
#include "kernel/forkserver.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "core/session.h"
#include "remote/server/start.h"

/* A worker compiles one kernel for each of the backend's threads that compile, and a huge one. */
#define SOCKETS HED_FORKSERVER_SOCKETS

/* Closes all descriptors but the standard ones and the sockets. */
static int
keep_sockets(int *sockets)
{
    int first = INT_MAX;

    /* They move together, so that one range is left on each side. */
    for (int i = 0; i < SOCKETS; i++) {
        const int want = 3 + i;

        for (int k = i + 1; k < SOCKETS; k++)
            if (sockets[k] == want && (sockets[k] = dup(want)) < 0)
                return -errno;
        if (sockets[i] != want && dup2(sockets[i], want) < 0)
            return -errno;
        sockets[i] = want;
        first = want;
    }
    return syscall(SYS_close_range, first + 1, ~0u, 0) == 0 ? 0 : -errno;
}

static _Noreturn void
be_forkserver(const char *library, int *sockets, pid_t worker, int (*forkserver)(void),
              int (*compiler)(void))
{
    const struct hed_forkserver how = {
        .sockets = sockets, .count = SOCKETS, .library = library, .confine = compiler};

    (void)prctl(PR_SET_NAME, "heddled-forksrv");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != worker ||
        keep_sockets(sockets) != 0 || (forkserver && forkserver() != 0))
        _exit(1);
    hed_forkserver_run(&how);
}

int
hed_worker_forkserver(const char *folder, int (*forkserver)(void), int (*compiler)(void),
                      struct hed_why *why)
{
    static char library[PATH_MAX];
    int ours[SOCKETS], theirs[SOCKETS], pair[2];
    const pid_t worker = getpid();
    const int n = snprintf(library, sizeof library, "%s/compiler-llvm.so", folder);
    pid_t pid;

    if (n < 0 || (size_t)n >= sizeof library)
        return -ENAMETOOLONG;
    for (int i = 0; i < SOCKETS; i++) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
            return -errno; /* the worker ends */
        ours[i] = pair[0];
        theirs[i] = pair[1];
    }
    pid = fork();
    if (pid == 0)
        be_forkserver(library, theirs, worker, forkserver, compiler);
    if (pid < 0) {
        hed_why_set(why, "cannot start a process that compiles kernels: %s", strerror(errno));
        return -errno;
    }
    for (int i = 0; i < SOCKETS; i++)
        (void)close(theirs[i]);
    hed_session_give_compilers(ours, SOCKETS);
    return 0;
}
