/* The parent of a program. See supervise.h. */
#include "cli/supervise.h"

#include <errno.h>
#include <limits.h>
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
#include "base/tree.h"
#include "cli/cli.h"
#include "move/move.h"

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
    bool killed; /* by us, to go on from a snapshot */
    bool over;   /* it could not */
    int status;
    int stop; /* a signal for us while there is no program; 0: none */
};

/* Takes the ends of children. Others than the program's and the tick's are processes that were left
 * to us, as to any process 1. */
static void
reap_children(struct watch *w)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == w->s->pid) {
            w->ended = true;
            w->killed = w->killed && WIFSIGNALED(status); /* else it was done before */
            w->status = status;
        } else if (pid == w->ticking) {
            w->ticking = 0;
            if (w->s->recovery && WIFEXITED(status) && WEXITSTATUS(status) == HED_SUPERVISE_STUCK)
                w->s->recovery->ops->stuck(w->s->recovery,
                                           "it was gone after a snapshot was taken");
        } else if (w->s->reaped) {
            w->s->reaped(w->s->arg, pid);
        }
    }
    if (pid < 0 && errno == ECHILD && !w->ended) {
        w->ended = true; /* not a child of ours after all */
        w->status = 0;
    }
}

static void
pass_signal(struct watch *w, const struct signalfd_siginfo *info, bool all)
{
    const int number = (int)info->ssi_signo;

    if (number == SIGCHLD)
        return;
    if (w->ended) {
        if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT)
            w->stop = number;
        return;
    }
    /* The terminal sends its signals to all of the foreground, the program included. */
    if (info->ssi_code != SI_KERNEL || all)
        (void)kill(w->s->pid, number);
    if (number == SIGTSTP)
        (void)raise(SIGSTOP); /* as the shell expects of its job */
}

/* all: also those that the program would have got by itself, if it had been there. */
static void
pass_signals(struct watch *w, int fd, bool all)
{
    struct signalfd_siginfo info;

    while (fd >= 0 && read(fd, &info, sizeof info) == (ssize_t)sizeof info)
        pass_signal(w, &info, all);
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
        /* Without us, nobody shall seem to listen. */
        if (w->s->recovery && w->s->recovery->listener >= 0)
            close(w->s->recovery->listener);
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

    if (!w->s->tick || w->s->every_ns == 0 || (w->s->recovery && w->s->recovery->waiting))
        return -1;
    return now >= w->next ? 0 : (int)hed_min((w->next - now) / HED_NS_PER_MS + 1, 3600000);
}

/* A snapshot of a program that has ended cannot succeed, but one may just be published. The child
 * cleans up behind itself. */
static void
wait_for_tick(struct watch *w)
{
    while (w->ticking != 0 && waitpid(w->ticking, NULL, 0) < 0 && errno == EINTR)
        ;
    w->ticking = 0;
}

/* ---- recovery -------------------------------------------------------------------------------- */

/* Does the program, which has ended, go on from a snapshot? */
static bool
is_to_recover(struct watch *w)
{
    if (!w->s->recovery || w->over || w->stop != 0)
        return false;
    if (!w->killed && !w->s->recovery->ops->ended(w->s->recovery, w->status))
        return false;
    w->killed = true;
    return true;
}

static void
step_recovery(struct watch *w, int signals)
{
    struct hed_recovery *r = w->s->recovery;

    if (w->ended)
        wait_for_tick(w);
    switch (r->ops->step(r, !w->ended)) {
    case HED_RECOVERY_KILL:
        w->killed = true;
        r->memory->quiet = true;
        hed_tree_kill(w->s->pid);
        break;
    case HED_RECOVERY_BACK:
        w->ended = w->killed = false;
        r->memory->quiet = false;
        w->next = hed_now_ns() + w->s->every_ns;
        pass_signals(w, signals, true);
        break;
    case HED_RECOVERY_OVER:
        w->over = true;
        break;
    case HED_RECOVERY_NOT_YET:
        break;
    }
}

static int
watch_timeout(const struct watch *w)
{
    const int tick = tick_timeout(w);
    const int step = w->s->recovery ? w->s->recovery->ops->timeout(w->s->recovery) : -1;

    return tick < 0 ? step : step < 0 ? tick : tick < step ? tick : step;
}

static void
watch_once(struct watch *w, int signals, const sigset_t *mine)
{
    struct hed_recovery *r = w->s->recovery;
    struct pollfd p[] = {{.fd = signals, .events = POLLIN},
                         {.fd = r ? r->listener : -1, .events = POLLIN}};
    const int timeout = watch_timeout(w);

    (void)poll(p, 2, signals < 0 && (timeout < 0 || timeout > 100) ? 100 : timeout);
    pass_signals(w, signals, false);
    if (p[1].revents != 0)
        r->ops->hear(r);
    if (r && w->stop == 0 && r->ops->timeout(r) == 0)
        step_recovery(w, signals);
    if (!w->ended && tick_timeout(w) == 0)
        run_tick(w, mine);
}

int
hed_supervise(const struct hed_supervised *s, int *signal_number)
{
    struct watch w = {.s = s, .next = hed_now_ns() + s->every_ns};
    char saved[PATH_MAX];
    sigset_t mine;

    supervised_signals(&mine);

    const int fd = signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);

    for (reap_children(&w); !w.ended || is_to_recover(&w); reap_children(&w))
        watch_once(&w, fd, &mine);
    if (fd >= 0)
        close(fd);
    wait_for_tick(&w);
    if (w.stop == 0 && !w.over && w.ended && WIFSIGNALED(w.status) &&
        WTERMSIG(w.status) == SIGKILL && s->was_saved &&
        s->was_saved(s->pid, saved, sizeof saved)) {
        hed_cli_say("process %d was saved in %s, and has ended; `heddle snap restore %s` makes it "
                    "go on",
                    (int)s->pid, saved, saved);
        *signal_number = 0; /* it was not killed for a reason of its own */
        return 128 + SIGKILL;
    }
    *signal_number = w.stop ? w.stop : w.over ? 0 : WIFSIGNALED(w.status) ? WTERMSIG(w.status) : 0;
    if (w.over)
        return 1;
    return *signal_number ? 128 + *signal_number : WEXITSTATUS(w.status);
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
