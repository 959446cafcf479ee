/* Tests of base/number: small arithmetic. */
#include "base/number.h"

#include "harness/unit.h"

static void
min_and_max_choose_the_right_one(void **state)
{
    assert_int_equal(hed_min(3, 7), 3);
    assert_int_equal(hed_max(3, 7), 7);
    assert_int_equal(hed_min(UINT64_MAX, 1), 1);
    assert_int_equal(hed_clamp(5, 10, 20), 10);
    assert_int_equal(hed_clamp(15, 10, 20), 15);
    assert_int_equal(hed_clamp(25, 10, 20), 20);
}

static void
rounding_goes_up_to_the_next_multiple(void **state)
{
    assert_int_equal(hed_divide_up(0, 32), 0);
    assert_int_equal(hed_divide_up(1, 32), 1);
    assert_int_equal(hed_divide_up(32, 32), 1);
    assert_int_equal(hed_divide_up(33, 32), 2);
    assert_int_equal(hed_round_up(10, 3), 12);
    assert_int_equal(hed_round_up(12, 3), 12);
    assert_int_equal(hed_align_up(17, 16), 32);
    assert_int_equal(hed_align_up(16, 16), 16);
    assert_int_equal(hed_align_up(17, 1), 17);
    assert_int_equal(hed_align_up(17, 0), 17);
}

static void
ranges_do_not_overflow(void **state)
{
    assert_true(hed_range_fits(0, 10, 10));
    assert_true(hed_range_fits(10, 0, 10));
    assert_false(hed_range_fits(1, 10, 10));
    assert_false(hed_range_fits(11, 0, 10));
    assert_false(hed_range_fits(5, UINT64_MAX, 10));
    assert_false(hed_range_fits(UINT64_MAX, 2, 10));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(min_and_max_choose_the_right_one),
    cmocka_unit_test(rounding_goes_up_to_the_next_multiple),
    cmocka_unit_test(ranges_do_not_overflow),
};

HED_UNIT_MAIN(tests)
