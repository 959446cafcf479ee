/* Tests of mma.sp in both tiers: every type, shape and selector beside plain loops. The fragments
 * come from gpu/programs/sparse.h, which a program for real GPUs uses, too. */
#include "harness/unit.h"

#include <stdio.h>

#include "gpu/programs/sparse.h"
#include "ptx/exec/harness.h"

#define LANES 32

/* A lane's words are at %in; the result goes behind them. */
static void
write_kernel(char *text, size_t size, const struct sparse_case *c, unsigned selector)
{
    const char *const a = c->a == 4 ? "{%r1, %r2, %r3, %r4}" : "{%r1, %r2}";
    const char *const b = c->b == 4 ? "{%r5, %r6, %r7, %r8}" : "{%r5, %r6}";

    (void)snprintf(text, size,
                   ".version 9.0\n.target sm_90a\n.address_size 64\n"
                   ".visible .entry kernel(.param .u64 lanes) {\n"
                   ".reg .b32 %%r<20>; .reg .b64 %%d<4>;\n"
                   "ld.param.u64 %%d1, [lanes]; mov.u32 %%r0, %%laneid;\n"
                   "mad.wide.u32 %%d2, %%r0, %zu, %%d1;\n"
                   "ld.v4.b32 {%%r1, %%r2, %%r3, %%r4}, [%%d2];\n"
                   "ld.v4.b32 {%%r5, %%r6, %%r7, %%r8}, [%%d2+16];\n"
                   "ld.b32 %%r9, [%%d2+32]; mov.b32 %%r10, 0;\n"
                   "mov.b32 %%r13, 0; mov.b32 %%r14, 0;\n"
                   "%s %s, %s, %s, %s, %%r9, %u;\n"
                   "st.v4.b32 [%%d2+48], {%%r11, %%r12, %%r13, %%r14};\nret;\n}\n",
                   sizeof(struct sparse_lane), c->name,
                   c->halves ? "{%r11, %r12}" : "{%r11, %r12, %r13, %r14}", a, b,
                   c->halves ? "{%r10, %r10}" : "{%r10, %r10, %r10, %r10}", selector);
}

static void
run_lanes(const char *text, enum exec_tier tier, struct sparse_lane *lanes)
{
    const void *params[] = {lanes};
    const struct exec_launch launch = {.threads = LANES, .params = params, .size = sizeof(params)};
    struct exec e;

    exec_open(&e, text, tier);
    e.options.level = 1;
    if (exec_run(&e, "kernel", &launch) != 0)
        fail_msg("%s, trap %u at line %u", e.why.text, e.trap, e.trap_line);
    exec_close(&e);
}

static void
check_cases(enum exec_tier tier, unsigned seeds)
{
    static struct sparse_lane lanes[LANES] __attribute__((aligned(16)));
    int product[16][8];
    char text[2048];

    for (unsigned i = 0; i < SPARSE_CASES; i++)
        for (unsigned selector = 0; selector < sparse_cases[i].selectors; selector++)
            for (unsigned seed = 1; seed <= seeds; seed++) {
                sparse_fill(&sparse_cases[i], selector, seed * 7919, lanes, product);
                write_kernel(text, sizeof(text), &sparse_cases[i], selector);
                run_lanes(text, tier, lanes);
                if (sparse_count_wrong(&sparse_cases[i], lanes, product))
                    fail_msg("%s, selector %u", sparse_cases[i].name, selector);
            }
}

static void
sparse_products_are_those_of_plain_loops_in_the_baseline_tier(void **state)
{
    (void)state;
    check_cases(EXEC_BASELINE, 4);
}

static void
sparse_products_are_those_of_plain_loops_in_compiled_code(void **state)
{
    (void)state;
    check_cases(EXEC_COMPILED, 1);
}

/* A GPU does not look at what b has where a has nothing. */
static void
numbers_that_meet_nothing_do_not_matter(void **state)
{
    static struct sparse_lane lanes[LANES] __attribute__((aligned(16)));
    const struct sparse_case *c = &sparse_cases[0]; /* m16n8k16 of halves */
    char text[2048];
    float sum;

    (void)state;
    assert_int_equal(c->k, 16);
    for (unsigned lane = 0; lane < LANES; lane++) {
        const unsigned place = lane % 4;

        lanes[lane] = (struct sparse_lane){.a = {0x3c003c00, 0x3c003c00}, /* 1, everywhere */
                                           .metadata = 0x44444444};       /* columns 0 and 1 of 4 */
        /* Rows 2 and 3 of each 4 are infinite: lanes 1 and 3 have them. */
        lanes[lane].b[0] = lanes[lane].b[1] = place % 2 ? 0x7c007c00 : 0x3c003c00;
    }
    write_kernel(text, sizeof(text), c, 0);
    run_lanes(text, EXEC_BASELINE, lanes);
    memcpy(&sum, &lanes[5].d[0], sizeof(sum));
    assert_true(sum == 8);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sparse_products_are_those_of_plain_loops_in_the_baseline_tier),
    cmocka_unit_test(sparse_products_are_those_of_plain_loops_in_compiled_code),
    cmocka_unit_test(numbers_that_meet_nothing_do_not_matter),
};

HED_UNIT_MAIN(tests)
