/* The writer of see/trace/write.h: it opens the file, moves rings into it and closes it. The
 * invariants are in see/trace/writer.h; what threads do with their rings is in thread.c.
 */
#include "see/trace/write.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/futex.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "see/trace/format.h"
#include "see/trace/repeat.h"
#include "see/trace/writer.h"

/* Bytes that are written at once. The producer gets them back when all are written, so a large ring
 * is emptied piece by piece. */
#define RUN_MAX (128u << 10)

/* ---- draining -------------------------------------------------------------------------------- */

/* The size of as many whole records as fit into RUN_MAX bytes, but at least of one. */
static size_t
limit_run(const uint8_t *p, size_t n)
{
    size_t run = 0;

    while (run < n && n > RUN_MAX) {
        const size_t size = hed_trace_record_size(p + run, n - run);

        if (size == 0) /* never: hed_trace_clock_convert() complains of it */
            return n;
        if (run && run + size > RUN_MAX)
            return run;
        run += size;
    }
    return n;
}

/* Writes what one ring holds. Caller is the drainer. */
static void
drain_ring(struct hed_trace_writer *w, struct hed_trace_ring *r)
{
    size_t n;
    uint8_t *p;

    while ((p = hed_trace_ring_peek(r, &n)) != NULL) {
        n = limit_run(p, n);

        const uint64_t count = hed_trace_close_counts(p, n);

        hed_trace_clock_convert(&w->clock, p, n);
        if (!r->named)
            hed_trace_file_block(&w->file, HED_TRACE_THREAD, r->thread, r->name, strlen(r->name));
        r->named = true;
        hed_trace_file_block(&w->file, HED_TRACE_RECORDS, r->thread, p, n);
        if (w->file.err) {
            hed_lock(&w->lock);
            w->unwritten += count;
            hed_unlock(&w->lock);
        } else {
            w->in_file += count;
        }
        hed_trace_ring_take(r, n);
    }
    if (w->file.err && !atomic_load_explicit(&w->failed, memory_order_relaxed))
        atomic_store_explicit(&w->failed, true, memory_order_relaxed);
    if (atomic_load_explicit(&r->waiting, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&r->drained, 1, memory_order_release);
        hed_futex_wake_private(&r->drained, 1);
    }
}

static void
count_records_locked(struct hed_trace_writer *w, uint64_t *records, uint64_t *dropped)
{
    *records = w->past_records;
    *dropped = w->past_dropped + atomic_load_explicit(&w->lost, memory_order_relaxed);
    for (const struct hed_trace_ring *r = w->rings; r; r = r->next) {
        *records += atomic_load_explicit(&r->records, memory_order_relaxed);
        *dropped += atomic_load_explicit(&r->dropped, memory_order_relaxed) +
                    atomic_load_explicit(&r->dropped_before, memory_order_relaxed);
    }
    /* These were counted when they were made. */
    *records -= w->unwritten;
    *dropped += w->unwritten;
}

/* Takes a ring whose thread has ended out of the list. Caller is the drainer. */
static void
remove_ring(struct hed_trace_writer *w, struct hed_trace_ring *r)
{
    struct hed_trace_ring **at = &w->rings;

    hed_lock(&w->lock);
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    w->past_records += atomic_load_explicit(&r->records, memory_order_relaxed);
    w->past_dropped += atomic_load_explicit(&r->dropped, memory_order_relaxed) +
                       atomic_load_explicit(&r->dropped_before, memory_order_relaxed);
    w->ring_bytes -= r->size;
    w->ring_count--;
    hed_unlock(&w->lock);
    hed_trace_ring_free(r);
}

/* Writes all rings and removes those whose threads have ended. Caller holds file_lock. */
static void
drain_locked(struct hed_trace_writer *w)
{
    struct hed_trace_ring *next;

    hed_lock(&w->lock);

    struct hed_trace_ring *r = w->rings;

    hed_unlock(&w->lock);
    hed_trace_clock_update(&w->clock);
    /* New rings are added before the first one, and only we remove rings, so the rest of the list
     * does not change. */
    for (; r; r = next) {
        /* Checked before draining: a closed ring gets no more records. */
        const bool closed = atomic_load_explicit(&r->closed, memory_order_acquire);

        next = r->next;
        drain_ring(w, r);
        if (closed)
            remove_ring(w, r);
    }
}

void
hed_trace_drain(struct hed_trace_writer *w)
{
    hed_lock(&w->file_lock);
    drain_locked(w);
    hed_unlock(&w->file_lock);
}

static void *
writer_main(void *p)
{
    struct hed_trace_writer *w = p;

    (void)prctl(PR_SET_NAME, "heddle-trace");
    while (!atomic_load_explicit(&w->stopping, memory_order_acquire)) {
        (void)hed_futex_wait_private(&w->wake, 0, HED_TRACE_FLUSH_NS);
        atomic_store_explicit(&w->wake, 0, memory_order_relaxed);
        hed_trace_drain(w);
    }
    return NULL;
}

void
hed_trace_wake(struct hed_trace_writer *w)
{
    if (atomic_exchange_explicit(&w->wake, 1, memory_order_release) == 0)
        hed_futex_wake_private(&w->wake, 1);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int
start_writer_thread(struct hed_trace_writer *w)
{
    const int err = hed_thread_start(NULL, writer_main, w, &w->thread);

    w->has_thread = err == 0;
    return err;
}

int
hed_trace_writer_open(const struct hed_trace_options *o, struct hed_trace_writer **out,
                      struct hed_why *why)
{
    struct hed_trace_writer *w = aligned_alloc(_Alignof(struct hed_trace_writer), sizeof *w);

    if (!w) {
        hed_why_set(why, "trace: %s", hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    memset(w, 0, sizeof *w);
    w->data_bytes = o->data_bytes < HED_TRACE_DATA_MAX ? o->data_bytes : HED_TRACE_DATA_MAX;
    w->slack = sizeof(struct hed_trace_long) + HED_TRACE_BODY_MAX + w->data_bytes + HED_TRACE_LINK;
    w->room = w->slack - HED_TRACE_LINK -
              (sizeof(struct hed_trace_long) - sizeof(struct hed_trace_short));
    w->ring_size = o->ring_size > 4 * w->slack ? o->ring_size : 4 * w->slack;
    w->drop = o->drop;
    w->process = getpid();
    hed_lock_init(&w->lock, HED_RANK_TRACE);
    hed_lock_init(&w->file_lock, HED_RANK_TRACE_FILE);

    hed_trace_clock_init(&w->clock, o->counter);
    w->source.counter = w->clock.counter;
    w->file.fd = -1;
    w->file.err = HED_ESTATE;
    atomic_store_explicit(&w->late, true, memory_order_relaxed);

    const int err = *o->path ? hed_trace_writer_start(w, o, why) : 0;

    if (err) {
        free(w);
        return err;
    }
    *out = w;
    return 0;
}

int
hed_trace_writer_start(struct hed_trace_writer *w, const struct hed_trace_options *o,
                       struct hed_why *why)
{
    struct hed_trace_file file = {.fd = -1};
    uint64_t records;
    const int err = hed_trace_file_create(&file, o, why);

    if (err)
        return err;
    hed_lock(&w->file_lock);
    drain_locked(w); /* what came after the last file's end belongs to none */
    w->file = file;
    w->in_file = 0;
    hed_lock(&w->lock);
    count_records_locked(w, &records, &w->before_dropped);
    for (struct hed_trace_ring *r = w->rings; r; r = r->next)
        r->named = false;
    hed_unlock(&w->lock);
    atomic_store_explicit(&w->failed, false, memory_order_relaxed);
    atomic_store_explicit(&w->stopping, false, memory_order_relaxed);
    /* A thread that has seen it set looks again, with the file's lock. */
    atomic_store_explicit(&w->late, false, memory_order_release);
    if (start_writer_thread(w)) {
        hed_warn(TRACE, "cannot start the trace's thread, so every call writes its own record");
        atomic_store_explicit(&w->late, true, memory_order_release);
    }
    hed_unlock(&w->file_lock);
    return 0;
}

const char *
hed_trace_writer_path(const struct hed_trace_writer *w)
{
    return w->file.path;
}

/* Writes what is in the rings, and the totals behind it. Caller is the drainer. */
static void
end_file_locked(struct hed_trace_writer *w)
{
    uint8_t totals[16];
    struct hed_enc e = hed_enc_over(totals, sizeof totals);
    uint64_t records;
    uint64_t dropped;

    drain_locked(w);
    hed_lock(&w->lock);
    count_records_locked(w, &records, &dropped);
    hed_unlock(&w->lock);
    hed_put_u64(&e, w->in_file);
    hed_put_u64(&e, dropped - w->before_dropped);
    hed_trace_file_block(&w->file, HED_TRACE_END, 0, totals, sizeof totals);
}

void
hed_trace_writer_close(struct hed_trace_writer *w)
{
    if (w->process != getpid())
        return;
    if (!atomic_exchange_explicit(&w->late, true, memory_order_acq_rel) && w->has_thread) {
        atomic_store_explicit(&w->stopping, true, memory_order_release);
        hed_trace_wake(w);
        (void)pthread_join(w->thread, NULL);
        /* A thread commits a record, then looks at late; we set late, then look for records. Either
         * must see the other: the barrier is made here for all threads, not in every record. */
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
    }
    hed_lock(&w->file_lock);
    end_file_locked(w);
    hed_unlock(&w->file_lock);
}

void
hed_trace_writer_late(struct hed_trace_writer *w)
{
    if (w->process != getpid())
        return;
    hed_lock(&w->file_lock);
    if (atomic_load_explicit(&w->late, memory_order_relaxed))
        end_file_locked(w);
    hed_unlock(&w->file_lock);
}

int
hed_trace_writer_stop(struct hed_trace_writer *w)
{
    hed_trace_writer_close(w);
    hed_lock(&w->file_lock);

    const int err = w->file.err;

    hed_trace_file_close(&w->file);
    w->file.err = HED_ESTATE;
    hed_unlock(&w->file_lock);
    return err;
}

void
hed_trace_writer_forked(struct hed_trace_writer *w)
{
    /* Threads that do not exist here may hold the locks, so only the descriptor is touched. The
     * rings stay allocated: the child never frees what the parent's threads were using. */
    hed_trace_thread_forget(w);
    hed_trace_threads_forked();
    hed_trace_file_close(&w->file);
}

void
hed_trace_writer_free(struct hed_trace_writer *w)
{
    if (!w)
        return;
    hed_trace_writer_close(w);
    hed_trace_thread_forget(w);
    while (w->rings) {
        struct hed_trace_ring *r = w->rings;

        w->rings = r->next;
        hed_trace_ring_free(r);
    }
    hed_trace_file_close(&w->file);
    hed_lock_fini(&w->lock);
    hed_lock_fini(&w->file_lock);
    free(w);
}

void
hed_trace_writer_count(struct hed_trace_writer *w, uint64_t *records, uint64_t *dropped)
{
    hed_lock(&w->lock);
    count_records_locked(w, records, dropped);
    hed_unlock(&w->lock);
}
