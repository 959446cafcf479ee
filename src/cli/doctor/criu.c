/* The doctor checks whether programs can be saved: is CRIU there, may this user use it, and does it
 * work on this kernel? Whether it works shows when it is tried: a small process is saved, ended and
 * restored.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/child.h"
#include "cli/doctor/doctor.h"
#include "move/move.h"

#define NAME "snapshots"
#define TRY_SECONDS 20

/* Shared with the child that tries. */
struct criu_trial {
    struct hed_criu criu;
    bool works;
    struct hed_why why;
};

/* The process that is saved: a session of its own, with no file open but the null device. */
__attribute__((noreturn)) static void
be_saved(int ready)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* restored with it */
    (void)setsid();
    for (int i = 0; i < 3; i++)
        (void)dup2(STDIN_FILENO, i);
    (void)!write(ready, "", 1);
    (void)close_range(3, ~0u, 0);
    for (;;)
        (void)pause();
}

static pid_t
start_to_be_saved(void)
{
    int fds[2];
    char byte;

    if (pipe(fds) != 0)
        return -1;

    const pid_t pid = fork();

    if (pid == 0)
        be_saved(fds[1]);
    close(fds[1]);
    if (pid > 0 && read(fds[0], &byte, 1) != 1)
        byte = 0; /* it will not be saved, and criu says why */
    close(fds[0]);
    return pid;
}

static void
end_process(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static int
save_and_restore(struct criu_trial *t, pid_t pid, const char *folder)
{
    struct hed_criu_process p;
    pid_t restored = -1;
    int err = hed_criu_describe(pid, &p, &t->why);

    if (err == 0)
        err = hed_criu_dump(&t->criu, &p, folder, HED_CRIU_STOP, &t->why);
    end_process(pid);
    if (err == 0)
        err = hed_criu_restore(&t->criu, &p, folder, &restored, &t->why);
    if (err == 0)
        end_process(restored);
    return err;
}

static void
try_criu(void *arg)
{
    struct criu_trial *t = arg;
    struct hed_criu_folder folder;
    const pid_t pid = start_to_be_saved();

    if (pid < 0) {
        hed_why_set(&t->why, "no process can be started");
        return;
    }
    if (hed_criu_folder_make("/tmp", &folder, &t->why) != 0) {
        end_process(pid);
        return;
    }
    t->works = save_and_restore(t, pid, folder.path) == 0;
    hed_criu_folder_remove(&folder);
}

static void
report_criu(struct hed_doctor *d, const struct criu_trial *t, enum hed_child_end end)
{
    const int v = t->criu.version;

    if (end == HED_CHILD_DONE && t->works) {
        hed_doctor_say(d, HED_FINDING_OK, NAME,
                       "criu %d.%d.%d saves and restores processes here%s (heddle snap, heddle run "
                       "--ckpt)",
                       v / 10000, v / 100 % 100, v % 100,
                       t->criu.preload[0] ? ", with the help of libheddle-criu.so" : "");
        return;
    }
    hed_doctor_say(d, HED_FINDING_WARN, NAME, "criu %d.%d.%d does not work here: %s", v / 10000,
                   v / 100 % 100, v % 100,
                   end == HED_CHILD_TIMEOUT ? "it did not end in 20 s"
                   : t->why.text[0]         ? t->why.text
                                            : "it crashed");
    hed_doctor_hint(
        d, "A container needs docker run --privileged for it; on a new kernel, criu 4.1 may "
           "help. `heddle snap out` and `heddle migrate` work without criu.");
}

void
hed_doctor_criu(struct hed_doctor *d)
{
    struct criu_trial *t = hed_child_shared(sizeof *t);
    int err;

    if (!t)
        return;
    err = hed_criu_find(&t->criu, &t->why);
    if (err == HED_ENOTFOUND) {
        /* Few need it. */
        hed_doctor_say(d, HED_FINDING_OK, NAME, "programs cannot be saved: criu is not installed");
        hed_doctor_hint(d,
                        "For heddle snap save and heddle run --ckpt every=...: apt install criu");
    } else if (err == HED_EACCESS) {
        hed_doctor_say(d, HED_FINDING_OK, NAME, "only root can save programs: %s", t->why.text);
        hed_doctor_hint(d, "Run `heddle doctor` as root to find out whether criu works here.");
    } else if (err != 0) {
        hed_doctor_say(d, HED_FINDING_WARN, NAME, "programs cannot be saved: %s", t->why.text);
        hed_doctor_hint(d,
                        "Install criu 3.17 or later; on x86-64 with Linux from 6.13 on, best 4.1.");
    } else {
        report_criu(d, t, hed_child_run(try_criu, t, TRY_SECONDS, NULL));
    }
    hed_child_shared_free(t, sizeof *t);
}
