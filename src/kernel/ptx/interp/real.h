/* Floating point formats of one number, in terms of integers: rounding to a narrower format in any
 * direction, flushing subnormal numbers, clamping. Everything is exact, and without branches where
 * it matters, so that loops over lanes can become vector instructions.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernel/ptx/run/bits.h"
#include "kernel/ptx/words.h"

/* The layout of a floating point format. */
struct real_format {
    uint8_t bits, mantissa; /* as stored; the exponent has the other bits, except the sign */
    uint16_t bias;
    uint64_t nan;  /* the result of an operation that has no other */
    uint64_t most; /* the largest finite number */
    bool no_inf;   /* the format has no infinity: e4m3 and narrower */
};

static const struct real_format real_f16 = {16, 10, 15, 0x7fff, 0x7bff, false};
static const struct real_format real_bf16 = {16, 7, 127, 0x7fff, 0x7f7f, false};
static const struct real_format real_f32 = {32, 23, 127, 0x7fffffff, 0x7f7fffff, false};
static const struct real_format real_f64 = {64,   52, 1023, 0xfff8000000000000, 0x7fefffffffffffff,
                                            false};

/* The format of a PTX type (of pairs: of one half); NULL if the type is no float. real.c */
const struct real_format *hed_interp_real(enum hed_ptx_type t);

/* How a result is rounded and cut down to its format. */
struct real_rounding {
    uint8_t mode;   /* enum hed_ptx_round: RN RZ RM RP RNA; NONE is RN */
    bool ftz;       /* results that are tiny after rounding become zero */
    bool satfinite; /* results that are too large become the largest number, not infinite */
};

static inline uint64_t
format_infinity(const struct real_format *f)
{
    return ((UINT64_C(1) << (f->bits - 1 - f->mantissa)) - 1) << f->mantissa;
}

static inline uint64_t
format_sign(const struct real_format *f)
{
    return UINT64_C(1) << (f->bits - 1);
}

static inline bool
real_is_nan(uint64_t bits, const struct real_format *f)
{
    return (bits & (format_sign(f) - 1)) > (f->no_inf ? f->most : format_infinity(f));
}

/* Subnormal numbers become zeros of the same sign. */
static inline uint64_t
real_flush(uint64_t bits, const struct real_format *f)
{
    return (bits & (format_sign(f) - 1)) < UINT64_C(1) << f->mantissa ? bits & format_sign(f)
                                                                      : bits;
}

static inline uint32_t
real_flush32(uint32_t bits)
{
    return (bits & 0x7fffffff) < 0x800000 ? bits & 0x80000000 : bits;
}

/* Clamps to [0, 1]; NaN becomes 0. */
static inline uint64_t
real_saturate(uint64_t bits, const struct real_format *f)
{
    const uint64_t one = (uint64_t)f->bias << f->mantissa;

    if (real_is_nan(bits, f) || bits & format_sign(f))
        return 0;
    return bits < one ? bits : one;
}

/* Negative numbers and -0 become 0. */
static inline uint64_t
real_relu(uint64_t bits, const struct real_format *f)
{
    return bits & format_sign(f) && !real_is_nan(bits, f) ? 0 : bits;
}

/* m shifted right by `by` (at least 1) and rounded; `negative` says which way is up. */
static inline uint64_t
real_round_shift(uint64_t m, unsigned by, bool negative, unsigned mode)
{
    const uint64_t q = m >> by;
    const uint64_t rest = m - (q << by);
    const uint64_t half = UINT64_C(1) << (by - 1);

    switch (mode) {
    case HED_PTX_ROUND_RZ:
        return q;
    case HED_PTX_ROUND_RM:
        return q + (rest != 0 && negative);
    case HED_PTX_ROUND_RP:
        return q + (rest != 0 && !negative);
    case HED_PTX_ROUND_RNA:
        return q + (rest >= half);
    default:
        return q + (rest > half || (rest == half && (q & 1)));
    }
}

/* Rounds a float of the format `from` to the narrower format `to`. NaNs become to->nan; those of
 * f64 keep their sign and as much of the payload as fits. */
uint64_t hed_interp_narrow(uint64_t bits, const struct real_format *from,
                           const struct real_format *to, struct real_rounding r);
#define real_narrow hed_interp_narrow

static inline float
real_widen_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t m = (uint32_t)(h & 0x7fff) << 13;
    /* Multiplying by 2^112 corrects the exponent, also of subnormal numbers. */
    const uint32_t number = hed_to_bits32(hed_from_bits32(m) * 0x1p112f);
    const uint32_t special = m | 0x7f800000;

    return hed_from_bits32(sign | ((h & 0x7fff) >= 0x7c00 ? special : number));
}

static inline float
real_widen_bf16(uint16_t h)
{
    return hed_from_bits32((uint32_t)h << 16);
}

/* To nearest even. */
static inline uint16_t
real_narrow_f16(float f)
{
    const uint32_t bits = hed_to_bits32(f);
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t size = bits & 0x7fffffff;
    /* Below 2^-14, adding 0.5 leaves the rounded result in the low bits. */
    const uint32_t small = hed_to_bits32(hed_from_bits32(size) + 0.5f) - 0x3f000000;
    const uint32_t normal = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
    const uint32_t number = size < 0x38800000 ? small : normal;

    return size > 0x7f800000 ? 0x7fff : (uint16_t)(sign | (size >= 0x477ff000 ? 0x7c00 : number));
}

static inline uint16_t
real_narrow_bf16(float f)
{
    const uint32_t bits = hed_to_bits32(f);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

    return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : (uint16_t)rounded;
}

static inline float
real_widen16(uint16_t v, const struct real_format *f)
{
    return f->mantissa == 10 ? real_widen_f16(v) : real_widen_bf16(v);
}

static inline uint16_t
real_narrow16(float v, const struct real_format *f)
{
    return f->mantissa == 10 ? real_narrow_f16(v) : real_narrow_bf16(v);
}

/* Steps an even number towards `off` (its sign matters), where that is not zero. */
static inline double
real_odd(double v, double off)
{
    uint64_t bits = hed_to_bits64(v);
    const bool away = (off > 0) == !(bits >> 63);

    if ((off > 0 || off < 0) && !(bits & 1))
        bits += away ? 1 : UINT64_MAX;
    return hed_from_bits64(bits);
}

static inline float
real_oddf(float v, float off)
{
    uint32_t bits = hed_to_bits32(v);
    const bool away = (off > 0) == !(bits >> 31);

    if ((off > 0 || off < 0) && !(bits & 1))
        bits += away ? 1 : UINT32_MAX;
    return hed_from_bits32(bits);
}

/* a + b; *err is what the rounding lost. */
static inline double
real_two_sum(double a, double b, double *err)
{
    const double sum = a + b;
    const double bb = sum - a;

    *err = (a - (sum - bb)) + (b - bb);
    return sum;
}
