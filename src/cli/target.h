/* The program to run: finds it as a shell would, and checks whether heddle can reach it at all. */
#pragma once

#include <limits.h>
#include <stdbool.h>

struct hed_target {
    char path[PATH_MAX]; /* has a slash in it, so that exec does not search again */
};

/* Finds `name` in `search` (the value of PATH; NULL for the usual one) unless it has a slash.
 * Returns 0. Otherwise prints the reason and returns the exit code that a shell would.
 */
int hed_target_find(struct hed_target *t, const char *name, const char *search);

/* Prints a warning if the dynamic loader will not load heddle's libraries into that program. With
 * `inject`, where the driver loads heddle, a program may be statically linked. */
void hed_target_warn(const struct hed_target *t, bool inject);
