/* heddle sched: what its parts share. sched.c reads the options and makes changes, list.c shows the
 * programs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tree.h"
#include "share/share.h"

struct hed_cli_sched {
    const char *verb;
    const char *settings;
    const char *gpu;
    const char *scope;
    uint64_t pid;                /* 0: all */
    pid_t below[HED_TREE_FOUND]; /* if that is a heddle command: its descendants */
    size_t below_count;
    bool json;
    bool help;
};

/* Finds the programs of this user that share GPUs. Says what could not be read. */
void hed_cli_sched_look(struct hed_sched_scene *out);

/* The number of a GPU in the list, which --scope makes shorter. */
size_t hed_cli_sched_number(const struct hed_cli_sched *r, const struct hed_sched_scene *s,
                            size_t index);

/* Do --gpu and --scope select this GPU, and --pid this process? */
bool hed_cli_sched_wants_gpu(const struct hed_cli_sched *r, const struct hed_sched_scene *s,
                             size_t index);
bool hed_cli_sched_wants_pid(const struct hed_cli_sched *r, int32_t pid);

/* heddle sched list; returns the exit code. */
int hed_cli_sched_list(const struct hed_cli_sched *r);
