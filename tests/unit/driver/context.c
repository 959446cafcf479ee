/* Contexts of the soft driver. The expected results are those of NVIDIA's driver 580 on an H200 for
 * the same calls, except after a sticky error, which ends the process there. */
#include <pthread.h>

#include "base/err.h"
#include "driver/context/context.h"
#include "harness/unit.h"
#include "unit/driver/fake.h"

#define ok(call) assert_int_equal((call), CUDA_SUCCESS)

static struct fake *
started(int devices)
{
    struct fake *f = fake_create(devices);

    ok(fake_call(f, cuInit, 0));
    return f;
}

static CUcontext
made(struct fake *f, int device)
{
    CUcontext c = NULL;

    ok(fake_call(f, cuCtxCreate_v2, &c, 0, device));
    return c;
}

static CUcontext
current(struct fake *f)
{
    CUcontext c = (CUcontext)(uintptr_t)1;

    ok(fake_call(f, cuCtxGetCurrent, &c));
    return c;
}

static void
a_driver_has_a_space_for_each_device(void **state)
{
    struct fake *f = fake_create(2);

    assert_non_null(f->driver->devices[0].space);
    assert_non_null(f->driver->devices[1].space);
    assert_non_null(f->driver->host_space);
    fake_free(f);
}

static int
refuse_to_reserve(void *m, uint64_t want, uint64_t size, uint64_t *base)
{
    (void)m;
    (void)want;
    (void)base;
    return size > 0 ? HED_ENOMEM : 0;
}

static void
a_machine_without_addresses_makes_no_driver(void **state)
{
    struct hed_executor executor = fake_executor;
    struct hed_near near;
    struct hed_profile_device device;
    struct hed_driver *d = NULL;
    struct hed_why why = {""};

    executor.memory.reserve = refuse_to_reserve;
    hed_near_init(&near, &executor);
    fake_profile(&device, 0);
    assert_int_equal(hed_driver_create(&near.machine, &near, &device, 1, &d, &why), HED_ENOMEM);
    assert_null(d);
    assert_string_not_equal(why.text, "");
    assert_int_equal(hed_driver_create(&near.machine, &near, &device, 1000, &d, NULL), HED_ELIMIT);
}

static void
nothing_works_before_init(void **state)
{
    struct fake *f = fake_create(1);
    CUcontext c = NULL;
    size_t value;
    unsigned flags;
    int n;

    assert_int_equal(fake_call(f, cuCtxGetCurrent, &c), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(fake_call(f, cuCtxGetCurrent, NULL), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(fake_call(f, cuCtxGetDevice, &n), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(fake_call(f, cuCtxCreate_v2, &c, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(fake_call(f, cuCtxPopCurrent_v2, &c), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(fake_call(f, cuCtxSetCurrent, NULL), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(fake_call(f, cuCtxSynchronize, 0), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(fake_call(f, cuCtxGetLimit, &value, 0), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(fake_call(f, cuCtxDestroy_v2, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuDevicePrimaryCtxGetState, 0, &flags, &n),
                     CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(fake_call(f, cuInit, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuCtxGetDevice, &n), CUDA_ERROR_NOT_INITIALIZED);
    fake_free(f);
}

static void
without_a_context_calls_say_so(void **state)
{
    struct fake *f = started(1);
    unsigned long long id;
    CUcontext c = NULL;
    size_t value;
    unsigned u;
    int n;

    assert_null(current(f));
    assert_int_equal(fake_call(f, cuCtxGetDevice, &n), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxGetDevice, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuCtxGetDevice_v2, &n, NULL), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxPopCurrent_v2, &c), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxPopCurrent_v2, NULL), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxPushCurrent_v2, NULL), CUDA_ERROR_INVALID_VALUE);
    ok(fake_call(f, cuCtxSetCurrent, NULL));
    assert_int_equal(fake_call(f, cuCtxSynchronize, 0), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxSynchronize_v2, NULL), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxGetFlags, &u), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxGetFlags, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuCtxSetFlags, 0), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxGetLimit, &value, 0), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxSetLimit, 0, 1024), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxSetCacheConfig, 0), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxGetStreamPriorityRange, &n, &n), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxGetApiVersion, NULL, &u), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxGetId, NULL, &id), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxDestroy_v2, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuCtxEnablePeerAccess, NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxAttach, &c, 0), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxDetach, NULL), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxGetCurrent, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuProfilerStart, 0), CUDA_ERROR_INVALID_CONTEXT);
    fake_free(f);
}

static void
invented_handles_are_refused(void **state)
{
    struct fake *f = started(1);
    const CUcontext invented[] = {(CUcontext)(uintptr_t)0x1234, (CUcontext)(uintptr_t)-1,
                                  (CUcontext)((uintptr_t)HED_KIND_STREAM << 56)};

    for (size_t i = 0; i < sizeof invented / sizeof invented[0]; i++) {
        assert_int_equal(fake_call(f, cuCtxSetCurrent, invented[i]), CUDA_ERROR_INVALID_CONTEXT);
        assert_int_equal(fake_call(f, cuCtxPushCurrent_v2, invented[i]),
                         CUDA_ERROR_INVALID_CONTEXT);
        assert_int_equal(fake_call(f, cuCtxDestroy_v2, invented[i]), CUDA_ERROR_INVALID_CONTEXT);
    }
    assert_null(current(f));
    fake_free(f);
}

static void
the_stack_pushes_pops_and_replaces(void **state)
{
    struct fake *f = started(2);
    const CUcontext a = made(f, 0);
    const CUcontext b = made(f, 1);
    CUcontext c = NULL;
    int device = -1;

    assert_ptr_equal(current(f), b);
    ok(fake_call(f, cuCtxGetDevice, &device));
    assert_int_equal(device, 1);
    ok(fake_call(f, cuCtxGetDevice_v2, &device, a));
    assert_int_equal(device, 0);
    ok(fake_call(f, cuCtxPopCurrent_v2, &c));
    assert_ptr_equal(c, b);
    ok(fake_call(f, cuCtxPopCurrent_v2, NULL));
    assert_null(current(f));
    ok(fake_call(f, cuCtxPushCurrent_v2, a));
    ok(fake_call(f, cuCtxPushCurrent_v2, a));
    ok(fake_call(f, cuCtxPushCurrent_v2, b));
    ok(fake_call(f, cuCtxSetCurrent, a)); /* stack: a a a */
    ok(fake_call(f, cuCtxSetCurrent, NULL));
    ok(fake_call(f, cuCtxPopCurrent_v2, &c));
    assert_ptr_equal(current(f), a);
    ok(fake_call(f, cuCtxPopCurrent_v2, &c));
    assert_int_equal(fake_call(f, cuCtxPopCurrent_v2, &c), CUDA_ERROR_INVALID_CONTEXT);
    for (int i = 0; i < 1000; i++)
        ok(fake_call(f, cuCtxPushCurrent_v2, i % 2 ? a : b));
    for (int i = 1000; i-- > 0;) {
        ok(fake_call(f, cuCtxPopCurrent_v2, &c));
        assert_ptr_equal(c, i % 2 ? a : b);
    }
    fake_free(f);
}

static void
creation_checks_what_it_is_given(void **state)
{
    struct fake *f = started(1);
    CUexecAffinityParam_v1 affinity = {0};
    CUcontext c = NULL;
    unsigned flags;

    assert_int_equal(fake_call(f, cuCtxCreate_v2, NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuCtxCreate_v2, &c, 0, 9), CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(fake_call(f, cuCtxCreate_v2, &c, 0, -1), CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(fake_call(f, cuCtxCreate_v2, &c, 3, 0), CUDA_ERROR_INVALID_VALUE);
    for (unsigned bit = 1; bit < 0x10000; bit *= 2) {
        const CUresult r = fake_call(f, cuCtxCreate_v2, &c, bit, 0);

        assert_int_equal(r, bit <= 0x80 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
        if (r != CUDA_SUCCESS)
            continue;
        ok(fake_call(f, cuCtxGetFlags, &flags));
        assert_int_equal(flags, bit == 0x40 ? 0x20 : bit);
        ok(fake_call(f, cuCtxDestroy_v2, c));
    }
    assert_null(current(f));
    ok(fake_call(f, cuCtxCreate_v3, &c, NULL, 0, 0, 0));
    assert_int_equal(fake_call(f, cuCtxCreate_v3, &c, NULL, 1, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuCtxCreate_v3, &c, &affinity, 1, 0, 0),
                     CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    ok(fake_call(f, cuCtxCreate_v4, &c, NULL, 0, 0));
    fake_free(f);
}

struct elsewhere {
    struct fake *f;
    CUcontext ctx;
    pthread_barrier_t step;
};

static void *
use_elsewhere(void *arg)
{
    struct elsewhere *e = arg;
    struct fake *f = e->f;
    CUcontext c = NULL;
    size_t value;
    unsigned u;
    int n;

    assert_null(current(f));
    ok(fake_call(f, cuCtxSetCurrent, e->ctx));
    (void)pthread_barrier_wait(&e->step);
    (void)pthread_barrier_wait(&e->step);
    assert_ptr_equal(current(f), e->ctx);
    assert_int_equal(fake_call(f, cuCtxGetLimit, &value, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(fake_call(f, cuCtxSynchronize, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(fake_call(f, cuCtxGetApiVersion, NULL, &u), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    ok(fake_call(f, cuCtxGetDevice, &n));
    ok(fake_call(f, cuCtxGetFlags, &u));
    ok(fake_call(f, cuCtxPopCurrent_v2, &c));
    assert_null(current(f));
    ok(fake_call(f, cuCtxSetCurrent,
                 f->driver->devices[0].primary ? hed_context_handle(f->driver->devices[0].primary)
                                               : NULL));
    return NULL;
}

static void
a_destroyed_context_stays_current_elsewhere_and_is_dead(void **state)
{
    struct fake *f = started(1);
    const CUcontext a = made(f, 0);
    const CUcontext b = made(f, 0);
    struct elsewhere e = {.f = f, .ctx = a};
    unsigned long long id;
    pthread_t thread;
    size_t value;
    unsigned u;

    ok(fake_call(f, cuCtxPushCurrent_v2, a)); /* stack: a b a */
    assert_int_equal(pthread_barrier_init(&e.step, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, use_elsewhere, &e), 0);
    (void)pthread_barrier_wait(&e.step);
    ok(fake_call(f, cuCtxDestroy_v2, a));
    assert_ptr_equal(current(f), b);
    (void)pthread_barrier_wait(&e.step);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)pthread_barrier_destroy(&e.step);

    ok(fake_call(f, cuCtxPopCurrent_v2, NULL));
    assert_ptr_equal(current(f), a);
    assert_int_equal(fake_call(f, cuCtxGetLimit, &value, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(fake_call(f, cuCtxDestroy_v2, a), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(fake_call(f, cuCtxGetApiVersion, a, &u), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxGetId, a, &id), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(fake_call(f, cuCtxSynchronize_v2, a), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    ok(fake_call(f, cuCtxSetCurrent, b));
    ok(fake_call(f, cuCtxDestroy_v2, b));
    assert_null(current(f));
    fake_free(f);
}

static void
attaching_counts(void **state)
{
    struct fake *f = started(1);
    const CUcontext a = made(f, 0);
    CUcontext c = NULL;

    ok(fake_call(f, cuCtxAttach, &c, 0));
    assert_ptr_equal(c, a);
    assert_int_equal(fake_call(f, cuCtxAttach, &c, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuCtxAttach, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    ok(fake_call(f, cuCtxDetach, a));
    assert_ptr_equal(current(f), a);
    ok(fake_call(f, cuCtxDetach, a));
    assert_null(current(f));
    fake_free(f);
}

static void
small_things_of_a_context_are_answered(void **state)
{
    struct fake *f = started(1);
    const CUcontext a = made(f, 0);
    CUexecAffinityParam_v1 affinity;
    unsigned version = 0;
    CUsharedconfig shared;
    CUfunc_cache cache;
    int least = 9;
    int greatest = 9;

    ok(fake_call(f, cuCtxGetApiVersion, a, &version));
    assert_int_equal(version, 3020);
    assert_int_equal(fake_call(f, cuCtxGetApiVersion, a, NULL), CUDA_ERROR_INVALID_VALUE);
    ok(fake_call(f, cuCtxGetStreamPriorityRange, &least, &greatest));
    assert_int_equal(least, 0);
    assert_int_equal(greatest, -5);
    ok(fake_call(f, cuCtxGetStreamPriorityRange, NULL, NULL));
    ok(fake_call(f, cuCtxGetCacheConfig, &cache));
    assert_int_equal(cache, 0);
    for (int i = -1; i < 6; i++)
        assert_int_equal(fake_call(f, cuCtxSetCacheConfig, (CUfunc_cache)i),
                         i >= 0 && i <= 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    ok(fake_call(f, cuCtxGetCacheConfig, &cache));
    assert_int_equal(cache, 3);
    for (int i = -1; i < 5; i++)
        assert_int_equal(fake_call(f, cuCtxSetSharedMemConfig, (CUsharedconfig)i),
                         i >= 0 && i <= 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    ok(fake_call(f, cuCtxGetSharedMemConfig, &shared));
    assert_int_equal(shared, 1);
    ok(fake_call(f, cuCtxGetExecAffinity, &affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    assert_int_equal(affinity.param.smCount.val, 8);
    assert_int_equal(fake_call(f, cuCtxGetExecAffinity, &affinity, (CUexecAffinityType)1),
                     CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    ok(fake_call(f, cuCtxResetPersistingL2Cache, 0));
    ok(fake_call(f, cuFlushGPUDirectRDMAWrites, 0, 100));
    assert_int_equal(fake_call(f, cuFlushGPUDirectRDMAWrites, 1, 100), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuFlushGPUDirectRDMAWrites, 0, 5), CUDA_ERROR_INVALID_VALUE);
    fake_free(f);
}

static void
peers_are_enabled_once(void **state)
{
    struct fake *f = started(2);
    const CUcontext a = made(f, 0);
    const CUcontext same = made(f, 0);
    const CUcontext b = made(f, 1);

    ok(fake_call(f, cuCtxSetCurrent, a));
    assert_int_equal(fake_call(f, cuCtxEnablePeerAccess, a, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    assert_int_equal(fake_call(f, cuCtxEnablePeerAccess, same, 0),
                     CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    assert_int_equal(fake_call(f, cuCtxEnablePeerAccess, b, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuCtxEnablePeerAccess, NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxDisablePeerAccess, b), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    assert_int_equal(fake_call(f, cuCtxDisablePeerAccess, NULL), CUDA_ERROR_INVALID_CONTEXT);
    ok(fake_call(f, cuCtxEnablePeerAccess, b, 0));
    assert_int_equal(fake_call(f, cuCtxEnablePeerAccess, b, 0),
                     CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    ok(fake_call(f, cuCtxDisablePeerAccess, b));
    ok(fake_call(f, cuCtxEnablePeerAccess, b, 0));
    fake_free(f);
}

static void *
retain_and_release(void *arg)
{
    struct fake *f = arg;

    for (int i = 0; i < 300; i++) {
        CUcontext c = NULL;
        CUcontext own = NULL;

        ok(fake_call(f, cuDevicePrimaryCtxRetain, &c, i % 2));
        ok(fake_call(f, cuCtxSetCurrent, c));
        ok(fake_call(f, cuCtxCreate_v2, &own, 0, i % 2));
        ok(fake_call(f, cuCtxSynchronize, 0));
        ok(fake_call(f, cuCtxDestroy_v2, own));
        ok(fake_call(f, cuCtxSynchronize, 0));
        ok(fake_call(f, cuDevicePrimaryCtxRelease_v2, i % 2));
    }
    return NULL;
}

static void
threads_retain_create_and_destroy_at_once(void **state)
{
    struct fake *f = started(2);
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, retain_and_release, f), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(hed_context_alive(f->driver->devices[0].primary));
    assert_false(hed_context_alive(f->driver->devices[1].primary));
    fake_free(f);
}

static void
after_the_end_everything_is_deinitialized(void **state)
{
    struct fake *f = started(1);
    int n;

    (void)fake_use_primary(f, 0);
    hed_driver_fini(f->driver);
    assert_int_equal(fake_call(f, cuCtxSynchronize, 0), CUDA_ERROR_DEINITIALIZED);
    assert_int_equal(fake_call(f, cuDeviceGetCount, &n), CUDA_ERROR_DEINITIALIZED);
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_driver_has_a_space_for_each_device),
    cmocka_unit_test(a_machine_without_addresses_makes_no_driver),
    cmocka_unit_test(nothing_works_before_init),
    cmocka_unit_test(without_a_context_calls_say_so),
    cmocka_unit_test(invented_handles_are_refused),
    cmocka_unit_test(the_stack_pushes_pops_and_replaces),
    cmocka_unit_test(creation_checks_what_it_is_given),
    cmocka_unit_test(a_destroyed_context_stays_current_elsewhere_and_is_dead),
    cmocka_unit_test(attaching_counts),
    cmocka_unit_test(small_things_of_a_context_are_answered),
    cmocka_unit_test(peers_are_enabled_once),
    cmocka_unit_test(threads_retain_create_and_destroy_at_once),
    cmocka_unit_test(after_the_end_everything_is_deinitialized),
};

HED_UNIT_MAIN(tests)
