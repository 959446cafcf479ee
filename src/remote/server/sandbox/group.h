/* Control groups (version 2) of workers: the kernel limits all that a worker takes, also what it
 * does not ask heddle for. They need a group that is the server's own, as systemd gives with
 * Delegate=.
 *
 *   BASE                the group that the server was started in
 *     listener          the listener itself: a group with controllers for others has no processes
 *     worker-N          a worker: memory.max, pids.max, cpu.max; made before it starts, removed
 *                       after its end
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_why;

#define HED_GROUP_PATH 512

struct hed_group_limits {
    uint64_t memory;  /* bytes; 0 for no limit */
    uint32_t threads; /* 0 for no limit */
    uint32_t cpus;    /* processors; 0 for no limit */
};

/* Finds the group of this process, moves the process, and children that it has already, into
 * `listener`, and lets groups beside it have limits. `root` comes before all paths: "", or a test's
 * own folder. HED_ENOTSUP and the reason if that is not possible here: then nothing has changed. */
int hed_groups_begin(const char *root, char base[HED_GROUP_PATH], struct hed_why *why);

/* Makes a group; one of that name that is left over is used again. */
int hed_group_make(const char *base, const char *name, const struct hed_group_limits *l,
                   char path[HED_GROUP_PATH], struct hed_why *why);
/* How often the kernel has killed a process of the group because it took too much memory. */
uint64_t hed_group_kills(const char *path);
/* Removes a group without processes. */
bool hed_group_remove(const char *path);
