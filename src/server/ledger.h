/* The ledger: how much memory of each device the workers of a server have leased, and what each
 * worker is doing. It lies in memory that the listener shares with the workers it forks.
 *
 * Invariants:
 * 1. The workers' lines are the only truth; no total is kept beside them that could disagree. The
 *    listener clears a line when it reaps the worker, so nothing leaks however and whenever the
 *    worker died.
 * 2. A worker adds the amount it wants to its own line before it adds up all lines, and keeps no
 *    more than the sum leaves room for. So the workers together never keep more than the total. The
 *    gate only prevents two workers from giving way to each other; no worker waits for it longer
 *    than HED_LEDGER_GATE_MS.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define HED_LEDGER_DEVICES 64
#define HED_LEDGER_WORKERS 1024
#define HED_LEDGER_GATE_MS 20

struct hed_worker_status { /* written by the worker, read by the listener, word by word */
    _Atomic uint32_t used; /* 1 if the line belongs to a worker */
    _Atomic uint32_t pid;
    _Atomic uint64_t started_ns;
    _Atomic uint64_t messages, bytes_in, bytes_out, launches;
    _Atomic uint64_t last_ns; /* when the last message arrived */
    _Atomic uint32_t channels;
    _Atomic uint32_t failed;                     /* CUresult */
    _Atomic uint64_t leased[HED_LEDGER_DEVICES]; /* bytes */
    _Atomic uint64_t host;                       /* bytes of pinned memory */
    uint32_t client_pid, client_uid;             /* constant once `used` is 1 */
    char peer[64];                               /* address, or "local" */
    char program[64];                            /* written once, when the hello arrives */
};

struct hed_ledger {
    _Atomic uint64_t total[HED_LEDGER_DEVICES]; /* bytes that may be leased in all; 0: unknown */
    _Atomic uint32_t gate;                      /* 0: free; else 1 + the asking worker's line */
    _Atomic uint32_t lines;                     /* lines after this have never been used */
    struct hed_worker_status workers[HED_LEDGER_WORKERS];
};

/* For a worker: leases up to `want` and at least `least` bytes of a device. Returns the number of
 * bytes, 0 if there are fewer than `least`. `limit` is the most that this worker may have; 0 means
 * no limit. */
uint64_t hed_ledger_take(struct hed_ledger *l, struct hed_worker_status *w, int device,
                         uint64_t want, uint64_t least, uint64_t limit);
void hed_ledger_give(struct hed_ledger *l, struct hed_worker_status *w, int device, uint64_t bytes);

/* Returns how much of a device all workers have leased: the sum of the lines. Any process may call
 * it at any time. */
uint64_t hed_ledger_leased(const struct hed_ledger *l, int device);

/* For the listener, before it forks: creates the ledger in shared memory, all zero. NULL if there
 * is no memory. */
struct hed_ledger *hed_ledger_create(void);
void hed_ledger_free(struct hed_ledger *l); /* NULL is allowed */

/* For the listener: finds a line for a new worker (NULL if all are taken); clears the line of a
 * dead worker. */
struct hed_worker_status *hed_ledger_enter(struct hed_ledger *l);
void hed_ledger_clear(struct hed_ledger *l, struct hed_worker_status *w);
