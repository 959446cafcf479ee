/* A process that lets a program go on if the command that saves it dies.
 *
 * While it is saved, a program is held, or stopped by CRIU, and its memory may be in nothing but a
 * file without a name that counts. If the command were killed then (Ctrl-C, a lost terminal, a lack
 * of memory), the program would wait for ever.
 *
 *     the command ──socket──> the guard, a child in a session of its own
 *          └──> criu: has this end of it, too, so the guard waits until it has ended
 *
 *     "done" comes        the guard ends
 *     the socket ends     SIGCONT; CONTINUE or ATTACH; what is half done is removed
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "move/command/command.h"

struct hed_snap_guard {
    int fd; /* -1: there is none */
    pid_t pid;
};

/* What the guard needs to know. All of it is this process's when the guard begins. */
struct hed_snap_guarded {
    pid_t pid; /* the program */
    struct hed_snap_store *store;
    struct hed_snap_draft *draft;
    struct hed_criu_folder *images;
    int fds[HED_TALK_FDS_MAX]; /* the file, its parent, the parent's homes */
    size_t count;
    hed_command_say *say;
};

/* Before the program is held. */
int hed_snap_guard_begin(struct hed_snap_guarded *g, struct hed_snap_guard *out,
                         struct hed_why *why);

/* After it was released, or ended. */
void hed_snap_guard_end(struct hed_snap_guard *g);
