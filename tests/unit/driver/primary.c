/* Primary contexts of the soft driver, limits, and sticky errors. The expected results are those of
 * NVIDIA's driver 580 on an H200 for the same calls, except after a sticky error, which ends the
 * process there. */
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
assert_state(struct fake *f, unsigned flags, int active)
{
    unsigned got_flags = 99;
    int got_active = 99;

    ok(fake_call(f, cuDevicePrimaryCtxGetState, 0, &got_flags, &got_active));
    assert_int_equal(got_flags, flags);
    assert_int_equal(got_active, active);
}

static void
a_primary_context_is_active_while_it_is_retained(void **state)
{
    struct fake *f = started(1);
    CUcontext c = NULL;
    CUcontext again = NULL;
    unsigned long long id = 0;
    unsigned long long later = 0;
    size_t value;
    unsigned u;
    int n;

    assert_state(f, 0, 0);
    assert_int_equal(fake_call(f, cuDevicePrimaryCtxRelease_v2, 0), CUDA_ERROR_INVALID_CONTEXT);
    ok(fake_call(f, cuDevicePrimaryCtxReset_v2, 0));
    assert_int_equal(fake_call(f, cuDevicePrimaryCtxRetain, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuDevicePrimaryCtxRetain, &c, 9), CUDA_ERROR_INVALID_DEVICE);
    ok(fake_call(f, cuDevicePrimaryCtxRetain, &c, 0));
    assert_state(f, 0, 1);
    assert_null(current(f));
    ok(fake_call(f, cuDevicePrimaryCtxRetain, &again, 0));
    assert_ptr_equal(again, c);
    ok(fake_call(f, cuCtxSetCurrent, c));
    ok(fake_call(f, cuCtxGetId, c, &id));
    assert_int_equal(fake_call(f, cuCtxDestroy_v2, c), CUDA_ERROR_INVALID_CONTEXT);
    ok(fake_call(f, cuDevicePrimaryCtxRelease_v2, 0));
    assert_state(f, 0, 1);
    ok(fake_call(f, cuDevicePrimaryCtxRelease_v2, 0));
    assert_state(f, 0, 0);
    assert_int_equal(fake_call(f, cuDevicePrimaryCtxRelease_v2, 0), CUDA_ERROR_INVALID_CONTEXT);

    assert_ptr_equal(current(f), c);
    assert_int_equal(fake_call(f, cuCtxSynchronize, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(fake_call(f, cuCtxGetLimit, &value, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(fake_call(f, cuCtxGetApiVersion, c, &u), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fake_call(f, cuCtxGetApiVersion, NULL, &u), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(fake_call(f, cuCtxGetId, c, &id), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    ok(fake_call(f, cuCtxGetDevice, &n));
    ok(fake_call(f, cuCtxGetDevice_v2, &n, c));
    ok(fake_call(f, cuCtxPushCurrent_v2, c));
    ok(fake_call(f, cuCtxPopCurrent_v2, &again));

    ok(fake_call(f, cuDevicePrimaryCtxRetain, &again, 0));
    assert_ptr_equal(again, c);
    ok(fake_call(f, cuCtxGetId, c, &later));
    assert_true(later > id);
    fake_free(f);
}

static void
a_reset_takes_the_contents_and_leaves_the_retains(void **state)
{
    struct fake *f = started(1);
    const CUcontext c = fake_use_primary(f, 0);
    CUcontext again = NULL;
    size_t value = 0;

    ok(fake_call(f, cuCtxSetLimit, CU_LIMIT_STACK_SIZE, 4096));
    ok(fake_call(f, cuDevicePrimaryCtxReset_v2, 0));
    assert_state(f, 0, 0);
    assert_ptr_equal(current(f), c);
    assert_int_equal(fake_call(f, cuCtxSynchronize, 0), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    ok(fake_call(f, cuDevicePrimaryCtxRelease_v2, 0));
    ok(fake_call(f, cuDevicePrimaryCtxRetain, &again, 0));
    ok(fake_call(f, cuCtxGetLimit, &value, CU_LIMIT_STACK_SIZE));
    assert_int_equal(value, 1024);
    ok(fake_call(f, cuDevicePrimaryCtxRelease_v2, 0));
    assert_state(f, 0, 0);
    assert_int_equal(fake_call(f, cuDevicePrimaryCtxReset_v2, 9), CUDA_ERROR_INVALID_DEVICE);
    fake_free(f);
}

static void
flags_of_primary_contexts_are_checked_and_kept(void **state)
{
    struct fake *f = started(1);
    const unsigned fine[] = {1, 2, 16, 32, 64, 128, 4};
    const unsigned wrong[] = {0x1000, 3, 7, 8};
    CUcontext c = NULL;
    unsigned flags = 0;

    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        ok(fake_call(f, cuDevicePrimaryCtxSetFlags_v2, 0, fine[i]));
        assert_state(f, fine[i], 0);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(fake_call(f, cuDevicePrimaryCtxSetFlags_v2, 0, wrong[i]),
                         CUDA_ERROR_INVALID_VALUE);
    assert_state(f, 4, 0);
    ok(fake_call(f, cuDevicePrimaryCtxReset_v2, 0));
    ok(fake_call(f, cuDevicePrimaryCtxRetain, &c, 0));
    assert_state(f, 0, 1);
    ok(fake_call(f, cuDevicePrimaryCtxSetFlags_v2, 0, 2));
    assert_int_equal(fake_call(f, cuDevicePrimaryCtxSetFlags, 0, 0),
                     CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
    ok(fake_call(f, cuCtxSetCurrent, c));
    ok(fake_call(f, cuCtxGetFlags, &flags));
    assert_int_equal(flags, 2 | 8);
    ok(fake_call(f, cuCtxSetFlags, 1));
    ok(fake_call(f, cuCtxGetFlags, &flags));
    assert_int_equal(flags, 1 | 8);
    assert_state(f, 2, 1);
    assert_int_equal(fake_call(f, cuCtxSetFlags, 3), CUDA_ERROR_INVALID_VALUE);
    ok(fake_call(f, cuDevicePrimaryCtxRelease_v2, 0));
    assert_state(f, 0, 0);
    fake_free(f);
}

struct limit_row {
    int limit;
    size_t value;
    CUresult result;
    size_t now;
};

/* The fake device has 8 multiprocessors and 50 MiB of cache. */
static const struct limit_row limit_rows[] = {
    {0, 0, CUDA_SUCCESS, 0},
    {0, 1, CUDA_SUCCESS, 16},
    {0, 1025, CUDA_SUCCESS, 1040},
    {0, 65536, CUDA_SUCCESS, 65536},
    {0, 1 << 20, CUDA_ERROR_INVALID_VALUE, 65536},
    {1, 1, CUDA_SUCCESS, 524288},
    {1, 8 << 20, CUDA_SUCCESS, 8 << 20},
    {1, 1ull << 40, CUDA_SUCCESS, 2147483648},
    {2, 0, CUDA_SUCCESS, 4194304},
    {2, 1 << 30, CUDA_SUCCESS, 1 << 30},
    {2, 1ull << 40, CUDA_SUCCESS, FAKE_MEMORY / 8},
    {3, 2, CUDA_ERROR_UNSUPPORTED_LIMIT, 0},
    {4, 0, CUDA_SUCCESS, 32},
    {4, 1000, CUDA_SUCCESS, 1000},
    {5, 0, CUDA_SUCCESS, 0},
    {5, 100, CUDA_SUCCESS, 100},
    {5, 1000, CUDA_ERROR_INVALID_VALUE, 100},
    {6, 1, CUDA_SUCCESS, 3276800},
    {6, 0, CUDA_SUCCESS, 0},
    {6, 8 << 20, CUDA_SUCCESS, 9830400},
    {6, 1 << 30, CUDA_ERROR_INVALID_VALUE, 9830400},
    {7, 0, CUDA_ERROR_NOT_PERMITTED, 232448},
    {8, 0, CUDA_ERROR_NOT_PERMITTED, 0},
    {9, 0, CUDA_ERROR_UNSUPPORTED_LIMIT, 0},
    {10, 0, CUDA_ERROR_INVALID_VALUE, 0},
    {-1, 0, CUDA_ERROR_INVALID_VALUE, 0},
};

static void
limits_are_bounded(void **state)
{
    struct fake *f = started(1);
    size_t value = 0;

    (void)made(f, 0);
    ok(fake_call(f, cuCtxGetLimit, &value, CU_LIMIT_MALLOC_HEAP_SIZE));
    assert_int_equal(value, 8 << 20);
    ok(fake_call(f, cuCtxGetLimit, &value, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
    assert_int_equal(value, 3 * 3276800);
    assert_int_equal(fake_call(f, cuCtxGetLimit, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < sizeof limit_rows / sizeof limit_rows[0]; i++) {
        const struct limit_row *r = &limit_rows[i];
        const CUresult got = fake_call(f, cuCtxSetLimit, (CUlimit)r->limit, r->value);

        assert_int_equal(got, r->result);
        if (got == CUDA_ERROR_UNSUPPORTED_LIMIT || r->limit < 0 || r->limit > 9) {
            assert_int_equal(fake_call(f, cuCtxGetLimit, &value, (CUlimit)r->limit), got);
        } else {
            ok(fake_call(f, cuCtxGetLimit, &value, (CUlimit)r->limit));
            assert_int_equal(value, r->now);
        }
    }
    fake_free(f);
}

static void
a_failure_sticks_until_the_reset(void **state)
{
    struct fake *f = started(1);
    const CUcontext c = fake_use_primary(f, 0);
    struct hed_context *object = hed_context_find(f->driver, c);
    unsigned long long id = 0;
    CUcontext popped = NULL;
    size_t value;
    unsigned u;
    int n;

    assert_non_null(object);
    hed_context_fail(object, CUDA_ERROR_LAUNCH_FAILED);
    hed_context_fail(object, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(fake_call(f, cuCtxSynchronize, 0), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(fake_call(f, cuCtxGetLimit, &value, 0), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(fake_call(f, cuCtxSetCacheConfig, 1), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(fake_call(f, cuCtxGetApiVersion, NULL, &u), CUDA_ERROR_LAUNCH_FAILED);
    ok(fake_call(f, cuCtxGetApiVersion, c, &u)); /* the runtime asks this when it resets a device */
    assert_int_equal(fake_call(f, cuCtxGetId, NULL, &id), CUDA_ERROR_LAUNCH_FAILED);
    ok(fake_call(f, cuCtxGetId, c, &id));
    assert_int_equal(fake_call(f, cuCtxSynchronize_v2, c), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(fake_call(f, cuProfilerStart, 0), CUDA_ERROR_LAUNCH_FAILED);
    ok(fake_call(f, cuCtxGetDevice, &n));
    ok(fake_call(f, cuCtxGetFlags, &u));
    ok(fake_call(f, cuCtxPushCurrent_v2, c));
    ok(fake_call(f, cuCtxPopCurrent_v2, &popped));
    assert_state(f, 0, 1);
    ok(fake_call(f, cuDevicePrimaryCtxReset_v2, 0));
    (void)fake_use_primary(f, 0);
    ok(fake_call(f, cuCtxSynchronize, 0));
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_primary_context_is_active_while_it_is_retained),
    cmocka_unit_test(a_reset_takes_the_contents_and_leaves_the_retains),
    cmocka_unit_test(flags_of_primary_contexts_are_checked_and_kept),
    cmocka_unit_test(limits_are_bounded),
    cmocka_unit_test(a_failure_sticks_until_the_reset),
};

HED_UNIT_MAIN(tests)
