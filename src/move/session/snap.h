/* Leaving a worker and coming to another: what pausing, snapshots and moves are made of.
 *
 *   hold ──> part ──────────────> arrive ──> release       another worker: objects are made again
 *        └─> part, parked ──────> return ──> release       the same worker, which has kept all
 *
 * The soft driver in this process knows every object that the program has and its present state. A
 * new worker is told about them by the same functions that told the old one (rebuild.c), and then
 * gets the contents of their memory from whoever has them (struct hed_remote_source). Between part
 * and arrive this process has no connection, and no memory that it shares with another process,
 * except for a descriptor of its own heap: it can be saved to disk and continued elsewhere.
 *
 * Invariants:
 * 1. All of this is done by one thread, the agent, while the program is held: no other thread
 *    is in the driver, all work is done, no message is buffered.
 * 2. If arriving fails, everything is as it was before: connected to the old worker, if there still
 *    was one, or parted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "move/session/moving.h"

/* Stops the program between two calls, with all of its work done. HED_ETIME: it is too busy. HED_E
 * NOTSUP: it has something that cannot be taken away from its worker; the reason names it. On
 * failure the program goes on. */
int hed_remote_hold(struct hed_remote *r, int deadline_ms, struct hed_why *why);
void hed_remote_release(struct hed_remote *r);
/* A part of the time for which the program is held ends now. */
static inline void
hed_remote_lap(struct hed_remote *r, enum hed_talk_part part)
{
    const uint64_t now = hed_now_ns();

    r->moving->laps.ns[part] += now - r->moving->laps.last;
    r->moving->laps.last = now;
}

/* Leaves the worker, which ends, or waits for this client's return if `park`. */
int hed_remote_part(struct hed_remote *r, bool park, struct hed_why *why);
int hed_remote_return(struct hed_remote *r, struct hed_why *why);
/* The parked worker cannot be returned to: the session is lost. */
void hed_remote_waited_in_vain(struct hed_remote *r, const char *why);

/* Fills the memory of a new worker, which has all objects by then. Any HED_E... refuses it. */
struct hed_remote_source {
    struct hed_remote *standby; /* the new worker, if there is one already (standby.h); else NULL */
    int (*fill)(struct hed_remote_source *self, struct hed_remote *r, struct hed_why *why);
};

/* Goes to a worker of the server at an address (NULL: the present one), with everything that the
 * program has. The old worker, if there still is one, is left for good. */
int hed_remote_arrive(struct hed_remote *r, const char *address, struct hed_remote_source *from,
                      struct hed_why *why);

/* ---- attachment.c: the connection to one worker ---------------------------------------------- */

struct hed_remote_attached_device {
    int ordinal, major, minor;
    bool real, accepts_newer_ptx;
    uint64_t lease, granted; /* bytes */
};

struct hed_remote_attached_channel {
    struct hed_remote_channel *owner;
    struct hed_channel *channel; /* NULL: the thread has not connected */
};

/* Everything of struct hed_remote that belongs to one worker. */
struct hed_remote_attachment {
    struct hed_address address;
    uint8_t session[16], secret[16];
    uint64_t capabilities;
    enum hed_wire_backend backend;
    uint64_t tickets;
    struct hed_remote_attached_device devices[HED_PROFILE_DEVICES_MAX];
    _Atomic uint64_t *slots;
    uint32_t slot_count;
    uint64_t slot_used[HED_SLOTS_MAX / 64];
    uint64_t failures_seen, received;
    bool shares_heap;
    struct hed_remote_known *known;               /* not owned */
    struct hed_remote_attached_channel *channels; /* owned */
    size_t count;
};

/* Closes the connection to the worker that was left last, after the program goes on. */
void hed_remote_attachment_leave(struct hed_remote *r);
/* Ends the connection of a standby, if it still has one. */
void hed_remote_attachment_close(struct hed_remote *standby);

/* Makes a living context the calling thread's, a primary one if there is any: the worker registers
 * pinned memory in the context that a message names. False: there is none. Else hed_thread_pop()
 * ends it. */
bool hed_remote_enter_any(struct hed_remote *r);

/* ---- space.c: the reserved addresses --------------------------------------------------------- */

/* give: leaves the addresses of the arena to the system, except for pinned memory. take: reserves
 * them again. */
int hed_remote_space_give(struct hed_remote *r);
int hed_remote_space_take(struct hed_remote *r, struct hed_why *why);

/* ---- rebuild.c ------------------------------------------------------------------------------- */

/* Tells the worker about every object of the program, except for what it has as the standby. */
int hed_remote_rebuild(struct hed_remote *r, struct hed_remote *standby, struct hed_why *why);
