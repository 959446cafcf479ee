/* The baseline tier: how lanes part and meet, functions, and what it refuses. What single
 * instructions compute is in tests/ptx/exec; exec_code() runs the kernels of the other files here
 * in this tier too.
 */
#include "harness/unit.h"

#include <stdlib.h>

#include "ptx/exec/harness.h"

#define LANES 32

/* Runs `code` in one warp. %out (.b64) points to a word per lane, %lane (.b32) is the lane, and
 * lanes store their %result (.b32) at the end, after the label DONE. */
static int
run_lanes(struct exec *e, const char *before, const char *code, uint32_t *out)
{
    static const char form[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".global .u32 lock; .global .u32 counter;\n%s\n"
        ".visible .entry k(.param .u64 pout) {\n"
        ".reg .b64 %%out, %%own, %%d<20>; .reg .pred %%p<10>;\n"
        ".reg .b32 %%lane, %%result, %%r<40>;\n"
        "ld.param.u64 %%out, [pout]; mov.u32 %%lane, %%tid.x; mov.u32 %%result, 0;\n"
        "mul.wide.u32 %%own, %%lane, 4; add.u64 %%own, %%own, %%out;\n"
        "%s\nDONE: st.u32 [%%own], %%result; ret; }\n";
    const struct exec_launch launch = {.threads = LANES, .params = &out, .size = sizeof(out)};
    char *text = NULL;
    int err;

    if (asprintf(&text, form, before ? before : "", code) < 0)
        fail();
    for (unsigned i = 0; i < LANES; i++)
        out[i] = 0xdead;
    exec_open(e, text, EXEC_BASELINE);
    err = exec_run(e, "k", &launch);
    free(text);
    return err;
}

static void
must_run(const char *before, const char *code, uint32_t *out)
{
    struct exec e;

    if (run_lanes(&e, before, code, out) != 0)
        fail_msg("%s, trap %u at line %u", e.why.text, e.trap, e.trap_line);
    exec_close(&e);
}

static void
lanes_that_part_meet_after_both_paths(void **state)
{
    uint32_t out[LANES];

    (void)state;
    must_run(NULL,
             "and.b32 %r1, %lane, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra EVEN;\n"
             "activemask.b32 %result; bra MEET;\n"
             "EVEN: activemask.b32 %result;\n"
             "MEET: activemask.b32 %r2; xor.b32 %result, %result, %r2;",
             out);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], i % 2 ? 0x55555555 : 0xaaaaaaaa);
}

static void
lanes_leave_a_loop_one_by_one(void **state)
{
    uint32_t out[LANES];

    (void)state;
    must_run(NULL,
             "mov.u32 %r1, 0;\n"
             "LOOP: add.u32 %result, %result, %r1; add.u32 %r1, %r1, 1;\n"
             "setp.le.u32 %p1, %r1, %lane; @%p1 bra LOOP;\n"
             "activemask.b32 %r2; popc.b32 %r2, %r2; mul.lo.u32 %r2, %r2, 1000;\n"
             "add.u32 %result, %result, %r2;",
             out);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], 32000 + i * (i + 1) / 2);
}

static void
lanes_take_the_paths_of_a_table(void **state)
{
    uint32_t out[LANES];

    (void)state;
    must_run(NULL,
             "targets: .branchtargets A, B, C;\n"
             "rem.u32 %r1, %lane, 3; brx.idx %r1, targets;\n"
             "A: mov.u32 %result, 10; bra MEET;\n"
             "C: mov.u32 %result, 30; bra MEET;\n"
             "B: mov.u32 %result, 20;\n"
             "MEET: activemask.b32 %r2; popc.b32 %r2, %r2; add.u32 %result, %result, %r2;",
             out);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], 10 * (i % 3 + 1) + 32);
}

static const char functions[] =
    ".func (.param .b32 r) twice(.param .b32 a) {\n"
    ".reg .b32 %r<3>; ld.param.u32 %r1, [a]; add.s32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }\n"
    ".func (.param .b32 r) fib(.param .b32 a) {\n"
    ".reg .b32 %r<8>; .reg .pred %p; ld.param.u32 %r1, [a]; setp.lt.s32 %p, %r1, 2;\n"
    "@%p bra SMALL; { .param .b32 x; .param .b32 y; sub.s32 %r2, %r1, 1; st.param.b32 [x], %r2;\n"
    "call.uni (y), fib, (x); ld.param.b32 %r3, [y]; }\n"
    "{ .param .b32 x; .param .b32 y; sub.s32 %r2, %r1, 2; st.param.b32 [x], %r2;\n"
    "call.uni (y), fib, (x); ld.param.b32 %r4, [y]; } add.s32 %r1, %r3, %r4;\n"
    "SMALL: st.param.b32 [r], %r1; ret; }\n"
    ".func (.param .b32 r) early(.param .b32 a) {\n"
    ".reg .b32 %r<4>; .reg .pred %p; ld.param.u32 %r1, [a]; st.param.b32 [r], 1;\n"
    "setp.lt.u32 %p, %r1, 16; @%p ret; st.param.b32 [r], 2; ret; }\n"
    ".func leave_odd(.param .b32 a) { .reg .b32 %r<4>; .reg .pred %p; ld.param.u32 %r1, [a];\n"
    "and.b32 %r2, %r1, 1; setp.ne.u32 %p, %r2, 0; @%p exit; ret; }\n"
    ".func (.reg .b32 %x) neighbour(.reg .b32 %a, .reg .b32 %mask) {\n"
    "shfl.sync.bfly.b32 %x, %a, 1, 31, %mask; bar.sync 0; ret; }\n"
    ".func meet_all() { bar.warp.sync -1; ret; }\n"
    ".func forever(.param .b32 a) { .param .b32 x; .reg .b32 %r<2>; ld.param.u32 %r1, [a];\n"
    "st.param.b32 [x], %r1; call forever, (x); ret; }\n"
    ".func take() { .reg .b32 %r<2>; .reg .pred %p;\n"
    "AGAIN: atom.global.cas.b32 %r1, [lock], 0, 1; setp.ne.u32 %p, %r1, 0; @%p bra AGAIN; ret; }\n";

static unsigned
fibonacci(unsigned n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static void
lanes_recurse_to_different_depths(void **state)
{
    uint32_t out[LANES];

    (void)state;
    must_run(functions,
             "{ .param .b32 x; .param .b32 y; rem.u32 %r1, %lane, 11; st.param.b32 [x], %r1;\n"
             "call (y), fib, (x); ld.param.b32 %result, [y]; }\n"
             "activemask.b32 %r2; setp.ne.u32 %p1, %r2, -1; @%p1 mov.u32 %result, 77;",
             out);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], fibonacci(i % 11));
}

static void
lanes_call_through_different_pointers(void **state)
{
    uint32_t out[LANES];

    (void)state;
    must_run(functions,
             "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
             "mov.u64 %d1, twice; mov.u64 %d2, fib; and.b32 %r1, %lane, 1;\n"
             "setp.eq.u32 %p1, %r1, 0; selp.b64 %d3, %d1, %d2, %p1;\n"
             "{ .param .b32 x; .param .b32 y; st.param.b32 [x], 9; call (y), %d3, (x), proto;\n"
             "ld.param.b32 %result, [y]; }\n"
             "activemask.b32 %r2; popc.b32 %r2, %r2; add.u32 %result, %result, %r2;",
             out);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], (i % 2 ? fibonacci(9) : 18) + 32);
}

static void
a_guard_decides_which_lanes_call(void **state)
{
    uint32_t out[LANES];

    (void)state;
    must_run(functions,
             "mov.u32 %result, 5; setp.lt.u32 %p1, %lane, 20;\n"
             "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %lane; st.param.b32 [y], 7;\n"
             "@%p1 call (y), early, (x); ld.param.b32 %result, [y]; }\n"
             "activemask.b32 %r2; popc.b32 %r2, %r2; add.u32 %result, %result, %r2;",
             out);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], (i < 16 ? 1 : i < 20 ? 2 : 7) + 32);
}

static void
exit_in_a_function_ends_only_the_lanes_that_exit(void **state)
{
    uint32_t out[LANES];

    (void)state;
    must_run(functions,
             "{ .param .b32 x; st.param.b32 [x], %lane; call leave_odd, (x); }\n"
             "mov.u32 %r1, %lane; vote.sync.ballot.b32 %result, 1, -1;",
             out);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], i % 2 ? 0xdead : 0x55555555);
}

static void
lanes_exchange_values_and_meet_inside_functions(void **state)
{
    uint32_t out[LANES];

    (void)state;
    must_run(functions,
             "add.u32 %r1, %lane, 100; call (%result), neighbour, (%r1, -1);\n"
             "setp.lt.u32 %p1, %lane, 8; @!%p1 bra DONE;\n"
             "call (%result), neighbour, (%lane, 255); add.u32 %result, %result, 1000;",
             out);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], (i ^ 1) + (i < 8 ? 1000 : 100));
}

static void
lanes_that_can_never_meet_go_on(void **state)
{
    uint32_t out[LANES];

    (void)state;
    must_run(functions,
             "setp.lt.u32 %p1, %lane, 16; @%p1 bra LOW;\n"
             "call meet_all; mov.u32 %result, 1; bra DONE;\n"
             "LOW: bar.warp.sync -1; mov.u32 %result, 2;",
             out);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], i < 16 ? 2 : 1);
}

static void
guarded_operations_of_a_warp_take_the_lanes_of_the_guard(void **state)
{
    uint32_t out[LANES];

    (void)state;
    must_run(NULL,
             "setp.ge.u32 %p1, %lane, 24; mov.u32 %result, 9;\n"
             "@%p1 vote.sync.ballot.b32 %result, 1, 0xff000000;\n"
             "activemask.b32 %r1; setp.ne.u32 %p2, %r1, -1; @%p2 mov.u32 %result, 77;",
             out);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], i < 24 ? 9 : 0xff000000);
}

/* Lanes come to the match one by one, since others run first while they spin. Their values wait for
 * the others in temporary registers, which the instructions of the others must leave alone. */
static void
values_of_lanes_that_wait_are_kept(void **state)
{
    uint32_t out[LANES];

    (void)state;
    must_run(NULL,
             "mov.u32 %r1, 0; add.u32 %r9, %lane, 2;\n"
             "LOOP: atom.global.add.u32 %r2, [counter], 1; and.b32 %r2, %r2, 0;\n"
             "add.u32 %r1, %r1, 1; add.u32 %r1, %r1, %r2;\n"
             "setp.lt.u32 %p1, %r1, %r9; @%p1 bra LOOP;\n"
             "setp.lt.u32.and %p2|%p3, %r1, 100, %p1; mul.wide.u32 %d1, %r1, 77;\n"
             "and.b32 %r3, %lane, 3; st.u32 [%own+0], %r3;\n"
             "match.any.sync.b32 %result, %r3, -1;",
             out);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], 0x11111111u << i % 4);
}

/* A lane that holds the lock must run on while the others spin, in the loop or in a function. */
static void
lanes_of_a_warp_take_a_lock_in_turn(void **state)
{
    static const char *const takes[] = {
        "AGAIN: atom.global.cas.b32 %r1, [lock], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra AGAIN;",
        "call take;",
    };
    char code[500];
    uint32_t out[LANES];
    bool seen[LANES];

    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        snprintf(code, sizeof(code),
                 "%s ld.volatile.global.u32 %%result, [counter]; add.u32 %%r2, %%result, 1;\n"
                 "st.volatile.global.u32 [counter], %%r2; membar.gl;\n"
                 "st.volatile.global.u32 [lock], 0;",
                 takes[k]);
        must_run(functions, code, out);
        memset(seen, 0, sizeof(seen));
        for (unsigned i = 0; i < LANES; i++) {
            assert_in_range(out[i], 0, LANES - 1);
            assert_false(seen[out[i]]);
            seen[out[i]] = true;
        }
    }
}

static void
each_lane_has_memory_of_its_own(void **state)
{
    uint32_t out[LANES];

    (void)state;
    must_run(NULL,
             ".local .align 4 .b8 array[64]; mov.u64 %d1, array;\n"
             "rem.u32 %r1, %lane, 16; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2;\n"
             "st.local.u32 [%d3], %lane; alloca.u64 %d4, 16, 16; st.u32 [%d4], %lane;\n"
             "ld.local.u32 %r2, [%d3]; ld.u32 %r3, [%d4]; add.u32 %result, %r2, %r3;",
             out);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], 2 * i);
}

static void
recursion_without_end_traps(void **state)
{
    uint32_t out[LANES];
    struct exec e;

    (void)state;
    assert_int_equal(run_lanes(&e, functions,
                               "{ .param .b32 x; st.param.b32 [x], %lane; call forever, (x); }",
                               out),
                     HED_ESTATE);
    assert_int_equal(e.trap, HED_PTX_TRAP_ADDRESS);
    exec_close(&e);
}

static void
a_misaligned_lane_traps(void **state)
{
    uint32_t out[LANES];
    struct exec e;

    (void)state;
    assert_int_equal(run_lanes(&e, NULL,
                               "setp.eq.u32 %p1, %lane, 7; selp.b64 %d1, 2, 0, %p1;\n"
                               "add.u64 %d1, %d1, %own; ld.u32 %result, [%d1];",
                               out),
                     HED_ESTATE);
    assert_int_equal(e.trap, HED_PTX_TRAP_ALIGN);
    exec_close(&e);
}

static void
a_refusal_names_instruction_function_and_line(void **state)
{
    uint32_t out[LANES];
    struct exec e;

    (void)state;
    assert_int_equal(run_lanes(&e, NULL, "mov.u64 %d1, DONE;", out), HED_ENOTSUP);
    assert_string_equal(e.why.text, "the address of a label is not supported: 'mov.u64 %d1, DONE;' "
                                    "(function k, line 11)");
    exec_close(&e);
}

/* A table of functions. All but the first have what cannot be run: an instruction, an unknown one,
 * both behind a guard, and a function that has one and is called by name. */
static const char table[] =
    ".func (.param .b32 r) good(.param .b32 a) {\n"
    ".reg .b32 %r<3>; ld.param.b32 %r1, [a]; add.u32 %r1, %r1, 100; st.param.b32 [r], %r1; ret; }\n"
    ".func (.param .b32 r) multi(.param .b32 a) { .reg .b64 %d<3>; .reg .b32 %r; mov.u64 %d1, 0;\n"
    "multimem.ld_reduce.acquire.sys.global.min.u64 %d2, [%d1];\n"
    "cvt.u32.u64 %r, %d2; st.param.b32 [r], %r; ret; }\n"
    ".func (.param .b32 r) strange(.param .b32 a) {\n"
    "frobnicate.b32 %x, {1, [y]};\nret; }\n"
    ".func (.param .b32 r) guarded(.param .b32 a) { .reg .b32 %r<3>; .reg .pred %p<2>;\n"
    "ld.param.b32 %r1, [a]; setp.eq.u32 %p1, %r1, 31;\n"
    "@%p1 frobnicate %r1;\n"
    "@%p1 multimem.red.relaxed.sys.global.add.u32 [%r1], %r1;\n"
    "st.param.b32 [r], %r1; ret; }\n"
    ".func (.param .b32 r) outer(.param .b32 a) {\n"
    "{ .param .b32 x; .param .b32 y; st.param.b32 [x], 1; call (y), strange, (x); } ret; }\n"
    ".global .u64 fns[5] = {good, multi, strange, guarded, outer};\n";

/* Calls function number `which` of the table in the first lanes; each gives it its number. */
static int
call_of_table(struct exec *e, unsigned which, unsigned lanes, uint32_t *out)
{
    static const char form[] =
        "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
        "mov.u64 %%d1, fns; ld.u64 %%d2, [%%d1 + %u]; setp.lt.u32 %%p1, %%lane, %u;\n"
        "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %%lane;\n"
        "@%%p1 call (y), %%d2, (x), proto; @%%p1 ld.param.b32 %%result, [y]; }";
    char code[1024];

    snprintf(code, sizeof code, form, which * 8, lanes);
    return run_lanes(e, table, code, out);
}

static void
a_pointer_to_what_cannot_run_does_not_refuse_a_kernel(void **state)
{
    uint32_t out[LANES];
    struct exec e;

    (void)state;
    assert_int_equal(call_of_table(&e, 0, LANES, out), 0);
    exec_close(&e);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], 100 + i);
    assert_int_equal(call_of_table(&e, 3, 31, out), 0); /* the guard lets no lane pass */
    exec_close(&e);
    for (unsigned i = 0; i < LANES; i++)
        assert_int_equal(out[i], i < 31 ? i : 0);
}

static void
what_cannot_run_traps_by_name_when_a_pointer_leads_there(void **state)
{
    static const struct {
        unsigned which, line;
        const char *text;
    } cases[] = {
        {1, 8,
         "this instruction cannot be run: 'multimem.ld_reduce.acquire.sys.global.min.u64 %d2, "
         "[%d1];' (function multi, line 8)"},
        {2, 11,
         "Not a name of any known instruction: 'frobnicate.b32': 'frobnicate.b32 %x, {1, [y]};' "
         "(function strange, line 11)"},
        {3, 15,
         "Not a name of any known instruction: 'frobnicate': '@%p1 frobnicate %r1;' "
         "(function guarded, line 15)"},
        {4, 11,
         "Not a name of any known instruction: 'frobnicate.b32': 'frobnicate.b32 %x, {1, [y]};' "
         "(function strange, line 11)"},
    };
    uint32_t out[LANES];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct exec e;

        assert_int_equal(call_of_table(&e, cases[i].which, LANES, out), HED_ESTATE);
        assert_int_equal(e.trap, HED_PTX_TRAP_INSTRUCTION);
        assert_int_equal(e.trap_line, cases[i].line);
        assert_string_equal(e.why.text, cases[i].text);
        exec_close(&e);
    }
}

static void
what_cannot_run_refuses_a_kernel_that_also_calls_it(void **state)
{
    uint32_t out[LANES];
    struct exec e;

    (void)state;
    assert_int_equal(run_lanes(&e, table,
                               "proto: .callprototype _ ();\nmov.u64 %d1, fns;\n"
                               "@%p1 call %d1, proto;\n"
                               "{ .param .b32 x; .param .b32 y; @%p1 call (y), multi, (x); }",
                               out),
                     HED_ENOTSUP);
    assert_non_null(strstr(e.why.text, "(function multi, line 8)"));
    exec_close(&e);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lanes_that_part_meet_after_both_paths),
    cmocka_unit_test(lanes_leave_a_loop_one_by_one),
    cmocka_unit_test(lanes_take_the_paths_of_a_table),
    cmocka_unit_test(lanes_recurse_to_different_depths),
    cmocka_unit_test(lanes_call_through_different_pointers),
    cmocka_unit_test(a_guard_decides_which_lanes_call),
    cmocka_unit_test(exit_in_a_function_ends_only_the_lanes_that_exit),
    cmocka_unit_test(lanes_exchange_values_and_meet_inside_functions),
    cmocka_unit_test(lanes_that_can_never_meet_go_on),
    cmocka_unit_test(guarded_operations_of_a_warp_take_the_lanes_of_the_guard),
    cmocka_unit_test(values_of_lanes_that_wait_are_kept),
    cmocka_unit_test(lanes_of_a_warp_take_a_lock_in_turn),
    cmocka_unit_test(each_lane_has_memory_of_its_own),
    cmocka_unit_test(recursion_without_end_traps),
    cmocka_unit_test(a_misaligned_lane_traps),
    cmocka_unit_test(a_refusal_names_instruction_function_and_line),
    cmocka_unit_test(a_pointer_to_what_cannot_run_does_not_refuse_a_kernel),
    cmocka_unit_test(what_cannot_run_traps_by_name_when_a_pointer_leads_there),
    cmocka_unit_test(what_cannot_run_refuses_a_kernel_that_also_calls_it),
};

HED_UNIT_MAIN(tests)
