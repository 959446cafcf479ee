/* Streams, events and contexts of a remote machine: what it is told, in which order, and what it is
 * not asked. The peer records what it is told, and gives the answers that a test sets. */
#include "unit/remote/peer.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "driver/context/context.h"
#include "driver/stream/stream.h"
#include "unit/driver/busy.h"

struct heard {
    char words[4096]; /* "made 1 put 3 ..." */
    CUresult next;    /* the answer to the next wait or query */
    uint64_t reached; /* how far a look at a stream finds it */
};

static void
hear(void *m, const char *what, int detail)
{
    struct heard *h = ((struct fake *)m)->data;
    char *end = h->words + strlen(h->words);

    if (detail >= 0)
        (void)snprintf(end, sizeof h->words - (size_t)(end - h->words), "%s%d ", what, detail);
    else
        (void)snprintf(end, sizeof h->words - (size_t)(end - h->words), "%s ", what);
}

static CUresult
answer(void *m)
{
    return ((struct heard *)((struct fake *)m)->data)->next;
}

static CUresult
context_made(void *m, struct hed_context *c)
{
    hear(m, c->primary ? "primary" : "context", c->device->ordinal);
    return answer(m);
}

static void
context_gone(void *m, struct hed_context *c)
{
    hear(m, "gone", c->device->ordinal);
}

static CUresult
context_limit(void *m, struct hed_context *c, CUlimit limit, size_t value)
{
    (void)c;
    (void)limit;
    hear(m, "limit", (int)value);
    return CUDA_SUCCESS;
}

static CUresult
context_wait(void *m, struct hed_context *c)
{
    (void)c;
    hear(m, "wait-context", -1);
    return answer(m);
}

static void
stream_made(void *m, struct hed_stream *s)
{
    assert_int_equal(hed_handle_kind(hed_stream_name(s)), HED_KIND_STREAM);
    hear(m, s->blocking ? "stream" : "free-stream", -s->priority);
}

static void
stream_gone(void *m, struct hed_stream *s)
{
    (void)s;
    hear(m, "stream-gone", -1);
}

static CUresult
stream_wait(void *m, struct hed_stream *s)
{
    hear(m, s->is_legacy ? "wait-legacy" : "wait-stream", -1);
    return answer(m);
}

static CUresult
stream_query(void *m, struct hed_stream *s)
{
    (void)s;
    hear(m, "query-stream", -1);
    return answer(m);
}

static void
stream_look(void *m, struct hed_stream *s)
{
    const struct heard *h = ((struct fake *)m)->data;

    hed_lock(&s->lock);
    hed_remote_told_locked(s, h->reached);
    hed_unlock(&s->lock);
}

static void
stream_set(void *m, struct hed_stream *s, CUlaunchAttributeID id,
           const CUlaunchAttributeValue *value)
{
    (void)s;
    (void)value;
    hear(m, "set", (int)id);
}

static void
event_made(void *m, struct hed_event *e)
{
    hear(m, "event", (int)e->flags);
}

static void
event_gone(void *m, struct hed_event *e)
{
    (void)e;
    hear(m, "event-gone", -1);
}

static CUresult
event_wait(void *m, struct hed_event *e)
{
    (void)e;
    hear(m, "wait-event", -1);
    return answer(m);
}

static CUresult
event_query(void *m, struct hed_event *e)
{
    (void)e;
    hear(m, "query-event", -1);
    return answer(m);
}

static CUresult
event_time(void *m, struct hed_event *begin, struct hed_event *end, float *ms)
{
    (void)begin;
    (void)end;
    hear(m, "time", -1);
    *ms = 1.5f;
    return answer(m);
}

static CUresult
put(void *m, struct hed_stream *s, struct hed_work *w)
{
    static const char *const names[HED_WORK_COUNT] = {
        [HED_WORK_NONE] = "none",         [HED_WORK_HOST] = "host",
        [HED_WORK_CALLBACK] = "callback", [HED_WORK_EVENT_RECORD] = "record",
        [HED_WORK_EVENT_WAIT] = "await",  [HED_WORK_MEMOP] = "memop",
    };

    assert_true(hed_lock_held(&s->lock));
    assert_int_equal(w->number, s->submitted);
    hear(m, names[w->kind] ? names[w->kind] : "?", (int)w->number);
    return CUDA_SUCCESS;
}

static const struct peer peer = {
    .context_made = context_made,
    .context_gone = context_gone,
    .context_limit = context_limit,
    .context_wait = context_wait,
    .stream_made = stream_made,
    .stream_gone = stream_gone,
    .stream_wait = stream_wait,
    .stream_query = stream_query,
    .stream_look = stream_look,
    .stream_set = stream_set,
    .event_made = event_made,
    .event_gone = event_gone,
    .event_wait = event_wait,
    .event_query = event_query,
    .event_time = event_time,
    .put = put,
};

static struct fake *
begin(struct heard *h)
{
    struct fake *f;

    *h = (struct heard){.next = CUDA_SUCCESS};
    f = peer_create(1, &peer, h);
    (void)fake_use_primary(f, 0);
    return f;
}

/* Compares what was recorded since the last time. */
static void
expect(struct heard *h, const char *words)
{
    const size_t n = strlen(h->words);

    if (n > 0)
        h->words[n - 1] = '\0';
    assert_string_equal(h->words, words);
    h->words[0] = '\0';
}

static void
function(void *data)
{
    (void)data;
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void
lives_are_told(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUcontext c = NULL;
    CUstream s = NULL;
    CUevent e = NULL;

    (void)state;
    expect(&h, "primary0");
    OK(fake_call(f, cuStreamCreateWithPriority, &s, CU_STREAM_NON_BLOCKING, -3));
    OK(fake_call(f, cuEventCreate, &e, CU_EVENT_DISABLE_TIMING));
    expect(&h, "free-stream3 event2");
    OK(fake_call(f, cuEventDestroy_v2, e));
    OK(fake_call(f, cuStreamDestroy_v2, s));
    expect(&h, "event-gone stream-gone");
    assert_int_equal(fake_call(f, cuStreamDestroy_v2, s), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuEventDestroy_v2, e), CUDA_ERROR_INVALID_HANDLE);
    OK(fake_call(f, cuCtxCreate_v2, &c, 0, 0));
    OK(fake_call(f, cuStreamCreate, &s, 0));
    OK(fake_call(f, cuCtxSetLimit, CU_LIMIT_STACK_SIZE, 4096));
    expect(&h, "context0 stream0 limit4096");
    OK(fake_call(f, cuCtxDestroy_v2, c));
    expect(&h, "wait-context stream-gone gone0");
    OK(fake_call(f, cuDevicePrimaryCtxReset_v2, 0));
    expect(&h, "wait-context gone0");
    h.next = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(fake_call(f, cuDevicePrimaryCtxRetain, &c, 0), CUDA_ERROR_OUT_OF_MEMORY);
    h.next = CUDA_SUCCESS;
    OK(fake_call(f, cuDevicePrimaryCtxRetain, &c, 0));
    expect(&h, "primary0 primary0");
    fake_free(f);
}

static void
work_is_handed_over_in_order(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUstream s = NULL;
    CUevent e = NULL;
    const CUlaunchAttributeValue window = {.accessPolicyWindow = {.num_bytes = 0}};

    (void)state;
    OK(fake_call(f, cuStreamCreate, &s, 0));
    OK(fake_call(f, cuEventCreate, &e, 0));
    h.words[0] = '\0';
    OK(fake_call(f, cuLaunchHostFunc, s, function, NULL));
    OK(fake_call(f, cuEventRecord, e, s));
    OK(fake_call(f, cuStreamWaitEvent, NULL, e, 0));
    OK(fake_call(f, cuLaunchHostFunc, NULL, function, NULL));
    OK(fake_call(f, cuLaunchHostFunc, s, function, NULL));
    OK(fake_call(f, cuStreamSetAttribute, s, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &window));
    expect(&h, "host1 record2 await1 host2 host3 set1");
    fake_free(f);
}

static void *
use_own_stream(void *arg)
{
    struct fake *f = arg;

    OK(fake_call(f, cuCtxSetCurrent,
                 (CUcontext)(uintptr_t)f->driver->devices[0].primary->object.handle));
    OK(fake_call(f, cuLaunchHostFunc, CU_STREAM_PER_THREAD, function, NULL));
    OK(fake_call(f, cuLaunchHostFunc, NULL, function, NULL, .ptds = true));
    return NULL;
}

static void
a_threads_own_stream_is_an_ordinary_one_there(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    pthread_t thread;

    (void)state;
    h.words[0] = '\0';
    assert_int_equal(pthread_create(&thread, NULL, use_own_stream, f), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect(&h, "stream0 host1 host2 stream-gone");
    fake_free(f);
}

/* ---- what is not asked ----------------------------------------------------------------------- */

static void
nothing_is_asked_twice(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUstream s = NULL;
    CUevent e = NULL;

    (void)state;
    OK(fake_call(f, cuStreamCreate, &s, 0));
    OK(fake_call(f, cuEventCreate, &e, 0));
    h.words[0] = '\0';
    OK(fake_call(f, cuStreamSynchronize, s));
    OK(fake_call(f, cuStreamQuery, s));
    OK(fake_call(f, cuEventQuery, e));
    OK(fake_call(f, cuEventSynchronize, e));
    expect(&h, "");
    OK(fake_call(f, cuEventRecord, e, s));
    OK(fake_call(f, cuStreamSynchronize, s));
    OK(fake_call(f, cuStreamSynchronize, s));
    OK(fake_call(f, cuEventSynchronize, e));
    OK(fake_call(f, cuEventQuery, e));
    OK(fake_call(f, cuStreamWaitEvent, NULL, e, 0));
    expect(&h, "record1 wait-stream");
    OK(fake_call(f, cuLaunchHostFunc, s, function, NULL));
    OK(fake_call(f, cuCtxSynchronize));
    OK(fake_call(f, cuCtxSynchronize));
    OK(fake_call(f, cuStreamSynchronize, s));
    OK(fake_call(f, cuStreamSynchronize, NULL));
    expect(&h, "host2 wait-context");
    OK(fake_call(f, cuEventRecord, e, s));
    OK(fake_call(f, cuEventSynchronize, e));
    OK(fake_call(f, cuStreamSynchronize, s));
    OK(fake_call(f, cuCtxSynchronize));
    expect(&h, "record3 wait-event");
    fake_free(f);
}

static void
the_legacy_stream_waits_for_blocking_ones(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUstream s = NULL;
    CUstream apart = NULL;

    (void)state;
    OK(fake_call(f, cuStreamCreate, &s, 0));
    OK(fake_call(f, cuStreamCreate, &apart, CU_STREAM_NON_BLOCKING));
    h.words[0] = '\0';
    OK(fake_call(f, cuLaunchHostFunc, apart, function, NULL));
    OK(fake_call(f, cuStreamSynchronize, NULL));
    OK(fake_call(f, cuStreamQuery, NULL));
    expect(&h, "host1");
    OK(fake_call(f, cuLaunchHostFunc, s, function, NULL));
    assert_int_equal(fake_call(f, cuStreamQuery, NULL), CUDA_ERROR_NOT_READY);
    h.reached = 1;
    OK(fake_call(f, cuStreamQuery, NULL));
    OK(fake_call(f, cuStreamSynchronize, NULL));
    fake_free(f);
}

static void
work_of_a_destroyed_stream_is_waited_for_with_the_context(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUstream s = NULL;
    struct hed_stream *in = NULL;

    (void)state;
    OK(fake_call(f, cuCtxSynchronize));
    OK(fake_call(f, cuStreamCreate, &s, 0));
    OK(hed_stream_find(f->layer, s, false, &in));
    OK(fake_call(f, cuLaunchHostFunc, s, function, NULL));
    OK(fake_call(f, cuStreamDestroy_v2, s));
    h.words[0] = '\0';
    assert_false(hed_point_reached((struct hed_point){in, 1}));
    OK(fake_call(f, cuCtxSynchronize));
    expect(&h, "wait-context");
    assert_true(hed_point_reached((struct hed_point){in, 1}));
    OK(fake_call(f, cuCtxSynchronize));
    expect(&h, "");
    hed_stream_put(in);
    fake_free(f);
}

/* ---- what is known --------------------------------------------------------------------------- */

static void
what_comes_with_an_answer_is_not_there_before(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUstream s = NULL;
    CUevent e = NULL;
    struct hed_stream *in = NULL;

    (void)state;
    OK(fake_call(f, cuStreamCreate, &s, 0));
    OK(fake_call(f, cuEventCreate, &e, 0));
    OK(hed_stream_find(f->layer, s, false, &in));
    OK(fake_call(f, cuLaunchHostFunc, s, function, NULL));
    assert_int_equal(hed_remote_sent(in, true), 2);
    OK(fake_call(f, cuEventRecord, e, s));
    h.reached = 3;
    assert_true(hed_point_reached((struct hed_point){in, 1}));
    assert_false(hed_point_reached((struct hed_point){in, 2}));
    h.words[0] = '\0';
    h.next = CUDA_ERROR_NOT_READY;
    assert_int_equal(fake_call(f, cuEventQuery, e), CUDA_ERROR_NOT_READY);
    h.next = CUDA_SUCCESS;
    OK(fake_call(f, cuStreamSynchronize, s));
    OK(fake_call(f, cuEventQuery, e));
    expect(&h, "query-event wait-stream");
    assert_true(hed_point_reached((struct hed_point){in, 3}));
    hed_stream_put(in);
    fake_free(f);
}

static void
a_lying_far_side_does_no_harm(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUstream s = NULL;
    struct hed_stream *in = NULL;

    (void)state;
    OK(fake_call(f, cuStreamCreate, &s, 0));
    OK(hed_stream_find(f->layer, s, false, &in));
    OK(fake_call(f, cuLaunchHostFunc, s, function, NULL));
    h.reached = UINT64_MAX;
    assert_true(hed_point_reached((struct hed_point){in, 1}));
    h.reached = 0;
    OK(fake_call(f, cuLaunchHostFunc, s, function, NULL));
    assert_false(hed_point_reached((struct hed_point){in, 2}));
    hed_stream_put(in);
    fake_free(f);
}

static void
times_are_asked_of_events_that_have_them(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUevent a = NULL;
    CUevent b = NULL;
    CUevent untimed = NULL;
    float ms = 0;

    (void)state;
    OK(fake_call(f, cuEventCreate, &a, 0));
    OK(fake_call(f, cuEventCreate, &b, 0));
    OK(fake_call(f, cuEventCreate, &untimed, CU_EVENT_DISABLE_TIMING));
    assert_int_equal(fake_call(f, cuEventElapsedTime, &ms, a, b), CUDA_ERROR_INVALID_HANDLE);
    OK(fake_call(f, cuEventRecord, a, NULL));
    OK(fake_call(f, cuEventRecord, b, NULL));
    OK(fake_call(f, cuEventRecord, untimed, NULL));
    h.words[0] = '\0';
    assert_int_equal(fake_call(f, cuEventElapsedTime, &ms, a, untimed), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuEventElapsedTime, NULL, a, b), CUDA_ERROR_INVALID_HANDLE);
    expect(&h, "");
    OK(fake_call(f, cuEventElapsedTime, &ms, a, b));
    expect(&h, "time");
    assert_true(ms == 1.5f);
    fake_free(f);
}

static void
a_failure_that_was_told_is_the_answer(void **state)
{
    struct heard h;
    struct fake *f = begin(&h);
    CUstream s = NULL;

    (void)state;
    OK(fake_call(f, cuStreamCreate, &s, 0));
    OK(fake_call(f, cuLaunchHostFunc, s, function, NULL));
    hed_context_fail(f->driver->devices[0].primary, CUDA_ERROR_ILLEGAL_ADDRESS);
    h.words[0] = '\0';
    assert_int_equal(fake_call(f, cuStreamSynchronize, s), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(fake_call(f, cuLaunchHostFunc, s, function, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(fake_call(f, cuCtxSynchronize), CUDA_ERROR_ILLEGAL_ADDRESS);
    expect(&h, "");
    assert_int_equal(fake_call(f, cuStreamDestroy_v2, s), CUDA_ERROR_ILLEGAL_ADDRESS);
    expect(&h, "stream-gone");
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lives_are_told),
    cmocka_unit_test(work_is_handed_over_in_order),
    cmocka_unit_test(a_threads_own_stream_is_an_ordinary_one_there),
    cmocka_unit_test(nothing_is_asked_twice),
    cmocka_unit_test(the_legacy_stream_waits_for_blocking_ones),
    cmocka_unit_test(work_of_a_destroyed_stream_is_waited_for_with_the_context),
    cmocka_unit_test(what_comes_with_an_answer_is_not_there_before),
    cmocka_unit_test(a_lying_far_side_does_no_harm),
    cmocka_unit_test(times_are_asked_of_events_that_have_them),
    cmocka_unit_test(a_failure_that_was_told_is_the_answer),
};

HED_UNIT_MAIN(tests)
