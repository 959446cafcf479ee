/* What a thread of the program does for the trace: it has a ring of its own and puts records there.
 * The invariants are in trace/writer.h.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/futex.h"
#include "base/log.h"
#include "trace/format.h"
#include "trace/writer.h"

#define WAIT_NS 10000000    /* covers a lost wake-up; it is not what normally ends a wait */
#define FETCH_AHEAD 192     /* bytes from a record to what is fetched for later ones */
#define ITEMS_MAX 64        /* items of an array that are kept in a record */
#define TEXT_BYTES_MAX 1024 /* bytes of a string that are kept */

/* The calling thread's state; close_ring() is called when the thread ends. */
static __thread struct own {
    struct hed_enc enc; /* first, so that hed_trace_end() finds the rest by it */
    struct hed_trace_writer *writer;
    struct hed_trace_ring *ring;
    uint8_t *record;    /* being made */
    volatile bool busy; /* between begin and end; a signal handler may look at it */
} own;

static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

static void
close_ring(void *p)
{
    struct hed_trace_ring *r = p;

    own.writer = NULL;
    own.ring = NULL;
    /* Release: the drainer that sees it closed sees all its records. */
    atomic_store_explicit(&r->closed, true, memory_order_release);
}

static void
make_exit_key(void)
{
    if (pthread_key_create(&exit_key, close_ring))
        hed_bug("no thread key for the trace");
}

void
hed_trace_thread_forget(struct hed_trace_writer *w)
{
    (void)pthread_once(&exit_once, make_exit_key);
    if (own.writer != w)
        return;
    own.writer = NULL;
    own.ring = NULL;
    (void)pthread_setspecific(exit_key, NULL);
}

static struct hed_trace_ring *
create_ring(struct hed_trace_writer *w)
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
wait_for_ring(struct hed_trace_writer *w, struct hed_trace_ring *r)
{
    uint8_t *p = NULL;

    while (!w->drop && !atomic_load_explicit(&w->failed, memory_order_relaxed)) {
        if (atomic_load_explicit(&w->late, memory_order_acquire)) {
            hed_trace_drain(w);
            return hed_trace_ring_reserve(r);
        }

        const uint32_t seen = atomic_load_explicit(&r->drained, memory_order_acquire);

        atomic_store_explicit(&r->waiting, true, memory_order_relaxed);
        hed_trace_wake(w);
        p = hed_trace_ring_reserve(r);
        if (p)
            break;
        (void)hed_futex_wait_private(&r->drained, seen, WAIT_NS);
        p = hed_trace_ring_reserve(r);
        if (p)
            break;
    }
    atomic_store_explicit(&r->waiting, false, memory_order_relaxed);
    return p;
}

static void
count_dropped(struct hed_trace_ring *r)
{
    /* Only this thread writes it. */
    atomic_store_explicit(&r->dropped, atomic_load_explicit(&r->dropped, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* Says in the trace itself that records are missing here. */
static void
report_dropped(struct hed_trace_writer *w, struct hed_trace_ring *r)
{
    const uint64_t n = atomic_load_explicit(&r->dropped, memory_order_relaxed);
    const struct hed_trace_long head = {
        .size = sizeof head + sizeof n,
        .start = hed_trace_ticks(w),
        .kind = HED_TRACE_DROPPED,
    };
    uint8_t *p = hed_trace_ring_reserve(r);

    if (!p)
        return;
    memcpy(p, &head, sizeof head);
    memcpy(p + sizeof head, &n, sizeof n);
    hed_trace_ring_commit(r, head.size);
    /* Only this thread writes them. */
    atomic_fetch_add_explicit(&r->dropped_before, n, memory_order_relaxed);
    atomic_store_explicit(&r->dropped, 0, memory_order_relaxed);
}

/* The thread has no ring of this writer, its ring is full, or records were dropped. */
static __attribute__((noinline)) uint8_t *
reserve_slowly(struct hed_trace_writer *w)
{
    if (own.writer != w) {
        own.ring = create_ring(w);
        own.writer = own.ring ? w : NULL;
        if (!own.ring) {
            atomic_fetch_add_explicit(&w->lost, 1, memory_order_relaxed);
            return NULL;
        }
    }

    struct hed_trace_ring *r = own.ring;
    uint8_t *p = hed_trace_ring_reserve(r);

    if (!p)
        p = wait_for_ring(w, r);
    if (p && atomic_load_explicit(&r->dropped, memory_order_relaxed)) {
        report_dropped(w, r);
        p = hed_trace_ring_reserve(r);
    }
    if (!p)
        count_dropped(r);
    return p;
}

static inline uint8_t *
reserve_record(struct hed_trace_writer *w, const struct own *o)
{
    struct hed_trace_ring *r = o->ring;

    if (__builtin_expect(o->writer != w, 0))
        return reserve_slowly(w);
    if (__builtin_expect(atomic_load_explicit(&r->dropped, memory_order_relaxed) != 0, 0))
        return reserve_slowly(w);

    uint8_t *p = hed_trace_ring_reserve(r);

    return __builtin_expect(p != NULL, 1) ? p : reserve_slowly(w);
}

struct hed_enc *
hed_trace_begin(struct hed_trace_writer *w)
{
    struct own *o = &own;

    /* A signal handler that makes calls may have met this thread in the middle of a record. */
    if (__builtin_expect(o->busy, 0)) {
        atomic_fetch_add_explicit(&w->lost, 1, memory_order_relaxed);
        return NULL;
    }
    o->busy = true;
    atomic_signal_fence(memory_order_seq_cst);

    uint8_t *p = reserve_record(w, o);

    if (__builtin_expect(!p, 0)) {
        o->busy = false;
        return NULL;
    }
    /* The writer has read these bytes since they were last written here. */
    __builtin_prefetch(p + FETCH_AHEAD, 1);
    o->record = p;
    o->enc.at = p + sizeof(struct hed_trace_short);
    o->enc.end = p + w->slack - HED_TRACE_LINK -
                 (sizeof(struct hed_trace_long) - sizeof(struct hed_trace_short));
    o->enc.max_items = ITEMS_MAX;
    o->enc.max_bytes = w->data_bytes;
    o->enc.max_text = TEXT_BYTES_MAX;
    o->enc.err = 0;
    return &o->enc;
}

/* Hands a record that is complete to the writer. */
static inline void
commit_record(struct hed_trace_writer *w, struct own *o, size_t size)
{
    hed_trace_ring_commit(o->ring, size);
    if (hed_trace_ring_should_wake(o->ring))
        hed_trace_wake(w);
    atomic_signal_fence(memory_order_seq_cst);
    o->busy = false;
    /* Relaxed: the barrier between commit and this is made by hed_trace_writer_close(), for all
     * threads at once. */
    if (__builtin_expect(atomic_load_explicit(&w->late, memory_order_relaxed), 0))
        hed_trace_writer_close(w);
}

static void
end_long(struct hed_trace_writer *w, struct own *o, const struct hed_trace_head *h)
{
    uint8_t *body = o->record + sizeof(struct hed_trace_short);
    const size_t body_size = (size_t)(o->enc.at - body);
    struct hed_trace_long head = {
        .call = h->call,
        .start = h->start,
        .duration = h->duration,
        .result = h->result,
        .kind = h->kind,
        .api = h->api,
        .flags = (uint16_t)(h->flags | (o->enc.err ? HED_TRACE_CUT : 0) |
                            (h->correlation ? HED_TRACE_LINKED : 0)),
    };
    size_t size = sizeof head + body_size;

    memmove(o->record + sizeof head, body, body_size);
    if (h->correlation) {
        memcpy(o->record + size, &h->correlation, HED_TRACE_LINK);
        size += HED_TRACE_LINK;
    }
    head.size = (uint32_t)size;
    memcpy(o->record, &head, sizeof head);
    commit_record(w, o, size);
}

void
hed_trace_end(struct hed_trace_writer *w, struct hed_enc *e, const struct hed_trace_head *h)
{
    struct own *o = (struct own *)e;
    size_t size = (size_t)(e->at - o->record);
    uint16_t linked = 0;

    if (h->kind != HED_TRACE_CALL || h->result || h->flags || e->err ||
        h->duration >= HED_TRACE_SHORT_TICKS || h->call >= HED_TRACE_SHORT_CALLS ||
        size > HED_TRACE_SHORT_SIZE_MAX - HED_TRACE_LINK) {
        end_long(w, o, h);
        return;
    }
    if (h->correlation) {
        memcpy(e->at, &h->correlation, HED_TRACE_LINK);
        size += HED_TRACE_LINK;
        linked = HED_TRACE_SHORT_LINKED;
    }

    const struct hed_trace_short head = {
        .size = (uint16_t)(size | linked),
        .call = (uint16_t)(h->api * HED_TRACE_SHORT_CALLS + h->call),
        .duration = (uint32_t)h->duration,
        .start = h->start,
    };

    memcpy(o->record, &head, sizeof head);
    commit_record(w, o, size);
}
