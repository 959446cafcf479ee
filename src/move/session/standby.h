/* The standby: a worker that is being prepared while the program still runs at another one.
 *
 *   program ──driver──> r ────────────> old worker ──reads──> agent, copy threads
 *                                                                  │ writes
 *                       standby ──────> new worker <───────────────┘
 *
 * It is a struct hed_remote of its own, with the program's arena and heap, and has the program's
 * contexts, under their names, and its device memory. It has no objects of the driver: the driver
 * knows nothing of it. In the end its connection becomes the program's (attachment.c), and what it
 * has need not be made again (rebuild.c).
 *
 * All functions are for the agent, except for write. A thread uses one session at a time, so
 * they put the thread's channel aside meanwhile.
 */
#pragma once

#include "move/file/hash.h"
#include "move/session/moving.h"

/* Device memory that the standby has. */
struct hed_remote_standby_range {
    uint64_t at, size;
    int device;
    struct hed_snap_hash *hashes; /* of what was written to each chunk */
    bool *known;                  /* has it been written? */
};

#define HED_STANDBY_CONTEXTS 256 /* a program with more cannot be moved in this way */

struct hed_remote_standby {
    struct hed_remote remote;                           /* must come first */
    struct hed_remote_moving moving;                    /* remote.moving points to it */
    struct hed_remote *of;                              /* the program's */
    struct hed_context *contexts[HED_STANDBY_CONTEXTS]; /* references */
    size_t context_count;
    struct hed_remote_standby_range *ranges; /* by address */
    size_t count;
    struct hed_remote_early *early;         /* code that it has (early.c); NULL: none */
    struct hed_remote_early_graph *graphs;  /* that it has (graphs.c) */
    struct hed_remote_known *here, *there;  /* where the two workers have variables */
    uint64_t streams[HED_STANDBY_CONTEXTS]; /* the first name of ours in each context; 0: none */
    uint64_t names;                         /* of streams, given so far */
    uint64_t offered, offered_size;         /* memory to copy through; 0: there is none */
    /* It has been told about the program's code once. What is ours comes after that: devices put
     * variables where there is room. */
    bool coded;
    bool shared;             /* the worker has that memory, too */
    bool written;            /* no more bytes are written */
    _Atomic bool on_the_way; /* bytes may not have arrived: they are in messages */
    bool without_pinned;     /* other pinned memory is not prepared */
    pthread_mutex_t gate;    /* guards slots */
    pthread_cond_t passed;
    unsigned slots; /* of threads that write just now: one bit each */
};

/* Joins the server at an address ("": the present one). */
int hed_remote_standby_open(struct hed_remote *r, const char *address,
                            struct hed_remote_standby **out, struct hed_why *why);
/* Ends the connection, unless it is the program's by now. t may be NULL. */
void hed_remote_standby_close(struct hed_remote_standby *t);

/* Gives it the contexts and the device memory that the program has now, and takes away what the
 * program has no longer. HED_ENOMEM: the server does not have as much memory. HED_EEXIST: see
 * below; a new standby without_pinned will do. */
int hed_remote_standby_adjust(struct hed_remote_standby *t, bool held, struct hed_why *why);
/* pinned.c, a part of it: the same for pinned memory that both workers share. A context is current.
 * HED_EEXIST: the program has new memory where the standby has old memory. */
int hed_remote_standby_adjust_pinned(struct hed_remote_standby *t, bool held);

/* Bytes will be written from this pinned memory, which the program's worker shares. If the standby
 * can share it as well, its device reads it directly. */
void hed_remote_standby_offer(struct hed_remote_standby *t, uint64_t at, uint64_t size);
/* No more bytes are written: drops what only writing needs. */
void hed_remote_standby_written(struct hed_remote_standby *t);

/* Writes bytes to its memory. Any thread, several at once. Memory that was offered can be used
 * again when this returns. */
int hed_remote_standby_write(struct hed_remote_standby *t, uint64_t context, uint64_t to,
                             const void *from, uint64_t size, struct hed_why *why);
/* Waits until all that was written is there. */
int hed_remote_standby_settle(struct hed_remote_standby *t, struct hed_why *why);

/* Has the standby, which this is, the context? */
static inline bool
hed_remote_standby_has(const struct hed_remote *standby, const struct hed_context *c)
{
    const struct hed_remote_standby *t = (const struct hed_remote_standby *)standby;

    for (size_t i = 0; i < t->context_count; i++)
        if (t->contexts[i] == c)
            return true;
    return false;
}
