/* A thread's trace memory: one producer (the thread), one consumer (the writer).
 *
 *      0                 tail                      head            size   size + slack
 *      |  free           | records to write        | free          |      |
 *                                                                  ^ a record may run over the end,
 *                                                                    so records are never split
 *
 * head and tail count virtual bytes: a lap is `size` of them, whatever part of it was used. When a
 * record crosses `size`, the lap ends there (lap_end) and head jumps to the next lap.
 *
 * Invariants:
 * 1. tail <= head <= tail + size. Bytes between them belong to the consumer, all others to the
 *    producer. The only exception are counts that both change atomically (see/trace/repeat.h).
 * 2. A reservation is handed out only when head + slack <= tail + size, so neither a record nor the
 *    slack of the lap before is overwritten.
 * 3. full_at and wake_at follow from a tail that the producer has seen. The real tail is never
 *    behind it, so they err only by being too early.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The producer's fields and the consumer's are this many bytes apart: processors fetch cache lines
 * of 64 bytes in pairs. */
#define HED_TRACE_RING_LINE 128

struct hed_trace_ring {
    uint64_t slack;              /* the longest record */
    uint64_t thread;             /* kernel id of the producer; constant */
    struct hed_trace_ring *next; /* the writer's list */
    char name[16];               /* of the thread; written to the file before its first record */
    bool named;                  /* the consumer's: that has been done */

    /* What the producer uses for every record: one cache line. Those that are atomic are read by
     * others, relaxed unless it says so. */
    _Alignas(HED_TRACE_RING_LINE) _Atomic uint64_t head; /* stored with release */
    uint64_t at;                                         /* head's byte in data */
    uint64_t full_at; /* head must not be past this to reserve, unless tail has moved */
    uint64_t wake_at; /* when head is past this, more than half of the ring is in use */
    uint8_t *data;    /* size + slack bytes; owned; constant */
    uint64_t size;    /* bytes of a lap; constant */
    _Atomic uint64_t records;
    _Atomic uint64_t dropped; /* records given up since the last dropped-record */

    /* What the producer uses now and then. */
    _Atomic uint64_t lap_end;        /* where the last full lap ended; published by head */
    _Atomic uint64_t dropped_before; /* records given up, as far as the trace says so */
    _Atomic bool waiting;            /* the producer sleeps on drained */
    _Atomic bool closed;             /* the thread has ended */

    /* The consumer's. */
    _Alignas(HED_TRACE_RING_LINE) _Atomic uint64_t tail; /* stored with release */
    _Atomic uint32_t drained; /* futex: counts the consumer's rounds while a producer waits */
};

/* NULL when there is no memory. */
struct hed_trace_ring *hed_trace_ring_create(uint64_t size, uint64_t slack, uint64_t thread);
void hed_trace_ring_free(struct hed_trace_ring *r);

/* Producer: looks where the tail is now. True if there is room for a record. */
bool hed_trace_ring_look(struct hed_trace_ring *r);

/* Producer: room for one record of up to `slack` bytes, or NULL while the ring is full. */
static inline uint8_t *
hed_trace_ring_reserve(struct hed_trace_ring *r)
{
    const uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

    if (__builtin_expect(head > r->full_at, 0) && !hed_trace_ring_look(r))
        return NULL;
    return r->data + r->at;
}

/* Producer: the record that was reserved is `size` bytes long and may be written to the file. */
static inline void
hed_trace_ring_commit(struct hed_trace_ring *r, size_t size)
{
    uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed) + size;
    const uint64_t at = r->at + size;

    r->at = at;
    if (__builtin_expect(at >= r->size, 0)) {
        atomic_store_explicit(&r->lap_end, at, memory_order_relaxed);
        head -= at - r->size;
        r->at = 0;
    }
    /* Only the producer writes it: no atomic addition is needed. */
    atomic_store_explicit(&r->records, atomic_load_explicit(&r->records, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    /* Release: the record and lap_end are there before the consumer sees the new head. */
    atomic_store_explicit(&r->head, head, memory_order_release);
}

/* Producer: is it time to wake the consumer? Says so once when more than half of the ring is in
 * use, and not again before the consumer has taken something. */
bool hed_trace_ring_look_for_wake(struct hed_trace_ring *r);

static inline bool
hed_trace_ring_should_wake(struct hed_trace_ring *r)
{
    const uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

    return __builtin_expect(head > r->wake_at, 0) && hed_trace_ring_look_for_wake(r);
}

/* Consumer: the next run of whole records, *n bytes, which it may change; NULL when there is none.
 */
uint8_t *hed_trace_ring_peek(struct hed_trace_ring *r, size_t *n);

/* Consumer: a run that was peeked has been written. */
void hed_trace_ring_take(struct hed_trace_ring *r, size_t n);
