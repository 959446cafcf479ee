/* The process that compiles a worker's kernels. It is a fork of the worker, made when the worker
 * has given up everything but the right to fork; so it has no more rights, and it holds nothing of
 * the client but its ends of the seats.
 */
#include "kernel/foreman/foreman.h"

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
#define SEATS HED_FOREMAN_SEATS

/* Closes all descriptors but the standard ones and the seats. */
static int
keep_seats(int *seats)
{
    int first = INT_MAX;

    /* They move together, so that one range is left on each side. */
    for (int i = 0; i < SEATS; i++) {
        const int want = 3 + i;

        for (int k = i + 1; k < SEATS; k++)
            if (seats[k] == want && (seats[k] = dup(want)) < 0)
                return -errno;
        if (seats[i] != want && dup2(seats[i], want) < 0)
            return -errno;
        seats[i] = want;
        first = want;
    }
    return syscall(SYS_close_range, first + 1, ~0u, 0) == 0 ? 0 : -errno;
}

static _Noreturn void
be_foreman(const char *library, int *seats, pid_t worker, int (*foreman)(void),
           int (*compiler)(void))
{
    const struct hed_foreman how = {
        .seats = seats, .count = SEATS, .library = library, .confine = compiler};

    (void)prctl(PR_SET_NAME, "heddled-foreman");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != worker || keep_seats(seats) != 0 ||
        (foreman && foreman() != 0))
        _exit(1);
    hed_foreman_run(&how);
}

int
hed_worker_fork_foreman(const char *folder, int (*foreman)(void), int (*compiler)(void),
                        struct hed_why *why)
{
    static char library[PATH_MAX];
    int ours[SEATS], theirs[SEATS], pair[2];
    const pid_t worker = getpid();
    const int n = snprintf(library, sizeof library, "%s/compiler-llvm.so", folder);
    pid_t pid;

    if (n < 0 || (size_t)n >= sizeof library)
        return -ENAMETOOLONG;
    for (int i = 0; i < SEATS; i++) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
            return -errno; /* the worker ends */
        ours[i] = pair[0];
        theirs[i] = pair[1];
    }
    pid = fork();
    if (pid == 0)
        be_foreman(library, theirs, worker, foreman, compiler);
    if (pid < 0) {
        hed_why_set(why, "no process that compiles kernels: %s", strerror(errno));
        return -errno;
    }
    for (int i = 0; i < SEATS; i++)
        (void)close(theirs[i]);
    hed_session_give_compilers(ours, SEATS);
    return 0;
}
