/* Which of the hot kernels is compiled next. No thread runs and nothing is compiled here. */
#include "backends/cpu/code.h"
#include "harness/unit.h"

#define MS UINT64_C(1000000)

/* A queue, made anew by each test. */
static struct hed_tiers tiers;
static struct hed_ptx_func funcs[4];
static struct hed_cpu_kernel kernels[4];

static void
start_queue(unsigned most)
{
    memset(&tiers, 0, sizeof tiers);
    memset(kernels, 0, sizeof kernels);
    tiers.most = most;
}

static struct hed_cpu_kernel *
add_kernel(unsigned i, uint32_t instructions, uint64_t spent)
{
    funcs[i].ninsts = instructions;
    kernels[i].func = &funcs[i];
    kernels[i].spent_ns = spent;
    kernels[i].next_hot = tiers.first;
    tiers.first = &kernels[i];
    return &kernels[i];
}

/* Takes a kernel, as a thread would that then has compiled it. */
static struct hed_cpu_kernel *
take_and_finish(void)
{
    struct hed_cpu_kernel *k = hed_tier_take(&tiers);

    if (k)
        hed_tier_done(&tiers, k);
    return k;
}

static void
hotter_kernels_of_one_size_come_first(void **state)
{
    start_queue(1);

    const struct hed_cpu_kernel *warm = add_kernel(0, 100, 10 * MS);
    const struct hed_cpu_kernel *hot = add_kernel(1, 100, 30 * MS);

    assert_ptr_equal(take_and_finish(), hot);
    assert_ptr_equal(take_and_finish(), warm);
    assert_null(take_and_finish());
}

static void
small_kernels_come_before_long_ones(void **state)
{
    start_queue(1);

    const struct hed_cpu_kernel *small = add_kernel(0, 50, 10 * MS);
    const struct hed_cpu_kernel *large = add_kernel(1, 2000, 100 * MS);

    assert_ptr_equal(take_and_finish(), small);
    assert_ptr_equal(take_and_finish(), large);
}

static void
long_kernels_come_first_if_they_cost_much_more(void **state)
{
    start_queue(1);

    const struct hed_cpu_kernel *small = add_kernel(0, 50, 10 * MS);
    const struct hed_cpu_kernel *large = add_kernel(1, 2000, 1000 * MS);

    assert_ptr_equal(take_and_finish(), large);
    assert_ptr_equal(take_and_finish(), small);
}

static void
huge_kernels_come_last_however_hot(void **state)
{
    start_queue(1);

    const struct hed_cpu_kernel *large = add_kernel(0, 4000, 1 * MS);
    const struct hed_cpu_kernel *huge = add_kernel(1, 187000, 1000000 * MS);
    const struct hed_cpu_kernel *small = add_kernel(2, 10, 1 * MS);

    assert_ptr_equal(take_and_finish(), small);
    assert_ptr_equal(take_and_finish(), large);
    assert_ptr_equal(take_and_finish(), huge);
}

static void
others_do_not_wait_for_a_huge_kernel(void **state)
{
    start_queue(1);

    struct hed_cpu_kernel *huge = add_kernel(0, 187000, 100 * MS);

    assert_ptr_equal(hed_tier_take(&tiers), huge);

    struct hed_cpu_kernel *second = add_kernel(1, 90000, 100 * MS);
    struct hed_cpu_kernel *small = add_kernel(2, 50, 10 * MS);
    struct hed_cpu_kernel *next = add_kernel(3, 60, 10 * MS);

    /* One huge kernel at a time, and as many others as there are threads for them. */
    assert_ptr_equal(hed_tier_take(&tiers), small);
    assert_null(hed_tier_take(&tiers));
    hed_tier_done(&tiers, small);
    assert_ptr_equal(hed_tier_take(&tiers), next);
    assert_null(hed_tier_take(&tiers));
    hed_tier_done(&tiers, huge);
    assert_ptr_equal(hed_tier_take(&tiers), second);
    assert_null(hed_tier_take(&tiers));
}

static void
a_kernel_that_others_compile_waits_for_its_time(void **state)
{
    start_queue(1);

    struct hed_cpu_kernel *elsewhere = add_kernel(0, 100, 1000 * MS);
    const struct hed_cpu_kernel *ours = add_kernel(1, 100, 10 * MS);

    elsewhere->look_at = UINT64_MAX;
    assert_ptr_equal(take_and_finish(), ours);
    assert_null(take_and_finish());
    elsewhere->look_at = 1; /* long ago */
    assert_ptr_equal(take_and_finish(), elsewhere);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(hotter_kernels_of_one_size_come_first),
    cmocka_unit_test(small_kernels_come_before_long_ones),
    cmocka_unit_test(long_kernels_come_first_if_they_cost_much_more),
    cmocka_unit_test(huge_kernels_come_last_however_hot),
    cmocka_unit_test(others_do_not_wait_for_a_huge_kernel),
    cmocka_unit_test(a_kernel_that_others_compile_waits_for_its_time),
};

HED_UNIT_MAIN(tests)
