/* Copies and fills of the soft driver. The expected errors are those of NVIDIA's driver 580 on an
 * H200. */
#include "unit/driver/memory_make.h"

static void
count_up(unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(i * 7 + 1);
}

static void
copies_go_every_way(void **state)
{
    struct fake *f = ready(2);
    unsigned char from[1000], to[1000];
    CUdeviceptr p = 0, q = 0;
    CUcontext c = NULL;

    count_up(from, sizeof from);
    ok(fake_call(f, cuMemAlloc_v2, &p, 1000));
    ok(fake_call(f, cuMemAlloc_v2, &q, 1000));
    ok(fake_call(f, cuMemcpyHtoD_v2, p, from, 1000));
    ok(fake_call(f, cuMemcpyDtoD_v2, q, p, 1000));
    ok(fake_call(f, cuMemcpyDtoH_v2, to, q, 1000));
    assert_memory_equal(from, to, 1000);
    memset(to, 0, sizeof to);
    ok(fake_call(f, cuMemcpy, (CUdeviceptr)(uintptr_t)to, p, 1000));
    assert_memory_equal(from, to, 1000);
    ok(fake_call(f, cuCtxGetCurrent, &c));
    memset(host(q), 0, 1000);
    ok(fake_call(f, cuMemcpyPeer, q, c, p, NULL, 1000));
    assert_memory_equal(from, host(q), 1000);
    assert_int_equal(fake_call(f, cuMemcpyPeer, q, (CUcontext)(uintptr_t)0x1234, p, NULL, 1000),
                     CUDA_ERROR_INVALID_CONTEXT);
    /* There is one address space, so the direction is only a name. */
    ok(fake_call(f, cuMemcpyHtoD_v2, p, host(q), 10));
    ok(fake_call(f, cuMemcpyDtoH_v2, host(q), p, 10));
    fake_free(f);
}

static void
copies_out_of_range_are_refused(void **state)
{
    struct fake *f = ready(1);
    char *own = calloc(1, MIB);
    CUdeviceptr p = 0, q = 0;
    void *h = NULL;

    ok(fake_call(f, cuMemAlloc_v2, &p, 100));
    ok(fake_call(f, cuMemAlloc_v2, &q, 4 * MIB));
    ok(fake_call(f, cuMemHostAlloc, &h, 100, 0));
    bad(fake_call(f, cuMemcpyHtoD_v2, p, own, 101));
    bad(fake_call(f, cuMemcpyHtoD_v2, p + 1, own, 100));
    bad(fake_call(f, cuMemcpyDtoH_v2, own, p, 101));
    bad(fake_call(f, cuMemcpyDtoH_v2, h, q, 101));
    bad(fake_call(f, cuMemcpy, (CUdeviceptr)(uintptr_t)h, q, 101));
    bad(fake_call(f, cuMemcpyHtoD_v2, (CUdeviceptr)(uintptr_t)own, own, 4));
    bad(fake_call(f, cuMemcpyDtoH_v2, own, (CUdeviceptr)(uintptr_t)own, 4));
    bad(fake_call(f, cuMemcpyHtoD_v2, p, NULL, 4));
    bad(fake_call(f, cuMemcpyHtoD_v2, 0, own, 4));
    bad(fake_call(f, cuMemcpyHtoD_v2, p, own, SIZE_MAX));
    bad(fake_call(f, cuMemcpy, 0, 0, 4));
    ok(fake_call(f, cuMemcpyHtoD_v2, 0x1234, NULL, 0));
    ok(fake_call(f, cuMemcpy, (CUdeviceptr)(uintptr_t)own, (CUdeviceptr)(uintptr_t)own + 100, 4));
    /* Freed memory belongs to nothing and is never touched. */
    ok(fake_call(f, cuMemFree_v2, q));
    bad(fake_call(f, cuMemcpyDtoH_v2, own, q, 4));
    bad(fake_call(f, cuMemcpy, (CUdeviceptr)(uintptr_t)own, q, 4));
    /* A range of which only a part is registered. */
    ok(fake_call(f, cuMemHostRegister_v2, own, 8192, 0));
    bad(fake_call(f, cuMemcpyHtoD_v2, p, own + 8190, 4));
    ok(fake_call(f, cuMemHostUnregister, own));
    assert_int_equal(fake_call(f, cuMemcpyHtoDAsync_v2, p, own, 4, (CUstream)(uintptr_t)0xdead0),
                     CUDA_ERROR_INVALID_HANDLE);
    fake_free(f);
    free(own);
}

static _Atomic bool gate;

static void
wait_for_gate(void *data)
{
    while (!atomic_load(&gate))
        ;
}

static void
a_small_pageable_source_is_read_at_once(void **state)
{
    struct fake *f = ready(1);
    unsigned char from[64], to[64], zero[64] = {0};
    CUdeviceptr p = 0;
    CUstream s = NULL;

    count_up(from, sizeof from);
    ok(fake_call(f, cuMemAlloc_v2, &p, 64));
    ok(fake_call(f, cuMemcpyHtoD_v2, p, zero, 64));
    ok(fake_call(f, cuStreamCreate, &s, CU_STREAM_NON_BLOCKING));
    atomic_store(&gate, false);
    ok(fake_call(f, cuLaunchHostFunc, s, wait_for_gate, NULL));
    memcpy(to, from, 64);
    ok(fake_call(f, cuMemcpyHtoDAsync_v2, p, to, 64, s));
    memset(to, 0xee, 64); /* the call has returned: the program may change it */
    assert_memory_equal(host(p), zero, 64);
    atomic_store(&gate, true);
    ok(fake_call(f, cuMemcpyDtoHAsync_v2, to, p, 64, s)); /* to pageable memory: waits */
    assert_memory_equal(to, from, 64);
    ok(fake_call(f, cuStreamDestroy_v2, s));
    fake_free(f);
}

static void
large_and_pinned_copies_are_in_order(void **state)
{
    struct fake *f = ready(1);
    const size_t n = MIB;
    unsigned char *own = malloc(n);
    CUdeviceptr p = 0;
    CUstream s = NULL;
    void *h = NULL;

    count_up(own, n);
    ok(fake_call(f, cuMemAlloc_v2, &p, n));
    ok(fake_call(f, cuMemHostAlloc, &h, n, 0));
    ok(fake_call(f, cuStreamCreate, &s, 0));
    ok(fake_call(f, cuMemcpyHtoDAsync_v2, p, own, n, s));
    ok(fake_call(f, cuMemcpyDtoHAsync_v2, h, p, n, s));
    ok(fake_call(f, cuMemsetD8Async, p, 9, n, s));
    ok(fake_call(f, cuStreamSynchronize, s));
    assert_memory_equal(h, own, n);
    assert_int_equal(((unsigned char *)host(p))[n - 1], 9);
    ok(fake_call(f, cuStreamDestroy_v2, s));
    fake_free(f);
    free(own);
}

/* ---- fills ----------------------------------------------------------------------------------- */

static void
fills_have_three_widths(void **state)
{
    struct fake *f = ready(1);
    CUdeviceptr p = 0;
    const uint8_t *b;

    ok(fake_call(f, cuMemAlloc_v2, &p, 4096));
    b = host(p);
    ok(fake_call(f, cuMemsetD8_v2, p, 0xab, 4096));
    ok(fake_call(f, cuMemsetD16_v2, p + 16, 0x1234, 4));
    ok(fake_call(f, cuMemsetD32_v2, p + 32, 0x89abcdef, 2));
    ok(fake_call(f, cuMemsetD2D8_v2, p + 100, 50, 7, 10, 3));
    ok(fake_call(f, cuCtxSynchronize));
    assert_int_equal(b[15], 0xab);
    assert_int_equal(b[16], 0x34);
    assert_int_equal(b[23], 0x12);
    assert_int_equal(b[24], 0xab);
    assert_int_equal(b[39], 0x89);
    assert_int_equal(b[40], 0xab);
    assert_int_equal(b[209], 7);
    assert_int_equal(b[210], 0xab);
    assert_int_equal(b[99], 0xab);
    fake_free(f);
}

static void
bad_fills_are_refused(void **state)
{
    struct fake *f = ready(1);
    CUdeviceptr p = 0, q = 0;
    char own[100];

    ok(fake_call(f, cuMemAlloc_v2, &p, 100));
    ok(fake_call(f, cuMemAlloc_v2, &q, 5 * MIB));
    bad(fake_call(f, cuMemsetD32_v2, p + 2, 1, 1));
    bad(fake_call(f, cuMemsetD16_v2, p + 1, 1, 1));
    ok(fake_call(f, cuMemsetD8_v2, 0x1234, 1, 0));
    bad(fake_call(f, cuMemsetD8_v2, p, 1, 101));
    bad(fake_call(f, cuMemsetD8_v2, (CUdeviceptr)(uintptr_t)own, 1, 100));
    bad(fake_call(f, cuMemsetD8_v2, 0, 1, 100));
    bad(fake_call(f, cuMemsetD32_v2, p, 1, SIZE_MAX / 2));
    bad(fake_call(f, cuMemsetD2D8_v2, q, 10, 1, 20, 2));
    ok(fake_call(f, cuMemsetD2D8_v2, q, 10, 1, 20, 1));
    ok(fake_call(f, cuMemsetD2D8_v2, q, 0, 1, 20, 1));
    ok(fake_call(f, cuMemsetD2D8_v2, q, 10, 1, 0, 2));
    ok(fake_call(f, cuMemsetD2D8_v2, q, 10, 1, 5, 0));
    bad(fake_call(f, cuMemsetD2D32_v2, q, 6, 1, 1, 2));
    ok(fake_call(f, cuMemsetD2D32_v2, q, 6, 1, 1, 1));
    bad(fake_call(f, cuMemsetD2D8_v2, q, MIB, 1, 20, 6));
    ok(fake_call(f, cuMemsetD2D8_v2, q, MIB, 1, 20, 5));
    bad(fake_call(f, cuMemsetD2D8_v2, q, SIZE_MAX / 2, 1, 20, 5));
    fake_free(f);
}

/* ---- planes and boxes ------------------------------------------------------------------------ */

static CUDA_MEMCPY2D_v2
plane(void *from, CUdeviceptr to)
{
    return (CUDA_MEMCPY2D_v2){.srcMemoryType = CU_MEMORYTYPE_HOST,
                              .srcHost = from,
                              .srcPitch = 100,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = to,
                              .dstPitch = 200,
                              .WidthInBytes = 50,
                              .Height = 10};
}

/* The copy with one field changed. */
#define plane_with(f, own, p, change)            \
    ({                                           \
        CUDA_MEMCPY2D_v2 d_ = plane((own), (p)); \
        change;                                  \
        fake_call((f), cuMemcpy2D_v2, &d_);      \
    })

static void
planes_are_copied_row_by_row(void **state)
{
    struct fake *f = ready(1);
    unsigned char own[4096];
    CUdeviceptr p = 0, small = 0;

    count_up(own, sizeof own);
    ok(fake_call(f, cuMemAlloc_v2, &p, 4 * MIB));
    ok(fake_call(f, cuMemAlloc_v2, &small, 100));
    ok(plane_with(f, own, p, (d_.srcXInBytes = 3, d_.srcY = 2, d_.dstXInBytes = 5, d_.dstY = 1)));
    for (size_t y = 0; y < 10; y++)
        assert_memory_equal((char *)host(p) + (y + 1) * 200 + 5, own + (y + 2) * 100 + 3, 50);
    assert_int_equal(((unsigned char *)host(p))[200 + 55], 0);
    bad(plane_with(f, own, p, d_.srcPitch = 40));
    bad(plane_with(f, own, p, (d_.srcPitch = 40, d_.Height = 1)));
    ok(plane_with(f, own, p, (d_.srcPitch = 0, d_.dstPitch = 0, d_.Height = 1)));
    ok(plane_with(f, own, p, (d_.srcPitch = 0, d_.dstPitch = 0, d_.Height = 2)));
    ok(plane_with(f, own, p, d_.WidthInBytes = 0));
    ok(plane_with(f, own, p, d_.Height = 0));
    bad(plane_with(f, own, p, d_.srcXInBytes = 60));
    bad(plane_with(f, own, p, d_.srcMemoryType = 0));
    bad(plane_with(f, own, p, d_.srcMemoryType = 9));
    bad(plane_with(f, own, p, d_.srcMemoryType = CU_MEMORYTYPE_ARRAY));
    bad(plane_with(f, own, p, d_.srcHost = host(small)));
    bad(plane_with(f, own, p, d_.dstDevice = (CUdeviceptr)(uintptr_t)own));
    ok(plane_with(
        f, own, p,
        (d_.srcMemoryType = CU_MEMORYTYPE_UNIFIED, d_.srcDevice = (CUdeviceptr)(uintptr_t)own)));
    bad(plane_with(f, own, p, d_.Height = 1 << 20));
    bad(plane_with(f, own, p, d_.srcHost = NULL));
    bad(plane_with(f, own, p, d_.dstPitch = SIZE_MAX / 2));
    bad(plane_with(f, own, p, d_.dstY = SIZE_MAX / 4));
    bad(fake_call(f, cuMemcpy2D_v2, NULL));
    fake_free(f);
}

static void
boxes_are_copied_plane_by_plane(void **state)
{
    struct fake *f = ready(1);
    unsigned char own[8192];
    CUdeviceptr p = 0;
    CUDA_MEMCPY3D_v2 d = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = own,
                          .srcPitch = 64,
                          .srcHeight = 16,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstPitch = 32,
                          .dstHeight = 10,
                          .WidthInBytes = 20,
                          .Height = 8,
                          .Depth = 4};

    count_up(own, sizeof own);
    ok(fake_call(f, cuMemAlloc_v2, &p, 32 * 10 * 6));
    d.dstDevice = p;
    d.srcZ = 1;
    d.dstZ = 2;
    d.srcY = 3;
    ok(fake_call(f, cuMemcpy3D_v2, &d));
    for (size_t z = 0; z < 4; z++)
        for (size_t y = 0; y < 8; y++)
            assert_memory_equal((char *)host(p) + (z + 2) * 320 + y * 32,
                                own + (z + 1) * 1024 + (y + 3) * 64, 20);
    d.srcY = 9; /* 9 + 8 rows of 16 */
    bad(fake_call(f, cuMemcpy3D_v2, &d));
    d.srcY = 0;
    d.dstZ = 3;
    bad(fake_call(f, cuMemcpy3D_v2, &d));
    d.dstZ = 0;
    d.Depth = 0;
    ok(fake_call(f, cuMemcpy3D_v2, &d));
    d.Depth = 1;
    d.srcHeight = 5;
    bad(fake_call(f, cuMemcpy3D_v2, &d));
    d.srcHeight = 0;
    ok(fake_call(f, cuMemcpy3D_v2, &d));
    fake_free(f);
}

/* ---- batches --------------------------------------------------------------------------------- */

static void
a_batch_is_checked_before_it_begins(void **state)
{
    struct fake *f = ready(1);
    unsigned char own[64];
    CUdeviceptr p = 0, to[2], from[2];
    size_t sizes[2] = {64, 64}, first[1] = {0}, failed = 7;
    CUmemcpyAttributes_v1 how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    CUstream s = NULL;

    count_up(own, sizeof own);
    ok(fake_call(f, cuMemAlloc_v2, &p, 128));
    ok(fake_call(f, cuStreamCreate, &s, 0));
    to[0] = p;
    to[1] = p + 65;
    from[0] = from[1] = (CUdeviceptr)(uintptr_t)own;
    bad(fake_call(f, cuMemcpyBatchAsync, to, from, sizes, 2, &how, first, 1, &failed, s));
    assert_int_equal(failed, 1);
    assert_int_equal(((unsigned char *)host(p))[0], 0);
    to[1] = p + 64;
    bad(fake_call(f, cuMemcpyBatchAsync, to, from, sizes, 2, &how, first, 1, &failed, NULL));
    bad(fake_call(f, cuMemcpyBatchAsync, to, from, sizes, 0, &how, first, 1, &failed, s));
    bad(fake_call(f, cuMemcpyBatchAsync, to, from, sizes, 2, NULL, NULL, 0, &failed, s));
    ok(fake_call(f, cuMemcpyBatchAsync, to, from, sizes, 2, &how, first, 1, &failed, s));
    assert_int_equal(failed, SIZE_MAX);
    ok(fake_call(f, cuStreamSynchronize, s));
    assert_memory_equal(host(p), own, 64);
    assert_memory_equal(host(p + 64), own, 64);
    sizes[0] = 0;
    bad(fake_call(f, cuMemcpyBatchAsync_v2, to, from, sizes, 2, &how, first, 1, s));
    sizes[0] = 64;
    how.srcAccessOrder = 0;
    bad(fake_call(f, cuMemcpyBatchAsync_v2, to, from, sizes, 2, &how, first, 1, s));
    ok(fake_call(f, cuStreamDestroy_v2, s));
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(copies_go_every_way),
    cmocka_unit_test(copies_out_of_range_are_refused),
    cmocka_unit_test(a_small_pageable_source_is_read_at_once),
    cmocka_unit_test(large_and_pinned_copies_are_in_order),
    cmocka_unit_test(fills_have_three_widths),
    cmocka_unit_test(bad_fills_are_refused),
    cmocka_unit_test(planes_are_copied_row_by_row),
    cmocka_unit_test(boxes_are_copied_plane_by_plane),
    cmocka_unit_test(a_batch_is_checked_before_it_begins),
};

HED_UNIT_MAIN(tests)
