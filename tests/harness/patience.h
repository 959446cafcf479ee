/* Waiting in a test for something that must come.
 *
 * There is one limit, far above what a busy machine needs: a test that reaches it has found
 * something that never comes. Nothing is measured against it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 240
#define PATIENCE_MS (PATIENCE_S * 1000)

static inline time_t
patience_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* Sleeps a little. Ends the program, in whatever thread, when the limit is reached. */
static inline void
patience_nap(time_t start, const char *file, int line, const char *condition)
{
    if (patience_now() - start > PATIENCE_S) {
        fprintf(stderr, "%s:%d: this never comes: %s\n", file, line, condition);
        _exit(1);
    }
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

#define WAIT_UNTIL(condition)                                     \
    do {                                                          \
        const time_t start_ = patience_now();                     \
                                                                  \
        while (!(condition))                                      \
            patience_nap(start_, __FILE__, __LINE__, #condition); \
    } while (0)

/* Gives something that must not happen a moment in which it would. This is no wait for a condition:
 * a slow machine can only make the test miss a mistake, never fail without one. */
static inline void
give_a_moment(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

static inline char
patience_state(const char *path)
{
    char text[512];
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;

    if (f)
        fclose(f);
    text[n] = '\0';

    const char *end = strrchr(text, ')');

    return end && end[1] ? end[2] : '\0';
}

/* The state of a thread of this process according to the kernel: 'R' running, 'S' asleep, 'Z' ended
 * before others; 0: there is no such thread. */
static inline char
thread_state(pid_t tid)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    return patience_state(path);
}

/* The same for a process's first thread; 'T' is stopped. */
static inline char
process_state(pid_t pid)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return patience_state(path);
}
