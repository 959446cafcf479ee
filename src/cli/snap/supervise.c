/* The parent of a program. See supervise.h. */
#include "cli/snap/supervise.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"

/* What a program is commonly sent. SIGSTOP and SIGKILL cannot be passed on. */
static const int passed_on[] = {SIGHUP,  SIGINT,   SIGQUIT, SIGTERM, SIGUSR1,
                                SIGUSR2, SIGWINCH, SIGCONT, SIGALRM, SIGTSTP};

#define PASSED_ON (sizeof passed_on / sizeof passed_on[0])

static void
supervised_signals(sigset_t *out)
{
    sigemptyset(out);
    sigaddset(out, SIGCHLD);
    for (size_t i = 0; i < PASSED_ON; i++)
        sigaddset(out, passed_on[i]);
}

void
hed_supervise_prepare(void *old_sigset)
{
    sigset_t mine;

    supervised_signals(&mine);
    sigprocmask(SIG_BLOCK, &mine, old_sigset);
}

struct watch {
    const struct hed_supervised *s;
    pid_t ticking; /* the child that runs tick(); 0: none */
    uint64_t next; /* when it is run again */
    bool ended;
    int status;
};

/* Takes the ends of children. Others than the program's and the tick's are processes that were left
 * to us, as to any process 1. */
static void
reap_children(struct watch *w)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == w->ticking)
            w->ticking = 0;
        if (pid == w->s->pid) {
            w->ended = true;
            w->status = status;
        }
    }
    if (pid < 0 && errno == ECHILD && !w->ended) {
        w->ended = true; /* not a child of ours after all */
        w->status = 0;
    }
}

static void
pass_signal(struct watch *w, const struct signalfd_siginfo *info)
{
    const int number = (int)info->ssi_signo;

    if (number == SIGCHLD)
        return;
    /* The terminal sends its signals to all of the foreground, the program included. */
    if (info->ssi_code != SI_KERNEL)
        (void)kill(w->s->pid, number);
    if (number == SIGTSTP)
        (void)raise(SIGSTOP); /* as the shell expects of its job */
}

static void
run_tick(struct watch *w, const sigset_t *mine)
{
    w->next = hed_now_ns() + w->s->every_ns;
    if (w->ticking != 0)
        return;
    fflush(NULL);

    const pid_t pid = fork();

    if (pid == 0) {
        sigprocmask(SIG_UNBLOCK, mine, NULL);
        _exit(w->s->tick(w->s->arg));
    }
    if (pid > 0)
        w->ticking = pid;
}

static int
tick_timeout(const struct watch *w)
{
    const uint64_t now = hed_now_ns();

    if (!w->s->tick || w->s->every_ns == 0)
        return -1;
    return now >= w->next ? 0 : (int)hed_min((w->next - now) / HED_NS_PER_MS + 1, 3600000);
}

int
hed_supervise(const struct hed_supervised *s, int *signal_number)
{
    struct watch w = {.s = s, .next = hed_now_ns() + s->every_ns};
    sigset_t mine;

    supervised_signals(&mine);

    const int fd = signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
    struct pollfd p = {.fd = fd, .events = POLLIN};

    for (reap_children(&w); !w.ended; reap_children(&w)) {
        struct signalfd_siginfo info;

        (void)poll(&p, 1, fd < 0 ? 100 : tick_timeout(&w));
        while (fd >= 0 && read(fd, &info, sizeof info) == (ssize_t)sizeof info)
            pass_signal(&w, &info);
        if (tick_timeout(&w) == 0)
            run_tick(&w, &mine);
    }
    if (fd >= 0)
        close(fd);
    /* A snapshot of a program that has ended cannot succeed. The child cleans up behind itself. */
    while (w.ticking != 0 && waitpid(w.ticking, NULL, 0) < 0 && errno == EINTR)
        ;
    *signal_number = WIFSIGNALED(w.status) ? WTERMSIG(w.status) : 0;
    return WIFSIGNALED(w.status) ? 128 + WTERMSIG(w.status) : WEXITSTATUS(w.status);
}

void
hed_supervise_die(int signal_number)
{
    const struct rlimit no_core = {0, 0};
    sigset_t one;

    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(signal_number, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, signal_number);
    fflush(NULL);
    (void)raise(signal_number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}
