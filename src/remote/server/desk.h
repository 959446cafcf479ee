/* The desk: where a worker asks the listener for leases of memory, and offers what other workers of
 * its owner may open.
 *
 *   worker ──struct hed_desk_ask──> listener    one packet each way, over a pair of sockets
 *          <──struct hed_desk_answer──          that belongs to this worker
 *
 * A worker has one question open at a time. The listener believes nothing: it answers from its own
 * book (listener/ledger.h, listener/offers.h), and never waits for a worker.
 */
#pragma once

#include <stdint.h>

#define HED_DESK_DEVICES 64
#define HED_DESK_HOST HED_DESK_DEVICES /* in place of a device: pinned memory */
#define HED_DESK_PLACES (HED_DESK_DEVICES + 1)

enum hed_desk_kind {
    HED_DESK_TAKE = 1,   /* up to `bytes`, at least `least`; the answer: what was leased, or 0 */
    HED_DESK_GIVE,       /* `bytes` back */
    HED_DESK_OBTAINABLE, /* the answer: what this worker has, and what it could get */
    HED_DESK_OTHERS,     /* the answer: what all other workers have */
    /* Pieces of the guest's window: */
    HED_DESK_PIECE_TAKE, /* of `bytes`; the answer: where it begins, or 0 */
    HED_DESK_PIECE_GIVE, /* `bytes` at `offset` back */
    /* What workers of one owner share (listener/offers.h): */
    HED_DESK_OFFER,    /* a descriptor comes along; the answer: a key */
    HED_DESK_WITHDRAW, /* by its key; the answer: bytes of this worker's lease that others have */
    HED_DESK_OPEN,     /* by its key; the answer: what it is; a descriptor comes along */
    HED_DESK_CLOSE,    /* by its key: one OPEN is undone */
};

#define HED_DESK_KEY 16   /* bytes */
#define HED_DESK_OWNER 32 /* bytes that go from who offers to who opens */
#define HED_DESK_NO_DEVICE (-1)
#define HED_DESK_MORE 4096u       /* bytes of a file of memory beyond the memory itself, at most */
#define HED_DESK_EVENT_SIZE 4096u /* bytes of the file of an event */

/* What is offered. An open must name the same. */
enum hed_desk_thing { HED_DESK_MEMORY = 1, HED_DESK_EVENT };

struct hed_desk_ask {
    uint32_t kind;
    int32_t device; /* of HED_DESK_OFFER also HED_DESK_HOST, or HED_DESK_NO_DEVICE: not leased */
    uint64_t bytes, least;
    uint64_t offset;
    uint32_t thing; /* enum hed_desk_thing */
    uint32_t reserved;
    uint8_t key[HED_DESK_KEY];
    uint8_t owner[HED_DESK_OWNER];
};

struct hed_desk_answer {
    uint64_t bytes;
    int32_t error; /* of HED_DESK_OFFER and _OPEN: 0 or HED_E... */
    int32_t device;
    uint8_t key[HED_DESK_KEY];
    uint8_t owner[HED_DESK_OWNER];
};

/* For the worker: asks, and waits for the answer. 0 if the listener does not answer. One thread at
 * a time. */
uint64_t hed_desk_ask(int desk, const struct hed_desk_ask *ask);

/* The same with descriptors: `fd` goes along unless it is -1, and `*got`, unless `got` is NULL, is
 * what comes back, or -1. Returns the answer's error, or HED_EIO. */
int hed_desk_exchange(int desk, const struct hed_desk_ask *ask, int fd,
                      struct hed_desk_answer *answer, int *got);
