/* Rounds of a move: device memory that has changed goes to the standby (standby.h). See precopy.c.
 *
 * All functions are for the agent.
 */
#pragma once

#include "move/session/agent.h"
#include "move/session/standby.h"

/* One kind of work in batches, with its speed. */
struct hed_remote_pace {
    uint64_t bytes, ns; /* so far */
};

struct hed_remote_going {
    struct hed_remote_agent *agent;
    struct hed_remote_request *request;
    struct hed_remote *remote;
    struct hed_remote_standby *standby;
    struct hed_remote_pump *pump;
    struct hed_remote_hasher *hasher;
    struct hed_remote_host_copy *host_copy; /* for what is not precopied */
    struct hed_why *why;
    struct hed_context *contexts[HED_PROFILE_DEVICES_MAX]; /* references; to copy in */
    struct hed_remote_pace copying, hashing;
    bool without_pinned; /* pinned memory is left for the last round */
    bool held;           /* the program is held: this is the last round */
    uint64_t round;      /* bytes copied in this round */
    uint64_t total;      /* in all rounds */

    /* Of the present round. */
    struct hed_remote_extent *extents; /* as the standby's ranges */
    struct hed_remote_chunk *chunks;
    struct hed_snap_hash *hashes;
    size_t count;
};

static inline bool
hed_remote_is_standby_lost(const struct hed_remote_going *g)
{
    /* Relaxed: this thread has noticed it, or will at the next look. */
    return atomic_load_explicit(&g->standby->remote.lost, memory_order_relaxed);
}

/* All memory goes, then what has changed, while the program runs: until little is left. *rounds is
 * how many there were. */
int hed_remote_go_rounds(struct hed_remote_going *g, uint32_t *rounds);
/* The same once more, while it is held. */
int hed_remote_last_round(struct hed_remote_going *g);

/* Lists the chunks of all memory that is precopied. The standby has been adjusted. forget ends
 * it. */
int hed_remote_list_round(struct hed_remote_going *g);
void hed_remote_forget_round(struct hed_remote_going *g);

/* Does something with all chunks of the list, in batches (precopy.c, invariant 1). */
int hed_remote_in_batches(struct hed_remote_going *g, struct hed_remote_pace *pace,
                          int (*fn)(struct hed_remote_going *g, struct hed_remote_chunk *batch,
                                    size_t count));
