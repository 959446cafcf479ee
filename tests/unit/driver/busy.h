/* For tests of streams: keeps a stream busy for as long as a test wants. */
#pragma once

#include <semaphore.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "harness/unit.h"
#include "unit/driver/fake.h"

/* fake_call() leaves out the last arguments that a test does not need, such as `ptds`. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define OK(call) assert_int_equal((call), CUDA_SUCCESS)

/* A host function that stays on its stream until it is released. */
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

/* Returns when the function runs. */
static inline void
busy_begin(struct fake *f, struct busy *b, CUstream s)
{
    (void)sem_init(&b->begun, 0, 0);
    (void)sem_init(&b->go, 0, 0);
    OK(fake_call(f, cuLaunchHostFunc, s, busy_host_function, b));
    while (sem_wait(&b->begun) != 0)
        ;
}

/* Releases it. It still has to end: wait for the stream before using b again. */
static inline void
busy_end(struct busy *b)
{
    (void)sem_post(&b->go);
}

/* A host function that sets a flag, and a function that reads it. */
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

/* A driver with one device, whose primary context is current, and a stream. */
static inline struct fake *
busy_fake_create(CUstream *s)
{
    struct fake *f = fake_create(1);

    (void)fake_use_primary(f, 0);
    OK(fake_call(f, cuStreamCreate, s, CU_STREAM_NON_BLOCKING));
    return f;
}

/* The next test's driver may have the same address as this one, so the thread must not keep its
 * context. */
static inline void
busy_fake_free(struct fake *f)
{
    (void)fake_call(f, cuCtxSetCurrent, NULL);
    fake_free(f);
}
