/* A parent for a program that heddle started or restored: it passes signals on, takes snapshots
 * from time to time, and ends as the program ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hed_recovery;

struct hed_supervised {
    pid_t pid;         /* a child of ours */
    uint64_t every_ns; /* how often `tick` is called; 0: never */

    /* Called in a child process of its own, so that it may take its time; its exit code is printed
     * nowhere. It is not called again before it has ended. NULL: nothing to do. */
    int (*tick)(void *arg);
    void *arg;

    /* Another child of ours has ended. May be NULL. */
    void (*reaped)(void *arg, pid_t pid);

    /* The program was killed: was it saved before, and in which file? May be NULL. */
    bool (*was_saved)(pid_t pid, char *file, size_t size);

    /* What a program that has lost its server goes back to a snapshot with; NULL: it does not. */
    struct hed_recovery *recovery;
};

#define HED_SUPERVISE_STUCK 3 /* tick's exit code: the program cannot go on */

/* Blocks the signals that supervise() handles. Called before the program is started; the program
 * must set `old` again before it begins. */
void hed_supervise_prepare(void *old_sigset);

/* Waits until the program has ended. Signals that other processes send us go to the program; those
 * of the terminal reach it by themselves. Returns its exit code, or 128 + the number of the signal
 * that ended it. *signal_number is that signal, or 0. */
int hed_supervise(const struct hed_supervised *s, int *signal_number);

/* Ends this process by a signal, as the program ended, without a core file of our own. Returns if
 * the signal cannot end us. */
void hed_supervise_die(int signal_number);
