/* What the two programs of heddled, listener and worker, share besides the lease socket and the
 * status: how a worker is started. The listener forks, and the child calls hed_worker_run(), or
 * hed_worker_spare() if no client has come yet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "remote/wire/conn.h"
#include "remote/wire/wire.h"

struct hed_link;
struct hed_why;
struct hed_worker_status;

/* What the listener gives to a worker that it starts. */
struct hed_worker_start {
    int conn;    /* the client's first connection; the hello has been read. A spare has -1 at first,
               * and neither link, state, hello, window, peer nor client */
    int control; /* unix socket over which the listener sends further connections */
    const struct hed_link *link;        /* of the client's connections */
    const struct hed_conn_state *state; /* where the connection goes on */
    const struct hed_hello *hello;
    uint8_t session[16];
    int window; /* the file of the guest's window; 0 if there is none */
    uint64_t window_size;
    uint8_t window_id[16];
    uint64_t memory_limit;  /* bytes per device, which the client sees; 0 for no limit */
    uint64_t memory_room;   /* bytes over that for what comes with code */
    uint64_t host_limit;    /* bytes of pinned memory; 0 for no limit */
    uint32_t channel_limit; /* 0 for no limit */
    uint32_t idle_ms;       /* the session ends after this time without a message; 0 for never */
    uint32_t session_ms;    /* the session ends after this time; 0 for never */
    uint32_t kernel_ms;     /* of one kernel; 0 for no limit */
    uint32_t park_ms;       /* for a client that has parked its worker to return; 0: none may */
    uint32_t compile_ms;    /* of processor time to compile one kernel; 0 for no limit */
    int hello_ms;           /* how long the first message of a channel may take */
    const char *images;     /* folder of stored images; "" for none */
    uint64_t images_most, images_reserve; /* bytes in it; bytes that stay free on its disk */
    const char *cache; /* folder of compiled kernels; "" for none; NULL: as the settings say */
    bool confined;     /* it cannot find out about other processes */
    bool warm;         /* begin as a spare does: addresses are then the same in all workers */
    bool group;        /* other workers of this client, other users, share these folders */
    int lease_socket;  /* socket for leases of device memory; 0: all is granted */
    bool offers;       /* it may share memory and events with other workers of its owner */
    int notice;        /* remote/server/notice.h; 0: there is none */
    struct hed_worker_status *status; /* shared with the listener, for --status; may be NULL */
    const char *peer;                 /* the client in the log: its address, or "local" */
    uint32_t client_pid, client_uid;  /* of a local link */
};

/* What kind of work the settings ask of workers. */
struct hed_worker_plan {
    bool driver;      /* NVIDIA's driver is used */
    bool cpu;         /* the CPU GPU is used, so that clients' kernels are code in the worker */
    bool shares;      /* a layer works with files or with other processes */
    char cache[4096]; /* the folder of kernels that heddle or the driver compiled; "" for none */
};
void hed_worker_look(struct hed_worker_plan *out);

/* Loads what a worker takes from the file system, as far as it is known before the client has said
 * anything: settings, the backend. Makes no thread, and reads nothing from the
 * client. */
int hed_worker_prepare(const struct hed_worker_start *start, struct hed_why *why);

/* Forks the process that compiles this worker's kernels (kernel/forkserver/forkserver.h), because
 * the worker itself can fork nothing later. `forkserver` and `compiler` are what these processes
 * give up first; they may be NULL. `folder` is that of heddle's libraries. 0 or a negative
 * errno. */
int hed_worker_forkserver(const char *folder, int (*forkserver)(void), int (*compiler)(void),
                          struct hed_why *why);

/* Serves the client until it is gone, and then ends the process. */
int hed_worker_run(const struct hed_worker_start *start);

/* What a spare worker is told when its client comes, together with the connection: the rest of
 * struct hed_worker_start. It is one packet on the control socket. */
struct hed_worker_client {
    const struct hed_link *link; /* the same address in both: the spare is a fork of the listener */
    struct hed_conn_state state;
    struct hed_hello hello;
    char peer[64];
    uint32_t client_pid, client_uid;
    bool offers;
};

/* Starts the backend, retains the primary context of the first device, says in its status that it
 * is ready, and waits for a client. Then it does as hed_worker_run(). */
int hed_worker_spare(struct hed_worker_start *start);

/* In a process of its own, that serves nobody: starts the backend, and writes how many bytes of
 * each device may be leased (uint64_t[HED_LEASE_SOCKET_DEVICES]). Returns the status to end
 * with. */
int hed_worker_probe(int fd);
