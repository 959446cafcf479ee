/* Doing something risky in a child process, so that a driver that crashes, hangs or prints does not
 * take the command down with it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum hed_child_end {
    HED_CHILD_DONE,     /* the function returned */
    HED_CHILD_CRASHED,  /* a signal or exit() ended the child first */
    HED_CHILD_TIMEOUT,  /* it took too long and was killed */
    HED_CHILD_NO_START, /* fork failed */
};

/* Memory that a child shares with us, cleared; NULL when there is not enough. */
void *hed_child_shared(size_t size);
void hed_child_shared_free(void *p, size_t size);

/* Runs fn(arg) in a child for at most `seconds`. The child's standard output goes to standard
 * error, and its standard input is empty. *signal_number, which may be NULL, becomes the signal of
 * a crash, or 0. Returns even if the child cannot be killed because it is stuck inside the kernel.
 */
enum hed_child_end hed_child_run(void (*fn)(void *arg), void *arg, unsigned seconds,
                                 int *signal_number);
