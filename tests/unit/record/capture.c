/* Tests of record mode: captures, stream=own, turning recording off and on, objects that end. */
#include "unit/record/make.h"

#include <sys/wait.h>

/* The most recent call with that number. */
static const struct entry *
last(struct chain *c, enum hed_cuda_call id)
{
    for (unsigned i = c->fake.count; i > 0; i--)
        if (c->fake.log[i - 1].id == id)
            return &c->fake.log[i - 1];
    fail_msg("%s was not made", hed_cuda_info[id].name);
    return NULL;
}

static void
set_recording(bool on)
{
    atomic_store(&hed_session.recording, on);
}

/* A capture that forks to a second stream and joins it again, as programs do. */
static void
capture_two_streams(struct chain *c)
{
    assert_int_equal(CALL(c, cuStreamBeginCapture_v2, .hStream = STREAM(0)), CUDA_SUCCESS);
    assert_int_equal(launch(c, STREAM(0), 1), CUDA_SUCCESS);
    assert_int_equal(last(c, HED_cuLaunchKernel)->stream, (uintptr_t)STREAM(0));
    assert_int_equal(CALL(c, cuEventRecord, EVENT(0), STREAM(0), false), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuStreamWaitEvent, STREAM(1), EVENT(0), 0, false), CUDA_SUCCESS);
    assert_int_equal(last(c, HED_cuStreamWaitEvent)->stream, (uintptr_t)STREAM(1));
    assert_int_equal(launch(c, STREAM(1), 1), CUDA_SUCCESS);
    assert_int_equal(last(c, HED_cuLaunchKernel)->stream, (uintptr_t)STREAM(1));
    assert_int_equal(CALL(c, cuEventRecord, EVENT(1), STREAM(1), false), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuStreamWaitEvent, STREAM(0), EVENT(1), 0, false), CUDA_SUCCESS);
    assert_int_equal(atomic_load(&c->fake.capturing_streams),
                     stream_bit((uintptr_t)STREAM(0)) | stream_bit((uintptr_t)STREAM(1)));
}

static void
streams_join_captures(void **state)
{
    static const char *const settings[] = {"", "stream=own"};

    for (int i = 0; i < 2; i++) {
        struct chain *c = chain(settings[i], false);
        const uint64_t third = i ? OWN(0) : (uintptr_t)STREAM(2);

        for (uint64_t k = 0; k < 9; k++) {
            assert_int_equal(launch(c, STREAM(k % 3), k), CUDA_SUCCESS);
            assert_int_equal(CALL(c, cuEventRecord, EVENT(k % 3), STREAM(k % 3), false),
                             CUDA_SUCCESS);
            assert_int_equal(CALL(c, cuStreamWaitEvent, STREAM(k % 3), EVENT(k % 3), 0, false),
                             CUDA_SUCCESS);
        }
        for (int round = 0; round < 3; round++) {
            capture_two_streams(c);
            /* A stream outside the capture waits for an event of ordinary work: the wait goes to
             * the stream that the work runs on. */
            assert_int_equal(CALL(c, cuStreamWaitEvent, STREAM(2), EVENT(2), 0, false),
                             CUDA_SUCCESS);
            assert_int_equal(last(c, HED_cuStreamWaitEvent)->stream, third);
            assert_int_equal(launch(c, STREAM(2), 1), CUDA_SUCCESS);
            assert_int_equal(last(c, HED_cuLaunchKernel)->stream, third);
            assert_int_equal(CALL(c, cuStreamEndCapture, .hStream = STREAM(0)), CUDA_SUCCESS);
            assert_int_equal(atomic_load(&c->engine->capturing), 0);
            assert_int_equal(launch(c, STREAM(1), 1), CUDA_SUCCESS);
            assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);
            assert_int_equal(last(c, HED_cuLaunchKernel)->stream, i ? third : (uintptr_t)STREAM(1));
        }
        assert_int_equal(atomic_load(&c->fake.broken), 0);
        discard(c);
    }
}

/* The driver refuses at once to wait for such an event, so the wait is not deferred. */
static void
an_event_of_a_capture_is_forgotten(void **state)
{
    struct chain *c = chain("", false);

    for (int i = 0; i < 3; i++) {
        assert_int_equal(CALL(c, cuEventRecord, EVENT(0), STREAM(0), false), CUDA_SUCCESS);
        assert_int_equal(CALL(c, cuStreamWaitEvent, STREAM(0), EVENT(0), 0, false), CUDA_SUCCESS);
        assert_int_equal(launch(c, STREAM(1), 1), CUDA_SUCCESS);
    }
    capture_two_streams(c);
    assert_int_equal(CALL(c, cuStreamEndCapture, .hStream = STREAM(0)), CUDA_SUCCESS);
    c->fake.fails = HED_cuStreamWaitEvent;
    c->fake.answer = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(CALL(c, cuStreamWaitEvent, STREAM(1), EVENT(0), 0, false),
                     CUDA_ERROR_INVALID_VALUE);
    discard(c);
}

static void
no_call_of_the_engine_ends_a_capture(void **state)
{
    struct chain *c = chain("stream=own", false);

    /* First without a stream of heddle's, then with one. */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(CALL(c, cuStreamBeginCapture_v2, .hStream = STREAM(0)), CUDA_SUCCESS);
        assert_int_equal(launch(c, STREAM(0), 1), CUDA_SUCCESS);
        assert_int_equal(launch(c, STREAM(1), 1), CUDA_SUCCESS);
        assert_int_equal(CALL(c, cuMemcpyDtoD_v2, DEVICE_BEGIN, DEVICE_BEGIN + 64, 4, false),
                         CUDA_SUCCESS);
        assert_int_equal(c->fake.log[c->fake.count - 1].id, HED_cuStreamSynchronize);
        set_recording(false);
        assert_int_equal(launch(c, STREAM(1), 1), CUDA_SUCCESS);
        set_recording(true);
        assert_int_equal(launch(c, STREAM(1), 1), CUDA_SUCCESS);
        assert_int_equal(atomic_load(&c->fake.broken), 0);
        assert_int_equal(CALL(c, cuStreamEndCapture, .hStream = STREAM(0)), CUDA_SUCCESS);
        /* Work on the program's stream must be done before work goes to heddle's stream. */
        assert_int_equal(launch(c, STREAM(1), 1), CUDA_SUCCESS);
        assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(1)), CUDA_SUCCESS);
        assert_int_equal(last(c, HED_cuLaunchKernel)->stream, OWN(0));
        assert_true(last(c, HED_cuLaunchKernel) > last(c, HED_cuCtxSynchronize));
        assert_true(last(c, HED_cuCtxSynchronize) > last(c, HED_cuStreamEndCapture));
    }
    discard(c);
}

static void
captures_count_whatever_the_switch_says(void **state)
{
    struct chain *c = chain("", false);

    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(launch(c, STREAM(0), i), CUDA_SUCCESS);
    set_recording(false);
    assert_int_equal(CALL(c, cuStreamBeginCapture_v2, .hStream = STREAM(0)), CUDA_SUCCESS);
    set_recording(true);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(launch(c, STREAM(0), i), CUDA_SUCCESS);
        assert_true(pthread_equal(c->fake.log[c->fake.count - 1].thread, pthread_self()));
    }
    set_recording(false);
    assert_int_equal(CALL(c, cuStreamEndCapture, .hStream = STREAM(0)), CUDA_SUCCESS);
    set_recording(true);
    assert_int_equal(atomic_load(&c->engine->capturing), 0);
    hold(c, STREAM(0));
    assert_int_equal(launch(c, STREAM(0), 3), CUDA_SUCCESS);
    assert_int_equal(queued(c), 2);
    discard(c);
}

static void
calls_made_while_recording_was_off_come_first(void **state)
{
    struct chain *c = chain("stream=own", false);

    for (int i = 0; i < 3; i++) {
        assert_int_equal(launch(c, STREAM(0), 1), CUDA_SUCCESS);
        assert_int_equal(launch(c, STREAM(0), 2), CUDA_SUCCESS);
        set_recording(false);
        assert_int_equal(launch(c, STREAM(0), 3), CUDA_SUCCESS);
        assert_int_equal(c->fake.log[c->fake.count - 1].stream, (uintptr_t)STREAM(0));
        assert_int_equal(c->fake.log[c->fake.count - 2].id, HED_cuStreamSynchronize); /* heddle's */
        assert_int_equal(launch(c, STREAM(0), 4), CUDA_SUCCESS);
        set_recording(true);
        assert_int_equal(launch(c, STREAM(0), 5), CUDA_SUCCESS); /* its kind is known */
        assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(0)), CUDA_SUCCESS);
        assert_int_equal(last(c, HED_cuLaunchKernel)->args.b, 5);
        assert_int_equal(last(c, HED_cuLaunchKernel)->stream, OWN(0));
        assert_int_equal(last(c, HED_cuLaunchKernel)[-1].id, HED_cuCtxSynchronize);
        assert_int_equal(last(c, HED_cuLaunchKernel)[-2].args.b, 4);
    }
    discard(c);
}

static void
handles_that_end_while_recording_is_off_are_forgotten(void **state)
{
    struct chain *c = chain("", false);

    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(launch(c, STREAM(0), i), CUDA_SUCCESS);
    set_recording(false);
    assert_int_equal(CALL(c, cuModuleUnload, 0), CUDA_SUCCESS);
    set_recording(true);
    c->fake.answer = CUDA_ERROR_INVALID_HANDLE;
    assert_int_equal(launch(c, STREAM(0), 3), CUDA_ERROR_INVALID_HANDLE);
    discard(c);
}

static void
a_stream_of_another_context(void **state)
{
    struct chain *c = chain("stream=own", false);

    assert_int_equal(launch(c, STREAM(0), 1), CUDA_SUCCESS);
    current_context = OTHER_CONTEXT;
    assert_int_equal(launch(c, STREAM(8), 1), CUDA_SUCCESS);
    assert_int_equal(last(c, HED_cuLaunchKernel)->stream, OWN(1));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(CALL(c, cuEventRecord, EVENT(0), STREAM(8), false), CUDA_SUCCESS);
        assert_int_equal(CALL(c, cuStreamWaitEvent, STREAM(0), EVENT(0), 0, false), CUDA_SUCCESS);
        assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(0)), CUDA_SUCCESS);
        assert_int_equal(last(c, HED_cuEventRecord)->stream, OWN(1));
        assert_int_equal(last(c, HED_cuStreamWaitEvent)->stream, OWN(0));
        assert_int_equal(last(c, HED_cuStreamSynchronize)->stream, OWN(0));
    }
    current_context = CONTEXT;
    assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(8)), CUDA_SUCCESS);
    assert_int_equal(last(c, HED_cuStreamSynchronize)->stream, OWN(1));
    current_context = NULL; /* in a thread without a context */
    assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(0)), CUDA_SUCCESS);
    assert_int_equal(last(c, HED_cuStreamSynchronize)->stream, OWN(0));
    current_context = CONTEXT;
    discard(c);
}

/* A wait reports that its context has failed, and the context can still be destroyed. A wait for an
 * event waits for nothing else. */
static void
heddles_stream_does_not_get_in_the_way(void **state)
{
    struct chain *c = chain("stream=own", false);

    assert_int_equal(launch(c, STREAM(0), 1), CUDA_SUCCESS);
    c->fake.fails = HED_cuStreamSynchronize;
    c->fake.answer = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_int_equal(CALL(c, cuMemcpyDtoH_v2, pinned, DEVICE_BEGIN, 4, false),
                     CUDA_ERROR_ILLEGAL_ADDRESS);

    const unsigned waits = made(c, HED_cuStreamSynchronize);

    assert_int_equal(CALL(c, cuEventSynchronize, EVENT(0)), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuMemFree_v2, DEVICE_BEGIN), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuDevicePrimaryCtxReset_v2, 0), CUDA_SUCCESS);
    assert_int_equal(made(c, HED_cuMemFree_v2), 1);
    assert_int_equal(made(c, HED_cuDevicePrimaryCtxReset_v2), 1);
    assert_int_equal(made(c, HED_cuStreamSynchronize), waits);
    discard(c);
}

static void
the_end_of_a_child_issues_nothing(void **state)
{
    struct chain *c = chain("", false);

    hold(c, STREAM(0));
    assert_int_equal(launch(c, STREAM(0), 3), CUDA_SUCCESS);

    const pid_t pid = fork();

    if (pid == 0) {
        const unsigned before = c->fake.count;

        hed_record_layer.forked(c->top);
        atomic_store(&c->fake.hold, false);
        /* As if no thread had the role at that moment. */
        atomic_store(&c->engine->clients[0]->queues[0]->role, 0);
        hed_record_layer.fini(c->top);
        _exit(c->fake.count == before ? 0 : 1);
    }

    int status = -1;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    discard(c);
}

static void *
drain_main(void *arg)
{
    struct chain *c = arg;

    current_context = CONTEXT;
    (void)CALL(c, cuCtxSynchronize, 0);
    return NULL;
}

/* A thread that drains the queue may have the role and be cancelled at that time. */
static void
a_cancelled_thread_gives_the_role_up(void **state)
{
    struct chain *c = chain("", false);

    for (int i = 0; i < 30; i++) {
        pthread_t thread;

        assert_int_equal(launch(c, STREAM(0), 1), CUDA_SUCCESS);
        assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);
        atomic_store(&c->fake.hold, true);
        assert_int_equal(launch(c, STREAM(0), 2), CUDA_SUCCESS);
        assert_int_equal(launch(c, STREAM(0), 3), CUDA_SUCCESS);
        assert_int_equal(pthread_create(&thread, NULL, drain_main, c), 0);
        WAIT_UNTIL(atomic_load(&c->fake.held) != 0);
        assert_int_equal(pthread_cancel(thread), 0);
        hed_sleep_ns(100000);
        atomic_store(&c->fake.hold, false);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);
        assert_int_equal(queued(c), 0);
    }
    discard(c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(streams_join_captures),
    cmocka_unit_test(an_event_of_a_capture_is_forgotten),
    cmocka_unit_test(no_call_of_the_engine_ends_a_capture),
    cmocka_unit_test(captures_count_whatever_the_switch_says),
    cmocka_unit_test(calls_made_while_recording_was_off_come_first),
    cmocka_unit_test(handles_that_end_while_recording_is_off_are_forgotten),
    cmocka_unit_test(a_stream_of_another_context),
    cmocka_unit_test(heddles_stream_does_not_get_in_the_way),
    cmocka_unit_test(the_end_of_a_child_issues_nothing),
    cmocka_unit_test(a_cancelled_thread_gives_the_role_up),
};

HED_UNIT_MAIN(tests)
