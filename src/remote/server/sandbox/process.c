/* What a process has around it: variables, terminal, folder, keys, other processes. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/server/sandbox/steps.h"

/* Variables that libraries in a worker look at; the settings have been read already. */
static bool
is_needed_variable(const char *text)
{
    static const char *const prefixes[] = {
        "LANG=", "LC_",          "TZ=",           "CUDA_",         "NVIDIA_",
        "PATH=", "ASAN_OPTIONS", "TSAN_OPTIONS=", "UBSAN_OPTIONS", "LLVM_PROFILE_FILE=",
    };

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* The texts themselves are overwritten, because a server's variables may be secrets. */
int
hed_step_environment(const struct hed_sandbox *s, struct hed_why *why)
{
    char **kept = environ;

    for (char **at = environ; at && *at; at++) {
        if (is_needed_variable(*at))
            *kept++ = *at;
        else
            explicit_bzero(*at, strlen(*at));
    }
    if (kept)
        *kept = NULL;
    return s->variable && putenv(s->variable) != 0 ? -errno : 0;
}

/* The server's standard input may be a terminal, or a file with secrets. */
static int
close_standard_input(void)
{
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int err = fd < 0 || dup2(fd, STDIN_FILENO) < 0 ? -errno : 0;

    if (fd > STDIN_FILENO)
        (void)close(fd);
    return err;
}

/* What a worker makes is for the group of workers at most. */
int
hed_step_session(const struct hed_sandbox *s, struct hed_why *why)
{
    const int err = close_standard_input();

    if (err)
        return err;
    (void)umask(S_IRWXO);
    /* EPERM: it leads a session already, so it has no terminal that is not its own. */
    if (setsid() < 0 && errno != EPERM)
        return -errno;
    return chdir("/") == 0 ? 0 : -errno;
}

static void
end_worker(int signal)
{
    _exit(128 + signal);
}

/* hed_sandbox_fork() has made the namespace. The kernel ignores signals to the first process of a
 * namespace unless it handles them. */
int
hed_step_processes(const struct hed_sandbox *s, struct hed_why *why)
{
    const struct sigaction end = {.sa_handler = end_worker};

    if (getpid() != 1)
        return -ESRCH;
    return sigaction(SIGTERM, &end, NULL) == 0 ? 0 : -errno;
}

int
hed_step_keyring(const struct hed_sandbox *s, struct hed_why *why)
{
    return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0 ? 0 : -errno;
}
