/* Tests that record mode keeps the order of calls, with random programs. Threads of one client or
 * of several clients use the same streams and events.
 *
 * Every stream and event has a lock, which a thread holds while it makes a call that uses it. So
 * the program orders the calls on each stream and event, and numbers them. The fake driver checks
 * that the numbers arrive one after the other. The default stream is ordered with all streams, and
 * a wait must come after every call before it. */
#include "unit/record/make.h"

#define STREAMS 4
#define EVENTS 3
#define THREADS 4
#define CALLS 600

#define EVENT_CALLS (THREADS * CALLS)

/* A call that the program makes about an event. */
struct event_call {
    enum hed_cuda_call id;
    unsigned stream;
    uint64_t sent; /* launches on that stream before it */
};

struct world {
    struct chain *c;
    pthread_mutex_t stream_lock[STREAMS];
    pthread_mutex_t event_lock[EVENTS];
    uint64_t sent[STREAMS]; /* under the stream's lock; the default stream counts in all */
    uint64_t events_sent[EVENTS];
    struct event_call event_calls[EVENTS][EVENT_CALLS]; /* in the order of the program */
    /* Under the driver's lock. */
    uint64_t seen[STREAMS];
    uint64_t events_seen[EVENTS];
    unsigned disorder;
    bool clients;
    unsigned seed;
};

/* Names the default stream in a launch, whose number holds those of all streams. */
#define ALL 99

static void
check_launch(struct world *w, const struct entry *e)
{
    const uint32_t stream = e->args.a;

    w->disorder += e->args.d != e->args.b * 7;
    for (uint32_t i = 0; i < STREAMS; i++) {
        const uint64_t number = e->args.b >> 16 * i & 0xffff;

        if (stream != ALL && stream != i)
            continue;
        w->disorder += (stream == ALL ? number : e->args.b) != w->seen[i] + 1;
        w->seen[i]++;
    }
}

static void
check_event_call(struct world *w, const struct entry *e)
{
    const uint64_t i = (e->handle - (uintptr_t)EVENT(0)) / 0x10;
    const struct event_call *expected = &w->event_calls[i][w->events_seen[i]++];

    w->disorder += e->id != expected->id || e->stream != (uintptr_t)STREAM(expected->stream) ||
                   w->seen[expected->stream] != expected->sent;
}

static void
check_call(struct fake *f, const struct entry *e)
{
    struct world *w = f->user;

    switch ((int)e->id) {
    case HED_cuLaunchKernel:
        check_launch(w, e);
        break;
    case HED_cuEventRecord:
    case HED_cuStreamWaitEvent:
        check_event_call(w, e);
        break;
    case HED_cuStreamSynchronize: {
        const uint64_t i = (e->stream - (uintptr_t)STREAM(0)) / 0x100;

        w->disorder += w->seen[i] != w->sent[i];
        break;
    }
    case HED_cuEventSynchronize: {
        const uint64_t i = (e->handle - (uintptr_t)EVENT(0)) / 0x10;

        w->disorder += w->events_seen[i] != w->events_sent[i];
        break;
    }
    case HED_cuMemFree_v2:
    case HED_cuCtxSynchronize:
        for (int i = 0; i < STREAMS; i++)
            w->disorder += w->seen[i] != w->sent[i];
        for (int i = 0; i < EVENTS; i++)
            w->disorder += w->events_seen[i] != w->events_sent[i];
        break;
    default:
        break;
    }
}

static void
lock_all(struct world *w, bool lock, bool events)
{
    for (int i = 0; i < STREAMS; i++)
        lock ? pthread_mutex_lock(&w->stream_lock[i]) : pthread_mutex_unlock(&w->stream_lock[i]);
    for (int i = 0; events && i < EVENTS; i++)
        lock ? pthread_mutex_lock(&w->event_lock[i]) : pthread_mutex_unlock(&w->event_lock[i]);
}

static void
send_launch(struct world *w, CUstream s, uint32_t name, uint64_t number)
{
    assert_int_equal(
        launch_with(w->c, FUNCTION, s, (struct arguments){name, number, 0, number * 7}),
        CUDA_SUCCESS);
}

static void
on_default(struct world *w)
{
    uint64_t numbers = 0;

    lock_all(w, true, false);
    for (int i = 0; i < STREAMS; i++)
        numbers |= (++w->sent[i] & 0xffff) << 16 * i;
    send_launch(w, NULL, ALL, numbers);
    lock_all(w, false, false);
}

static void
on_stream(struct world *w, unsigned s, unsigned e, unsigned what)
{
    pthread_mutex_lock(&w->stream_lock[s]);
    if (what < 6) {
        send_launch(w, STREAM(s), s, ++w->sent[s]);
    } else if (what < 8) {
        pthread_mutex_lock(&w->event_lock[e]);
        w->event_calls[e][w->events_sent[e]++] = (struct event_call){
            what == 6 ? HED_cuEventRecord : HED_cuStreamWaitEvent, s, w->sent[s]};
        if (what == 6)
            assert_int_equal(CALL(w->c, cuEventRecord, EVENT(e), STREAM(s), false), CUDA_SUCCESS);
        else
            assert_int_equal(CALL(w->c, cuStreamWaitEvent, STREAM(s), EVENT(e), 0, false),
                             CUDA_SUCCESS);
        pthread_mutex_unlock(&w->event_lock[e]);
    } else {
        assert_int_equal(CALL(w->c, cuStreamSynchronize, .hStream = STREAM(s)), CUDA_SUCCESS);
    }
    pthread_mutex_unlock(&w->stream_lock[s]);
}

static void
on_all(struct world *w, bool wait)
{
    lock_all(w, true, true);
    if (wait)
        assert_int_equal(CALL(w->c, cuCtxSynchronize, 0), CUDA_SUCCESS);
    else
        assert_int_equal(CALL(w->c, cuMemFree_v2, DEVICE_BEGIN), CUDA_SUCCESS);
    lock_all(w, false, true);
}

static void
make_random_call(struct world *w, unsigned *seed)
{
    const unsigned what = (unsigned)rand_r(seed) % 40;
    const unsigned s = (unsigned)rand_r(seed) % STREAMS;
    const unsigned e = (unsigned)rand_r(seed) % EVENTS;

    if (what < 32) {
        on_stream(w, s, e, what % 8);
    } else if (what == 32) {
        on_stream(w, s, e, 8);
    } else if (what < 36) {
        on_default(w);
    } else if (what == 36) {
        pthread_mutex_lock(&w->event_lock[e]);
        assert_int_equal(CALL(w->c, cuEventSynchronize, EVENT(e)), CUDA_SUCCESS);
        pthread_mutex_unlock(&w->event_lock[e]);
    } else if (what == 37) {
        (void)CALL(w->c, cuEventQuery, EVENT(e));
    } else {
        on_all(w, what == 38);
    }
}

struct worker {
    struct world *w;
    unsigned index;
    pthread_t thread;
};

static void *
worker_main(void *arg)
{
    struct worker *me = arg;
    struct world *w = me->w;
    unsigned seed = w->seed * 100 + me->index;

    current_context = CONTEXT;
    for (int i = 0; i < CALLS; i++) {
        if (w->clients && i % 100 == 0) {
            char name[16];

            snprintf(name, sizeof name, "client%u", (me->index + (unsigned)i / 100) % 3);
            hed_recorder_set_client(w->c->engine, i % 300 ? name : "", false);
        }
        make_random_call(w, &seed);
    }
    return NULL;
}

static void
run_programs(const char *settings, bool clients, bool switches)
{
    for (unsigned seed = 1; seed <= 4; seed++) {
        struct world *w = calloc(1, sizeof *w); /* large */
        struct worker workers[THREADS];

        w->c = chain(settings, false);
        w->clients = clients;
        w->seed = seed;
        for (int i = 0; i < STREAMS; i++)
            pthread_mutex_init(&w->stream_lock[i], NULL);
        for (int i = 0; i < EVENTS; i++)
            pthread_mutex_init(&w->event_lock[i], NULL);
        w->c->fake.user = w;
        w->c->fake.hook = check_call;
        for (unsigned i = 0; i < THREADS; i++) {
            workers[i] = (struct worker){.w = w, .index = i};
            assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
        }
        for (int i = 0; switches && i < 20; i++) {
            atomic_store(&hed_session.recording, i % 2);
            hed_sleep_ns(300000);
        }
        atomic_store(&hed_session.recording, true);
        for (unsigned i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        on_all(w, true);
        assert_int_equal(w->disorder, 0);
        for (int i = 0; i < STREAMS; i++)
            assert_int_equal(w->seen[i], w->sent[i]);
        discard(w->c);
        free(w);
    }
}

static void
one_client_with_many_threads(void **state)
{
    run_programs("", false, false);
}

static void
more_threads_than_queues(void **state)
{
    run_programs("queues=2", false, false);
    run_programs("queues=1", false, false);
}

static void
a_short_queue(void **state)
{
    run_programs("queue=3", false, false);
}

static void
clients_that_share_streams_and_events(void **state)
{
    run_programs("", true, false);
}

static void
clients_with_short_queues(void **state)
{
    run_programs("queue=2", true, false);
}

static void
switched_off_and_on_in_between(void **state)
{
    run_programs("", false, true);
}

static void
clients_switched_off_and_on(void **state)
{
    run_programs("queue=5", true, true);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_client_with_many_threads),
    cmocka_unit_test(more_threads_than_queues),
    cmocka_unit_test(a_short_queue),
    cmocka_unit_test(clients_that_share_streams_and_events),
    cmocka_unit_test(clients_with_short_queues),
    cmocka_unit_test(switched_off_and_on_in_between),
    cmocka_unit_test(clients_switched_off_and_on),
};

HED_UNIT_MAIN(tests)
