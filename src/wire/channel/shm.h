/* A channel over shared memory: its rings, and the memory that both sides map. For shm.c; tests
 * look inside to play a hostile peer.
 */
#pragma once

#include <stdint.h>

#include "wire/channel/channel.h"
#include "wire/channel/ring.h"

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
};

static inline struct hed_shm_channel *
hed_shm_of(struct hed_channel *ch)
{
    return (struct hed_shm_channel *)ch;
}
