/* Letting a program go on after the command that saves it has died. See guard.h. */
#include "move/command/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "move/command/command.h"
#include "move/command/trust.h"

#define GUARD_MS \
    3600000 /* for each answer: the program may first have to end what it was asked for */

/* Signals that end the command and not its guard. */
static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP};

/* Brings the program back to where it was. */
static int
release_guarded(const struct hed_snap_guarded *g, struct hed_why *why)
{
    struct hed_talk_request q;
    struct hed_talk_answer a;
    int fd = -1;
    int err = hed_talk_open(g->pid, &fd, why);

    if (err != 0)
        return err;
    close(fd);
    /* criu may have stopped it; it answers only when it runs. */
    hed_snap_images_kill(g->images->path, SIGCONT);
    hed_talk_ask(&q, HED_TALK_INFO);
    err = hed_talk_call(g->pid, &q, NULL, 0, GUARD_MS, &a, why);
    if (err == 0 && a.state == HED_TALK_PARKED) {
        hed_talk_ask(&q, HED_TALK_CONTINUE);
        err = hed_talk_call(g->pid, &q, NULL, 0, GUARD_MS, &a, why);
    } else if (err == 0 && a.state == HED_TALK_CAPTURED) {
        hed_talk_ask(&q, HED_TALK_ATTACH);
        err = hed_talk_call(g->pid, &q, g->fds, g->count, GUARD_MS, &a, why);
    }
    return err;
}

/* Waits for a byte. False: the other side is gone. */
static bool
wait_for_byte(int fd)
{
    char byte;
    ssize_t n;

    do
        n = read(fd, &byte, sizeof byte);
    while (n < 0 && errno == EINTR);
    return n == 1;
}

__attribute__((noreturn)) static void
be_guard(struct hed_snap_guarded *g, int command)
{
    struct hed_why why = {""};

    (void)setsid();
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        (void)signal(ignored[i], SIG_IGN);
    (void)snprintf(g->images->path, sizeof g->images->path, "/proc/%d/fd/%d", (int)getpid(),
                   g->images->fd);
    (void)!write(command, "r", 1);
    if (!wait_for_byte(command)) {
        const int err = release_guarded(g, &why);

        if (err == 0)
            g->say("snap: the command that saved process %d has died; the program goes on",
                   (int)g->pid);
        else if (err != HED_ENOTFOUND)
            g->say("snap: the command that saved process %d has died, and the program cannot "
                   "go on: %s",
                   (int)g->pid, why.text);
        hed_criu_folder_remove(g->images);
        hed_snap_store_drop(g->store, g->draft);
    }
    fflush(NULL);
    _exit(0);
}

int
hed_snap_guard_begin(struct hed_snap_guarded *g, struct hed_snap_guard *out, struct hed_why *why)
{
    const int copy = hed_snap_reading_copy(g->draft->fd);
    int fds[2]; /* the guard's end, ours */

    out->fd = -1;
    /* criu keeps our end. */
    if (copy < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0 ||
        fcntl(fds[0], F_SETFD, FD_CLOEXEC) != 0) {
        hed_why_set(why, "cannot guard the program: %s", strerror(errno));
        if (copy >= 0)
            close(copy);
        return HED_EIO;
    }
    fflush(NULL);
    out->pid = fork();
    if (out->pid == 0) {
        /* A writer that is not there: the file is claimed when nobody can write to it. */
        close(g->draft->fd);
        g->draft->fd = copy;
        g->fds[0] = copy;
        close(fds[1]);
        be_guard(g, fds[0]);
    }
    close(copy);
    close(fds[0]);
    /* What ends us does not end it from then on. */
    if (out->pid < 0 || !wait_for_byte(fds[1])) {
        hed_why_set(why, "cannot start a process that guards the program");
        close(fds[1]);
        return HED_EIO;
    }
    out->fd = fds[1];
    return 0;
}

void
hed_snap_guard_end(struct hed_snap_guard *g)
{
    if (g->fd < 0)
        return;
    (void)!send(g->fd, "d", 1, MSG_NOSIGNAL);
    close(g->fd);
    g->fd = -1;
    while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}
