/* A channel over shared memory: its rings, and the memory that both sides map. For shm.c, window.c
 * and rings.c; tests look inside to play a hostile peer.
 */
#pragma once

#include <stdint.h>

#include "remote/wire/channel/channel.h"
#include "remote/wire/channel/ring.h"

/* The shared memory of a channel: the words of four rings, then the rings' bytes. Every part begins
 * at a multiple of 64 KiB, the largest page size. The total is no multiple of 2 MiB, so it cannot
 * be memory of huge pages, of which none may be left when it is touched. */
enum hed_shm_ring { HED_SHM_CALL, HED_SHM_ANSWER, HED_SHM_BULK_IN, HED_SHM_BULK_OUT };
#define HED_SHM_RINGS 4
#define HED_SHM_WORDS (UINT32_C(64) << 10)
#define HED_SHM_CALL_SIZE (UINT32_C(256) << 10)   /* client to worker */
#define HED_SHM_ANSWER_SIZE (UINT32_C(128) << 10) /* worker to client */
#define HED_SHM_SIZE \
    (HED_SHM_WORDS + HED_SHM_CALL_SIZE + HED_SHM_ANSWER_SIZE + 2 * HED_CHANNEL_STAGED)

struct hed_shm_memory {
    struct hed_ring_words rings[HED_SHM_RINGS]; /* enum hed_shm_ring */
    _Alignas(64) _Atomic uint32_t beats;        /* the worker's signs of life */
};

_Static_assert(sizeof(struct hed_shm_memory) <= HED_SHM_WORDS,
               "the words fit in front of the rings");
_Static_assert(HED_SHM_SIZE % (2 << 20) != 0, "it is no memory of huge pages");
_Static_assert(HED_SHM_ANSWER_SIZE >= 2 * HED_MSG_MAX, "a pad and a message always fit");

struct hed_shm_channel {
    struct hed_channel channel;
    struct hed_shm_memory *memory; /* HED_SHM_SIZE bytes, mapped */
    struct hed_ring out, in, bulk_out, bulk_in;
    struct hed_doorbell doorbell; /* of window.c */
};

static inline struct hed_shm_channel *
hed_shm_of(struct hed_channel *ch)
{
    return (struct hed_shm_channel *)ch;
}

/* ---- rings.c --------------------------------------------------------------------------------- */

/* Sets up this side's view of the rings in s->memory. */
void hed_rings_init(struct hed_shm_channel *s, struct hed_conn *conn, bool client);

void hed_rings_forked(struct hed_channel *ch);
void *hed_rings_begin(struct hed_channel *ch, uint32_t size);
int hed_rings_end(struct hed_channel *ch, uint32_t size, bool urgent);
int hed_rings_next(struct hed_channel *ch, int timeout_ms);
void hed_rings_beat(struct hed_channel *ch);
int hed_rings_patience(struct hed_channel *ch, int ms);
void hed_rings_last(struct hed_channel *ch, const struct hed_end *end);
int hed_rings_read_last(struct hed_channel *ch, struct hed_end *out);
int hed_rings_bulk_write(struct hed_channel *ch, const void *p, size_t n);
int hed_rings_bulk_space(struct hed_channel *ch, size_t want, void **p, size_t *n);
int hed_rings_bulk_put(struct hed_channel *ch, size_t n);
int hed_rings_bulk_read(struct hed_channel *ch, void *p, size_t n);
int hed_rings_bulk_peek(struct hed_channel *ch, size_t most, void **p, size_t *n);
int hed_rings_bulk_done(struct hed_channel *ch, size_t n);
void *hed_rings_bulk_area(struct hed_channel *ch, int direction);

/* The operations that do not depend on where the memory comes from. */
#define HED_RINGS_OPS                                                                             \
    .forked = hed_rings_forked, .begin = hed_rings_begin, .end = hed_rings_end,                   \
    .next = hed_rings_next, .beat = hed_rings_beat, .patience = hed_rings_patience,               \
    .beat_ms = HED_CHANNEL_BEAT_SHM_MS, .last = hed_rings_last, .read_last = hed_rings_read_last, \
    .bulk_write = hed_rings_bulk_write, .bulk_space = hed_rings_bulk_space,                       \
    .bulk_put = hed_rings_bulk_put, .bulk_read = hed_rings_bulk_read,                             \
    .bulk_peek = hed_rings_bulk_peek, .bulk_done = hed_rings_bulk_done,                           \
    .bulk_area = hed_rings_bulk_area
