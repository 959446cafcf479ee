/* Ends in the middle. See trace_guard.h.
 *
 * A handler may find us anywhere, so it only looks at the two names below, and each is set while
 * what it names is there. Removing a file that has just been renamed fails, and harms nobody.
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

/* The signal is blocked here: it is delivered, and ends us, when we return. */
static void
die(int number)
{
    remove_unsettled();
    signal(number, SIG_DFL);
    raise(number);
}

/* Where a mapped page is gone. Nothing but the reader touches one, so no library of ours is left in
 * the middle of something.
 */
static void
gone(int number)
{
    if (!reading)
        die(number);
    else
        siglongjmp(out, 1);
}

static void
catch_deadly(void)
{
    for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++) {
        struct sigaction old;
        struct sigaction new = {.sa_handler = die};

        /* What is ignored, as under nohup, stays so. */
        if (sigaction(deadly[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(deadly[i], &new, NULL);
    }
}

int
hed_guard_run(int (*run)(int argc, char **argv), int argc, char **argv)
{
    const struct sigaction bus = {.sa_handler = gone};

    if (sigsetjmp(out, 1) != 0) {
        remove_unsettled();
        hed_cli_say("%s: became shorter while it was read, or its disk fails", reading);
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
