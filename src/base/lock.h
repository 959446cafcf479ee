/* Locks with a rank. The order in which locks may be taken is the order of one enum.
 *
 * Invariant: a thread takes a lock only while every lock it holds has a lower rank; so it never
 * holds two of the same rank, and no two threads can wait for each other. Debug builds (HED_DEBUG)
 * check this at every call and report through hed_bug(); release builds cost a plain mutex.
 *
 * No heddle lock is held across a call to the next layer, a backend or the application: ranks
 * order our own state, nothing else.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Outermost first. A new rank goes where its lock sits when it is taken deepest. */
enum hed_rank {
    HED_RANK_LIVE,         /* what servers have answered (heddle top) */
    HED_RANK_SESSION,      /* the chain being built or taken down */
    HED_RANK_HOLD,         /* records of threads that make calls of a remote machine */
    HED_RANK_UNMAP,        /* no memory of a remote machine is unmapped while it is precopied */
    HED_RANK_DRIVER,       /* NVIDIA's libraries being loaded */
    HED_RANK_STATS,        /* registration of counters */
    HED_RANK_CONTEXTS,     /* a soft driver's list of contexts and their states */
    HED_RANK_LIBRARY,      /* a soft driver's library being loaded into contexts */
    HED_RANK_CAPTURE,      /* a stream capture */
    HED_RANK_GRAPH,        /* a graph being changed or instantiated */
    HED_RANK_CONTEXT,      /* what is in one context */
    HED_RANK_EVENT,        /* an event's last record */
    HED_RANK_STREAM,       /* a stream's queue */
    HED_RANK_EVENTS,       /* an event being made or destroyed in a remote machine */
    HED_RANK_IPC,          /* a soft driver's memory being shared with other processes */
    HED_RANK_MEMORY,       /* a soft driver's addresses and allocations */
    HED_RANK_MIRRORS,      /* memory that is mirrored on a remote machine being synchronized */
    HED_RANK_HANDLES,      /* a soft driver's table of handles */
    HED_RANK_CONDITIONS,   /* conditions of graphs on this machine */
    HED_RANK_CODE,         /* a machine's code being compiled */
    HED_RANK_IMAGES,       /* what a remote machine knows of its code */
    HED_RANK_HOST,         /* host functions that a remote machine must run */
    HED_RANK_LEASE,        /* memory and copies of a remote machine */
    HED_RANK_WORKER,       /* a server's worker: its channels, its failure */
    HED_RANK_SHARES,       /* a server's worker: events that it shares with other workers */
    HED_RANK_LEASE_SOCKET, /* a server's worker: its question to the listener */
    HED_RANK_FLUSH,        /* a remote machine's channels being flushed */
    HED_RANK_CHANNELS,     /* a remote machine's channels */
    HED_RANK_CHANNEL,      /* what one channel has buffered */
    HED_RANK_CONN,         /* a secured connection, because TLS is not thread-safe */
    HED_RANK_CHILDREN,     /* what the kernels of a grid have launched */
    HED_RANK_WATCH,        /* launches and compilations whose time is limited */
    HED_RANK_WORKERS,      /* a machine's workers */
    HED_RANK_SHARED,       /* joining the file in which processes share the state of devices */
    HED_RANK_REGION,       /* a machine's stacks and shared memory */
    HED_RANK_OUTPUT,       /* what kernels print */
    HED_RANK_HEAP,         /* memory that kernels allocate */
    HED_RANK_QUOTA,        /* what a process has of a device's memory */
    HED_RANK_LOGS,         /* callbacks for messages */
    HED_RANK_SCHED,        /* a process's estimates of its GPU time */
    HED_RANK_RECORDS,      /* which memory that is */
    HED_RANK_MEET,         /* the file in which processes meet */
    HED_RANK_SNAP,         /* a snapshot being written or checked */
    HED_RANK_STUBS,        /* counting stubs being given out */
    HED_RANK_RUNTIME,      /* what programs register with the runtime API */
    HED_RANK_PERF_MAP,     /* the file that tells perf the names of kernels */
    HED_RANK_DESCRIPTORS,  /* what a program has told cuDNN */
    HED_RANK_SCRATCH,      /* memory for matrix products of the CPU */
    HED_RANK_WATCHED,      /* what the layer watch knows of memory and contexts */
    HED_RANK_FAULTS,       /* the rules of the fault layer */
    HED_RANK_PROBLEMS,     /* the texts of a program's problems */
    HED_RANK_TRACE_SWITCH, /* a trace being started or stopped */
    HED_RANK_TRACE_FILE,   /* the trace file itself */
    HED_RANK_TRACE,        /* a trace's bookkeeping */
    HED_RANK_COUNT
};

/* Wait on a condition with hed_lock_wait(), never with pthread_cond_wait(). */
struct hed_lock {
    pthread_mutex_t mutex;
    enum hed_rank rank; /* constant after init */
    int cancel;         /* the holder's cancellation state before it took the lock */
};

/* For static storage; such a lock needs no fini. */
#define HED_LOCK_INIT(rank_)                                \
    {                                                       \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = (rank_) \
    }

void hed_lock_init(struct hed_lock *lock, enum hed_rank rank);

/* No thread may hold the lock or wait for it. */
void hed_lock_fini(struct hed_lock *lock);

/* A thread that holds a lock cannot be cancelled, because the lock would stay locked for ever.
 * Locks are released in the reverse order of taking.
 */
void hed_lock(struct hed_lock *lock);
void hed_unlock(struct hed_lock *lock);
bool hed_lock_try(struct hed_lock *lock); /* false: another thread holds it; same order */

/* The same for a few loads and stores without a cancellation point in between. The cancellation
 * state need not be changed then, which is most of the cost of a lock. */
void hed_lock_brief(struct hed_lock *lock);
void hed_unlock_brief(struct hed_lock *lock);

/* pthread_cond_wait() for the holder of the lock, which counts as held all the time. Keeps the
 * holder's cancellation state, which other threads that take the lock meanwhile overwrite. `end` is
 * a time of hed_now_ns(), whatever clock the condition has; UINT64_MAX for no end. Returns
 * ETIMEDOUT if it has come, otherwise 0.
 */
int hed_lock_wait(struct hed_lock *lock, pthread_cond_t *cond, uint64_t end);

/* Does this thread hold the lock? Exact in debug builds; always true in release builds, so it is
 * for checks of the form: if (!hed_lock_held(l)) hed_bug(...).
 */
bool hed_lock_held(const struct hed_lock *lock);
