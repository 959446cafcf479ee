/* Tests of record mode with several threads of one client: their calls are issued at the same time,
 * and calls that the program orders stay in order without holding a thread.
 *
 * In most tests the driver holds a launch of the main thread. What another thread queues behind it
 * must not reach the driver, and the other thread must not wait. */
#include "unit/record/make.h"

struct other {
    struct chain *c;
    void (*run)(struct chain *c);
};

static void *
other_main(void *arg)
{
    struct other *o = arg;

    current_context = CONTEXT;
    o->run(o->c);
    return NULL;
}

/* Runs a function in another thread, and waits for its end. */
static void
in_another_thread(struct chain *c, void (*run)(struct chain *))
{
    struct other o = {c, run};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, other_main, &o), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Makes everything known that the tests use, with launches on streams 0 and 1. */
static struct chain *
prepared_chain(const char *settings)
{
    struct chain *c = chain(settings, false);

    for (int i = 0; i < 2; i++) {
        assert_int_equal(launch(c, STREAM(i), 0), CUDA_SUCCESS);
        assert_int_equal(CALL(c, cuEventRecord, EVENT(0), STREAM(i), false), CUDA_SUCCESS);
        assert_int_equal(CALL(c, cuStreamWaitEvent, STREAM(i), EVENT(0), 0, false), CUDA_SUCCESS);
        assert_int_equal(CALL(c, cuGraphLaunch, (CUgraphExec)0x5000, STREAM(i), false),
                         CUDA_SUCCESS);
    }
    assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);
    return c;
}

/* The index of the n-th call of that kind in the log, counted from 0; the end if there is none. */
static unsigned
position(struct chain *c, enum hed_cuda_call id, unsigned n)
{
    unsigned i = 0;

    /* Other threads may still make calls. */
    pthread_mutex_lock(&c->fake.lock);
    for (; i < c->fake.count; i++)
        if (c->fake.log[i].id == id && n-- == 0)
            break;
    pthread_mutex_unlock(&c->fake.lock);
    return i;
}

static void
release(struct chain *c)
{
    atomic_store(&c->fake.hold, false);
    assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);
    assert_int_equal(queued(c), 0);
}

/* ---- at the same time ------------------------------------------------------------------------ */

static void
launch_on_stream_1(struct chain *c)
{
    assert_int_equal(launch(c, STREAM(1), 11), CUDA_SUCCESS);
    assert_int_equal(launch(c, STREAM(1), 12), CUDA_SUCCESS);
}

static void
threads_with_streams_of_their_own_do_not_wait_for_each_other(void **state)
{
    struct chain *c = prepared_chain("");

    hold(c, STREAM(0));
    in_another_thread(c, launch_on_stream_1);
    WAIT_UNTIL(atomic_load(&c->fake.held) == 2);
    release(c);
    discard(c);
}

static void
with_one_queue_calls_are_issued_one_by_one(void **state)
{
    struct chain *c = prepared_chain("queues=1");

    hold(c, STREAM(0));
    in_another_thread(c, launch_on_stream_1);
    assert_int_equal(queued(c), 3);
    assert_int_equal(c->engine->clients[0]->count, 1);
    assert_int_equal(atomic_load(&c->fake.held), 1);
    release(c);
    discard(c);
}

static void
a_thread_that_ends_leaves_its_queue_to_others(void **state)
{
    struct chain *c = prepared_chain("queues=3");

    hold(c, STREAM(0));
    for (int i = 0; i < 20; i++)
        in_another_thread(c, launch_on_stream_1);
    assert_int_equal(c->engine->clients[0]->count, 2);
    release(c);
    assert_int_equal(made(c, HED_cuLaunchKernel), 2 + 2 + 40);
    discard(c);
}

/* Nested threads: each one exists while the next runs, and there are more than queues. */
static void
launch_in_nested_threads(struct chain *c)
{
    static _Thread_local CUstream stream;
    static unsigned depth;

    stream = STREAM(depth % 2);
    assert_int_equal(launch(c, stream, 20 + depth), CUDA_SUCCESS);
    if (++depth % 8)
        in_another_thread(c, launch_in_nested_threads);
    assert_int_equal(launch(c, stream, 30), CUDA_SUCCESS);
}

static void
threads_share_queues_if_there_are_not_enough(void **state)
{
    struct chain *c = prepared_chain("queues=3");

    in_another_thread(c, launch_in_nested_threads);
    assert_int_equal(c->engine->clients[0]->count, 3);
    release(c);
    assert_int_equal(made(c, HED_cuLaunchKernel), 2 + 16);
    discard(c);
}

/* ---- in order -------------------------------------------------------------------------------- */

static void
launch_on_stream_0(struct chain *c)
{
    assert_int_equal(launch(c, STREAM(0), 11), CUDA_SUCCESS);
}

static void
launches_of_two_threads_on_one_stream_stay_in_order(void **state)
{
    struct chain *c = prepared_chain("");
    unsigned at;

    hold(c, STREAM(0));
    assert_int_equal(launch(c, STREAM(0), 10), CUDA_SUCCESS);
    in_another_thread(c, launch_on_stream_0);
    assert_int_equal(launch(c, STREAM(0), 12), CUDA_SUCCESS);
    assert_int_equal(queued(c), 4);
    at = c->fake.count;
    release(c);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(c->fake.log[at + 1 + i].args.b, 10 + i);
    discard(c);
}

static void
wait_for_event_on_stream_1(struct chain *c)
{
    assert_int_equal(launch(c, STREAM(1), 1), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuStreamWaitEvent, STREAM(1), EVENT(0), 0, false), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuEventRecord, EVENT(0), STREAM(1), false), CUDA_SUCCESS);
}

/* The other thread has work of its own in its queue, so the two queues must wait for each other. */
static void
a_wait_for_an_event_comes_after_its_record(void **state)
{
    struct chain *c = prepared_chain("");

    hold(c, STREAM(0));
    assert_int_equal(CALL(c, cuEventRecord, EVENT(0), STREAM(0), false), CUDA_SUCCESS);
    in_another_thread(c, wait_for_event_on_stream_1);
    assert_int_equal(CALL(c, cuStreamWaitEvent, STREAM(0), EVENT(0), 0, false), CUDA_SUCCESS);
    give_a_moment(5);
    assert_int_equal(made(c, HED_cuStreamWaitEvent), 2); /* those of prepared_chain */
    release(c);
    assert_true(position(c, HED_cuEventRecord, 2) < position(c, HED_cuStreamWaitEvent, 2));
    assert_true(position(c, HED_cuStreamWaitEvent, 2) < position(c, HED_cuEventRecord, 3));
    assert_true(position(c, HED_cuEventRecord, 3) < position(c, HED_cuStreamWaitEvent, 3));
    assert_int_equal(made(c, HED_cuStreamWaitEvent), 4);
    discard(c);
}

static void
launch_on_default_stream(struct chain *c)
{
    assert_int_equal(CALL(c, cuGraphLaunch, (CUgraphExec)0x5000, STREAM(1), false), CUDA_SUCCESS);
    assert_int_equal(launch(c, NULL, 11), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuEventRecord, EVENT(0), STREAM(1), false), CUDA_SUCCESS);
}

static void
the_default_stream_comes_after_all_threads(void **state)
{
    struct chain *c = prepared_chain("");
    unsigned at;

    hold(c, STREAM(0));
    assert_int_equal(CALL(c, cuEventRecord, EVENT(0), STREAM(0), false), CUDA_SUCCESS);
    in_another_thread(c, launch_on_default_stream);
    assert_int_equal(CALL(c, cuStreamWaitEvent, STREAM(0), EVENT(0), 0, false), CUDA_SUCCESS);
    at = c->fake.count;
    release(c);
    while (c->fake.log[at].args.b != 11)
        at++;
    assert_true(position(c, HED_cuEventRecord, 2) < at);
    assert_true(position(c, HED_cuGraphLaunch, 2) < at);
    assert_true(position(c, HED_cuEventRecord, 3) > at);
    assert_true(position(c, HED_cuStreamWaitEvent, 2) > at);
    discard(c);
}

/* A thread whose calls go to two queues: its own order stays. */
static void
use_two_streams(struct chain *c)
{
    assert_int_equal(launch(c, STREAM(0), 11), CUDA_SUCCESS); /* behind the main thread's work */
    assert_int_equal(CALL(c, cuEventRecord, EVENT(1), STREAM(1), false), CUDA_SUCCESS);
}

static void
the_calls_of_one_thread_stay_in_order(void **state)
{
    struct chain *c = prepared_chain("");

    assert_int_equal(CALL(c, cuEventRecord, EVENT(1), STREAM(1), false), CUDA_SUCCESS);
    hold(c, STREAM(0));
    in_another_thread(c, use_two_streams);
    give_a_moment(5);
    assert_int_equal(made(c, HED_cuEventRecord), 3); /* not the thread's, which is the fourth */
    release(c);
    assert_int_equal(made(c, HED_cuEventRecord), 4);
    discard(c);
}

static void
launch_graph_on_stream_1(struct chain *c)
{
    assert_int_equal(CALL(c, cuGraphLaunch, (CUgraphExec)0x5000, STREAM(1), false), CUDA_SUCCESS);
}

static void
launches_of_one_graph_stay_in_order(void **state)
{
    struct chain *c = prepared_chain("");

    hold(c, STREAM(0));
    assert_int_equal(CALL(c, cuGraphLaunch, (CUgraphExec)0x5000, STREAM(0), false), CUDA_SUCCESS);
    in_another_thread(c, launch_graph_on_stream_1);
    give_a_moment(5);
    assert_int_equal(atomic_load(&c->fake.held), 1);
    release(c);
    assert_int_equal(c->fake.log[position(c, HED_cuGraphLaunch, 2)].stream, (uintptr_t)STREAM(0));
    assert_int_equal(c->fake.log[position(c, HED_cuGraphLaunch, 3)].stream, (uintptr_t)STREAM(1));
    discard(c);
}

static _Atomic unsigned host_calls;

static void
count_host_call(void *expected)
{
    if (atomic_fetch_add(&host_calls, 1) != (uintptr_t)expected)
        atomic_store(&host_calls, 1000);
}

static void
queue_host_function(struct chain *c)
{
    assert_int_equal(CALL(c, cuLaunchHostFunc, STREAM(0), count_host_call, (void *)2, false),
                     CUDA_SUCCESS);
}

static void
host_functions_stay_in_order(void **state)
{
    struct chain *c = prepared_chain("");

    atomic_store(&host_calls, 0);
    assert_int_equal(CALL(c, cuLaunchHostFunc, STREAM(0), count_host_call, NULL, false),
                     CUDA_SUCCESS); /* becomes known */
    hold(c, STREAM(0));
    assert_int_equal(CALL(c, cuLaunchHostFunc, STREAM(0), count_host_call, (void *)1, false),
                     CUDA_SUCCESS);
    in_another_thread(c, queue_host_function);
    assert_int_equal(atomic_load(&host_calls), 1);
    release(c);
    assert_int_equal(atomic_load(&host_calls), 3);
    discard(c);
}

/* ---- calls that are made at once ------------------------------------------------------------- */

static void
queue_on_stream_1(struct chain *c)
{
    launch_on_stream_1(c);
    assert_int_equal(CALL(c, cuEventRecord, EVENT(0), STREAM(1), false), CUDA_SUCCESS);
}

/* Makes a call while the driver holds another thread's launch. The call must not reach the driver
 * before the other thread's calls have. */
struct maker {
    struct chain *c;
    CUresult (*make)(struct chain *);
    _Atomic bool done;
};

static void *
maker_main(void *arg)
{
    struct maker *m = arg;

    current_context = CONTEXT;
    assert_int_equal(m->make(m->c), CUDA_SUCCESS);
    atomic_store(&m->done, true);
    return NULL;
}

static void
comes_after_another_thread(CUresult (*make)(struct chain *), enum hed_cuda_call id)
{
    struct chain *c = prepared_chain("");
    struct maker m = {.c = c, .make = make};
    unsigned before;
    pthread_t thread;

    hold(c, STREAM(0));
    before = made(c, id);
    in_another_thread(c, queue_on_stream_1);
    WAIT_UNTIL(atomic_load(&c->fake.held) == 2);
    assert_int_equal(pthread_create(&thread, NULL, maker_main, &m), 0);
    give_a_moment(5);
    assert_false(atomic_load(&m.done));
    assert_int_equal(made(c, id), before);
    atomic_store(&c->fake.hold, false);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(position(c, HED_cuEventRecord, 2) < position(c, id, before));
    discard(c);
}

static CUresult
destroy_event(struct chain *c)
{
    return CALL(c, cuEventDestroy_v2, EVENT(0));
}

static CUresult
destroy_stream(struct chain *c)
{
    return CALL(c, cuStreamDestroy_v2, STREAM(1));
}

static CUresult
wait_for_stream(struct chain *c)
{
    return CALL(c, cuStreamSynchronize, .hStream = STREAM(1));
}

static CUresult
free_memory(struct chain *c)
{
    return CALL(c, cuMemFree_v2, DEVICE_BEGIN);
}

static CUresult
begin_capture(struct chain *c)
{
    return CALL(c, cuStreamBeginCapture_v2, .hStream = STREAM(3));
}

static void
calls_that_are_made_at_once_come_after_other_threads(void **state)
{
    comes_after_another_thread(destroy_event, HED_cuEventDestroy_v2);
    comes_after_another_thread(destroy_stream, HED_cuStreamDestroy_v2);
    comes_after_another_thread(wait_for_stream, HED_cuStreamSynchronize);
    comes_after_another_thread(free_memory, HED_cuMemFree_v2);
    comes_after_another_thread(begin_capture, HED_cuStreamBeginCapture_v2);
}

static void
wait_for_stream_1(struct chain *c)
{
    assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(1)), CUDA_SUCCESS);
}

static void
a_wait_for_a_stream_does_not_wait_for_other_threads(void **state)
{
    struct chain *c = prepared_chain("");

    hold(c, STREAM(0));
    in_another_thread(c, wait_for_stream_1); /* returns while the launch is held */
    release(c);
    discard(c);
}

static void
get_error(struct chain *c)
{
    assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(0)),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void
an_error_is_reported_to_any_thread_of_the_client(void **state)
{
    struct chain *c = prepared_chain("");

    hold(c, STREAM(0));
    c->fake.answer = CUDA_ERROR_ILLEGAL_ADDRESS;
    atomic_store(&c->fake.hold, false);
    in_another_thread(c, get_error);
    assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(0)), CUDA_SUCCESS);
    discard(c);
}

/* At exit, one thread issues what is left in all queues, whatever waits for whatever. */
static void
the_end_of_the_process_issues_all_queues(void **state)
{
    struct chain *c = prepared_chain("");

    hold(c, STREAM(0));
    assert_int_equal(CALL(c, cuEventRecord, EVENT(0), STREAM(0), false), CUDA_SUCCESS);
    in_another_thread(c, wait_for_event_on_stream_1);
    assert_int_equal(CALL(c, cuStreamWaitEvent, STREAM(0), EVENT(0), 0, false), CUDA_SUCCESS);
    atomic_store(&c->fake.hold, false);
    hed_record_layer.fini(c->top);
    assert_int_equal(queued(c), 0);
    assert_int_equal(made(c, HED_cuStreamWaitEvent), 4);
    discard(c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(threads_with_streams_of_their_own_do_not_wait_for_each_other),
    cmocka_unit_test(with_one_queue_calls_are_issued_one_by_one),
    cmocka_unit_test(a_thread_that_ends_leaves_its_queue_to_others),
    cmocka_unit_test(threads_share_queues_if_there_are_not_enough),
    cmocka_unit_test(launches_of_two_threads_on_one_stream_stay_in_order),
    cmocka_unit_test(a_wait_for_an_event_comes_after_its_record),
    cmocka_unit_test(the_default_stream_comes_after_all_threads),
    cmocka_unit_test(the_calls_of_one_thread_stay_in_order),
    cmocka_unit_test(launches_of_one_graph_stay_in_order),
    cmocka_unit_test(host_functions_stay_in_order),
    cmocka_unit_test(calls_that_are_made_at_once_come_after_other_threads),
    cmocka_unit_test(a_wait_for_a_stream_does_not_wait_for_other_threads),
    cmocka_unit_test(an_error_is_reported_to_any_thread_of_the_client),
    cmocka_unit_test(the_end_of_the_process_issues_all_queues),
};

HED_UNIT_MAIN(tests)
