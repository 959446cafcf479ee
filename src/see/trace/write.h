/* Writes a trace without slowing the program down.
 *
 *     thread 1 -> ring 1 \
 *     thread 2 -> ring 2  > writer thread -> file
 *     thread n -> ring n /
 *
 * A thread puts a record into its own ring, without a lock, a system call or, after its first
 * record, an allocation. The writer thread empties the rings when one is half full, or every
 * HED_TRACE_FLUSH_NS. If a ring is full, its thread waits, or drops the record and counts it, as
 * the options say. After hed_trace_writer_close there is no writer thread any more: a thread that
 * still makes a record writes it to the file itself, so nothing is lost at the end of a process.
 *
 * A writer can end its file and begin another one. In between it has none: records are dropped and
 * counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/pack.h"

struct hed_trace_own;
struct hed_trace_writer;
struct hed_why;

#define HED_TRACE_FLUSH_NS 200000000      /* a record waits at most this long for the disk */
#define HED_TRACE_BODY_MAX 16384          /* bytes of a record's body, bulk data not counted */
#define HED_TRACE_DATA_MAX (1u << 20)     /* ceiling of data_bytes */
#define HED_TRACE_RINGS_MAX 4096          /* threads; records of more are dropped and counted */
#define HED_TRACE_MEMORY_MAX (256u << 20) /* ring memory; beyond it new rings get the minimum */
#define HED_TRACE_RING_MIN (64u << 10)

struct hed_trace_options {
    const char *path;           /* see hed_trace_writer_open; "": no file yet */
    bool replace;               /* a complete trace that is there is replaced; no other file is */
    uint64_t owner;             /* process that gets the plain path; 0: any */
    uint64_t ring_size;         /* bytes per thread */
    uint32_t data_bytes;        /* bulk data kept in a record */
    bool drop;                  /* when a ring is full: drop instead of waiting */
    bool counter;               /* read the processor's counter for times, where it keeps time */
    const char *chain;          /* for the file's head: "trace>gpu" */
    const char *const *schemas; /* one text per API, NULL at the end */
};

/* What the times of records are read from; the first member of every writer. */
struct hed_trace_source {
    bool counter; /* the processor's counter; else CLOCK_MONOTONIC */
};

/* Now, for the start of a record; the difference of two is a duration. The unit is the writer's
 * own: the file has nanoseconds. */
static inline uint64_t
hed_trace_ticks(const struct hed_trace_writer *w)
{
    const struct hed_trace_source *source = (const struct hed_trace_source *)w;

    return __builtin_expect(source->counter, 1) ? hed_counter_read() : hed_now_ns();
}

/* A duration: the call was not timed, and start is when it returned. */
#define HED_TRACE_NOT_TIMED UINT64_MAX

struct hed_trace_head {
    uint8_t kind;
    uint8_t api;
    uint16_t call;
    uint64_t start;    /* ticks; for HED_TRACE_ACTIVITY nanoseconds of CLOCK_MONOTONIC */
    uint64_t duration; /* the same */
    int32_t result;
    uint32_t flags;
    uint64_t correlation; /* the id by which GPU activity names this call; 0: none */
};

/* A record that is being made; on the stack. */
struct hed_trace_put {
    struct hed_enc enc; /* for its body */
    uint8_t *record;
    struct hed_trace_own *own;
};

/* Creates the file and starts the writer thread. Without `replace`, an existing file is never
 * overwritten: the name is `t.hed` if that does not exist and this process is the owner, else
 * `t.PID.hed`, `t.PID-1.hed`, ... With it, a trace that another process is writing is still left
 * alone: then the owner takes one of the other names, and it is an error if there is no owner. */
int hed_trace_writer_open(const struct hed_trace_options *o, struct hed_trace_writer **out,
                          struct hed_why *why);

/* Begins a file: for a writer without one. Not in two threads at once, nor with stop. */
int hed_trace_writer_start(struct hed_trace_writer *w, const struct hed_trace_options *o,
                           struct hed_why *why);

/* Completes the file and closes it. Records of calls that have not returned yet are dropped. 0, or
 * the error that has ended the file before. */
int hed_trace_writer_stop(struct hed_trace_writer *w);

/* A thread has put a record into its ring, and there is no writer thread any more. */
void hed_trace_writer_late(struct hed_trace_writer *w);

/* The file's path, for messages. */
const char *hed_trace_writer_path(const struct hed_trace_writer *w);

/* Begins a record of the calling thread. Returns the encoder for its body, or NULL if the record is
 * dropped and counted. Nothing may block between begin and end. */
struct hed_enc *hed_trace_begin(struct hed_trace_writer *w, struct hed_trace_put *put);

/* Ends it: adds the head and hands the record to the writer. */
void hed_trace_end(struct hed_trace_writer *w, struct hed_trace_put *put,
                   const struct hed_trace_head *head);

/* Writes all records, ends the writer thread and marks the file as complete. Threads can go on
 * making records; each is then written at once. */
void hed_trace_writer_close(struct hed_trace_writer *w);

/* In the child of a fork: forgets the writer without touching the file. */
void hed_trace_writer_forked(struct hed_trace_writer *w);

/* Closes the writer and frees everything. No other thread may use the writer any more. For tests.
 */
void hed_trace_writer_free(struct hed_trace_writer *w);

/* Totals so far. */
void hed_trace_writer_count(struct hed_trace_writer *w, uint64_t *records, uint64_t *dropped);
