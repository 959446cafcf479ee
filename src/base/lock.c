/* Locks with a rank, and the check of their order. See lock.h. */
#include "base/lock.h"

#include "base/clock.h"
#include "base/err.h"

#ifdef HED_DEBUG

/* The locks this thread holds, by rank; one of a rank at most. */
static _Thread_local const struct hed_lock *held[HED_RANK_COUNT];

/* Called before waiting, so that a wrong order is reported even where it would deadlock. */
static void
check_order(const struct hed_lock *lock)
{
    for (int rank = (int)lock->rank; rank < HED_RANK_COUNT; rank++) {
        if (held[rank] == lock)
            hed_bug("lock of rank %d taken twice", (int)lock->rank);
        else if (held[rank])
            hed_bug("lock of rank %d taken under one of rank %d", (int)lock->rank, rank);
    }
}

static void
note_taken(const struct hed_lock *lock)
{
    held[lock->rank] = lock;
}

static void
note_released(const struct hed_lock *lock)
{
    if (held[lock->rank] != lock)
        hed_bug("lock of rank %d released by a thread that does not hold it", (int)lock->rank);
    held[lock->rank] = NULL;
}

bool
hed_lock_held(const struct hed_lock *lock)
{
    return held[lock->rank] == lock;
}

#else

static inline void
check_order(const struct hed_lock *lock)
{
    (void)lock;
}

static inline void
note_taken(const struct hed_lock *lock)
{
    (void)lock;
}

static inline void
note_released(const struct hed_lock *lock)
{
    (void)lock;
}

bool
hed_lock_held(const struct hed_lock *lock)
{
    (void)lock;
    return true;
}

#endif

void
hed_lock_init(struct hed_lock *lock, enum hed_rank rank)
{
    /* With default attributes this cannot fail on Linux. */
    pthread_mutex_init(&lock->mutex, NULL);
    lock->rank = rank;
}

void
hed_lock_fini(struct hed_lock *lock)
{
    if (pthread_mutex_destroy(&lock->mutex) != 0)
        hed_bug("lock of rank %d destroyed while held", (int)lock->rank);
}

void
hed_lock(struct hed_lock *lock)
{
    int cancel;

    check_order(lock);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&lock->mutex);
    lock->cancel = cancel;
    note_taken(lock);
}

bool
hed_lock_try(struct hed_lock *lock)
{
    int cancel;

    check_order(lock);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (pthread_mutex_trylock(&lock->mutex) != 0) {
        pthread_setcancelstate(cancel, NULL);
        return false;
    }
    lock->cancel = cancel;
    note_taken(lock);
    return true;
}

void
hed_unlock(struct hed_lock *lock)
{
    const int cancel = lock->cancel;

    note_released(lock);
    pthread_mutex_unlock(&lock->mutex);
    pthread_setcancelstate(cancel, NULL);
}

void
hed_lock_brief(struct hed_lock *lock)
{
    check_order(lock);
    pthread_mutex_lock(&lock->mutex);
    note_taken(lock);
}

void
hed_unlock_brief(struct hed_lock *lock)
{
    note_released(lock);
    pthread_mutex_unlock(&lock->mutex);
}

int
hed_lock_wait(struct hed_lock *lock, pthread_cond_t *cond, uint64_t end)
{
    const int cancel = lock->cancel;
    const struct timespec t = hed_time_of(end);
    const int err = end == UINT64_MAX
                        ? pthread_cond_wait(cond, &lock->mutex)
                        : pthread_cond_clockwait(cond, &lock->mutex, CLOCK_MONOTONIC, &t);

    lock->cancel = cancel;
    return err;
}
