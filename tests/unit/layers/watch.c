/* Tests of the watch layer: what it counts, which memory it knows, which contexts are broken. */
#include "harness/unit.h"

#include <stdlib.h>

#include "backends/null/null.h"
#include "base/err.h"
#include "core/config.h"
#include "core/layer.h"
#include "core/refusal.h"
#include "core/stats.h"
#include "layers/layers.h"
#include "layers/watch/table.h"

/* ---- a layer below that answers what the test wants ------------------------------------------ */

static CUresult answer; /* of cuCtxSynchronize, cuMemFree and cuMemRelease */
static CUcontext current = (CUcontext)0x10;

static CUresult
odd_cuCtxSynchronize(struct hed_layer *self, struct hed_cuCtxSynchronize *a)
{
    (void)self;
    (void)a;
    return answer;
}

static CUresult
odd_cuMemFree_v2(struct hed_layer *self, struct hed_cuMemFree_v2 *a)
{
    return answer ? answer : hed_next(self, cuMemFree_v2, a);
}

static CUresult
odd_cuMemRelease(struct hed_layer *self, struct hed_cuMemRelease *a)
{
    (void)self;
    (void)a;
    return answer;
}

static CUresult
odd_cuMemCreate(struct hed_layer *self, struct hed_cuMemCreate *a)
{
    (void)self;
    *a->handle = 0x99;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuMemRetainAllocationHandle(struct hed_layer *self, struct hed_cuMemRetainAllocationHandle *a)
{
    (void)self;
    *a->handle = 0x99;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuCtxGetCurrent(struct hed_layer *self, struct hed_cuCtxGetCurrent *a)
{
    (void)self;
    *a->pctx = current;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuCtxDestroy_v2(struct hed_layer *self, struct hed_cuCtxDestroy_v2 *a)
{
    (void)self;
    (void)a;
    return CUDA_SUCCESS;
}

static CUresult
odd_cuLaunchKernel(struct hed_layer *self, struct hed_cuLaunchKernel *a)
{
    (void)self;
    (void)a;
    return answer;
}

static const struct hed_cuda_ops odd_ops = {
    .cuCtxSynchronize = odd_cuCtxSynchronize,
    .cuMemFree_v2 = odd_cuMemFree_v2,
    .cuMemRelease = odd_cuMemRelease,
    .cuMemCreate = odd_cuMemCreate,
    .cuMemRetainAllocationHandle = odd_cuMemRetainAllocationHandle,
    .cuCtxGetCurrent = odd_cuCtxGetCurrent,
    .cuCtxDestroy_v2 = odd_cuCtxDestroy_v2,
    .cuLaunchKernel = odd_cuLaunchKernel,
};

static const struct hed_layer_type odd = {.name = "odd", .cuda = &odd_ops};

static struct hed_layer *top;

static int
open_chain(void **state)
{
    static struct hed_config config; /* large */
    static struct hed_layer_room bottom;
    static struct hed_layer_room middle;
    struct hed_why why = {""};

    (void)state;
    answer = CUDA_SUCCESS;
    current = (CUcontext)0x10;
    hed_config_init(&config);
    hed_layer_place(&bottom, &hed_null_backend, NULL);
    hed_layer_place(&middle, &odd, &bottom.layer);
    if (hed_layer_create(&hed_watch_layer, &middle.layer, &config, &top, &why) != 0)
        fail_msg("%s", why.text);
    return 0;
}

static int
close_chain(void **state)
{
    (void)state;
    hed_layer_free(top); /* its state stays, as at a program's end */
    return 0;
}

static struct hed_counts
counts(void)
{
    struct hed_counts c = {0};

    top->type->count(top, &c);
    return c;
}

static CUdeviceptr
allocate(size_t bytes)
{
    CUdeviceptr p = 0;

    assert_int_equal(top->cuda->cuMemAlloc_v2(top, &(struct hed_cuMemAlloc_v2){&p, bytes}), 0);
    return p;
}

static CUresult
give_back(CUdeviceptr p)
{
    return top->cuda->cuMemFree_v2(top, &(struct hed_cuMemFree_v2){p});
}

static uint64_t
list_memory(uint64_t after, struct hed_control_memory *out, size_t room)
{
    struct hed_control c = {
        .what = HED_CONTROL_MEMORY, .count = after, .out = out, .room = room * sizeof *out};

    assert_int_equal(top->type->control(top, &c, NULL), 0);
    return c.count;
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void
memory_is_known_until_it_is_freed(void **state)
{
    struct hed_control_memory items[4];
    const CUdeviceptr a = allocate(100);
    const CUdeviceptr b = allocate(1000);

    assert_true(counts().allocations == 2 && counts().live_allocations == 2);
    assert_true(counts().memory_bytes == 1100);
    assert_int_equal(give_back(a), CUDA_SUCCESS);
    assert_true(counts().allocations == 2 && counts().live_allocations == 1);
    assert_true(counts().memory_bytes == 1000 && counts().memory_peak == 1100);
    assert_int_equal(list_memory(0, items, 4), 1);
    assert_true(items[0].serial == 2 && items[0].address == b && items[0].bytes == 1000);
    assert_int_not_equal(items[0].library[0], '\0'); /* this program */
    assert_int_equal(list_memory(2, items, 4), 0);
    answer = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(give_back(b), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(list_memory(0, items, 4), 1);
    assert_true(items[0].serial == 2); /* the same allocation still */
    answer = CUDA_SUCCESS;
    assert_int_equal(give_back(b), CUDA_SUCCESS);
    assert_int_equal(give_back(0x12345), CUDA_SUCCESS); /* never seen */
    assert_true(counts().live_allocations == 0 && counts().memory_bytes == 0);
}

static void
lists_begin_with_the_oldest(void **state)
{
    struct hed_control_memory items[8];

    for (int i = 1; i <= 20; i++)
        (void)allocate(16);
    assert_int_equal(list_memory(5, items, 8), 8);
    for (uint64_t i = 0; i < 8; i++)
        assert_true(items[i].serial == 6 + i);
    assert_int_equal(list_memory(0, NULL, 0), 0);
}

static void
memory_ends_with_its_context(void **state)
{
    (void)allocate(100);
    current = (CUcontext)0x20;
    (void)allocate(10);
    assert_int_equal(
        top->cuda->cuCtxDestroy_v2(top, &(struct hed_cuCtxDestroy_v2){(CUcontext)0x10}),
        CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 10);
}

static void
a_handle_counts_its_owners(void **state)
{
    CUmemGenericAllocationHandle h = 0;
    struct hed_cuMemCreate make = {.handle = &h, .size = 4096};
    struct hed_cuMemRetainAllocationHandle retain = {.handle = &h};
    struct hed_cuMemRelease release = {0x99};

    assert_int_equal(top->cuda->cuMemCreate(top, &make), CUDA_SUCCESS);
    assert_int_equal(top->cuda->cuMemRetainAllocationHandle(top, &retain), CUDA_SUCCESS);
    assert_int_equal(top->cuda->cuMemRelease(top, &release), CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 4096);
    answer = CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(top->cuda->cuMemRelease(top, &release), CUDA_ERROR_INVALID_VALUE);
    assert_true(counts().memory_bytes == 4096);
    answer = CUDA_SUCCESS;
    assert_int_equal(top->cuda->cuMemRelease(top, &release), CUDA_SUCCESS);
    assert_true(counts().memory_bytes == 0);
}

static CUresult
synchronize(void)
{
    return top->cuda->cuCtxSynchronize(top, &(struct hed_cuCtxSynchronize){0});
}

static void
a_broken_context_is_one_problem(void **state)
{
    const uint64_t before = hed_problem_count();
    char text[256];

    answer = CUDA_ERROR_INVALID_VALUE; /* an error of the call alone */
    (void)synchronize();
    assert_true(hed_problem_count() == before && counts().context_errors == 0);
    answer = CUDA_ERROR_ILLEGAL_ADDRESS;
    for (int i = 0; i < 5; i++)
        assert_int_equal(synchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_true(hed_problem_count() == before + 1 && counts().context_errors == 1);
    assert_true(hed_problem_get(before, text, sizeof text));
    assert_string_equal(text, "a context is broken: cuCtxSynchronize was answered with "
                              "CUDA_ERROR_ILLEGAL_ADDRESS");
    hed_problem_cause("address 0x10 in kernel k");
    current = (CUcontext)0x20;
    (void)synchronize();
    assert_true(hed_problem_get(before + 1, text, sizeof text));
    assert_string_equal(text, "a context is broken: address 0x10 in kernel k (cuCtxSynchronize: "
                              "CUDA_ERROR_ILLEGAL_ADDRESS)");
    assert_int_equal(top->cuda->cuCtxDestroy_v2(top, &(struct hed_cuCtxDestroy_v2){current}),
                     CUDA_SUCCESS);
    (void)synchronize(); /* a new context may have the same handle */
    assert_true(counts().context_errors == 3);
    assert_false(hed_problem_get(before + 3, text, sizeof text));
}

static void
old_problems_are_forgotten(void **state)
{
    const uint64_t before = hed_problem_count();
    char text[8];

    for (int i = 0; i <= HED_PROBLEMS_KEPT; i++)
        hed_problem_add("problem %d\n", i);
    assert_false(hed_problem_get(before, text, sizeof text));
    assert_true(hed_problem_get(before + 1, text, sizeof text));
    assert_string_equal(text, "problem"); /* cut off */
    assert_true(hed_problem_count() == before + HED_PROBLEMS_KEPT + 1);
}

static void
accepted_launches_are_counted(void **state)
{
    struct hed_cuLaunchKernel launch = {0};

    (void)top->cuda->cuLaunchKernel(top, &launch);
    (void)top->cuda->cuLaunchKernel(top, &launch);
    answer = CUDA_ERROR_INVALID_VALUE;
    (void)top->cuda->cuLaunchKernel(top, &launch);
    assert_true(counts().launches == 2);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void
the_table_keeps_what_it_is_given(void **state)
{
    enum { COUNT = 5000 };
    struct watch_table t;
    struct watch_block out;
    uint64_t seed = 1;

    watch_table_init(&t);
    for (uint64_t i = 0; i < COUNT; i++) {
        const struct watch_block b = {
            .bytes = i, .kind = 1 + i % 2, .refs = 1, .item = {.address = i / 2 << 8}};

        assert_true(watch_table_put(&t, &b));
    }
    /* In another order, so that blocks move. */
    for (uint64_t n = 0; n < COUNT; n++) {
        seed = (seed * 4093 + 1) % COUNT; /* the loop below finds what this leaves out */

        const bool there = watch_table_take(&t, (uint32_t)(1 + seed % 2), seed / 2 << 8, &out);

        if (there)
            assert_true(out.bytes == seed);
    }
    for (uint64_t i = 0; i < COUNT; i++)
        if (watch_table_take(&t, (uint32_t)(1 + i % 2), i / 2 << 8, &out))
            assert_true(out.bytes == i);
    assert_true(watch_table_totals(&t).live == 0 && watch_table_totals(&t).bytes == 0);
    assert_true(watch_table_totals(&t).serial == COUNT);
    watch_table_fini(&t);
}

static void
dropping_a_context_leaves_the_others(void **state)
{
    enum { COUNT = 1000 };
    struct watch_table t;
    struct watch_block out;

    watch_table_init(&t);
    for (uint64_t i = 1; i <= COUNT; i++) {
        const struct watch_block b = {.bytes = 1,
                                      .context = (CUcontext)(uintptr_t)(1 + i % 3),
                                      .kind = 1,
                                      .refs = 1,
                                      .item = {.address = i << 9}};

        assert_true(watch_table_put(&t, &b));
    }
    watch_table_drop(&t, (CUcontext)1);
    watch_table_drop(&t, NULL);
    for (uint64_t i = 1; i <= COUNT; i++)
        assert_int_equal(watch_table_take(&t, 1, i << 9, &out), i % 3 != 0);
    watch_table_fini(&t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(memory_is_known_until_it_is_freed, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(lists_begin_with_the_oldest, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(memory_ends_with_its_context, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(a_handle_counts_its_owners, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(a_broken_context_is_one_problem, open_chain, close_chain),
    cmocka_unit_test_setup_teardown(accepted_launches_are_counted, open_chain, close_chain),
    cmocka_unit_test(old_problems_are_forgotten),
    cmocka_unit_test(the_table_keeps_what_it_is_given),
    cmocka_unit_test(dropping_a_context_leaves_the_others),
};

HED_UNIT_MAIN(tests)
