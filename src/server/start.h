/* What the two programs of heddled, listener and worker, share besides the ledger: how a worker is
 * started. The listener forks, and the child calls hed_worker_run().
 */
#pragma once

#include <stdint.h>

struct hed_ledger;
struct hed_link;
struct hed_tls;
struct hed_worker_status;

/* What the listener gives to a worker that it starts. */
struct hed_worker_start {
    int conn;                    /* the client's first connection; the preface has been read */
    int control;                 /* unix socket over which the listener sends further connections */
    const struct hed_link *link; /* of the client's connections */
    const struct hed_tls *tls;   /* NULL for a local link */
    uint8_t session[16];
    uint64_t memory_limit;     /* bytes per device; 0 for no limit */
    uint64_t host_limit;       /* bytes of pinned memory; 0 for no limit */
    uint32_t channel_limit;    /* 0 for no limit */
    uint32_t idle_ms;          /* the session ends after this time without a message; 0 for never */
    int hello_ms;              /* how long the hello, or the first message of a channel, may take */
    const char *token;         /* a client without a certificate must know it; NULL for none */
    const char *images;        /* folder of stored images; "" for none */
    struct hed_ledger *ledger; /* shared by all workers; holds their leases of device memory */
    struct hed_worker_status *status; /* this worker's line in the ledger, for --status */
};

/* Serves the client until it is gone, and then ends the process. */
int hed_worker_run(const struct hed_worker_start *start);
