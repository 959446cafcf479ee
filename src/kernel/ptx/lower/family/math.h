/* What the families that compute share: floating point formats, and short names for building.
 *
 * Below, v is a value with lanes and t is the type of one lane.
 */
#pragma once

#include "kernel/ptx/lower/lower.h"

/* The layout of a floating point format. */
struct hed_real {
    uint8_t bits, mantissa; /* as stored; the exponent has the other bits, except the sign */
    uint16_t bias;
    uint64_t nan;  /* the result of an operation that has no other */
    uint64_t most; /* the largest finite number */
    bool no_inf;   /* the format has no infinity: e4m3 and narrower */
};

extern const struct hed_real hed_real_f16, hed_real_bf16, hed_real_f32, hed_real_f64, hed_real_tf32,
    hed_real_e4m3, hed_real_e5m2, hed_real_e2m3, hed_real_e3m2, hed_real_e2m1;

/* The format of a PTX type (for pairs: of one half); NULL if the type is no float. */
const struct hed_real *hed_real_of(enum hed_ptx_type t);

/* How a result is rounded and cut down to its format. */
struct hed_rounding {
    uint8_t mode;   /* enum hed_ptx_round: RN RZ RM RP RNA; NONE is RN */
    bool ftz;       /* results that are tiny after rounding become zero */
    bool satfinite; /* results that are too large become the largest number, not infinite */
};

/* Rounds a float, given as an integer of the format `from`, to the narrower format `to`. The result
 * is an integer as wide as `from` that holds the bits of `to`. NaNs become to->nan; those of f64
 * keep their sign and as much of the payload as fits. */
LLVMValueRef hed_real_narrow(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *from,
                             const struct hed_real *to, struct hed_rounding r);

/* f16 and bf16 as integers of 16 bits; f32 as float. */
LLVMValueRef hed_real_widen16(struct hed_lower *l, LLVMValueRef v, const struct hed_real *f);
LLVMValueRef hed_real_narrow16(struct hed_lower *l, LLVMValueRef v, const struct hed_real *f);

/* Rounds an f64 sum, which is off by err, to odd: rounding the result again, to a narrower format,
 * then gives what a single rounding would. */
LLVMValueRef hed_real_odd(struct hed_lower *l, LLVMValueRef sum, LLVMValueRef err);

/* f64 to f32, rounding to odd. */
LLVMValueRef hed_real_odd_f32(struct hed_lower *l, LLVMValueRef v);

/* a + b; *err is what the rounding lost. */
LLVMValueRef hed_real_two_sum(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b,
                              LLVMValueRef *err);

/* On integers that hold floats of the format f. flush turns subnormal numbers into zeros of the
 * same sign, saturate clamps to [0, 1] and turns NaN into 0, relu turns negative numbers and -0
 * into 0. */
LLVMValueRef hed_real_is_nan(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f);
LLVMValueRef hed_real_flush(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f);
LLVMValueRef hed_real_saturate(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f);
LLVMValueRef hed_real_relu(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f);

/* Arithmetic of integers; of f32, f64 and f32x2; of f16, bf16 and pairs of them. */
void hed_lower_integer(struct hed_lower *l);
void hed_lower_real(struct hed_lower *l);
void hed_lower_half(struct hed_lower *l);
/* ex2, lg2, sin, cos and tanh of f32. */
LLVMValueRef hed_lower_approx(struct hed_lower *l, enum hed_ptx_op op, LLVMValueRef v);
LLVMValueRef hed_lower_rsqrt(struct hed_lower *l, LLVMValueRef v);
/* min and max of all floats. */
void hed_lower_least(struct hed_lower *l, const struct hed_real *f);

/* Does the instruction have the flag? HED_SAID(l, FTZ) */
#define HED_SAID(l, name) (((l)->inst->form->flags & HED_PTX_FLAG(name)) != 0)

static inline LLVMTypeRef
hed_lane_type(LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);

    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}

/* A constant of the type of v. */
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

/* Shifts by an amount that is a value with lanes. If the amount is the width or more, the result is
 * 0, or copies of the sign. */
LLVMValueRef hed_shift_left(struct hed_lower *l, LLVMValueRef v, LLVMValueRef by);
LLVMValueRef hed_shift_right(struct hed_lower *l, LLVMValueRef v, LLVMValueRef by, bool is_signed);

/* dot.c: four bytes by four, plus c, by the processor's instructions; NULL if it has none. */
LLVMValueRef hed_dot_bytes(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c,
                           bool a_signed, bool b_signed);
