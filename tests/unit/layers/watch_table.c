/* Tests of the table in which the layer watch keeps memory. */
#include "harness/unit.h"

#include <stdlib.h>

#include "layers/watch/table.h"

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
    struct watch_taken taken;
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
    watch_table_take_context(&t, (CUcontext)2, &taken);
    assert_int_equal(taken.count, (COUNT + 2) / 3);
    watch_table_put_back(&t, &taken);
    watch_taken_free(&taken);
    assert_int_equal(watch_table_totals(&t).live, COUNT);
    assert_int_equal(watch_table_totals(&t).serial, COUNT);
    watch_table_take_context(&t, (CUcontext)1, &taken);
    watch_taken_free(&taken);
    watch_table_take_context(&t, NULL, &taken);
    assert_int_equal(taken.count, 0);
    for (uint64_t i = 1; i <= COUNT; i++)
        assert_int_equal(watch_table_take(&t, 1, i << 9, &out), i % 3 != 0);
    watch_table_fini(&t);
}

static void
lists_are_the_oldest_in_order(void **state)
{
    enum { COUNT = 3000, ROOM = 1000 };
    struct hed_control_memory *items = calloc(ROOM, sizeof *items);
    struct watch_table t;

    assert_non_null(items);
    watch_table_init(&t);
    for (uint64_t i = 1; i <= COUNT; i++) {
        const struct watch_block b = {.kind = 1, .refs = 1, .item = {.address = i * 7919 % 4001}};

        assert_true(watch_table_put(&t, &b));
    }
    for (uint64_t after = 0; after < COUNT; after += 400) {
        const size_t n = watch_table_list(&t, after, items, ROOM);

        assert_int_equal(n, COUNT - after < ROOM ? COUNT - after : ROOM);
        for (size_t i = 0; i < n; i++)
            assert_true(items[i].serial == after + 1 + i);
    }
    watch_table_fini(&t);
    free(items);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_table_keeps_what_it_is_given),
    cmocka_unit_test(dropping_a_context_leaves_the_others),
    cmocka_unit_test(lists_are_the_oldest_in_order),
};

HED_UNIT_MAIN(tests)
