/* What the mover keeps for a client: hed_remote.moving points to it. A standby (standby.h) has its
 * own.
 *
 * Where nothing else is said, a field belongs to the agent, or to the thread that holds the
 * program (snap.h).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "move/session/hold.h"
#include "move/session/orders.h"
#include "move/talk/talk.h"
#include "remote/client.h"

struct hed_remote_agent;
struct hed_remote_known;
struct hed_remote_attachment;

/* How long the program has been held, and what for: pause.c. */
struct hed_remote_laps {
    uint64_t last; /* ns; the end of the last part */
    uint64_t ns[HED_TALK_PARTS];
};

struct hed_remote_moving {
    struct hed_hold hold;        /* keeps the program's calls out */
    pthread_t holder;            /* the thread that holds the program, if it is held */
    struct hed_remote_laps laps; /* the holder's */
    _Atomic uint32_t away;       /* 1: there is no worker just now; a futex */
    uint64_t parted_ns;          /* when the last worker was left */
    bool parked;                 /* the worker waits for our return, with this key */
    uint8_t key[16];
    _Atomic bool trying;    /* a new worker is being told about the program's objects; any thread */
    struct hed_why trouble; /* why that one was lost; written by the thread that has noticed */
    bool looks_for_room;    /* what it tells the server (HED_LOOKS_FOR_ROOM) */
    enum hed_remote_obeys obeys;    /* constant */
    struct hed_remote_agent *agent; /* agent.h; NULL: there is none */
    _Atomic uint32_t rescue;        /* whether help was asked for: rescue.c; a futex; any thread */
    struct hed_remote_attachment *waiting; /* what was agreed with the parked worker; else NULL */
    struct hed_remote_attachment
        *behind;                    /* a worker that has been left and is to be closed; or NULL */
    struct hed_remote *standby;     /* a worker that is being prepared (standby.h), or NULL */
    struct hed_remote_known *known; /* where the worker has variables (known.c), or NULL */
};

extern const struct hed_remote_mover hed_remote_session_mover; /* mover.c */

static inline struct hed_remote_moving *
hed_remote_moving(const struct hed_remote *r)
{
    return r->moving;
}
