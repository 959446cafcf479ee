/* Runs random kernels in both shapes and in the baseline tier, and compares what they give.
 *
 *     random_kernels FIRST COUNT     kernels number FIRST to FIRST + COUNT - 1
 *
 * A kernel is made from its number alone: instructions on random registers, in branches and loops
 * that lanes take and leave differently, with guards, calls, memory of their own and, where all
 * lanes are together, operations among lanes (kernels with odd numbers). At the end each thread
 * stores its registers. If the results differ, the kernel's text and the first difference are
 * printed.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "harness.h"

#define THREADS 64u
#define WORDS 12u /* of registers with 32 bits; likewise of floats */
#define WIDES 8u  /* of registers with 64 bits; likewise of doubles */
#define HALVES 4u
#define PREDICATES 6u
#define STORED (2 * WORDS + 4 * WIDES + HALVES + 1) /* words that a thread stores */
#define DEPTH_MAX 3

static uint64_t state;
static struct hed_buf text;
static unsigned labels;
static bool meets; /* this kernel has operations among lanes */

static uint32_t
random_word(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static unsigned
random_below(unsigned n)
{
    return random_word() % n;
}

static void __attribute__((format(printf, 1, 2))) add_text(const char *fmt, ...)
{
    char line[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    hed_buf_add(&text, line, strlen(line));
}

/* Instructions, with a letter for a register of each kind: w d 32 and 64 bits, f g floats and
 * doubles, h 16 bits, p a predicate; W is a register or a number. */
static const char *const computes[] = {
    "add.s32 @w, @w, @W",
    "sub.s32 @w, @w, @W",
    "mul.lo.s32 @w, @w, @W",
    "mul.hi.u32 @w, @w, @w",
    "mad.lo.s32 @w, @w, @w, @W",
    "div.s32 @w, @w, @w",
    "rem.u32 @w, @w, @w",
    "min.s32 @w, @w, @W",
    "max.u32 @w, @w, @W",
    "abs.s32 @w, @w",
    "neg.s32 @w, @w",
    "sad.u32 @w, @w, @w, @w",
    "add.sat.s32 @w, @w, @w",
    "and.b32 @w, @w, @W",
    "or.b32 @w, @w, @w",
    "xor.b32 @w, @w, @w",
    "not.b32 @w, @w",
    "shl.b32 @w, @w, @W",
    "shr.s32 @w, @w, @w",
    "shr.u32 @w, @w, @W",
    "shf.l.wrap.b32 @w, @w, @w, @w",
    "shf.r.clamp.b32 @w, @w, @w, @w",
    "popc.b32 @w, @w",
    "clz.b32 @w, @w",
    "brev.b32 @w, @w",
    "bfind.s32 @w, @w",
    "bfe.s32 @w, @w, @w, @w",
    "bfi.b32 @w, @w, @w, @w, @w",
    "prmt.b32 @w, @w, @w, @w",
    "lop3.b32 @w, @w, @w, @w, 0x96",
    "lop3.b32 @w, @w, @w, @w, 0xe8",
    "dp4a.s32.u32 @w, @w, @w, @w",
    "dp2a.lo.u32.s32 @w, @w, @w, @w",
    "mul24.lo.s32 @w, @w, @w",
    "vadd2.s32.s32.s32 @w, @w, @w, @w",
    "min.u16x2 @w, @w, @w",
    "add.cc.u32 @w, @w, @w; addc.u32 @w, @w, @w",
    "sub.cc.u32 @w, @w, @w; subc.cc.u32 @w, @w, @w",
    "add.s64 @d, @d, @d",
    "sub.s64 @d, @d, @d",
    "mul.lo.s64 @d, @d, @d",
    "mul.hi.s64 @d, @d, @d",
    "mul.wide.s32 @d, @w, @W",
    "mad.wide.u32 @d, @w, @w, @d",
    "div.u64 @d, @d, @d",
    "rem.s64 @d, @d, @d",
    "shl.b64 @d, @d, @w",
    "shr.s64 @d, @d, @w",
    "xor.b64 @d, @d, @d",
    "popc.b64 @w, @d",
    "clz.b64 @w, @d",
    "bfe.u64 @d, @d, @w, @w",
    "min.s64 @d, @d, @d",
    "add.u16 @h, @h, @h",
    "mul.lo.s16 @h, @h, @h",
    "mul.wide.s16 @w, @h, @h",
    "shr.s16 @h, @h, @w",
    "add.f32 @f, @f, @f",
    "sub.f32 @f, @f, @f",
    "mul.f32 @f, @f, @f",
    "fma.rn.f32 @f, @f, @f, @f",
    "add.ftz.f32 @f, @f, @f",
    "mul.ftz.f32 @f, @f, @f",
    "fma.rn.ftz.sat.f32 @f, @f, @f, @f",
    "add.rz.f32 @f, @f, @f",
    "fma.rm.f32 @f, @f, @f, @f",
    "mul.rp.f32 @f, @f, @f",
    "div.rn.f32 @f, @f, @f",
    "div.full.f32 @f, @f, @f",
    "div.approx.ftz.f32 @f, @f, @f",
    "sqrt.rn.f32 @f, @f",
    "sqrt.rz.f32 @f, @f",
    "rcp.rn.f32 @f, @f",
    "rcp.rm.ftz.f32 @f, @f",
    "rsqrt.approx.f32 @f, @f",
    "ex2.approx.ftz.f32 @f, @f",
    "lg2.approx.f32 @f, @f",
    "sin.approx.f32 @f, @f",
    "cos.approx.ftz.f32 @f, @f",
    "tanh.approx.f32 @f, @f",
    "min.f32 @f, @f, @f",
    "max.ftz.f32 @f, @f, @f",
    "max.NaN.f32 @f, @f, @f",
    "abs.f32 @f, @f",
    "neg.ftz.f32 @f, @f",
    "copysign.f32 @f, @f, @f",
    "add.f64 @g, @g, @g",
    "mul.f64 @g, @g, @g",
    "fma.rn.f64 @g, @g, @g, @g",
    "add.rp.f64 @g, @g, @g",
    "div.rn.f64 @g, @g, @g",
    "sqrt.rn.f64 @g, @g",
    "min.f64 @g, @g, @g",
    "neg.f64 @g, @g",
    "add.f16x2 @w, @w, @w",
    "fma.rn.f16x2 @w, @w, @w, @w",
    "mul.bf16x2 @w, @w, @w",
    "fma.rn.relu.bf16x2 @w, @w, @w, @w",
    "add.f16 @h, @h, @h",
    "fma.rn.f16 @h, @h, @h, @h",
    "max.bf16x2 @w, @w, @w",
    "cvt.rn.f32.s32 @f, @w",
    "cvt.rz.f32.u32 @f, @w",
    "cvt.rzi.s32.f32 @w, @f",
    "cvt.rni.u32.f32 @w, @f",
    "cvt.rmi.f32.f32 @f, @f",
    "cvt.sat.f32.f32 @f, @f",
    "cvt.rn.f32.f64 @f, @g",
    "cvt.f64.f32 @g, @f",
    "cvt.rn.f64.s64 @g, @d",
    "cvt.rzi.s64.f64 @d, @g",
    "cvt.rn.f16.f32 @h, @f",
    "cvt.f32.f16 @f, @h",
    "cvt.rn.bf16.f32 @h, @f",
    "cvt.s64.s32 @d, @w",
    "cvt.u32.u64 @w, @d",
    "cvt.s8.s32 @w, @w",
    "cvt.sat.u8.s32 @w, @w",
    "cvt.u16.u32 @h, @w",
    "cvt.rn.f16x2.f32 @w, @f, @f",
    "mov.b32 @w, @f",
    "mov.b32 @f, @w",
    "mov.b64 @d, @g",
    "mov.b64 @g, @d",
    "mov.b64 @d, {@w, @w}",
    "mov.b64 {@w, @w}, @d",
    "mov.b32 {@h, @h}, @w",
    "setp.lt.s32 @p, @w, @W",
    "setp.ge.u32 @p, @w, @w",
    "setp.eq.s32.and @p, @w, @w, @p",
    "setp.ne.u64 @p, @d, @d",
    "setp.gt.f32 @p, @f, @f",
    "setp.leu.f32 @p, @f, @f",
    "setp.num.f64 @p, @g, @g",
    "setp.lt.s16 @p, @h, @h",
    "setp.lt.f32.or @p|@p, @f, @f, !@p",
    "and.pred @p, @p, @p",
    "xor.pred @p, @p, @p",
    "not.pred @p, @p",
    "selp.b32 @w, @w, @W, @p",
    "selp.f64 @g, @g, @g, @p",
    "slct.f32.s32 @f, @f, @f, @w",
    "set.lt.u32.f32 @w, @f, @f",
    "testp.normal.f32 @p, @f",
    "set.ge.f32.s32 @f, @w, @w",
};

/* Memory that no other thread uses: %own points to 64 bytes of it, stack is local. */
static const char *const accesses[] = {
    "st.global.u32 [%own], @w",
    "ld.global.u32 @w, [%own]",
    "st.global.v2.f32 [%own+8], {@f, @f}",
    "ld.global.v4.u32 {@w, @w, @w, @w}, [%own]",
    "ld.global.s8 @w, [%own+5]",
    "st.global.u16 [%own+6], @h",
    "ld.global.u16 @w, [%own+2]",
    "st.global.f64 [%own+16], @g",
    "atom.global.add.u32 @w, [%own+4], @w",
    "atom.global.cas.b64 @d, [%own+24], @d, @d",
    "red.global.max.s32 [%own+8], @w",
    "atom.global.add.f32 @f, [%own+12], @f",
    "and.b32 %at, @w, 60; cvt.u64.u32 %where, %at; add.u64 %where, %where, %depot; "
    "st.local.u32 [%where], @w",
    "and.b32 %at, @w, 60; cvt.u64.u32 %where, %at; add.u64 %where, %where, %depot; "
    "ld.local.u32 @w, [%where]",
    "st.shared.f32 [%mine+4], @f",
    "ld.shared.u32 @w, [%mine+4]",
    "st.shared.u8 [%mine+1], @w",
    "st.param.b32 [x], @w; call (y), mix, (x); ld.param.b32 @w, [y]",
};

/* For all lanes of a warp at once. */
static const char *const meetings[] = {
    "shfl.sync.bfly.b32 @w, @w, 5, 31, -1", "shfl.sync.idx.b32 @w|@p, @w, @w, 31, -1",
    "shfl.sync.up.b32 @w, @w, 3, 0, -1",    "vote.sync.ballot.b32 @w, @p, -1",
    "vote.sync.any.pred @p, @p, -1",        "redux.sync.add.s32 @w, @w, -1",
    "match.any.sync.b32 @w, @w, -1",        "shfl.sync.down.b32 @w, @w, 1, 0x181f, -1",
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void
add_operand(char kind)
{
    switch (kind) {
    case 'w':
        add_text("%%w%u", random_below(WORDS));
        break;
    case 'W':
        if (random_below(3) == 0)
            add_text("%d", (int)(random_word() >> random_below(32)));
        else
            add_operand('w');
        break;
    case 'd':
        add_text("%%d%u", random_below(WIDES));
        break;
    case 'f':
        add_text("%%f%u", random_below(WORDS));
        break;
    case 'g':
        add_text("%%g%u", random_below(WIDES));
        break;
    case 'h':
        add_text("%%h%u", random_below(HALVES));
        break;
    default:
        add_text("%%p%u", random_below(PREDICATES));
        break;
    }
}

static void
add_instruction(const char *form, bool may_guard)
{
    if (may_guard && random_below(5) == 0 && !strchr(form, ';'))
        add_text("@%s%%p%u ", random_below(2) ? "!" : "", random_below(PREDICATES));
    for (; *form; form++) {
        if (*form == '@')
            add_operand(*++form);
        else
            add_text("%c", *form);
    }
    add_text(";\n");
}

static void
add_statements(unsigned depth, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const unsigned what = random_below(20);
        const unsigned label = labels;

        if (what == 0 && depth < DEPTH_MAX) {
            labels++;
            add_text("@%%p%u bra ELSE%u;\n", random_below(PREDICATES), label);
            add_statements(depth + 1, 1 + random_below(5));
            add_text("bra JOIN%u;\nELSE%u:\n", label, label);
            add_statements(depth + 1, random_below(5));
            add_text("JOIN%u:\n", label);
        } else if (what == 1 && depth < DEPTH_MAX) {
            labels++;
            add_text("and.b32 %%n%u, %%w%u, 7;\nLOOP%u:\n", depth, random_below(WORDS), label);
            add_statements(depth + 1, 1 + random_below(4));
            add_text("sub.s32 %%n%u, %%n%u, 1; setp.gt.s32 %%q, %%n%u, 0; @%%q bra LOOP%u;\n",
                     depth, depth, depth, label);
        } else if (what < 5) {
            add_instruction(accesses[random_below(COUNT(accesses))], true);
        } else if (what == 5 && depth == 0 && meets) {
            add_instruction(meetings[random_below(COUNT(meetings))], false);
        } else {
            add_instruction(computes[random_below(COUNT(computes))], true);
        }
    }
}

static void
add_stores(void)
{
    unsigned at = 0;

    for (unsigned i = 0; i < WIDES; i++, at += 16)
        add_text("st.global.b64 [%%result+%u], %%d%u; st.global.f64 [%%result+%u], %%g%u;\n", at, i,
                 at + 8, i);
    for (unsigned i = 0; i < WORDS; i++, at += 8)
        add_text("st.global.b32 [%%result+%u], %%w%u; st.global.f32 [%%result+%u], %%f%u;\n", at, i,
                 at + 4, i);
    for (unsigned i = 0; i < HALVES; i++, at += 4)
        add_text("st.global.b16 [%%result+%u], %%h%u;\n", at, i);
    for (unsigned i = 0; i < PREDICATES; i++)
        add_text("@%%p%u st.global.u8 [%%result+%u], 1;\n", i, at + i % 4);
}

/* The registers begin as words of the thread's input, some as small numbers. */
static void
add_loads(void)
{
    for (unsigned i = 0; i < WORDS; i++)
        add_text("ld.global.u32 %%w%u, [%%in+%u]; ld.global.f32 %%f%u, [%%in+%u];\n", i, 4 * i, i,
                 64 + 4 * i);
    for (unsigned i = 0; i < WIDES; i++)
        add_text("ld.global.u64 %%d%u, [%%in+%u]; cvt.f64.f32 %%g%u, %%f%u;\n", i, 8 * i, i, i);
    for (unsigned i = 0; i < HALVES; i++)
        add_text("ld.global.u16 %%h%u, [%%in+%u];\n", i, 2 * i);
    for (unsigned i = 0; i < PREDICATES; i++)
        add_text("setp.lt.s32 %%p%u, %%w%u, %d;\n", i, i, (int)random_word());
    for (unsigned i = 0; i < WORDS; i += 3)
        add_text("and.b32 %%w%u, %%w%u, 31;\n", i, i);
}

static void
make_kernel(unsigned number)
{
    state = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    labels = 0;
    meets = number % 2;
    hed_buf_reset(&text);
    add_text(".version 8.6\n.target sm_90\n.address_size 64\n"
             ".func (.param .b32 r) mix(.param .b32 a) { .reg .b32 %%r<4>; .reg .pred %%p;\n"
             "ld.param.u32 %%r1, [a]; and.b32 %%r2, %%r1, 3; setp.eq.u32 %%p, %%r2, 0;\n"
             "@%%p bra ZERO; mul.lo.u32 %%r1, %%r1, 2654435761; st.param.b32 [r], %%r1; ret;\n"
             "ZERO: shr.u32 %%r1, %%r1, 2; st.param.b32 [r], %%r1; ret; }\n"
             ".shared .align 8 .b8 shared[%u];\n",
             8 * THREADS);
    add_text(".visible .entry k(.param .u64 pin, .param .u64 pown, .param .u64 pout) {\n"
             ".reg .b32 %%w<%u>, %%n<%u>, %%t, %%mine, %%at; .reg .f32 %%f<%u>;\n",
             WORDS, DEPTH_MAX + 1, WORDS);
    add_text(".reg .b64 %%d<%u>, %%in, %%own, %%result, %%where, %%depot; .reg .f64 %%g<%u>;\n"
             ".reg .b16 %%h<%u>; .reg .pred %%p<%u>, %%q; .param .b32 x; .param .b32 y;\n"
             ".local .align 8 .b8 stack[64];\n",
             WIDES, WIDES, HALVES, PREDICATES);
    add_text("mov.u32 %%t, %%tid.x; ld.param.u64 %%in, [pin]; ld.param.u64 %%own, [pown];\n"
             "ld.param.u64 %%result, [pout]; mad.wide.u32 %%in, %%t, 128, %%in;\n"
             "mad.wide.u32 %%own, %%t, 64, %%own; mad.wide.u32 %%result, %%t, %u, %%result;\n"
             "mov.u32 %%mine, shared; mad.lo.u32 %%mine, %%t, 8, %%mine; mov.u64 %%depot, stack;\n"
             "st.shared.u64 [%%mine], %%in;\n",
             8 * ((STORED + 1) / 2));
    add_text("st.shared.u32 [%%mine], %%t; st.shared.u32 [%%mine+4], %%t;\n");
    for (unsigned i = 0; i < 64; i += 8)
        add_text("st.local.u64 [stack+%u], 0;\n", i);
    add_loads();
    add_statements(0, 20 + random_below(60));
    add_stores();
    add_text("ret; }\n");
}

/* ---- running --------------------------------------------------------------------------------- */

#define OUT_WORDS (THREADS * 2 * ((STORED + 1) / 2))

struct outcome {
    uint32_t out[OUT_WORDS];
    uint32_t own[THREADS * 16];
};

static bool
run_kernel(enum hed_ptx_shape shape, struct outcome *o)
{
    static _Alignas(64) uint32_t in[THREADS * 32];
    const uint64_t params[] = {(uintptr_t)in, (uintptr_t)o->own, (uintptr_t)o->out};
    const struct exec_launch launch = {
        .threads = THREADS, .params = params, .size = sizeof(params)};
    struct exec e;
    int err;

    state = UINT64_C(88172645463325252);
    for (unsigned i = 0; i < THREADS * 32; i++)
        in[i] = random_below(4) ? random_word() : random_word() >> random_below(32);
    memset(o, 0, sizeof(*o));
    exec_open(&e, hed_buf_cstr(&text), shape);
    e.options.level = 1;
    err = exec_run(&e, "k", &launch);
    if (err)
        printf("%s, trap %u at line %u\n", e.why.text, e.trap, e.trap_line);
    exec_close(&e);
    return err == 0;
}

static bool
same_outcome(unsigned number, const char *name, const struct outcome *a, const struct outcome *b)
{
    const unsigned each = OUT_WORDS / THREADS;

    for (unsigned i = 0; i < OUT_WORDS; i++) {
        if (a->out[i] != b->out[i]) {
            printf("kernel %u, thread %u, word %u (byte %u): %08" PRIx32 " in the baseline tier, "
                   "%08" PRIx32 " %s\n",
                   number, i / each, i % each, i % each * 4, a->out[i], b->out[i], name);
            return false;
        }
    }
    if (memcmp(a->own, b->own, sizeof(a->own)) == 0)
        return true;
    printf("kernel %u: memory differs, %s\n", number, name);
    return false;
}

int
main(int argc, char **argv)
{
    static _Alignas(64) struct outcome baseline, other;
    const unsigned first = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    const unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    unsigned bad = 0;

    hed_buf_init(&text, 16 << 20);
    for (unsigned i = first; i < first + count; i++) {
        make_kernel(i);

        bool good = run_kernel(EXEC_BASELINE, &baseline);

        /* In the scalar shape, the harness runs each thread as if it were alone. */
        if (!meets)
            good = good && run_kernel(HED_PTX_SCALAR, &other) &&
                   same_outcome(i, "in the scalar shape", &baseline, &other);
        good = good && run_kernel(HED_PTX_WARP, &other) &&
               same_outcome(i, "in the warp shape", &baseline, &other);
        if (!good && bad++ == 0)
            printf("%s\n", hed_buf_cstr(&text));
    }
    hed_buf_fini(&text);
    printf("%u of %u kernels differ\n", bad, count);
    return bad != 0;
}
