/* Threads of ours in the program's process. They block all signals, which are for the program's
 * threads, except where the code that they run is the program's own.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct hed_thread_how {
    const char *name; /* what tools show: at most 15 characters; NULL: the program's name */
    size_t stack;     /* bytes; 0: as many as the program's threads have */
    bool faults;      /* signals that its own code causes, SIGSEGV for example, are not blocked */
};

/* Starts a thread that the caller joins. `how` may be NULL. A negative HED_E... if the system
 * refuses. Any thread, any time; so do the others. */
int hed_thread_start(const struct hed_thread_how *how, void *(*fn)(void *), void *arg,
                     pthread_t *out);

/* Starts a thread that nobody waits for. */
int hed_thread_detached(const struct hed_thread_how *how, void *(*fn)(void *), void *arg);

/* Starts a thread and waits until it ends. */
int hed_thread_wait(const struct hed_thread_how *how, void *(*fn)(void *), void *arg);
