/* What the two programs of heddled, listener and worker, have in common besides the ledger: how a
 * worker is started. The listener forks; the child calls hed_worker_run().
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
    int control;                 /* unix socket: the listener sends further connections over it */
    const struct hed_link *link; /* of the client's connections */
    const struct hed_tls *tls;   /* NULL: a local link has none */
    uint8_t session[16];
    uint64_t memory_limit;     /* bytes per device; 0: none */
    uint64_t host_limit;       /* bytes of pinned memory; 0: none */
    uint32_t channel_limit;    /* 0: none */
    uint32_t idle_ms;          /* the session ends after this time without a message; 0: never */
    int hello_ms;              /* how long the hello, or a channel's first message, may take */
    const char *token;         /* a client without a certificate must show it; NULL: none */
    const char *images;        /* folder of cached images; "" for none */
    struct hed_ledger *ledger; /* shared by all workers: what is leased of each device */
    struct hed_worker_status *status; /* this worker's line of it, for --status */
};

/* Serves the client until it is gone, and then ends the process. */
int hed_worker_run(const struct hed_worker_start *start);
