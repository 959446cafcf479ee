/* The lease socket: where a worker asks the listener for leases of memory, and offers what other
 * workers of its owner may open.
 *
 *   worker ──struct hed_lease_socket_ask──> listener    one packet each way, over a pair of sockets
 *          <──struct hed_lease_socket_answer──          that belongs to this worker
 *
 * A worker has one question open at a time. The listener believes nothing: it answers from its own
 * book (listener/ledger.h, listener/offers.h), and never waits for a worker.
 */
#pragma once

#include <stdint.h>

#define HED_LEASE_SOCKET_DEVICES 64
#define HED_LEASE_SOCKET_HOST HED_LEASE_SOCKET_DEVICES /* in place of a device: pinned memory */
#define HED_LEASE_SOCKET_PLACES (HED_LEASE_SOCKET_DEVICES + 1)

enum hed_lease_socket_kind {
    HED_LEASE_SOCKET_TAKE =
        1,                 /* up to `bytes`, at least `least`; the answer: what was leased, or 0 */
    HED_LEASE_SOCKET_GIVE, /* `bytes` back */
    HED_LEASE_SOCKET_OBTAINABLE, /* the answer: what this worker has, and what it could get */
    HED_LEASE_SOCKET_OTHERS,     /* the answer: what all other workers have */
    /* Pieces of the guest's window: */
    HED_LEASE_SOCKET_PIECE_TAKE, /* of `bytes`; the answer: where it begins, or 0 */
    HED_LEASE_SOCKET_PIECE_GIVE, /* `bytes` at `offset` back */
    /* What workers of one owner share (listener/offers.h): */
    HED_LEASE_SOCKET_OFFER,    /* a descriptor comes along; the answer: a key */
    HED_LEASE_SOCKET_WITHDRAW, /* by its key; the answer: bytes of our lease that others have */
    HED_LEASE_SOCKET_OPEN,     /* by its key; the answer: what it is; a descriptor comes along */
    HED_LEASE_SOCKET_CLOSE,    /* by its key: one OPEN is undone */
};

#define HED_LEASE_SOCKET_KEY 16   /* bytes */
#define HED_LEASE_SOCKET_OWNER 32 /* bytes that go from who offers to who opens */
#define HED_LEASE_SOCKET_NO_DEVICE (-1)
/* Bytes of a file of memory beyond the memory itself, at most. */
#define HED_LEASE_SOCKET_MORE 4096u
#define HED_LEASE_SOCKET_EVENT_SIZE 4096u /* bytes of the file of an event */

/* What is offered. An open must name the same. */
enum hed_lease_socket_thing { HED_LEASE_SOCKET_MEMORY = 1, HED_LEASE_SOCKET_EVENT };

struct hed_lease_socket_ask {
    uint32_t kind;
    int32_t device; /* of an OFFER also HED_LEASE_SOCKET_HOST, or _NO_DEVICE: not leased */
    uint64_t bytes, least;
    uint64_t offset;
    uint32_t thing; /* enum hed_lease_socket_thing */
    uint32_t reserved;
    uint8_t key[HED_LEASE_SOCKET_KEY];
    uint8_t owner[HED_LEASE_SOCKET_OWNER];
};

struct hed_lease_socket_answer {
    uint64_t bytes;
    int32_t error; /* of HED_LEASE_SOCKET_OFFER and _OPEN: 0 or HED_E... */
    int32_t device;
    uint8_t key[HED_LEASE_SOCKET_KEY];
    uint8_t owner[HED_LEASE_SOCKET_OWNER];
};

/* For the worker: asks, and waits for the answer. 0 if the listener does not answer. One thread at
 * a time. */
uint64_t hed_lease_socket_ask(int lease_socket, const struct hed_lease_socket_ask *ask);

/* The same with descriptors: `fd` goes along unless it is -1, and `*got`, unless `got` is NULL, is
 * what comes back, or -1. Returns the answer's error, or HED_EIO. */
int hed_lease_socket_exchange(int lease_socket, const struct hed_lease_socket_ask *ask, int fd,
                              struct hed_lease_socket_answer *answer, int *got);
