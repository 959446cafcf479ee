/* Tests of loops that run lane by lane or are made twice: which ones, and that they leave the same
 * memory. */
#include "harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/ptx/pass/guess.h"
#include "kernel/ptx/pass/solo.h"
#include "kernel/ptx/text/parse.h"
#include "ptx/exec/harness.h"

#define WORDS 4096

/* %r1: the thread's number in the grid; %rd1: in; %rd2: out; %rd3: its word in out; %r2: n; %r3:
 * where its list begins; %r4: where it ends. */
#define HEAD                                                                            \
    ".version 8.0\n.target sm_80\n.address_size 64\n"                                   \
    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n) {\n"             \
    ".reg .pred %p<20>; .reg .b32 %r<60>; .reg .b64 %rd<30>; .reg .f32 %f<20>;\n"       \
    ".shared .align 16 .b8 sh[4096];\n"                                                 \
    "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r2, [n];\n"       \
    "mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ntid.x; mov.u32 %r12, %tid.x;\n"            \
    "mov.u32 %r13, %tid.y; mov.u32 %r14, %ntid.y; mul.lo.u32 %r15, %r11, %r14;\n"       \
    "mad.lo.u32 %r16, %r13, %r11, %r12; mad.lo.u32 %r1, %r10, %r15, %r16;\n"            \
    "mul.wide.u32 %rd4, %r1, 4; add.u64 %rd3, %rd2, %rd4; add.u64 %rd5, %rd1, %rd4;\n"  \
    "ld.global.u32 %r3, [%rd5]; ld.global.u32 %r4, [%rd5+128]; and.b32 %r4, %r4, 15;\n" \
    "add.u32 %r4, %r3, %r4; mov.u32 %r20, 0; mov.f32 %f1, 0f00000000;\n"
/* Loads word i modulo 1024 of in. */
#define GET(d, i)                                                                   \
    "and.b32 %r50, " i ", 1023; mul.wide.u32 %rd20, %r50, 4; add.u64 %rd21, %rd1, " \
    "%rd20; ld.global.u32 " d ", [%rd21];\n"
#define LIST GET("%r5", "%r3")
#define NODE GET("%r6", "%r5")
#define THEN GET("%r7", "%r6")
#define INNER GET("%r8", "%r7")
#define MORE "add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r4; @%p1 bra L;\n"
#define PUT "st.global.u32 [%rd3], %r20; ret; }\n"

/* %r30: a grid-stride loop's index; %r31: its stride. REST goes round %r21 times, or once. */
#define STRIDE "mov.u32 %r30, %r1; mov.u32 %r31, %nctaid.x; mul.lo.u32 %r31, %r31, %r15;\n"
#define WORD "mul.wide.u32 %rd6, %r30, 4; add.u64 %rd7, %rd1, %rd6; ld.global.u32 %r6, [%rd7];\n"
#define REST                                                                                  \
    "F: " WORD "add.u32 %r20, %r20, %r6; add.u32 %r30, %r30, %r31; add.u32 %r21, %r21, -1;\n" \
    "setp.gt.s32 %p1, %r21, 0; @%p1 bra F;\n"

static const struct kernel {
    const char *name;
    bool is_solo;    /* its first loop */
    bool is_guessed; /* its last loop */
    const char *body;
} kernels[] = {
    {"a list of each thread's own length", true, false,
     "setp.ge.u32 %p1, %r3, %r4; @%p1 bra X;\n"
     "L: " LIST NODE "add.u32 %r20, %r20, %r6;\n" MORE "X: add.u32 %r20, %r20, %r3;\n" PUT},
    {"threads end in the loop, and store in it", true, false,
     "L: " LIST "shr.u32 %r6, %r5, 1; and.b32 %r6, %r6, 1; setp.eq.u32 %p2, %r6, 0;\n"
     "@%p2 bra S; st.global.u32 [%rd3], %r5; S:\n" MORE "ret; }\n"},
    {"updates in any order", true, false,
     "L: " LIST NODE "add.u64 %rd9, %rd2, %rd20; red.global.add.u32 [%rd9+8192], %r6;\n"
     "atom.global.max.u32 %r9, [%rd9+4096], %r3;\n" MORE "ret; }\n"},
    {"updates that say what was there", false, false,
     "L: " LIST NODE "add.u64 %rd9, %rd2, %rd20; atom.global.add.u32 %r9, [%rd9+8192], %r6;\n"
     "add.u32 %r20, %r20, %r9;\n" MORE "ret; }\n"},
    {"two exits, and values of several kinds", true, false,
     "setp.gt.u32 %p3, %r3, 100; mov.u32 %r21, %r2; mov.u32 %r22, %r1;\n"
     "L: " LIST NODE "xor.b32 %r20, %r20, %r6; setp.gt.u32 %p4, %r6, 200; add.u32 %r22, %r22, 2;\n"
     "@%p4 bra A; add.u32 %r21, %r21, 3; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r4;\n"
     "xor.pred %p3, %p3, %p1; @%p1 bra L; add.u32 %r20, %r20, 7;\n"
     "A: selp.u32 %r7, 1000, 5, %p3; add.u32 %r20, %r20, %r7; add.u32 %r20, %r20, %r21;\n"
     "xor.b32 %r20, %r20, %r22;\n" PUT},
    {"a loop in a loop", true, false,
     "L: " LIST "and.b32 %r6, %r5, 7; mov.u32 %r7, %r3;\n"
     "I: " INNER "mad.lo.u32 %r20, %r20, 3, %r8; add.u32 %r7, %r7, %r8;\n"
     "add.u32 %r6, %r6, -1; setp.gt.s32 %p2, %r6, 0; @%p2 bra I;\n" MORE
     "add.u32 %r20, %r20, %r7;\n" PUT},
    {"guards, special registers, two latches", true, false,
     "L: " LIST NODE THEN "mov.u32 %r21, %tid.x; mov.u32 %r22, %laneid; mov.u32 %r9, 5;\n"
     "setp.gt.u32 %p2, %r7, 128; @%p2 add.u32 %r20, %r20, %r21; @!%p2 mov.u32 %r9, %r22;\n"
     "add.u32 %r20, %r20, %r9; add.u32 %r3, %r3, 1; setp.ge.u32 %p1, %r3, %r4;\n"
     "@%p2 bra E; @!%p1 bra L; bra X; E: " INNER "add.u32 %r20, %r20, %r8; @!%p1 bra L;\n"
     "X: " PUT},
    {"rows of one length, from where each thread says", true, false,
     "mov.u32 %r9, 0; mov.u32 %r21, %r1; mul.lo.u32 %r3, %r1, %r2;\n"
     "L: " LIST NODE THEN INNER "add.u32 %r20, %r20, %r8; add.u32 %r3, %r3, 1;\n"
     "add.u32 %r9, %r9, 1; add.u32 %r21, %r21, 4; setp.lt.u32 %p1, %r9, 9; @%p1 bra L;\n"
     "add.u32 %r20, %r20, %r9; add.u32 %r20, %r20, %r21;\n" PUT},
    {"sums of floats, some of which are no numbers", true, false,
     "L: " LIST NODE "mul.lo.u32 %r6, %r6, 0xff3571; mov.b32 %f2, %r6;\n"
     "fma.rn.f32 %f1, %f2, %f2, %f1;\n" MORE "mov.b32 %r20, %f1;\n" PUT},
    {"an index that wraps around", true, false,
     "add.u32 %r21, %r1, -17; cvt.u64.u32 %rd6, %r21;\n"
     "L: " LIST NODE THEN "cvt.u32.u64 %r9, %rd6; shr.u64 %rd7, %rd6, 30; cvt.u32.u64 %r8, %rd7;\n"
     "add.u32 %r20, %r20, %r8; add.u64 %rd6, %rd6, 5; add.u32 %r20, %r20, %r9;\n" MORE
     "shr.u64 %rd7, %rd6, 29; cvt.u32.u64 %r8, %rd7; add.u32 %r20, %r20, %r8;\n" PUT},
    {"a grid-stride loop in two", false, true,
     STRIDE "and.b32 %r21, %r2, 3; setp.eq.u32 %p1, %r1, 200; @%p1 mov.u32 %r21, 3;\n" REST
            "setp.ge.u32 %p1, %r30, 900; @%p1 bra X;\n"
            "M: " WORD
            "add.u32 %r20, %r20, %r6; add.u32 %r30, %r30, %r31; setp.lt.u32 %p1, %r30, 900;\n"
            "@%p1 bra M; X: add.u32 %r20, %r20, %r30;\n" PUT},
    {"a grid-stride loop in two, whose lanes take different rests", false, true,
     STRIDE "and.b32 %r21, %r1, 31; shr.u32 %r21, %r21, 3;\n" REST
            "setp.ge.u32 %p1, %r30, 900; @%p1 bra X;\n"
            "M: " WORD
            "add.u32 %r20, %r20, %r6; add.u32 %r30, %r30, %r31; setp.lt.u32 %p1, %r30, 900;\n"
            "@%p1 bra M; X: add.u32 %r20, %r20, %r30;\n" PUT},
    {"pointers that step, and an exit in the middle", false, true,
     STRIDE
     "and.b32 %r21, %r3, 1; setp.gt.u32 %p2, %r10, 0; @%p2 mov.u32 %r21, 1;\n" REST
     "mul.wide.u32 %rd6, %r30, 4; add.u64 %rd7, %rd1, %rd6; mov.u32 %r9, 0;\n"
     "M: ld.global.u32 %r6, [%rd7+8]; add.u32 %r20, %r20, %r6; setp.gt.u32 %p2, %r20, 1000;\n"
     "@%p2 bra X; add.u64 %rd7, %rd7, 256; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 5;\n"
     "@%p1 bra M; add.u32 %r20, %r20, 5; X: sub.u64 %rd9, %rd7, %rd1; cvt.u32.u64 %r7, %rd9;\n"
     "add.u32 %r20, %r20, %r7; mad.lo.u32 %r20, %r9, 10000, %r20;\n" PUT},
    {"an index of which lanes wrap around", false, true,
     "and.b32 %r21, %r3, 1; setp.gt.u32 %p2, %r10, 0; @%p2 mov.u32 %r21, 1; mov.u32 %r9, 0;\n"
     "add.u32 %r30, %r1, -40; F: add.u32 %r30, %r30, 8; add.u32 %r21, %r21, -1;\n"
     "setp.gt.s32 %p1, %r21, 0; @%p1 bra F;\n"
     "M: mul.wide.u32 %rd6, %r30, 4; add.u64 %rd7, %rd1, %rd6; setp.gt.u32 %p2, %r30, 900;\n"
     "@%p2 bra S; ld.global.u32 %r6, [%rd7]; add.u32 %r20, %r20, %r6; S: shr.u64 %rd9, %rd6, 16;\n"
     "cvt.u32.u64 %r7, %rd9; add.u32 %r20, %r20, %r7; add.u32 %r30, %r30, 32;\n"
     "add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 6; @%p1 bra M;\n" PUT},
    {"arithmetic", false, false,
     "L: mad.lo.u32 %r20, %r20, %r3, 7; xor.b32 %r20, %r20, %r1;\n" MORE PUT},
    {"shared memory that is written", false, false,
     "L: " LIST NODE THEN "shl.b32 %r8, %r16, 2; mov.u32 %r9, sh; add.u32 %r8, %r8, %r9;\n"
     "st.shared.u32 [%r8], %r7; add.u32 %r20, %r20, %r7;\n" MORE PUT},
    {"a volatile load", false, false,
     "L: " LIST NODE THEN
     "ld.volatile.global.u32 %r8, [%rd21]; add.u32 %r20, %r20, %r8;\n" MORE PUT},
};

static void
text_of(const struct kernel *k, char *text, size_t size)
{
    snprintf(text, size, "%s%s", HEAD, k->body);
}

static void
scattered_loads_run_solo(void **state)
{
    char text[8192];

    (void)state;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        const char *why = "";
        struct hed_ptx_module m;
        struct hed_uniforms u;
        struct hed_flow flow;
        struct hed_ssa ssa;
        struct hed_guess **guesses;
        const bool *solo;

        text_of(&kernels[i], text, sizeof(text));
        hed_ptx_module_init(&m, HED_PTX_CEILING);
        assert_int_equal(hed_ptx_parse(&m, text, strlen(text)), 0);
        assert_int_equal(hed_flow_init(&flow, m.funcs, &why), 0);
        assert_int_equal(hed_ssa_init(&ssa, &flow, &why), 0);
        assert_int_equal(hed_uniforms_init(&u, &flow, &ssa, HED_ROWS_32), 0);
        solo = hed_solo_init(&flow, &u);
        guesses = hed_guess_init(&flow, &u);
        assert_true(solo && guesses);
        if (flow.nloops == 0 || solo[0] != kernels[i].is_solo)
            fail_msg("%s: %u loops, the first is %s", kernels[i].name, flow.nloops,
                     flow.nloops && solo[0] ? "solo" : "not solo");
        if (!guesses[flow.nloops - 1] != !kernels[i].is_guessed)
            fail_msg("%s: the last loop is %s", kernels[i].name,
                     kernels[i].is_guessed ? "not guessed" : "guessed");
        hed_flow_fini(&flow);
        hed_ptx_module_fini(&m);
    }
}

static const struct {
    unsigned threads, width, blocks;
} launches[] = {{64, 0, 2}, {96, 32, 2}, {100, 0, 3}, {128, 16, 1}, {60, 12, 1}, {7, 0, 2}};

static void
run_kernel(const struct kernel *k, enum exec_tier tier, unsigned l, uint32_t *in, uint32_t *out)
{
    struct {
        void *in, *out;
        uint32_t n;
    } params = {in, out, 83};
    const struct exec_launch launch = {.blocks = launches[l].blocks,
                                       .threads = launches[l].threads,
                                       .width = launches[l].width,
                                       .params = &params,
                                       .size = sizeof(params)};
    char text[8192];
    struct exec e;

    text_of(k, text, sizeof(text));
    memset(out, 0xcc, WORDS * sizeof(*out));
    exec_open(&e, text, tier);
    if (exec_run(&e, "k", &launch) != 0)
        fail_msg("%s: %s", k->name, e.why.text);
    if (tier == EXEC_COMPILED && e.why.text[0])
        fail_msg("%s has another shape: %s", k->name, e.why.text);
    exec_close(&e);
}

static void
lanes_solo_leave_the_same_memory(void **state)
{
    uint32_t *in = calloc(WORDS, 4), *warp = calloc(WORDS, 4), *other = calloc(WORDS, 4);

    (void)state;
    assert_true(in && warp && other);
    for (uint32_t i = 0; i < WORDS; i++)
        in[i] = i * 2654435761u >> 24;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        for (unsigned l = 0; l < sizeof(launches) / sizeof(launches[0]); l++) {
            run_kernel(&kernels[i], EXEC_COMPILED, l, in, warp);
            run_kernel(&kernels[i], EXEC_BASELINE, l, in, other);
            for (unsigned w = 0; w < WORDS; w++)
                if (warp[w] != other[w])
                    fail_msg("%s, %u threads of width %u: word %u is %u, %u in the baseline tier",
                             kernels[i].name, launches[l].threads, launches[l].width, w, warp[w],
                             other[w]);
        }
    }
    free(in);
    free(warp);
    free(other);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(scattered_loads_run_solo),
    cmocka_unit_test(lanes_solo_leave_the_same_memory),
};

HED_UNIT_MAIN(tests)
