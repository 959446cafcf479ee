/* For tests that fork: under a sanitizer, a fork while another thread is being started leaves the
 * sanitizer's own locks held in the child for ever. Such tests first wait until heddle's thread
 * runs. Without a sanitizer there is nothing to wait for, and the fork may come at any moment.
 */
#pragma once

#include <dirent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/sanitize.h"

/* Is there a thread of this name? */
static inline bool
settle_has_thread(const char *name)
{
    DIR *d = opendir("/proc/self/task");
    bool found = false;

    for (const struct dirent *e; d && !found && (e = readdir(d)) != NULL;) {
        char path[300];
        char comm[32] = "";
        FILE *f;

        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        f = fopen(path, "r");
        if (!f)
            continue;
        found = fgets(comm, sizeof comm, f) && strncmp(comm, name, strlen(name)) == 0;
        fclose(f);
    }
    if (d)
        closedir(d);
    return found;
}

/* Waits until the thread of the trace's writer runs. */
static inline void
wait_for_writer_thread(void)
{
    while (HED_SANITIZED && !settle_has_thread("heddle-trace"))
        sched_yield();
}
