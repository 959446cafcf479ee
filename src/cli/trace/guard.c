/* Early ends. See guard.h.
 *
 * A signal handler can run at any point, so it uses only the two names below. Each is set while the
 * file that it names exists. Removing a file that has just been renamed fails, which is harmless.
 */
#include "cli/trace/guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

static const int deadly[] = {SIGINT, SIGTERM, SIGHUP};

static const char *volatile reading;   /* the trace; NULL: none yet */
static const char *volatile unsettled; /* the file to remove; NULL: none */
static sigjmp_buf out;

static void
remove_unsettled(void)
{
    const char *name = unsettled;

    if (name)
        unlink(name);
    unsettled = NULL;
}

/* The signal is blocked here. It is delivered, and ends the process, when the handler returns. */
static void
end_by_signal(int number)
{
    remove_unsettled();
    signal(number, SIG_DFL);
    raise(number);
}

/* A mapped page is gone. Only the reader touches mapped pages, so no library is interrupted in the
 * middle of something.
 */
static void
leave_reader(int number)
{
    if (!reading)
        end_by_signal(number);
    else
        siglongjmp(out, 1);
}

static void
catch_deadly(void)
{
    for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++) {
        struct sigaction old;
        struct sigaction new = {.sa_handler = end_by_signal};

        /* A signal that is ignored, as under nohup, stays ignored. */
        if (sigaction(deadly[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(deadly[i], &new, NULL);
    }
}

int
hed_guard_run(int (*run)(int argc, char **argv), int argc, char **argv)
{
    const struct sigaction bus = {.sa_handler = leave_reader};

    if (sigsetjmp(out, 1) != 0) {
        remove_unsettled();
        hed_cli_say("%s: the file became shorter while it was read, or its disk fails", reading);
        return HED_EXIT_FAILED;
    }
    sigaction(SIGBUS, &bus, NULL);
    return run(argc, argv);
}

void
hed_guard_reading(const char *path)
{
    reading = path;
}

int
hed_guard_mkstemp(char *name)
{
    sigset_t all;
    sigset_t before;

    catch_deadly();
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);

    const int fd = mkstemp(name);

    if (fd >= 0)
        unsettled = name;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return fd;
}

void
hed_guard_settled(void)
{
    unsettled = NULL;
}
