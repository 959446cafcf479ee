/* The pump: moves chunks between a worker's memory and this process, many at a time.
 *
 *   read:   device ──copy──> slot ──thread: fn(chunk, data)──> file, host memory
 *   write:  file, host memory ──thread: fn(chunk, data)──> slot ──copy──> device
 *
 * A slot is a piece of pinned memory that the worker shares, where there is such memory; else of
 * plain memory. The agent begins copies and waits for them; the copy threads, five for eight
 * cores, does what takes processor time. Both are at work at once, and several copies are on their
 * way.
 *
 * All functions are for the agent.
 */
#pragma once

#include "move/session/extents.h"

struct hed_remote_pump;

/* Makes the slots and starts the copy threads. Its streams belong to the contexts that are given
 * later. */
int hed_remote_pump_open(struct hed_remote *r, struct hed_remote_pump **out, struct hed_why *why);
void hed_remote_pump_close(struct hed_remote_pump *p); /* p may be NULL */

/* Where the slots are, if the worker shares them; else false. */
bool hed_remote_pump_pinned(const struct hed_remote_pump *p, uint64_t *at, uint64_t *size);

/* Has the copy threads write to every page of new memory, so that it need not be found later. */
void hed_remote_pump_touch(struct hed_remote_pump *p, void *at, size_t size);

/* What a copy thread does with a chunk's bytes: take them, or fill them in. Any thread, several at
 * once. An error ends the reading or writing. */
typedef int hed_remote_chunk_fn(void *arg, const struct hed_remote_chunk *c, void *data,
                                struct hed_why *why);

/* Reads chunks, which are grouped by context, or writes them. All is done when it returns. */
int hed_remote_pump_read(struct hed_remote_pump *p, const struct hed_remote_chunk *chunks,
                         size_t count, hed_remote_chunk_fn *fn, void *arg, struct hed_why *why);
int hed_remote_pump_write(struct hed_remote_pump *p, const struct hed_remote_chunk *chunks,
                          size_t count, hed_remote_chunk_fn *fn, void *arg, struct hed_why *why);
