/* Putting a record into the calling thread's ring: the path that every traced call takes, inline.
 *
 * A program's own code and data fill the processor's nearest caches between two calls, so this path
 * is short and touches few cache lines: one of the thread's, one or two of the ring's, one of the
 * writer's, and the record itself. Rare cases are in thread.c. For call.c and thread.c; everybody
 * else has write.h.
 */
#pragma once

#include <stdatomic.h>
#include <string.h>

#include "see/trace/format.h"
#include "see/trace/writer.h"

#define HED_TRACE_ITEMS_MAX 64    /* items of an array that are kept in a record */
#define HED_TRACE_TEXT_MAX 1024   /* bytes of a string that are kept */
#define HED_TRACE_FETCH_AHEAD 192 /* bytes from a record to what is fetched for later ones */
#define HED_TRACE_OPEN_MAX 4      /* records of a thread whose questions are still counted */
#define HED_TRACE_QUESTION_WORDS 3

/* A record that counts how often its question is asked (see/trace/repeat.h). */
struct hed_trace_open {
    uint64_t words[HED_TRACE_QUESTION_WORDS]; /* question and answer */
    _Atomic uint32_t *count;                  /* in the ring */
};

/* What the trace keeps for a thread. */
struct hed_trace_own {
    struct hed_trace_writer *writer; /* NULL: the thread has no ring */
    struct hed_trace_ring *ring;
    bool left;                             /* it had a slot in hed_trace_slots and gets no other */
    volatile bool busy;                    /* between begin and end; a signal handler may look */
    uint32_t next_open;                    /* the one to replace when all are in use */
    uint16_t open_ids[HED_TRACE_OPEN_MAX]; /* enum hed_cuda_call; 0: that one is not open */
    struct hed_trace_open open[HED_TRACE_OPEN_MAX];
};

extern __thread struct hed_trace_own hed_trace_own __attribute__((visibility("hidden")));

/* A thread-local variable of a library that is loaded late is found by a call that touches six
 * cache lines. Threads with a ring are also found in this table, by the address of their
 * thread-local memory, which is in a register: that is one line. Only the thread with that address
 * writes a slot it has taken, and it leaves it when it ends. */
#define HED_TRACE_SLOT_BITS 6
#define HED_TRACE_SLOTS (1 << HED_TRACE_SLOT_BITS)

struct hed_trace_slot {
    _Atomic uintptr_t thread;  /* 0: free */
    struct hed_trace_own *own; /* of that thread */
};

extern struct hed_trace_slot hed_trace_slots[HED_TRACE_SLOTS] __attribute__((visibility("hidden")));

static inline uintptr_t
hed_trace_thread_address(void)
{
    return (uintptr_t)__builtin_thread_pointer();
}

static inline struct hed_trace_slot *
hed_trace_slot_of(uintptr_t thread)
{
    return &hed_trace_slots[(thread >> 6) * UINT64_C(0x9e3779b97f4a7c15) >>
                            (64 - HED_TRACE_SLOT_BITS)];
}

/* What the trace keeps for the calling thread. */
static inline struct hed_trace_own *
hed_trace_self(void)
{
    const uintptr_t thread = hed_trace_thread_address();
    const struct hed_trace_slot *slot = hed_trace_slot_of(thread);

    if (__builtin_expect(atomic_load_explicit(&slot->thread, memory_order_relaxed) == thread, 1))
        return slot->own;
    return &hed_trace_own;
}

/* The thread's next questions have records of their own. */
static inline void
hed_trace_close_open(struct hed_trace_own *own)
{
    memset(own->open_ids, 0, sizeof own->open_ids);
}

/* The cases that are not for the inline path: the thread has no ring of this writer, its ring is
 * full, or records were dropped. NULL: the record is dropped, and counted. */
uint8_t *hed_trace_reserve_slowly(struct hed_trace_writer *w);

/* Gives a record a long header, and what comes behind its body. Returns its size. */
size_t hed_trace_make_long(struct hed_trace_put *put, const struct hed_trace_head *h);

/* The record needs a long header. */
void hed_trace_end_long(struct hed_trace_writer *w, struct hed_trace_put *put,
                        const struct hed_trace_head *h);

static inline uint8_t *
hed_trace_reserve(struct hed_trace_writer *w, const struct hed_trace_own *own)
{
    struct hed_trace_ring *r = own->ring;

    if (__builtin_expect(own->writer != w, 0))
        return hed_trace_reserve_slowly(w);
    if (__builtin_expect(atomic_load_explicit(&r->dropped, memory_order_relaxed) != 0, 0))
        return hed_trace_reserve_slowly(w);

    uint8_t *p = hed_trace_ring_reserve(r);

    return __builtin_expect(p != NULL, 1) ? p : hed_trace_reserve_slowly(w);
}

/* As hed_trace_begin(). */
static inline bool
hed_trace_put_begin(struct hed_trace_writer *w, struct hed_trace_put *put)
{
    struct hed_trace_own *own = hed_trace_self();

    /* A signal handler that makes calls may have met this thread in the middle of a record. */
    if (__builtin_expect(own->busy, 0)) {
        atomic_fetch_add_explicit(&w->lost, 1, memory_order_relaxed);
        return false;
    }
    own->busy = true;
    atomic_signal_fence(memory_order_seq_cst);

    uint8_t *p = hed_trace_reserve(w, own);

    if (__builtin_expect(!p, 0)) {
        own->busy = false;
        return false;
    }
    /* The writer has read these bytes since they were last written here. */
    __builtin_prefetch(p + HED_TRACE_FETCH_AHEAD, 1);
    put->own = own;
    put->record = p;
    put->enc = (struct hed_enc){
        .at = p + sizeof(struct hed_trace_short),
        .end = p + w->room,
        .max_items = HED_TRACE_ITEMS_MAX,
        .max_bytes = w->data_bytes,
        .max_text = HED_TRACE_TEXT_MAX,
    };
    return true;
}

/* Hands a complete record to the writer. */
static inline void
hed_trace_commit(struct hed_trace_writer *w, struct hed_trace_own *own, size_t size)
{
    struct hed_trace_ring *r = own->ring;

    hed_trace_ring_commit(r, size);
    if (__builtin_expect(r->at == 0, 0))
        hed_trace_close_open(own); /* a new lap: the ring will come round to the counts */
    if (hed_trace_ring_should_wake(r))
        hed_trace_wake(w);
    atomic_signal_fence(memory_order_seq_cst);
    own->busy = false;
    /* Relaxed: the barrier between commit and this is made by hed_trace_writer_close(), for all
     * threads at once. */
    if (__builtin_expect(atomic_load_explicit(&w->late, memory_order_relaxed), 0))
        hed_trace_writer_late(w);
}

/* As hed_trace_end(). */
static inline void
hed_trace_put_end(struct hed_trace_writer *w, struct hed_trace_put *put,
                  const struct hed_trace_head *h)
{
    const struct hed_enc *e = &put->enc;
    size_t size = (size_t)(e->at - put->record);
    uint16_t linked = 0;

    if (__builtin_expect(h->kind != HED_TRACE_CALL || h->result || h->flags || e->err ||
                             h->duration >= HED_TRACE_SHORT_TICKS ||
                             h->call >= HED_TRACE_SHORT_CALLS ||
                             size > HED_TRACE_SHORT_SIZE_MAX - HED_TRACE_LINK,
                         0)) {
        hed_trace_end_long(w, put, h);
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

    memcpy(put->record, &head, sizeof head);
    hed_trace_commit(w, put->own, size);
}
