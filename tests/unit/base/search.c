/* Tests of base/search: the place of a key in every array of up to eight numbers. */
#include "harness/unit.h"

#include "base/search.h"

static int
compare_bytes(const void *key, const void *element)
{
    const uint8_t *x = key, *y = element;

    return (*x > *y) - (*x < *y);
}

static void
the_first_element_that_is_not_below_is_found(void **state)
{
    const uint8_t sorted[] = {1, 3, 3, 3, 5, 7, 7, 9};

    for (size_t n = 0; n <= sizeof(sorted); n++) {
        for (uint8_t key = 0; key <= 10; key++) {
            size_t expected = 0;

            while (expected < n && sorted[expected] < key)
                expected++;
            assert_int_equal(hed_lower_bound(&key, sorted, n, 1, compare_bytes), expected);
        }
    }
}

static void
nothing_may_be_no_array(void **state)
{
    const uint8_t key = 1;

    assert_int_equal(hed_lower_bound(&key, NULL, 0, 1, compare_bytes), 0);
}

static void
the_second_number_decides_where_the_first_ones_are_equal(void **state)
{
    assert_int_equal(hed_compare_pairs(1, 9, 2, 0), -1);
    assert_int_equal(hed_compare_pairs(2, 0, 1, 9), 1);
    assert_int_equal(hed_compare_pairs(1, 0, 1, UINT64_MAX), -1);
    assert_int_equal(hed_compare_pairs(1, UINT64_MAX, 1, 0), 1);
    assert_int_equal(hed_compare_pairs(UINT64_MAX, 3, UINT64_MAX, 3), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_first_element_that_is_not_below_is_found),
    cmocka_unit_test(nothing_may_be_no_array),
    cmocka_unit_test(the_second_number_decides_where_the_first_ones_are_equal),
};

HED_UNIT_MAIN(tests)
