/* Events, callbacks, failures, and work itself. */
#include "driver/stream/stream.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/err.h"
#include "driver/context/context.h"
#include "unit/driver/busy.h"

static CUevent
make_event(struct fake *f, unsigned flags)
{
    CUevent e = NULL;

    OK(fake_call(f, cuEventCreate, &e, flags));
    return e;
}

static CUresult
query(struct fake *f, CUevent e)
{
    return fake_call(f, cuEventQuery, e);
}

static struct hed_stream *
inside(struct fake *f, CUstream s)
{
    struct hed_stream *out = NULL;

    OK(hed_stream_find(f->layer, s, false, &out));
    return out;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void
an_event_is_reached_with_its_stream(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUevent e = make_event(f, 0);
    struct busy busy;

    OK(query(f, e));
    OK(fake_call(f, cuEventSynchronize, e));
    busy_begin(f, &busy, s);
    OK(fake_call(f, cuEventRecord, e, s));
    assert_int_equal(query(f, e), CUDA_ERROR_NOT_READY);
    busy_end(&busy);
    OK(fake_call(f, cuEventSynchronize, e));
    OK(query(f, e));
    busy_fake_free(f);
}

static void
a_stream_waits_for_another_ones_event(void **state)
{
    CUstream a;
    CUstream b;
    struct fake *f = busy_fake_create(&a);
    CUevent e = make_event(f, CU_EVENT_DISABLE_TIMING);
    _Atomic int flag = 0;
    struct busy busy;

    OK(fake_call(f, cuStreamCreate, &b, CU_STREAM_NON_BLOCKING));
    OK(fake_call(f, cuStreamWaitEvent, b, e)); /* never recorded: nothing to wait for */
    busy_begin(f, &busy, a);
    OK(fake_call(f, cuEventRecord, e, a));
    OK(fake_call(f, cuStreamWaitEvent, b, e));
    OK(fake_call(f, cuLaunchHostFunc, b, set_flag, &flag));
    assert_false(flag_after_a_moment(&flag));
    /* The wait keeps its own record and the event, whatever happens to them later. */
    OK(fake_call(f, cuEventRecord, e, b));
    OK(fake_call(f, cuEventDestroy_v2, e));
    assert_int_equal(query(f, e), CUDA_ERROR_INVALID_HANDLE);
    OK(fake_call(f, cuStreamDestroy_v2, a));
    assert_false(flag);
    busy_end(&busy);
    OK(fake_call(f, cuStreamSynchronize, b));
    assert_true(flag);
    busy_fake_free(f);
}

static void
times_between_events(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUevent a = make_event(f, 0);
    CUevent b = make_event(f, 0);
    CUevent untimed = make_event(f, CU_EVENT_DISABLE_TIMING);
    struct busy busy;
    float ms = -1;

    assert_int_equal(fake_call(f, cuEventElapsedTime, &ms, a, b), CUDA_ERROR_INVALID_HANDLE);
    OK(fake_call(f, cuEventRecord, a, s));
    OK(fake_call(f, cuEventRecord, untimed, s));
    OK(fake_call(f, cuStreamSynchronize, s));
    assert_int_equal(fake_call(f, cuEventElapsedTime, &ms, a, b), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuEventElapsedTime, &ms, a, untimed), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuEventElapsedTime, &ms, a, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(fake_call(f, cuEventElapsedTime, &ms, a, a));
    assert_true(ms == 0);
    busy_begin(f, &busy, s);
    OK(fake_call(f, cuEventRecord, b, s));
    assert_int_equal(fake_call(f, cuEventElapsedTime_v2, &ms, a, b), CUDA_ERROR_NOT_READY);
    give_a_moment(20);
    busy_end(&busy);
    OK(fake_call(f, cuEventSynchronize, b));
    OK(fake_call(f, cuEventElapsedTime_v2, &ms, a, b));
    assert_true(ms >= 20 && ms < PATIENCE_MS);
    OK(fake_call(f, cuEventElapsedTime, &ms, b, a));
    assert_true(ms <= -20);
    busy_fake_free(f);
}

static void
wrong_events_are_refused(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUevent e = make_event(f, 0);
    CUcontext c;

    assert_int_equal(fake_call(f, cuEventCreate, &e, 8), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuEventCreate, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuEventCreate, &e, CU_EVENT_INTERPROCESS),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(
        fake_call(f, cuEventCreate, &e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING),
        CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(fake_call(f, cuEventRecordWithFlags, e, s, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuEventRecordWithFlags, e, s, 1), CUDA_ERROR_ILLEGAL_STATE);
    assert_int_equal(fake_call(f, cuStreamWaitEvent, s, e, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuStreamWaitEvent, s, e, 1), CUDA_ERROR_ILLEGAL_STATE);
    assert_int_equal(fake_call(f, cuStreamWaitEvent, s, NULL), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuEventDestroy_v2, NULL), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuEventQuery, (CUevent)s), CUDA_ERROR_INVALID_HANDLE);

    /* An event of another context cannot be recorded here, but a stream can wait for it. */
    OK(fake_call(f, cuCtxCreate_v2, &c, 0, 0));
    assert_int_equal(fake_call(f, cuEventRecord, e, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(fake_call(f, cuEventRecord, e, s));
    OK(fake_call(f, cuStreamWaitEvent, NULL, e));
    CUevent other = make_event(f, 0);
    OK(fake_call(f, cuEventRecord, other, NULL));
    OK(fake_call(f, cuEventSynchronize, other));
    OK(fake_call(f, cuEventSynchronize, e));
    float ms;
    assert_int_equal(fake_call(f, cuEventElapsedTime, &ms, e, other), CUDA_ERROR_INVALID_HANDLE);
    OK(fake_call(f, cuCtxDestroy_v2, c));
    assert_int_equal(query(f, other), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(fake_call(f, cuEventDestroy_v2, other), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(fake_call(f, cuEventDestroy_v2, other), CUDA_ERROR_INVALID_HANDLE);
    busy_fake_free(f);
}

/* ---- functions of the program ---------------------------------------------------------------- */

struct told {
    CUstream stream;
    CUresult status;
    unsigned times;
    bool in_callback;
    pthread_t thread;
};

static void
callback(CUstream stream, CUresult status, void *arg)
{
    struct told *t = arg;

    t->stream = stream;
    t->status = status;
    t->in_callback = hed_in_callback();
    t->thread = pthread_self();
    t->times++;
}

static void
a_callback_is_told_the_stream_and_its_state(void **state)
{
    static const uintptr_t names[] = {0, 1, 2};
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    struct told t = {.times = 0};

    for (size_t i = 0; i < 3; i++) {
        OK(fake_call(f, cuStreamAddCallback, (CUstream)names[i], callback, &t, 0));
        OK(fake_call(f, cuCtxSynchronize));
        assert_ptr_equal(t.stream, (CUstream)names[i]);
    }
    OK(fake_call(f, cuStreamAddCallback, s, callback, &t, 0));
    OK(fake_call(f, cuStreamSynchronize, s));
    assert_ptr_equal(t.stream, s);
    assert_int_equal(t.status, CUDA_SUCCESS);
    assert_int_equal(t.times, 4);
    assert_true(t.in_callback);
    assert_false(hed_in_callback());
    assert_false(pthread_equal(t.thread, pthread_self()));
    assert_int_equal(fake_call(f, cuStreamAddCallback, s, callback, &t, 1),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuStreamAddCallback, s, NULL, &t, 0), CUDA_ERROR_INVALID_VALUE);
    busy_fake_free(f);
}

struct asker {
    struct fake *f;
    CUstream s;
    CUevent e;
    CUresult stream, event, other;
};

static void
ask(void *arg)
{
    struct asker *a = arg;

    a->stream = fake_call(a->f, cuStreamQuery, a->s);
    a->event = fake_call(a->f, cuEventQuery, a->e);
    a->other = fake_call(a->f, cuStreamQuery, NULL);
}

/* As measured on a GPU: named streams and events can be queried, but there is no current
 * context. */
static void
a_host_function_may_ask_about_what_it_can_name(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    struct asker a = {.f = f, .s = s, .e = make_event(f, 0)};

    OK(fake_call(f, cuLaunchHostFunc, s, ask, &a));
    OK(fake_call(f, cuStreamSynchronize, s));
    assert_int_equal(a.stream, CUDA_ERROR_NOT_READY);
    assert_int_equal(a.event, CUDA_SUCCESS);
    assert_int_not_equal(a.other, CUDA_SUCCESS);
    busy_fake_free(f);
}

/* ---- failures -------------------------------------------------------------------------------- */

static CUresult
failing_launch(struct fake *f, const struct hed_launch *l)
{
    return l->kernel == FAKE_NONE ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

static struct hed_work *
kernel(struct hed_stream *s, uint32_t which)
{
    struct hed_work *w = hed_work_create(s->ctx, HED_WORK_KERNEL);

    assert_non_null(w);
    w->kernel.kernel = which;
    w->kernel.grid[0] = 1;
    w->kernel.block[0] = 1;
    return w;
}

static struct hed_work *
copy(struct hed_stream *s, void *to, const void *from, size_t n)
{
    struct hed_work *w = hed_work_create(s->ctx, HED_WORK_COPY);

    assert_non_null(w);
    w->copy.from.at = (uint64_t)(uintptr_t)from;
    w->copy.to.at = (uint64_t)(uintptr_t)to;
    w->copy.box.width = n;
    w->copy.box.height = 1;
    w->copy.box.depth = 1;
    return w;
}

static void
a_failure_stays_and_skips_what_is_queued(void **state)
{
    CUstream stream;
    struct fake *f = busy_fake_create(&stream);
    struct hed_stream *s = inside(f, stream);
    CUevent e = make_event(f, 0);
    struct told t = {.times = 0};
    _Atomic int flag = 0;
    int from = 7;
    int to = 0;
    struct busy busy;

    f->launch = failing_launch;
    busy_begin(f, &busy, stream);
    OK(hed_submit(s, kernel(s, FAKE_NONE)));
    OK(hed_submit(s, kernel(s, FAKE_COPY)));
    OK(hed_submit(s, copy(s, &to, &from, sizeof to)));
    OK(fake_call(f, cuLaunchHostFunc, stream, set_flag, &flag));
    OK(fake_call(f, cuStreamAddCallback, stream, callback, &t, 0));
    OK(fake_call(f, cuEventRecord, e, stream));
    busy_end(&busy);
    assert_int_equal(fake_call(f, cuStreamSynchronize, stream), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(f->launches, 1);
    assert_int_equal(to, 0);
    assert_false(flag);
    assert_int_equal(t.times, 1);
    assert_int_equal(t.status, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(query(f, e), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(fake_call(f, cuEventSynchronize, e), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(fake_call(f, cuStreamQuery, NULL), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(hed_submit(s, kernel(s, FAKE_COPY)), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(hed_submit_wait(s, copy(s, &to, &from, sizeof to)), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(fake_call(f, cuStreamCreate, &stream, 0), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(fake_call(f, cuEventDestroy_v2, e), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(fake_call(f, cuEventDestroy_v2, e), CUDA_ERROR_INVALID_HANDLE);
    hed_stream_put(s);
    /* After a reset the context has no error any more. */
    f->launch = NULL;
    OK(fake_call(f, cuDevicePrimaryCtxReset_v2, 0));
    (void)fake_use_primary(f, 0);
    OK(fake_call(f, cuStreamQuery, NULL));
    busy_fake_free(f);
}

static void
waiting_for_failing_work_tells_its_failure(void **state)
{
    CUstream stream;
    struct fake *f = busy_fake_create(&stream);
    struct hed_stream *s = inside(f, stream);

    f->launch = failing_launch;
    OK(hed_submit_wait(s, kernel(s, FAKE_COPY)));
    assert_int_equal(hed_submit_wait(s, kernel(s, FAKE_NONE)), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(hed_context_error(s->ctx), CUDA_ERROR_LAUNCH_FAILED);
    hed_stream_put(s);
    busy_fake_free(f);
}

/* ---- work ------------------------------------------------------------------------------------ */

static CUresult
note_thread(struct fake *f, const struct hed_launch *l)
{
    *(pthread_t *)f->data = pthread_self();
    return CUDA_SUCCESS;
}

static void
what_is_waited_for_runs_here_when_the_stream_is_idle(void **state)
{
    CUstream stream;
    struct fake *f = busy_fake_create(&stream);
    struct hed_stream *s = inside(f, stream);
    pthread_t where;

    f->launch = note_thread;
    f->data = &where;
    OK(hed_submit_wait(s, kernel(s, FAKE_NONE)));
    assert_true(pthread_equal(where, pthread_self()));
    OK(hed_submit(s, kernel(s, FAKE_NONE)));
    while (fake_call(f, cuStreamQuery, stream) == CUDA_ERROR_NOT_READY)
        (void)sched_yield();
    assert_false(pthread_equal(where, pthread_self()));
    hed_stream_put(s);
    busy_fake_free(f);
}

static sem_t runner_may_begin;
static struct hed_executor late_runners; /* the runner may read it after the test */

static void
hold_runner(void *m, bool again)
{
    while (!again && sem_wait(&runner_may_begin) != 0)
        ;
}

static void
what_no_runner_has_begun_runs_where_it_is_waited_for(void **state)
{
    struct fake *f = fake_create(1);
    CUstream stream;
    pthread_t where;

    late_runners = fake_executor;
    late_runners.runner_begins = hold_runner;
    assert_int_equal(sem_init(&runner_may_begin, 0, 0), 0);
    f->near.executor = &late_runners;
    (void)fake_use_primary(f, 0);
    OK(fake_call(f, cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING));

    struct hed_stream *s = inside(f, stream);

    f->launch = note_thread;
    f->data = &where;
    OK(hed_submit(s, kernel(s, FAKE_NONE)));
    OK(hed_submit(s, kernel(s, FAKE_NONE)));
    OK(hed_stream_synchronize(s));
    assert_true(pthread_equal(where, pthread_self()));
    sem_post(&runner_may_begin);
    hed_stream_put(s);
    busy_fake_free(f);
}

static void
copies_go_row_by_row_and_plane_by_plane(void **state)
{
    static unsigned char from[4][4][8];
    static unsigned char to[4][4][8];
    /* width, height, depth; from rows of 8 in planes of 4 */
    static const size_t rows[][3] = {{8, 4, 4}, {8, 4, 2}, {8, 1, 1}, {5, 3, 2}, {8, 2, 3},
                                     {1, 4, 4}, {8, 1, 4}, {3, 1, 3}, {3, 2, 1}};
    CUstream stream;
    struct fake *f = busy_fake_create(&stream);
    struct hed_stream *s = inside(f, stream);

    for (size_t i = 0; i < sizeof from; i++)
        (&from[0][0][0])[i] = (unsigned char)(i + 1);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        struct hed_work *w = copy(s, to, from, rows[r][0]);

        memset(to, 0, sizeof to);
        w->copy.box.height = rows[r][1];
        w->copy.box.depth = rows[r][2];
        w->copy.from.pitch = w->copy.to.pitch = 8;
        w->copy.from.slice = w->copy.to.slice = 32;
        OK(hed_submit_wait(s, w));
        for (size_t z = 0; z < 4; z++)
            for (size_t y = 0; y < 4; y++)
                for (size_t x = 0; x < 8; x++)
                    assert_int_equal(to[z][y][x], x < rows[r][0] && y < rows[r][1] && z < rows[r][2]
                                                      ? from[z][y][x]
                                                      : 0);
    }
    hed_stream_put(s);
    busy_fake_free(f);
}

static void
fills_have_three_widths(void **state)
{
    CUstream stream;
    struct fake *f = busy_fake_create(&stream);
    struct hed_stream *s = inside(f, stream);

    for (unsigned size = 1; size <= 4; size *= 2) {
        uint32_t memory[8] = {0};
        const uint32_t want = size == 4 ? 0x01020304 : size == 2 ? 0x03040304 : 0x04040404;
        struct hed_work *w = hed_work_create(s->ctx, HED_WORK_FILL);

        w->fill.to = (uint64_t)(uintptr_t)memory;
        w->fill.pitch = 16;
        w->fill.value = 0x01020304;
        w->fill.size = size;
        w->fill.width = 8 / size;
        w->fill.height = 2;
        OK(hed_submit(s, w));
        OK(hed_stream_synchronize(s));
        for (int i = 0; i < 8; i++)
            assert_int_equal(memory[i], i % 4 < 2 ? want : 0);
    }
    hed_stream_put(s);
    busy_fake_free(f);
}

static void
a_copy_of_work_is_deep(void **state)
{
    CUstream stream;
    struct fake *f = busy_fake_create(&stream);
    struct hed_stream *s = inside(f, stream);
    struct hed_work *w = kernel(s, FAKE_COPY);
    const uint64_t params[3] = {(uint64_t)(uintptr_t)&w, 0, 0};
    unsigned char *bytes = calloc(1, 20);

    memcpy(bytes, params, 20);
    w->kernel.params = bytes;
    w->kernel.param_bytes = 20;
    w->kernel.attributes = calloc(1, sizeof *w->kernel.attributes);
    w->kernel.attribute_count = 1;

    struct hed_work *c = hed_work_copy(w);

    assert_non_null(c);
    assert_ptr_not_equal(c->kernel.params, bytes);
    assert_memory_equal(c->kernel.params, bytes, 20);
    assert_ptr_not_equal(c->kernel.attributes, w->kernel.attributes);
    hed_work_free(w);
    hed_work_free(c);
    hed_stream_put(s);
    busy_fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_event_is_reached_with_its_stream),
    cmocka_unit_test(a_stream_waits_for_another_ones_event),
    cmocka_unit_test(times_between_events),
    cmocka_unit_test(wrong_events_are_refused),
    cmocka_unit_test(a_callback_is_told_the_stream_and_its_state),
    cmocka_unit_test(a_host_function_may_ask_about_what_it_can_name),
    cmocka_unit_test(a_failure_stays_and_skips_what_is_queued),
    cmocka_unit_test(waiting_for_failing_work_tells_its_failure),
    cmocka_unit_test(what_is_waited_for_runs_here_when_the_stream_is_idle),
    cmocka_unit_test(what_no_runner_has_begun_runs_where_it_is_waited_for),
    cmocka_unit_test(copies_go_row_by_row_and_plane_by_plane),
    cmocka_unit_test(fills_have_three_widths),
    cmocka_unit_test(a_copy_of_work_is_deep),
};

HED_UNIT_MAIN(tests)
