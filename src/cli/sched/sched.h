/* heddle sched: what its parts share. sched.c reads the options and makes changes, list.c shows the
 * programs. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tree.h"
#include "share/share.h"

#define HED_CLI_GPUS 64
#define HED_CLI_UUID_DIGITS 32

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

/* The shared memory of the programs that share a GPU in a scope. */
struct hed_cli_gpu {
    struct hed_meet *meet;
    char uuid[HED_CLI_UUID_DIGITS + 1];
    char scope[HED_SCHED_NAME];
    bool meant; /* by --gpu; --scope has been looked at */
};

/* Reads a number that others write. Each number is right, but no two are of the same instant. */
#define HED_CLI_GET(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* Is there a program in that slot, and do the options select it? */
bool hed_cli_sched_meant(const struct hed_cli_sched *r, const struct hed_cli_gpu *g,
                         uint32_t place);

/* heddle sched list; returns the exit code. */
int hed_cli_sched_list(const struct hed_cli_sched *r, const struct hed_cli_gpu *gpus, size_t count);
