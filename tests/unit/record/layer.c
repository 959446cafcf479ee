/* Tests of record mode over a fake driver: which calls are deferred, what is copied, and what the
 * program gets as an answer. */
#include "unit/record/make.h"

#include <sys/wait.h>

static void
the_first_of_a_kind_is_made_at_once_and_later_ones_are_queued(void **state)
{
    struct chain *c = chain("", false);

    assert_int_equal(launch(c, STREAM(0), 1), CUDA_SUCCESS);
    assert_int_equal(c->fake.count, 1);
    assert_true(pthread_equal(c->fake.log[0].thread, pthread_self()));
    atomic_store(&c->fake.hold, true);
    for (uint64_t i = 2; i <= 10; i++)
        assert_int_equal(launch(c, STREAM(0), i), CUDA_SUCCESS); /* does not wait */
    assert_true(queued(c) == 9 || queued(c) == 8);
    atomic_store(&c->fake.hold, false);
    assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);
    assert_int_equal(c->fake.count, 11);
    for (uint64_t i = 0; i < 10; i++) {
        const struct entry *e = &c->fake.log[i];

        assert_int_equal(e->id, HED_cuLaunchKernel);
        assert_true(e->args.a == 1 && e->args.b == i + 1 && e->args.c == 3);
        assert_true(e->args.d == 3 * (i + 1));
        assert_true(e->context == CONTEXT);
    }
    discard(c);
}

static void
kernels_and_packed_arguments_are_copied(void **state)
{
    struct chain *c = chain("", false);
    char buffer[40];
    size_t size = sizeof buffer;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_BUFFER_POINTER, buffer,
                     CU_LAUNCH_PARAM_END};
    void *swapped[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                       CU_LAUNCH_PARAM_END};
    struct hed_cuLaunchKernel a = {FUNCTION, 1, 1, 1, 1, 1, 1, 0, STREAM(0), NULL, swapped, false};

    assert_int_equal(launch_with(c, KERNEL, STREAM(0), (struct arguments){7, 8, 9, 10}),
                     CUDA_SUCCESS);
    memset(buffer, 'x', sizeof buffer);
    assert_int_equal(c->top->cuda->cuLaunchKernel(c->top, &a), CUDA_SUCCESS);
    hold(c, STREAM(1));
    assert_int_equal(launch_with(c, KERNEL, STREAM(0), (struct arguments){17, 18, 19, 20}),
                     CUDA_SUCCESS);
    memset(buffer, 'y', sizeof buffer);
    a.extra = extra; /* the driver accepts both orders */
    assert_int_equal(c->top->cuda->cuLaunchKernel(c->top, &a), CUDA_SUCCESS);
    memset(buffer, 'z', sizeof buffer);
    assert_int_equal(queued(c), 3);
    atomic_store(&c->fake.hold, false);
    assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);

    const struct entry *e = &c->fake.log[c->fake.count - 3];

    assert_true(e->args.a == 17 && e->args.b == 18 && e->args.c == 19 && e->args.d == 20);
    assert_true(e[1].data[0] == 'y' && e[1].data[39] == 'y');
    discard(c);
}

static void
attributes_are_copied_and_part_of_the_kind(void **state)
{
    struct chain *c = chain("", false);
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, STREAM(0), &attribute, 1};
    struct arguments with = {1, 2, 3, 4};
    void *params[] = {&with.a, &with.b, &with.c, &with.d};
    struct hed_cuLaunchKernelEx a = {&config, FUNCTION, params, NULL, false};

    attribute.value.clusterDim.x = 1;
    assert_int_equal(c->top->cuda->cuLaunchKernelEx(c->top, &a), CUDA_SUCCESS);
    hold(c, STREAM(0));
    assert_int_equal(c->top->cuda->cuLaunchKernelEx(c->top, &a), CUDA_SUCCESS);
    attribute.value.clusterDim.x = 77;
    memset(&config, 0xee, sizeof config);
    memset(&with, 0xee, sizeof with);
    assert_int_equal(queued(c), 2);
    atomic_store(&c->fake.hold, false);
    assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);

    const struct entry *e = &c->fake.log[c->fake.count - 2];

    assert_int_equal(e->id, HED_cuLaunchKernelEx);
    assert_int_equal(e->handle, 1);
    assert_true(e->args.b == 2 && e->args.d == 4);
    discard(c);
}

/* Autotuners try launches that cannot succeed, and rely on the answer. */
static void
a_launch_that_the_driver_refuses_is_refused_at_once(void **state)
{
    struct chain *c = chain("", false);
    struct hed_cuLaunchKernel a = {.f = FUNCTION, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1};

    assert_int_equal(launch(c, STREAM(0), 1), CUDA_SUCCESS);
    assert_int_equal(launch(c, STREAM(0), 2), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);
    c->fake.answer = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    a.blockDimX = 2048;
    a.blockDimY = a.blockDimZ = 1;
    for (int i = 0; i < 3; i++)
        assert_int_equal(c->top->cuda->cuLaunchKernel(c->top, &a),
                         CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    a.blockDimX = 1;
    a.gridDimY = 70000;
    assert_int_equal(c->top->cuda->cuLaunchKernel(c->top, &a), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    assert_int_equal(launch(c, STREAM(5), 2), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES); /* new stream */
    c->fake.answer = CUDA_SUCCESS;
    assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);
    discard(c);
}

static void
an_error_of_queued_work_is_reported_once(void **state)
{
    struct chain *c = chain("", false);

    hold(c, STREAM(0));
    c->fake.answer = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_int_equal(launch(c, STREAM(0), 3), CUDA_SUCCESS);
    atomic_store(&c->fake.hold, false);
    /* Memory is freed in spite of the error. */
    assert_int_equal(CALL(c, cuMemFree_v2, .dptr = DEVICE_BEGIN), CUDA_SUCCESS);
    assert_int_equal(made(c, HED_cuMemFree_v2), 1);
    assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(0)),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(0)), CUDA_SUCCESS);
    /* After an error, no kind is known. */
    assert_int_equal(launch(c, STREAM(0), 3), CUDA_ERROR_ILLEGAL_ADDRESS);
    c->fake.answer = CUDA_SUCCESS;
    assert_int_equal(launch(c, STREAM(0), 3), CUDA_SUCCESS);
    c->fake.answer = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_int_equal(launch(c, STREAM(0), 3), CUDA_SUCCESS);
    WAIT_UNTIL(!queued(c));
    c->fake.answer = CUDA_SUCCESS;
    assert_int_equal(launch(c, STREAM(0), 3), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(launch(c, STREAM(0), 3), CUDA_SUCCESS);
    discard(c);
}

static void
copies_are_deferred_where_their_memory_allows_it(void **state)
{
    struct chain *c = chain("", false);
    char small[64];
    char out[64];
    char *large = malloc(100000);

    /* One call of each kind must succeed first. */
    assert_int_equal(CALL(c, cuMemcpyHtoDAsync_v2, DEVICE_BEGIN, small, 64, STREAM(0), false),
                     CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuMemcpyDtoHAsync_v2, pinned, DEVICE_BEGIN, 64, STREAM(0), false),
                     CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuMemsetD32Async, DEVICE_BEGIN, 1, 16, STREAM(0), false),
                     CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuMemFreeAsync, DEVICE_BEGIN, STREAM(0), false), CUDA_SUCCESS);
    hold(c, STREAM(0));
    memset(small, 'a', sizeof small);
    assert_int_equal(CALL(c, cuMemcpyHtoDAsync_v2, DEVICE_BEGIN, small, 64, STREAM(0), false),
                     CUDA_SUCCESS);
    memset(small, 'b', sizeof small);
    assert_int_equal(CALL(c, cuMemcpyHtoDAsync_v2, DEVICE_BEGIN, pinned, 64, STREAM(0), false),
                     CUDA_SUCCESS);
    memset(pinned, 'p', sizeof pinned); /* the driver reads it when it copies */
    assert_int_equal(CALL(c, cuMemcpyDtoHAsync_v2, pinned, DEVICE_BEGIN, 64, STREAM(0), false),
                     CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuMemsetD32Async, DEVICE_BEGIN, 1, 16, STREAM(0), false),
                     CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuMemFreeAsync, DEVICE_BEGIN, STREAM(0), false), CUDA_SUCCESS);
    assert_int_equal(queued(c), 6);
    atomic_store(&c->fake.hold, false);
    /* These calls wait for the queue and are made in this thread. */
    assert_int_equal(CALL(c, cuMemcpyHtoDAsync_v2, DEVICE_BEGIN, large, 100000, STREAM(0), false),
                     CUDA_SUCCESS);
    assert_int_equal(queued(c), 0);

    const struct entry *e = &c->fake.log[c->fake.count - 1];

    assert_true(pthread_equal(e->thread, pthread_self()));
    assert_int_equal(e[-5].data[0], 'a');
    assert_int_equal(e[-4].data[0], 'p');
    assert_int_equal(CALL(c, cuMemcpyDtoHAsync_v2, out, DEVICE_BEGIN, 64, STREAM(0), false),
                     CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuMemsetD8Async, 0x10, 1, 16, STREAM(0), false), CUDA_SUCCESS);
    e = &c->fake.log[c->fake.count - 1];
    assert_true(pthread_equal(e->thread, pthread_self()));
    assert_true(pthread_equal(e[-1].thread, pthread_self()));
    free(large);
    discard(c);
}

static void
queued_work_is_not_ready(void **state)
{
    struct chain *c = chain("", false);

    assert_int_equal(CALL(c, cuEventRecord, EVENT(0), STREAM(0), false), CUDA_SUCCESS);
    hold(c, STREAM(0));
    assert_int_equal(CALL(c, cuEventRecord, EVENT(0), STREAM(0), false), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuEventQuery, EVENT(0)), CUDA_ERROR_NOT_READY);
    assert_int_equal(CALL(c, cuStreamQuery, .hStream = STREAM(0)), CUDA_ERROR_NOT_READY);
    assert_int_equal(made(c, HED_cuEventQuery), 0);
    atomic_store(&c->fake.hold, false);
    assert_int_equal(CALL(c, cuEventSynchronize, EVENT(0)), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuEventQuery, EVENT(0)), CUDA_SUCCESS);
    assert_int_equal(made(c, HED_cuEventRecord), 2);
    discard(c);
}

static void
questions_do_not_wait(void **state)
{
    struct chain *c = chain("", false);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    unsigned type = 0;

    hold(c, STREAM(0));
    assert_int_equal(CALL(c, cuStreamIsCapturing, STREAM(0), &status, false), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                          (CUdeviceptr)(uintptr_t)pinned),
                     CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuEventCreate, .Flags = 0), CUDA_SUCCESS);
    assert_int_equal(queued(c), 1);
    discard(c);
}

static void
while_anything_captures_nothing_is_queued(void **state)
{
    struct chain *c = chain("", false);

    assert_int_equal(launch(c, STREAM(0), 1), CUDA_SUCCESS);
    assert_int_equal(launch(c, STREAM(1), 1), CUDA_SUCCESS);
    assert_int_equal(launch(c, STREAM(0), 2), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuStreamBeginCapture_v2, .hStream = STREAM(0)), CUDA_SUCCESS);
    assert_int_equal(queued(c), 0);
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(launch(c, STREAM(i % 2), i), CUDA_SUCCESS);
        assert_true(pthread_equal(c->fake.log[c->fake.count - 1].thread, pthread_self()));
    }
    assert_int_equal(CALL(c, cuStreamEndCapture, .hStream = STREAM(0)), CUDA_SUCCESS);
    hold(c, STREAM(0));
    assert_int_equal(launch(c, STREAM(0), 3), CUDA_SUCCESS);
    assert_int_equal(queued(c), 2);
    /* A capture that fails to begin. */
    c->fake.fails = HED_cuStreamBeginCapture_v2;
    c->fake.answer = CUDA_ERROR_INVALID_VALUE;
    atomic_store(&c->fake.hold, false);
    assert_int_equal(CALL(c, cuStreamBeginCapture_v2, .hStream = STREAM(0)),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(atomic_load(&c->engine->capturing), 0);
    discard(c);
}

struct other {
    struct chain *c;
    _Atomic uint64_t number;
};

static void *
fill_main(void *arg)
{
    struct other *o = arg;

    current_context = CONTEXT;
    for (uint64_t i = 3; i < 43; i++) {
        assert_int_equal(launch(o->c, STREAM(0), i), CUDA_SUCCESS);
        atomic_store(&o->number, i);
    }
    return NULL;
}

static void
a_full_queue_makes_the_program_wait(void **state)
{
    struct chain *c = chain("queue=16", false);
    struct other o = {.c = c};
    pthread_t thread;

    hold(c, STREAM(0));
    assert_int_equal(pthread_create(&thread, NULL, fill_main, &o), 0);
    WAIT_UNTIL(queued(c) == 16);
    give_a_moment(5);
    assert_int_equal(queued(c), 16);
    assert_true(atomic_load(&o.number) < 42);
    atomic_store(&c->fake.hold, false);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(c->fake.log[c->fake.count - 2 - i].args.b, 42 - i);
    discard(c);
}

/* A thread that finds the queue full may find it empty a moment later. */
static void
a_queue_of_one(void **state)
{
    struct chain *c = chain("queue=1", false);

    for (uint64_t i = 0; i < 600000; i++)
        assert_int_equal(launch(c, STREAM(0), i), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);
    assert_int_equal(queued(c), 0);
    discard(c);
}

/* Records of all sizes, many times around the ring. */
static void
the_ring_goes_round(void **state)
{
    struct chain *c = chain("", false);
    char data[60000];
    unsigned n = 0;

    for (unsigned i = 0; i < 400; i++) {
        const size_t size = i * 7919 % sizeof data + 1;

        memset(data, (int)(i % 100), 64);
        assert_int_equal(CALL(c, cuMemcpyHtoDAsync_v2, DEVICE_BEGIN, data, size, STREAM(0), false),
                         CUDA_SUCCESS);
        assert_int_equal(launch(c, STREAM(0), i), CUDA_SUCCESS);
    }
    assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);
    for (unsigned i = 0; i < c->fake.count; i++) {
        const struct entry *e = &c->fake.log[i];

        if (e->id == HED_cuMemcpyHtoDAsync_v2)
            assert_int_equal(e->data[0], n % 100);
        else if (e->id == HED_cuLaunchKernel)
            assert_int_equal(e->args.b, n++);
    }
    assert_int_equal(n, 400);
    discard(c);
}

static void
the_switch_turns_it_off_and_on(void **state)
{
    struct chain *c = chain("", false);

    hold(c, STREAM(0));
    assert_int_equal(launch(c, STREAM(0), 3), CUDA_SUCCESS);
    atomic_store(&c->fake.hold, false);
    atomic_store(&hed_session.recording, false);
    assert_int_equal(launch(c, STREAM(0), 4), CUDA_SUCCESS);
    assert_int_equal(queued(c), 0);
    assert_int_equal(c->fake.log[c->fake.count - 1].args.b, 4);
    assert_true(pthread_equal(c->fake.log[c->fake.count - 1].thread, pthread_self()));
    assert_int_equal(c->fake.log[c->fake.count - 2].args.b, 3);
    atomic_store(&hed_session.recording, true);
    atomic_store(&c->fake.hold, true);
    assert_int_equal(launch(c, STREAM(0), 5), CUDA_SUCCESS);
    assert_int_equal(queued(c), 1);
    discard(c);
}

static void
a_child_forgets(void **state)
{
    struct chain *c = chain("", false);

    hold(c, STREAM(0));
    assert_int_equal(launch(c, STREAM(0), 3), CUDA_SUCCESS);

    const pid_t pid = fork();

    if (pid == 0) {
        hed_record_layer.forked(c->top);
        atomic_store(&c->fake.hold, false);
        /* Calls go straight to the driver, and nothing waits. */
        const bool good =
            launch(c, STREAM(0), 4) == CUDA_SUCCESS && CALL(c, cuCtxSynchronize, 0) == CUDA_SUCCESS;

        _exit(good ? 0 : 1);
    }

    int status = -1;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    discard(c);
}

static void
call_back(void *data)
{
    struct chain *c = data;

    assert_int_equal(CALL(c, cuEventQuery, EVENT(0)), CUDA_SUCCESS);
    assert_int_equal(launch(c, STREAM(1), 100), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(1)), CUDA_SUCCESS);
}

static void
a_function_of_the_program_may_call(void **state)
{
    struct chain *c = chain("", false);

    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(CALL(c, cuLaunchHostFunc, STREAM(0), call_back, c, false), CUDA_SUCCESS);
        if (i % 2)
            assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(0)), CUDA_SUCCESS);
    }
    assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);
    assert_int_equal(made(c, HED_cuLaunchHostFunc), 5);
    assert_int_equal(made(c, HED_cuLaunchKernel), 5);
    discard(c);
}

static void
handles_and_kinds_that_end_are_forgotten(void **state)
{
    struct chain *c = chain("", false);

    hold(c, STREAM(0));
    atomic_store(&c->fake.hold, false);
    assert_int_equal(CALL(c, cuModuleUnload, 0), CUDA_SUCCESS);
    c->fake.answer = CUDA_ERROR_INVALID_HANDLE;
    assert_int_equal(launch(c, STREAM(0), 3), CUDA_ERROR_INVALID_HANDLE);
    c->fake.answer = CUDA_SUCCESS;
    assert_int_equal(launch(c, STREAM(0), 4), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuStreamDestroy_v2, STREAM(0)), CUDA_SUCCESS);
    c->fake.answer = CUDA_ERROR_INVALID_HANDLE;
    assert_int_equal(launch(c, STREAM(0), 5), CUDA_ERROR_INVALID_HANDLE);
    c->fake.answer = CUDA_SUCCESS;
    /* Without a layout the arguments cannot be copied. */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(launch_with(c, SECRET, STREAM(1), (struct arguments){0}), CUDA_SUCCESS);
        assert_true(pthread_equal(c->fake.log[c->fake.count - 1].thread, pthread_self()));
    }
    discard(c);
}

static void
contexts_are_those_of_the_call(void **state)
{
    struct chain *c = chain("", false);
    const CUcontext other = (CUcontext)0xd0;

    for (int round = 0; round < 3; round++) {
        current_context = CONTEXT;
        assert_int_equal(launch(c, STREAM(0), 1), CUDA_SUCCESS);
        assert_int_equal(launch(c, STREAM(0), 1), CUDA_SUCCESS);
        current_context = other;
        assert_int_equal(launch(c, STREAM(1), 2), CUDA_SUCCESS);
        assert_int_equal(launch(c, STREAM(1), 2), CUDA_SUCCESS);
        current_context = NULL;
        assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(0)), CUDA_SUCCESS);
        assert_null(current_context);
    }
    for (unsigned i = 0; i < c->fake.count; i++)
        if (c->fake.log[i].id == HED_cuLaunchKernel)
            assert_true(c->fake.log[i].context == (c->fake.log[i].args.b == 1 ? CONTEXT : other));
    current_context = CONTEXT;
    discard(c);
}

/* A new context may have the address of an old one, without being current in any thread. */
static void
contexts_end(void **state)
{
    struct chain *c = chain("", false);

    for (unsigned round = 0; round < 5; round++) {
        hold(c, STREAM(0)); /* the issuing thread makes the second launch */
        atomic_store(&c->fake.hold, false);
        assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(0)), CUDA_SUCCESS);
        assert_int_equal(c->fake.log[c->fake.count - 2].id, HED_cuLaunchKernel);
        assert_int_equal(c->fake.log[c->fake.count - 2].args.b, 2);
        assert_int_equal(c->fake.log[c->fake.count - 2].since, round);
        assert_int_equal(CALL(c, cuCtxDestroy_v2, CONTEXT), CUDA_SUCCESS);
        assert_int_equal(CALL(c, cuCtxSetCurrent, CONTEXT), CUDA_SUCCESS);
    }
    current_since = 0;
    discard(c);
}

static void
the_threads_own_stream_stays_with_its_thread(void **state)
{
    struct chain *c = chain("", false);

    for (int i = 0; i < 4; i++) {
        assert_int_equal(launch(c, (CUstream)2, 1), CUDA_SUCCESS);
        assert_true(pthread_equal(c->fake.log[c->fake.count - 1].thread, pthread_self()));
    }
    discard(c);
}

static void
note_stream(CUstream stream, CUresult status, void *data)
{
    *(CUstream *)data = stream;
}

static void
a_callback_gets_the_programs_stream(void **state)
{
    static const char *const settings[] = {"", "stream=own"};

    for (int i = 0; i < 2; i++) {
        struct chain *c = chain(settings[i], false);
        CUstream told = NULL;
        struct hed_cuStreamAddCallback a = {STREAM(1), note_stream, &told, 0, false};

        for (int k = 0; k < 3; k++) {
            told = NULL;
            assert_int_equal(c->top->cuda->cuStreamAddCallback(c->top, &a), CUDA_SUCCESS);
            assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(1)), CUDA_SUCCESS);
            assert_ptr_equal(told, STREAM(1));
        }
        c->fake.fails = HED_cuStreamAddCallback;
        c->fake.answer = CUDA_ERROR_NOT_SUPPORTED;
        a.hStream = STREAM(2);
        assert_int_equal(c->top->cuda->cuStreamAddCallback(c->top, &a), CUDA_ERROR_NOT_SUPPORTED);
        assert_true(a.callback == note_stream && a.userData == &told && a.hStream == STREAM(2));
        discard(c);
    }
}

static void
with_stream_own_all_work_runs_on_one_stream(void **state)
{
    struct chain *c = chain("stream=own", false);
    const uint64_t own = 0x7700;

    for (uint64_t i = 0; i < 6; i++)
        assert_int_equal(launch(c, STREAM(i % 3), i), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuEventRecord, EVENT(0), STREAM(1), false), CUDA_SUCCESS);
    assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(2)), CUDA_SUCCESS);
    for (unsigned i = 2; i < c->fake.count;
         i++) /* after the stream was created and the context waited for */
        assert_int_equal(c->fake.log[i].stream, own);
    assert_int_equal(CALL(c, cuMemcpyDtoH_v2, pinned, DEVICE_BEGIN, 4, false), CUDA_SUCCESS);
    /* The call waits for heddle's stream before it, and for the context after it. */
    assert_int_equal(c->fake.log[c->fake.count - 3].id, HED_cuStreamSynchronize);
    assert_int_equal(c->fake.log[c->fake.count - 3].stream, own);
    assert_int_equal(c->fake.log[c->fake.count - 1].id, HED_cuCtxSynchronize);
    assert_int_equal(CALL(c, cuStreamGetFlags, .hStream = STREAM(2)), CUDA_SUCCESS);
    assert_int_equal(c->fake.log[c->fake.count - 1].stream, (uintptr_t)STREAM(2));
    assert_int_equal(CALL(c, cuStreamDestroy_v2, STREAM(2)), CUDA_SUCCESS);
    assert_int_equal(c->fake.log[c->fake.count - 1].stream, (uintptr_t)STREAM(2));
    discard(c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_first_of_a_kind_is_made_at_once_and_later_ones_are_queued),
    cmocka_unit_test(kernels_and_packed_arguments_are_copied),
    cmocka_unit_test(attributes_are_copied_and_part_of_the_kind),
    cmocka_unit_test(a_launch_that_the_driver_refuses_is_refused_at_once),
    cmocka_unit_test(an_error_of_queued_work_is_reported_once),
    cmocka_unit_test(copies_are_deferred_where_their_memory_allows_it),
    cmocka_unit_test(queued_work_is_not_ready),
    cmocka_unit_test(questions_do_not_wait),
    cmocka_unit_test(while_anything_captures_nothing_is_queued),
    cmocka_unit_test(a_full_queue_makes_the_program_wait),
    cmocka_unit_test(a_queue_of_one),
    cmocka_unit_test(the_ring_goes_round),
    cmocka_unit_test(the_switch_turns_it_off_and_on),
    cmocka_unit_test(a_child_forgets),
    cmocka_unit_test(a_function_of_the_program_may_call),
    cmocka_unit_test(handles_and_kinds_that_end_are_forgotten),
    cmocka_unit_test(contexts_are_those_of_the_call),
    cmocka_unit_test(contexts_end),
    cmocka_unit_test(the_threads_own_stream_stays_with_its_thread),
    cmocka_unit_test(a_callback_gets_the_programs_stream),
    cmocka_unit_test(with_stream_own_all_work_runs_on_one_stream),
};

HED_UNIT_MAIN(tests)
