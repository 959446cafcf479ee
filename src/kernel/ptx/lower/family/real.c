/* Operations on floating point formats in terms of integers: rounding to a narrower format in any
 * direction, flushing subnormal numbers, clamping. None has branches; all work for any number of
 * lanes.
 */
#include "kernel/ptx/lower/family/math.h"

const struct hed_real hed_real_f16 = {16, 10, 15, 0x7fff, 0x7bff, false};
const struct hed_real hed_real_bf16 = {16, 7, 127, 0x7fff, 0x7f7f, false};
const struct hed_real hed_real_f32 = {32, 23, 127, 0x7fffffff, 0x7f7fffff, false};
const struct hed_real hed_real_f64 = {64, 52, 1023, 0xfff8000000000000, 0x7fefffffffffffff, false};
const struct hed_real hed_real_tf32 = {19, 10, 127, 0x3ffff, 0x3fbff, false};
const struct hed_real hed_real_e4m3 = {8, 3, 7, 0x7f, 0x7e, true};
const struct hed_real hed_real_e5m2 = {8, 2, 15, 0x7f, 0x7b, false};
const struct hed_real hed_real_e2m3 = {6, 3, 1, 0x1f, 0x1f, true};
const struct hed_real hed_real_e3m2 = {6, 2, 3, 0x1f, 0x1f, true};
const struct hed_real hed_real_e2m1 = {4, 1, 1, 0x7, 0x7, true};

const struct hed_real *
hed_real_of(enum hed_ptx_type t)
{
    switch (t) {
    case HED_PTX_TYPE_F16:
    case HED_PTX_TYPE_F16X2:
        return &hed_real_f16;
    case HED_PTX_TYPE_BF16:
    case HED_PTX_TYPE_BF16X2:
        return &hed_real_bf16;
    case HED_PTX_TYPE_F32:
    case HED_PTX_TYPE_F32X2:
        return &hed_real_f32;
    case HED_PTX_TYPE_F64:
        return &hed_real_f64;
    case HED_PTX_TYPE_TF32:
        return &hed_real_tf32;
    case HED_PTX_TYPE_E4M3X2:
    case HED_PTX_TYPE_E4M3X4:
        return &hed_real_e4m3;
    case HED_PTX_TYPE_E5M2X2:
    case HED_PTX_TYPE_E5M2X4:
        return &hed_real_e5m2;
    case HED_PTX_TYPE_E2M3X2:
    case HED_PTX_TYPE_E2M3X4:
        return &hed_real_e2m3;
    case HED_PTX_TYPE_E3M2X2:
    case HED_PTX_TYPE_E3M2X4:
        return &hed_real_e3m2;
    case HED_PTX_TYPE_E2M1X2:
    case HED_PTX_TYPE_E2M1X4:
        return &hed_real_e2m1;
    default:
        return NULL;
    }
}

/* ---- bits ------------------------------------------------------------------------------------ */

static uint64_t
real_infinity(const struct hed_real *f)
{
    return ((UINT64_C(1) << (f->bits - 1 - f->mantissa)) - 1) << f->mantissa;
}

static LLVMValueRef
real_magnitude(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f)
{
    return LLVMBuildAnd(l->b, bits, hed_like(l, bits, (UINT64_C(1) << (f->bits - 1)) - 1), "");
}

static LLVMValueRef
real_sign(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f)
{
    return LLVMBuildAnd(l->b, bits, hed_like(l, bits, UINT64_C(1) << (f->bits - 1)), "");
}

LLVMValueRef
hed_real_is_nan(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f)
{
    const uint64_t last = f->no_inf ? f->most : real_infinity(f);

    return hed_icmp(l, LLVMIntUGT, real_magnitude(l, bits, f), hed_like(l, bits, last));
}

LLVMValueRef
hed_real_flush(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f)
{
    LLVMValueRef tiny;

    if (f == &hed_real_f32)
        tiny = LLVMBuildFCmp(l->b, LLVMRealOLT, hed_one(l, "llvm.fabs", hed_cast(l, bits, l->f32)),
                             hed_lower_float(l, l->f32, 0x1p-126), "");
    else
        tiny = hed_icmp(l, LLVMIntULT, real_magnitude(l, bits, f),
                        hed_like(l, bits, UINT64_C(1) << f->mantissa));
    return hed_lower_select(l, tiny, real_sign(l, bits, f), bits);
}

LLVMValueRef
hed_real_saturate(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f)
{
    LLVMValueRef one = hed_like(l, bits, (uint64_t)f->bias << f->mantissa);
    LLVMValueRef zero = hed_like(l, bits, 0);
    LLVMValueRef bad =
        LLVMBuildOr(l->b, hed_real_is_nan(l, bits, f), hed_icmp(l, LLVMIntSLT, bits, zero), "");

    return hed_lower_select(l, bad, zero, hed_two(l, "llvm.umin", bits, one));
}

LLVMValueRef
hed_real_relu(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f)
{
    LLVMValueRef zero = hed_like(l, bits, 0);
    LLVMValueRef minus = hed_icmp(l, LLVMIntNE, real_sign(l, bits, f), zero);

    minus = LLVMBuildAnd(l->b, minus, LLVMBuildNot(l->b, hed_real_is_nan(l, bits, f), ""), "");
    return hed_lower_select(l, minus, zero, bits);
}

/* ---- rounding -------------------------------------------------------------------------------- */

/* m shifted right by `by` (at least 1) and rounded; `negative` says which way is up. */
static LLVMValueRef
round_shift(struct hed_lower *l, LLVMValueRef m, LLVMValueRef by, LLVMValueRef negative,
            enum hed_ptx_round mode)
{
    LLVMValueRef zero = hed_like(l, m, 0);
    LLVMValueRef one = hed_like(l, m, 1);
    LLVMValueRef q = LLVMBuildLShr(l->b, m, by, "");
    LLVMValueRef rest = LLVMBuildSub(l->b, m, LLVMBuildShl(l->b, q, by, ""), "");
    LLVMValueRef some = hed_icmp(l, LLVMIntNE, rest, zero);
    LLVMValueRef half, up;

    switch (mode) {
    case HED_PTX_ROUND_RZ:
        return q;
    case HED_PTX_ROUND_RM:
        up = LLVMBuildAnd(l->b, some, negative, "");
        break;
    case HED_PTX_ROUND_RP:
        up = LLVMBuildAnd(l->b, some, LLVMBuildNot(l->b, negative, ""), "");
        break;
    default:
        half = LLVMBuildShl(l->b, one, LLVMBuildSub(l->b, by, one, ""), "");
        if (mode != HED_PTX_ROUND_RNA) {
            /* To even: exactly half goes up only from an odd number. */
            LLVMValueRef even = LLVMBuildSub(l->b, one, LLVMBuildAnd(l->b, q, one, ""), "");

            half = LLVMBuildAdd(l->b, half, even, "");
        }
        up = hed_icmp(l, LLVMIntUGE, rest, half);
        break;
    }
    return LLVMBuildAdd(l->b, q, LLVMBuildZExt(l->b, up, LLVMTypeOf(q), ""), "");
}

/* The result for a number that is too large. */
static LLVMValueRef
real_overflow(struct hed_lower *l, LLVMValueRef negative, LLVMValueRef like,
              const struct hed_real *to, struct hed_rounding r)
{
    LLVMValueRef inf = hed_like(l, like, to->no_inf ? to->nan : real_infinity(to));
    LLVMValueRef most = hed_like(l, like, to->most);

    if (r.satfinite || r.mode == HED_PTX_ROUND_RZ)
        return most;
    if (r.mode == HED_PTX_ROUND_RM)
        return hed_lower_select(l, negative, inf, most);
    if (r.mode == HED_PTX_ROUND_RP)
        return hed_lower_select(l, negative, most, inf);
    return inf;
}

/* A NaN of f64 keeps its sign and the upper part of its payload. */
static LLVMValueRef
narrow_nan(struct hed_lower *l, LLVMValueRef mag, LLVMValueRef sign, const struct hed_real *from,
           const struct hed_real *to)
{
    const uint64_t quiet = real_infinity(to) | UINT64_C(1) << (to->mantissa - 1);
    const uint64_t rest = (UINT64_C(1) << to->mantissa) - 1;

    if (from != &hed_real_f64 || to->no_inf)
        return hed_like(l, mag, to->nan);
    mag = LLVMBuildLShr(l->b, mag, hed_like(l, mag, (uint64_t)from->mantissa - to->mantissa), "");
    mag = LLVMBuildAnd(l->b, mag, hed_like(l, mag, rest), "");
    return LLVMBuildOr(l->b, LLVMBuildOr(l->b, mag, hed_like(l, mag, quiet), ""), sign, "");
}

LLVMValueRef
hed_real_narrow(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *from,
                const struct hed_real *to, struct hed_rounding r)
{
    const unsigned cut = from->mantissa - to->mantissa;
    const uint64_t rebias = from->bias - to->bias;
    LLVMValueRef zero = hed_like(l, bits, 0);
    LLVMValueRef one = hed_like(l, bits, 1);
    LLVMValueRef mag = real_magnitude(l, bits, from);
    LLVMValueRef negative = hed_icmp(l, LLVMIntNE, mag, bits);
    LLVMValueRef e = LLVMBuildLShr(l->b, mag, hed_like(l, bits, from->mantissa), "");
    LLVMValueRef whole = hed_icmp(l, LLVMIntNE, e, zero);
    LLVMValueRef m =
        LLVMBuildAnd(l->b, mag, hed_like(l, bits, (UINT64_C(1) << from->mantissa) - 1), "");
    LLVMValueRef lead = hed_like(l, bits, UINT64_C(1) << from->mantissa);
    LLVMValueRef least = hed_like(l, bits, rebias + 1); /* exponent of to's smallest normal */
    LLVMValueRef by, q, place, sign;

    m = LLVMBuildOr(l->b, m, hed_lower_select(l, whole, lead, zero), "");
    e = hed_two(l, "llvm.umax", e, one);
    /* Subnormal results lose more bits, at most all of them. */
    by = hed_two(l, "llvm.usub.sat", least, e);
    by = LLVMBuildAdd(l->b, by, hed_like(l, bits, cut), "");
    by = hed_two(l, "llvm.umin", by, hed_like(l, bits, from->mantissa + 2u));
    q = cut || rebias ? round_shift(l, m, by, negative, r.mode) : m;
    place = hed_two(l, "llvm.usub.sat", e, least);
    place = LLVMBuildShl(l->b, place, hed_like(l, bits, to->mantissa), "");
    q = LLVMBuildAdd(l->b, q, place, "");
    if (r.ftz) {
        /* A result is tiny if, rounded with unlimited exponents, it is below the normal range. */
        LLVMValueRef full = round_shift(l, m, hed_like(l, bits, cut), negative, r.mode);
        LLVMValueRef top = hed_like(l, bits, UINT64_C(1) << (to->mantissa + 1));
        LLVMValueRef next = LLVMBuildAdd(
            l->b, e, LLVMBuildZExt(l->b, hed_icmp(l, LLVMIntUGE, full, top), LLVMTypeOf(e), ""),
            "");

        q = hed_lower_select(l, hed_icmp(l, LLVMIntULT, next, least), zero, q);
    }

    q = hed_lower_select(l, hed_icmp(l, LLVMIntUGT, q, hed_like(l, bits, to->most)),
                         real_overflow(l, negative, bits, to, r), q);
    if (!r.satfinite && !to->no_inf)
        q = hed_lower_select(l, hed_icmp(l, LLVMIntEQ, mag, hed_like(l, bits, real_infinity(from))),
                             hed_like(l, bits, real_infinity(to)), q);
    sign = hed_lower_select(l, negative, hed_like(l, bits, UINT64_C(1) << (to->bits - 1)), zero);
    q = LLVMBuildOr(l->b, q, sign, "");
    return hed_lower_select(l, hed_real_is_nan(l, bits, from), narrow_nan(l, mag, sign, from, to),
                            q);
}

LLVMValueRef
hed_real_widen16(struct hed_lower *l, LLVMValueRef v, const struct hed_real *f)
{
    LLVMTypeRef t = hed_lower_lanes(l, l->f32);

    if (f == &hed_real_f16)
        return LLVMBuildFPExt(l->b, hed_cast(l, v, l->f16), t, "");
    v = LLVMBuildShl(l->b, hed_zext(l, v, l->i32), hed_lower_int(l, l->i32, 16), "");
    return LLVMBuildBitCast(l->b, v, t, "");
}

LLVMValueRef
hed_real_narrow16(struct hed_lower *l, LLVMValueRef v, const struct hed_real *f)
{
    LLVMValueRef bits, odd, r;

    if (f == &hed_real_f16) {
        r = hed_cast(l, LLVMBuildFPTrunc(l->b, v, hed_lower_lanes(l, l->f16), ""), l->i16);
    } else {
        bits = hed_cast(l, v, l->i32);
        odd = LLVMBuildLShr(l->b, bits, hed_like(l, bits, 16), "");
        odd = LLVMBuildAnd(l->b, odd, hed_like(l, bits, 1), "");
        r = LLVMBuildAdd(l->b, LLVMBuildAdd(l->b, bits, hed_like(l, bits, 0x7fff), ""), odd, "");
        r = hed_trunc(l, LLVMBuildLShr(l->b, r, hed_like(l, r, 16), ""), l->i16);
    }
    return hed_lower_select(l, LLVMBuildFCmp(l->b, LLVMRealUNO, v, v, ""), hed_like(l, r, f->nan),
                            r);
}

/* ---- exact sums ------------------------------------------------------------------------------ */

LLVMValueRef
hed_real_two_sum(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef *err)
{
    LLVMValueRef s = LLVMBuildFAdd(l->b, a, b, "");
    LLVMValueRef bb = LLVMBuildFSub(l->b, s, a, "");
    LLVMValueRef aa = LLVMBuildFSub(l->b, s, bb, "");

    *err = LLVMBuildFAdd(l->b, LLVMBuildFSub(l->b, a, aa, ""), LLVMBuildFSub(l->b, b, bb, ""), "");
    return s;
}

/* Steps an even float towards `off` (its sign matters), where that is not zero. */
static LLVMValueRef
make_odd(struct hed_lower *l, LLVMValueRef v, LLVMValueRef off)
{
    LLVMTypeRef ft = LLVMTypeOf(v);
    LLVMValueRef nought = LLVMConstNull(ft);
    const bool is_double = LLVMGetTypeKind(hed_lane_type(v)) == LLVMDoubleTypeKind;
    LLVMValueRef bits = hed_cast(l, v, is_double ? l->i64 : l->i32);
    LLVMValueRef one = hed_like(l, bits, 1);
    LLVMValueRef even =
        hed_icmp(l, LLVMIntEQ, LLVMBuildAnd(l->b, bits, one, ""), hed_like(l, bits, 0));
    LLVMValueRef moves = LLVMBuildFCmp(l->b, LLVMRealONE, off, nought, "");
    LLVMValueRef up = LLVMBuildFCmp(l->b, LLVMRealOGT, off, nought, "");
    LLVMValueRef plus = hed_icmp(l, LLVMIntSGE, bits, hed_like(l, bits, 0));
    LLVMValueRef away = LLVMBuildNot(l->b, LLVMBuildXor(l->b, up, plus, ""), "");
    LLVMValueRef step = hed_lower_select(l, away, one, hed_like(l, bits, UINT64_MAX));

    bits = hed_lower_select(l, LLVMBuildAnd(l->b, even, moves, ""),
                            LLVMBuildAdd(l->b, bits, step, ""), bits);
    return LLVMBuildBitCast(l->b, bits, ft, "");
}

LLVMValueRef
hed_real_odd(struct hed_lower *l, LLVMValueRef sum, LLVMValueRef err)
{
    return make_odd(l, sum, err);
}

LLVMValueRef
hed_real_odd_f32(struct hed_lower *l, LLVMValueRef v)
{
    LLVMValueRef f = LLVMBuildFPTrunc(l->b, v, hed_lower_lanes(l, l->f32), "");
    LLVMValueRef off = LLVMBuildFSub(l->b, v, LLVMBuildFPExt(l->b, f, LLVMTypeOf(v), ""), "");

    /* Where the float became infinite the step goes back to the largest; infinities stay. Only the
     * sign counts. */
    LLVMValueRef t = hed_lower_float(l, l->f32, 1);
    LLVMValueRef nought = LLVMConstNull(LLVMTypeOf(v));
    LLVMValueRef sign = hed_lower_select(l, LLVMBuildFCmp(l->b, LLVMRealOGT, off, nought, ""), t,
                                         LLVMConstNull(LLVMTypeOf(f)));

    sign = hed_lower_select(l, LLVMBuildFCmp(l->b, LLVMRealOLT, off, nought, ""),
                            hed_lower_float(l, l->f32, -1), sign);
    return make_odd(l, f, sign);
}
