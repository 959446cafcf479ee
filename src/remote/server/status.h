/* What a worker tells about itself, for --status and the log: a page that it shares with the
 * listener, and with no other worker. The listener reads it word by word, and believes none. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct hed_worker_status {
    _Atomic uint64_t messages, bytes_in, bytes_out, launches;
    _Atomic uint64_t last_ns; /* when the last message arrived */
    _Atomic uint32_t channels;
    _Atomic uint32_t failed;    /* CUresult */
    _Atomic uint32_t orders;    /* 1: the client has a connection on which it takes orders */
    _Atomic uint64_t host;      /* bytes of pinned memory */
    _Atomic uint64_t parked_ns; /* since when the client is away; 0: it is not */
    _Atomic uint32_t ready;     /* a spare worker waits for its client */
    _Atomic uint32_t looks;     /* 1: the client looks for room (HED_LOOKS_FOR_ROOM) */
    char program[64];           /* written once, when the hello arrives */
    _Atomic uint32_t evicted;   /* written by the listener: an operator ends the session */
};

/* For the listener: a page for a new worker, all zero. NULL if there is no memory. It goes to the
 * next process that is forked; once that is kept, to no later one. */
struct hed_worker_status *hed_status_create(void);
void hed_status_keep(struct hed_worker_status *s);
void hed_status_free(struct hed_worker_status *s); /* NULL is allowed */
