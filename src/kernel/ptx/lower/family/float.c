/* Arithmetic of f32 and f64.
 *
 * For rounding to nearest, LLVM's operations are what PTX asks for. In the other directions, f32 is
 * computed in f64 together with the sign of the error, and rounded to f32 by hand; f64 goes to
 * helpers that compute with integers.
 *
 * NaNs are those of a GPU: in f32 there is one, 0x7fffffff; f64 keeps an operand's NaN, made quiet,
 * and otherwise produces 0xfff8000000000000.
 */
#include "kernel/ptx/lower/family/math.h"

#include <stdio.h>

struct sources {
    LLVMValueRef v[3]; /* floats; flushed if the instruction says .ftz */
    unsigned n;
};

static enum hed_ptx_round
rounding_mode(const struct hed_ptx_form *f)
{
    return f->round ? f->round : HED_PTX_ROUND_RN;
}

static LLVMValueRef
fma_of(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    return hed_lower_intrinsic(l, "llvm.fma", LLVMTypeOf(a), (LLVMValueRef[]){a, b, c}, 3);
}

static LLVMValueRef
negate_float(struct hed_lower *l, LLVMValueRef v)
{
    return LLVMBuildFNeg(l->b, v, "");
}

static LLVMValueRef
float_is_nan(struct hed_lower *l, LLVMValueRef v)
{
    return LLVMBuildFCmp(l->b, LLVMRealUNO, v, v, "");
}

/* ---- results --------------------------------------------------------------------------------- */

/* The NaN that an f64 operation gives is an operand's. If several operands are NaN, a GPU takes the
 * second, then the third; of a division, the first. */
static LLVMValueRef
nan_of_f64(struct hed_lower *l, const struct sources *s)
{
    LLVMValueRef r = hed_lower_int(l, l->i64, hed_real_f64.nan);
    LLVMValueRef quiet = hed_lower_int(l, l->i64, UINT64_C(1) << 51);
    const bool is_div = l->inst->form->op == HED_PTX_OP_DIV;
    const unsigned rising[] = {0, 2, 1};

    for (unsigned k = 0; k < 3; k++) {
        const unsigned i = is_div ? 2 - k : rising[k];

        if (i >= s->n)
            continue;
        r = hed_lower_select(l, float_is_nan(l, s->v[i]),
                             LLVMBuildOr(l->b, hed_cast(l, s->v[i], l->i64), quiet, ""), r);
    }
    return r;
}

static bool
takes_any_nan(struct hed_lower *l)
{
    const struct hed_ptx_operand *to = &l->inst->operands[0];

    return to->kind == HED_PTX_OPERAND_REG && l->shape->takes_any_nan &&
           l->shape->takes_any_nan(l, to->reg);
}

/* The bits of a result that is rounded already, after .ftz, .sat and the choice of NaN. */
static LLVMValueRef
finish_float(struct hed_lower *l, enum hed_ptx_type t, LLVMValueRef r, const struct sources *s,
             bool any_nan)
{
    const struct hed_real *f = hed_real_of(t);
    LLVMValueRef bits = hed_cast(l, r, t == HED_PTX_TYPE_F64 ? l->i64 : l->i32);

    if (HED_SAID(l, SAT))
        return hed_real_saturate(l, bits, f);
    if (any_nan)
        return bits;
    return hed_lower_select(l, float_is_nan(l, r),
                            t == HED_PTX_TYPE_F64 ? nan_of_f64(l, s) : hed_like(l, bits, f->nan),
                            bits);
}

static enum hed_ptx_type
source_type(const struct hed_ptx_form *f, unsigned i, unsigned n)
{
    return i + 1 == n ? f->types[0] : f->types[f->ntypes - 1];
}

/* ---- to nearest ------------------------------------------------------------------------------ */

static LLVMValueRef
compute_nearest(struct hed_lower *l, const struct sources *s)
{
    LLVMValueRef a = s->v[0];

    switch (l->inst->form->op) {
    case HED_PTX_OP_ADD:
        return LLVMBuildFAdd(l->b, a, s->v[1], "");
    case HED_PTX_OP_SUB:
        return LLVMBuildFSub(l->b, a, s->v[1], "");
    case HED_PTX_OP_MUL:
        return LLVMBuildFMul(l->b, a, s->v[1], "");
    case HED_PTX_OP_DIV:
        return LLVMBuildFDiv(l->b, a, s->v[1], "");
    case HED_PTX_OP_RCP:
        return LLVMBuildFDiv(l->b, hed_lower_float(l, hed_lane_type(a), 1), a, "");
    case HED_PTX_OP_SQRT:
        return hed_one(l, "llvm.sqrt", a);
    default:
        return fma_of(l, a, s->v[1], s->v[2]);
    }
}

/* The f32 result, or zero if it is subnormal after rounding. To find out, the result is computed
 * again, scaled up far enough not to be subnormal. Sums are never inexact in that range. */
static LLVMValueRef
flush_nearest(struct hed_lower *l, const struct sources *s, LLVMValueRef r)
{
    LLVMValueRef up = hed_lower_float(l, l->f32, 0x1p64);
    LLVMValueRef least = hed_lower_float(l, l->f32, 0x1p-62);
    LLVMValueRef scaled, tiny, bits;
    struct sources big = *s;

    switch (l->inst->form->op) {
    case HED_PTX_OP_MUL:
    case HED_PTX_OP_DIV:
        big.v[0] = LLVMBuildFMul(l->b, s->v[0], up, "");
        break;
    case HED_PTX_OP_FMA:
    case HED_PTX_OP_MAD:
        big.v[0] = LLVMBuildFMul(l->b, s->v[0], up, "");
        big.v[2] = LLVMBuildFMul(l->b, s->v[2], up, "");
        break;
    default:
        return hed_cast(l, hed_real_flush(l, hed_cast(l, r, l->i32), &hed_real_f32), l->f32);
    }
    scaled = hed_one(l, "llvm.fabs", compute_nearest(l, &big));
    tiny = LLVMBuildFCmp(l->b, LLVMRealOLT, scaled, least, "");
    bits = hed_cast(l, r, l->i32);
    bits = hed_lower_select(
        l, tiny, LLVMBuildAnd(l->b, bits, hed_like(l, bits, UINT64_C(1) << 31), ""), bits);
    return hed_cast(l, bits, l->f32);
}

/* ---- in a direction -------------------------------------------------------------------------- */

/* When rounding down, a sum that is zero is -0 unless both parts are +0. */
static LLVMValueRef
zero_sum(struct hed_lower *l, LLVMValueRef sum, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef both = LLVMBuildOr(l->b, hed_cast(l, a, l->i64), hed_cast(l, b, l->i64), "");
    LLVMValueRef sign = LLVMBuildAnd(l->b, both, hed_like(l, both, UINT64_C(1) << 63), "");
    LLVMValueRef zero = LLVMBuildFCmp(l->b, LLVMRealOEQ, sum, LLVMConstNull(LLVMTypeOf(sum)), "");

    return hed_lower_select(l, zero, hed_cast(l, sign, l->f64), sum);
}

/* The result of f32 sources in f64. *off has the sign of what rounding to f64 lost, or is NULL if
 * that was nothing. */
static LLVMValueRef
in_double(struct hed_lower *l, const struct sources *s, LLVMValueRef *off)
{
    const enum hed_ptx_op op = l->inst->form->op;
    LLVMTypeRef t = hed_lower_lanes(l, l->f64);
    LLVMValueRef a = LLVMBuildFPExt(l->b, s->v[0], t, "");
    LLVMValueRef b = s->n > 1 ? LLVMBuildFPExt(l->b, s->v[1], t, "") : NULL;
    LLVMValueRef r;

    *off = NULL;
    switch (op) {
    case HED_PTX_OP_MUL:
        return LLVMBuildFMul(l->b, a, b, "");
    case HED_PTX_OP_RCP:
        b = a;
        a = hed_lower_float(l, l->f64, 1);
        __attribute__((fallthrough));
    case HED_PTX_OP_DIV:
        /* The quotient is off by rest / b, whose sign depends on that of b. */
        r = LLVMBuildFDiv(l->b, a, b, "");
        *off = hed_two(l, "llvm.copysign", hed_lower_float(l, l->f64, 1), b);
        *off = LLVMBuildFMul(l->b, fma_of(l, negate_float(l, r), b, a), *off, "");
        return r;
    case HED_PTX_OP_SQRT:
        r = hed_one(l, "llvm.sqrt", a);
        *off = fma_of(l, negate_float(l, r), r, a);
        return r;
    case HED_PTX_OP_SUB:
        b = negate_float(l, b);
        break;
    case HED_PTX_OP_ADD:
        break;
    default:
        a = LLVMBuildFMul(l->b, a, b, "");
        b = LLVMBuildFPExt(l->b, s->v[2], t, "");
        break;
    }
    r = hed_real_two_sum(l, a, b, off);
    return rounding_mode(l->inst->form) == HED_PTX_ROUND_RM ? zero_sum(l, r, a, b) : r;
}

/* Rounds to f32: to nearest first, and then one step back where that went the wrong way. */
static LLVMValueRef
round_in_direction(struct hed_lower *l, LLVMValueRef wide, LLVMValueRef off)
{
    const enum hed_ptx_round mode = rounding_mode(l->inst->form);
    LLVMValueRef nought = LLVMConstNull(LLVMTypeOf(wide));
    LLVMValueRef near = LLVMBuildFPTrunc(l->b, wide, hed_lower_lanes(l, l->f32), "");
    LLVMValueRef bits = hed_cast(l, near, l->i32);
    LLVMValueRef sign = LLVMBuildAShr(l->b, bits, hed_like(l, bits, 31), "");
    LLVMValueRef away = LLVMBuildOr(l->b, sign, hed_like(l, bits, 1), ""); /* a step up */
    LLVMValueRef rest, below, above, step, wrong;

    /* Where near is infinite and wide is not, rest is infinite and has the right sign. */
    rest = LLVMBuildFSub(l->b, wide, LLVMBuildFPExt(l->b, near, LLVMTypeOf(wide), ""), "");
    if (off)
        rest = hed_lower_select(l, LLVMBuildFCmp(l->b, LLVMRealOEQ, rest, nought, ""), off, rest);
    below = LLVMBuildFCmp(l->b, LLVMRealOLT, rest, nought, "");
    above = LLVMBuildFCmp(l->b, LLVMRealOGT, rest, nought, "");
    if (mode == HED_PTX_ROUND_RZ) {
        step = hed_like(l, bits, UINT64_MAX);
        wrong =
            hed_lower_select(l, hed_icmp(l, LLVMIntSLT, bits, hed_like(l, bits, 0)), above, below);
    } else {
        step = mode == HED_PTX_ROUND_RP ? away : LLVMBuildNeg(l->b, away, "");
        wrong = mode == HED_PTX_ROUND_RP ? above : below;
    }
    bits = hed_lower_select(l, wrong, LLVMBuildAdd(l->b, bits, step, ""), bits);
    return hed_cast(l, bits, l->f32);
}

static LLVMValueRef
directed_f32(struct hed_lower *l, const struct sources *s)
{
    const struct hed_rounding how = {.mode = rounding_mode(l->inst->form), .ftz = true};
    LLVMValueRef off, wide = in_double(l, s, &off);

    if (!HED_SAID(l, FTZ))
        return round_in_direction(l, wide, off);
    if (off)
        wide = hed_real_odd(l, wide, off);
    wide = hed_real_narrow(l, hed_cast(l, wide, l->i64), &hed_real_f64, &hed_real_f32, how);
    return hed_cast(l, hed_trunc(l, wide, l->i32), l->f32);
}

static LLVMValueRef
directed_f64(struct hed_lower *l, const struct sources *s)
{
    LLVMValueRef args[4];
    const char *name;

    switch (l->inst->form->op) {
    case HED_PTX_OP_ADD:
        name = "hed_ptx_add_f64";
        break;
    case HED_PTX_OP_SUB:
        name = "hed_ptx_sub_f64";
        break;
    case HED_PTX_OP_MUL:
        name = "hed_ptx_mul_f64";
        break;
    case HED_PTX_OP_DIV:
        name = "hed_ptx_div_f64";
        break;
    case HED_PTX_OP_RCP:
        name = "hed_ptx_rcp_f64";
        break;
    case HED_PTX_OP_SQRT:
        name = "hed_ptx_sqrt_f64";
        break;
    default:
        name = "hed_ptx_fma_f64";
        break;
    }
    for (unsigned i = 0; i < s->n; i++)
        args[i] = hed_cast(l, s->v[i], l->i64);
    args[s->n] = hed_lower_int(l, l->i32, rounding_mode(l->inst->form));
    return hed_cast(l, hed_lower_helper(l, name, l->i64, args, s->n + 1), l->f64);
}

/* ---- approximations -------------------------------------------------------------------------- */

static LLVMValueRef
approx_div(struct hed_lower *l, const struct sources *s)
{
    LLVMValueRef r = LLVMBuildFDiv(l->b, s->v[0], s->v[1], "");
    LLVMValueRef b = hed_one(l, "llvm.fabs", s->v[1]);
    LLVMValueRef big, zero;

    if (HED_SAID(l, FULL))
        return r;
    /* "For 2^126 < |b| < 2^128, if a is infinity, div.approx.f32 returns NaN, otherwise it returns
     * 0": it multiplies with the reciprocal, and that is tiny. PTX ISA, div. */
    big = LLVMBuildFCmp(l->b, LLVMRealOGT, b, hed_lower_float(l, l->f32, 0x1p126), "");
    zero = hed_lower_intrinsic(l, "llvm.copysign", LLVMTypeOf(b),
                               (LLVMValueRef[]){LLVMConstNull(LLVMTypeOf(b)), s->v[1]}, 2);
    return hed_lower_select(l, big, LLVMBuildFMul(l->b, s->v[0], zero, ""), r);
}

static LLVMValueRef
compute_approx(struct hed_lower *l, const struct sources *s)
{
    LLVMValueRef a = s->v[0];

    switch (l->inst->form->op) {
    case HED_PTX_OP_DIV:
        return approx_div(l, s);
    case HED_PTX_OP_RSQRT:
        return hed_lower_rsqrt(l, a);
    case HED_PTX_OP_SIN:
    case HED_PTX_OP_COS:
    case HED_PTX_OP_LG2:
    case HED_PTX_OP_EX2:
    case HED_PTX_OP_TANH:
        return hed_lower_approx(l, l->inst->form->op, a);
    default:
        return compute_nearest(l, s);
    }
}

/* rcp and rsqrt .approx.ftz.f64 use the upper half of the number; the rest is zero. */
static void
lower_high_word(struct hed_lower *l)
{
    const bool is_rcp = l->inst->form->op == HED_PTX_OP_RCP;
    LLVMValueRef a = hed_operand(l, 1, HED_PTX_TYPE_F64);
    LLVMValueRef r =
        hed_lower_helper(l, is_rcp ? "hed_ptx_rcp_high" : "hed_ptx_rsqrt_high", l->i64, &a, 1);

    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_F64, r);
}

/* ---- signs ----------------------------------------------------------------------------------- */

static void
lower_sign(struct hed_lower *l, enum hed_ptx_type t, const struct hed_real *f)
{
    const uint64_t sign = UINT64_C(1) << (f->bits - 1);
    const bool is_abs = l->inst->form->op == HED_PTX_OP_ABS;
    LLVMValueRef in = hed_operand(l, 1, t);
    LLVMValueRef r, nan;

    if (HED_SAID(l, FTZ))
        in = hed_real_flush(l, in, f);
    r = is_abs ? LLVMBuildAnd(l->b, in, hed_like(l, in, ~sign), "")
               : LLVMBuildXor(l->b, in, hed_like(l, in, sign), "");
    /* A GPU adds 0 to do this, so NaNs keep their sign. */
    nan = t == HED_PTX_TYPE_F32 ? hed_like(l, in, f->nan)
                                : LLVMBuildOr(l->b, in, hed_like(l, in, UINT64_C(1) << 51), "");
    if (!takes_any_nan(l))
        r = hed_lower_select(l, hed_real_is_nan(l, in, f), nan, r);
    hed_lower_set(l, &l->inst->operands[0], t, r);
}

/* ---- pairs of f32, and sums of mixed types --------------------------------------------------- */

/* f32x2: each half on its own, like the f32 instruction with the same words. */
static LLVMValueRef
half_of_pair(struct hed_lower *l, const struct sources *s)
{
    const bool rn = rounding_mode(l->inst->form) == HED_PTX_ROUND_RN;
    LLVMValueRef r = rn ? compute_nearest(l, s) : directed_f32(l, s);
    LLVMValueRef bits;

    if (rn && HED_SAID(l, FTZ))
        r = flush_nearest(l, s, r);
    bits = hed_cast(l, r, l->i32);
    return hed_lower_select(l, float_is_nan(l, r), hed_like(l, bits, hed_real_f32.nan), bits);
}

static void
lower_f32x2(struct hed_lower *l)
{
    const struct hed_ptx_inst *i = l->inst;
    LLVMValueRef upper = hed_lower_int(l, l->i64, 32);
    LLVMValueRef r[2];

    for (unsigned h = 0; h < 2; h++) {
        struct sources s = {.n = i->noperands - 1u};

        for (unsigned k = 0; k < s.n && k < 3; k++) {
            LLVMValueRef v = hed_operand(l, k + 1, HED_PTX_TYPE_F32X2);

            v = hed_trunc(l, h ? LLVMBuildLShr(l->b, v, upper, "") : v, l->i32);
            if (HED_SAID(l, FTZ))
                v = hed_real_flush(l, v, &hed_real_f32);
            s.v[k] = hed_cast(l, v, l->f32);
        }
        r[h] = hed_zext(l, half_of_pair(l, &s), l->i64);
    }
    r[1] = LLVMBuildShl(l->b, r[1], upper, "");
    hed_lower_set(l, &i->operands[0], HED_PTX_TYPE_F32X2, LLVMBuildOr(l->b, r[0], r[1], ""));
}

/* The sources of an instruction from its operands as integers. add.f32.f16 and the like: the first
 * source (of fma: the factors) has the second type. */
static struct sources
float_sources(struct hed_lower *l, LLVMValueRef *in, unsigned n)
{
    const struct hed_ptx_form *f = l->inst->form;
    struct sources s = {.n = n};

    for (unsigned i = 0; i < n; i++) {
        const enum hed_ptx_type t = source_type(f, i, n);

        if (t != f->types[0]) {
            s.v[i] = hed_real_widen16(l, in[i], hed_real_of(t));
            continue;
        }
        /* 2 to the power of anything tiny is 1. */
        if (HED_SAID(l, FTZ) && f->op != HED_PTX_OP_EX2)
            in[i] = hed_real_flush(l, in[i], hed_real_of(t));
        s.v[i] = hed_cast(l, in[i], hed_lower_float_type(l, t));
    }
    return s;
}

/* ---- entry point ----------------------------------------------------------------------------- */

static LLVMValueRef
float_result(struct hed_lower *l, LLVMValueRef *in, unsigned n, bool any_nan)
{
    const struct hed_ptx_form *f = l->inst->form;
    const enum hed_ptx_type t = f->types[0];
    const struct sources s = float_sources(l, in, n);
    LLVMValueRef r;

    if (HED_SAID(l, APPROX) || HED_SAID(l, FULL)) {
        r = compute_approx(l, &s);
        if (HED_SAID(l, FTZ))
            r = hed_cast(l, hed_real_flush(l, hed_cast(l, r, l->i32), hed_real_of(t)), l->f32);
    } else if (rounding_mode(f) != HED_PTX_ROUND_RN) {
        r = t == HED_PTX_TYPE_F64 ? directed_f64(l, &s) : directed_f32(l, &s);
    } else {
        r = compute_nearest(l, &s);
        if (HED_SAID(l, FTZ))
            r = flush_nearest(l, &s, r);
    }
    return finish_float(l, t, r, &s, any_nan);
}

static LLVMValueRef
long_result(struct hed_lower *l, LLVMValueRef *in, unsigned n)
{
    return float_result(l, in, n, false);
}

/* Is the instruction's code too long to repeat it? */
static bool
is_long_float(const struct hed_ptx_form *f)
{
    switch (f->op) {
    case HED_PTX_OP_RSQRT:
    case HED_PTX_OP_SIN:
    case HED_PTX_OP_COS:
    case HED_PTX_OP_LG2:
    case HED_PTX_OP_EX2:
    case HED_PTX_OP_TANH:
        return true;
    default:
        return rounding_mode(f) != HED_PTX_ROUND_RN && f->types[0] == HED_PTX_TYPE_F32;
    }
}

static void
lower_arithmetic(struct hed_lower *l, enum hed_ptx_type t)
{
    const struct hed_ptx_form *f = l->inst->form;
    const struct hed_ptx_operand *to = &l->inst->operands[0];
    const unsigned n = l->inst->noperands - 1u;
    const bool any_nan = takes_any_nan(l);
    LLVMValueRef in[3];

    for (unsigned i = 0; i < n && i < 3; i++) {
        in[i] = hed_operand(l, i + 1, source_type(f, i, n));
        /* Of a product and a sum, one factor may be known. */
        if (l->shape->hide && to->kind == HED_PTX_OPERAND_REG && (n < 3 || i > 0))
            in[i] = l->shape->hide(l, to->reg, in[i]);
    }
    hed_lower_set(l, to, t,
                  is_long_float(f)
                      ? hed_lower_apart(l, in, n, hed_lower_int_type(l, t), long_result)
                      : float_result(l, in, n, any_nan));
}

void
hed_lower_real(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const enum hed_ptx_type t = f->types[0];

    if (f->op == HED_PTX_OP_ABS || f->op == HED_PTX_OP_NEG)
        lower_sign(l, t, hed_real_of(t));
    else if (f->op == HED_PTX_OP_MIN || f->op == HED_PTX_OP_MAX)
        hed_lower_least(l, hed_real_of(t));
    else if (t == HED_PTX_TYPE_F32X2)
        lower_f32x2(l);
    else if (t == HED_PTX_TYPE_F64 && HED_SAID(l, APPROX))
        lower_high_word(l);
    else
        lower_arithmetic(l, t);
}
