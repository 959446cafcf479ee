/* Child processes with a time limit. See child.h. */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* Not 0: a library that calls exit(0) in the middle must not look like success. */
#define DONE_CODE 42
#define KILL_SECONDS 2 /* for a killed child to go away */

void *
hed_child_shared(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

void
hed_child_shared_free(void *p, size_t size)
{
    if (p)
        munmap(p, size);
}

__attribute__((noreturn)) static void
be_child(void (*fn)(void *arg), void *arg)
{
    const struct rlimit no_core = {0, 0};
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    /* A crash here is an answer, not a bug to keep a core file of. */
    setrlimit(RLIMIT_CORE, &no_core);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    fn(arg);
    _exit(DONE_CODE);
}

/* Waits until the child has ended (true) or the time is over. */
static bool
wait_for_child(pid_t pid, uint64_t end, int *status)
{
    for (;;) {
        const pid_t r = waitpid(pid, status, WNOHANG);

        if (r == pid || (r < 0 && errno != EINTR))
            return r == pid;
        if (hed_now_ns() >= end)
            return false;
        hed_sleep_ns(HED_NS_PER_S / 500);
    }
}

enum hed_child_end
hed_child_run(void (*fn)(void *arg), void *arg, unsigned seconds, int *signal_number)
{
    int status = 0;

    fflush(NULL);

    const pid_t pid = fork();

    if (signal_number)
        *signal_number = 0;
    if (pid < 0)
        return HED_CHILD_NO_START;
    if (pid == 0)
        be_child(fn, arg);
    if (!wait_for_child(pid, hed_now_ns() + seconds * HED_NS_PER_S, &status)) {
        kill(pid, SIGKILL);
        wait_for_child(pid, hed_now_ns() + KILL_SECONDS * HED_NS_PER_S, &status);
        return HED_CHILD_TIMEOUT;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == DONE_CODE)
        return HED_CHILD_DONE;
    if (signal_number && WIFSIGNALED(status))
        *signal_number = WTERMSIG(status);
    return HED_CHILD_CRASHED;
}
