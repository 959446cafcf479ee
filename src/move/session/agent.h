/* The agent: a thread in the program that does what the heddle command asks for
 * (move/talk/talk.h), and what its server orders (orders.h). It sleeps otherwise. What a request
 * does is in request.c.
 *
 *                 PAUSE            OUT, CAPTURE                     STAGE
 *   RUNNING <───────────> PAUSED ───────────────> SWAPPED, CAPTURED
 *           RESUME                                     │        RUNNING ──> PARKED ──> RUNNING
 *           <──────────────────────────────────────────┘               CONTINUE
 *                         IN, ATTACH
 *
 * Invariants:
 * 1. Requests are handled one after the other. If one fails, the state is what it was before.
 * 2. The program is held in every state but RUNNING, and while a request needs it.
 */
#pragma once

#include "move/session/contents.h"
#include "move/session/orders.h"
#include "move/talk/talk.h"
#include "remote/client.h"

struct hed_remote_staging;

struct hed_remote_agent {
    struct hed_remote *remote;
    int listener; /* -1: only its server can ask for something */
    char path[HED_TALK_PATH_MAX];
    enum hed_talk_state state;
    uint8_t session[16];                    /* the same for all snapshots of this program */
    struct hed_remote_host_copy *host_copy; /* in state SWAPPED */
    struct hed_remote_pump *pump;           /* the same, to come in sooner */
    struct hed_remote_staging *staging;     /* in state PARKED */
    struct hed_remote_reconnect { /* in state SWAPPED, if the program is to come back itself */
        bool wanted;
        bool paused;           /* it was paused before, and is to be again */
        int peer;              /* who sent it out; -1: has hung up; only if `wanted` */
        uint64_t latest;       /* ns: it counts as hung up then */
        uint64_t next;         /* ns: of the next attempt */
        uint64_t pause_ns;     /* between this one and the one after it */
        uint64_t silent_since; /* ns: of the first of the last attempts that found no server; 0 */
        bool warned;           /* the user knows that the server refuses */
    } reconnect;
    struct hed_remote_orders orders;
    uint64_t rest_ns; /* when to look again whether the program uses its memory */
    struct hed_remote_rest rest[HED_PROFILE_DEVICES_MAX];
};

/* Starts it. A program without an agent works as well, but cannot be asked for anything. */
void hed_remote_agent_start(struct hed_remote *r);
/* In the child of a fork, and at the end of the process. */
void hed_remote_agent_forked(struct hed_remote *r);
void hed_remote_agent_ended(struct hed_remote *r);

/* A request with its descriptors, which belong to the agent's loop, and its answer. */
struct hed_remote_request {
    struct hed_talk_request asked;
    int fds[HED_TALK_FDS_MAX];
    struct hed_talk_answer answer;
    int peer;                         /* connection, for answers that are not the last */
    struct hed_remote_orders *orders; /* the server asks; NULL: a peer does */
    struct hed_why why;
};

/* request.c. Does what is asked for; fills in the answer, but not its state and reason. 0 or
 * HED_E... */
int hed_remote_request(struct hed_remote_agent *a, struct hed_remote_request *q);
/* The same in a context of the program. */
int hed_remote_agent_serve(struct hed_remote_agent *a, struct hed_remote_request *q);

/* steps.c. Fills in the whole answer. */
void hed_remote_agent_answer(struct hed_remote_agent *a, struct hed_remote_request *q, int err);

/* reconnect.c. After a request: whether the agent keeps the peer's connection, because the
 * program comes back when the peer has hung up. */
bool hed_remote_reconnect_begin(struct hed_remote_agent *a, const struct hed_remote_request *q,
                                bool was_paused);
/* How long to wait for a request before the next attempt, ms; -1: there will be none. */
int hed_remote_reconnect_wait(struct hed_remote_agent *a);
/* Comes back, if it is time to and there is room. */
void hed_remote_reconnect_try(struct hed_remote_agent *a);

/* precopy.c. Moves the program to another server, most of its memory while it runs. On failure the
 * program runs where it was. *stays: it could not be moved in another way, either. */
int hed_remote_move_precopy(struct hed_remote_agent *a, struct hed_remote_request *q, bool *stays);

/* steps.c. The program was held: says what the time was spent on, in the answer and in the log. */
void hed_remote_tell_parts(const struct hed_remote_agent *a, struct hed_remote_request *q,
                           const char *what);
/* The same for a move, if it came so far. */
void hed_remote_report_move(struct hed_remote_agent *a, struct hed_remote_request *q);

/* Says what is known of the program, in every answer. */
void hed_remote_describe_self(struct hed_remote_agent *a, struct hed_talk_answer *out);
