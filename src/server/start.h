/* What the two programs of heddled, listener and worker, share besides the desk and the status: how
 * a worker is started. The listener forks, and the child calls hed_worker_run().
 */
#pragma once

#include <stdint.h>

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
    uint64_t memory_limit;  /* bytes per device, which the client sees; 0 for no limit */
    uint64_t host_limit;    /* bytes of pinned memory; 0 for no limit */
    uint32_t channel_limit; /* 0 for no limit */
    uint32_t idle_ms;       /* the session ends after this time without a message; 0 for never */
    int hello_ms;           /* how long the hello, or the first message of a channel, may take */
    const char *token;      /* a client without a certificate must know it; NULL for none */
    const char *images;     /* folder of stored images; "" for none */
    int desk;               /* socket for leases of device memory; 0: all is granted */
    struct hed_worker_status *status; /* shared with the listener, for --status; may be NULL */
    const char *peer;                 /* the client in the log: its address, or "local" */
    uint32_t client_pid, client_uid;  /* of a local link */
};

/* Serves the client until it is gone, and then ends the process. */
int hed_worker_run(const struct hed_worker_start *start);

/* In a process of its own, that serves nobody: starts the backend, and writes how many bytes of
 * each device may be leased (uint64_t[HED_DESK_DEVICES]). Returns the status to end with. */
int hed_worker_probe(int fd);
