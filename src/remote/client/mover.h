/* The mover, which pauses, saves, restores and moves a program, hangs on the client by this table.
 *
 *   plugin.c ──hed_remote_use_mover()──> remote.c, session.c, connect.c, join.c ──table──> mover
 *
 * The mover uses the client as it likes; the client knows of the mover only what stands here. It
 * keeps one pointer for it, hed_remote.moving, and never looks behind that. Without a mover
 * (hed_remote.mover is NULL) no call is held, a lost worker is lost, nobody can ask for a
 * checkpoint or a move, and a program that rests keeps the memory that it has on lease.
 *
 * No entry may be NULL. "Any thread" means any thread that makes CUDA calls, or one of the client's
 * own, and possibly several at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hed_config;
struct hed_remote;
struct hed_why;

#define HED_MOVER_NVML (-1) /* instead of the number of a CUDA call */

struct hed_remote_mover {
    /* remote.c, before the client has connected; no other thread knows the client, and nothing is
     * locked. Sets r->moving. 0 or HED_E...: then the client is not made. */
    int (*create)(struct hed_remote *r, const struct hed_config *config, struct hed_why *why);
    /* remote.c, once the driver is complete; nothing is locked. May start threads. If that fails,
     * the program works all the same, and cannot be moved. */
    void (*start)(struct hed_remote *r);
    /* remote.c, in the child of a fork, which has this one thread. The parent's connections and
     * sockets stay as they are. */
    void (*forked)(struct hed_remote *r);
    /* remote.c, when the process ends. Other threads may still be in calls. */
    void (*ended)(struct hed_remote *r);

    /* join.c, for each hello: the enum hed_capabilities of the client that are the mover's. The
     * thread that joins a worker; nothing is locked. */
    uint64_t (*capabilities)(const struct hed_remote *r);

    /* remote.c, before and after each call of the program; any thread, nothing is locked. enter
     * waits while the program is held. `call` is an enum hed_cuda_call or HED_MOVER_NVML. The
     * result is for leave; NULL: there is no memory, and the call must not be made. */
    void *(*enter)(struct hed_remote *r, int call);
    void (*leave)(void *entered);

    /* connect.c, before a thread opens its channel; any thread, which may hold locks of the
     * driver. Waits while there is no worker, unless this thread is bringing the next one: some
     * calls are not held. */
    void (*await_worker)(struct hed_remote *r);

    /* session.c and host.c: is this a worker that the program has not been given to yet? Any
     * thread, any locks. Its loss is no loss of the program's. */
    bool (*on_trial)(const struct hed_remote *r);
    /* session.c: such a worker is lost, for this reason. Any thread, any locks; once per loss. */
    void (*trial_lost)(struct hed_remote *r, const char *why);
    /* session.c: the program's worker is lost. Any thread, any locks. Returns when the program has
     * to see it: at once if nobody offers help, never if it is taken back to a snapshot. */
    void (*rescue)(struct hed_remote *r, const char *why);
};

/* remote.c. Once, before any client is made, by the plug-in's main file. NULL: there is none. */
void hed_remote_use_mover(const struct hed_remote_mover *mover);
