/* What the families that compute share: short names for building, and floating point formats.
 *
 * "v" is a value with lanes; t is one lane's type.
 */
#pragma once

#include "ptx/lower/lower.h"

/* The layout of a floating point format. */
struct hed_real {
    uint8_t bits, mantissa; /* stored; the exponent has the rest but the sign */
    uint16_t bias;
    uint64_t nan;  /* what an operation without a result gives */
    uint64_t most; /* the largest finite number */
    bool no_inf;   /* the format has none: e4m3 and narrower */
};

extern const struct hed_real hed_real_f16, hed_real_bf16, hed_real_f32, hed_real_f64, hed_real_tf32,
    hed_real_e4m3, hed_real_e5m2, hed_real_e2m3, hed_real_e3m2, hed_real_e2m1;

/* The format of a PTX type, of one half of a pair; NULL for what is no float. */
const struct hed_real *hed_real_of(enum hed_ptx_type t);

/* How a result is rounded and cut down to its format. */
struct hed_rounding {
    uint8_t mode;   /* enum hed_ptx_round: RN RZ RM RP RNA; NONE is RN */
    bool ftz;       /* results that are tiny after rounding become zero */
    bool satfinite; /* what is too large becomes the largest, not infinite */
};

/* Rounds a float, given as an integer of `from`, to the narrower format `to`; the answer is an
 * integer of the width of `from`, holding the bits of `to`. NaNs become to->nan; those of f64 keep
 * their sign and what fits. */
LLVMValueRef hed_real_narrow(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *from,
                             const struct hed_real *to, struct hed_rounding r);

/* f16 and bf16 as integers of 16 bits; f32 as float. */
LLVMValueRef hed_real_widen16(struct hed_lower *l, LLVMValueRef v, const struct hed_real *f);
LLVMValueRef hed_real_narrow16(struct hed_lower *l, LLVMValueRef v, const struct hed_real *f);

/* The double (round to odd) of an f64 sum that is off by err: what is rounded from it later is
 * rounded right. */
LLVMValueRef hed_real_odd(struct hed_lower *l, LLVMValueRef sum, LLVMValueRef err);

/* f64 to f32, rounding to odd. */
LLVMValueRef hed_real_odd_f32(struct hed_lower *l, LLVMValueRef v);

/* a + b and what the rounding left. */
LLVMValueRef hed_real_two_sum(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b,
                              LLVMValueRef *err);

/* On integers that hold floats of format f: is it a NaN; numbers too small become zeros of their
 * sign; clamped to [0, 1], NaN to 0; negative ones (and -0, and NaN if it says so) to 0. */
LLVMValueRef hed_real_is_nan(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f);
LLVMValueRef hed_real_flush(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f);
LLVMValueRef hed_real_saturate(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f);
LLVMValueRef hed_real_relu(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f);

/* f16, bf16 and pairs of them: half of hed_lower_real. */
bool hed_lower_half(struct hed_lower *l);
/* ex2, lg2, sin, cos, tanh of f32. */
LLVMValueRef hed_lower_approx(struct hed_lower *l, enum hed_ptx_op op, LLVMValueRef v);
/* min and max of all floats. */
void hed_lower_least(struct hed_lower *l, const struct hed_real *f);

/* Is the flag said? M(l, FTZ) */
#define HED_SAID(l, name) (((l)->inst->form->flags & HED_PTX_FLAG(name)) != 0)

static inline LLVMTypeRef
hed_lane_type(LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);

    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}

/* A constant like v. */
static inline LLVMValueRef
hed_like(struct hed_lower *l, LLVMValueRef v, uint64_t value)
{
    return hed_lower_int(l, hed_lane_type(v), value);
}

static inline LLVMValueRef
hed_cast(struct hed_lower *l, LLVMValueRef v, LLVMTypeRef t)
{
    return LLVMBuildBitCast(l->b, v, hed_lower_lanes(l, t), "");
}

static inline LLVMValueRef
hed_zext(struct hed_lower *l, LLVMValueRef v, LLVMTypeRef t)
{
    return LLVMBuildZExt(l->b, v, hed_lower_lanes(l, t), "");
}

static inline LLVMValueRef
hed_sext(struct hed_lower *l, LLVMValueRef v, LLVMTypeRef t)
{
    return LLVMBuildSExt(l->b, v, hed_lower_lanes(l, t), "");
}

static inline LLVMValueRef
hed_trunc(struct hed_lower *l, LLVMValueRef v, LLVMTypeRef t)
{
    return LLVMBuildTrunc(l->b, v, hed_lower_lanes(l, t), "");
}

static inline LLVMValueRef
hed_icmp(struct hed_lower *l, LLVMIntPredicate p, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildICmp(l->b, p, a, b, "");
}

static inline LLVMValueRef
hed_two(struct hed_lower *l, const char *intrinsic, LLVMValueRef a, LLVMValueRef b)
{
    return hed_lower_intrinsic(l, intrinsic, LLVMTypeOf(a), (LLVMValueRef[]){a, b}, 2);
}

static inline LLVMValueRef
hed_one(struct hed_lower *l, const char *intrinsic, LLVMValueRef a)
{
    return hed_lower_intrinsic(l, intrinsic, LLVMTypeOf(a), (LLVMValueRef[]){a}, 1);
}

static inline LLVMValueRef
hed_operand(struct hed_lower *l, unsigned n, enum hed_ptx_type t)
{
    return hed_lower_get(l, &l->inst->operands[n], t);
}

static inline bool
hed_is_signed(enum hed_ptx_type t)
{
    return hed_ptx_types[t].kind == HED_PTX_KIND_S;
}

static inline bool
hed_is_int(enum hed_ptx_type t)
{
    return hed_ptx_types[t].kind == HED_PTX_KIND_S || hed_ptx_types[t].kind == HED_PTX_KIND_U ||
           hed_ptx_types[t].kind == HED_PTX_KIND_B;
}

/* Shifts by an amount that is a value with lanes; amounts of the width and more give 0, or copies
 * of the sign. */
LLVMValueRef hed_shift_left(struct hed_lower *l, LLVMValueRef v, LLVMValueRef by);
LLVMValueRef hed_shift_right(struct hed_lower *l, LLVMValueRef v, LLVMValueRef by, bool is_signed);
