/* For benchmarks of sharing: a scope of the process's own, and a client beside it that is idle. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/meeting.h"

/* The settings for clients that are created from now on, in this process or in its children. */
static inline void
set_sched(const char *settings)
{
    static long pid; /* of the benchmark, also in its children */
    char text[128];

    pid = pid ? pid : (long)getpid();
    snprintf(text, sizeof text, "scope=bench%ld,%s", pid, settings);
    setenv("HEDDLE_SCHED", text, 1);
}

/* Removes the files of the scope. */
static inline void
remove_scope(void)
{
    char pattern[64];

    snprintf(pattern, sizeof pattern, "sched-bench%ld-*", (long)getpid());
    forget_meetings(pattern);
}

/* Starts another process that does `work` once and is idle then. -1: the work failed. */
static inline pid_t
start_idle(bool (*work)(const char *library), const char *library)
{
    int ends[2];
    char byte;

    if (pipe(ends) != 0)
        return -1;

    const pid_t pid = fork();

    if (pid == 0) {
        if (!work(library) || write(ends[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);

    const bool up = pid > 0 && read(ends[0], &byte, 1) == 1;

    close(ends[0]);
    if (pid > 0 && !up)
        (void)waitpid(pid, NULL, 0);
    return up ? pid : -1;
}

static inline void
end_idle(pid_t pid)
{
    if (pid <= 0)
        return;
    kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}
