/* Functions without state that compiled kernels call: what LLVM expects from a C library and from a
 * compiler's run-time library, a few instructions, and the slow paths in soft.c and video.c.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernel/ptx/run/abi.h"
#include "kernel/ptx/run/bits.h"
#include "kernel/ptx/run/soft.h"
#include "kernel/ptx/run/video.h"

/* ---- PTX ------------------------------------------------------------------------------------- */

static bool
is_tiny(uint64_t v)
{
    return (v & UINT64_C(0x7ff0000000000000)) == 0;
}

/* Subnormal numbers become zeros of the same sign; the low half of the input is ignored. */
static uint64_t
high_of(uint64_t v)
{
    v &= UINT64_C(0xffffffff00000000);
    if (v << 1 > UINT64_C(0xffe0000000000000))
        return UINT64_C(0x7fffffff00000000);
    return is_tiny(v) ? v & UINT64_C(1) << 63 : v;
}

static uint64_t
ptx_rcp_high(uint64_t v)
{
    return high_of(hed_to_bits64(1 / hed_from_bits64(high_of(v))));
}

static uint64_t
ptx_rsqrt_high(uint64_t v)
{
    return high_of(hed_to_bits64(1 / sqrt(hed_from_bits64(high_of(v)))));
}

/* "Find the n-th set bit" (PTX ISA, fns), from base upwards for positive n, downwards for
 * negative. */
static uint32_t
ptx_fns(uint32_t mask, uint32_t base, uint32_t offset)
{
    const int32_t n = (int32_t)offset;
    const int step = n < 0 ? -1 : 1;
    int64_t left = n < 0 ? -(int64_t)n : n;

    if (n == 0)
        return base < 32 && (mask >> base & 1) ? base : UINT32_MAX;
    for (int64_t at = base; at >= 0 && at < 32; at += step) {
        if ((mask >> at & 1) && --left == 0)
            return (uint32_t)at;
    }
    return UINT32_MAX;
}

/* ---- half, as run-time libraries have it: bits in, bits out ---------------------------------- */

static float
half_to_float(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t m = h & 0x7fff;
    float f;

    if (m >= 0x7c00) {
        m = m << 13 | 0x7f800000;
        m |= m & 0x7fffff ? 0x400000 : 0;
    } else {
        /* Multiplying by 2^112 corrects the exponent, also of subnormal numbers. */
        m <<= 13;
        memcpy(&f, &m, sizeof(f));
        f *= 0x1p112f;
        memcpy(&m, &f, sizeof(m));
    }
    m |= sign;
    memcpy(&f, &m, sizeof(f));
    return f;
}

static uint16_t
double_to_half(double d)
{
    const uint64_t v = hed_to_bits64(d);
    const uint16_t sign = (uint16_t)(v >> 48 & 0x8000);
    const uint64_t mag = v & ~(UINT64_C(1) << 63);
    const int e = (int)(mag >> 52);
    uint64_t m = (mag & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    unsigned by = 42;
    int place = e - 1009; /* 0 for the smallest normal half */

    if (mag > UINT64_C(0x7ff0000000000000))
        return (uint16_t)(sign | 0x7e00 | (mag >> 42 & 0x1ff));
    if (e >= 1023 + 16)
        return sign | 0x7c00;
    if (place < 0) {
        by += place < -20 ? 20 : (unsigned)-place;
        place = 0;
    }

    const uint64_t rest = m & ((UINT64_C(1) << by) - 1);
    const uint64_t half = UINT64_C(1) << (by - 1);

    m >>= by;
    m += rest > half || (rest == half && (m & 1));
    return (uint16_t)(sign | (((uint64_t)place << 10) + m));
}

static uint16_t
float_to_half(float f)
{
    return double_to_half((double)f);
}

static double
half_to_double(uint16_t h)
{
    return (double)half_to_float(h);
}

/* LLVM passes a half where the conventions of both machines put halves: in the low bits of a vector
 * register. Floats are passed there too, and unlike halves every compiler knows them. */
static float
carry(uint16_t bits)
{
    const uint32_t wide = bits;
    float f;

    memcpy(&f, &wide, sizeof(f));
    return f;
}

static uint16_t
carried(float f)
{
    uint32_t wide;

    memcpy(&wide, &f, sizeof(wide));
    return (uint16_t)wide;
}

static float
extendhfsf2(float h)
{
    return half_to_float(carried(h));
}

static double
extendhfdf2(float h)
{
    return half_to_double(carried(h));
}

static float
truncsfhf2(float f)
{
    return carry(float_to_half(f));
}

static float
truncdfhf2(double d)
{
    return carry(double_to_half(d));
}

/* ---- integers of 128 bits -------------------------------------------------------------------- */

typedef unsigned __int128 u128;
typedef __int128 i128;

static u128
udivti3(u128 a, u128 b)
{
    return b ? a / b : ~(u128)0;
}

static u128
umodti3(u128 a, u128 b)
{
    return b ? a % b : a;
}

static u128
magnitude_bits(i128 v)
{
    return v < 0 ? -(u128)v : (u128)v;
}

static i128
divti3(i128 a, i128 b)
{
    const u128 q = udivti3(magnitude_bits(a), magnitude_bits(b));

    return (i128)((a < 0) != (b < 0) ? -q : q);
}

static i128
modti3(i128 a, i128 b)
{
    const u128 r = umodti3(magnitude_bits(a), magnitude_bits(b));

    return (i128)(a < 0 ? -r : r);
}

static i128
multi3(i128 a, i128 b)
{
    return (i128)((u128)a * (u128)b);
}

static i128
ashlti3(i128 a, int by)
{
    return (i128)((u128)a << (by & 127));
}

static i128
lshrti3(i128 a, int by)
{
    return (i128)((u128)a >> (by & 127));
}

static i128
ashrti3(i128 a, int by)
{
    return a >> (by & 127);
}

/* ---- whole numbers --------------------------------------------------------------------------- */

/* glibc has had this function since 2.25, but its headers declare it only on request. */
static double
round_even(double x)
{
    const double whole = trunc(x);
    const double rest = fabs(x - whole);
    double r = whole;

    if (rest > 0.5 || (rest == 0.5 && fmod(whole, 2) != 0))
        r = whole + copysign(1, x);
    return x != x ? x + x : copysign(r, x);
}

static float
round_evenf(float x)
{
    return (float)round_even((double)x);
}

/* ---- the table ------------------------------------------------------------------------------- */

#define SAME(name)                 \
    {                              \
#name, (const void *)&name \
    }
#define AS(name, function)            \
    {                                 \
        name, (const void *)&function \
    }

const struct hed_ptx_symbol hed_ptx_helpers[] = {
    SAME(hed_ptx_add_f64),
    SAME(hed_ptx_sub_f64),
    SAME(hed_ptx_mul_f64),
    SAME(hed_ptx_fma_f64),
    SAME(hed_ptx_div_f64),
    SAME(hed_ptx_rcp_f64),
    SAME(hed_ptx_sqrt_f64),
    SAME(hed_ptx_round_int),
    SAME(hed_ptx_video),
    AS("hed_ptx_rcp_high", ptx_rcp_high),
    AS("hed_ptx_rsqrt_high", ptx_rsqrt_high),
    AS("hed_ptx_fns", ptx_fns),
    SAME(memcpy),
    SAME(memmove),
    SAME(memset),
    SAME(memcmp),
    SAME(fma),
    SAME(fmaf),
    SAME(floor),
    SAME(floorf),
    SAME(ceil),
    SAME(ceilf),
    SAME(trunc),
    SAME(truncf),
    SAME(rint),
    SAME(rintf),
    SAME(nearbyint),
    SAME(nearbyintf),
    SAME(sqrt),
    SAME(sqrtf),
    SAME(fmod),
    SAME(fmodf),
    SAME(ldexp),
    SAME(ldexpf),
    AS("roundeven", round_even),
    AS("roundevenf", round_evenf),
    AS("__extendhfsf2", extendhfsf2),
    AS("__extendhfdf2", extendhfdf2),
    AS("__truncsfhf2", truncsfhf2),
    AS("__truncdfhf2", truncdfhf2),
    AS("__gnu_h2f_ieee", half_to_float),
    AS("__gnu_f2h_ieee", float_to_half),
    AS("__gnu_d2h_ieee", double_to_half),
    AS("__gnu_h2d_ieee", half_to_double),
    AS("__udivti3", udivti3),
    AS("__umodti3", umodti3),
    AS("__divti3", divti3),
    AS("__modti3", modti3),
    AS("__multi3", multi3),
    AS("__ashlti3", ashlti3),
    AS("__lshrti3", lshrti3),
    AS("__ashrti3", ashrti3),
    {NULL, NULL},
};
