/* Streams of the soft driver: order within and between them, the default streams, how they end. */
#include "driver/stream/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitize.h"
#include "driver/context/context.h"
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

static CUresult
query(struct fake *f, CUstream s)
{
    return fake_call(f, cuStreamQuery, s);
}

/* ---- order ----------------------------------------------------------------------------------- */

struct list {
    int numbers[1000];
    int count;
};

struct item {
    struct list *list;
    int number;
};

static void
append(void *arg)
{
    struct item *i = arg;

    i->list->numbers[i->list->count++] = i->number;
}

static void
a_stream_keeps_order(void **state)
{
    static struct list list;
    static struct item items[1000];
    struct fake *f = begin();
    CUstream s = make(f, CU_STREAM_NON_BLOCKING);

    for (int i = 0; i < 1000; i++) {
        items[i] = (struct item){&list, i};
        OK(fake_call(f, cuLaunchHostFunc, s, append, &items[i]));
    }
    OK(fake_call(f, cuStreamSynchronize, s));
    assert_int_equal(list.count, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(list.numbers[i], i);
    busy_fake_free(f);
}

static void
add_one(void *arg)
{
    ++*(unsigned *)arg;
}

/* More work than a queue keeps: the program waits, and nothing is lost. */
static void
a_queue_does_not_grow_without_end(void **state)
{
    struct fake *f = begin();
    CUstream s = make(f, CU_STREAM_NON_BLOCKING);
    struct hed_stream *inside = NULL;
    unsigned count = 0;

    OK(hed_stream_find(f->layer, s, false, &inside));
    for (int i = 0; i < 50000; i++) {
        OK(fake_call(f, cuLaunchHostFunc, s, add_one, &count));
        hed_lock(&inside->lock);
        assert_in_range(inside->submitted - inside->done, 0, 8192);
        hed_unlock(&inside->lock);
    }
    OK(fake_call(f, cuStreamSynchronize, s));
    assert_int_equal(count, 50000);
    hed_stream_put(inside);
    busy_fake_free(f);
}

static void
streams_run_beside_each_other(void **state)
{
    struct fake *f = begin();
    CUstream a = make(f, 0);
    CUstream b = make(f, 0);
    _Atomic int flag = 0;
    struct busy busy;

    busy_begin(f, &busy, a);
    OK(fake_call(f, cuLaunchHostFunc, b, set_flag, &flag));
    OK(fake_call(f, cuStreamSynchronize, b));
    assert_int_equal(flag, 1);
    assert_int_equal(query(f, a), CUDA_ERROR_NOT_READY);
    busy_end(&busy);
    OK(fake_call(f, cuStreamSynchronize, a));
    OK(query(f, a));
    busy_fake_free(f);
}

/* Work on `first` delays work on `second`. */
static void
holds_up(struct fake *f, CUstream first, CUstream second)
{
    _Atomic int flag = 0;
    struct busy busy;

    busy_begin(f, &busy, first);
    OK(fake_call(f, cuLaunchHostFunc, second, set_flag, &flag));
    assert_false(flag_after_a_moment(&flag));
    busy_end(&busy);
    OK(fake_call(f, cuCtxSynchronize));
    assert_int_equal(flag, 1);
}

/* Work on `second` runs while there is work on `first`. */
static void
lets_pass(struct fake *f, CUstream first, CUstream second)
{
    _Atomic int flag = 0;
    struct busy busy;

    busy_begin(f, &busy, first);
    OK(fake_call(f, cuLaunchHostFunc, second, set_flag, &flag));
    WAIT_UNTIL(flag);
    busy_end(&busy);
    OK(fake_call(f, cuCtxSynchronize));
}

static void
the_legacy_stream_and_blocking_streams_wait_for_each_other(void **state)
{
    struct fake *f = begin();
    CUstream blocking = make(f, 0);
    CUstream other = make(f, CU_STREAM_NON_BLOCKING);

    holds_up(f, blocking, NULL);
    holds_up(f, NULL, blocking);
    holds_up(f, CU_STREAM_LEGACY, blocking);
    lets_pass(f, other, NULL);
    lets_pass(f, NULL, other);
    lets_pass(f, blocking, other);
    busy_fake_free(f);
}

static void
the_threads_own_stream_is_a_blocking_one(void **state)
{
    struct fake *f = begin();
    CUstream blocking = make(f, 0);

    holds_up(f, CU_STREAM_PER_THREAD, NULL);
    holds_up(f, NULL, CU_STREAM_PER_THREAD);
    lets_pass(f, CU_STREAM_PER_THREAD, blocking);
    lets_pass(f, blocking, CU_STREAM_PER_THREAD);
    busy_fake_free(f);
}

/* Work on A, then on the legacy stream, then on B: B's work waits for A's through the legacy
 * stream. */
static void
the_legacy_stream_orders_others(void **state)
{
    struct fake *f = begin();
    CUstream a = make(f, 0);
    CUstream b = make(f, 0);
    _Atomic int between = 0;
    _Atomic int after = 0;
    struct busy busy;

    busy_begin(f, &busy, a);
    OK(fake_call(f, cuLaunchHostFunc, NULL, set_flag, &between));
    OK(fake_call(f, cuLaunchHostFunc, b, set_flag, &after));
    assert_false(flag_after_a_moment(&after));
    assert_false(between);
    busy_end(&busy);
    OK(fake_call(f, cuStreamSynchronize, b));
    assert_true(between && after);
    busy_fake_free(f);
}

static void
contexts_do_not_wait_for_each_other(void **state)
{
    struct fake *f = begin();
    _Atomic int flag = 0;
    struct busy busy;

    busy_begin(f, &busy, NULL);
    (void)fake_use_primary(f, 1);
    OK(fake_call(f, cuLaunchHostFunc, NULL, set_flag, &flag));
    OK(fake_call(f, cuCtxSynchronize));
    assert_true(flag);
    busy_end(&busy);
    (void)fake_use_primary(f, 0);
    OK(fake_call(f, cuCtxSynchronize));
    busy_fake_free(f);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* As measured on a GPU: a query of the legacy stream includes the blocking streams. A blocking
 * stream without work of its own is done. */
static void
asking_the_legacy_stream_asks_blocking_ones(void **state)
{
    struct fake *f = begin();
    CUstream blocking = make(f, 0);
    CUstream other = make(f, CU_STREAM_NON_BLOCKING);
    struct busy busy;

    busy_begin(f, &busy, blocking);
    assert_int_equal(query(f, NULL), CUDA_ERROR_NOT_READY);
    OK(query(f, CU_STREAM_PER_THREAD));
    OK(query(f, other));
    busy_end(&busy);
    OK(fake_call(f, cuStreamSynchronize, NULL));
    OK(query(f, blocking));

    busy_begin(f, &busy, other);
    OK(query(f, NULL));
    OK(fake_call(f, cuStreamSynchronize, NULL));
    busy_end(&busy);
    OK(fake_call(f, cuStreamSynchronize, other));

    busy_begin(f, &busy, NULL);
    OK(query(f, blocking));
    OK(fake_call(f, cuStreamSynchronize, blocking));
    busy_end(&busy);
    OK(fake_call(f, cuCtxSynchronize));
    busy_fake_free(f);
}

static void
what_names_no_stream_is_refused(void **state)
{
    struct fake *f = fake_create(1);
    CUstream s = NULL;
    unsigned flags;

    assert_int_equal(query(f, NULL), CUDA_ERROR_NOT_INITIALIZED);
    OK(fake_call(f, cuInit, 0));
    assert_int_equal(query(f, NULL), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuStreamCreate, &s, 0), CUDA_ERROR_INVALID_CONTEXT);
    (void)fake_use_primary(f, 0);
    for (uintptr_t i = 3; i < 2000; i++)
        assert_int_equal(query(f, (CUstream)i), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuStreamCreate, &s, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuStreamCreate, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    for (uintptr_t i = 0; i < 3; i++)
        assert_int_equal(fake_call(f, cuStreamDestroy_v2, (CUstream)i), CUDA_ERROR_INVALID_HANDLE);
    s = make(f, CU_STREAM_NON_BLOCKING);
    OK(fake_call(f, cuStreamGetFlags, s, &flags));
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    assert_int_equal(fake_call(f, cuStreamGetFlags, s, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuLaunchHostFunc, s, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    /* A stream that is named needs no current context. */
    OK(fake_call(f, cuCtxSetCurrent, NULL));
    OK(query(f, s));
    OK(fake_call(f, cuStreamSynchronize, s));
    OK(fake_call(f, cuStreamDestroy_v2, s));
    assert_int_equal(query(f, s), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuStreamDestroy_v2, s), CUDA_ERROR_INVALID_HANDLE);
    busy_fake_free(f);
}

static void
priorities_are_brought_into_range(void **state)
{
    static const struct {
        int given, had;
    } rows[] = {{0, 0}, {7, 0}, {-1, -1}, {-5, -5}, {-100, -5}};
    struct fake *f = begin();
    CUlaunchAttributeValue v;
    CUstream s;
    int priority;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        OK(fake_call(f, cuStreamCreateWithPriority, &s, 0, rows[i].given));
        OK(fake_call(f, cuStreamGetPriority, s, &priority));
        assert_int_equal(priority, rows[i].had);
    }
    v.priority = -20;
    OK(fake_call(f, cuStreamSetAttribute, s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
    OK(fake_call(f, cuStreamGetAttribute, s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
    assert_int_equal(v.priority, -5);
    busy_fake_free(f);
}

static void
attributes_are_kept_and_copied(void **state)
{
    struct fake *f = begin();
    CUstream a = make(f, 0);
    CUstream b = make(f, 0);
    CUlaunchAttributeValue v;

    memset(&v, 0, sizeof v);
    assert_int_equal(
        fake_call(f, cuStreamSetAttribute, a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v),
        CUDA_ERROR_INVALID_VALUE);
    v.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC;
    OK(fake_call(f, cuStreamSetAttribute, a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
    assert_int_equal(fake_call(f, cuStreamSetAttribute, a, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuStreamSetAttribute, a, (CUlaunchAttributeID)99, &v),
                     CUDA_ERROR_INVALID_VALUE);
    v.memSyncDomain = (CUlaunchMemSyncDomain)7;
    assert_int_equal(fake_call(f, cuStreamSetAttribute, a, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &v),
                     CUDA_ERROR_INVALID_VALUE);
    OK(fake_call(f, cuStreamCopyAttributes, b, a));
    OK(fake_call(f, cuStreamGetAttribute, b, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
    assert_int_equal(v.syncPolicy, CU_SYNC_POLICY_BLOCKING_SYNC);
    busy_fake_free(f);
}

static void
a_stream_knows_where_it_is(void **state)
{
    struct fake *f = begin();
    CUcontext first = fake_use_primary(f, 1);
    CUcontext got = NULL;
    CUstream s = make(f, 0);
    CUdevice device = -1;
    unsigned long long a;
    unsigned long long b;

    (void)fake_use_primary(f, 0);
    OK(fake_call(f, cuStreamGetCtx, s, &got));
    assert_ptr_equal(got, first);
    OK(fake_call(f, cuStreamGetDevice, s, &device));
    assert_int_equal(device, 1);
    OK(fake_call(f, cuStreamGetId, NULL, &a));
    OK(fake_call(f, cuStreamGetId, CU_STREAM_LEGACY, &b));
    assert_int_equal(a, b);
    OK(fake_call(f, cuStreamGetId, NULL, &b, .ptds = true));
    assert_int_not_equal(a, b);
    OK(fake_call(f, cuStreamGetId, CU_STREAM_PER_THREAD, &a));
    assert_int_equal(a, b);
    OK(fake_call(f, cuStreamGetId, s, &a));
    assert_int_not_equal(a, b);
    busy_fake_free(f);
}

static void
only_whole_managed_memory_can_be_attached(void **state)
{
    struct fake *f = begin();
    CUstream s = make(f, 0);
    CUdeviceptr managed = 0;
    CUdeviceptr plain = 0;

    OK(fake_call(f, cuMemAllocManaged, &managed, 8192, CU_MEM_ATTACH_GLOBAL));
    OK(fake_call(f, cuMemAlloc_v2, &plain, 64));
    OK(fake_call(f, cuStreamAttachMemAsync, s, managed, 0, CU_MEM_ATTACH_SINGLE));
    OK(fake_call(f, cuStreamAttachMemAsync, s, managed, 8192, CU_MEM_ATTACH_HOST));

    const struct {
        CUstream s;
        CUdeviceptr at;
        size_t length;
        unsigned flags;
    } rows[] = {
        {NULL, managed, 0, CU_MEM_ATTACH_SINGLE},
        {s, managed, 4096, CU_MEM_ATTACH_GLOBAL},
        {s, managed, 0, 0},
        {s, managed, 0, 3},
        {s, plain, 0, CU_MEM_ATTACH_GLOBAL},
        {s, managed + 16, 0, CU_MEM_ATTACH_GLOBAL},
        {s, (uintptr_t)&rows, 4, CU_MEM_ATTACH_HOST},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(fake_call(f, cuStreamAttachMemAsync, rows[i].s, rows[i].at, rows[i].length,
                                   rows[i].flags),
                         CUDA_ERROR_INVALID_VALUE);
    OK(fake_call(f, cuStreamSynchronize, s));
    busy_fake_free(f);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct helper {
    struct fake *f;
    CUcontext ctx;
    unsigned long long id;
    _Atomic int *flag;
    struct busy *busy;
};

static void *
use_own_stream(void *arg)
{
    struct helper *h = arg;

    OK(fake_call(h->f, cuCtxSetCurrent, h->ctx));
    OK(fake_call(h->f, cuStreamGetId, CU_STREAM_PER_THREAD, &h->id));
    busy_begin(h->f, h->busy, CU_STREAM_PER_THREAD);
    OK(fake_call(h->f, cuLaunchHostFunc, CU_STREAM_PER_THREAD, set_flag, h->flag));
    return NULL;
}

/* The work on a thread's own stream runs, and is waited for, after the thread's end. */
static void
each_thread_has_its_own_stream(void **state)
{
    struct fake *f = begin();
    struct busy busy;
    _Atomic int flag = 0;
    struct helper h = {f, fake_use_primary(f, 0), 0, &flag, &busy};
    unsigned long long mine;
    pthread_t t;

    OK(fake_call(f, cuStreamGetId, CU_STREAM_PER_THREAD, &mine));
    assert_int_equal(pthread_create(&t, NULL, use_own_stream, &h), 0);
    (void)pthread_join(t, NULL);
    assert_int_not_equal(mine, h.id);
    OK(query(f, CU_STREAM_PER_THREAD));
    assert_int_equal(query(f, NULL), CUDA_ERROR_NOT_READY);
    assert_false(flag);
    busy_end(&busy);
    OK(fake_call(f, cuCtxSynchronize));
    assert_true(flag);
    busy_fake_free(f);
}

static bool
has_runner(struct hed_stream *s)
{
    hed_lock(&s->lock);

    const bool has = hed_near_stream(s)->has_runner;

    hed_unlock(&s->lock);
    return has;
}

static void
a_runner_goes_away_and_comes_back(void **state)
{
    struct fake *f = begin();
    CUstream handle = make(f, 0);
    struct hed_stream *s = NULL;
    _Atomic int flag = 0;
    struct busy busy;

    OK(hed_stream_find(f->layer, handle, false, &s));
    assert_false(has_runner(s));
    OK(fake_call(f, cuLaunchHostFunc, handle, set_flag, &flag));
    OK(fake_call(f, cuStreamSynchronize, handle));
    busy_begin(f, &busy, handle);
    assert_true(has_runner(s));
    busy_end(&busy);
    WAIT_UNTIL(!has_runner(s));
    flag = 0;
    OK(fake_call(f, cuLaunchHostFunc, handle, set_flag, &flag));
    OK(fake_call(f, cuStreamSynchronize, handle));
    assert_true(flag);
    hed_stream_put(s);
    busy_fake_free(f);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void
a_destroyed_stream_finishes_its_work(void **state)
{
    struct fake *f = begin();
    CUstream s = make(f, 0);
    _Atomic int flag = 0;
    struct busy busy;

    busy_begin(f, &busy, s);
    OK(fake_call(f, cuLaunchHostFunc, s, set_flag, &flag));
    OK(fake_call(f, cuStreamDestroy_v2, s));
    assert_int_equal(query(f, s), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(query(f, NULL), CUDA_ERROR_NOT_READY);
    busy_end(&busy);
    OK(fake_call(f, cuStreamSynchronize, NULL));
    assert_true(flag);
    busy_fake_free(f);
}

static void
a_dying_context_waits_for_its_streams(void **state)
{
    struct fake *f = begin();
    struct hed_device *dev = &f->driver->devices[0];
    _Atomic int flags[3] = {0};
    CUstream s = make(f, 0);
    CUstream n = make(f, CU_STREAM_NON_BLOCKING);

    OK(fake_call(f, cuLaunchHostFunc, s, set_flag, &flags[0]));
    OK(fake_call(f, cuLaunchHostFunc, n, set_flag, &flags[1]));
    OK(fake_call(f, cuLaunchHostFunc, CU_STREAM_PER_THREAD, set_flag, &flags[2]));
    OK(fake_call(f, cuDevicePrimaryCtxReset_v2, 0));
    assert_true(flags[0] && flags[1] && flags[2]);
    assert_null(dev->primary->streams);
    assert_int_equal(query(f, s), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(query(f, n), CUDA_ERROR_INVALID_HANDLE);
    (void)fake_use_primary(f, 0);
    OK(fake_call(f, cuLaunchHostFunc, CU_STREAM_PER_THREAD, set_flag, &flags[2]));
    OK(fake_call(f, cuStreamSynchronize, CU_STREAM_PER_THREAD));
    busy_fake_free(f);
}

/* The child does not touch the parent's streams, threads and locks; it has a driver of its own,
 * like any process. */
static void
the_child_of_a_fork_starts_anew(void **state)
{
    struct fake *f;
    _Atomic int flag = 0;
    struct busy busy;
    int status = -1;

    if (HED_TSAN)
        skip(); /* it has no room for the addresses of two drivers */
    f = begin();
    busy_begin(f, &busy, CU_STREAM_PER_THREAD);

    const pid_t child = fork();

    if (child == 0) {
        struct fake *own = begin();

        OK(fake_call(own, cuLaunchHostFunc, CU_STREAM_PER_THREAD, set_flag, &flag));
        OK(fake_call(own, cuStreamSynchronize, CU_STREAM_PER_THREAD));
        _exit(flag == 1 ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    busy_end(&busy);
    OK(fake_call(f, cuCtxSynchronize));
    busy_fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_stream_keeps_order),
    cmocka_unit_test(a_queue_does_not_grow_without_end),
    cmocka_unit_test(streams_run_beside_each_other),
    cmocka_unit_test(the_legacy_stream_and_blocking_streams_wait_for_each_other),
    cmocka_unit_test(the_threads_own_stream_is_a_blocking_one),
    cmocka_unit_test(the_legacy_stream_orders_others),
    cmocka_unit_test(contexts_do_not_wait_for_each_other),
    cmocka_unit_test(asking_the_legacy_stream_asks_blocking_ones),
    cmocka_unit_test(what_names_no_stream_is_refused),
    cmocka_unit_test(priorities_are_brought_into_range),
    cmocka_unit_test(attributes_are_kept_and_copied),
    cmocka_unit_test(a_stream_knows_where_it_is),
    cmocka_unit_test(only_whole_managed_memory_can_be_attached),
    cmocka_unit_test(each_thread_has_its_own_stream),
    cmocka_unit_test(a_runner_goes_away_and_comes_back),
    cmocka_unit_test(a_destroyed_stream_finishes_its_work),
    cmocka_unit_test(a_dying_context_waits_for_its_streams),
    cmocka_unit_test(the_child_of_a_fork_starts_anew),
};

HED_UNIT_MAIN(tests)
