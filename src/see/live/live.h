/* What runs now: the programs that share GPUs, and the clients of servers on this machine, with how
 * busy they are. `heddle top` shows it.
 *
 *     shared memory --share/sched/look.h--.
 *     servers ------remote/wire/ask.h----- +--> hed_live_sample(): a view, and rates since the last
 *     /proc -------------------------------'
 *
 * Programs measure their GPU time only while somebody looks. A child process asks them to, as the
 * user whom they belong to: what they write, and locks that they keep, cannot hold up whoever
 * looks. Servers are asked by a thread, for the same reason.
 *
 * Nothing that others say is believed: see look.h and ask.h. Texts of rows may contain anything, so
 * whoever prints them replaces control characters.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "share/share.h"

struct hed_buf;

#define HED_LIVE_SERVERS 8
#define HED_LIVE_ROWS 8192 /* programs and clients; those after them are not shown */
#define HED_LIVE_TEXT 64
#define HED_LIVE_COMMAND 160

enum hed_live_state {
    HED_LIVE_IDLE = HED_SCHED_IDLE,
    HED_LIVE_RUNNING = HED_SCHED_RUNNING,
    HED_LIVE_WAITING = HED_SCHED_WAITING,
    HED_LIVE_PAUSED = HED_SCHED_PAUSED,
    HED_LIVE_OUT = HED_SCHED_OUT,
    HED_LIVE_FAILED, /* a client whose context has failed */
    HED_LIVE_STATES
};

/* A program on a GPU, or a client of a server. */
struct hed_live_row {
    bool is_client;
    size_t where; /* index in gpus, or in servers for a client */
    int32_t pid;  /* 0: it runs on another machine */
    char user[HED_LIVE_TEXT];
    char name[HED_LIVE_TEXT];
    char group[HED_LIVE_TEXT];
    char from[HED_LIVE_TEXT]; /* the address of a client; "" for programs */
    char command[HED_LIVE_COMMAND];
    enum hed_live_state state;
    uint32_t priority, share; /* of programs */
    double busy;              /* part of the time in which the GPU worked for it; < 0: not known */
    double wait;              /* part of the time in which it was held; < 0: not known */
    double rate;              /* calls per second that put work on a GPU; < 0: not known */
    uint64_t p99;             /* ns: 99 % of the waits since the last view were shorter; 0: none */
    bool memory_known;
    uint64_t memory, memory_limit; /* bytes; limit 0: none */
    uint64_t calls;                /* in all */
    uint64_t used, waited;         /* ns in all; 0 for clients */
    bool mine;                     /* hed_live_change() may change it */

    const struct hed_sched_program *program; /* NULL for a client; as long as the view */
    uint64_t key; /* the same in all views, and of no other row of a view */
};

struct hed_live_gpu {
    char uuid[HED_SCHED_UUID_DIGITS + 1];
    char scope[HED_SCHED_NAME];
    char user[HED_LIVE_TEXT];
    const char *policy;
    bool paused;
    size_t programs;
    double busy;     /* < 0: not known */
    size_t counted;  /* programs whose memory is known */
    uint64_t memory; /* bytes that these have */
};

struct hed_live_server {
    char address[HED_LIVE_COMMAND];
    char why[HED_LIVE_COMMAND]; /* it does not answer, for this reason; "": it does */
    char gpu[HED_LIVE_TEXT];
    int32_t pid;
    double uptime; /* seconds */
    uint64_t clients, clients_ever, refused;
    bool stopping;
};

struct hed_live_view {
    uint64_t wall;  /* ns since the epoch */
    double seconds; /* since the last view; 0: this is the first */
    size_t gpu_count, server_count, row_count;
    struct hed_live_gpu gpus[HED_SCHED_GPUS];
    struct hed_live_server servers[HED_LIVE_SERVERS];
    struct hed_live_row *rows;
    struct hed_why problem; /* what could not be read; "": nothing */
};

struct hed_live_how {
    const char *const
        *servers; /* addresses to ask; without any, the usual ones, if they are there */
    size_t server_count;
    uint64_t every; /* ns between two questions to a server */
    bool watch;     /* ask programs to measure their GPU time */
};

struct hed_live_look; /* for one thread */

/* Call it before the process has other threads: it forks. HED_ENOMEM, or what fork says. */
int hed_live_open(const struct hed_live_how *how, struct hed_live_look **out, struct hed_why *why);
void hed_live_close(struct hed_live_look *l); /* NULL is allowed; does not wait for servers */

/* Waits until every server has answered once and all programs were asked to measure, or for so
 * long. */
void hed_live_wait(struct hed_live_look *l, uint64_t ns);

/* Looks. The view is valid until the next call. HED_ENOMEM. */
int hed_live_sample(struct hed_live_look *l, const struct hed_live_view **out);

/* Pauses, resumes or changes a program of this process's user. */
int hed_live_change(struct hed_live_look *l, const struct hed_live_row *row,
                    const struct hed_sched_change *change, struct hed_why *why);

const char *hed_live_state_name(enum hed_live_state state);

/* A view as one JSON object, without a newline. Keys are only ever added; heddle-top(1) lists
 * them. */
void hed_live_json(const struct hed_live_view *v, struct hed_buf *out);
