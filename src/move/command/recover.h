/* heddle run --ckpt recover=N: a program that has lost its server goes on from its newest snapshot.
 *
 *              asks for help (move/talk/talk.h),
 *              or crashes and its server is gone         the server is there
 *     IDLE ───────────────────────────────────> WAITING ─────────────────────> killed, restored
 *      ▲                                           │                                 │
 *      └── refused: it sees the error <── time ────┘                                 │
 *      └─────────────────────────────────────────────────────────────────────────────┘
 *
 * The program waits in the call that has noticed the loss, alive, until there is a server again.
 * Only then is it killed: if none comes, it sees the error as it would without all this.
 *
 * The command's supervisor (cli/supervise.h) asks for what is due in its loop. Restoring takes
 * place in this process, because the program must be a child of it.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "move/command/command.h"

struct hed_private_server;

/* How a program is saved from time to time (heddle run --ckpt). */
struct hed_ckpt {
    bool on;
    uint64_t every_ns; /* 0: only when `heddle snap save` asks */
    uint64_t keep;     /* how many snapshots */
    uint64_t zstd;     /* level; 0: no packing */
    uint64_t recover;  /* how often it may go on from one snapshot if its server is lost */
    uint64_t wait_ns;  /* for a server that is gone to come back */
    char dir[PATH_MAX];
};

/* What the processes that take snapshots know. In memory that all share. */
struct hed_ckpt_memory {
    char said[512];                 /* the last complaint, which is printed once */
    uint8_t session[HED_SNAP_UUID]; /* of the program, once a snapshot was taken */
    bool quiet;                     /* the program is being killed: no complaints */
};

struct hed_recovery {
    const struct hed_recovery_ops *ops; /* set by hed_recovery_open() */
    hed_command_say *say;
    const struct hed_ckpt *ckpt;
    struct hed_ckpt_memory *memory;
    struct hed_private_server *server; /* started for this program; its pid is 0 if it is gone, and
                                        * its folder "" if there never was one */
    const char *gpu;                   /* what that one uses */
    const char *address;               /* of the server at first */

    pid_t pid; /* of the program; the same in all its lives */
    int listener;
    char path[HED_TALK_PATH_MAX];

    /* Where the program came from, as long as there is no newer snapshot; "": it was started. */
    char from_dir[PATH_MAX], from_name[HED_SNAP_FILE_NAME];
    uint8_t session[HED_SNAP_UUID]; /* of the program; zeros: not known yet */

    bool waiting;
    int peer;        /* the program, in the call that waits; -1: it does not wait for an answer */
    char lost[160];  /* why the server is lost */
    char at[256];    /* where the program was, and will be */
    bool at_private; /* that is the server of its own */
    uint64_t lost_wall; /* ns: when it was */
    uint64_t end;       /* ns: it waits no longer */
    uint64_t next;      /* ns: when to try again */
    uint64_t pause;     /* ns: between two attempts */
    bool said;          /* the user knows that it waits */
    unsigned hopeless;  /* attempts that failed for a reason that does not pass */

    uint64_t count; /* recoveries from the newest snapshot */
    uint64_t epoch; /* of that one */
};

/* Begins to listen for the program. After a failure the program sees errors, as without it. */
int hed_recovery_open(struct hed_recovery *r, pid_t pid, struct hed_why *why);
void hed_recovery_close(struct hed_recovery *r);

enum hed_recovery_step {
    HED_RECOVERY_NOT_YET, /* ask again after `timeout` */
    HED_RECOVERY_KILL,    /* the program must be killed; then ask again */
    HED_RECOVERY_BACK,    /* the program is back, with the same number */
    HED_RECOVERY_OVER,    /* there is no program any more; the user knows why */
};

/* What the supervisor tells and asks, by a table, so that it does not need this room. */
struct hed_recovery_ops {
    /* The listener can be read: hears what the program says. */
    void (*hear)(struct hed_recovery *r);

    /* The program cannot go on, although it did not ask. */
    void (*stuck)(struct hed_recovery *r, const char *why);

    /* The program has ended, and not because it was killed for a recovery. True: it is recovered.
     */
    bool (*ended)(struct hed_recovery *r, int status);

    /* How long until the next step, in ms; -1: there is none. */
    int (*timeout)(const struct hed_recovery *r);
    enum hed_recovery_step (*step)(struct hed_recovery *r, bool alive);
};

extern const struct hed_recovery_ops hed_recovery_ops;
