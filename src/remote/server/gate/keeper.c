/* The keeper: has the key, and forks a gate for each connection. See gate.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "remote/server/gate/gate.h"
#include "remote/server/sandbox/sandbox.h"

#define TOKEN_LEAST 16 /* characters */

int
hed_token_read(const char *path, char out[HED_TOKEN_MAX], struct hed_why *why)
{
    char text[HED_TOKEN_MAX + 1];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd >= 0 && fstat(fd, &st) == 0 ? read(fd, text, sizeof text - 1) : -1;

    if (n < 0)
        hed_why_set(why, "%.300s: %m", path);
    if (fd >= 0)
        (void)close(fd);
    if (n < 0)
        return HED_EIO;
    text[n] = '\0';

    const size_t length = strcspn(text, "\r\n");
    const bool complete = text[length] != '\0' || (size_t)n < sizeof text - 1;

    text[length] = '\0';
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        hed_why_set(why, "%.300s: other users may read it; set its mode to 0600", path);
    else if (length < TOKEN_LEAST || !complete || !hed_str_copy(out, HED_TOKEN_MAX, text))
        hed_why_set(why, "%.300s: its first line must have %d to %d characters", path, TOKEN_LEAST,
                    HED_TOKEN_MAX - 1);
    else
        return 0;
    return HED_EINVAL;
}

/* Whoever takes over a gate must not write to the server's log. */
static int
leave_log(struct hed_why *why)
{
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    const bool done = fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0;

    if (!done)
        hed_why_set(why, "/dev/null: %m");
    if (fd >= 0)
        (void)close(fd);
    return done ? 0 : HED_EIO;
}

static int
prepare_keeper(struct hed_keeper *k, struct hed_why *why)
{
    const struct hed_gate_plan *plan = k->plan;
    int err = hed_tls_prepare(plan->tls, why);

    if (!err && plan->token_file[0])
        err = hed_token_read(plan->token_file, k->token, why);
    if (!err && plan->deny_file[0])
        err = hed_deny_read(plan->deny_file, &k->denied, why);
    if (!err)
        err = leave_log(why);
    if (!err && plan->sandbox->steps)
        err = hed_sandbox_enter(plan->sandbox, why);
    return err;
}

/* Takes both descriptors. */
static void
start_gate(const struct hed_keeper *k, int socket, const struct hed_gate_ask *ask, const int fds[2])
{
    const pid_t keeper = getpid();
    /* If the listener has closed the answer socket, it does not want to know any more. */
    const pid_t pid = hed_fd_hung_up(fds[1]) ? -1 : fork();

    if (pid == 0) {
        (void)close(socket);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == keeper)
            hed_gate_run(k, ask->kind, fds[0], fds[1]);
        _exit(0);
    }
    /* If there can be no process for it, the listener finds its answer socket closed. */
    (void)close(fds[0]);
    (void)close(fds[1]);
}

int
hed_keeper_run(int socket, const struct hed_gate_plan *plan)
{
    static struct hed_keeper k; /* as long as the process */
    const struct sigaction reap = {.sa_handler = SIG_IGN};
    struct pollfd wait_for = {.fd = socket, .events = POLLIN};
    struct hed_why why = {""};
    int err = 0;

    k.plan = plan;
    (void)sigaction(SIGCHLD, &reap, NULL);
    if (prepare_keeper(&k, &why) != 0 && !why.text[0])
        hed_why_set(&why, "the process for TLS handshakes does not start");
    if (send(socket, &why, sizeof why, MSG_NOSIGNAL) != (ssize_t)sizeof why || why.text[0])
        return 1;
    while (err != HED_EIO) {
        struct hed_gate_ask ask;
        int fds[2];

        if (poll(&wait_for, 1, -1) < 0)
            continue;
        err = hed_fd_take(socket, fds, 2, &ask, sizeof ask);
        if (!err)
            start_gate(&k, socket, &ask, fds);
    }
    /* Another keeper serves now, or the server ends. Those that are at a gate may finish. */
    while (wait(NULL) >= 0 || errno == EINTR)
        ;
    return 0;
}
