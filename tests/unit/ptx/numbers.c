/* Tests of numbers: kernels whose results depend on NaNs, roundings and orders of operations run
 * compiled and in the baseline tier, and must store the same words. */
#include "harness/unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/exec/harness.h"

#define THREADS 512u
#define OUT 8u /* words that a thread may store */

/* %r1: the thread's number; %rd1: its three doubles, %g1 to %g3; %rd2: its words of the result;
 * %rd9: all of the result. */
#define HEAD                                                                      \
    ".version 8.0\n.target sm_90\n.address_size 64\n"                             \
    ".visible .entry k(.param .u64 in, .param .u64 out) {\n"                      \
    ".reg .pred %p<10>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %rd<20>;\n" \
    ".reg .f32 %f<20>; .reg .f64 %g<40>;\n"                                       \
    "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u64 %rd9, %rd2;\n"    \
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"         \
    "mad.lo.u32 %r1, %r2, %r3, %r4;\n"                                            \
    "mad.wide.u32 %rd1, %r1, 24, %rd1; mad.wide.u32 %rd2, %r1, 32, %rd2;\n"       \
    "ld.global.f64 %g1, [%rd1]; ld.global.f64 %g2, [%rd1+8]; ld.global.f64 %g3, [%rd1+16];\n"

struct kernel {
    const char *name, *body;
};

static const struct kernel doubles[] = {
    {"a chain", "mul.f64 %g4, %g1, %g2; fma.rn.f64 %g5, %g4, %g3, %g1; sub.f64 %g6, %g3, %g5;\n"
                "div.rn.f64 %g7, %g6, %g2; st.global.f64 [%rd2], %g7;\n"},
    {"what a chain leaves on its way",
     "add.f64 %g4, %g1, %g2; mul.f64 %g5, %g4, %g4; sqrt.rn.f64 %g6, %g5; rcp.rn.f64 %g7, %g1;\n"
     "st.global.f64 [%rd2], %g4; st.global.f64 [%rd2+8], %g6; st.global.f64 [%rd2+16], %g7;\n"},
    {"signs", "neg.f64 %g4, %g1; add.f64 %g5, %g4, %g2; abs.f64 %g6, %g5; neg.f64 %g7, %g3;\n"
              "st.global.f64 [%rd2], %g4; st.global.f64 [%rd2+8], %g6;\n"
              "st.global.f64 [%rd2+16], %g7;\n"},
    {"a choice that drops a NaN",
     "add.f64 %g4, %g1, %g2; mul.f64 %g5, %g2, %g3; setp.lt.f64 %p1, %g4, %g5;\n"
     "selp.f64 %g6, %g4, %g5, %p1; max.f64 %g7, %g4, %g5; min.f64 %g8, %g6, %g3;\n"
     "st.global.f64 [%rd2], %g6; st.global.f64 [%rd2+8], %g7; st.global.f64 [%rd2+16], %g8;\n"},
    {"bits that are looked at",
     "mul.f64 %g4, %g1, %g2; mov.b64 %rd3, %g4; shr.u64 %rd4, %rd3, 40; mov.b64 {%r5, %r6}, %g4;\n"
     "cvt.rn.f32.f64 %f1, %g4; add.f64 %g5, %g4, %g3; mov.f64 %g6, %g5;\n"
     "st.global.u64 [%rd2], %rd4; st.global.u32 [%rd2+8], %r6; st.global.f32 [%rd2+12], %f1;\n"
     "st.global.f64 [%rd2+16], %g6;\n"},
    {"a sum that lanes leave one by one",
     "and.b32 %r5, %r1, 7; mov.f64 %g4, %g1; L: fma.rn.f64 %g4, %g2, %g3, %g4;\n"
     "sub.f64 %g2, %g3, %g2; sub.s32 %r5, %r5, 1; setp.ge.s32 %p1, %r5, 0; @%p1 bra L;\n"
     "st.global.f64 [%rd2], %g4; st.global.f64 [%rd2+8], %g2;\n"},
    {"a guard keeps what is pending",
     "add.f64 %g4, %g1, %g2; and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; mov.f64 %g5, %g4;\n"
     "@%p1 mul.f64 %g5, %g4, %g3; @%p1 add.f64 %g4, %g3, %g1; sub.f64 %g6, %g5, %g4;\n"
     "st.global.f64 [%rd2], %g4; st.global.f64 [%rd2+8], %g5; st.global.f64 [%rd2+16], %g6;\n"},
    {"a lane asks another",
     "mul.f64 %g4, %g1, %g2; mov.b64 {%r5, %r6}, %g4; and.b32 %r7, %r1, 3;\n"
     "setp.eq.u32 %p1, %r7, 0; @%p1 bra X; add.f64 %g4, %g4, %g3; X: add.f64 %g4, %g4, %g1;\n"
     "st.global.f64 [%rd2], %g4; st.global.u32 [%rd2+8], %r6;\n"},
    {"more than is tested at once",
     "mov.f64 %g4, %g1; add.f64 %g5, %g4, %g2; mul.f64 %g6, %g5, %g3; add.f64 %g7, %g6, %g1;\n"
     "mul.f64 %g8, %g7, %g2; add.f64 %g9, %g8, %g3; mul.f64 %g10, %g9, %g1;\n"
     "add.f64 %g11, %g10, %g2; mul.f64 %g12, %g11, %g3; add.f64 %g13, %g12, %g1;\n"
     "mul.f64 %g14, %g13, %g2; add.f64 %g15, %g14, %g3; mul.f64 %g16, %g15, %g1;\n"
     "add.f64 %g17, %g16, %g2; mul.f64 %g18, %g17, %g3; add.f64 %g19, %g18, %g1;\n"
     "mul.f64 %g20, %g19, %g2; add.f64 %g21, %g20, %g3; mul.f64 %g22, %g21, %g1;\n"
     "add.f64 %g23, %g22, %g2; mul.f64 %g24, %g23, %g3; add.f64 %g25, %g24, %g1;\n"
     "mul.f64 %g26, %g25, %g2; add.f64 %g27, %g26, %g3; mul.f64 %g28, %g27, %g1;\n"
     "add.f64 %g29, %g28, %g2; mul.f64 %g30, %g29, %g3; add.f64 %g31, %g30, %g1;\n"
     "mul.f64 %g32, %g31, %g2; add.f64 %g33, %g32, %g3; mul.f64 %g34, %g33, %g1;\n"
     "add.f64 %g35, %g34, %g5; mul.f64 %g36, %g35, %g6; add.f64 %g37, %g36, %g7;\n"
     "st.global.f64 [%rd2], %g37; st.global.f64 [%rd2+8], %g20; st.global.f64 [%rd2+16], %g5;\n"},
};

static const struct kernel approximations[] = {
    {"approximations",
     "ld.global.f32 %f1, [%rd1]; ex2.approx.f32 %f2, %f1; lg2.approx.f32 %f3, %f1;\n"
     "sin.approx.f32 %f4, %f1; cos.approx.f32 %f5, %f1; tanh.approx.f32 %f6, %f1;\n"
     "rsqrt.approx.f32 %f7, %f1; st.global.v2.f32 [%rd2], {%f2, %f3};\n"
     "st.global.v2.f32 [%rd2+8], {%f4, %f5}; st.global.v2.f32 [%rd2+16], {%f6, %f7};\n"},
    {"the smaller and the larger",
     "ld.global.v2.f32 {%f1, %f2}, [%rd1]; ld.global.f32 %f3, [%rd1+8]; min.f32 %f4, %f1, %f2;\n"
     "max.f32 %f5, %f1, %f2; max.ftz.f32 %f6, %f2, %f3; min.NaN.f32 %f7, %f1, %f3;\n"
     "max.xorsign.abs.f32 %f8, %f1, %f2; add.f32 %f9, %f1, %f3; max.f32 %f9, %f9, %f2;\n"
     "st.global.v4.f32 [%rd2], {%f4, %f5, %f6, %f7};\n"
     "st.global.v2.f32 [%rd2+16], {%f8, %f9};\n"},
    {"directed rounding",
     "ld.global.v2.f32 {%f1, %f2}, [%rd1]; ld.global.f32 %f3, [%rd1+8];\n"
     "fma.rm.f32 %f4, %f1, %f2, %f3; fma.rp.f32 %f5, %f1, %f2, %f3; mul.rz.f32 %f6, %f1, %f2;\n"
     "add.rm.f32 %f7, %f1, %f2; sub.rz.f32 %f8, %f1, %f3; div.rp.f32 %f9, %f1, %f2;\n"
     "sqrt.rm.f32 %f10, %f1; fma.rz.ftz.f32 %f11, %f1, %f2, %f3;\n"
     "st.global.v4.f32 [%rd2], {%f4, %f5, %f6, %f7};\n"
     "st.global.v4.f32 [%rd2+16], {%f8, %f9, %f10, %f11};\n"},
};

/* Several lanes want the same words, and get them in the order of their numbers. */
static const struct kernel atomics[] = {
    {"shared memory",
     ".shared .align 8 .b8 sh[1024];\n"
     "mul.lo.u32 %r5, %r1, 7; and.b32 %r5, %r5, 15; shl.b32 %r5, %r5, 2; mov.u32 %r6, sh;\n"
     "add.u32 %r5, %r5, %r6; ld.global.u32 %r7, [%rd1+4]; ld.global.f32 %f1, [%rd1];\n"
     "atom.shared.add.u32 %r10, [%r5], %r7; atom.shared.min.s32 %r11, [%r5+64], %r7;\n"
     "atom.shared.max.u32 %r12, [%r5+128], %r1; atom.shared.xor.b32 %r13, [%r5+192], %r7;\n"
     "atom.shared.inc.u32 %r14, [%r5+256], 5; atom.shared.dec.u32 %r15, [%r5+320], 9;\n"
     "atom.shared.cas.b32 %r16, [%r5+384], 0xeeeeeeee, %r1;\n"
     "atom.shared.exch.b32 %r17, [%r5+448], %r7;\n"
     "atom.shared.add.f32 %f2, [%r5+512], %f1;\n"
     "st.global.v4.u32 [%rd2], {%r10, %r11, %r12, %r13}; xor.b32 %r14, %r14, %r17;\n"
     "mov.b32 %r18, %f2; st.global.v4.u32 [%rd2+16], {%r14, %r15, %r16, %r18};\n"},
    {"wider words, and memory that all share",
     ".shared .align 8 .b8 sh[1024];\n"
     "and.b32 %r5, %r1, 3; shl.b32 %r5, %r5, 3; mov.u32 %r6, sh; add.u32 %r5, %r5, %r6;\n"
     "ld.global.u64 %rd3, [%rd1]; atom.shared.add.u64 %rd4, [%r5], %rd3;\n"
     "atom.shared.add.f64 %g4, [%r5+64], %g2; atom.shared.and.b64 %rd5, [%r5+192], %rd3;\n"
     "atom.shared.add.noftz.f16x2 %r8, [%r5+128], %r1;\n"
     "st.global.u64 [%rd2], %rd4; xor.b64 %rd5, %rd5, %rd4; st.global.u64 [%rd2+8], %rd5;\n"
     "st.global.f64 [%rd2+16], %g4; st.global.u32 [%rd2+24], %r8;\n"},
    {"one word for all lanes",
     "ld.global.u32 %r5, [%rd1+4]; ld.global.u64 %rd3, [%rd1]; and.b32 %r6, %r1, 5;\n"
     "setp.eq.u32 %p1, %r6, 1; setp.gt.u32 %p2, %r1, 70; red.global.add.u32 [%rd9], %r5;\n"
     "red.global.min.s32 [%rd9+4], %r5; atom.global.max.u32 %r7, [%rd9+8], %r5;\n"
     "@%p1 red.global.xor.b32 [%rd9+12], %r5; @%p2 atom.global.add.u32 %r8, [%rd9+16], 3;\n"
     "@!%p1 red.global.add.u64 [%rd9+24], %rd3; red.global.and.b32 [%rd9+32], %r5;\n"
     "red.global.or.b32 [%rd9+36], %r5; red.global.max.s32 [%rd9+40], %r5;\n"
     "red.global.min.u32 [%rd9+44], %r5; atom.global.add.u32 %r9, [%rd9+48], 1;\n"
     "setp.lt.u32 %p3, %r1, 5; @%p3 ret; st.global.u32 [%rd2], %r9;\n"},
    {"one word of shared memory for all lanes",
     ".shared .align 8 .b8 sh[64];\n"
     "ld.global.u32 %r5, [%rd1+4]; ld.global.f32 %f1, [%rd1]; red.shared.add.u32 [sh], %r5;\n"
     "red.shared.max.s32 [sh+4], %r5; red.shared.add.f32 [sh+8], %f1; and.b32 %r6, %r1, 31;\n"
     "setp.ne.u32 %p1, %r6, 31; @%p1 ret; ld.shared.u32 %r7, [sh]; ld.shared.u32 %r8, [sh+4];\n"
     "ld.shared.u32 %r9, [sh+8]; st.global.v2.u32 [%rd2], {%r7, %r8};\n"
     "st.global.u32 [%rd2+8], %r9;\n"},
};

/* ---- running --------------------------------------------------------------------------------- */

static void
run_kernel(const struct kernel *k, enum exec_tier tier, const void *in, uint32_t *out)
{
    struct {
        const void *in;
        void *out;
    } params = {in, out};
    const struct exec_launch launch = {
        .blocks = THREADS / 64, .threads = 64, .params = &params, .size = sizeof(params)};
    char text[8192];
    struct exec e;

    snprintf(text, sizeof(text), "%s%sret; }\n", HEAD, k->body);
    memset(out, 0xcc, THREADS * OUT * sizeof(*out));
    exec_open(&e, text, tier);
    if (exec_run(&e, "k", &launch) != 0)
        fail_msg("%s: %s", k->name, e.why.text);
    exec_close(&e);
}

static void
compare_tiers(const struct kernel *k, size_t n, const void *in)
{
    static uint32_t baseline[THREADS * OUT], other[THREADS * OUT];

    for (; n-- > 0; k++) {
        run_kernel(k, EXEC_BASELINE, in, baseline);
        run_kernel(k, EXEC_COMPILED, in, other);
        for (unsigned i = 0; i < THREADS * OUT; i++)
            if (baseline[i] != other[i])
                fail_msg("%s: word %u of thread %u is %08" PRIx32 " in the baseline tier, "
                         "%08" PRIx32 " compiled",
                         k->name, i % OUT, i / OUT, baseline[i], other[i]);
    }
}

#define COMPARE(table, in) compare_tiers(table, sizeof(table) / sizeof((table)[0]), in)

/* ---- tests ----------------------------------------------------------------------------------- */

static uint32_t
next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void
nans_of_f64_are_the_same_in_all_tiers(void **state)
{
    static const uint64_t values[] = {
        0x3ff0000000000000, 0xbff8000000000000, 0x7ff0000000000000, 0xfff0000000000000,
        0x0000000000000000, 0x8000000000000000, 0x7ff8000000001234, 0xfff8000000005678,
        0x7ff0000000000099, 0xfff4000000000abc, 0x7fefffffffffffff, 0x0000000000000001,
    };
    static uint64_t in[THREADS * 3];
    uint32_t seed = 7;

    (void)state;
    /* The first warps have numbers only, some of the others one NaN, the last ones many. */
    for (unsigned i = 0; i < THREADS * 3; i++) {
        const unsigned n = i / 3 < 128 ? 2 : i / 3 < 256 ? 6 : 12;

        in[i] = values[next_random(&seed) % n];
    }
    in[3 * 70] = values[6];
    COMPARE(doubles, in);
}

/* Of all floats, tanh of 0xbab4add0 is the one that a fused operation would change. */
static void
floats_are_the_same_in_all_tiers(void **state)
{
    static const uint32_t values[] = {
        0xbab4add0, 0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
        0x7fc01234, 0x00000001, 0x807fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f7fffff,
        0x42fe0000, 0xc3160000, 0x33800000, 0x4b800001, 0x7f800001, 0xffa12345,
    };
    static uint32_t in[THREADS * 6];
    uint32_t seed = 3;

    (void)state;
    for (unsigned i = 0; i < THREADS * 6; i++) {
        const uint32_t pick = next_random(&seed) % 24;

        in[i] = pick < 20 ? values[pick] : next_random(&seed) << 8 ^ next_random(&seed);
    }
    COMPARE(approximations, in);
}

static void
atomics_are_the_same_in_all_tiers(void **state)
{
    static uint32_t in[THREADS * 6];
    uint32_t seed = 11;

    (void)state;
    for (unsigned i = 0; i < THREADS * 6; i++)
        in[i] = next_random(&seed) << 8 ^ next_random(&seed);
    COMPARE(atomics, in);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(atomics_are_the_same_in_all_tiers),
    cmocka_unit_test(floats_are_the_same_in_all_tiers),
    cmocka_unit_test(nans_of_f64_are_the_same_in_all_tiers),
};

HED_UNIT_MAIN(tests)
