/* The child that asks programs to measure their GPU time, once a second.
 *
 * It writes into shared memory, under a lock that a stopped process may keep, and a file that is
 * cut short there ends whoever has mapped it. So it is a process of its own; if it ends, another is
 * started. For root it asks as each user in turn, which gives it no right over files that are not
 * that user's.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/meeting.h"
#include "see/live/parts.h"

#define EVERY_MS 1000

static void
watch_own(void)
{
    struct hed_meeting_folders folders;
    struct hed_why ignored;

    if (hed_meeting_open(false, &folders, &ignored) != 0)
        return;
    hed_sched_watch_all(&folders);
    hed_meeting_close(&folders);
}

/* As root: the programs of all others, who have their own folders. */
static void
watch_others(void)
{
    static uid_t users[HED_LIVE_USERS];
    const size_t count = hed_meeting_users(users, HED_LIVE_USERS);

    hed_meeting_choose("");
    for (size_t i = 0; i < count; i++) {
        if (seteuid(users[i]) != 0)
            continue;
        watch_own();
        if (seteuid(0) != 0)
            _exit(1);
    }
}

__attribute__((noreturn)) static void
watch_for_ever(int life)
{
    static const int keys[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU};
    struct pollfd p = {.fd = life, .events = POLLIN};
    bool first = true;
    const bool root = geteuid() == 0;
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    const struct sigaction usual = {.sa_handler = SIG_DFL};

    /* A key that ends the parent is meant for the parent, and this process ends with it. One that
     * stops it must not stop this process, which may have a lock that programs wait for. */
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        (void)sigaction(keys[i], &ignored, NULL);
    (void)sigaction(SIGTERM, &usual, NULL); /* the screen's, if this child is not the first */
    do {
        watch_own();
        if (root)
            watch_others();
        if (first && send(life, "", 1, MSG_NOSIGNAL) != 1)
            break;
        first = false;
    } while (poll(&p, 1, EVERY_MS) == 0);
    _exit(0);
}

int
hed_live_watch_start(struct hed_live_watch *w, struct hed_why *why)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    int ends[2];
    sigset_t none;

    w->child = 0;
    w->life = -1;
    /* Whoever has started us may ignore it, and then nobody could wait for the child. */
    (void)sigaction(SIGCHLD, &usual, NULL);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        hed_why_set(why, "no socket: %s", strerror(errno));
        return hed_err_from_errno(errno);
    }
    w->child = fork();
    if (w->child == 0) {
        close(ends[1]);
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        watch_for_ever(ends[0]);
    }
    close(ends[0]);
    if (w->child < 0) {
        const int e = errno;

        close(ends[1]);
        w->child = 0;
        hed_why_set(why, "no process: %s", strerror(e));
        return hed_err_from_errno(e);
    }
    w->life = ends[1];
    return 0;
}

void
hed_live_watch_wait(const struct hed_live_watch *w, uint64_t ns)
{
    struct pollfd p = {.fd = w->life, .events = POLLIN};
    const uint64_t end = hed_now_ns() + ns;

    if (w->child <= 0)
        return;
    while (hed_now_ns() < end && poll(&p, 1, (int)((end - hed_now_ns()) / HED_NS_PER_MS)) < 0 &&
           errno == EINTR)
        ;
}

void
hed_live_watch_check(struct hed_live_watch *w)
{
    struct hed_why ignored;

    if (w->child <= 0 || waitpid(w->child, NULL, WNOHANG) != w->child)
        return;
    close(w->life);
    (void)hed_live_watch_start(w, &ignored);
}

void
hed_live_watch_stop(struct hed_live_watch *w)
{
    if (w->child <= 0)
        return;
    close(w->life);
    (void)kill(w->child, SIGKILL);
    while (waitpid(w->child, NULL, 0) < 0 && errno == EINTR)
        ;
    w->child = 0;
}
