/* Rings in shared memory: bytes from one writer to one reader, who do not trust each other.
 *
 * Positions count bytes and only go up; a position modulo the ring's size is an offset in it. The
 * same ring carries messages, each in one piece, or bulk, in spans.
 *
 *        shown head        mine (reader)        shown tail        mine (writer)
 *   free │ read, not told   │ written            │ being written   │ free
 *
 * Invariants:
 * 1. head <= tail <= head + size. Each side keeps its own position private and tells the peer. What
 *    it reads from the peer is checked against this, and that it does not go back, every time.
 * 2. A message begins at a multiple of HED_MSG_ALIGN and does not wrap. A pad fills what is left at
 *    the end of the ring; it is told together with the message after it.
 * 3. A size is read from shared memory once. The reader returns a private copy of a message.
 * 4. An error is sticky: a ring that has failed keeps answering with that error.
 */
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "remote/wire/channel/wait.h"

/* In shared memory. Each word has its own cache lines, so that writing one does not slow down the
 * other. The parked words change only when a side sleeps, so reading them is cheap. */
#define HED_RING_LINE 128
struct hed_ring_words {
    alignas(HED_RING_LINE) _Atomic uint64_t tail;          /* the writer has written up to here */
    alignas(HED_RING_LINE) _Atomic uint64_t head;          /* the reader has read up to here */
    alignas(HED_RING_LINE) _Atomic uint32_t reader_parked; /* the reader waits for the tail */
    alignas(HED_RING_LINE) _Atomic uint32_t writer_parked; /* the writer waits for the head */
};

#define HED_RING_PAD UINT32_MAX /* instead of a size: nothing more up to the end of the ring */
#define HED_RING_SPANS 64       /* most spans that are tracked at once */

/* Spans of bulk that were given out to be filled and have not been put yet: their sizes. */
struct hed_spans {
    uint32_t first, count;
    uint32_t size[HED_RING_SPANS];
};
int hed_spans_add(struct hed_spans *s, size_t n);
/* n bytes of the oldest span count. Fewer than all of them only if there is no other span. */
int hed_spans_take(struct hed_spans *s, size_t n);

/* What has been taken from a bulk ring and not given back, oldest first: spans that the caller uses
 * in place, and bytes that were copied out after such a span. Neighbours of the same kind are
 * merged. */
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
    uint64_t peer;          /* what the peer told last */
    uint64_t begun;         /* writer: where the message that is being filled begins */
    uint32_t room;          /* writer: its bytes; 0 if none is being filled */
    int error;              /* sticky; 0 or HED_E... */
    struct hed_spans spans; /* writer of bulk */
    struct hed_taken taken; /* reader of bulk */
    struct hed_waiter waiter;
};

void hed_ring_init(struct hed_ring *r, struct hed_ring_words *words, void *bytes, uint64_t size,
                   uint64_t unit, struct hed_conn *conn);

/* Messages, as in channel.h. `into` has HED_MSG_MAX bytes. */
void *hed_ring_begin(struct hed_ring *r, uint32_t size);
int hed_ring_end(struct hed_ring *r, uint32_t size, bool urgent);
int hed_ring_next(struct hed_ring *r, int timeout_ms, void *into);

/* Bulk, as in channel.h. HED_ESTATE if the caller uses all of the ring, or if the bytes would
 * overtake a span that is being filled. HED_ELIMIT if there are more than HED_RING_SPANS spans. */
int hed_ring_write(struct hed_ring *r, const void *p, size_t n);
int hed_ring_space(struct hed_ring *r, size_t want, void **p, size_t *n);
int hed_ring_put(struct hed_ring *r, size_t n);
int hed_ring_read(struct hed_ring *r, void *p, size_t n);
int hed_ring_peek(struct hed_ring *r, size_t most, void **p, size_t *n);
int hed_ring_done(struct hed_ring *r, size_t n);
