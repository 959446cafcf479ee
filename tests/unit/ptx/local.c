/* Tests of variables in local memory: which of them lie element by element, and that kernels leave
 * the same memory as in the baseline tier either way. */
#include "harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/local.h"
#include "kernel/ptx/pass/ssa.h"
#include "ptx/exec/harness.h"

#define WORDS 4096
/* %r1: the thread's number in the grid; %rd1: in; %rd2: out; %rd3: its word in out; %r2: its word
 * in in. `a` is the variable. */
#define HEAD                                                                           \
    ".version 8.0\n.target sm_80\n.address_size 64\n"                                  \
    ".visible .entry k(.param .u64 in, .param .u64 out) {\n"                           \
    ".reg .pred %p<9>; .reg .b32 %r<60>; .reg .b64 %rd<30>; .reg .b16 %h<9>;\n"        \
    ".local .align 16 .b8 a[64];\n"                                                    \
    "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];\n"                             \
    "mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ntid.x; mov.u32 %r12, %tid.x;\n"           \
    "mov.u32 %r13, %tid.y; mov.u32 %r14, %ntid.y; mul.lo.u32 %r15, %r11, %r14;\n"      \
    "mad.lo.u32 %r16, %r13, %r11, %r12; mad.lo.u32 %r1, %r10, %r15, %r16;\n"           \
    "mul.wide.u32 %rd4, %r1, 4; add.u64 %rd3, %rd2, %rd4; add.u64 %rd5, %rd1, %rd4;\n" \
    "ld.global.u32 %r2, [%rd5]; mov.u64 %rd6, a; mov.u32 %r3, 0;\n"
/* Fills the 16 words of `a` with numbers that differ between lanes. */
#define FILL                                                                                 \
    "F: mul.wide.u32 %rd7, %r3, 4; add.s64 %rd8, %rd6, %rd7; mad.lo.u32 %r4, %r3, 7, %r1;\n" \
    "st.local.u32 [%rd8], %r4; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 16; @%p1 bra F;\n"
/* Adds the 16 words up, and ends. */
#define SUM                                                                                      \
    "mov.u32 %r3, 0; mov.u32 %r5, 0;\n"                                                          \
    "S: mul.wide.u32 %rd7, %r3, 4; add.s64 %rd8, %rd6, %rd7; ld.local.u32 %r4, [%rd8];\n"        \
    "mad.lo.u32 %r5, %r5, 31, %r4; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 16; @%p1 bra S;\n" \
    "st.global.u32 [%rd3], %r5; ret; }\n"

static const struct kernel {
    const char *name;
    bool by_elements; /* `a` lies element by element */
    bool meets;       /* has barriers, and is cut there */
    const char *body;
} kernels[] = {
    {"the same index in all lanes", true, false, FILL SUM},
    {"an index of each lane", true, false,
     FILL "and.b32 %r6, %r2, 15; mul.wide.u32 %rd9, %r6, 4; add.s64 %rd10, %rd6, %rd9;\n"
          "ld.local.u32 %r7, [%rd10]; st.local.u32 [%rd10], %r2; add.u32 %r3, %r7, 3;\n"
          "st.local.u32 [%rd6+8], %r3;\n" SUM},
    {"an index that steps", true, false,
     FILL "and.b32 %r6, %r12, 7; mul.wide.u32 %rd9, %r6, 4; add.s64 %rd10, %rd6, %rd9;\n"
          "ld.local.u32 %r7, [%rd10+4]; add.u32 %r7, %r7, 5; st.local.u32 [%rd10], %r7;\n" SUM},
    {"lanes that wait elsewhere keep their elements", true, false,
     FILL "setp.gt.u32 %p2, %r2, 100; @%p2 bra X; st.local.u32 [%rd6+12], %r2;\n"
          "st.local.u32 [a+16], %r1; X: @!%p2 st.local.u32 [%rd6+20], %r2;\n"
          "@%p2 ld.local.u32 %r8, [%rd6+24]; @%p2 st.local.u32 [%rd6], %r8;\n" SUM},
    {"lanes leave early", true, false,
     FILL "setp.gt.u32 %p2, %r2, 200; @%p2 ret; st.local.u32 [%rd6+12], %r2;\n" SUM},
    {"vectors and pairs of words", true, false,
     FILL "st.local.v4.u32 [%rd6+16], {%r1, %r2, %r3, %r12}; mul.wide.u32 %rd9, %r2, 77777;\n"
          "st.local.u64 [%rd6+8], %rd9; ld.local.v2.u64 {%rd10, %rd11}, [%rd6+16];\n"
          "xor.b64 %rd12, %rd10, %rd11; st.local.u64 [a+32], %rd12; and.b32 %r6, %r2, 7;\n"
          "mul.wide.u32 %rd13, %r6, 8; add.s64 %rd14, %rd6, %rd13; ld.local.u64 %rd15, [%rd14];\n"
          "add.u64 %rd15, %rd15, 1; st.local.u64 [%rd14], %rd15;\n" SUM},
    {"bytes", true, false,
     "cvt.u16.u32 %h1, %r2; st.local.u8 [%rd6+5], %h1; st.local.u8 [%rd6+6], %h1;\n"
     "and.b32 %r6, %r2, 1; cvt.u64.u32 %rd9, %r6; add.s64 %rd10, %rd6, %rd9;\n"
     "mov.u16 %h2, 77; st.local.u8 [%rd10+5], %h2; ld.local.u8 %r7, [%rd6+5];\n"
     "ld.local.s8 %r8, [%rd6+6]; shl.b32 %r8, %r8, 8; add.u32 %r7, %r7, %r8;\n"
     "st.global.u32 [%rd3], %r7; ret; }\n"},
    {"pointers that move, and meet an end", true, false,
     FILL "add.u64 %rd9, %rd6, 64; mov.u64 %rd10, %rd6; mov.u32 %r5, 0;\n"
          "P: ld.local.u32 %r4, [%rd10]; mad.lo.u32 %r5, %r5, 31, %r4; add.s64 %rd10, %rd10, 4;\n"
          "setp.ne.s64 %p2, %rd10, %rd9; @%p2 bra P; st.global.u32 [%rd3], %r5; ret; }\n"},
    {"a choice of two addresses", true, false,
     FILL "add.s64 %rd9, %rd6, 8; setp.gt.u32 %p2, %r2, 100; selp.b64 %rd10, %rd9, %rd6, %p2;\n"
          "@!%p2 add.s64 %rd10, %rd10, 4; st.local.u32 [%rd10], %r2; sub.s64 %rd10, %rd9, 8;\n"
          "ld.u32 %r5, [%rd10+16]; mad.wide.u32 %rd11, 3, 4, %rd10; st.u32 [%rd11], %r5;\n" SUM},
    {"generic addresses", true, false,
     FILL
     "cvta.local.u64 %rd9, %rd6; add.s64 %rd9, %rd9, 4; st.u32 [%rd9], %r2;\n"
     "cvta.to.local.u64 %rd10, %rd9; ld.local.u32 %r6, [%rd10+4]; st.u32 [%rd9+8], %r6;\n" SUM},
    {"an address in memory", false, false,
     FILL "st.local.u64 [%rd6+8], %rd6; ld.local.u64 %rd9, [%rd6+8]; st.local.u32 [%rd9], %r2;\n"
          "st.local.u64 [%rd6+8], %rd4;\n" SUM},
    {"a generic address that may be another", false, false,
     FILL "cvta.local.u64 %rd9, %rd6; setp.gt.u32 %p2, %r2, 100;\n"
          "selp.b64 %rd10, %rd9, %rd3, %p2; st.u32 [%rd10], %r2; isspacep.local %p3, %rd9;\n"
          "@!%p3 st.local.u32 [%rd6+4], %r2;\n" SUM},
    {"an address as a number", false, false,
     FILL "and.b64 %rd9, %rd6, 15; cvt.u32.u64 %r6, %rd9; st.local.u32 [%rd6+4], %r6;\n" SUM},
    {"elements of several sizes", false, false,
     FILL "cvt.u16.u32 %h1, %r2; st.local.u16 [%rd6+6], %h1; st.local.u8 [%rd6+9], %h1;\n" SUM},
    {"elements behind a barrier", true, true,
     FILL "bar.sync 0; st.local.u32 [%rd6+8], %r2;\n"
          "bar.sync 0;\n" SUM},
    {"an address behind a barrier", false, true,
     FILL "cvta.local.u64 %rd9, %rd6; bar.sync 0; isspacep.local %p3, %rd9;\n"
          "selp.u32 %r6, 1, 0, %p3; xor.b64 %rd9, %rd9, 4; st.u32 [%rd9], %r6;\n" SUM},
};

static const struct {
    unsigned threads, width, blocks;
} launches[] = {{64, 0, 2}, {100, 0, 1}, {128, 16, 1}, {60, 12, 1}};

static void
run_kernel(const struct kernel *k, enum exec_tier tier, unsigned l, uint32_t *in, uint32_t *out)
{
    void *params[] = {in, out};
    const struct exec_launch launch = {.blocks = launches[l].blocks,
                                       .threads = launches[l].threads,
                                       .width = launches[l].width,
                                       .params = params,
                                       .size = sizeof(params),
                                       .meets = k->meets};
    char text[8192];
    struct exec e;

    snprintf(text, sizeof(text), "%s%s", HEAD, k->body);
    memset(out, 0xcc, WORDS * sizeof(*out));
    exec_open(&e, text, tier);
    if (exec_run(&e, "k", &launch) != 0)
        fail_msg("%s: %s", k->name, e.why.text);
    if (tier == EXEC_COMPILED && e.why.text[0])
        fail_msg("%s has another shape: %s", k->name, e.why.text);
    if (tier == EXEC_COMPILED && k->meets)
        assert_true(e.info.flags & HED_PTX_CUT);
    exec_close(&e);
}

static void
both_layouts_leave_the_same_memory(void **state)
{
    uint32_t *in = calloc(WORDS, 4), *warp = calloc(WORDS, 4), *other = calloc(WORDS, 4);

    (void)state;
    assert_true(in && warp && other);
    for (uint32_t i = 0; i < WORDS; i++)
        in[i] = i * 2654435761u >> 24;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        for (unsigned l = 0; l < sizeof(launches) / sizeof(launches[0]); l++) {
            run_kernel(&kernels[i], EXEC_COMPILED, l, in, warp);
            run_kernel(&kernels[i], EXEC_BASELINE, l, in, other);
            for (unsigned w = 0; w < WORDS; w++)
                if (warp[w] != other[w])
                    fail_msg("%s, %u threads of width %u: word %u is %u, %u in the baseline tier",
                             kernels[i].name, launches[l].threads, launches[l].width, w, warp[w],
                             other[w]);
        }
    free(in);
    free(warp);
    free(other);
}

static void
addresses_decide_the_layout(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        const char *why = NULL;
        struct hed_locals locals;
        struct hed_flow flow;
        struct hed_ssa ssa;
        char text[8192];
        struct exec e;

        snprintf(text, sizeof(text), "%s%s", HEAD, kernels[i].body);
        exec_open(&e, text, EXEC_COMPILED);
        assert_int_equal(hed_flow_init(&flow, e.module.funcs, &why), 0);
        assert_int_equal(hed_ssa_init(&ssa, &flow, &why), 0);
        assert_int_equal(hed_locals_init(&locals, &flow, &ssa), 0);
        assert_int_equal(locals.nvars, 1);
        if ((hed_locals_find(&locals, locals.vars[0].var) != NULL) != kernels[i].by_elements)
            fail_msg("%s: the variable lies %s", kernels[i].name,
                     kernels[i].by_elements ? "lane by lane" : "element by element");
        hed_flow_fini(&flow);
        exec_close(&e);
    }
}

/* A misaligned access traps, wherever the element lies. */
static void
misaligned_elements_trap(void **state)
{
    static const char *const bodies[] = {
        "st.local.u32 [%rd6+4], %r1; add.s64 %rd9, %rd6, %rd4; add.s64 %rd9, %rd9, 2;\n"
        "and.b32 %r5, %r1, 0; cvt.u64.u32 %rd10, %r5; add.s64 %rd11, %rd6, %rd10;\n"
        "st.local.u32 [%rd11+2], %r1; ret; }\n",
        "st.local.u32 [%rd6+4], %r1; and.b32 %r5, %r2, 3; cvt.u64.u32 %rd9, %r5;\n"
        "add.s64 %rd10, %rd6, %rd9; ld.local.u32 %r6, [%rd10]; st.global.u32 [%rd3], %r6;\n"
        "ret; }\n",
    };
    uint32_t *memory = calloc(WORDS, 4);

    (void)state;
    assert_non_null(memory);
    for (uint32_t i = 0; i < WORDS / 2; i++)
        memory[i] = i;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        void *params[] = {memory, memory + WORDS / 2};
        const struct exec_launch launch = {.threads = 32, .params = params, .size = sizeof(params)};
        char text[8192];
        struct exec e;

        snprintf(text, sizeof(text), "%s%s", HEAD, bodies[i]);
        exec_open(&e, text, EXEC_COMPILED);
        assert_int_equal(exec_run(&e, "k", &launch), HED_ESTATE);
        assert_int_equal(e.trap, HED_PTX_TRAP_ALIGN);
        exec_close(&e);
    }
    free(memory);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(both_layouts_leave_the_same_memory),
    cmocka_unit_test(addresses_decide_the_layout),
    cmocka_unit_test(misaligned_elements_trap),
};

HED_UNIT_MAIN(tests)
