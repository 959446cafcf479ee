/* Values in memory that streams wait for and write. */
#include "driver/context/context.h"
#include "unit/driver/busy.h"

static uint32_t
value_at(CUdeviceptr at)
{
    return atomic_load((_Atomic uint32_t *)(uintptr_t)at);
}

static void
a_stream_waits_for_values_and_writes_them(void **state)
{
    static const struct {
        unsigned flags;
        uint32_t before, value, after;
    } rows[] = {
        {CU_STREAM_WAIT_VALUE_GEQ, 3, 5, 9},         {CU_STREAM_WAIT_VALUE_GEQ, 0xfffffff0, 5, 6},
        {CU_STREAM_WAIT_VALUE_EQ, 6, 5, 5},          {CU_STREAM_WAIT_VALUE_AND, 2, 5, 4},
        {CU_STREAM_WAIT_VALUE_NOR, 0xff, ~0xffu, 1},
    };
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUdeviceptr p;

    OK(fake_call(f, cuMemAlloc_v2, &p, 64));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        atomic_store((_Atomic uint32_t *)(uintptr_t)p, rows[i].before);
        atomic_store((_Atomic uint64_t *)(uintptr_t)(p + 8), 0);
        OK(fake_call(f, cuStreamWaitValue32_v2, s, p, rows[i].value, rows[i].flags));
        OK(fake_call(f, cuStreamWriteValue64_v2, s, p + 8, 0x100000001, 0));
        give_a_moment(8);
        assert_int_equal(value_at(p + 8), 0);
        atomic_store((_Atomic uint32_t *)(uintptr_t)p, rows[i].after);
        OK(fake_call(f, cuStreamSynchronize, s));
        assert_int_equal(value_at(p + 8), 1);
        assert_int_equal(value_at(p + 12), 1);
    }
    busy_fake_free(f);
}

static void
a_failed_context_ends_waiting_for_values(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUdeviceptr p;

    OK(fake_call(f, cuMemAlloc_v2, &p, 64));
    atomic_store((_Atomic uint32_t *)(uintptr_t)p, 0);
    OK(fake_call(f, cuStreamWaitValue32_v2, s, p, 1, CU_STREAM_WAIT_VALUE_EQ));
    assert_int_equal(fake_call(f, cuStreamQuery, s), CUDA_ERROR_NOT_READY);
    hed_context_fail(f->driver->devices[0].primary, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(fake_call(f, cuCtxSynchronize), CUDA_ERROR_ILLEGAL_ADDRESS);
    busy_fake_free(f);
}

static void
wrong_values_in_memory_are_refused(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    CUstreamBatchMemOpParams_v1 op;
    uint32_t own = 0;
    CUdeviceptr p;

    OK(fake_call(f, cuMemAlloc_v2, &p, 64));

    const struct {
        CUdeviceptr at;
        unsigned flags;
    } rows[] = {{p + 2, 0}, {(CUdeviceptr)(uintptr_t)&own, 0}, {0, 0}, {p, 8}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(fake_call(f, cuStreamWriteValue32_v2, s, rows[i].at, 1, rows[i].flags),
                         CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(fake_call(f, cuStreamWaitValue32, s, rows[i].at, 0, rows[i].flags),
                         CUDA_ERROR_INVALID_VALUE);
    }
    assert_int_equal(fake_call(f, cuStreamWaitValue64_v2, s, p + 4, 0, 0),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(
        fake_call(f, cuStreamWaitValue32_v2, s, p, 0, (unsigned)CU_STREAM_WAIT_VALUE_FLUSH),
        CUDA_ERROR_NOT_SUPPORTED);
    memset(&op, 0, sizeof op);
    OK(fake_call(f, cuStreamBatchMemOp_v2, s, 0, &op, 0));
    assert_int_equal(fake_call(f, cuStreamBatchMemOp_v2, s, 1, &op, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuStreamBatchMemOp_v2, s, 1, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    op.operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
    assert_int_equal(fake_call(f, cuStreamBatchMemOp_v2, s, 1, &op, 0), CUDA_ERROR_NOT_SUPPORTED);
    op.operation = CU_STREAM_MEM_OP_BARRIER;
    OK(fake_call(f, cuStreamBatchMemOp_v2, s, 1, &op, 0));
    assert_int_equal(fake_call(f, cuStreamBatchMemOp_v2, s, 1, &op, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuStreamBatchMemOp_v2, s, 257, &op, 0), CUDA_ERROR_INVALID_VALUE);
    OK(fake_call(f, cuStreamSynchronize, s));
    busy_fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_stream_waits_for_values_and_writes_them),
    cmocka_unit_test(a_failed_context_ends_waiting_for_values),
    cmocka_unit_test(wrong_values_in_memory_are_refused),
};

HED_UNIT_MAIN(tests)
