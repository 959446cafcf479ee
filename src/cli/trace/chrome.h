/* A trace as Chrome trace events: JSON that Perfetto opens.
 *
 *     process "PROGRAM"                    a track for each thread: calls (X), ranges (B, E),
 *                                          marks (i)
 *     process "Streams (host issue time)"  a track for each stream: the calls that name it (X),
 *                                          connected with the thread's slice by an arrow (s, f)
 *     process "GPU 0", "GPU 1", ...        a track for each stream: what ran there (X), connected
 *                                          by an arrow with the call that caused it, which then
 *                                          has no slice among the issued ones
 *
 * A stream that two threads use at once, or on which two kernels run at once, gets a second track,
 * because the slices of a track must not overlap. Times are microseconds since the trace began.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct hed_chrome;
struct hed_trace;
struct hed_trace_record;

/* Begins to write. NULL if there is no memory. The file and the trace stay the caller's. */
struct hed_chrome *hed_chrome_create(FILE *file, const struct hed_trace *t);

/* Writes one record. Records must come in the order of time. False if writing fails or there is no
 * memory. */
bool hed_chrome_put(struct hed_chrome *c, const struct hed_trace_record *r);

/* Closes open ranges and the JSON. False if anything failed. */
bool hed_chrome_finish(struct hed_chrome *c);

/* c may be NULL. */
void hed_chrome_free(struct hed_chrome *c);
