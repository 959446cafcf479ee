/* Parts of Chrome trace events, and tracks on which slices do not overlap. Knows nothing of
 * records. For the files chrome*.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "cli/trace/util.h"

#define HED_CHROME_TRACKS 8 /* tracks a key may need */

struct hed_chrome_out {
    FILE *file;           /* the caller's */
    struct hed_buf event; /* events that are not written yet */
    bool any;             /* an event was written */
    bool failed;          /* sticky */
    uint64_t next_tid;    /* for a track that is not a thread */
    uint64_t next_flow;
};

/* Begins an event with the members that all events have, and ends it. */
void hed_chrome_begin(struct hed_chrome_out *o, char phase, uint64_t pid, uint64_t tid);
void hed_chrome_end(struct hed_chrome_out *o);

/* Members of the event that was begun. Times are written in microseconds. */
void hed_chrome_us(struct hed_chrome_out *o, const char *key, uint64_t ns);
void hed_chrome_text(struct hed_chrome_out *o, const char *key, const char *text, size_t n);

/* Names a process or track: process_name, thread_name. */
void hed_chrome_name(struct hed_chrome_out *o, const char *what, uint64_t pid, uint64_t tid,
                     const char *name);

/* Sets the position of a process among the others. */
void hed_chrome_order(struct hed_chrome_out *o, uint64_t pid, unsigned index);

/* One end of an arrow, in the slice that is there at that time. */
struct hed_chrome_point {
    uint64_t pid;
    uint64_t tid;
    uint64_t time; /* ns since the trace began */
};

void hed_chrome_arrow(struct hed_chrome_out *o, const char *name, struct hed_chrome_point from,
                      struct hed_chrome_point to);

/* Writes the events. False after any failure. */
bool hed_chrome_flush(struct hed_chrome_out *o);

/* ---- tracks ---------------------------------------------------------------------------------- */

struct hed_chrome_track_set;

struct hed_chrome_tracks {
    struct hed_cli_map map;            /* key -> index + 1 */
    struct hed_chrome_track_set *sets; /* owned */
};

/* Finds a track of the key that is free from `start` on, and takes it until `until`. Returns its
 * tid. New tracks are named label, "label #2" and so on. */
uint64_t hed_chrome_track(struct hed_chrome_out *o, struct hed_chrome_tracks *l, uint64_t pid,
                          uint64_t key, const char *label, uint64_t start, uint64_t until);

void hed_chrome_tracks_fini(struct hed_chrome_tracks *l);
