/* For tests of streams: making a stream busy for as long as a test wants. */
#pragma once

#include <semaphore.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "harness/unit.h"
#include "unit/driver/fake.h"

/* fake_call leaves out what a test does not care for, the last being `ptds`. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define OK(call) assert_int_equal((call), CUDA_SUCCESS)

/* A host function on a stream that sits there until it is let go. */
struct busy {
    sem_t begun, go;
};

static inline void
busy_host_function(void *arg)
{
    struct busy *b = arg;

    (void)sem_post(&b->begun);
    while (sem_wait(&b->go) != 0)
        ;
}

/* Returns when it runs. */
static inline void
busy_begin(struct fake *f, struct busy *b, CUstream s)
{
    (void)sem_init(&b->begun, 0, 0);
    (void)sem_init(&b->go, 0, 0);
    OK(fake_call(f, cuLaunchHostFunc, s, busy_host_function, b));
    while (sem_wait(&b->begun) != 0)
        ;
}

/* Lets it go. It still has to end: b may be used again when the stream has been waited for. */
static inline void
busy_end(struct busy *b)
{
    (void)sem_post(&b->go);
}

/* A host function that sets a flag, and a look at whether it has. */
static inline void
set_flag(void *arg)
{
    atomic_store((_Atomic int *)arg, 1);
}

static inline int
flag_after_a_moment(_Atomic int *flag)
{
    give_a_moment(30);
    return atomic_load(flag);
}

/* The next test's driver may come to lie where this one was: the thread must not take its context
 * for one of that. */
static inline void
busy_fake_free(struct fake *f)
{
    (void)fake_call(f, cuCtxSetCurrent, NULL);
    fake_free(f);
}
