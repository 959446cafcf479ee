/* Tests of kernel/sass/lift with cubins that nobody would make who means well: their code. What
 * takes too long runs into the limit of the test.
 */
#include "unit/sass/lift_case.h"

/* ---- flow ------------------------------------------------------------------------------------ */

static void
branches_must_stay_inside(void **state)
{
    static const uint32_t places[] = {2, 1000, 0x10000000, UINT32_MAX - 1};

    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        begin_again(state);
        make_bra(&code, GUARD_P0, places[i]);
        make_exit(&code);
        assert_int_equal(lift_code(), HED_EFORMAT);
        assert_non_null(strstr(why.text, "leaves the kernel"));
    }
}

/* Every return of a recursion may go behind every call. */
static void
recursion_with_many_returns_is_refused(void **state)
{
    const uint32_t calls = 4000, first = calls + 1;

    for (uint32_t i = 0; i < calls; i++)
        make_call(&code, first);
    make_exit(&code);
    for (uint32_t i = 0; i < calls; i++) {
        make_bra(&code, GUARD_P0, first + 2 * i + 2);
        make_ret(&code);
    }
    make_call(&code, first);
    make_exit(&code);
    assert_int_equal(lift_code_with_functions(first, 1, 0), HED_ELIMIT);
    assert_non_null(strstr(why.text, "too many branches"));
}

/* A call as the last instruction has nothing behind it that a return could go to. */
static void
recursion_may_end_with_a_call(void **state)
{
    make_call(&code, 2);
    make_exit(&code);
    make_bra(&code, GUARD_P0, 4);
    make_ret(&code);
    make_call(&code, 2);
    assert_int_equal(lift_code_with_functions(2, 1, 0), 0);
    text_can_be_parsed();
}

/* Calls of a chain that branches double with each step: they are not copied then. */
static void
chains_of_calls_do_not_grow(void **state)
{
    const uint32_t steps = 1000;

    make_call(&code, 2);
    make_exit(&code);
    for (uint32_t i = 0; i < steps; i++) {
        make_call(&code, 2 + 3 * (i + 1));
        make_call(&code, 2 + 3 * (i + 1));
        make_ret(&code);
    }
    make_ret(&code);
    assert_int_equal(lift_code_with_functions(2, steps + 1, 3), 0);
    text_can_be_parsed();
    assert_null(strstr(hed_buf_cstr(&text), "heddle_L3004:")); /* each block once */
}

/* Parts of a kernel that call each other and never return: there is nothing to copy, and no return
 * that would have to compare anything. */
static void
calls_that_nothing_returns_from_are_jumps(void **state)
{
    make_bra(&code, GUARD_P0, 3);
    make_call(&code, 4);
    make_exit(&code);
    make_call(&code, 4);
    make_nop(&code); /* 4 */
    make_call(&code, 6);
    make_bra(&code, GUARD_P0, 8); /* 6 */
    make_call(&code, 4);
    make_exit(&code);
    make_ret(&code); /* not reached */
    assert_int_equal(lift_code(), 0);
    text_can_be_parsed();
    assert_null(strstr(hed_buf_cstr(&text), "trap"));
    assert_null(strstr(hed_buf_cstr(&text), "heddle_L7:")); /* seven blocks, each once */
}

/* A function has its last part elsewhere, and gets there by a call. Its return goes behind the call
 * of the function: no other place is known to any instruction. */
static void
calls_that_nothing_returns_to_are_jumps(void **state)
{
    make_call(&code, 3);
    make_exit(&code);
    make_ret(&code); /* 2: the last part */
    make_call(&code, 2);
    make_nop(&code);
    make_exit(&code);
    assert_int_equal(lift_code_with_functions(3, 1, 0), 0);
    text_can_be_parsed();
    assert_null(strstr(hed_buf_cstr(&text), "heddle_L4:")); /* nothing behind the second call */
}

/* LEPC R2: the place behind the call is made from it. cuBLAS has such kernels, written by hand. */
static void
calls_behind_their_own_place_are_calls(void **state)
{
    make_inst(&code, 0x734e | 2 << 16, 0x000fc00000000000);
    make_call(&code, 3);
    make_exit(&code);
    make_ret(&code); /* 3 */
    assert_int_equal(lift_code(), 0);
    text_can_be_parsed();
}

/* A hundred calls of a function that is large: it is there once, and the return compares. Returns
 * of other functions have other places. */
static void
large_functions_are_not_copied(void **state)
{
    const uint32_t calls = 100, size = 1000, first = 2 * calls + 1;

    for (uint32_t i = 0; i < calls; i++) {
        make_call(&code, first);
        make_call(&code, first + size + 1);
    }
    make_exit(&code);
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < size; i++)
            make_inst(&code, 0xff057624 | (uint64_t)k << 38, 0x000fe200078e00ff);
        make_ret(&code);
    }
    assert_int_equal(lift_code_with_functions(first, 2, size + 1), 0);
    text_can_be_parsed();
    assert_int_equal(count_in_text("setp.eq.u32"), 2 * calls);
    assert_int_equal(count_in_text(" %r5,"), 2 * size);
}

/* SHFL: on our CPU, lanes meet by the order of blocks, which copies keep. */
static void
large_functions_are_copied_where_lanes_meet(void **state)
{
    const uint32_t calls = 100, size = 300, first = calls + 2;

    for (uint32_t i = 0; i < calls; i++)
        make_call(&code, first);
    make_inst(&code, 0x00201f0002037f89, 0x000e6800000e0000);
    make_exit(&code);
    for (uint32_t i = 0; i < size; i++)
        make_inst(&code, 0xff057624, 0x000fe200078e00ff);
    make_ret(&code);
    assert_int_equal(lift_code_with_functions(first, 1, 0), 0);
    text_can_be_parsed();
    assert_int_equal(count_in_text("setp.eq.u32"), 0);
    assert_int_equal(count_in_text(" %r5,"), calls * size);
}

/* CALL.REL.NOINC R2 may go to each function that the symbols name. */
static void
calls_through_registers_are_limited(void **state)
{
    const uint32_t count = 3000;

    for (uint32_t i = 0; i < count; i++)
        make_inst(&code, 0x7344 | 2 << 24, 0x000fc00003c00000);
    for (uint32_t i = 0; i < count; i++)
        make_ret(&code);
    assert_int_equal(lift_code_with_functions(count, count, 1), HED_ELIMIT);
    assert_non_null(strstr(why.text, "too many branches"));
}

static void
loops_inside_of_loops_are_limited(void **state)
{
    const uint32_t loops = 30000;

    for (uint32_t i = 0; i < loops; i++)
        make_bra(&code, GUARD_P0, i);
    for (uint32_t i = 0; i < loops; i++)
        make_bra(&code, GUARD_P0, loops - 1 - i);
    make_exit(&code);
    assert_int_equal(lift_code(), HED_ELIMIT);
    assert_non_null(strstr(why.text, "too many loops"));
}

/* Branches forward and back between all parts: no loop has a header. */
static void
loops_with_many_entries_are_limited(void **state)
{
    const uint32_t parts = 20000;
    uint32_t x = 1;

    for (uint32_t i = 0; i < parts; i++) {
        x = x * 1664525 + 1013904223;
        make_bra(&code, GUARD_P0, (x >> 8) % parts);
    }
    make_exit(&code);
    (void)lift_code();
    assert_true(text.size < (size_t)128 << 20);
}

/* A loop that the kernel itself begins with needs no copies of its beginning. */
static void
first_block_is_the_header_of_its_loop(void **state)
{
    make_bra(&code, GUARD_P0, 2);
    make_nop(&code);
    make_bra(&code, GUARD_P0, 1);
    make_bra(&code, GUARD_P0, 1);
    make_bra(&code, GUARD_P0, 0);
    make_exit(&code);
    assert_int_equal(lift_code(), 0);
    assert_true(text.size < 4096);
    text_can_be_parsed();
}

static void
many_blocks_without_loops_are_fast(void **state)
{
    const uint32_t blocks = 60000;

    for (uint32_t i = 0; i < blocks; i++)
        make_bra(&code, GUARD_P0, blocks);
    make_exit(&code);
    assert_int_equal(lift_code(), 0);
    text_can_be_parsed();
}

/* ---- tables of branches ---------------------------------------------------------------------- */

/* Tables for all of many branches, with targets again and again. */
static void
tables_are_read_once(void **state)
{
    const uint32_t branches = 40000;
    static uint32_t table[3 + 16000];

    for (uint32_t i = 0; i < branches; i++)
        make_brx(&code);
    make_exit(&code);
    for (uint32_t i = 0; i < 16000; i++)
        table[3 + i] = (i * 2 % branches) * 16;
    table[2] = 16000;
    for (uint32_t i = 0; i < 200; i++) {
        table[0] = i * 16;
        make_record(&info, 0x34, table, sizeof table);
    }
    assert_int_equal(lift_code(), HED_ELIMIT);
    assert_non_null(strstr(why.text, "too many branches"));
}

static void
tables_longer_than_their_record_do_not_count(void **state)
{
    const uint32_t table[] = {0, 0, 0x3fffffff, 16, 0x10};

    make_brx(&code);
    make_exit(&code);
    make_record(&info, 0x34, table, sizeof table);
    assert_int_equal(lift_code(), HED_ENOTSUP);
    assert_non_null(strstr(why.text, "without a table"));
}

/* ---- registers ------------------------------------------------------------------------------- */

/* LDG.E of size 32 << i bits to a register, from the pair at R2. */
static void
make_load(unsigned to, unsigned from, unsigned size)
{
    make_inst(&code, 0x7981 | (uint64_t)to << 16 | (uint64_t)from << 24,
              0x000ea2000c1e1100 | (uint64_t)size << 9);
}

static void
groups_end_at_the_last_register(void **state)
{
    static const struct {
        unsigned to, from, size;
        bool exists;
    } loads[] = {
        {0, 2, 6, true},   {250, 2, 6, true},  {251, 2, 6, true},  {252, 2, 6, false},
        {253, 2, 5, true}, {254, 2, 5, false}, {254, 2, 4, true},  {255, 2, 6, true},
        {0, 252, 4, true}, {0, 253, 4, true},  {0, 254, 4, false},
    };

    for (unsigned i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        begin_again(state);
        make_load(loads[i].to, loads[i].from, loads[i].size);
        make_exit(&code);
        assert_int_equal(lift_code(), loads[i].exists ? 0 : HED_ENOTSUP);
        if (loads[i].exists)
            text_can_be_parsed();
    }
}

/* @P0 R2P PR, R2, 0x7f: its guard is among what it writes. */
static void
guard_that_a_mask_changes_is_copied(void **state)
{
    make_inst(&code, 0x0804 | 2 << 24 | (uint64_t)0x7f << 32, 0x000fe20000000000);
    make_bra(&code, GUARD_P0, 3);
    make_transfer(&code, 0x947, 1, 3);
    make_exit(&code);
    assert_int_equal(lift_code(), 0);
    assert_non_null(strstr((const char *)text.data, "mov.pred %x0, %p0"));
    assert_null(strstr((const char *)text.data, "@%p0 setp"));
}

/* ISETP.GE with a fourth way to combine its result. */
static void
values_that_mean_nothing_are_refused(void **state)
{
    make_inst(&code, 0x000000010000780c, 0x000fe20003f06e70);
    make_exit(&code);
    assert_int_equal(lift_code(), HED_ENOTSUP);
    assert_non_null(strstr(why.text, "ISETP"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(branches_must_stay_inside, setup, teardown),
    cmocka_unit_test_setup_teardown(recursion_with_many_returns_is_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(recursion_may_end_with_a_call, setup, teardown),
    cmocka_unit_test_setup_teardown(chains_of_calls_do_not_grow, setup, teardown),
    cmocka_unit_test_setup_teardown(calls_that_nothing_returns_from_are_jumps, setup, teardown),
    cmocka_unit_test_setup_teardown(calls_that_nothing_returns_to_are_jumps, setup, teardown),
    cmocka_unit_test_setup_teardown(calls_behind_their_own_place_are_calls, setup, teardown),
    cmocka_unit_test_setup_teardown(large_functions_are_not_copied, setup, teardown),
    cmocka_unit_test_setup_teardown(large_functions_are_copied_where_lanes_meet, setup, teardown),
    cmocka_unit_test_setup_teardown(calls_through_registers_are_limited, setup, teardown),
    cmocka_unit_test_setup_teardown(loops_inside_of_loops_are_limited, setup, teardown),
    cmocka_unit_test_setup_teardown(loops_with_many_entries_are_limited, setup, teardown),
    cmocka_unit_test_setup_teardown(first_block_is_the_header_of_its_loop, setup, teardown),
    cmocka_unit_test_setup_teardown(many_blocks_without_loops_are_fast, setup, teardown),
    cmocka_unit_test_setup_teardown(tables_are_read_once, setup, teardown),
    cmocka_unit_test_setup_teardown(tables_longer_than_their_record_do_not_count, setup, teardown),
    cmocka_unit_test_setup_teardown(groups_end_at_the_last_register, setup, teardown),
    cmocka_unit_test_setup_teardown(guard_that_a_mask_changes_is_copied, setup, teardown),
    cmocka_unit_test_setup_teardown(values_that_mean_nothing_are_refused, setup, teardown),
};

HED_UNIT_MAIN(tests)
