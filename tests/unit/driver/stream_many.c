/* Streams of the soft driver, used by many threads at once. These tests are mostly for the
 * sanitizers. */
#include <pthread.h>

#include "driver/stream/stream.h"
#include "unit/driver/busy.h"

static struct fake *
begin(void)
{
    struct fake *f = fake_create(2);

    (void)fake_use_primary(f, 0);
    return f;
}

static CUstream
make(struct fake *f, unsigned flags)
{
    CUstream s = NULL;

    OK(fake_call(f, cuStreamCreate, &s, flags));
    return s;
}

#define THREADS 6
#define STREAMS 4
#define ROUNDS 150

struct crowd {
    struct fake *f;
    CUcontext ctx;
    CUstream shared[2];
    CUevent event;
    _Atomic unsigned done;
    _Atomic unsigned put;
};

static void
count_one(void *arg)
{
    struct crowd *c = arg;

    atomic_fetch_add(&c->done, 1);
}

static void
put_one(struct crowd *c, CUstream s)
{
    OK(fake_call(c->f, cuLaunchHostFunc, s, count_one, c));
    atomic_fetch_add(&c->put, 1);
}

static void *
crowd_member(void *arg)
{
    struct crowd *c = arg;
    struct fake *f = c->f;
    CUstream own[STREAMS];
    CUevent e;

    OK(fake_call(f, cuCtxSetCurrent, c->ctx));
    OK(fake_call(f, cuEventCreate, &e, 0));
    for (int i = 0; i < STREAMS; i++)
        own[i] = make(f, i % 2 ? CU_STREAM_NON_BLOCKING : 0);
    for (int round = 0; round < ROUNDS; round++) {
        put_one(c, own[round % STREAMS]);
        put_one(c, c->shared[round % 2]);
        OK(fake_call(f, cuEventRecord, e, own[round % STREAMS]));
        OK(fake_call(f, cuEventRecord, c->event, c->shared[round % 2]));
        OK(fake_call(f, cuStreamWaitEvent, own[(round + 1) % STREAMS], e));
        OK(fake_call(f, cuStreamWaitEvent, c->shared[1], c->event));
        put_one(c, CU_STREAM_PER_THREAD);
        if (round % 8 == 0)
            put_one(c, NULL);
        if (round % 16 == 3)
            OK(fake_call(f, cuStreamSynchronize, own[round % STREAMS]));
        if (round % 32 == 5)
            OK(fake_call(f, cuCtxSynchronize));
        if (round % 16 == 9) {
            OK(fake_call(f, cuStreamDestroy_v2, own[0]));
            own[0] = make(f, 0);
        }
        OK(fake_call(f, cuEventSynchronize, e));
    }
    OK(fake_call(f, cuEventDestroy_v2, e));
    return NULL;
}

/* Creates and destroys contexts with streams that are still busy. */
static void *
context_user(void *arg)
{
    struct crowd *c = arg;
    struct fake *f = c->f;

    for (int round = 0; round < 20; round++) {
        CUcontext ctx = NULL;

        OK(fake_call(f, cuCtxCreate_v2, &ctx, 0, round % 2));
        for (int i = 0; i < STREAMS; i++) {
            CUstream s = make(f, i % 2 ? CU_STREAM_NON_BLOCKING : 0);

            for (int n = 0; n < 5; n++) {
                put_one(c, s);
                put_one(c, n % 2 ? NULL : CU_STREAM_PER_THREAD);
            }
            if (i == 2)
                OK(fake_call(f, cuStreamDestroy_v2, s));
        }
        OK(fake_call(f, cuCtxDestroy_v2, ctx));
    }
    return NULL;
}

static void
contexts_come_and_go_with_busy_streams(void **state)
{
    struct fake *f = begin();
    struct crowd c = {.f = f};
    pthread_t t[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, context_user, &c), 0);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(t[i], NULL);
    assert_int_equal(c.put, c.done);
    busy_fake_free(f);
}

static void
many_threads_and_streams_lose_nothing(void **state)
{
    struct fake *f = begin();
    struct crowd c = {.f = f, .ctx = fake_use_primary(f, 0)};
    pthread_t t[THREADS];

    c.shared[0] = make(f, 0);
    c.shared[1] = make(f, CU_STREAM_NON_BLOCKING);
    OK(fake_call(f, cuEventCreate, &c.event, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, crowd_member, &c), 0);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(t[i], NULL);
    OK(fake_call(f, cuCtxSynchronize));
    assert_int_equal(c.put, c.done);
    busy_fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(many_threads_and_streams_lose_nothing),
    cmocka_unit_test(contexts_come_and_go_with_busy_streams),
};

HED_UNIT_MAIN(tests)
