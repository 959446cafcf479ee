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
 *    producer.
 * 2. A reservation is handed out only when head + slack <= tail + size, so neither a record nor the
 *    slack of the lap before is overwritten.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_trace_ring {
    uint8_t *data;   /* size + slack bytes; owned */
    uint64_t size;   /* bytes of a lap */
    uint64_t slack;  /* the longest record */
    uint64_t thread; /* kernel id of the producer; constant */

    _Atomic uint64_t head;    /* stored by the producer, release; loaded by the consumer, acquire */
    _Atomic uint64_t tail;    /* stored by the consumer, release; loaded by the producer, acquire */
    _Atomic uint64_t lap_end; /* where the last full lap ended; published by head */
    _Atomic uint64_t records; /* written by the producer, relaxed */
    _Atomic uint64_t dropped_before; /* the same: records given up, as far as the trace says so */
    _Atomic uint64_t dropped;        /* the same: records given up since the last dropped-record */
    _Atomic uint32_t drained;        /* futex: counts the consumer's rounds while somebody waits */
    _Atomic bool waiting;            /* the producer sleeps on drained */
    _Atomic bool closed;             /* the thread has ended */
    uint64_t known_tail;             /* the producer's last look at tail */
    char name[16];               /* of the thread; written to the file before its first record */
    bool named;                  /* the consumer's: that has been done */
    struct hed_trace_ring *next; /* the writer's list */
};

/* NULL when there is no memory. */
struct hed_trace_ring *hed_trace_ring_create(uint64_t size, uint64_t slack, uint64_t thread);
void hed_trace_ring_free(struct hed_trace_ring *r);

/* Producer: room for one record of up to `slack` bytes, or NULL while the ring is full. */
uint8_t *hed_trace_ring_reserve(struct hed_trace_ring *r);

/* Producer: the record that was reserved is `size` bytes long and may be written. */
void hed_trace_ring_commit(struct hed_trace_ring *r, size_t size);

/* Producer: bytes not yet taken, as far as it knows. */
static inline uint64_t
hed_trace_ring_used(const struct hed_trace_ring *r)
{
    return atomic_load_explicit(&r->head, memory_order_relaxed) - r->known_tail;
}

/* Consumer: the next run of whole records, *n bytes; NULL when there is none. */
const uint8_t *hed_trace_ring_peek(struct hed_trace_ring *r, size_t *n);

/* Consumer: a run that was peeked has been written. */
void hed_trace_ring_take(struct hed_trace_ring *r, size_t n);
