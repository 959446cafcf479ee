/* The listener: heddled's main process. It takes connections, decides whose they are and whether
 * they may, and makes a worker for each new client. docs/internals/server.md.
 *
 *   accept ──> peer: 32 bytes of preface ──┬─ NEW ─────> limits ──> fork a worker (worker.h)
 *   (listen.c)            (peer.c)         ├─ CHANNEL ─> its descriptor goes to the client's worker
 *                                          └─ STATUS ──> JSON (status.c), unix sockets only
 *
 * One thread, one epoll; nothing blocks but the fork itself. It makes no CUDA call, ever, so that
 * every worker begins with a process that no driver has seen.
 *
 * Invariants:
 * 1. A child exists exactly as long as its line in the ledger: both begin in hed_child_start() and
 *    end in hed_child_reap().
 * 2. There are at most HED_PEERS_MAX connections without an owner, each for at most --patience; the
 *    oldest goes when one more comes.
 * 3. A worker ends with the listener, however that ends (PR_SET_PDEATHSIG).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/ledger.h"
#include "wire/conn.h"
#include "wire/transport.h"
#include "wire/wire.h"

struct hed_buf;
struct hed_why;

#define HED_LISTENERS_MAX 16
#define HED_PEERS_MAX 256
#define HED_KILL_MS 1000 /* that a worker has to end by SIGTERM before SIGKILL */
#define HED_ALLOW_MAX 64

/* ---- options.c ------------------------------------------------------------------------------- */

struct hed_server_options {
    struct hed_address listen[HED_LISTENERS_MAX];
    uint32_t listen_count;
    char gpu[4096];
    char log[256];
    char images[1024]; /* "": none */
    uint32_t mode;     /* of sockets' files */
    bool allow_all;    /* every user of this machine */
    uint32_t uids[HED_ALLOW_MAX], uid_count;
    uint32_t gids[HED_ALLOW_MAX], gid_count;
    uint64_t memory, host_memory; /* bytes a client; 0: no limit */
    uint32_t clients, channels;
    uint32_t rate;        /* new clients a second; 0: no limit */
    uint32_t idle_ms;     /* 0: for ever */
    uint32_t patience_ms; /* that a connection has to say what it is */
    uint32_t grace_ms;    /* that clients have to finish when the server is asked to stop */
    struct hed_tls tls;
    char token[128]; /* "": none is asked for */
    bool help;
};

/* The words behind the program's name. HED_EINVAL and others, with the reason. */
int hed_server_options_read(struct hed_server_options *o, int count, char **words,
                            struct hed_why *why);

/* ---- limits.c -------------------------------------------------------------------------------- */

struct hed_bucket { /* so many a second, and as many at once */
    uint32_t rate;
    uint64_t at_ns; /* when it was last looked at */
    double tokens;
};
void hed_bucket_init(struct hed_bucket *b, uint32_t rate, uint64_t now_ns);
bool hed_bucket_take(struct hed_bucket *b, uint64_t now_ns); /* always, with a rate of 0 */

struct hed_peer_user { /* who is on the other end of a unix socket */
    uid_t uid;
    gid_t gid;
    pid_t pid;
};
/* Who it is, and whether the options let them in. False: they do not. */
bool hed_user_may(const struct hed_server_options *o, int fd, struct hed_peer_user *out);

/* ---- the server ------------------------------------------------------------------------------ */

enum hed_source_kind { HED_SOURCE_SIGNALS, HED_SOURCE_LISTENER, HED_SOURCE_PEER };

struct hed_source { /* what epoll names; the first member of what it is part of */
    enum hed_source_kind kind;
};

struct hed_listener {
    struct hed_source source;
    int fd;
    struct hed_address address; /* with the port that it really has */
    dev_t dev;                  /* of the socket's file, to remove no other's */
    ino_t ino;
};

enum hed_peer_state { HED_PEER_PREFACE, HED_PEER_WRITING, HED_PEER_DRAINING, HED_PEER_DEAD };

struct hed_peer { /* a connection that has no owner yet, or is being refused */
    struct hed_source source;
    struct hed_peer *next;
    enum hed_peer_state state;
    int fd;
    const struct hed_link *link;
    struct hed_peer_user user;
    char name[64]; /* address, or "local" */
    uint64_t deadline_ns;
    union {
        struct hed_preface preface;
        unsigned char in[sizeof(struct hed_preface)];
    };
    size_t got;
    unsigned char *out; /* owned; what is being written */
    size_t out_size, out_done;
};

struct hed_child { /* a worker; same index as its line in the ledger */
    pid_t pid;     /* 0: none */
    int control;
    const struct hed_link *link;
    uid_t uid;
    uint8_t session[16];
    uint64_t started_wall_ns;
};

struct hed_server {
    const struct hed_server_options *options;
    int epoll, signals;
    struct hed_source signal_source;
    struct hed_listener listeners[HED_LISTENERS_MAX];
    uint32_t listener_count;
    bool deaf; /* out of descriptors: no accept() until deaf_until_ns */
    uint64_t deaf_until_ns;

    struct hed_peer *peers;        /* oldest first */
    uint32_t peer_count;           /* of them that are not dead */
    struct hed_bucket rate, quiet; /* quiet: lines about refusals */
    uint64_t unsaid;               /* refusals without a line */

    const char *images; /* the folder, if it is there; else "" */
    struct hed_ledger *ledger;
    struct hed_child children[HED_LEDGER_WORKERS];
    uint32_t child_count;

    uint64_t started_ns;
    uint64_t accepted, refused, served;

    bool stopping, killed;
    uint64_t stop_ns; /* when the next, harder step is due */
};

/* Serves until it is told to stop. 0, or HED_E... and the reason: it could not begin. */
int hed_server_run(const struct hed_server_options *o, struct hed_why *why);

/* ---- listen.c -------------------------------------------------------------------------------- */

int hed_listen_open(struct hed_server *s, struct hed_why *why);
void hed_listen_close(struct hed_server *s); /* and removes the sockets' files */
void hed_listen_accept(struct hed_server *s, struct hed_listener *l);
void hed_listen_pause(struct hed_server *s, bool pause);

/* ---- peer.c ---------------------------------------------------------------------------------- */

/* Takes the descriptor. */
void hed_peer_add(struct hed_server *s, int fd, const struct hed_link *link, const char *name);
void hed_peer_ready(struct hed_server *s, struct hed_peer *p);
/* Frees the dead and the late, between two turns of the loop. When the next one is late, or
 * UINT64_MAX. */
uint64_t hed_peers_sweep(struct hed_server *s, uint64_t now_ns);
void hed_peers_close(struct hed_server *s);
/* A line in the log about somebody who was not let in; not too many of them. */
void hed_server_refused(struct hed_server *s, const struct hed_peer *p, const char *text);

/* ---- child.c --------------------------------------------------------------------------------- */

/* A worker for a new client. Takes the descriptor unless it fails. */
int hed_child_start(struct hed_server *s, const struct hed_peer *p, struct hed_why *why);
/* One more connection for the worker of that session; the caller keeps its copy. HED_ENOTFOUND:
 * there is none. HED_EACCESS: it is somebody else's. */
int hed_child_pass(struct hed_server *s, const struct hed_peer *p);
void hed_child_reap(struct hed_server *s);
void hed_child_signal(struct hed_server *s, int signal); /* all of them */

/* ---- status.c -------------------------------------------------------------------------------- */

#define HED_STATUS_MAX (8u << 20) /* bytes of the whole text */
void hed_status_write(const struct hed_server *s, struct hed_buf *out);
