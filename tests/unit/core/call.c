/* Tests of core/call and of what the generator says about calls: how much work a call is, which
 * object it is about, which memory it touches. */
#include "core/call.h"

#include "gen/cuda_calls.h"
#include "gen/cuda_work.h"
#include "harness/unit.h"

static void
a_launch_is_as_large_as_its_grid(void **state)
{
    const CUlaunchConfig config = {.gridDimX = 1u << 31, .gridDimY = 2, .gridDimZ = 3};
    const struct hed_cuLaunchKernelEx ex = {.config = &config, .f = (CUfunction)0x1234};
    const struct hed_cuLaunchKernelEx none = {0};

    assert_int_equal(hed_cuda_size(HED_cuLaunchKernelEx, &ex), 6ull << 31);
    assert_int_equal(hed_cuda_size(HED_cuLaunchKernelEx, &none), 0);
    assert_int_equal(hed_call_about(&hed_cuda_info[HED_cuLaunchKernelEx], &ex), 0x1234);
    assert_int_equal(hed_cuda_info[HED_cuLaunchKernelEx].of_kind, HED_CUDA_KIND_FUNCTION);
}

static void
a_copy_touches_both_sides(void **state)
{
    const struct hed_cuMemcpyHtoDAsync_v2 a = {
        .dstDevice = 0x1000, .srcHost = (void *)0x2000, .ByteCount = 24};
    struct hed_extent e[HED_CUDA_EXTENTS];
    uint64_t bytes = 0;

    assert_int_equal(hed_cuda_extents(HED_cuMemcpyHtoDAsync_v2, &a, e), 2);
    assert_int_equal(e[0].at, 0x1000);
    assert_false(e[0].host);
    assert_int_equal(e[1].at, 0x2000);
    assert_true(e[1].host);
    assert_int_equal(e[1].offset, offsetof(struct hed_cuMemcpyHtoDAsync_v2, srcHost));
    assert_true(hed_extent_bytes(&e[1], &bytes));
    assert_int_equal(bytes, 24);
    assert_int_equal(hed_cuda_extents(HED_cuCtxSynchronize, &a, e), 0);
}

static void
rows_reach_from_the_first_to_the_last(void **state)
{
    const struct {
        struct hed_extent e;
        bool possible;
        uint64_t bytes;
    } rows[] = {
        {{.count = 10, .element = 4, .rows = 1}, true, 40},
        {{.count = 10, .element = 4, .rows = 3, .pitch = 100}, true, 240},
        {{.count = 10, .element = 4, .rows = 3, .pitch = 40}, true, 120},
        {{.count = 0, .element = 4, .rows = 3, .pitch = 100}, true, 0},
        {{.count = 10, .element = 4, .rows = 0, .pitch = 100}, true, 0},
        {{.count = 10, .element = 4, .rows = 2, .pitch = 39}, false, 0},
        {{.count = 10, .element = 4, .rows = 2}, false, 0},
        {{.count = UINT64_MAX, .element = 2, .rows = 1}, false, 0},
        {{.count = 1, .element = 1, .rows = 3, .pitch = UINT64_MAX / 2 + 1}, false, 0},
        {{.count = 2, .element = 1, .rows = 2, .pitch = UINT64_MAX}, false, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t bytes = 0;

        assert_int_equal(hed_extent_bytes(&rows[i].e, &bytes), rows[i].possible);
        if (rows[i].possible)
            assert_int_equal(bytes, rows[i].bytes);
    }
}

/* A call is about the object that it frees, whatever else it does. */
static void
a_call_that_frees_is_about_what_it_frees(void **state)
{
    const struct hed_cuMemFreeAsync a = {.dptr = 0x5000};

    assert_int_equal(hed_cuda_info[HED_cuMemFreeAsync].does, HED_DOES_ORDER);
    assert_int_equal(hed_cuda_info[HED_cuMemFreeAsync].of_kind, HED_CUDA_KIND_MEMORY);
    assert_int_equal(hed_call_about(&hed_cuda_info[HED_cuMemFreeAsync], &a), 0x5000);
}

static void
every_call_does_something_somewhere(void **state)
{
    for (uint32_t id = 1; id < HED_CUDA_CALLS; id++) {
        assert_int_not_equal(hed_cuda_info[id].does, HED_DOES_NOTHING);
        assert_true(*hed_cuda_info[id].area);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_launch_is_as_large_as_its_grid),
    cmocka_unit_test(a_copy_touches_both_sides),
    cmocka_unit_test(rows_reach_from_the_first_to_the_last),
    cmocka_unit_test(a_call_that_frees_is_about_what_it_frees),
    cmocka_unit_test(every_call_does_something_somewhere),
};

HED_UNIT_MAIN(tests)
