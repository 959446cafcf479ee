/* A server for one program. See private.h. */
#include "move/command/private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "locate/install.h"

#define FOLDER "/tmp/heddle-run-"
#define START_NS (60 * HED_NS_PER_S) /* a driver may take long to start */
#define STOP_NS (10 * HED_NS_PER_S)

static bool
private_listens(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s", path);

    const bool listens = fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0;

    if (fd >= 0)
        close(fd);
    return listens;
}

/* In the child. The user's own program is the only client: it needs no protection from itself. */
__attribute__((noreturn)) static void
become_private(const char *program, const char *address, const char *gpu, pid_t parent)
{
    char listen[PATH_MAX + 32];
    char where[256];
    char *words[] = {(char[]){"heddled"},
                     listen,
                     where,
                     (char[]){"--images=none"},
                     (char[]){"--sandbox=off"},
                     (char[]){"--confine=no"},
                     (char[]){"--total-memory=0"},
                     (char[]){"--log=error"},
                     (char[]){"--grace=0"},
                     NULL};
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t none;

    (void)snprintf(listen, sizeof listen, "--listen=%s", address);
    (void)snprintf(where, sizeof where, "--gpu=%.200s", gpu);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    /* A key on the terminal is meant for the program. */
    (void)setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    /* With the same layout, a driver gives variables the addresses that they had in the worker of
     * another such server, so that programs can come from there. */
    (void)personality(ADDR_NO_RANDOMIZE);
    execve(program, words, environ);
    _exit(127);
}

static int
wait_for_private(struct hed_private_server *s, struct hed_why *why)
{
    const uint64_t end = hed_now_ns() + START_NS;
    const char *path = strchr(s->address, ':') + 1;
    int status;

    while (!private_listens(path)) {
        if (waitpid(s->pid, &status, WNOHANG) == s->pid) {
            s->pid = 0;
            if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
                hed_why_set(why, "heddled is not there: install heddle-server, or heddle again");
            else
                hed_why_set(why,
                            "the server for the program did not start; its messages are above");
            return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? HED_ENOTFOUND : HED_EIO;
        }
        if (hed_now_ns() > end) {
            hed_why_set(why, "the server for the program does not listen after 60 s");
            return HED_ETIME;
        }
        hed_sleep_ns(HED_NS_PER_MS * 5);
    }
    return 0;
}

int
hed_private_start(const char *gpu, struct hed_private_server *out, struct hed_why *why)
{
    struct hed_install install;
    char program[PATH_MAX + 16];
    int err;

    *out = (struct hed_private_server){.pid = 0};
    err = hed_install_find(&install, why);
    if (err != 0)
        return err;
    (void)snprintf(program, sizeof program, "%s/heddled", install.dir);
    (void)snprintf(out->folder, sizeof out->folder, FOLDER "XXXXXX");
    if (!mkdtemp(out->folder)) {
        hed_why_set(why, "cannot make a folder in /tmp: %s", strerror(errno));
        out->folder[0] = '\0';
        return HED_EIO;
    }
    (void)snprintf(out->address, sizeof out->address, "shm:%s/heddle.sock", out->folder);
    fflush(NULL);

    const pid_t parent = getpid();

    out->pid = fork();
    if (out->pid == 0)
        become_private(program, out->address, gpu, parent);
    if (out->pid < 0) {
        hed_why_set(why, "cannot start a process: %s", strerror(errno));
        out->pid = 0;
        err = HED_EIO;
    } else {
        err = wait_for_private(out, why);
    }
    if (err != 0)
        hed_private_stop(out);
    return err;
}

void
hed_private_stop(struct hed_private_server *s)
{
    const uint64_t end = hed_now_ns() + STOP_NS;
    char path[PATH_MAX + 16];

    if (s->pid > 0) {
        (void)kill(s->pid, SIGTERM);
        while (waitpid(s->pid, NULL, WNOHANG) == 0) {
            if (hed_now_ns() > end)
                (void)kill(s->pid, SIGKILL);
            hed_sleep_ns(HED_NS_PER_MS);
        }
        s->pid = 0;
    }
    if (!s->folder[0])
        return;
    (void)snprintf(path, sizeof path, "%s/heddle.sock", s->folder);
    (void)unlink(path);
    (void)rmdir(s->folder);
    s->folder[0] = '\0';
}

bool
hed_private_is(const char *address)
{
    return strncmp(address, "shm:" FOLDER, strlen("shm:" FOLDER)) == 0;
}
