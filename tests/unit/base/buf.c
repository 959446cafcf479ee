/* Tests of base/buf: growth, ceiling, the sticky error. */
#include "harness/unit.h"

#include "base/buf.h"
#include "base/err.h"

static void
empty_buffer_is_an_empty_string(void **state)
{
    struct hed_buf b;

    hed_buf_init(&b, 10);
    assert_string_equal(hed_buf_cstr(&b), "");
    hed_buf_add(&b, NULL, 0);
    assert_string_equal(hed_buf_cstr(&b), "");
    assert_int_equal(b.err, 0);
    hed_buf_fini(&b);
}

static void
bytes_and_text_are_appended(void **state)
{
    struct hed_buf b;

    hed_buf_init(&b, 1000);
    hed_buf_add(&b, "ab", 2);
    hed_buf_addf(&b, "-%d-%s", 42, "x");
    assert_string_equal(hed_buf_cstr(&b), "ab-42-x");
    assert_int_equal(b.size, 7);
    hed_buf_fini(&b);
}

static void
growing_keeps_the_contents(void **state)
{
    struct hed_buf b;

    hed_buf_init(&b, 1 << 20);
    for (int i = 0; i < 20000; i++)
        hed_buf_addf(&b, "%05d", i);
    assert_int_equal(b.err, 0);
    assert_int_equal(b.size, 100000);
    assert_memory_equal(b.data + 5 * 12345, "12345", 5);
    hed_buf_fini(&b);
}

static void
ceiling_is_reached_exactly(void **state)
{
    struct hed_buf b;

    hed_buf_init(&b, 200);
    for (int i = 0; i < 200; i++)
        hed_buf_add(&b, "x", 1);
    assert_int_equal(b.err, 0);
    assert_int_equal(b.size, 200);
    assert_true(b.capacity <= 201);
    assert_int_equal(strlen(hed_buf_cstr(&b)), 200);
    hed_buf_add(&b, "x", 1);
    assert_int_equal(b.err, HED_ELIMIT);
    assert_int_equal(b.size, 200);
    hed_buf_fini(&b);
}

static void
failed_addition_adds_nothing_and_sticks(void **state)
{
    struct hed_buf b;

    hed_buf_init(&b, 5);
    hed_buf_add(&b, "abc", 3);
    hed_buf_addf(&b, "%s", "defg");
    assert_int_equal(b.err, HED_ELIMIT);
    hed_buf_add(&b, "d", 1);
    hed_buf_addf(&b, "d");
    assert_string_equal(hed_buf_cstr(&b), "abc");
    hed_buf_fini(&b);
}

static void
reset_clears_text_and_error(void **state)
{
    struct hed_buf b;

    hed_buf_init(&b, 5);
    hed_buf_add(&b, "abcdef", 6);
    assert_int_equal(b.err, HED_ELIMIT);
    hed_buf_reset(&b);
    assert_int_equal(b.err, 0);
    hed_buf_add(&b, "abcde", 5);
    hed_buf_reset(&b);
    assert_string_equal(hed_buf_cstr(&b), "");
    hed_buf_fini(&b);
}

static void
sizes_do_not_overflow(void **state)
{
    struct hed_buf b;
    volatile size_t huge = SIZE_MAX;

    hed_buf_init(&b, SIZE_MAX);
    hed_buf_add(&b, "a", 1);
    hed_buf_add(&b, "a", huge);
    assert_int_equal(b.err, HED_ELIMIT);
    assert_string_equal(hed_buf_cstr(&b), "a");
    hed_buf_fini(&b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(empty_buffer_is_an_empty_string),
    cmocka_unit_test(bytes_and_text_are_appended),
    cmocka_unit_test(growing_keeps_the_contents),
    cmocka_unit_test(ceiling_is_reached_exactly),
    cmocka_unit_test(failed_addition_adds_nothing_and_sticks),
    cmocka_unit_test(reset_clears_text_and_error),
    cmocka_unit_test(sizes_do_not_overflow),
};

HED_UNIT_MAIN(tests)
