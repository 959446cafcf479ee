/* ex2, lg2, sin, cos and tanh of f32: short polynomials in f64, rounded once to f32 at the end.
 * They are the polynomials of compiled code, operation by operation, so the results are the same
 * bits. sin and cos start as a GPU does: they multiply by 1 / 2 pi in f32.
 */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"
#include "kernel/ptx/interp/real.h"

/* Adding this to a double rounds it to a whole number, which is then in the low bits. */
#define WHOLE 0x1.8p52

static inline double
clamp_between(double x, double most)
{
    x = x > most ? most : x;
    return x < -most ? -most : x;
}

/* 2^x for |x| up to 1000. The result for a NaN is undefined. */
static inline double
two_to_the(double x)
{
    const double whole = x + WHOLE;
    const double y = x - (whole - WHOLE);
    double p = 0x1.e4cf5158b8ecap-28;

    /* ln(2)^k / k! */
    p = p * y + 0x1.b5253d395e7c4p-24;
    p = p * y + 0x1.62c0223a5c824p-20;
    p = p * y + 0x1.ffcbfc588b0c7p-17;
    p = p * y + 0x1.430912f86c787p-13;
    p = p * y + 0x1.5d87fe78a6731p-10;
    p = p * y + 0x1.3b2ab6fba4e77p-7;
    p = p * y + 0x1.c6b08d704a0c0p-5;
    p = p * y + 0x1.ebfbdff82c58fp-3;
    p = p * y + 0x1.62e42fefa39efp-1;
    p = p * y + 1.0;
    return hed_from_bits64((hed_to_bits64(whole) << 52) + hed_to_bits64(p));
}

/* Beyond 160 the result is infinite or zero in f32. */
static inline double
ex2_series(double x)
{
    return two_to_the(clamp_between(x, 160));
}

/* The exponent plus log2(m) of the mantissa m: z (c0 + c1 z^2 + ...) with z = (m - 1) / (m + 1). */
static inline double
lg2_series(double x)
{
    const uint64_t bits = hed_to_bits64(x);
    const int64_t e = (int64_t)(bits - UINT64_C(0x3fe6a09e00000000)) >> 52; /* sqrt(1/2), about */
    const double m = hed_from_bits64(bits - ((uint64_t)e << 52));
    const double whole = hed_from_bits64((uint64_t)e + UINT64_C(0x4338000000000000));
    const double z = (m - 1) / (m + 1);
    const double z2 = z * z;
    double r = 0x1.89f3b1694cffep-3;

    /* 2 / ln(2) / (2 k + 1) */
    r = r * z2 + 0x1.c68f568d31760p-3;
    r = r * z2 + 0x1.0c9a84994022dp-2;
    r = r * z2 + 0x1.484b13d7c02a9p-2;
    r = r * z2 + 0x1.a61762a7aded9p-2;
    r = r * z2 + 0x1.2776c50ef9bfep-1;
    r = r * z2 + 0x1.ec709dc3a03fdp-1;
    r = r * z2 + 0x1.71547652b82fep+1;
    r = z * r + (whole - WHOLE);
    /* 0 gives -infinity, infinity gives itself, negative numbers give NaN. */
    r = x == 0 ? -__builtin_inf() : r;
    r = x == __builtin_inf() ? x : r;
    return x < 0 ? __builtin_nan("") : r;
}

/* sin or cos of 2 pi `turns`: the nearest quarter, and a series on either side of it. */
static inline double
wave_series(double turns, uint64_t is_cos)
{
    const double quarters = turns * 4 + WHOLE;
    const uint64_t n = hed_to_bits64(quarters) + is_cos;
    const double x = turns - (quarters - WHOLE) * 0.25;
    const double x2 = x * x;
    double s = -0x1.e3074fde8871fp+3, c = 0x1.f9d38a3763cc3p+2;

    /* (2 pi)^k / k! with alternating signs */
    s = s * x2 + 0x1.50783487ee782p+5;
    s = s * x2 + -0x1.32d2cce62bd86p+6;
    s = s * x2 + 0x1.466bc6775aae2p+6;
    s = s * x2 + -0x1.4abbce625be53p+5;
    s = s * x2 + 0x1.921fb54442d18p+2;
    s = x * s;
    c = c * x2 + -0x1.a6d1f2a204a8cp+4;
    c = c * x2 + 0x1.e1f506891babbp+5;
    c = c * x2 + -0x1.55d3c7e3cbffap+6;
    c = c * x2 + 0x1.03c1f081b5ac4p+6;
    c = c * x2 + -0x1.3bd3cc9be45dep+4;
    c = c * x2 + 1.0;
    return hed_from_bits64(hed_to_bits64(n & 1 ? c : s) ^ (n & 2) << 62);
}

/* 1 - 2 / (e^2x + 1), or x if x is near 0. */
static inline double
tanh_series(double x)
{
    const double e = two_to_the(clamp_between(x, 32) * 0x1.71547652b82fep+1) + 1;

    return __builtin_fabs(x) < 0x1p-12 ? x : 1 - 2 / e;
}

/* The result of a series, or NaN where the series means nothing. */
static inline float
finite_or_nan(double x, double r)
{
    return (float)(x != x ? x : r);
}

static inline float
ex2_of(float v)
{
    return finite_or_nan((double)v, ex2_series((double)v));
}

static inline float
lg2_of(float v)
{
    return finite_or_nan((double)v, lg2_series((double)v));
}

static inline float
tanh_of(float v)
{
    return finite_or_nan((double)v, tanh_series((double)v));
}

static inline float
wave_of(float v, uint64_t is_cos)
{
    const double x = (double)(v * 0x1.45f306p-3f);

    return finite_or_nan(x - x, wave_series(x, is_cos));
}

static inline uint32_t
canonical_bits(float r)
{
    return r != r ? 0x7fffffff : hed_to_bits32(r);
}

static inline float
flushed(float v)
{
    return hed_from_bits32(real_flush32(hed_to_bits32(v)));
}

static inline uint32_t
flushed_bits(float r)
{
    return r != r ? 0x7fffffff : real_flush32(hed_to_bits32(r));
}

STEP_UNARY(ex2_f32, uint32_t, float, canonical_bits(ex2_of(a)))
STEP_UNARY(lg2_f32, uint32_t, float, canonical_bits(lg2_of(a)))
STEP_UNARY(tanh_f32, uint32_t, float, canonical_bits(tanh_of(a)))
STEP_UNARY(sin_f32, uint32_t, float, canonical_bits(wave_of(a, 0)))
STEP_UNARY(cos_f32, uint32_t, float, canonical_bits(wave_of(a, 1)))
STEP_UNARY(ex2_ftz_f32, uint32_t, float, flushed_bits(ex2_of(flushed(a))))
STEP_UNARY(lg2_ftz_f32, uint32_t, float, flushed_bits(lg2_of(flushed(a))))
STEP_UNARY(sin_ftz_f32, uint32_t, float, flushed_bits(wave_of(flushed(a), 0)))
STEP_UNARY(cos_ftz_f32, uint32_t, float, flushed_bits(wave_of(flushed(a), 1)))

interp_run
hed_interp_approx(enum hed_ptx_op op, bool ftz)
{
    switch (op) {
    case HED_PTX_OP_EX2:
        return ftz ? ex2_ftz_f32 : ex2_f32;
    case HED_PTX_OP_LG2:
        return ftz ? lg2_ftz_f32 : lg2_f32;
    case HED_PTX_OP_SIN:
        return ftz ? sin_ftz_f32 : sin_f32;
    case HED_PTX_OP_COS:
        return ftz ? cos_ftz_f32 : cos_f32;
    case HED_PTX_OP_TANH:
        return tanh_f32;
    default:
        return NULL;
    }
}

float
hed_interp_approx_one(enum hed_ptx_op op, float x)
{
    return op == HED_PTX_OP_EX2 ? ex2_of(x) : tanh_of(x);
}
