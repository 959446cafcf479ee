/* Random instructions from forms, for what random_code.c does not make by rules. */
#include <stdio.h>
#include <string.h>

#include "ptx/exec/random_code.h"

/* A letter behind @ stands for a register: r d of 32 and 64 bits, f g floats and doubles, h of 16
 * bits, p a predicate; R is a register or a number. */
static const char *const computes[] = {
    "add.s32 @r, @r, @R",
    "sub.s32 @r, @r, @R",
    "mul.lo.s32 @r, @r, @R",
    "mul.hi.u32 @r, @r, @r",
    "mad.lo.s32 @r, @r, @r, @R",
    "div.s32 @r, @r, @r",
    "rem.u32 @r, @r, @r",
    "min.s32 @r, @r, @R",
    "max.u32 @r, @r, @R",
    "abs.s32 @r, @r",
    "neg.s32 @r, @r",
    "sad.u32 @r, @r, @r, @r",
    "add.sat.s32 @r, @r, @r",
    "and.b32 @r, @r, @R",
    "or.b32 @r, @r, @r",
    "xor.b32 @r, @r, @r",
    "not.b32 @r, @r",
    "shl.b32 @r, @r, @R",
    "shr.s32 @r, @r, @r",
    "shr.u32 @r, @r, @R",
    "shf.l.wrap.b32 @r, @r, @r, @r",
    "shf.r.clamp.b32 @r, @r, @r, @r",
    "popc.b32 @r, @r",
    "clz.b32 @r, @r",
    "brev.b32 @r, @r",
    "bfind.s32 @r, @r",
    "bfe.s32 @r, @r, @r, @r",
    "bfi.b32 @r, @r, @r, @r, @r",
    "prmt.b32 @r, @r, @r, @r",
    "lop3.b32 @r, @r, @r, @r, 0x96",
    "lop3.b32 @r, @r, @r, @r, 0xe8",
    "dp4a.s32.u32 @r, @r, @r, @r",
    "dp2a.lo.u32.s32 @r, @r, @r, @r",
    "mul24.lo.s32 @r, @r, @r",
    "vadd2.s32.s32.s32 @r, @r, @r, @r",
    "min.u16x2 @r, @r, @r",
    "add.cc.u32 @r, @r, @r; addc.u32 @r, @r, @r",
    "sub.cc.u32 @r, @r, @r; subc.cc.u32 @r, @r, @r",
    "add.s64 @d, @d, @d",
    "sub.s64 @d, @d, @d",
    "mul.lo.s64 @d, @d, @d",
    "mul.hi.s64 @d, @d, @d",
    "mul.wide.s32 @d, @r, @R",
    "mad.wide.u32 @d, @r, @r, @d",
    "div.u64 @d, @d, @d",
    "rem.s64 @d, @d, @d",
    "shl.b64 @d, @d, @r",
    "shr.s64 @d, @d, @r",
    "xor.b64 @d, @d, @d",
    "popc.b64 @r, @d",
    "clz.b64 @r, @d",
    "bfe.u64 @d, @d, @r, @r",
    "min.s64 @d, @d, @d",
    "add.u16 @h, @h, @h",
    "mul.lo.s16 @h, @h, @h",
    "mul.wide.s16 @r, @h, @h",
    "shr.s16 @h, @h, @r",
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
    "add.f16x2 @r, @r, @r",
    "fma.rn.f16x2 @r, @r, @r, @r",
    "mul.bf16x2 @r, @r, @r",
    "fma.rn.relu.bf16x2 @r, @r, @r, @r",
    "add.f16 @h, @h, @h",
    "fma.rn.f16 @h, @h, @h, @h",
    "max.bf16x2 @r, @r, @r",
    "cvt.rn.f32.s32 @f, @r",
    "cvt.rz.f32.u32 @f, @r",
    "cvt.rzi.s32.f32 @r, @f",
    "cvt.rni.u32.f32 @r, @f",
    "cvt.rmi.f32.f32 @f, @f",
    "cvt.sat.f32.f32 @f, @f",
    "cvt.rn.f32.f64 @f, @g",
    "cvt.f64.f32 @g, @f",
    "cvt.rn.f64.s64 @g, @d",
    "cvt.rzi.s64.f64 @d, @g",
    "cvt.rn.f16.f32 @h, @f",
    "cvt.f32.f16 @f, @h",
    "cvt.rn.bf16.f32 @h, @f",
    "cvt.s64.s32 @d, @r",
    "cvt.u32.u64 @r, @d",
    "cvt.s8.s32 @r, @r",
    "cvt.sat.u8.s32 @r, @r",
    "cvt.u16.u32 @h, @r",
    "cvt.rn.f16x2.f32 @r, @f, @f",
    "mov.b32 @r, @f",
    "mov.b32 @f, @r",
    "mov.b64 @d, @g",
    "mov.b64 @g, @d",
    "mov.b64 @d, {@r, @r}",
    "mov.b64 {@r, @r}, @d",
    "mov.b32 {@h, @h}, @r",
    "setp.lt.s32 @p, @r, @R",
    "setp.ge.u32 @p, @r, @r",
    "setp.eq.s32.and @p, @r, @r, @p",
    "setp.ne.u64 @p, @d, @d",
    "setp.gt.f32 @p, @f, @f",
    "setp.leu.f32 @p, @f, @f",
    "setp.num.f64 @p, @g, @g",
    "setp.lt.s16 @p, @h, @h",
    "setp.lt.f32.or @p|@p, @f, @f, !@p",
    "and.pred @p, @p, @p",
    "xor.pred @p, @p, @p",
    "not.pred @p, @p",
    "selp.b32 @r, @r, @R, @p",
    "selp.f64 @g, @g, @g, @p",
    "slct.f32.s32 @f, @f, @f, @r",
    "set.lt.u32.f32 @r, @f, @f",
    "testp.normal.f32 @p, @f",
    "set.ge.f32.s32 @f, @r, @r",
};

/* Memory that no other thread uses: %own is global, %mine shared, %depot local. */
static const char *const accesses[] = {
    "st.global.u32 [%own], @r",
    "ld.global.u32 @r, [%own]",
    "st.global.v2.f32 [%own+8], {@f, @f}",
    "ld.global.v4.u32 {@r, @r, @r, @r}, [%own]",
    "ld.global.s8 @r, [%own+5]",
    "st.global.u16 [%own+6], @h",
    "ld.global.u16 @r, [%own+2]",
    "st.global.f64 [%own+16], @g",
    "atom.global.add.u32 @r, [%own+4], @r",
    "atom.global.cas.b64 @d, [%own+24], @d, @d",
    "red.global.max.s32 [%own+8], @r",
    "atom.global.add.f32 @f, [%own+12], @f",
    ("and.b32 %s6, @r, 60; cvt.u64.u32 %a3, %s6; add.u64 %a3, %a3, %depot; "
     "st.local.u32 [%a3], @r"),
    ("and.b32 %s6, @r, 60; cvt.u64.u32 %a3, %s6; add.u64 %a3, %a3, %depot; "
     "ld.local.u32 @r, [%a3]"),
    "st.shared.f32 [%mine+4], @f",
    "ld.shared.u32 @r, [%mine+4]",
    "st.shared.u8 [%mine+1], @r",
    "st.param.b32 [x], @r; call (y), mix, (x); ld.param.b32 @r, [y]",
};

/* For all lanes of a warp at once. */
static const char *const meetings[] = {
    "shfl.sync.bfly.b32 @r, @r, 5, 31, -1", "shfl.sync.idx.b32 @r|@p, @r, @r, 31, -1",
    "shfl.sync.up.b32 @r, @r, 3, 0, -1",    "vote.sync.ballot.b32 @r, @p, -1",
    "vote.sync.any.pred @p, @p, -1",        "redux.sync.add.s32 @r, @r, -1",
    "match.any.sync.b32 @r, @r, -1",        "shfl.sync.down.b32 @r, @r, 1, 0x181f, -1",
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void
make_form(struct random_kernel *k, const char *form, const char *guard)
{
    char line[320];
    size_t n = 0;

    if (!strchr(form, ';'))
        n = (size_t)snprintf(line, sizeof(line), "%s", guard);
    for (; *form && n < sizeof(line) - 24; form++) {
        char kind = *form == '@' ? *++form : 0;

        if (kind == 'R' && random_pick(k, 3) == 0) {
            const uint32_t number = (uint32_t)random_next(&k->state) >> random_pick(k, 32);

            n += (size_t)snprintf(line + n, sizeof(line) - n, "%d", (int)number);
            continue;
        }
        kind = kind == 'R' ? 'r' : kind;
        if (kind)
            n += (size_t)snprintf(line + n, sizeof(line) - n, "%%%c%u", kind,
                                  random_pick(k, kind == 'r' ? 8 : 4));
        else
            line[n++] = *form;
    }
    line[n] = 0;
    random_line(k, "%s;", line);
}

void
random_form(struct random_kernel *k)
{
    char guard[16];

    random_guard(k, guard);
    make_form(k, computes[random_pick(k, COUNT(computes))], guard);
}

void
random_access(struct random_kernel *k)
{
    char guard[16];

    random_guard(k, guard);
    make_form(k, accesses[random_pick(k, COUNT(accesses))], guard);
}

void
random_meeting(struct random_kernel *k)
{
    make_form(k, meetings[random_pick(k, COUNT(meetings))], "");
}
