/* The writer's own state, for the two files that are the writer: write.c (rings into the file) and
 * thread.c (records into rings). Everybody else includes write.h.
 *
 * Invariants:
 * 1. A ring is in the list from its thread's first record until it is closed and empty. It is added
 *    at the head, under `lock`; only the drainer removes rings and frees them.
 * 2. The thread that holds `file_lock` is the drainer: the writer thread, or a thread that makes a
 *    record after close. Only the drainer touches the file and the clock's knots. Order: file_lock,
 *    then lock; nobody writes to the file while holding lock, so no thread of the program waits for
 *    the disk unless its own ring is full.
 * 3. The state that thread.c keeps for a thread belongs to the writer it names; a thread that finds
 *    another writer there (after a fork, or in tests) gets a new ring.
 *
 *     open --> running --(close)--> late: every record is drained by its own thread
 *                 ^------(start)--- late, without a file --(stop)--'
 *
 * 4. Without a file, file.err is set: blocks are not written, and their records count as dropped.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/lock.h"
#include "see/trace/clock.h"
#include "see/trace/file.h"
#include "see/trace/ring.h"
#include "see/trace/write.h"

struct hed_trace_writer {
    /* Read for every record, almost never written. */
    struct hed_trace_source source; /* must be the first member, see hed_trace_ticks() */
    bool drop;                      /* when a ring is full: drop instead of waiting */
    _Atomic bool late;              /* there is no writer thread */
    _Atomic bool failed;            /* the file cannot be written any more */
    uint32_t data_bytes;
    uint64_t ring_size, slack;
    uint64_t room; /* bytes of a record that its short header and its body may take */
    pid_t process; /* that opened it; a child made by _Fork must leave it alone */

    /* guards rings, ring_count, ring_bytes, past_*, unwritten, before_dropped */
    _Alignas(HED_TRACE_RING_LINE) struct hed_lock lock;
    struct hed_trace_ring *rings;
    size_t ring_count;
    uint64_t ring_bytes;
    uint64_t past_records, past_dropped; /* of rings that are gone */
    uint64_t unwritten;                  /* records that were lost when the file failed */
    uint64_t before_dropped;             /* when the file was begun */

    struct hed_lock file_lock; /* guards file, clock and in_file */
    uint64_t in_file;          /* records */
    struct hed_trace_file file;
    struct hed_trace_clock clock;

    pthread_t thread;
    bool has_thread;
    _Atomic uint32_t wake; /* futex: 1 when there is something to do */
    _Atomic bool stopping; /* tells the writer thread to end */
    _Atomic uint64_t lost; /* records of threads that got no ring */
};

/* Writes what all rings hold. Takes both locks. */
void hed_trace_drain(struct hed_trace_writer *w);

/* Makes the writer thread drain now instead of at the end of its sleep. */
void hed_trace_wake(struct hed_trace_writer *w);

/* In the child of a fork: only the calling thread is left. */
void hed_trace_threads_forked(void);

/* The calling thread has no ring of this writer any more; the ring itself is left alone. */
void hed_trace_thread_forget(struct hed_trace_writer *w);
