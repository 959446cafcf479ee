/* heddle run --ckpt and --resume: a program that is saved from time to time, and goes on from its
 * newest snapshot.
 *
 *     heddle run (stays) --+-- heddled, if the program is to use this machine's own devices
 *                          +-- the program, started or restored
 *                          +-- from time to time: a child that saves the program
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "move/move.h"

struct hed_why;

/* Parses "on" or a list of every=TIME, keep=N, dir=DIR, zstd=LEVEL, recover[=N], wait=TIME. dir
 * becomes a full path. */
int hed_ckpt_parse(const char *text, struct hed_ckpt *out, struct hed_why *why);

struct hed_ckpt_how {
    const struct hed_ckpt *ckpt;
    const char *resume; /* a folder of snapshots, or one of them; NULL: the program is started */
    const char *gpu;    /* the setting */

    /* Becomes the program, in a child process, with its work at `address`. Returns an exit code if
     * that fails. NULL: there is no program to start. */
    int (*start)(void *arg, const char *address);
    void *arg;
};

/* Runs the program, and stays until it ends. Returns the exit code. If a signal has ended the
 * program, the same signal ends us. */
int hed_ckpt_run(const struct hed_ckpt_how *how);
