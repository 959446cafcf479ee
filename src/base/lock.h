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

/* Outermost first. A new rank goes where its lock sits when it is taken deepest. */
enum hed_rank {
    HED_RANK_SESSION,    /* the chain being built or taken down */
    HED_RANK_DRIVER,     /* NVIDIA's libraries being loaded */
    HED_RANK_STATS,      /* registration of counters */
    HED_RANK_HANDLES,    /* a soft driver's table of handles */
    HED_RANK_STUBS,      /* counting stubs being given out */
    HED_RANK_TRACE_FILE, /* the trace file itself */
    HED_RANK_TRACE,      /* a trace's bookkeeping */
    HED_RANK_COUNT
};

/* Wait on a condition with pthread_cond_wait(&cond, &lock->mutex): the lock counts as held. */
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

/* Nobody may hold it or wait for it. */
void hed_lock_fini(struct hed_lock *lock);

/* While it holds a lock, a thread cannot be cancelled: it would take the lock to its grave. Locks
 * are released in the reverse order of taking.
 */
void hed_lock(struct hed_lock *lock);
void hed_unlock(struct hed_lock *lock);

/* Does this thread hold the lock? Exact in debug builds; always true in release builds, so it is
 * for checks of the form: if (!hed_lock_held(l)) hed_bug(...).
 */
bool hed_lock_held(const struct hed_lock *lock);
