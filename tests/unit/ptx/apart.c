/* Lanes that come to the same operation at different places wait for each other, and lanes that
 * wait for a value let the others run. */
#include "harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "kernel/ptx/run/warp.h"
#include "ptx/exec/harness.h"

#define THREADS 64

/* Lanes 0 to 4 of a warp run `low`, the others `high`; both leave their result in %r9. */
static const char kernel[] =
    ".version 9.0\n.target sm_90\n.address_size 64\n"
    ".func (.reg .b32 %%to) sum(.reg .b32 %%v) {\n"
    ".reg .b32 %%o;\n"
    "shfl.sync.bfly.b32 %%o, %%v, 16, 31, -1; add.u32 %%v, %%v, %%o;\n"
    "shfl.sync.bfly.b32 %%o, %%v, 1, 31, -1; add.u32 %%to, %%v, %%o; ret; }\n"
    ".visible .entry k(.param .u64 out) {\n"
    ".reg .b32 %%r<20>; .reg .b64 %%d<8>; .reg .pred %%p<9>;\n"
    ".shared .align 4 .b32 sh[64];\n"
    "mov.u32 %%r1, %%laneid; mov.u32 %%r2, %%tid.x; mov.u32 %%r9, 0;\n"
    "shl.b32 %%r3, %%r2, 2; mov.u32 %%r4, sh; add.u32 %%r4, %%r4, %%r3;\n"
    "st.shared.u32 [%%r4], 0;\n"
    "setp.lt.u32 %%p1, %%r1, 5;\n"
    "@%%p1 bra LOW;\n%s\nbra DONE;\nLOW:\n%s\nDONE:\n"
    "ld.param.u64 %%d1, [out]; cvt.u64.u32 %%d2, %%r3; add.u64 %%d1, %%d1, %%d2;\n"
    "st.global.u32 [%%d1], %%r9; ret; }\n";

static char *
kernel_text(const char *high, const char *low)
{
    char *text = NULL;

    if (asprintf(&text, kernel, high, low) < 0)
        fail();
    return text;
}

static void
run_in_tier(enum exec_tier tier, const char *high, const char *low, uint32_t *out)
{
    void *params[] = {out};
    const struct exec_launch launch = {
        .threads = THREADS, .params = params, .size = sizeof(params), .meets = true};
    char *text = kernel_text(high, low);
    struct exec e;

    exec_open(&e, text, tier);
    if (exec_run(&e, "k", &launch) != 0)
        fail_msg("%s: %s", high, e.why.text);
    exec_close(&e);
    free(text);
}

typedef uint32_t (*expected_fn)(unsigned lane);

static void
expect_both(const char *high, const char *low, expected_fn want)
{
    for (int tier = EXEC_BASELINE; tier <= EXEC_COMPILED; tier++) {
        uint32_t out[THREADS] = {0};

        run_in_tier((enum exec_tier)tier, high, low, out);
        for (unsigned i = 0; i < THREADS; i++)
            if (out[i] != want(i % 32))
                fail_msg("%s: tier %d: thread %u has %u, not %u", high, tier, i, out[i],
                         want(i % 32));
    }
}

/* All lanes run the code. */
static void
expect_together(const char *code, expected_fn want)
{
    char *text = NULL;

    if (asprintf(&text, "mov.u32 %%r6, 0;\nJOINED: %s", code) < 0)
        fail();
    expect_both("bra JOINED;", text, want);
    free(text);
}

/* What the two sides bring along. */
static uint32_t
own_value(unsigned lane)
{
    return lane < 5 ? lane * 10 : lane * 100;
}

static uint32_t
neighbours_value(unsigned lane)
{
    return own_value(lane ^ 1);
}

static void
shuffles_meet(void **state)
{
    (void)state;
    expect_both("mul.lo.u32 %r5, %r1, 100; shfl.sync.bfly.b32 %r9, %r5, 1, 31, -1;",
                "mul.lo.u32 %r6, %r1, 10; mov.u32 %r7, 1;\n"
                "shfl.sync.bfly.b32 %r9|%p2, %r6, %r7, 31, -1; @!%p2 mov.u32 %r9, 1;",
                neighbours_value);
}

/* Each side has a loop of its own. */
static uint32_t
sum_of_rounds(unsigned lane)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < 3; i++)
        sum = sum * 3 + (lane ^ 4) + 7 * i;
    return sum;
}

static void
shuffles_in_loops_meet(void **state)
{
    (void)state;
    expect_both("mov.u32 %r5, 0; mov.u32 %r6, %r1;\n"
                "H: shfl.sync.bfly.b32 %r7, %r6, 4, 31, -1; mad.lo.u32 %r9, %r9, 3, %r7;\n"
                "add.u32 %r6, %r6, 7; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 3; @%p2 bra H;",
                "mov.u32 %r5, 3; mov.u32 %r6, %r1;\n"
                "L: shfl.sync.bfly.b32 %r7, %r6, 4, 31, -1; mad.lo.u32 %r9, %r9, 3, %r7;\n"
                "add.u32 %r6, %r6, 7; sub.u32 %r5, %r5, 1; setp.ne.u32 %p2, %r5, 0; @%p2 bra L;",
                sum_of_rounds);
}

static uint32_t
odd_lanes(unsigned lane)
{
    (void)lane;
    return 0xaaaaaaaa;
}

static void
votes_meet(void **state)
{
    (void)state;
    expect_both("and.b32 %r5, %r1, 1; setp.ne.u32 %p2, %r5, 0;\n"
                "vote.sync.ballot.b32 %r9, %p2, -1;",
                "and.b32 %r5, %r1, 1; setp.eq.u32 %p2, %r5, 0;\n"
                "vote.sync.ballot.b32 %r9, !%p2, -1;",
                odd_lanes);
}

static uint32_t
one(unsigned lane)
{
    (void)lane;
    return 1;
}

/* Only lane 31 says yes, so any is true for all. */
static void
votes_with_predicates_meet(void **state)
{
    (void)state;
    expect_both("setp.eq.u32 %p2, %r1, 31; vote.sync.any.pred %p3, %p2, -1;\n"
                "selp.u32 %r9, 1, 0, %p3;",
                "setp.eq.u32 %p2, %r1, 99; vote.sync.any.pred %p3, %p2, -1;\n"
                "selp.u32 %r9, 1, 0, %p3;",
                one);
}

static uint32_t
lanes_alike(unsigned lane)
{
    uint32_t same = 0;

    for (unsigned i = 0; i < 32; i++)
        same |= (uint32_t)(i % 3 == lane % 3) << i;
    return same;
}

static void
matches_meet(void **state)
{
    (void)state;
    expect_both("rem.u32 %r5, %r1, 3; match.any.sync.b32 %r9, %r5, -1;",
                "rem.u32 %r6, %r1, 3; add.u32 %r6, %r6, 0; match.any.sync.b32 %r9, %r6, -1;",
                lanes_alike);
}

static uint32_t
sum_of_values(unsigned lane)
{
    uint32_t sum = 0;

    (void)lane;
    for (unsigned i = 0; i < 32; i++)
        sum += own_value(i);
    return sum;
}

static void
reductions_meet(void **state)
{
    (void)state;
    expect_both("mul.lo.u32 %r5, %r1, 100; redux.sync.add.u32 %r9, %r5, -1;",
                "mul.lo.u32 %r6, %r1, 10; redux.sync.add.u32 %r9, %r6, -1;", sum_of_values);
}

static uint32_t
leader(unsigned lane)
{
    return lane == 0 ? 100 : 0;
}

static void
elections_meet(void **state)
{
    (void)state;
    expect_both("elect.sync %r5|%p2, -1; selp.u32 %r9, 100, %r5, %p2;",
                "elect.sync %r6|%p2, -1; selp.u32 %r9, 100, %r6, %p2;", leader);
}

static uint32_t
value_at_other_end(unsigned lane)
{
    return 31 - lane + 1;
}

/* Each thread stores, waits, and loads what the one at the other end has stored: thread `last` - t,
 * of `number` t. Then it waits again, and stores something else: who does not wait sees that. */
static void
expect_barriers(const char *barrier, const char *number, unsigned last)
{
    char *side = NULL;

    if (asprintf(&side,
                 "add.u32 %%r5, %%r1, 1; st.shared.u32 [%%r4], %%r5;\n%s\n"
                 "sub.u32 %%r6, %u, %s; sub.u32 %%r6, %%r6, %s; shl.b32 %%r6, %%r6, 2;\n"
                 "add.u32 %%r6, %%r4, %%r6; ld.shared.u32 %%r9, [%%r6];\n%s\n"
                 "mov.u32 %%r8, 1000; st.shared.u32 [%%r4], %%r8;",
                 barrier, last, number, number, barrier) < 0)
        fail();
    expect_both(side, side, value_at_other_end);
    free(side);
}

static void
barriers_of_a_warp_meet(void **state)
{
    (void)state;
    expect_barriers("bar.warp.sync -1;", "%r1", 31);
}

static void
barriers_of_a_block_meet(void **state)
{
    (void)state;
    expect_barriers("barrier.sync 0;", "%r2", 63);
}

/* A block is a cluster of its own. */
static void
barriers_of_a_cluster_meet(void **state)
{
    (void)state;
    expect_barriers("barrier.cluster.arrive; barrier.cluster.wait;", "%r2", 63);
}

static uint32_t
count_of_block(unsigned lane)
{
    (void)lane;
    return 2 * 5;
}

static void
reductions_of_a_block_meet(void **state)
{
    (void)state;
    expect_both("barrier.red.popc.u32 %r9, 0, %p1;", "barrier.red.popc.u32 %r9, 0, %p1;",
                count_of_block);
}

static uint32_t
sum_of_four(unsigned lane)
{
    return own_value(lane) + own_value(lane ^ 16) + own_value(lane ^ 1) + own_value(lane ^ 17);
}

/* The function has one text, but each call is a frame of its own. */
static void
calls_meet(void **state)
{
    (void)state;
    expect_both("mul.lo.u32 %r5, %r1, 100; call (%r9), sum, (%r5);",
                "mul.lo.u32 %r6, %r1, 10; call (%r9), sum, (%r6);", sum_of_four);
}

static uint32_t
neighbour_among_the_living(unsigned lane)
{
    return lane < 8 ? own_value(lane ^ 1) : 0;
}

static void
nobody_waits_for_the_dead(void **state)
{
    (void)state;
    expect_both("setp.ge.u32 %p2, %r1, 8; @%p2 exit;\n"
                "mul.lo.u32 %r5, %r1, 100; shfl.sync.bfly.b32 %r9, %r5, 1, 31, -1;",
                "mul.lo.u32 %r6, %r1, 10; shfl.sync.bfly.b32 %r9, %r6, 1, 31, -1;",
                neighbour_among_the_living);
}

/* Lane 31 is not in the mask, and spins until a lane of the mask has met the others. */
static uint32_t
value_beside_a_spinner(unsigned lane)
{
    return lane == 31 ? 7 : own_value(lane < 30 ? lane ^ 1 : lane);
}

static void
lanes_meet_while_another_spins(void **state)
{
    (void)state;
    expect_both("setp.eq.u32 %p2, %r1, 31; @%p2 bra SPIN;\n"
                "mul.lo.u32 %r5, %r1, 100; mov.u32 %r8, 1; setp.eq.u32 %p3, %r1, 30;\n"
                "@%p3 mov.u32 %r8, 0; shfl.sync.bfly.b32 %r9, %r5, %r8, 31, 0x7fffffff; bra DONE;\n"
                "SPIN: and.b32 %r7, %r2, 32; shl.b32 %r7, %r7, 2; mov.u32 %r8, sh;\n"
                "add.u32 %r7, %r7, %r8;\n"
                "S: ld.volatile.shared.u32 %r9, [%r7]; setp.eq.u32 %p4, %r9, 0; @%p4 bra S;",
                "mul.lo.u32 %r6, %r1, 10; shfl.sync.bfly.b32 %r9, %r6, 1, 31, 0x7fffffff;\n"
                "setp.eq.u32 %p5, %r1, 0; @%p5 st.volatile.shared.u32 [%r4], 7;",
                value_beside_a_spinner);
}

static uint32_t
seven(unsigned lane)
{
    (void)lane;
    return 7;
}

/* Lanes look at shared memory until another lane has written there. Machine code does not say that
 * such loads are volatile. */
static void
lanes_that_look_let_others_run(void **state)
{
    (void)state;
    expect_both("mov.u32 %r8, sh;\n"
                "H: and.b32 %r7, %r2, 32; shl.b32 %r7, %r7, 2; add.u32 %r7, %r7, %r8;\n"
                "ld.shared.u32 %r9, [%r7]; setp.eq.u32 %p4, %r9, 0; @%p4 bra H;",
                "mov.u32 %r9, 7; setp.eq.u32 %p5, %r1, 0; @%p5 st.shared.u32 [%r4], 7;", seven);
}

static void
guarded_operations_meet(void **state)
{
    (void)state;
    expect_together("and.b32 %r5, %r1, 1; setp.ne.u32 %p2, %r5, 0;\n"
                    "@%p1 vote.sync.ballot.b32 %r9, %p2, -1;\n"
                    "@!%p1 vote.sync.ballot.b32 %r9, %p2, -1;",
                    odd_lanes);
}

/* A jump through a table has no order of blocks. */
static void
targets_of_a_table_meet(void **state)
{
    (void)state;
    expect_together("and.b32 %r5, %r1, 1; setp.ne.u32 %p2, %r5, 0;\n"
                    "T: .branchtargets A, B;\nbrx.idx %r5, T;\n"
                    "A: vote.sync.ballot.b32 %r9, %p2, -1; bra DONE;\n"
                    "B: vote.sync.ballot.b32 %r9, %p2, -1;",
                    odd_lanes);
}

/* Pairs of lanes leave the loop one after the other. Their shuffles have the mask of the whole
 * warp, as such loops often do, and so has the one behind the loop. That is another meeting, for
 * which all lanes wait. */
static uint32_t
rounds_of_pair(unsigned lane)
{
    return (lane ^ 1) * (lane / 2 + 1);
}

static uint32_t
rounds_of_others(unsigned lane)
{
    return rounds_of_pair(lane ^ 8);
}

static void
a_loop_that_runs_out_is_not_joined(void **state)
{
    (void)state;
    expect_together("shr.u32 %r5, %r1, 1;\n"
                    "L: shfl.sync.bfly.b32 %r7, %r1, 1, 31, -1; add.u32 %r9, %r9, %r7;\n"
                    "setp.ne.u32 %p2, %r5, 0; sub.u32 %r5, %r5, 1; @%p2 bra L;\n"
                    "shfl.sync.bfly.b32 %r9, %r9, 8, 31, -1;",
                    rounds_of_others);
}

/* ---- what is compiled ------------------------------------------------------------------------ */

static bool
compiles(const char *high, const char *low, struct hed_why *why)
{
    char *text = kernel_text(high, low);
    struct hed_buf object;
    struct exec e;
    int err;

    hed_buf_init(&object, 16 << 20);
    exec_open(&e, text, EXEC_COMPILED);
    e.options.rows = HED_ROWS_32;
    err = hed_ptx_compile(&e.module, e.module.funcs->next, &e.options, &object, &e.why);
    *why = e.why;
    exec_close(&e);
    hed_buf_fini(&object);
    free(text);
    return err == 0;
}

static void
kernels_with_such_lanes_are_not_compiled(void **state)
{
    struct hed_why why;

    (void)state;
    assert_false(compiles("shfl.sync.bfly.b32 %r9, %r1, 1, 31, -1;",
                          "shfl.sync.bfly.b32 %r9, %r1, 2, 31, -1;", &why));
    assert_non_null(strstr(why.text, "different places"));
}

/* Other operations, other masks, and masks of lanes that have parted do not keep each other
 * waiting. */
static void
others_are_compiled(void **state)
{
    struct hed_why why;

    (void)state;
    assert_true(compiles("shfl.sync.bfly.b32 %r9, %r1, 1, 31, -1;",
                         "vote.sync.ballot.b32 %r9, %p1, -1;", &why));
    assert_true(compiles("shfl.sync.bfly.b32 %r9, %r1, 1, 31, 0xffffffe0;",
                         "shfl.sync.bfly.b32 %r9, %r1, 1, 31, 0x1f;", &why));
    assert_true(compiles("activemask.b32 %r5; shfl.sync.bfly.b32 %r9, %r1, 1, 31, %r5;",
                         "activemask.b32 %r5; shfl.sync.bfly.b32 %r9, %r1, 1, 31, %r5;", &why));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(shuffles_meet),
    cmocka_unit_test(shuffles_in_loops_meet),
    cmocka_unit_test(votes_meet),
    cmocka_unit_test(votes_with_predicates_meet),
    cmocka_unit_test(matches_meet),
    cmocka_unit_test(reductions_meet),
    cmocka_unit_test(elections_meet),
    cmocka_unit_test(barriers_of_a_warp_meet),
    cmocka_unit_test(barriers_of_a_block_meet),
    cmocka_unit_test(barriers_of_a_cluster_meet),
    cmocka_unit_test(reductions_of_a_block_meet),
    cmocka_unit_test(calls_meet),
    cmocka_unit_test(nobody_waits_for_the_dead),
    cmocka_unit_test(lanes_meet_while_another_spins),
    cmocka_unit_test(lanes_that_look_let_others_run),
    cmocka_unit_test(guarded_operations_meet),
    cmocka_unit_test(targets_of_a_table_meet),
    cmocka_unit_test(a_loop_that_runs_out_is_not_joined),
    cmocka_unit_test(kernels_with_such_lanes_are_not_compiled),
    cmocka_unit_test(others_are_compiled),
};

HED_UNIT_MAIN(tests)
