/* The ledger: how much memory of each device, and how much pinned memory (HED_LEASE_SOCKET_HOST),
 * the workers of a server have leased.
 *
 * It is the listener's own and in no other process. Workers ask for leases over their lease sockets
 * (remote/server/lease_socket.h); what they say changes their own leases only, and never beyond a
 * limit. The listener clears a worker's leases when it reaps the worker, so nothing leaks however
 * and whenever the worker died.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "remote/server/lease_socket.h"
#include "remote/server/notice.h"

#define HED_LEDGER_WORKERS 1024

/* Beyond what it needs at once, a worker gets this part of what is left. So what all of them have
 * in advance is a small part of a device (a fifth for 256 workers, the default of --clients),
 * however many come, and each later worker finds memory. */
#define HED_LEDGER_PARTS 1024
#define HED_LEDGER_CRUMB (UINT64_C(64) << 10) /* bytes; less is not worth sharing */

struct hed_ledger {
    uint64_t total
        [HED_LEASE_SOCKET_PLACES]; /* bytes that may be leased in all; 0: unknown, or no limit */
    uint64_t kept
        [HED_LEASE_SOCKET_PLACES]; /* bytes of those that are not leased: spare workers take them */
    uint64_t leased[HED_LEDGER_WORKERS][HED_LEASE_SOCKET_PLACES];
    /* Memory of other workers that a worker has opened: it counts for its own limit. */
    uint64_t opened[HED_LEDGER_WORKERS][HED_LEASE_SOCKET_PLACES];
    uint64_t orphaned
        [HED_LEASE_SOCKET_PLACES]; /* bytes that nobody has leased, but somebody has opened */
    struct hed_notice *notice;     /* NULL: nobody is told of changes */
};

/* Leases at least `least` bytes of a device, and up to `want` if that is little compared with what
 * is left. Returns the number of bytes, 0 if there are fewer than `least`. `limit` is the most that
 * a worker may have; 0 means no limit. */
uint64_t hed_ledger_take(struct hed_ledger *l, uint32_t worker, int device, uint64_t want,
                         uint64_t least, uint64_t limit);

/* Gives bytes back; never more than the worker has. */
void hed_ledger_give(struct hed_ledger *l, uint32_t worker, int device, uint64_t bytes);

/* The most that a worker could have: what it has, and what is left. */
uint64_t hed_ledger_obtainable(const struct hed_ledger *l, uint32_t worker, int device,
                               uint64_t limit);

/* How much of a device all workers have leased. */
uint64_t hed_ledger_leased(const struct hed_ledger *l, int device);
/* What all workers but this one have of a device. */
uint64_t hed_ledger_others(const struct hed_ledger *l, uint32_t worker, int device);

/* A worker opens memory of another, if its limit allows that; or closes it. */
bool hed_ledger_open(struct hed_ledger *l, uint32_t worker, int device, uint64_t bytes,
                     uint64_t limit);
void hed_ledger_close(struct hed_ledger *l, uint32_t worker, int device, uint64_t bytes);
/* A worker gives up memory that others have opened: it leaves its lease, and is still taken.
 * Returns how many bytes that is. bury: the last of the others has closed it. */
uint64_t hed_ledger_orphan(struct hed_ledger *l, uint32_t worker, int device, uint64_t bytes);
void hed_ledger_bury(struct hed_ledger *l, int device, uint64_t bytes);

/* What answers depend on has changed otherwise: a total, or a limit. */
void hed_ledger_changed(struct hed_ledger *l);

/* A worker is gone. */
void hed_ledger_clear(struct hed_ledger *l, uint32_t worker);
