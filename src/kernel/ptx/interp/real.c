/* Rounding to a narrower format. See real.h. */
#include "kernel/ptx/interp/real.h"

#include <stddef.h>

static const struct real_format real_tf32 = {19, 10, 127, 0x3ffff, 0x3fbff, false};
static const struct real_format real_e4m3 = {8, 3, 7, 0x7f, 0x7e, true};
static const struct real_format real_e5m2 = {8, 2, 15, 0x7f, 0x7b, false};
static const struct real_format real_e2m3 = {6, 3, 1, 0x1f, 0x1f, true};
static const struct real_format real_e3m2 = {6, 2, 3, 0x1f, 0x1f, true};
static const struct real_format real_e2m1 = {4, 1, 1, 0x7, 0x7, true};

const struct real_format *
hed_interp_real(enum hed_ptx_type t)
{
    switch (t) {
    case HED_PTX_TYPE_F16:
    case HED_PTX_TYPE_F16X2:
        return &real_f16;
    case HED_PTX_TYPE_BF16:
    case HED_PTX_TYPE_BF16X2:
        return &real_bf16;
    case HED_PTX_TYPE_F32:
    case HED_PTX_TYPE_F32X2:
        return &real_f32;
    case HED_PTX_TYPE_F64:
        return &real_f64;
    case HED_PTX_TYPE_TF32:
        return &real_tf32;
    case HED_PTX_TYPE_E4M3X2:
    case HED_PTX_TYPE_E4M3X4:
        return &real_e4m3;
    case HED_PTX_TYPE_E5M2X2:
    case HED_PTX_TYPE_E5M2X4:
        return &real_e5m2;
    case HED_PTX_TYPE_E2M3X2:
    case HED_PTX_TYPE_E2M3X4:
        return &real_e2m3;
    case HED_PTX_TYPE_E3M2X2:
    case HED_PTX_TYPE_E3M2X4:
        return &real_e3m2;
    case HED_PTX_TYPE_E2M1X2:
    case HED_PTX_TYPE_E2M1X4:
        return &real_e2m1;
    default:
        return NULL;
    }
}

/* The result for a number that is too large. */
static uint64_t
overflow_result(bool negative, const struct real_format *to, struct real_rounding r)
{
    const uint64_t inf = to->no_inf ? to->nan : format_infinity(to);

    if (r.satfinite || r.mode == HED_PTX_ROUND_RZ)
        return to->most;
    if (r.mode == HED_PTX_ROUND_RM)
        return negative ? inf : to->most;
    if (r.mode == HED_PTX_ROUND_RP)
        return negative ? to->most : inf;
    return inf;
}

/* A NaN of f64 keeps its sign and the upper part of its payload. */
static uint64_t
narrowed_nan(uint64_t mag, uint64_t sign, const struct real_format *from,
             const struct real_format *to)
{
    if (from->bits != 64 || to->no_inf)
        return to->nan;
    mag >>= from->mantissa - to->mantissa;
    mag &= (UINT64_C(1) << to->mantissa) - 1;
    return mag | format_infinity(to) | UINT64_C(1) << (to->mantissa - 1) | sign;
}

uint64_t
hed_interp_narrow(uint64_t bits, const struct real_format *from, const struct real_format *to,
                  struct real_rounding r)
{
    const unsigned cut = from->mantissa - to->mantissa;
    const uint64_t least = (uint64_t)from->bias - to->bias + 1; /* of to's smallest normal number */
    const uint64_t mag = bits & (format_sign(from) - 1);
    const bool negative = mag != bits;
    const uint64_t sign = negative ? format_sign(to) : 0;
    uint64_t e = mag >> from->mantissa;
    uint64_t m = mag & ((UINT64_C(1) << from->mantissa) - 1);
    uint64_t by, q;

    if (real_is_nan(bits, from))
        return narrowed_nan(mag, sign, from, to);
    if (e)
        m |= UINT64_C(1) << from->mantissa;
    else
        e = 1;
    /* Subnormal results lose more bits, at most all of them. */
    by = cut + (least > e ? least - e : 0);
    by = by < from->mantissa + 2u ? by : from->mantissa + 2u;
    q = cut || least > 1 ? real_round_shift(m, (unsigned)by, negative, r.mode) : m;
    q += (e > least ? e - least : 0) << to->mantissa;
    if (r.ftz) {
        /* A result is tiny if, rounded with unlimited exponents, it is below the normal range. */
        const uint64_t full = real_round_shift(m, cut, negative, r.mode);

        if (e + (full >= UINT64_C(1) << (to->mantissa + 1)) < least)
            q = 0;
    }
    if (q > to->most)
        q = overflow_result(negative, to, r);
    if (!r.satfinite && !to->no_inf && mag == format_infinity(from))
        q = format_infinity(to);
    return q | sign;
}
