/* Tests of kernels that are cut at barriers: what warps have in common there, what is each warp's
 * own, and warps that end early or come to different barriers. Kernels run compiled and in the
 * baseline tier, where each warp has a stack of its own, and must leave the same memory. */
#include "harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/exec/harness.h"

#define WORDS 1024

/* %r16: the thread's number in the block; %rd3: its word in out; %r4: its word in shared memory;
 * %r3: its warp; %r2: n. */
#define HEAD                                                                               \
    ".version 8.0\n.target sm_80\n.address_size 64\n"                                      \
    ".func (.param .b32 r) nap(.param .b32 x) { .reg .b32 %q<3>; ld.param.b32 %q1, [x];\n" \
    "nanosleep.u32 1; mad.lo.u32 %q2, %q1, 3, 1; st.param.b32 [r], %q2; ret; }\n"          \
    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n) {\n"                \
    ".reg .pred %p<20>; .reg .b16 %h<9>; .reg .b32 %r<60>; .reg .b64 %rd<30>;\n"           \
    ".shared .align 16 .b8 sh[4096];\n"                                                    \
    "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r2, [n];\n"          \
    "mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ntid.x; mov.u32 %r12, %tid.x;\n"               \
    "mov.u32 %r13, %tid.y; mov.u32 %r14, %ntid.y; mul.lo.u32 %r15, %r11, %r14;\n"          \
    "mad.lo.u32 %r16, %r13, %r11, %r12; mad.lo.u32 %r1, %r10, %r15, %r16;\n"               \
    "mul.wide.u32 %rd4, %r1, 4; add.u64 %rd3, %rd2, %rd4; mov.u32 %r3, %warpid;\n"         \
    "shl.b32 %r5, %r16, 2; mov.u32 %r4, sh; add.u32 %r4, %r4, %r5;\n"

/* What the threads of the warp before have left in shared memory joins %r20. */
#define ASK_OTHERS                                                                             \
    "xor.b32 %r5, %r16, 33; setp.lt.u32 %p9, %r5, %r15; selp.b32 %r5, %r5, 0, %p9;\n"          \
    "shl.b32 %r5, %r5, 2; mov.u32 %r6, sh; add.u32 %r5, %r5, %r6; ld.shared.u32 %r6, [%r5];\n" \
    "mad.lo.u32 %r20, %r20, 31, %r6;\n"

#define END "st.global.u32 [%rd3], %r20; ret; }\n"

static const struct kernel {
    const char *name, *body;
} kernels[] = {
    {"a counter that all warps have in common",
     "mov.u32 %r20, %r16; mov.u32 %r21, %r2; cvt.u64.u32 %rd6, %r2; cvt.u16.u32 %h1, %r2;\n"
     "L: add.u32 %r22, %r20, %r21; st.shared.u32 [%r4], %r22; bar.sync 0;\n" ASK_OTHERS
     "bar.sync 0; shr.u32 %r21, %r21, 1; mad.lo.u64 %rd6, %rd6, 5, 1; add.u16 %h1, %h1, 3;\n"
     "setp.ne.u32 %p1, %r21, 0; @%p1 bra L; cvt.u32.u64 %r23, %rd6; cvt.u32.u16 %r24, %h1;\n"
     "add.u32 %r20, %r20, %r23; xor.b32 %r20, %r20, %r24;\n" END},
    {"numbers that each warp has for itself",
     "mov.u32 %r20, 1; mad.lo.u32 %r21, %r3, 5, %r2; mov.u32 %r22, 4;\n"
     "L: st.shared.u32 [%r4], %r21; bar.sync 0;\n" ASK_OTHERS "bar.sync 0;\n"
     "mad.lo.u32 %r21, %r21, 3, %r3; sub.u32 %r22, %r22, 1; setp.ne.u32 %p1, %r22, 0;\n"
     "@%p1 bra L; add.u32 %r20, %r20, %r21;\n" END},
    {"a word of memory that changes from warp to warp",
     "mov.u32 %r20, 0; st.shared.u32 [%r4], %r20; bar.sync 0; mov.u32 %r7, sh;\n"
     "shl.b32 %r8, %r3, 7; add.u32 %r7, %r7, %r8; ld.shared.u32 %r21, [%r7]; bar.sync 0;\n"
     "add.u32 %r9, %r3, 9; st.shared.u32 [%r7], %r9; bar.sync 0; ld.shared.u32 %r22, [%r7];\n"
     "bar.sync 0; mad.lo.u32 %r20, %r21, 100, %r22; bar.sync 0; add.u32 %r20, %r20, %r22;\n" END},
    {"a predicate that all warps have in common",
     "mov.u32 %r20, %r16; mov.u32 %r21, 6; setp.gt.u32 %p2, %r2, 9;\n"
     "L: st.shared.u32 [%r4], %r20; bar.sync 0;\n" ASK_OTHERS "bar.sync 0;\n"
     "@%p2 add.u32 %r20, %r20, 1; not.pred %p2, %p2; sub.u32 %r21, %r21, 1;\n"
     "setp.ne.u32 %p1, %r21, 0; @%p1 bra L;\n" END},
    {"warps at different barriers",
     "mov.u32 %r20, %r16; mov.u32 %r21, 3; st.shared.u32 [%r4], %r20;\n"
     "setp.eq.u32 %p1, %r3, 1; @%p1 bra A; bar.sync 0;\n" ASK_OTHERS "add.u32 %r21, %r21, 4;\n"
     "bra J; A: add.u32 %r21, %r21, 9; bar.sync 0;\n" ASK_OTHERS
     "J: bar.sync 0; st.shared.u32 [%r4], %r21; bar.sync 0;\n" ASK_OTHERS
     "add.u32 %r20, %r20, %r21;\n" END},
    {"warps that leave a loop with a barrier in different rounds",
     "mov.u32 %r20, %r16; mov.u32 %r21, 0;\n"
     "L: bar.sync 0; mad.lo.u32 %r20, %r20, 3, %r21; setp.ge.u32 %p1, %r21, %r3;\n"
     "add.u32 %r21, %r21, 1; @!%p1 bra L; add.u32 %r20, %r20, %r21;\n" END},
    {"warps that end while the others count together",
     "mov.u32 %r20, %r16; mov.u32 %r21, 5; st.shared.u32 [%r4], %r20; bar.sync 0;\n"
     "setp.ge.u32 %p2, %r3, 2; @%p2 ret; L: bar.sync 0;\n" ASK_OTHERS "bar.sync 0;\n"
     "add.u32 %r22, %r20, %r21; st.shared.u32 [%r4], %r22; sub.u32 %r21, %r21, 1;\n"
     "setp.ne.u32 %p1, %r21, 0; @%p1 bra L;\n" END},
    {"a count at barriers that leads all warps",
     "mov.u32 %r20, 0; mov.u32 %r21, 0; L: add.u32 %r21, %r21, 1; add.u32 %r22, %r16, %r21;\n"
     "setp.gt.u32 %p1, %r22, 40; bar.red.popc.u32 %r23, 0, %p1; mad.lo.u32 %r20, %r20, 7, %r23;\n"
     "setp.lt.u32 %p2, %r23, 20; setp.lt.u32 %p3, %r21, 30; and.pred %p2, %p2, %p3;\n"
     "@%p2 bra L; add.u32 %r20, %r20, %r21;\n" END},
};

static const struct {
    unsigned threads, width, blocks;
} launches[] = {{128, 0, 2}, {96, 32, 2}, {100, 0, 2}, {128, 16, 1},
                {64, 8, 2},  {60, 12, 1}, {7, 0, 2},   {1, 0, 2}};

static void
run_kernel(const char *name, const char *body, bool cut, enum exec_tier tier, unsigned l,
           uint32_t *out)
{
    struct {
        void *in, *out;
        uint32_t n;
    } params = {NULL, out, 83};
    const struct exec_launch launch = {.blocks = launches[l].blocks,
                                       .threads = launches[l].threads,
                                       .width = launches[l].width,
                                       .params = &params,
                                       .size = sizeof(params),
                                       .meets = tier == EXEC_BASELINE || !cut};
    char text[16384];
    struct exec e;

    snprintf(text, sizeof(text), "%s%s", HEAD, body);
    memset(out, 0xcc, WORDS * sizeof(*out));
    exec_open(&e, text, tier);
    if (exec_run(&e, "k", &launch) != 0)
        fail_msg("%s: %s", name, e.why.text);
    if (tier == EXEC_COMPILED && e.why.text[0])
        fail_msg("%s has another shape: %s", name, e.why.text);
    if (tier == EXEC_COMPILED)
        assert_int_equal(!!(e.info.flags & HED_PTX_CUT), cut);
    exec_close(&e);
}

static void
check(const char *name, const char *body, bool cut)
{
    static uint32_t out[WORDS], want[WORDS];

    for (unsigned l = 0; l < sizeof(launches) / sizeof(launches[0]); l++) {
        run_kernel(name, body, cut, EXEC_COMPILED, l, out);
        run_kernel(name, body, cut, EXEC_BASELINE, l, want);
        for (unsigned i = 0; i < WORDS; i++)
            if (out[i] != want[i])
                fail_msg("%s, %u threads of width %u: word %u is %u, %u in the baseline tier", name,
                         launches[l].threads, launches[l].width, i, out[i], want[i]);
    }
}

static void
warps_keep_what_is_theirs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        check(kernels[i].name, kernels[i].body, true);
}

/* Long bodies are not put into the loops over warps. */
static void
long_kernels_do_the_same(void **state)
{
    char body[8192];

    (void)state;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        int n = 0;

        for (unsigned k = 0; k < 130; k++)
            n += snprintf(body + n, sizeof(body) - (size_t)n, "xor.b32 %%r40, %%r16, %u;\n", k);
        snprintf(body + n, sizeof(body) - (size_t)n, "%s", kernels[i].body);
        check(kernels[i].name, body, true);
    }
}

/* More barriers than there are loops for. */
static void
many_barriers_do_the_same(void **state)
{
    char body[8192];
    int n = snprintf(body, sizeof(body), "mov.u32 %%r20, %%r16; mov.u32 %%r21, %%r2;\n");

    (void)state;
    for (unsigned k = 0; k < 20; k++)
        n += snprintf(body + n, sizeof(body) - (size_t)n,
                      "st.shared.u32 [%%r4], %%r20; add.u32 %%r21, %%r21, %u; bar.sync 0;\n"
                      "mad.lo.u32 %%r20, %%r20, 5, %%r21;\n",
                      k);
    snprintf(body + n, sizeof(body) - (size_t)n, "%s", END);
    check("many barriers", body, true);
}

static void
kernels_whose_functions_sleep_are_not_cut(void **state)
{
    static const char body[] =
        "mov.u32 %r20, %r16; mov.u32 %r21, 3;\n"
        "L: st.shared.u32 [%r4], %r20; bar.sync 0;\n" ASK_OTHERS
        "{ .param .b32 a0; .param .b32 r0; st.param.b32 [a0], %r20; call.uni (r0), nap, (a0);\n"
        "ld.param.b32 %r20, [r0]; } bar.sync 0; sub.u32 %r21, %r21, 1;\n"
        "setp.ne.u32 %p1, %r21, 0; @%p1 bra L;\n" END;

    (void)state;
    check("a function that sleeps between two barriers", body, false);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(kernels_whose_functions_sleep_are_not_cut),
    cmocka_unit_test(warps_keep_what_is_theirs),
    cmocka_unit_test(long_kernels_do_the_same),
    cmocka_unit_test(many_barriers_do_the_same),
};

HED_UNIT_MAIN(tests)
