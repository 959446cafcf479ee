/* heddle run --fail-on-refusal: an exit code that tells of what heddle refused to a program that
 * did not notice. See core/refusal.h.
 */
#pragma once

#include <stddef.h>

/* Makes the file in which processes of the program note what they are refused; `path` takes its
 * name. Nonzero, said to the user, if that is impossible. */
int hed_refusal_file(char *path, size_t size);

/* Runs start(arg), which becomes the program, in a child, and removes the file. Ends as the program
 * does; but with HED_EXIT_REFUSED, and a line on standard error, if that is 0 and something was
 * refused. */
int hed_refusal_run(const char *path, int (*start)(void *arg), void *arg);
