/* The program to run: finding it as a shell would, and seeing whether it can be reached at all. */
#pragma once

#include <limits.h>
#include <stdbool.h>

struct hed_target {
    char path[PATH_MAX]; /* has a slash in it, so that exec does not search again */
};

/* Finds `name` in `search` (the value of PATH; NULL for the usual one) unless it has a slash.
 * Returns 0, or the exit code of a shell that cannot run it, and says why.
 */
int hed_target_find(struct hed_target *t, const char *name, const char *search);

/* Says so, in one line, if the dynamic loader will not load our libraries into that program. If the
 * driver loads us (`inject`), it need not have one. */
void hed_target_warn(const struct hed_target *t, bool inject);
