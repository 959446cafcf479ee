/* A worker's functions that run in the client, and its marks: what the backend is asked for, which
 * side waits for which, and what the worker does not believe. Stand-ins replace the backend, the
 * channel and the rest of the worker. The test is the client. */
#include "harness/unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "remote/server/worker/worker.h"

#define STREAM UINT64_C(0x0200000100000001)
#define REAL ((CUstream)(uintptr_t)0x5000)
#define SLOTS 64

static CUresult next;  /* what the backend answers */
static CUresult noted; /* the last failure that nobody waited for */
static unsigned passed, registered, delivered;
static int memops; /* what the device says about itself */
static struct {
    CUhostFn fn;
    CUstreamCallback callback;
    void *data;
} given;
static struct {
    CUdeviceptr at;
    cuuint64_t value;
} written;

/* ---- the rest of a worker -------------------------------------------------------------------- */

void
hed_worker_failed(struct hed_worker *w, uint64_t context, CUresult error)
{
    (void)w;
    (void)context;
    noted = error;
}

static _Atomic unsigned ends; /* of sessions */

/* Ends the thread that makes the call, instead of the process. */
void
hed_worker_exit(struct hed_worker *w, int err)
{
    (void)w;
    assert_int_equal(err, HED_EIO);
    ends++;
    free(given.data);
    pthread_exit(NULL);
}

void
hed_ticket_pass(struct hed_worker_channel *ch)
{
    (void)ch;
    passed++;
}

int
hed_worker_before_answer(struct hed_worker_channel *ch)
{
    (void)ch;
    delivered++;
    return 0;
}

int
hed_worker_answer(struct hed_worker_channel *ch, const struct hed_msg *m, int result,
                  const void *body, size_t n)
{
    (void)ch;
    (void)m;
    (void)body;
    (void)n;
    assert_int_equal(result, CUDA_SUCCESS);
    assert_int_equal(delivered, 1); /* this came first */
    return 0;
}

int
hed_worker_stream(struct hed_worker_channel *ch, const struct hed_msg *m, CUstream *out)
{
    (void)ch;
    *out = REAL;
    return m->stream == STREAM ? 0 : HED_ENOTFOUND;
}

/* ---- a channel ------------------------------------------------------------------------------- */

struct fake_channel {
    struct hed_channel channel;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct hed_run out[16]; /* what the worker has sent */
    unsigned sent, seen;    /* by the worker; by the test */
    struct hed_run in;      /* what the test sends next */
    bool has_in, ended;
    struct hed_run taken; /* what the worker received */
};

static void *
fake_begin(struct hed_channel *channel, uint32_t size)
{
    struct fake_channel *ch = (struct fake_channel *)channel;

    assert_int_equal(size, sizeof(struct hed_run));
    return ch->ended ? NULL : &ch->out[ch->sent % 16];
}

static int
fake_end(struct hed_channel *channel, uint32_t size, bool urgent)
{
    struct fake_channel *ch = (struct fake_channel *)channel;

    (void)size;
    assert_true(urgent);
    (void)pthread_mutex_lock(&ch->mutex);
    ch->sent++;
    (void)pthread_cond_broadcast(&ch->changed);
    (void)pthread_mutex_unlock(&ch->mutex);
    return 0;
}

static int
fake_next(struct hed_channel *channel, int timeout_ms)
{
    struct fake_channel *ch = (struct fake_channel *)channel;

    (void)timeout_ms;
    (void)pthread_mutex_lock(&ch->mutex);
    while (!ch->has_in && !ch->ended)
        (void)pthread_cond_wait(&ch->changed, &ch->mutex);
    ch->taken = ch->in;

    const bool has = ch->has_in;

    ch->has_in = false;
    (void)pthread_cond_broadcast(&ch->changed);
    (void)pthread_mutex_unlock(&ch->mutex);
    return has ? 0 : HED_EIO;
}

static const struct hed_channel_ops fake_ops = {
    .begin = fake_begin,
    .end = fake_end,
    .next = fake_next,
};

void
hed_channel_free(struct hed_channel *ch)
{
    (void)ch;
}

static unsigned stopped;

void
hed_channel_stop(struct hed_channel *ch)
{
    (void)ch;
    stopped++;
}

/* The next message to the client. */
static struct hed_run
heard(struct fake_channel *ch)
{
    (void)pthread_mutex_lock(&ch->mutex);
    while (ch->seen == ch->sent)
        (void)pthread_cond_wait(&ch->changed, &ch->mutex);

    const struct hed_run run = ch->out[ch->seen++ % 16];

    (void)pthread_mutex_unlock(&ch->mutex);
    return run;
}

static void
say_to_worker(struct fake_channel *ch, const struct hed_run *run)
{
    (void)pthread_mutex_lock(&ch->mutex);
    while (ch->has_in)
        (void)pthread_cond_wait(&ch->changed, &ch->mutex);
    ch->in = *run;
    ch->has_in = true;
    (void)pthread_cond_broadcast(&ch->changed);
    (void)pthread_mutex_unlock(&ch->mutex);
}

/* ---- a backend ------------------------------------------------------------------------------- */

#define CALL(call) static CUresult fake_##call(struct hed_layer *self, struct hed_##call *a)

CALL(cuLaunchHostFunc)
{
    assert_ptr_equal(a->hStream, REAL);
    given.fn = a->fn;
    given.data = a->userData;
    return next;
}

CALL(cuStreamAddCallback)
{
    assert_ptr_equal(a->hStream, REAL);
    given.callback = a->callback;
    given.data = a->userData;
    return next;
}

CALL(cuStreamWriteValue64_v2)
{
    assert_ptr_equal(a->stream, REAL);
    written.at = a->addr;
    written.value = a->value;
    return next;
}

CALL(cuMemHostRegister_v2)
{
    registered++;
    return CUDA_SUCCESS;
}

CALL(cuMemHostGetDevicePointer_v2)
{
    *a->pdptr = 0x10000;
    return CUDA_SUCCESS;
}

CALL(cuDeviceGetAttribute)
{
    *a->pi = memops;
    return CUDA_SUCCESS;
}

static const struct hed_cuda_ops ops = {
    .cuLaunchHostFunc = fake_cuLaunchHostFunc,
    .cuStreamAddCallback = fake_cuStreamAddCallback,
    .cuStreamWriteValue64_v2 = fake_cuStreamWriteValue64_v2,
    .cuMemHostRegister_v2 = fake_cuMemHostRegister_v2,
    .cuMemHostGetDevicePointer_v2 = fake_cuMemHostGetDevicePointer_v2,
    .cuDeviceGetAttribute = fake_cuDeviceGetAttribute,
};

/* ---- the scene ------------------------------------------------------------------------------- */

struct scene {
    struct hed_layer layer;
    struct hed_worker worker;
    struct hed_worker_channel ch;
    struct fake_channel channel;
    _Atomic uint64_t slots[SLOTS];
    pthread_t reader;
};

static struct scene *
begin_scene(bool no_memory, bool can)
{
    struct scene *s = calloc(1, sizeof *s);
    struct hed_why why;

    assert_non_null(s);
    s->layer.cuda = &ops;
    s->worker.top = &s->layer;
    s->worker.no_memory = no_memory;
    s->worker.device_count = 1;
    s->worker.slots = s->slots;
    s->worker.slot_count = SLOTS;
    s->ch.worker = &s->worker;
    s->channel.channel.ops = &fake_ops;
    s->channel.channel.message = &s->channel.taken.head;
    (void)pthread_mutex_init(&s->channel.mutex, NULL);
    (void)pthread_cond_init(&s->channel.changed, NULL);
    next = CUDA_SUCCESS;
    noted = CUDA_SUCCESS;
    passed = registered = delivered = 0;
    memops = can;
    memset(&given, 0, sizeof given);
    memset(&written, 0, sizeof written);
    assert_int_equal(hed_worker_host_init(&s->worker, &why), 0);
    return s;
}

static void
finish_scene(struct scene *s)
{
    free(s->worker.host);
    free(s);
}

static void *
read_channel(void *arg)
{
    struct scene *s = arg;

    (void)hed_worker_callback_channel(&s->worker, &s->channel.channel, 0);
    return NULL;
}

static void
open_channel(struct scene *s)
{
    assert_int_equal(pthread_create(&s->reader, NULL, read_channel, s), 0);
}

static void
close_channel(struct scene *s)
{
    (void)pthread_mutex_lock(&s->channel.mutex);
    s->channel.ended = true;
    (void)pthread_cond_broadcast(&s->channel.changed);
    (void)pthread_mutex_unlock(&s->channel.mutex);
    assert_int_equal(pthread_join(s->reader, NULL), 0);
}

static int
host(struct scene *s, uint64_t id, bool always)
{
    struct hed_host_body b = {
        .head = {.size = sizeof b, .kind = HED_MSG_HOST, .stream = STREAM, .number = 9},
        .id = id,
        .always = always,
        .holds = 1};

    return hed_do_host(&s->ch, &b.head);
}

static int
mark(struct scene *s, uint64_t slot, uint64_t number)
{
    struct hed_msg m = {.size = sizeof m,
                        .kind = HED_MSG_MARK,
                        .stream = STREAM,
                        .number = number,
                        .reserved = slot};

    return hed_do_mark(&s->ch, &m);
}

static void *
call_given(void *arg)
{
    (void)arg;
    if (given.fn)
        given.fn(given.data);
    else
        given.callback(REAL, CUDA_ERROR_ILLEGAL_ADDRESS, given.data);
    return NULL;
}

static void *
open_late(void *arg)
{
    give_a_moment(30); /* meanwhile the function waits for it */
    open_channel(arg);
    return NULL;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* The worker does not wait for ever for a channel that never comes, and accepts no function before
 * the arena. */
static void
a_function_without_a_channel_ends_the_session(void **state)
{
    struct scene *s = begin_scene(false, true);
    struct hed_worker_host *host_part = s->worker.host;

    (void)state;
    given.fn = NULL;
    assert_int_equal(host(s, 77, false), HED_EFORMAT);
    s->worker.host = NULL;
    assert_int_equal(host(s, 77, false), HED_EFORMAT);
    s->worker.host = host_part;
    assert_null(given.fn);
    finish_scene(s);
}

static void
a_stream_waits_until_the_client_has_run_it(void **state)
{
    struct scene *s = begin_scene(false, true);
    pthread_t thread;

    (void)state;
    /* The channel may come after the function. */
    assert_int_equal(pthread_create(&thread, NULL, open_late, s), 0);
    assert_int_equal(host(s, 77, false), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_non_null(given.fn);
    assert_int_equal(passed, 0);
    assert_int_equal(pthread_create(&thread, NULL, call_given, NULL), 0);

    const struct hed_run run = heard(&s->channel);

    assert_int_equal(run.head.kind, HED_MSG_RUN);
    assert_int_equal(run.id, 77);
    assert_int_equal(run.status, CUDA_SUCCESS);
    assert_int_equal(run.head.number, 9);
    give_a_moment(30);
    assert_int_not_equal(pthread_tryjoin_np(thread, NULL), 0);
    say_to_worker(&s->channel, &run);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close_channel(s);
    finish_scene(s);
}

static void
callbacks_are_told_the_streams_state(void **state)
{
    struct scene *s = begin_scene(false, true);
    pthread_t thread;

    (void)state;
    open_channel(s);
    assert_int_equal(host(s, 5, true), 0);
    assert_non_null(given.callback);
    assert_int_equal(pthread_create(&thread, NULL, call_given, NULL), 0);

    const struct hed_run run = heard(&s->channel);

    assert_int_equal(run.status, CUDA_ERROR_ILLEGAL_ADDRESS);
    say_to_worker(&s->channel, &run);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close_channel(s);
    finish_scene(s);
}

static void
what_cannot_be_put_on_a_stream_is_told_at_once(void **state)
{
    struct scene *s = begin_scene(false, true);
    struct hed_host_body unknown = {
        .head = {.size = sizeof unknown, .kind = HED_MSG_HOST, .stream = 12345}, .id = 6};

    (void)state;
    open_channel(s);
    next = CUDA_ERROR_ILLEGAL_ADDRESS;
    assert_int_equal(host(s, 5, true), 0);
    assert_int_equal(noted, CUDA_ERROR_ILLEGAL_ADDRESS);

    const struct hed_run run = heard(&s->channel);

    assert_int_equal(run.id, 5);
    assert_int_equal(run.status, CUDA_ERROR_ILLEGAL_ADDRESS);
    say_to_worker(&s->channel, &run); /* nothing waits for it, but it is no error */
    assert_int_equal(hed_do_host(&s->ch, &unknown.head), 0);
    assert_int_equal(heard(&s->channel).status, CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(passed, 2); /* no other ticket waits meanwhile */
    close_channel(s);
    finish_scene(s);
}

static void
a_backend_that_does_nothing_calls_nothing(void **state)
{
    struct scene *s = begin_scene(true, false);

    (void)state;
    open_channel(s);
    assert_int_equal(host(s, 8, false), 0);
    assert_int_equal(heard(&s->channel).id, 8);
    close_channel(s);
    finish_scene(s);
}

static void
what_was_copied_can_be_fetched(void **state)
{
    struct scene *s = begin_scene(false, true);
    struct hed_msg m = {.size = sizeof m, .kind = HED_MSG_FETCH};

    (void)state;
    assert_int_equal(hed_do_fetch(&s->ch, &m), 0);
    assert_int_equal(delivered, 1);
    finish_scene(s);
}

static void
a_client_that_is_gone_holds_up_nobody(void **state)
{
    struct scene *s = begin_scene(false, true);
    pthread_t thread;

    (void)state;
    open_channel(s);
    assert_int_equal(host(s, 1, false), 0);
    assert_int_equal(pthread_create(&thread, NULL, call_given, NULL), 0);
    (void)heard(&s->channel);
    ends = 0;
    close_channel(s);
    assert_int_equal(pthread_join(thread, NULL), 0);
    /* The stream does not go on as if the function had been run. */
    assert_int_equal(ends, 1);
    /* A second callback channel is refused. */
    assert_int_equal(hed_worker_callback_channel(&s->worker, &s->channel.channel, 0), HED_EEXIST);
    finish_scene(s);
}

/* Runs in a process of its own, because the worker ends it. */
static void
nonsense_ends_the_session(void **state)
{
    static const struct hed_run bad[] = {
        {.head = {.size = sizeof bad[0], .kind = HED_MSG_RUN, .reserved = 99}},
        {.head = {.size = sizeof bad[0], .kind = HED_MSG_RUN, .reserved = 0}},
        {.head = {.size = sizeof(struct hed_msg), .kind = HED_MSG_RUN, .reserved = 1}},
        {.head = {.size = sizeof bad[0], .kind = HED_MSG_CALL, .reserved = 1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int status = 0;
        const pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            struct scene *s = begin_scene(false, true);

            s->channel.in = bad[i];
            s->channel.has_in = true;
            (void)hed_worker_callback_channel(&s->worker, &s->channel.channel, 0);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 1);
    }
}

/* ---- parking --------------------------------------------------------------------------------- */

static void
a_worker_with_functions_or_marks_is_not_quiet(void **state)
{
    struct scene *s = begin_scene(false, false);

    (void)state;
    assert_true(hed_worker_host_is_quiet(&s->worker));
    assert_int_equal(mark(s, 20, 5), 0);
    assert_false(hed_worker_host_is_quiet(&s->worker));
    given.fn(given.data);
    assert_true(hed_worker_host_is_quiet(&s->worker));
    next = CUDA_ERROR_ILLEGAL_ADDRESS; /* it was not put on the stream */
    assert_int_equal(mark(s, 20, 6), 0);
    assert_true(hed_worker_host_is_quiet(&s->worker));
    finish_scene(s);
}

/* The old callback channel ends without ending the session, and a new one is taken. */
static void
a_client_that_parks_takes_its_callback_channel_along(void **state)
{
    struct scene *s = begin_scene(false, true);

    (void)state;
    open_channel(s);
    assert_int_equal(host(s, 7, false), 0); /* waits for the channel */
    assert_false(hed_worker_host_is_quiet(&s->worker));
    free(given.data);
    s->worker.life = 1;
    hed_worker_host_leave(&s->worker);
    stopped = 0;
    hed_worker_host_return(&s->worker, &s->channel.channel);
    assert_int_equal(stopped, 1);
    close_channel(s);
    hed_worker_host_return(&s->worker, &s->channel.channel);
    assert_int_equal(stopped, 1); /* its thread has ended */
    assert_int_equal(hed_worker_callback_channel(&s->worker, &s->channel.channel, 0), HED_EEXIST);
    assert_int_equal(hed_worker_callback_channel(&s->worker, &s->channel.channel, 1), HED_EIO);
    finish_scene(s);
}

/* ---- marks ----------------------------------------------------------------------------------- */

static void
devices_write_marks_where_they_can(void **state)
{
    struct scene *s = begin_scene(false, true);

    (void)state;
    assert_int_equal(mark(s, 20, 5), 0);
    assert_int_equal(written.at, 0x10000 + 20 * 8);
    assert_int_equal(written.value, 5);
    assert_int_equal(mark(s, 21, 6), 0);
    assert_int_equal(registered, 1);
    /* The registration ended with its context: it is tried once more, and then the host writes the
     * marks. */
    next = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(mark(s, 22, 7), 0);
    assert_int_equal(registered, 2);
    assert_non_null(given.fn);
    finish_scene(s);
}

static void
else_the_host_does(void **state)
{
    struct scene *s = begin_scene(false, false);

    (void)state;
    assert_int_equal(mark(s, 20, 5), 0);
    assert_int_equal(registered, 0);
    assert_int_equal(atomic_load(&s->slots[20]), 0);
    given.fn(given.data);
    assert_int_equal(atomic_load(&s->slots[20]), 5);
    assert_int_equal(noted, CUDA_SUCCESS);
    next = CUDA_ERROR_LAUNCH_FAILED;
    assert_int_equal(mark(s, 20, 6), 0);
    assert_int_equal(noted, CUDA_ERROR_LAUNCH_FAILED);
    finish_scene(s);
}

static void
where_nothing_is_done_a_mark_is_there_at_once(void **state)
{
    struct scene *s = begin_scene(true, false);

    (void)state;
    assert_int_equal(mark(s, 63, 5), 0);
    assert_int_equal(atomic_load(&s->slots[63]), 5);
    finish_scene(s);
}

static void
marks_stay_in_the_page(void **state)
{
    struct scene *s = begin_scene(false, true);
    struct hed_msg unknown = {
        .size = sizeof unknown, .kind = HED_MSG_MARK, .stream = 12345, .reserved = 20};

    (void)state;
    assert_int_equal(mark(s, 0, 5), HED_EFORMAT);
    assert_int_equal(mark(s, 15, 5), HED_EFORMAT);
    assert_int_equal(mark(s, SLOTS, 5), HED_EFORMAT);
    assert_int_equal(mark(s, UINT64_C(1) << 32 | 20, 5), HED_EFORMAT);
    s->worker.slots = NULL;
    assert_int_equal(mark(s, 20, 5), HED_EFORMAT);
    s->worker.slots = s->slots;
    assert_int_equal(hed_do_mark(&s->ch, &unknown), 0);
    assert_int_equal(noted, CUDA_ERROR_INVALID_HANDLE);
    finish_scene(s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_stream_waits_until_the_client_has_run_it),
    cmocka_unit_test(a_function_without_a_channel_ends_the_session),
    cmocka_unit_test(callbacks_are_told_the_streams_state),
    cmocka_unit_test(what_cannot_be_put_on_a_stream_is_told_at_once),
    cmocka_unit_test(a_backend_that_does_nothing_calls_nothing),
    cmocka_unit_test(what_was_copied_can_be_fetched),
    cmocka_unit_test(a_client_that_is_gone_holds_up_nobody),
    cmocka_unit_test(nonsense_ends_the_session),
    cmocka_unit_test(a_worker_with_functions_or_marks_is_not_quiet),
    cmocka_unit_test(a_client_that_parks_takes_its_callback_channel_along),
    cmocka_unit_test(devices_write_marks_where_they_can),
    cmocka_unit_test(else_the_host_does),
    cmocka_unit_test(where_nothing_is_done_a_mark_is_there_at_once),
    cmocka_unit_test(marks_stay_in_the_page),
};

HED_UNIT_MAIN(tests)
