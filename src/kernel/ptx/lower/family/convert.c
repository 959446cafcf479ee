/* cvt and cvt.pack.
 *
 * Integer to integer: truncated, extended or clamped. Integer to float: converted exactly where f32
 * or f64 can hold the integer, then rounded once; a helper rounds integers of 64 bits in any
 * direction but to nearest. Float to integer: rounded to a whole number and clamped; a NaN gives 0,
 * or 0x80.. if the source or the destination has 64 bits, as on a GPU.
 */
#include "kernel/ptx/lower/family/math.h"

#include <string.h>

#include "kernel/ptx/lower/family/family.h"

static unsigned
type_bits(enum hed_ptx_type t)
{
    return hed_ptx_types[t].bits;
}

static struct hed_rounding
rounding_of(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;

    return (struct hed_rounding){.mode = f->round ? f->round : HED_PTX_ROUND_RN,
                                 .ftz = HED_SAID(l, FTZ) && f->types[0] == HED_PTX_TYPE_F32,
                                 .satfinite = HED_SAID(l, SATFINITE)};
}

/* ---- integers -------------------------------------------------------------------------------- */

/* v, of type `from`, clamped to the range of `to`; its width stays. */
static LLVMValueRef
clamp_int(struct hed_lower *l, LLVMValueRef v, enum hed_ptx_type from, enum hed_ptx_type to)
{
    const bool to_signed = hed_is_signed(to);
    const uint64_t most = to_signed             ? (UINT64_C(1) << (type_bits(to) - 1)) - 1
                          : type_bits(to) == 64 ? UINT64_MAX
                                                : (UINT64_C(1) << type_bits(to)) - 1;
    const bool narrower = type_bits(to) - to_signed < type_bits(from) - hed_is_signed(from);

    if (!hed_is_signed(from))
        return narrower ? hed_two(l, "llvm.umin", v, hed_like(l, v, most)) : v;
    if (narrower)
        v = hed_two(l, "llvm.smin", v, hed_like(l, v, most));
    if (!to_signed)
        return hed_two(l, "llvm.smax", v, hed_like(l, v, 0));
    return narrower ? hed_two(l, "llvm.smax", v, hed_like(l, v, ~most)) : v;
}

static void
int_to_int(struct hed_lower *l, enum hed_ptx_type to, enum hed_ptx_type from)
{
    LLVMValueRef v = hed_operand(l, 1, from);

    if (HED_SAID(l, SAT))
        v = clamp_int(l, v, from, to);
    v = hed_lower_resize(l, v, hed_lower_int_type(l, to), hed_is_signed(from));
    hed_lower_set(l, &l->inst->operands[0], to, v);
}

/* ---- integer to float ------------------------------------------------------------------------ */

static LLVMValueRef
plain_to_float(struct hed_lower *l, LLVMValueRef v, LLVMTypeRef t, bool is_signed)
{
    t = hed_lower_lanes(l, t);
    return is_signed ? LLVMBuildSIToFP(l->b, v, t, "") : LLVMBuildUIToFP(l->b, v, t, "");
}

/* A 64-bit integer, rounded by a helper to the bits of f. */
static LLVMValueRef
round_long(struct hed_lower *l, LLVMValueRef v, const struct hed_real *f, bool is_signed)
{
    const uint32_t how = rounding_of(l).mode | (uint32_t)is_signed << 8 | (uint32_t)f->bits << 16 |
                         (uint32_t)f->mantissa << 24;
    LLVMValueRef args[] = {v, hed_lower_int(l, l->i32, how)};

    return hed_lower_helper(l, "hed_ptx_round_int", l->i64, args, 2);
}

static void
int_to_real(struct hed_lower *l, enum hed_ptx_type to, enum hed_ptx_type from)
{
    const struct hed_real *f = hed_real_of(to);
    const bool is_signed = hed_is_signed(from);
    const bool rn = rounding_of(l).mode == HED_PTX_ROUND_RN;
    LLVMTypeRef t = hed_lower_int_type(l, to);
    LLVMValueRef v = hed_operand(l, 1, from);

    if (to == HED_PTX_TYPE_F64 && (rn || type_bits(from) < 64)) {
        v = hed_cast(l, plain_to_float(l, v, l->f64, is_signed), l->i64);
    } else if (to == HED_PTX_TYPE_F32 && rn) {
        v = hed_cast(l, plain_to_float(l, v, l->f32, is_signed), l->i32);
    } else if (to == HED_PTX_TYPE_F16 && rn) {
        /* f32 holds every integer that is not infinite in f16. */
        v = hed_real_narrow16(l, plain_to_float(l, v, l->f32, is_signed), f);
    } else if (type_bits(from) < 64) {
        v = hed_cast(l, plain_to_float(l, v, l->f64, is_signed), l->i64);
        v = hed_trunc(l, hed_real_narrow(l, v, &hed_real_f64, f, rounding_of(l)), t);
    } else {
        v = hed_lower_resize(l, round_long(l, v, f, is_signed), t, false);
    }
    if (HED_SAID(l, SAT))
        v = hed_real_saturate(l, v, f);
    hed_lower_set(l, &l->inst->operands[0], to, v);
}

/* ---- float to integer ------------------------------------------------------------------------ */

static LLVMValueRef
round_to_whole(struct hed_lower *l, LLVMValueRef v)
{
    switch (l->inst->form->round) {
    case HED_PTX_ROUND_RNI:
        return hed_one(l, "llvm.roundeven", v);
    case HED_PTX_ROUND_RZI:
        return hed_one(l, "llvm.trunc", v);
    case HED_PTX_ROUND_RMI:
        return hed_one(l, "llvm.floor", v);
    case HED_PTX_ROUND_RPI:
        return hed_one(l, "llvm.ceil", v);
    default:
        return v;
    }
}

/* LLVM's clamping conversion; NaN gives 0. */
static LLVMValueRef
clamped_int(struct hed_lower *l, LLVMValueRef v, LLVMTypeRef t, bool is_signed)
{
    const char *name = is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
    const unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMTypeRef types[] = {hed_lower_lanes(l, t), LLVMTypeOf(v)};
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(l->module, id, types, 2);

    return LLVMBuildCall2(l->b, LLVMIntrinsicGetType(l->context, id, types, 2), f, &v, 1, "");
}

/* The source as f32 or f64, flushed if the instruction says .ftz. */
static LLVMValueRef
float_source(struct hed_lower *l, enum hed_ptx_type from)
{
    const struct hed_real *f = hed_real_of(from);
    LLVMValueRef bits = hed_operand(l, 1, from);

    /* A GPU ignores .ftz when it converts to f16. */
    if (HED_SAID(l, FTZ) && from == HED_PTX_TYPE_F32 && l->inst->form->types[0] != HED_PTX_TYPE_F16)
        bits = hed_real_flush(l, bits, f);
    if (f->bits == 16)
        return hed_real_widen16(l, bits, f);
    return hed_cast(l, bits, hed_lower_float_type(l, from));
}

static void
real_to_int(struct hed_lower *l, enum hed_ptx_type to, enum hed_ptx_type from)
{
    const unsigned bits = type_bits(to);
    LLVMTypeRef t = hed_lower_int_type(l, to);
    LLVMValueRef v = float_source(l, from);
    LLVMValueRef r = clamped_int(l, round_to_whole(l, v), t, hed_is_signed(to));

    if (bits == 64 || from == HED_PTX_TYPE_F64)
        r = hed_lower_select(l, LLVMBuildFCmp(l->b, LLVMRealUNO, v, v, ""),
                             hed_lower_int(l, t, UINT64_C(1) << (bits - 1)), r);
    hed_lower_set(l, &l->inst->operands[0], to, r);
}

/* ---- float to float -------------------------------------------------------------------------- */

/* The bits of an f32, converted to a narrower format, as an integer of the width of t. */
static LLVMValueRef
narrow_f32(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *to, LLVMTypeRef t)
{
    const struct hed_rounding how = rounding_of(l);
    LLVMValueRef r;

    if (how.mode == HED_PTX_ROUND_RN && !how.satfinite && to->bits == 16)
        r = hed_real_narrow16(l, hed_cast(l, bits, l->f32), to);
    else
        r = hed_real_narrow(l, bits, &hed_real_f32, to, how);
    return hed_lower_resize(l, r, t, false);
}

static LLVMValueRef
canonical_nan(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f)
{
    return hed_lower_select(l, hed_real_is_nan(l, bits, f), hed_like(l, bits, f->nan), bits);
}

static LLVMValueRef
widen_real(struct hed_lower *l, enum hed_ptx_type to, enum hed_ptx_type from)
{
    const struct hed_ptx_form *f = l->inst->form;
    LLVMValueRef v = float_source(l, from);
    LLVMValueRef bits;

    /* A conversion that only moves bits leaves NaNs alone. */
    if (to == HED_PTX_TYPE_F32 && from != HED_PTX_TYPE_F16 && !f->round && !f->flags)
        return hed_cast(l, v, l->i32);
    if (HED_SAID(l, FTZ) && from == HED_PTX_TYPE_F32)
        v = hed_cast(l, canonical_nan(l, hed_cast(l, v, l->i32), &hed_real_f32), l->f32);
    if (to == HED_PTX_TYPE_F64 && from != HED_PTX_TYPE_F64)
        v = LLVMBuildFPExt(l->b, v, hed_lower_lanes(l, l->f64), "");
    v = round_to_whole(l, v);
    bits = hed_cast(l, v, to == HED_PTX_TYPE_F64 ? l->i64 : l->i32);
    return to == HED_PTX_TYPE_F32 ? canonical_nan(l, bits, &hed_real_f32) : bits;
}

/* Between equal types: rounding to a whole number, or only .ftz and .sat. */
static LLVMValueRef
convert_same_type(struct hed_lower *l, enum hed_ptx_type t)
{
    const struct hed_real *f = hed_real_of(t);

    if (f->bits > 16)
        return widen_real(l, t, t);
    if (l->inst->form->round)
        return hed_real_narrow16(l, round_to_whole(l, float_source(l, t)), f);
    return canonical_nan(l, hed_operand(l, 1, t), f);
}

/* .rna works on the bits: NaNs only lose their low bits, and .satfinite takes one step back from
 * any result with the exponent of infinity, NaN or not. */
static LLVMValueRef
away_tf32(struct hed_lower *l, LLVMValueRef bits)
{
    LLVMValueRef more = hed_lower_select(l, hed_real_is_nan(l, bits, &hed_real_f32),
                                         hed_like(l, bits, 0), hed_like(l, bits, 0x1000));
    LLVMValueRef r = LLVMBuildAdd(l->b, bits, more, "");
    LLVMValueRef mag, big;

    r = LLVMBuildAnd(l->b, r, hed_like(l, r, 0xffffe000), "");
    if (!HED_SAID(l, SATFINITE))
        return r;
    mag = LLVMBuildAnd(l->b, r, hed_like(l, r, INT32_MAX), "");
    big = hed_icmp(l, LLVMIntUGE, mag, hed_like(l, r, 0x7f800000));
    return hed_lower_select(l, big, LLVMBuildSub(l->b, r, hed_like(l, r, 0x2000), ""), r);
}

static LLVMValueRef
to_tf32(struct hed_lower *l)
{
    LLVMValueRef bits = hed_cast(l, float_source(l, HED_PTX_TYPE_F32), l->i32);

    if (l->inst->form->round == HED_PTX_ROUND_RNA)
        return away_tf32(l, bits);
    bits = hed_real_narrow(l, bits, &hed_real_f32, &hed_real_tf32, rounding_of(l));
    if (HED_SAID(l, RELU))
        bits = hed_real_relu(l, bits, &hed_real_tf32);
    return LLVMBuildShl(l->b, bits, hed_like(l, bits, 13), "");
}

/* Only rounding to nearest, which processors do, with the same NaNs? */
static bool
rounds_to_nearest(struct hed_lower *l)
{
    return rounding_of(l).mode == HED_PTX_ROUND_RN && !HED_SAID(l, FTZ) && !HED_SAID(l, SATFINITE);
}

static void
real_to_real(struct hed_lower *l, enum hed_ptx_type to, enum hed_ptx_type from)
{
    const struct hed_real *f = hed_real_of(to);
    LLVMTypeRef t = hed_lower_int_type(l, to);
    LLVMValueRef r;

    if (to == from) {
        r = convert_same_type(l, to);
    } else if (from == HED_PTX_TYPE_F64 && to == HED_PTX_TYPE_F32 && rounds_to_nearest(l)) {
        r = LLVMBuildFPTrunc(l->b, float_source(l, from), hed_lower_lanes(l, l->f32), "");
        r = hed_cast(l, r, l->i32);
    } else if (from == HED_PTX_TYPE_F64) {
        r = hed_cast(l, float_source(l, from), l->i64);
        r = hed_trunc(l, hed_real_narrow(l, r, &hed_real_f64, f, rounding_of(l)), t);
    } else if (to == HED_PTX_TYPE_TF32) {
        hed_lower_set(l, &l->inst->operands[0], to, to_tf32(l));
        return;
    } else if (f->bits == 16) {
        r = narrow_f32(l, hed_cast(l, float_source(l, from), l->i32), f, t);
    } else {
        r = widen_real(l, to, from);
    }
    if (HED_SAID(l, SAT))
        r = hed_real_saturate(l, r, f);
    if (HED_SAID(l, RELU))
        r = hed_real_relu(l, r, f);
    hed_lower_set(l, &l->inst->operands[0], to, r);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* ue8m0 is only an exponent: rounded up (.rp) or towards zero, clamped to the smallest. */
static LLVMValueRef
to_exponent(struct hed_lower *l, LLVMValueRef bits)
{
    LLVMValueRef mag = LLVMBuildAnd(l->b, bits, hed_like(l, bits, INT32_MAX), "");
    LLVMValueRef e = mag;

    if (l->inst->form->round == HED_PTX_ROUND_RP)
        e = LLVMBuildAdd(l->b, e, hed_like(l, bits, 0x7fffff), "");
    e = LLVMBuildLShr(l->b, e, hed_like(l, bits, 23), "");
    e = hed_two(l, "llvm.umin", e, hed_like(l, bits, 0xfe));
    return hed_lower_select(l, hed_real_is_nan(l, bits, &hed_real_f32), hed_like(l, bits, 0xff), e);
}

static LLVMValueRef
narrow_one(struct hed_lower *l, LLVMValueRef bits, enum hed_ptx_type to)
{
    const struct hed_real *f = hed_real_of(to);
    LLVMValueRef r;

    if (to == HED_PTX_TYPE_UE8M0X2)
        return to_exponent(l, bits);
    if (HED_SAID(l, FTZ))
        bits = hed_real_flush(l, bits, &hed_real_f32);
    r = narrow_f32(l, bits, f, l->i32);
    if (!HED_SAID(l, RELU))
        return r;
    return hed_real_relu(l, r, f);
}

/* Half h of the source as the bits of an f32. */
static LLVMValueRef
half_as_f32(struct hed_lower *l, enum hed_ptx_type from, unsigned h)
{
    LLVMValueRef v = hed_operand(l, 1, from);

    if (h)
        v = LLVMBuildLShr(l->b, v, hed_like(l, v, 16), "");
    return hed_cast(l, hed_real_widen16(l, hed_trunc(l, v, l->i16), hed_real_of(from)), l->i32);
}

/* Two floats (the first is the upper one), or a pair of 16-bit floats, to a narrower pair. */
static void
real_to_pair(struct hed_lower *l, enum hed_ptx_type to, enum hed_ptx_type from)
{
    const unsigned each = type_bits(to) / 2;
    LLVMValueRef low, high, r;

    if (from == HED_PTX_TYPE_F32) {
        high = hed_operand(l, 1, from);
        low = hed_operand(l, 2, from);
    } else {
        high = half_as_f32(l, from, 1);
        low = half_as_f32(l, from, 0);
    }
    high = LLVMBuildShl(l->b, narrow_one(l, high, to), hed_lower_int(l, l->i32, each), "");
    r = LLVMBuildOr(l->b, high, narrow_one(l, low, to), "");
    hed_lower_set(l, &l->inst->operands[0], to,
                  hed_lower_resize(l, r, hed_lower_int_type(l, to), false));
}

/* A narrow float as f16, which holds all of them. `bits` is 32 wide, the float in its low bits. */
static LLVMValueRef
narrow_to_f16(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f)
{
    const unsigned up = 10u - f->mantissa;
    LLVMValueRef zero = hed_like(l, bits, 0);
    LLVMValueRef sign =
        LLVMBuildAnd(l->b, bits, hed_like(l, bits, UINT64_C(1) << (f->bits - 1)), "");
    LLVMValueRef mag = LLVMBuildXor(l->b, bits, sign, "");
    LLVMValueRef r = LLVMBuildShl(l->b, mag, hed_like(l, bits, up), "");
    LLVMValueRef bad;

    sign = LLVMBuildShl(l->b, sign, hed_like(l, bits, 16u - f->bits), "");
    if (f != &hed_real_e5m2) {
        /* The biases differ: multiply by the power of two between them, which is exact. */
        LLVMValueRef v = hed_real_widen16(l, hed_trunc(l, r, l->i16), &hed_real_f16);
        double scale = 1;

        for (unsigned i = f->bias; i < 15; i++)
            scale *= 2;
        v = LLVMBuildFMul(l->b, v, hed_lower_float(l, l->f32, scale), "");
        r = hed_zext(l, hed_real_narrow16(l, v, &hed_real_f16), l->i32);
        bad = f == &hed_real_e4m3 ? hed_icmp(l, LLVMIntEQ, mag, hed_like(l, bits, 0x7f))
                                  : hed_icmp(l, LLVMIntULT, mag, zero);
    } else {
        bad = hed_icmp(l, LLVMIntUGT, mag, hed_like(l, bits, 0x7c));
    }
    r = LLVMBuildOr(l->b, r, sign, "");
    return hed_lower_select(l, bad, hed_like(l, bits, 0x7fff), r);
}

static LLVMValueRef
exponent_to_bf16(struct hed_lower *l, LLVMValueRef e)
{
    LLVMValueRef r = LLVMBuildShl(l->b, e, hed_like(l, e, 7), "");

    r = hed_lower_select(l, hed_icmp(l, LLVMIntEQ, e, hed_like(l, e, 0)), hed_like(l, e, 0x40), r);
    return hed_lower_select(l, hed_icmp(l, LLVMIntEQ, e, hed_like(l, e, 0xff)),
                            hed_like(l, e, 0x7fff), r);
}

static void
pair_to_half_pair(struct hed_lower *l, enum hed_ptx_type to, enum hed_ptx_type from)
{
    const struct hed_real *f = hed_real_of(from);
    const unsigned each = type_bits(from) / 2;
    const uint64_t mask = (UINT64_C(1) << (f ? f->bits : 8)) - 1;
    LLVMValueRef v = hed_lower_resize(l, hed_operand(l, 1, from), l->i32, false);
    LLVMValueRef r = NULL;

    for (unsigned h = 0; h < 2; h++) {
        LLVMValueRef one = LLVMBuildLShr(l->b, v, hed_like(l, v, h * each), "");

        one = LLVMBuildAnd(l->b, one, hed_like(l, one, mask), "");
        one = f ? narrow_to_f16(l, one, f) : exponent_to_bf16(l, one);
        if (HED_SAID(l, RELU))
            one = hed_real_relu(l, one, &hed_real_f16);
        r = h ? LLVMBuildOr(l->b, r, LLVMBuildShl(l->b, one, hed_like(l, one, 16), ""), "") : one;
    }
    hed_lower_set(l, &l->inst->operands[0], to, r);
}

/* ---- cvt.pack -------------------------------------------------------------------------------- */

/* Two clamped integers, a above b, with the low bits of c above both. */
void
hed_op_cvt_pack(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const enum hed_ptx_type to = f->types[0];
    const unsigned each = type_bits(to);
    LLVMValueRef a = clamp_int(l, hed_operand(l, 1, f->types[1]), f->types[1], to);
    LLVMValueRef b = clamp_int(l, hed_operand(l, 2, f->types[1]), f->types[1], to);
    LLVMValueRef mask = hed_like(l, a, (UINT64_C(1) << each) - 1);
    LLVMValueRef r = LLVMBuildAnd(l->b, b, mask, "");

    a = LLVMBuildShl(l->b, LLVMBuildAnd(l->b, a, mask, ""), hed_like(l, a, each), "");
    r = LLVMBuildOr(l->b, r, a, "");
    if (l->inst->noperands > 3) {
        LLVMValueRef c = hed_operand(l, 3, HED_PTX_TYPE_B32);

        r = LLVMBuildOr(l->b, r, LLVMBuildShl(l->b, c, hed_like(l, c, 2u * each), ""), "");
    }
    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_B32, r);
}

/* ---- cvt ----------------------------------------------------------------------------- */

void
hed_op_cvt(struct hed_lower *l)
{
    const enum hed_ptx_type to = l->inst->form->types[0];
    const enum hed_ptx_type from = l->inst->form->types[1];

    switch (l->meaning->conversion) {
    case HED_PTX_INT_TO_INT:
        int_to_int(l, to, from);
        break;
    case HED_PTX_INT_TO_REAL:
        int_to_real(l, to, from);
        break;
    case HED_PTX_REAL_TO_INT:
        real_to_int(l, to, from);
        break;
    case HED_PTX_REAL_TO_REAL:
        real_to_real(l, to, from);
        break;
    case HED_PTX_PAIR_TO_HALVES:
        pair_to_half_pair(l, to, from);
        break;
    case HED_PTX_FLOATS_TO_PAIR:
    case HED_PTX_HALVES_TO_PAIR:
        real_to_pair(l, to, from);
        break;
    }
}
