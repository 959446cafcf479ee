/* Tests of record mode: captures, streams of our own, the switch, what ends meanwhile. */
#include "unit/record/make.h"

#include <sys/wait.h>

/* The last call of that sort that was made. */
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

/* A fork to a second stream and back, as programs do it. */
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
            /* A stream that is not of the capture, and an event of work: that is waited for where
             * the work goes. */
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

/* It is refused at once when it is waited for, so it is not deferred. */
static void
an_event_of_a_capture_is_not_known_any_more(void **state)
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
no_call_of_ours_ends_a_capture(void **state)
{
    struct chain *c = chain("stream=own", false);

    /* Without a stream of ours, and with one. */
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
        /* What went by the program's stream has to be done before anything goes by ours. */
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
what_went_while_it_was_off_comes_first(void **state)
{
    struct chain *c = chain("stream=own", false);

    for (int i = 0; i < 3; i++) {
        assert_int_equal(launch(c, STREAM(0), 1), CUDA_SUCCESS);
        assert_int_equal(launch(c, STREAM(0), 2), CUDA_SUCCESS);
        set_recording(false);
        assert_int_equal(launch(c, STREAM(0), 3), CUDA_SUCCESS);
        assert_int_equal(c->fake.log[c->fake.count - 1].stream, (uintptr_t)STREAM(0));
        assert_int_equal(c->fake.log[c->fake.count - 2].id, HED_cuStreamSynchronize); /* of ours */
        assert_int_equal(launch(c, STREAM(0), 4), CUDA_SUCCESS);
        set_recording(true);
        assert_int_equal(launch(c, STREAM(0), 5), CUDA_SUCCESS); /* is known, and may be deferred */
        assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(0)), CUDA_SUCCESS);
        assert_int_equal(last(c, HED_cuLaunchKernel)->args.b, 5);
        assert_int_equal(last(c, HED_cuLaunchKernel)->stream, OWN(0));
        assert_int_equal(last(c, HED_cuLaunchKernel)[-1].id, HED_cuCtxSynchronize);
        assert_int_equal(last(c, HED_cuLaunchKernel)[-2].args.b, 4);
    }
    discard(c);
}

static void
what_is_gone_while_it_was_off_is_not_known(void **state)
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
    current_context = NULL; /* in a thread that has none */
    assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(0)), CUDA_SUCCESS);
    assert_int_equal(last(c, HED_cuStreamSynchronize)->stream, OWN(0));
    current_context = CONTEXT;
    discard(c);
}

/* A context that has failed says so to whoever waits, and can be ended all the same; who waits for
 * an event waits for no more than that. */
static void
our_stream_is_not_in_the_way(void **state)
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
        atomic_store(&c->engine->clients[0]->role, 0); /* as if nobody had issued just then */
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

/* A thread that waits for the queue may be the one that issues, and be cancelled meanwhile. */
static void
a_thread_that_is_cancelled_takes_nothing_with_it(void **state)
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
    cmocka_unit_test(an_event_of_a_capture_is_not_known_any_more),
    cmocka_unit_test(no_call_of_ours_ends_a_capture),
    cmocka_unit_test(captures_count_whatever_the_switch_says),
    cmocka_unit_test(what_went_while_it_was_off_comes_first),
    cmocka_unit_test(what_is_gone_while_it_was_off_is_not_known),
    cmocka_unit_test(a_stream_of_another_context),
    cmocka_unit_test(our_stream_is_not_in_the_way),
    cmocka_unit_test(the_end_of_a_child_issues_nothing),
    cmocka_unit_test(a_thread_that_is_cancelled_takes_nothing_with_it),
};

HED_UNIT_MAIN(tests)
