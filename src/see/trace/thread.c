/* The rare cases of putting records (see/trace/put.h): a thread's first record, a full ring,
 * dropped and long records, and the end of a thread. The invariants are in see/trace/writer.h.
 */
#include "see/trace/put.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/err.h"
#include "base/futex.h"
#include "base/log.h"
#include "see/trace/format.h"
#include "see/trace/writer.h"

#define WAIT_NS 10000000 /* covers a lost wake-up; it is not what normally ends a wait */

/* close_ring() is called when the thread ends. */
__thread struct hed_trace_own hed_trace_own;
struct hed_trace_slot hed_trace_slots[HED_TRACE_SLOTS];

static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

/* Takes the thread's slot, if it is free. A thread that is ending may still make calls after it has
 * left its slot; it gets no other, because nothing would make it leave that one. */
static void
take_trace_slot(void)
{
    const uintptr_t thread = hed_trace_thread_address();
    struct hed_trace_slot *slot = hed_trace_slot_of(thread);
    uintptr_t free = 0;

    /* 1 is no thread's address: nobody else takes the slot, and nobody finds it yet. */
    if (hed_trace_own.left ||
        !atomic_compare_exchange_strong_explicit(&slot->thread, &free, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    slot->own = &hed_trace_own;
    atomic_store_explicit(&slot->thread, thread, memory_order_relaxed);
}

static void
leave_trace_slot(void)
{
    const uintptr_t thread = hed_trace_thread_address();
    struct hed_trace_slot *slot = hed_trace_slot_of(thread);

    /* Release: pairs with the acquire of the thread that takes it next. */
    if (atomic_load_explicit(&slot->thread, memory_order_relaxed) == thread)
        atomic_store_explicit(&slot->thread, 0, memory_order_release);
}

static void
close_ring(void *p)
{
    struct hed_trace_ring *r = p;

    /* A signal handler must not find, or make, half of this. */
    hed_trace_own.busy = true;
    atomic_signal_fence(memory_order_seq_cst);
    leave_trace_slot();
    hed_trace_own.left = true;
    hed_trace_own.writer = NULL;
    hed_trace_own.ring = NULL;
    hed_trace_close_open(&hed_trace_own);
    atomic_signal_fence(memory_order_seq_cst);
    hed_trace_own.busy = false;
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
hed_trace_threads_forked(void)
{
    /* Later threads may get the addresses of those that do not exist here. */
    for (size_t i = 0; i < HED_TRACE_SLOTS; i++)
        atomic_store_explicit(&hed_trace_slots[i].thread, 0, memory_order_relaxed);
}

void
hed_trace_thread_forget(struct hed_trace_writer *w)
{
    (void)pthread_once(&exit_once, make_exit_key);
    if (hed_trace_own.writer != w)
        return;
    leave_trace_slot();
    hed_trace_own.writer = NULL;
    hed_trace_own.ring = NULL;
    hed_trace_close_open(&hed_trace_own);
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
    if (r && pthread_setspecific(exit_key, r) == 0)
        take_trace_slot();
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
    hed_trace_close_open(&hed_trace_own); /* a new lap may have begun */
    /* Only this thread writes them. */
    atomic_fetch_add_explicit(&r->dropped_before, n, memory_order_relaxed);
    atomic_store_explicit(&r->dropped, 0, memory_order_relaxed);
}

uint8_t *
hed_trace_reserve_slowly(struct hed_trace_writer *w)
{
    if (hed_trace_own.writer != w) {
        hed_trace_own.ring = create_ring(w);
        hed_trace_close_open(&hed_trace_own);
        hed_trace_own.writer = hed_trace_own.ring ? w : NULL;
        if (!hed_trace_own.ring) {
            atomic_fetch_add_explicit(&w->lost, 1, memory_order_relaxed);
            return NULL;
        }
    }

    struct hed_trace_ring *r = hed_trace_own.ring;
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

struct hed_enc *
hed_trace_begin(struct hed_trace_writer *w, struct hed_trace_put *put)
{
    return hed_trace_put_begin(w, put) ? &put->enc : NULL;
}

/* Appends a count of 1 to a record. Readers ignore bytes after the reply, so some can align it. */
static size_t
append_count(uint8_t *record, size_t size)
{
    const uint32_t one = 1;

    while ((uintptr_t)(record + size) % sizeof one)
        record[size++] = 0;
    memcpy(record + size, &one, sizeof one);
    return size + sizeof one;
}

size_t
hed_trace_make_long(struct hed_trace_put *put, const struct hed_trace_head *h)
{
    uint8_t *body = put->record + sizeof(struct hed_trace_short);
    const size_t body_size = (size_t)(put->enc.at - body);
    const bool timed = h->duration != HED_TRACE_NOT_TIMED;
    struct hed_trace_long head = {
        .call = h->call,
        .start = h->start,
        .duration = timed ? h->duration : 0,
        .result = h->result,
        .kind = h->kind,
        .api = h->api,
        .flags =
            (uint16_t)(h->flags | (put->enc.err ? HED_TRACE_CUT : 0) |
                       (h->correlation ? HED_TRACE_LINKED : 0) | (timed ? 0 : HED_TRACE_UNTIMED)),
    };
    size_t size = sizeof head + body_size;

    memmove(put->record + sizeof head, body, body_size);
    if (h->flags & HED_TRACE_REPEATS)
        size = append_count(put->record, size);
    if (h->correlation) {
        memcpy(put->record + size, &h->correlation, HED_TRACE_LINK);
        size += HED_TRACE_LINK;
    }
    head.size = (uint32_t)size;
    memcpy(put->record, &head, sizeof head);
    return size;
}

void
hed_trace_end_long(struct hed_trace_writer *w, struct hed_trace_put *put,
                   const struct hed_trace_head *h)
{
    hed_trace_commit(w, put->own, hed_trace_make_long(put, h));
}

void
hed_trace_end(struct hed_trace_writer *w, struct hed_trace_put *put, const struct hed_trace_head *h)
{
    hed_trace_put_end(w, put, h);
}
