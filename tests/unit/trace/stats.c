/* Tests of cli/trace/stats: exact and rounded percentiles. */
#include "harness/unit.h"

#include "cli/trace/stats.h"

static void
percentiles_are_of_the_nearest_rank(void **state)
{
    struct hed_call_stats s = {0};
    const size_t l = hed_call_stats_line(&s, "a", NULL);

    for (uint64_t i = 200; i > 0; i--)
        assert_true(hed_call_stats_add(&s, l, i, i == 7));
    hed_call_stats_finish(&s);
    assert_int_equal(s.lines[l].count, 200);
    assert_int_equal(s.lines[l].errors, 1);
    assert_int_equal(s.lines[l].total, 20100);
    assert_int_equal(s.lines[l].max, 200);
    assert_int_equal(s.lines[l].p50, 100);
    assert_int_equal(s.lines[l].p99, 198);
    hed_call_stats_fini(&s);
}

static void
few_values_or_none_do_no_harm(void **state)
{
    struct hed_call_stats s = {0};

    hed_call_stats_line(&s, "none", NULL);
    hed_call_stats_line(&s, "one", "thread");
    assert_true(hed_call_stats_add(&s, 1, 42, false));
    hed_call_stats_finish(&s);
    assert_int_equal(s.lines[0].p99, 0);
    assert_int_equal(s.lines[1].p50, 42);
    assert_int_equal(s.lines[1].p99, 42);
    hed_call_stats_fini(&s);
}

static void
many_are_within_one_percent(void **state)
{
    struct hed_call_stats s = {0};
    const size_t l = hed_call_stats_line(&s, "a", NULL);
    const uint64_t n = 2 * HED_STATS_EXACT;

    for (uint64_t i = 1; i <= n; i++)
        assert_true(hed_call_stats_add(&s, l, i * 1000, false));
    hed_call_stats_finish(&s);
    assert_non_null(s.lines[l].buckets);
    assert_int_equal(s.samples, 0);

    const double p50 = (double)s.lines[l].p50 / ((double)n * 500);
    const double p99 = (double)s.lines[l].p99 / ((double)n * 990);

    assert_true(p50 > 0.99 && p50 < 1.01);
    assert_true(p99 > 0.99 && p99 < 1.01);
    assert_true(s.lines[l].p99 <= s.lines[l].max);
    hed_call_stats_fini(&s);
}

static void
every_duration_has_a_bucket(void **state)
{
    struct hed_call_stats s = {0};
    const size_t l = hed_call_stats_line(&s, "a", NULL);

    for (uint64_t i = 0; i <= HED_STATS_EXACT; i++)
        assert_true(hed_call_stats_add(&s, l, UINT64_MAX >> (i % 64), false));
    hed_call_stats_finish(&s);
    assert_int_equal(s.lines[l].max, UINT64_MAX);
    assert_int_equal(s.lines[l].total, UINT64_MAX);
    hed_call_stats_fini(&s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(percentiles_are_of_the_nearest_rank),
    cmocka_unit_test(few_values_or_none_do_no_harm),
    cmocka_unit_test(many_are_within_one_percent),
    cmocka_unit_test(every_duration_has_a_bucket),
};

HED_UNIT_MAIN(tests)
