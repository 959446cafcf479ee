/* A trace as Chrome trace events: JSON that Perfetto and chrome://tracing open.
 *
 *     process "PROGRAM"                      a track a thread: calls (X), ranges (B, E), marks (i)
 *     process "Streams (host issue time)"    a track a stream: the calls that name it (X)
 *                                            each tied to the thread's slice by an arrow (s, f)
 *     process "GPU 0", "GPU 1", ...          a track a stream: what ran there (X)
 *                                            each tied by an arrow to the call that caused it,
 *                                            which then has no slice among the issued ones
 *
 * Streams that are used by two threads at once, or on which two kernels run at once, get a second
 * track, since slices of a track must not overlap. Times are microseconds since the trace began.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct hed_chrome;
struct hed_trace;
struct hed_trace_record;

/* Begins to write. NULL if there is no memory. The file and the trace stay the caller's. */
struct hed_chrome *hed_chrome_create(FILE *file, const struct hed_trace *t);

/* One record; they must come in order of time. False when writing fails or memory is short. */
bool hed_chrome_put(struct hed_chrome *c, const struct hed_trace_record *r);

/* Closes open ranges and the JSON. Did everything work? */
bool hed_chrome_finish(struct hed_chrome *c);

/* c may be NULL. */
void hed_chrome_free(struct hed_chrome *c);
