/* Taking the steps, and finding out which of them work. See sandbox.h. */
#include "remote/server/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/server/sandbox/steps.h"

static const struct step {
    const char *name;
    bool needed;
    int (*take)(const struct hed_sandbox *s, struct hed_why *why);
} steps[HED_STEP_COUNT] = {
#define ROW(token, name, needed) [HED_STEP_##token] = {#name, needed, hed_step_##name},
    HED_SANDBOX_STEPS(ROW)
#undef ROW
};

static uint32_t
step_bit(int step)
{
    return UINT32_C(1) << step;
}

uint32_t
hed_sandbox_wanted(void)
{
    const uint32_t all = step_bit(HED_STEP_COUNT) - 1;

    /* Only root can choose another user, or make a PID namespace without a user namespace. */
    return geteuid() == 0 ? all : all & ~step_bit(HED_STEP_USER) & ~step_bit(HED_STEP_PROCESSES);
}

uint32_t
hed_sandbox_needed(void)
{
    uint32_t needed = 0;

    for (int i = 0; i < HED_STEP_COUNT; i++)
        needed |= steps[i].needed ? step_bit(i) : 0;
    return needed & hed_sandbox_wanted();
}

const char *
hed_sandbox_step_name(enum hed_sandbox_step step)
{
    return steps[step].name;
}

/* Takes the steps up to the first that fails; *failed is its number. */
static int
take_steps(const struct hed_sandbox *s, int *failed, struct hed_why *why)
{
    for (int i = 0; i < HED_STEP_COUNT; i++) {
        int err = i == HED_STEP_CALLS && s->before_calls ? s->before_calls(s, why) : 0;

        if (!err)
            err = s->steps & step_bit(i) ? steps[i].take(s, why) : 0;

        if (!err)
            continue;
        *failed = i;
        if (!why->text[0])
            hed_why_set(why, "%s", strerror(-err));
        return HED_EACCESS;
    }
    return 0;
}

/* Each thread is a folder here. Without /proc, threads cannot be counted. */
static bool
has_other_threads(void)
{
    struct stat st;

    return stat("/proc/self/task", &st) == 0 && st.st_nlink > 3;
}

int
hed_sandbox_enter(const struct hed_sandbox *s, struct hed_why *why)
{
    struct hed_why reason = {""};
    int failed = 0;

    /* Landlock would not hold for them. */
    if (has_other_threads()) {
        hed_why_set(why, "the sandbox: the process has several threads already");
        return HED_ESTATE;
    }

    const int err = take_steps(s, &failed, &reason);

    if (err)
        hed_why_set(why, "the sandbox (%s): %s", steps[failed].name, reason.text);
    return err;
}

/* ---- the fork -------------------------------------------------------------------------------- */

pid_t
hed_sandbox_fork(const struct hed_sandbox *s)
{
    if (!(s->steps & step_bit(HED_STEP_PROCESSES)))
        return fork();

    /* A PID namespace is chosen for children, so the listener chooses a new one, forks, and goes
     * back. Cloning into one would bypass the C library, which has to know of a fork. */
    const int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);

    if (own < 0)
        return -1;

    pid_t pid = unshare(CLONE_NEWPID) == 0 ? fork() : -1;

    if (pid == 0)
        return 0;

    int error = errno;

    /* Without the way back, all later workers would be in the namespace of this one. */
    if (setns(own, CLONE_NEWPID) != 0 && pid > 0) {
        error = errno;
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        pid = -1;
    }
    (void)close(own);
    errno = error;
    return pid;
}

/* ---- the probe ------------------------------------------------------------------------------- */

struct finding { /* what a probing process says */
    int failed;  /* the step; -1: none */
    struct hed_why why;
};

static _Noreturn void
probe_in_child(const struct hed_sandbox *s, int to)
{
    struct finding f = {.failed = -1};

    (void)take_steps(s, &f.failed, &f.why);
    _exit(write(to, &f, sizeof f) == (ssize_t)sizeof f ? 0 : 1);
}

static int
probe_once(const struct hed_sandbox *s, struct finding *f)
{
    int ends[2];
    ssize_t n = -1;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return HED_EIO;

    const pid_t pid = hed_sandbox_fork(s);

    if (pid == 0)
        probe_in_child(s, ends[1]);
    *f = (struct finding){.failed = HED_STEP_PROCESSES};
    if (pid < 0)
        hed_why_set(&f->why, "%s", strerror(errno));
    (void)close(ends[1]);
    if (pid > 0) {
        do
            n = read(ends[0], f, sizeof *f);
        while (n < 0 && errno == EINTR);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    (void)close(ends[0]);
    if (pid < 0)
        return s->steps & step_bit(HED_STEP_PROCESSES) ? 0 : HED_ENOMEM;
    /* If it died without a word, then it was the filter of system calls that killed it. */
    if (n != (ssize_t)sizeof *f) {
        *f = (struct finding){.failed = HED_STEP_CALLS};
        hed_why_set(&f->why, "a process that applies it is killed");
    }
    return 0;
}

int
hed_sandbox_probe(struct hed_sandbox *s, struct hed_why *missing)
{
    struct finding f;

    /* One step less each time, until all that are left work together. */
    do {
        const int err = probe_once(s, &f);

        if (err)
            return err;
        if (f.failed >= 0 && f.failed < HED_STEP_COUNT) {
            if (!(s->steps & step_bit(f.failed)))
                return HED_ESTATE;
            missing[f.failed] = f.why;
            s->steps &= ~step_bit(f.failed);
        }
    } while (f.failed >= 0);
    return 0;
}
