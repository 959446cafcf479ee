/* Tests of the pieces of a guest's window: whoever asks for what, a worker has only its own. */
#include "harness/unit.h"

#include "remote/server/listener/pieces.h"
#include "remote/wire/window.h"

#define UNIT HED_WINDOW_UNIT

static void
pieces_do_not_overlap_and_come_back(void **state)
{
    struct hed_pieces p;

    assert_int_equal(hed_pieces_init(&p, 16 * UNIT), 0);

    const uint64_t a = hed_pieces_take(&p, 0, 5 * UNIT);
    const uint64_t b = hed_pieces_take(&p, 1, 10 * UNIT - 1);

    assert_true(a >= UNIT && b >= UNIT && (a + 5 * UNIT <= b || b + 10 * UNIT <= a));
    assert_int_equal(hed_pieces_used(&p), 15 * UNIT);
    assert_int_equal(hed_pieces_take(&p, 0, 1), 0);
    hed_pieces_give(&p, 0, a, 5 * UNIT);
    assert_int_equal(hed_pieces_used(&p), 10 * UNIT);
    assert_int_equal(hed_pieces_take(&p, 2, 5 * UNIT), a);
    hed_pieces_fini(&p);
}

static void
header_is_never_given_out(void **state)
{
    struct hed_pieces p;

    assert_int_equal(hed_pieces_init(&p, 4 * UNIT), 0);
    assert_int_equal(hed_pieces_take(&p, 0, 4 * UNIT), 0);
    assert_int_equal(hed_pieces_take(&p, 0, 3 * UNIT), UNIT);
    hed_pieces_give(&p, 0, 0, 4 * UNIT);
    assert_int_equal(hed_pieces_used(&p), 3 * UNIT);
    hed_pieces_fini(&p);
}

static void
worker_gives_back_only_what_it_has(void **state)
{
    static const struct {
        uint64_t offset, bytes;
    } wrong[] = {
        {0, UNIT},        {UNIT, 3 * UNIT}, /* the third is another's */
        {3 * UNIT, UNIT}, {UNIT, UINT64_MAX}, {UINT64_MAX - UNIT + 1, UNIT},
        {UNIT + 1, UNIT}, {UNIT, UNIT + 1},   {100 * UNIT, UNIT},
    };
    struct hed_pieces p;

    assert_int_equal(hed_pieces_init(&p, 8 * UNIT), 0);
    assert_int_equal(hed_pieces_take(&p, 0, 2 * UNIT), UNIT);
    assert_int_equal(hed_pieces_take(&p, 1, 2 * UNIT), 3 * UNIT);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        hed_pieces_give(&p, 0, wrong[i].offset, wrong[i].bytes);
        assert_int_equal(hed_pieces_used(&p), 4 * UNIT);
    }
    hed_pieces_give(&p, 0, 2 * UNIT, UNIT);
    assert_int_equal(hed_pieces_used(&p), 3 * UNIT);
    hed_pieces_fini(&p);
}

/* Clears `bytes` of what is left, in ranges of `most`. */
static void
clear_left(struct hed_pieces *p, uint64_t most, uint64_t bytes)
{
    uint64_t offset = 0, n, sum = 0;

    while ((n = hed_pieces_clear(p, most, &offset)) != 0) {
        assert_true(offset >= UNIT && offset + n <= p->units * UNIT && n <= most);
        sum += n;
    }
    assert_int_equal(sum, bytes);
}

static void
worker_that_is_gone_leaves_nothing(void **state)
{
    struct hed_pieces p;

    assert_int_equal(hed_pieces_init(&p, 64 * UNIT), 0);
    for (int i = 0; i < 10; i++)
        assert_int_not_equal(hed_pieces_take(&p, i % 2, 3 * UNIT), 0);
    hed_pieces_leave(&p, 1);
    assert_int_equal(hed_pieces_used(&p), 30 * UNIT);
    clear_left(&p, 2 * UNIT, 15 * UNIT);
    assert_int_equal(hed_pieces_used(&p), 15 * UNIT);
    hed_pieces_leave(&p, 0);
    clear_left(&p, 64 * UNIT, 15 * UNIT);
    assert_int_equal(hed_pieces_used(&p), 0);
    hed_pieces_fini(&p);
}

/* What is left does not keep others waiting, and is theirs then. */
static void
pieces_that_are_left_can_be_taken(void **state)
{
    struct hed_pieces p;
    uint64_t offset;

    assert_int_equal(hed_pieces_init(&p, 16 * UNIT), 0);
    assert_int_equal(hed_pieces_take(&p, 0, 10 * UNIT), UNIT);
    hed_pieces_leave(&p, 0);
    assert_int_equal(hed_pieces_take(&p, 1, 5 * UNIT), 11 * UNIT); /* those that are free first */
    assert_int_equal(hed_pieces_take(&p, 1, 8 * UNIT), UNIT);
    assert_int_equal(hed_pieces_clear(&p, 16 * UNIT, &offset), 2 * UNIT);
    assert_int_equal(offset, 9 * UNIT);
    assert_int_equal(hed_pieces_clear(&p, 16 * UNIT, &offset), 0);
    assert_int_equal(hed_pieces_used(&p), 13 * UNIT);
    hed_pieces_give(&p, 1, UNIT, 8 * UNIT);
    assert_int_equal(hed_pieces_used(&p), 5 * UNIT);
    hed_pieces_fini(&p);
}

/* A guest writes where it likes, so what is free is cleared when the guest is gone, and what
 * workers have is not. */
static void
what_nobody_has_is_cleared(void **state)
{
    struct hed_pieces p;

    assert_int_equal(hed_pieces_init(&p, 16 * UNIT), 0);
    assert_int_equal(hed_pieces_take(&p, 0, 2 * UNIT), UNIT);
    assert_int_equal(hed_pieces_take(&p, 1, 3 * UNIT), 3 * UNIT);
    assert_int_equal(hed_pieces_take(&p, 0, 2 * UNIT), 6 * UNIT);
    hed_pieces_give(&p, 1, 3 * UNIT, 3 * UNIT);
    hed_pieces_leave_free(&p);
    clear_left(&p, 16 * UNIT, 11 * UNIT);
    assert_int_equal(hed_pieces_used(&p), 4 * UNIT);
    hed_pieces_leave(&p, 0);
    hed_pieces_leave_free(&p);
    clear_left(&p, 16 * UNIT, 15 * UNIT);
    hed_pieces_fini(&p);
    hed_pieces_leave_free(&p);
    clear_left(&p, 16 * UNIT, 0);
}

/* A guest can make its window as full of holes as it likes. If each range were searched for from
 * the beginning, these would take longer than a test may. */
static void
many_ranges_are_cleared(void **state)
{
    const uint32_t units = 1u << 18; /* 16 GiB */
    struct hed_pieces p;

    assert_int_equal(hed_pieces_init(&p, units * UNIT), 0);
    for (uint32_t i = 1; i < units; i++)
        p.owner[i] = (uint16_t)(1 + i % 2);
    hed_pieces_leave(&p, 0);
    clear_left(&p, 64 * UNIT, (units / 2 - 1) * UNIT);
    hed_pieces_fini(&p);
}

static void
guest_without_a_window_has_no_pieces(void **state)
{
    struct hed_pieces p;
    uint64_t offset;

    assert_int_equal(hed_pieces_init(&p, 0), 0);
    assert_int_equal(hed_pieces_take(&p, 0, UNIT), 0);
    assert_int_equal(hed_pieces_take(&p, 0, UINT64_MAX), 0);
    hed_pieces_give(&p, 0, UNIT, UNIT);
    hed_pieces_leave(&p, 0);
    assert_int_equal(hed_pieces_clear(&p, UNIT, &offset), 0);
    hed_pieces_fini(&p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pieces_do_not_overlap_and_come_back),
    cmocka_unit_test(header_is_never_given_out),
    cmocka_unit_test(worker_gives_back_only_what_it_has),
    cmocka_unit_test(worker_that_is_gone_leaves_nothing),
    cmocka_unit_test(pieces_that_are_left_can_be_taken),
    cmocka_unit_test(what_nobody_has_is_cleared),
    cmocka_unit_test(many_ranges_are_cleared),
    cmocka_unit_test(guest_without_a_window_has_no_pieces),
};
HED_UNIT_MAIN(tests)
