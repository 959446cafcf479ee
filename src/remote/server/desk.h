/* The desk: where a worker asks the listener for leases of memory.
 *
 *   worker ──struct hed_desk_ask──> listener    one packet each way, over a pair of sockets
 *          <──struct hed_desk_answer──          that belongs to this worker
 *
 * A worker has one question open at a time. The listener believes nothing: it answers from its own
 * book (listener/ledger.h), and never waits for a worker.
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
};

struct hed_desk_ask {
    uint32_t kind;
    int32_t device;
    uint64_t bytes, least;
    uint64_t offset;
};

struct hed_desk_answer {
    uint64_t bytes;
};

/* For the worker: asks, and waits for the answer. 0 if the listener does not answer. One thread at
 * a time. */
uint64_t hed_desk_ask(int desk, const struct hed_desk_ask *ask);
