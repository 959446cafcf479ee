/* The writer of trace/write.h.
 *
 * Invariants:
 * 1. A ring is in the list from its thread's first record until it is closed and empty. It is put
 * in at
 *    the head, under `lock`; only the drainer takes rings out and frees them.
 * 2. Whoever holds `file_lock` is the drainer: the writer thread, or a late caller. Only he touches
 *    the file. Order: file_lock, then lock; nobody writes to the file while he holds lock, so that
 * no
 *    thread of the program waits for the disk but by its own full ring.
 * 3. `mine` of a thread belongs to the writer it names; a thread that finds another writer there
 *    (after a fork, or in tests) gets a new ring.
 *
 *     open --> running --(close)--> late: every record is drained by its own thread
 */
#include "trace/write.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/futex.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/str.h"
#include "trace/file.h"
#include "trace/format.h"
#include "trace/ring.h"

struct hed_trace_writer {
    struct hed_lock lock; /* guards rings, ring_count, ring_bytes, past_*, unwritten */
    pid_t process;        /* that opened it; a child made by _Fork must leave it alone */
    struct hed_trace_ring *rings;
    size_t ring_count;
    uint64_t ring_bytes;
    uint64_t past_records, past_dropped; /* of rings that are gone */
    uint64_t unwritten;                  /* records that were lost when the file failed */

    struct hed_lock file_lock; /* guards file */
    struct hed_trace_file file;

    uint64_t ring_size, slack;
    uint32_t data_bytes;
    bool drop;

    pthread_t thread;
    bool has_thread;
    _Atomic uint32_t wake; /* futex: 1 when there is something to do */
    _Atomic bool stopping; /* tells the writer thread to end */
    _Atomic bool late;     /* there is no writer thread */
    _Atomic bool failed;   /* the file cannot be written any more */
    _Atomic uint64_t lost; /* records of threads that got no ring */
};

/* The calling thread's place; its destructor runs at thread exit. */
static __thread struct {
    struct hed_trace_writer *writer;
    struct hed_trace_ring *ring;
    struct hed_enc enc;
    uint8_t *record;
    volatile bool busy; /* between begin and end; a signal handler may look at it */
} mine;

static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static void
thread_ends(void *p)
{
    struct hed_trace_ring *r = p;

    mine.writer = NULL;
    mine.ring = NULL;
    /* Release: the drainer that sees it closed sees all its records. */
    atomic_store_explicit(&r->closed, true, memory_order_release);
}

static void
make_exit_key(void)
{
    if (pthread_key_create(&exit_key, thread_ends))
        hed_bug("no thread key for the trace");
}

/* ---- draining -------------------------------------------------------------------------------- */

static uint64_t
count_records(const uint8_t *p, size_t n)
{
    uint64_t count = 0;
    uint32_t size;

    for (size_t at = 0; at + sizeof size <= n; at += size, count++) {
        memcpy(&size, p + at, sizeof size);
        if (size < HED_TRACE_RECORD_HEADER) {
            hed_bug("a trace record of %u bytes", size);
            break;
        }
    }
    return count;
}

/* Writes what one ring holds. Caller is the drainer. */
static void
drain_ring(struct hed_trace_writer *w, struct hed_trace_ring *r)
{
    size_t n;
    const uint8_t *p;

    while ((p = hed_trace_ring_peek(r, &n)) != NULL) {
        if (!r->named)
            hed_trace_file_block(&w->file, HED_TRACE_THREAD, r->thread, r->name, strlen(r->name));
        r->named = true;
        hed_trace_file_block(&w->file, HED_TRACE_RECORDS, r->thread, p, n);
        if (w->file.err) {
            hed_lock(&w->lock);
            w->unwritten += count_records(p, n);
            hed_unlock(&w->lock);
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
count_locked(struct hed_trace_writer *w, uint64_t *records, uint64_t *dropped)
{
    *records = w->past_records;
    *dropped = w->past_dropped + atomic_load_explicit(&w->lost, memory_order_relaxed);
    for (const struct hed_trace_ring *r = w->rings; r; r = r->next) {
        *records += atomic_load_explicit(&r->records, memory_order_relaxed);
        *dropped += atomic_load_explicit(&r->dropped, memory_order_relaxed) +
                    atomic_load_explicit(&r->dropped_before, memory_order_relaxed);
    }
    /* They were counted when they were made. */
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
    /* New rings go before the first and only we take rings out: what follows stands still. */
    for (; r; r = next) {
        /* Looked at before draining: what a closed ring holds then is all it will ever hold. */
        const bool closed = atomic_load_explicit(&r->closed, memory_order_acquire);

        next = r->next;
        drain_ring(w, r);
        if (closed)
            remove_ring(w, r);
    }
}

static void
drain(struct hed_trace_writer *w)
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
        drain(w);
    }
    return NULL;
}

static void
wake_writer(struct hed_trace_writer *w)
{
    if (atomic_exchange_explicit(&w->wake, 1, memory_order_release) == 0)
        hed_futex_wake_private(&w->wake, 1);
}

/* ---- producing ------------------------------------------------------------------------------- */

static struct hed_trace_ring *
new_ring(struct hed_trace_writer *w)
{
    const uint64_t min = HED_TRACE_RING_MIN > 2 * w->slack ? HED_TRACE_RING_MIN : 2 * w->slack;
    struct hed_trace_ring *r = NULL;

    (void)pthread_once(&exit_once, make_exit_key);
    hed_lock(&w->lock);
    if (w->ring_count < HED_TRACE_RINGS_MAX) {
        const bool roomy = w->ring_bytes + w->ring_size <= HED_TRACE_MEMORY_MAX;
        const bool tight = w->ring_bytes + min <= 2 * (uint64_t)HED_TRACE_MEMORY_MAX;

        if (roomy || tight)
            r = hed_trace_ring_create(roomy ? w->ring_size : min, w->slack, (uint64_t)gettid());
    }
    if (r) {
        (void)prctl(PR_GET_NAME, r->name);
        r->next = w->rings;
        w->rings = r;
        w->ring_count++;
        w->ring_bytes += r->size;
    }
    hed_unlock(&w->lock);
    if (r)
        (void)pthread_setspecific(exit_key, r);
    return r;
}

/* The ring is full. Waits until there is room; NULL if the record is to be dropped. */
static uint8_t *
wait_for_room(struct hed_trace_writer *w, struct hed_trace_ring *r)
{
    uint8_t *p = NULL;

    while (!w->drop && !atomic_load_explicit(&w->failed, memory_order_relaxed)) {
        if (atomic_load_explicit(&w->late, memory_order_acquire)) {
            drain(w);
            return hed_trace_ring_reserve(r);
        }

        const uint32_t seen = atomic_load_explicit(&r->drained, memory_order_acquire);

        atomic_store_explicit(&r->waiting, true, memory_order_relaxed);
        wake_writer(w);
        p = hed_trace_ring_reserve(r);
        if (p)
            break;
        /* The time-out covers a wake-up between the two loads; it is not what normally ends it. */
        (void)hed_futex_wait_private(&r->drained, seen, 10000000);
        p = hed_trace_ring_reserve(r);
        if (p)
            break;
    }
    atomic_store_explicit(&r->waiting, false, memory_order_relaxed);
    return p;
}

static void
put_head(uint8_t *record, size_t size, const struct hed_trace_head *h)
{
    hed_store_u32(record, (uint32_t)size);
    hed_store_u8(record + 4, h->kind);
    hed_store_u8(record + 5, h->api);
    hed_store_u16(record + 6, h->call);
    hed_store_u64(record + 8, h->start);
    hed_store_u64(record + 16, h->duration);
    hed_store_u32(record + 24, (uint32_t)h->result);
    hed_store_u32(record + 28, h->flags);
}

/* Says in the trace itself that records are missing here. */
static void
report_dropped(struct hed_trace_ring *r)
{
    const uint64_t n = atomic_load_explicit(&r->dropped, memory_order_relaxed);
    const struct hed_trace_head h = {.kind = HED_TRACE_DROPPED, .start = hed_now_ns()};
    uint8_t *p = hed_trace_ring_reserve(r);

    if (!p)
        return;
    put_head(p, HED_TRACE_RECORD_HEADER + sizeof n, &h);
    memcpy(p + HED_TRACE_RECORD_HEADER, &n, sizeof n);
    hed_trace_ring_commit(r, HED_TRACE_RECORD_HEADER + sizeof n);
    /* Only this thread writes them. */
    atomic_fetch_add_explicit(&r->dropped_before, n, memory_order_relaxed);
    atomic_store_explicit(&r->dropped, 0, memory_order_relaxed);
}

static struct hed_enc *
reserve_record(struct hed_trace_writer *w)
{
    if (__builtin_expect(mine.writer != w, 0)) {
        mine.ring = new_ring(w);
        mine.writer = mine.ring ? w : NULL;
        if (!mine.ring) {
            atomic_fetch_add_explicit(&w->lost, 1, memory_order_relaxed);
            return NULL;
        }
    }

    struct hed_trace_ring *r = mine.ring;
    uint8_t *p = hed_trace_ring_reserve(r);

    if (__builtin_expect(!p, 0))
        p = wait_for_room(w, r);
    if (__builtin_expect(!p, 0)) {
        atomic_fetch_add_explicit(&r->dropped, 1, memory_order_relaxed);
        return NULL;
    }
    if (__builtin_expect(atomic_load_explicit(&r->dropped, memory_order_relaxed) != 0, 0)) {
        report_dropped(r);
        p = hed_trace_ring_reserve(r);
        if (!p) {
            atomic_fetch_add_explicit(&r->dropped, 1, memory_order_relaxed);
            return NULL;
        }
    }
    mine.record = p;
    mine.enc = (struct hed_enc){
        .at = p + HED_TRACE_RECORD_HEADER,
        .end = p + w->slack - HED_TRACE_LINK,
        .max_items = 64,
        .max_bytes = w->data_bytes,
        .max_text = 1024,
    };
    return &mine.enc;
}

struct hed_enc *
hed_trace_begin(struct hed_trace_writer *w)
{
    /* A signal handler that makes calls may have met this thread in the middle of a record. */
    if (__builtin_expect(mine.busy, 0)) {
        atomic_fetch_add_explicit(&w->lost, 1, memory_order_relaxed);
        return NULL;
    }
    mine.busy = true;
    atomic_signal_fence(memory_order_seq_cst);

    struct hed_enc *e = reserve_record(w);

    if (!e)
        mine.busy = false;
    return e;
}

void
hed_trace_end(struct hed_trace_writer *w, const struct hed_trace_head *head)
{
    struct hed_trace_ring *r = mine.ring;
    size_t size = (size_t)(mine.enc.at - mine.record);
    const uint32_t flags = head->flags | (mine.enc.err ? HED_TRACE_CUT : 0) |
                           (head->correlation ? HED_TRACE_LINKED : 0);

    if (head->correlation) {
        /* The encoder was given less room than there is, so this always fits. */
        hed_store_u64(mine.record + size, head->correlation);
        size += HED_TRACE_LINK;
    }
    put_head(mine.record, size, head);
    hed_store_u32(mine.record + HED_TRACE_RECORD_HEADER - sizeof flags, flags);
    hed_trace_ring_commit(r, size);
    if (__builtin_expect(hed_trace_ring_used(r) > r->size / 2, 0)) {
        r->known_tail = atomic_load_explicit(&r->tail, memory_order_acquire);
        if (hed_trace_ring_used(r) > r->size / 2)
            wake_writer(w);
    }
    atomic_signal_fence(memory_order_seq_cst);
    mine.busy = false;
    if (__builtin_expect(atomic_load_explicit(&w->late, memory_order_acquire), 0))
        hed_trace_writer_close(w);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int
start_thread(struct hed_trace_writer *w)
{
    sigset_t all;
    sigset_t before;

    /* The application's signals are not for our thread. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);

    const int err = pthread_create(&w->thread, NULL, writer_main, w);

    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    w->has_thread = err == 0;
    return err;
}

int
hed_trace_writer_open(const struct hed_trace_options *o, struct hed_trace_writer **out,
                      struct hed_why *why)
{
    struct hed_trace_writer *w = calloc(1, sizeof *w);

    if (!w) {
        hed_why_set(why, "trace: %s", hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    w->data_bytes = o->data_bytes < HED_TRACE_DATA_MAX ? o->data_bytes : HED_TRACE_DATA_MAX;
    w->slack = HED_TRACE_RECORD_HEADER + HED_TRACE_BODY_MAX + w->data_bytes + HED_TRACE_LINK;
    w->ring_size = o->ring_size > 4 * w->slack ? o->ring_size : 4 * w->slack;
    w->drop = o->drop;
    w->process = getpid();
    hed_lock_init(&w->lock, HED_RANK_TRACE);
    hed_lock_init(&w->file_lock, HED_RANK_TRACE_FILE);

    const int err = hed_trace_file_create(&w->file, o, why);

    if (err) {
        free(w);
        return err;
    }
    if (start_thread(w)) {
        hed_warn(TRACE, "no thread for the trace: every call writes its own record");
        atomic_store_explicit(&w->late, true, memory_order_release);
    }
    *out = w;
    return 0;
}

const char *
hed_trace_writer_path(const struct hed_trace_writer *w)
{
    return w->file.path;
}

void
hed_trace_writer_close(struct hed_trace_writer *w)
{
    uint8_t totals[16];
    struct hed_enc e = hed_enc_over(totals, sizeof totals);
    uint64_t records;
    uint64_t dropped;

    if (w->process != getpid())
        return;
    if (!atomic_exchange_explicit(&w->late, true, memory_order_acq_rel) && w->has_thread) {
        atomic_store_explicit(&w->stopping, true, memory_order_release);
        wake_writer(w);
        (void)pthread_join(w->thread, NULL);
        /* A thread commits a record, then looks at late; we set late, then look for records. Either
         * must see the other: the barrier is made here for all threads, not in every record. */
        (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
    }
    hed_lock(&w->file_lock);
    drain_locked(w);
    hed_lock(&w->lock);
    count_locked(w, &records, &dropped);
    hed_unlock(&w->lock);
    hed_put_u64(&e, records);
    hed_put_u64(&e, dropped);
    hed_trace_file_block(&w->file, HED_TRACE_END, 0, totals, sizeof totals);
    hed_unlock(&w->file_lock);
}

void
hed_trace_writer_forked(struct hed_trace_writer *w)
{
    /* Locks may be held by threads that do not exist here: nothing but the descriptor is touched.
     * The rings stay allocated; the child never frees what the parent's threads were using. */
    mine.writer = NULL;
    mine.ring = NULL;
    (void)pthread_once(&exit_once, make_exit_key);
    (void)pthread_setspecific(exit_key, NULL);
    hed_trace_file_close(&w->file);
}

void
hed_trace_writer_free(struct hed_trace_writer *w)
{
    if (!w)
        return;
    hed_trace_writer_close(w);
    if (mine.writer == w) {
        (void)pthread_setspecific(exit_key, NULL);
        mine.writer = NULL;
    }
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
    count_locked(w, records, dropped);
    hed_unlock(&w->lock);
}
