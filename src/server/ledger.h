/* The ledger: what is leased of each device's memory, by all workers of a server, and what each
 * worker is doing; in memory that the listener shares with the workers it forks.
 *
 * Invariants:
 * 1. The workers' lines are the truth; there is no sum beside them that could disagree. A line goes
 *    when the listener reaps its worker, so nothing leaks however and whenever that died.
 * 2. A worker writes what it would like into its line before it adds all lines up, and keeps no
 *    more than the sum leaves room for: what was granted is never over the total. The gate only
 *    keeps two from giving way to each other; nobody waits for it longer than HED_LEDGER_GATE_MS.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define HED_LEDGER_DEVICES 64
#define HED_LEDGER_WORKERS 1024
#define HED_LEDGER_GATE_MS 20

struct hed_worker_status { /* written by the worker, read by the listener; words are independent */
    _Atomic uint32_t used; /* 1: belongs to a worker */
    _Atomic uint32_t pid;
    _Atomic uint64_t started_ns;
    _Atomic uint64_t messages, bytes_in, bytes_out, launches;
    _Atomic uint64_t last_ns; /* when the last message came */
    _Atomic uint32_t channels;
    _Atomic uint32_t failed;                     /* CUresult */
    _Atomic uint64_t leased[HED_LEDGER_DEVICES]; /* bytes */
    _Atomic uint64_t host;                       /* bytes of pinned memory */
    uint32_t client_pid, client_uid;             /* constant once `used` is 1 */
    char peer[64];                               /* address, or "local" */
    char program[64];                            /* written once, at hello */
};

struct hed_ledger {
    _Atomic uint64_t total[HED_LEDGER_DEVICES]; /* bytes to be leased in all; 0: not known yet */
    _Atomic uint32_t gate;                      /* 0: free; else 1 + the line of who is asking */
    _Atomic uint32_t lines;                     /* lines behind this were never used */
    struct hed_worker_status workers[HED_LEDGER_WORKERS];
};

/* For a worker: takes up to `want` bytes of a device, at least `least`; 0: there are not so many.
 * limit: of this worker; 0: none. */
uint64_t hed_ledger_take(struct hed_ledger *l, struct hed_worker_status *w, int device,
                         uint64_t want, uint64_t least, uint64_t limit);
void hed_ledger_give(struct hed_ledger *l, struct hed_worker_status *w, int device, uint64_t bytes);

/* What is leased of a device by all: the sum of the lines. Anybody, at any time. */
uint64_t hed_ledger_leased(const struct hed_ledger *l, int device);

/* For the listener, before it forks: shared memory, all zero. NULL: there is none. */
struct hed_ledger *hed_ledger_create(void);
void hed_ledger_free(struct hed_ledger *l); /* NULL is fine */

/* For the listener: a line for a new worker (NULL: all are taken); a dead worker's is cleared. */
struct hed_worker_status *hed_ledger_enter(struct hed_ledger *l);
void hed_ledger_clear(struct hed_ledger *l, struct hed_worker_status *w);
