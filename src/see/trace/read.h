/* Reading a trace file (docs/trace-format.md).
 *
 *     hed_trace_open -> state, info, threads, schemas
 *          |
 *          +-> hed_trace_cursor_over, hed_trace_next        in the order of the file
 *          +-> hed_trace_sort, hed_trace_at           in the order of time
 *
 * Opening walks through the file once and checks it. Damage is counted and left out, so that the
 * rest can still be read. The file is mapped, and a record points into the mapping, so it is valid
 * until close. If a file becomes shorter while it is mapped, the reader gets SIGBUS, which `heddle
 * trace` handles.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "see/trace/format.h"

struct hed_schema;
struct hed_trace;
struct hed_why;

#define HED_TRACE_META_MAX (64u << 20)  /* bytes of schemas, names and the like */
#define HED_TRACE_BLOCKS_MAX (1u << 26) /* blocks of records */
#define HED_TRACE_INDEX_MAX (1u << 27)  /* records in an index, 24 bytes each */
#define HED_TRACE_API_MAX 16            /* schemas */

/* Facts about the file, and what is wrong with it. */
struct hed_trace_state {
    uint64_t size;        /* bytes of the file */
    uint64_t blocks;      /* sound ones, of any type */
    uint64_t blocks_bad;  /* damaged or missing */
    uint64_t bytes_lost;  /* skipped because of damage, the cut tail not counted */
    uint64_t bytes_cut;   /* of an incomplete last block */
    uint64_t records;     /* readable */
    uint64_t activities;  /* records among them that say what a GPU did */
    uint64_t dropped;     /* records that the writer dropped, as it says in records or in END */
    uint64_t first;       /* ns: least start; 0 without records */
    uint64_t last;        /* ns: greatest end */
    uint64_t zero;        /* ns: times are shown relative to this */
    uint64_t threads;     /* distinct threads with records or a name */
    bool ended;           /* there is an END block, so the process ended normally */
    uint64_t end_records; /* what END says */
    uint64_t end_dropped;
};

struct hed_trace_record {
    uint64_t thread;
    uint64_t start;    /* ns of CLOCK_MONOTONIC */
    uint64_t duration; /* ns */
    int32_t result;
    uint32_t flags; /* enum hed_trace_record_flags */
    uint16_t call;
    uint8_t kind; /* enum hed_trace_record_kind, or one of a later version */
    uint8_t api;
    const uint8_t *at;    /* in the mapping */
    uint32_t size;        /* bytes of the whole record */
    uint32_t body_size;   /* bytes, the correlation id not counted */
    const uint8_t *body;  /* in the mapping */
    uint64_t correlation; /* the id by which GPU activity names the call; 0: none */
    uint32_t calls;       /* how many calls with these arguments and results it stands for; start
                             and duration are the first one's */
};

/* Opens a file. HED_EFORMAT: not a trace; HED_EVERSION: too new; else the system's error. */
int hed_trace_open(const char *path, struct hed_trace **out, struct hed_why *why);

/* The same over memory, which the caller keeps until close. */
int hed_trace_open_memory(const void *p, size_t size, struct hed_trace **out, struct hed_why *why);

/* t may be NULL. */
void hed_trace_close(struct hed_trace *t);

const struct hed_trace_state *hed_trace_state(const struct hed_trace *t);

/* A value of INFO, or NULL. */
const char *hed_trace_info(const struct hed_trace *t, const char *key);

/* A value of INFO as a number; 0 if there is none or it is not a number. */
uint64_t hed_trace_info_u64(const struct hed_trace *t, const char *key);

/* The name of a thread (the last it had), or NULL. */
const char *hed_trace_thread_name(const struct hed_trace *t, uint64_t thread);

/* The i-th thread, in the order of their ids; false after the last. */
bool hed_trace_thread(const struct hed_trace *t, size_t i, uint64_t *thread);

/* The file's major format version. */
unsigned hed_trace_major(const struct hed_trace *t);

/* The schema of an API number; NULL if it is missing or was not understood. */
const struct hed_schema *hed_trace_schema(const struct hed_trace *t, unsigned api);

/* ---- in the order of the file ---------------------------------------------------------------- */

struct hed_trace_cursor {
    const struct hed_trace *trace;
    size_t block;
    size_t at; /* bytes into the block's payload */
};

struct hed_trace_cursor hed_trace_cursor_over(const struct hed_trace *t);

/* The next record; false at the end. */
bool hed_trace_next(struct hed_trace_cursor *c, struct hed_trace_record *r);

/* ---- in the order of time -------------------------------------------------------------------- */

/* Sorted by start. Records with the same start keep the order of the file, which is each thread's
 * own. */
struct hed_trace_index;

/* HED_ELIMIT: more records than HED_TRACE_INDEX_MAX; HED_ENOMEM. */
int hed_trace_sort(const struct hed_trace *t, struct hed_trace_index **out, struct hed_why *why);

/* index may be NULL. */
void hed_trace_index_free(struct hed_trace_index *index);

/* The i-th record in time; false after the last. The trace must still be open. */
bool hed_trace_at(const struct hed_trace_index *index, size_t i, struct hed_trace_record *r);
