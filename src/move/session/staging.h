/* Snapshots of a program that hardly stops: what has changed is copied into free device memory, and
 * written from there behind the running program. See agent.h. */
#pragma once

#include "move/session/agent.h"

int hed_remote_staging(struct hed_remote_agent *a, struct hed_remote_request *q);
int hed_remote_continue(struct hed_remote_agent *a, struct hed_remote_request *q);

/* Takes the memory that this takes out of a list. */
void hed_remote_staging_hide(const struct hed_remote_staging *w, struct hed_remote_extents *x);
/* Gives that memory back, at a worker that has it; nothing is written. */
void hed_remote_staging_drop(struct hed_remote_agent *a);

/* steps.c. Holds the program, and says when that began. */
int hed_remote_hold_program(struct hed_remote_agent *a, struct hed_remote_request *q,
                            uint64_t *begin);
/* How many chunks there may be. */
uint64_t hed_remote_guess_chunks(struct hed_remote *r);
/* The files that came with a request: a snapshot whose first file is `first`, its parent if there
 * is one, and a writer. */
int hed_remote_open_reader(struct hed_remote_request *q, uint32_t first, unsigned flags,
                           struct hed_snap_reader **out);
int hed_remote_open_parent(struct hed_remote_request *q, uint32_t first,
                           struct hed_snap_reader **out);
int hed_remote_open_writer(struct hed_remote_agent *a, struct hed_remote_request *q,
                           const struct hed_snap_reader *parent, bool partial,
                           struct hed_snap_writer **out);
