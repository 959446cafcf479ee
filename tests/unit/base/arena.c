/* Tests of base/arena: alignment, ceiling, overflow, reuse. */
#include "harness/unit.h"

#include "base/arena.h"

static void
blocks_are_aligned_and_do_not_overlap(void **state)
{
    static unsigned char *blocks[64];
    struct hed_arena a;

    hed_arena_init(&a, 1 << 20);
    for (unsigned i = 0; i < 64; i++) {
        const size_t align = (size_t)1 << (i % 9);

        blocks[i] = hed_arena_alloc(&a, 100 + i, align);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % align, 0);
        memset(blocks[i], (int)i, 100 + i);
    }
    for (unsigned i = 0; i < 64; i++) {
        for (unsigned j = 0; j < 100 + i; j++)
            assert_int_equal(blocks[i][j], i);
    }
    hed_arena_fini(&a);
}

static void
ceiling_is_reached_exactly_and_not_passed(void **state)
{
    struct hed_arena a;

    hed_arena_init(&a, 100);
    assert_non_null(hed_arena_alloc(&a, 60, 1));
    assert_null(hed_arena_alloc(&a, 41, 1));
    assert_non_null(hed_arena_alloc(&a, 40, 1));
    assert_null(hed_arena_alloc(&a, 1, 1));
    assert_null(hed_arena_alloc(&a, 0, 1));
    hed_arena_fini(&a);
}

static void
alignment_counts_against_the_ceiling(void **state)
{
    struct hed_arena a;

    hed_arena_init(&a, 64);
    for (int i = 0; i < 4; i++)
        assert_non_null(hed_arena_alloc(&a, 1, 16));
    assert_null(hed_arena_alloc(&a, 1, 1));
    hed_arena_fini(&a);
}

static void
huge_requests_are_refused(void **state)
{
    struct hed_arena a;
    volatile size_t huge = SIZE_MAX;

    hed_arena_init(&a, SIZE_MAX);
    assert_non_null(hed_arena_alloc(&a, 8, 8));
    assert_null(hed_arena_alloc(&a, huge, 1));
    assert_null(hed_arena_alloc(&a, huge, 4096));
    assert_null(hed_arena_alloc(&a, huge - 16, 16));
    assert_non_null(hed_arena_alloc(&a, 8, 8));
    hed_arena_fini(&a);
}

static void
large_requests_get_a_chunk_of_their_own(void **state)
{
    struct hed_arena a;

    hed_arena_init(&a, 4 << 20);

    unsigned char *p = hed_arena_alloc(&a, 1 << 20, 4096);

    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 4096, 0);
    memset(p, 1, 1 << 20);
    hed_arena_fini(&a);
}

static void
zero_bytes_have_an_address_of_their_own(void **state)
{
    struct hed_arena a;

    hed_arena_init(&a, 16);

    void *p = hed_arena_alloc(&a, 0, 1);
    void *q = hed_arena_alloc(&a, 0, 1);

    assert_non_null(p);
    assert_non_null(q);
    assert_ptr_not_equal(p, q);
    hed_arena_fini(&a);
}

static void
reset_makes_the_whole_ceiling_available(void **state)
{
    struct hed_arena a;

    hed_arena_init(&a, 100000);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++)
            assert_non_null(hed_arena_alloc(&a, 1000, 1));
        assert_null(hed_arena_alloc(&a, 1, 1));
        hed_arena_reset(&a);
    }
    hed_arena_fini(&a);
    assert_non_null(hed_arena_alloc(&a, 1000, 1));
    hed_arena_fini(&a);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(blocks_are_aligned_and_do_not_overlap),
    cmocka_unit_test(ceiling_is_reached_exactly_and_not_passed),
    cmocka_unit_test(alignment_counts_against_the_ceiling),
    cmocka_unit_test(huge_requests_are_refused),
    cmocka_unit_test(large_requests_get_a_chunk_of_their_own),
    cmocka_unit_test(zero_bytes_have_an_address_of_their_own),
    cmocka_unit_test(reset_makes_the_whole_ceiling_available),
};

HED_UNIT_MAIN(tests)
