/* Rings in shared memory: bytes from one writer to one reader, who do not trust each other.
 *
 * Positions count bytes and only go up; a position modulo the ring's size is a place in it. The
 * same ring carries messages, each in one piece, or bulk, in spans.
 *
 *        shown head        mine (reader)        shown tail        mine (writer)
 *   free │ read, not told   │ written            │ being written   │ free
 *
 * Invariants:
 * 1. head <= tail <= head + size. Either side keeps its own position to itself and tells the peer;
 *    what it hears from the peer is checked against this, and that it does not go back, every time.
 * 2. A message begins at a multiple of HED_MSG_ALIGN and does not wrap: what is left at the end of
 *    the ring is filled by a pad, which is told together with the message behind it.
 * 3. A size is read from shared memory once. What is returned of a message is a private copy.
 * 4. An error stays: a ring that failed gives the same answer for ever.
 */
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/channel/wait.h"

/* In shared memory. Each word has lines of its own: who writes one does not slow the other. The
 * parked words change only when somebody sleeps, so looking at them is cheap. */
#define HED_RING_LINE 128
struct hed_ring_words {
    alignas(HED_RING_LINE) _Atomic uint64_t tail;          /* written up to here; the writer's */
    alignas(HED_RING_LINE) _Atomic uint64_t head;          /* read up to here; the reader's */
    alignas(HED_RING_LINE) _Atomic uint32_t reader_parked; /* waits for the tail */
    alignas(HED_RING_LINE) _Atomic uint32_t writer_parked; /* waits for the head */
};

#define HED_RING_PAD UINT32_MAX /* in place of a message's size: nothing more up to the end */
#define HED_RING_SPANS 64       /* most spans that are kept account of at once */

/* Spans of bulk that have been given out to be filled and are not yet put: their sizes. */
struct hed_spans {
    uint32_t first, count;
    uint32_t size[HED_RING_SPANS];
};
int hed_spans_add(struct hed_spans *s, size_t n);
/* n bytes of the oldest count. Less than all of it: only if there is no other. */
int hed_spans_take(struct hed_spans *s, size_t n);

/* What of a bulk ring has been taken and not been given back, oldest first: spans that the caller
 * uses in place, and what was copied out behind such a span. Neighbours of a kind are one. */
struct hed_taken {
    uint32_t first, count;
    struct {
        uint32_t size;
        bool finished;
    } span[HED_RING_SPANS];
};

struct hed_ring { /* one side's view */
    struct hed_ring_words *words;
    uint8_t *bytes;
    uint64_t size;          /* a power of two */
    uint64_t unit;          /* positions are multiples of it */
    uint64_t mine;          /* how far this side is: given out to be filled, or taken */
    uint64_t shown;         /* what the peer has been told */
    uint64_t peer;          /* what the peer said last */
    uint64_t begun;         /* writer: where the message that is being filled begins */
    uint32_t room;          /* writer: its bytes; 0: none is being filled */
    int error;              /* sticky; 0 or HED_E... */
    struct hed_spans spans; /* writer of bulk */
    struct hed_taken taken; /* reader of bulk */
    struct hed_waiter waiter;
};

void hed_ring_init(struct hed_ring *r, struct hed_ring_words *words, void *bytes, uint64_t size,
                   uint64_t unit, struct hed_conn *conn);

/* Messages, as in channel.h. next: `into` has HED_MSG_MAX bytes. */
void *hed_ring_begin(struct hed_ring *r, uint32_t size);
int hed_ring_end(struct hed_ring *r, uint32_t size, bool urgent);
int hed_ring_next(struct hed_ring *r, int timeout_ms, void *into);

/* Bulk, as in channel.h. HED_ESTATE: all of the ring is in the caller's hands, or what is written
 * would overtake a span that is being filled. HED_ELIMIT: over HED_RING_SPANS. */
int hed_ring_write(struct hed_ring *r, const void *p, size_t n);
int hed_ring_space(struct hed_ring *r, size_t want, void **p, size_t *n);
int hed_ring_put(struct hed_ring *r, size_t n);
int hed_ring_read(struct hed_ring *r, void *p, size_t n);
int hed_ring_peek(struct hed_ring *r, size_t most, void **p, size_t *n);
int hed_ring_done(struct hed_ring *r, size_t n);
