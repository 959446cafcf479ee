/* cvt and cvt.pack.
 *
 * Conversions between common types have steps of their own; the others go lane by lane. Float to
 * integer: rounded to a whole number and clamped; a NaN gives 0, or 0x80.. if the source or the
 * destination has 64 bits, as on a GPU.
 */
#include <math.h>

#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"
#include "kernel/ptx/interp/real.h"
#include "kernel/ptx/run/soft.h"

static struct real_rounding
rounding_of_form(const struct hed_ptx_form *f)
{
    return (struct real_rounding){.mode = f->round ? f->round : HED_PTX_ROUND_RN,
                                  .ftz = INTERP_HAS(f, FTZ) && f->types[0] == HED_PTX_TYPE_F32,
                                  .satfinite = INTERP_HAS(f, SATFINITE)};
}

static unsigned
bits_of(enum hed_ptx_type t)
{
    return hed_ptx_types[t].bits;
}

/* ---- integers -------------------------------------------------------------------------------- */

static int64_t
extended_int(uint64_t v, enum hed_ptx_type t)
{
    const unsigned up = 64 - bits_of(t);

    return interp_is_signed(t) ? (int64_t)(v << up) >> up : (int64_t)(v << up >> up);
}

/* v, of type `from`, clamped to the range of `to`. */
static uint64_t
clamped_integer(uint64_t v, enum hed_ptx_type from, enum hed_ptx_type to)
{
    const __int128 wide = interp_is_signed(from) ? (__int128)extended_int(v, from) : (__int128)v;
    const unsigned bits = bits_of(to);
    const __int128 most = ((__int128)1 << (bits - interp_is_signed(to))) - 1;
    const __int128 least = interp_is_signed(to) ? -most - 1 : 0;

    return (uint64_t)(wide > most ? most : wide < least ? least : wide);
}

static uint64_t
int_to_int_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const enum hed_ptx_type to = f->types[0], from = f->types[1];

    if (INTERP_HAS(f, SAT))
        return clamped_integer(in[0], from, to);
    return (uint64_t)extended_int(in[0], from);
}

/* ---- integer to float ------------------------------------------------------------------------ */

static uint64_t
int_to_real_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const enum hed_ptx_type to = f->types[0], from = f->types[1];
    const struct real_format *real = hed_interp_real(to);
    const struct real_rounding how = rounding_of_form(f);
    const bool is_signed = interp_is_signed(from);
    const bool rn = how.mode == HED_PTX_ROUND_RN;
    const int64_t v = extended_int(in[0], from);
    uint64_t r;

    if (to == HED_PTX_TYPE_F64 && (rn || bits_of(from) < 64))
        r = hed_to_bits64(is_signed ? (double)v : (double)(uint64_t)v);
    else if (to == HED_PTX_TYPE_F32 && rn)
        r = hed_to_bits32(is_signed ? (float)v : (float)(uint64_t)v);
    else if (to == HED_PTX_TYPE_F16 && rn)
        /* f32 holds every integer that is not infinite in f16. */
        r = real_narrow16(is_signed ? (float)v : (float)(uint64_t)v, real);
    else if (bits_of(from) < 64)
        r = real_narrow(hed_to_bits64(is_signed ? (double)v : (double)(uint64_t)v), &real_f64, real,
                        how);
    else
        r = hed_ptx_round_int((uint64_t)v, how.mode | (uint32_t)is_signed << 8 |
                                               (uint32_t)real->bits << 16 |
                                               (uint32_t)real->mantissa << 24);
    return INTERP_HAS(f, SAT) ? real_saturate(r, real) : r;
}

/* ---- float to integer ------------------------------------------------------------------------ */

static double
nearest_even(double x)
{
    const double whole = trunc(x);
    const double rest = fabs(x - whole);
    double r = whole;

    if (rest > 0.5 || (rest == 0.5 && fmod(whole, 2) != 0))
        r = whole + copysign(1, x);
    return x != x ? x : copysign(r, x);
}

static double
whole_number(const struct hed_ptx_form *f, double v)
{
    switch (f->round) {
    case HED_PTX_ROUND_RNI:
        return nearest_even(v);
    case HED_PTX_ROUND_RZI:
        return trunc(v);
    case HED_PTX_ROUND_RMI:
        return floor(v);
    case HED_PTX_ROUND_RPI:
        return ceil(v);
    default:
        return v;
    }
}

/* The bits of the source, flushed if the instruction says .ftz. A GPU ignores .ftz when it converts
 * to f16. */
static uint64_t
source_bits(const struct hed_ptx_form *f, uint64_t bits)
{
    if (INTERP_HAS(f, FTZ) && f->types[1] == HED_PTX_TYPE_F32 && f->types[0] != HED_PTX_TYPE_F16)
        return real_flush32((uint32_t)bits);
    return bits;
}

/* Any source as a double, exactly. */
static double
source_number(const struct hed_ptx_form *f, uint64_t bits)
{
    const struct real_format *real = hed_interp_real(f->types[1]);

    bits = source_bits(f, bits);
    if (real->bits == 16)
        return (double)real_widen16((uint16_t)bits, real);
    return real->bits == 64 ? hed_from_bits64(bits) : (double)hed_from_bits32((uint32_t)bits);
}

static uint64_t
real_to_int_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const enum hed_ptx_type to = f->types[0];
    const unsigned bits = bits_of(to);
    const double v = source_number(f, in[0]);
    const double whole = trunc(whole_number(f, v));
    const double top = ldexp(1, (int)bits - interp_is_signed(to));

    if (v != v)
        return bits == 64 || f->types[1] == HED_PTX_TYPE_F64 ? UINT64_C(1) << (bits - 1) : 0;
    if (interp_is_signed(to)) {
        const uint64_t most = (UINT64_C(1) << (bits - 1)) - 1;

        return whole >= top ? most : whole < -top ? ~most : (uint64_t)(int64_t)whole;
    }
    return whole >= top ? UINT64_MAX : whole <= 0 ? 0 : (uint64_t)whole;
}

/* ---- float to float -------------------------------------------------------------------------- */

static uint64_t
narrowed_f32(const struct hed_ptx_form *f, uint64_t bits, const struct real_format *to)
{
    const struct real_rounding how = rounding_of_form(f);

    if (how.mode == HED_PTX_ROUND_RN && !how.satfinite && to->bits == 16)
        return real_narrow16(hed_from_bits32((uint32_t)bits), to);
    return real_narrow(bits, &real_f32, to, how);
}

static uint64_t
canonical(uint64_t bits, const struct real_format *f)
{
    return real_is_nan(bits, f) ? f->nan : bits;
}

/* A conversion from one f64 to another keeps NaNs as the processor does: quiet. */
static uint64_t
number_bits(double v, enum hed_ptx_type to)
{
    if (to == HED_PTX_TYPE_F64)
        return v != v ? hed_to_bits64(v) | UINT64_C(1) << 51 : hed_to_bits64(v);
    return canonical(hed_to_bits32((float)v), &real_f32);
}

static uint64_t
widened_real(const struct hed_ptx_form *f, uint64_t in)
{
    const enum hed_ptx_type to = f->types[0], from = f->types[1];
    const uint64_t bits = source_bits(f, in);

    /* A conversion that only moves bits leaves NaNs alone. */
    if (to == HED_PTX_TYPE_F32 && from != HED_PTX_TYPE_F16 && !f->round && !f->flags)
        return from == HED_PTX_TYPE_BF16 ? bits << 16 : bits;
    if (to == HED_PTX_TYPE_F64 && from == HED_PTX_TYPE_F64 && !f->round)
        return bits;
    if (INTERP_HAS(f, FTZ) && from == HED_PTX_TYPE_F32 && real_is_nan(bits, &real_f32))
        return number_bits((double)hed_from_bits32(0x7fffffff), to);
    return number_bits(whole_number(f, source_number(f, in)), to);
}

/* .rna works on the bits: NaNs only lose their low bits, and .satfinite takes one step back from
 * any result with the exponent of infinity, NaN or not. */
static uint64_t
tf32_away(const struct hed_ptx_form *f, uint32_t bits)
{
    const uint32_t r = (bits + (real_is_nan(bits, &real_f32) ? 0 : 0x1000)) & 0xffffe000;

    if (INTERP_HAS(f, SATFINITE) && (r & 0x7fffffff) >= 0x7f800000)
        return r - 0x2000;
    return r;
}

static uint64_t
tf32_of(const struct hed_ptx_form *f, uint64_t in)
{
    const struct real_format *real = hed_interp_real(HED_PTX_TYPE_TF32);
    uint64_t bits = source_bits(f, in);

    if (f->round == HED_PTX_ROUND_RNA)
        return tf32_away(f, (uint32_t)bits);
    bits = real_narrow(bits, &real_f32, real, rounding_of_form(f));
    if (INTERP_HAS(f, RELU))
        bits = real_relu(bits, real);
    return bits << 13;
}

/* Between equal types: rounding to a whole number, or only .ftz and .sat. */
static uint64_t
same_type(const struct hed_ptx_form *f, uint64_t in)
{
    const struct real_format *real = hed_interp_real(f->types[0]);

    if (real->bits > 16)
        return widened_real(f, in);
    if (f->round)
        return real_narrow16((float)whole_number(f, source_number(f, in)), real);
    return canonical(in, real);
}

static uint64_t
real_to_real_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const enum hed_ptx_type to = f->types[0], from = f->types[1];
    const struct real_format *real = hed_interp_real(to);
    uint64_t r;

    if (to == HED_PTX_TYPE_TF32)
        return tf32_of(f, in[0]);
    if (to == from)
        r = same_type(f, in[0]);
    else if (from == HED_PTX_TYPE_F64)
        r = real_narrow(in[0], &real_f64, real, rounding_of_form(f));
    else if (real->bits == 16)
        r = narrowed_f32(f, hed_to_bits32((float)source_number(f, in[0])), real);
    else
        r = widened_real(f, in[0]);
    if (INTERP_HAS(f, SAT))
        r = real_saturate(r, real);
    if (INTERP_HAS(f, RELU))
        r = real_relu(r, real);
    return r;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* ue8m0 is only an exponent: rounded up (.rp) or towards zero, clamped to the smallest. */
static uint64_t
exponent_of(const struct hed_ptx_form *f, uint32_t bits)
{
    uint32_t e = bits & 0x7fffffff;

    if (e > 0x7f800000)
        return 0xff;
    if (f->round == HED_PTX_ROUND_RP)
        e += 0x7fffff;
    e >>= 23;
    return e < 0xfe ? e : 0xfe;
}

static uint64_t
narrow_part(const struct hed_ptx_form *f, uint32_t bits)
{
    const struct real_format *real = hed_interp_real(f->types[0]);
    uint64_t r;

    if (f->types[0] == HED_PTX_TYPE_UE8M0X2)
        return exponent_of(f, bits);
    if (INTERP_HAS(f, FTZ))
        bits = real_flush32(bits);
    r = narrowed_f32(f, bits, real);
    return INTERP_HAS(f, RELU) ? real_relu(r, real) : r;
}

/* Two floats, the first of which is the upper one, to a narrower pair. */
static uint64_t
floats_to_pair(const struct hed_ptx_form *f, const uint64_t *in)
{
    return narrow_part(f, (uint32_t)in[0]) << bits_of(f->types[0]) / 2 |
           narrow_part(f, (uint32_t)in[1]);
}

/* A pair of 16-bit floats to a narrower pair. */
static uint64_t
halves_to_pair(const struct hed_ptx_form *f, const uint64_t *in)
{
    const struct real_format *real = hed_interp_real(f->types[1]);
    const float high = real_widen16((uint16_t)(in[0] >> 16), real);
    const float low = real_widen16((uint16_t)in[0], real);

    return narrow_part(f, hed_to_bits32(high)) << bits_of(f->types[0]) / 2 |
           narrow_part(f, hed_to_bits32(low));
}

/* A narrow float as f16, which holds all of them. */
static uint64_t
f16_of_narrow(uint64_t bits, const struct real_format *f)
{
    const uint64_t sign = (bits & format_sign(f)) << (16 - f->bits);
    const uint64_t mag = bits & (format_sign(f) - 1);
    const uint64_t r = mag << (10 - f->mantissa);

    if (f->bits == 8 && f->mantissa == 2) /* e5m2 */
        return mag > 0x7c ? 0x7fff : r | sign;
    if (f->bits == 8 && mag == 0x7f) /* e4m3 */
        return 0x7fff;
    /* The biases differ: multiply by the power of two between them, which is exact. */
    return real_narrow_f16(real_widen_f16((uint16_t)r) * ldexpf(1, 15 - f->bias)) | sign;
}

static uint64_t
bf16_of_exponent(uint64_t e)
{
    return e == 0xff ? 0x7fff : e == 0 ? 0x40 : e << 7;
}

static uint64_t
pair_to_halves(const struct hed_ptx_form *f, const uint64_t *in)
{
    const struct real_format *real = hed_interp_real(f->types[1]);
    const unsigned each = bits_of(f->types[1]) / 2;
    const uint64_t mask = (UINT64_C(1) << (real ? real->bits : 8)) - 1;
    uint64_t r = 0;

    for (unsigned h = 0; h < 2; h++) {
        uint64_t one = in[0] >> (h * each) & mask;

        one = real ? f16_of_narrow(one, real) : bf16_of_exponent(one);
        if (INTERP_HAS(f, RELU))
            one = real_relu(one, &real_f16);
        r |= one << (16 * h);
    }
    return r;
}

/* ---- cvt.pack -------------------------------------------------------------------------------- */

/* Two clamped integers, a above b, with the low bits of c above both. */
static uint64_t
pack_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const unsigned each = bits_of(f->types[0]);
    const uint64_t mask = (UINT64_C(1) << each) - 1;
    const uint64_t a = clamped_integer(in[0], f->types[1], f->types[0]) & mask;
    const uint64_t b = clamped_integer(in[1], f->types[1], f->types[0]) & mask;

    return (uint32_t)(b | a << each | in[2] << (2 * each));
}

void
hed_interp_op_cvt_pack(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const uint8_t types[4] = {HED_PTX_TYPE_B32, f->types[1], f->types[1], HED_PTX_TYPE_B32};

    hed_interp_scalar(d, pack_lane, types, d->inst->noperands - 1u);
}

/* ---- common conversions ---------------------------------------------------------------------- */

static inline uint32_t
canonical32(float r)
{
    return r != r ? 0x7fffffff : hed_to_bits32(r);
}

/* Towards zero, clamped; NaN gives 0. */
static inline int32_t
to_s32(float v)
{
    const float low = v < -0x1p31f ? -0x1p31f : v;
    const int32_t r = (int32_t)(low < 0x1p31f ? low : 0);

    return v >= 0x1p31f ? INT32_MAX : v != v ? 0 : r;
}

static inline uint32_t
to_u32(float v)
{
    const float low = v > 0 ? v : 0;
    const uint32_t r = (uint32_t)(low < 0x1p32f ? low : 0);

    return v >= 0x1p32f ? UINT32_MAX : r;
}

STEP_UNARY(s32_to_f32, float, int32_t, (float)a)
STEP_UNARY(u32_to_f32, float, uint32_t, (float)a)
STEP_UNARY(s32_to_f64, double, int32_t, (double)a)
STEP_UNARY(u32_to_f64, double, uint32_t, (double)a)
STEP_UNARY(s64_to_f64, double, int64_t, (double)a)
STEP_UNARY(u64_to_f64, double, uint64_t, (double)a)
STEP_UNARY(s64_to_f32, float, int64_t, (float)a)
STEP_UNARY(u64_to_f32, float, uint64_t, (float)a)
STEP_UNARY(f32_to_s32, int32_t, float, to_s32(a))
STEP_UNARY(f32_to_u32, uint32_t, float, to_u32(a))
STEP_UNARY(f16_to_f32, uint32_t, uint16_t, canonical32(real_widen_f16(a)))
STEP_UNARY(bf16_to_f32, uint32_t, uint16_t, (uint32_t)a << 16)
STEP_UNARY(f32_to_f16, uint16_t, float, real_narrow_f16(a))
STEP_UNARY(f32_to_bf16, uint16_t, float, real_narrow_bf16(a))

STEP_UNARY(f32_to_f64, double, float, (double)a)
STEP_UNARY(f64_to_f32, float, double, (float)a)
STEP_UNARY(nearest_f32, uint32_t, float, canonical32(__builtin_rintf(a)))
STEP_UNARY(trunc_f32, uint32_t, float, canonical32(__builtin_truncf(a)))
STEP_UNARY(floor_f32, uint32_t, float, canonical32(__builtin_floorf(a)))
STEP_UNARY(ceil_f32, uint32_t, float, canonical32(__builtin_ceilf(a)))
STEP_UNARY(nearest_s32, int32_t, float, to_s32(__builtin_rintf(a)))
STEP_UNARY(floor_s32, int32_t, float, to_s32(__builtin_floorf(a)))
STEP_UNARY(ceil_s32, int32_t, float, to_s32(__builtin_ceilf(a)))
STEP_UNARY(saturate_f32, float, float, a > 0 ? (a < 1 ? a : 1) : 0)

static const struct {
    uint8_t to, from, round; /* 255: any rounding */
    interp_run run;
} common[] = {
    {HED_PTX_TYPE_F64, HED_PTX_TYPE_F32, HED_PTX_ROUND_NONE, f32_to_f64},
    {HED_PTX_TYPE_F32, HED_PTX_TYPE_F64, HED_PTX_ROUND_RN, f64_to_f32},
    {HED_PTX_TYPE_F32, HED_PTX_TYPE_F32, HED_PTX_ROUND_RNI, nearest_f32},
    {HED_PTX_TYPE_F32, HED_PTX_TYPE_F32, HED_PTX_ROUND_RZI, trunc_f32},
    {HED_PTX_TYPE_F32, HED_PTX_TYPE_F32, HED_PTX_ROUND_RMI, floor_f32},
    {HED_PTX_TYPE_F32, HED_PTX_TYPE_F32, HED_PTX_ROUND_RPI, ceil_f32},
    {HED_PTX_TYPE_S32, HED_PTX_TYPE_F32, HED_PTX_ROUND_RNI, nearest_s32},
    {HED_PTX_TYPE_S32, HED_PTX_TYPE_F32, HED_PTX_ROUND_RMI, floor_s32},
    {HED_PTX_TYPE_S32, HED_PTX_TYPE_F32, HED_PTX_ROUND_RPI, ceil_s32},
    {HED_PTX_TYPE_F32, HED_PTX_TYPE_S32, HED_PTX_ROUND_RN, s32_to_f32},
    {HED_PTX_TYPE_F32, HED_PTX_TYPE_U32, HED_PTX_ROUND_RN, u32_to_f32},
    {HED_PTX_TYPE_F64, HED_PTX_TYPE_S32, 255, s32_to_f64},
    {HED_PTX_TYPE_F64, HED_PTX_TYPE_U32, 255, u32_to_f64},
    {HED_PTX_TYPE_F64, HED_PTX_TYPE_S64, HED_PTX_ROUND_RN, s64_to_f64},
    {HED_PTX_TYPE_F64, HED_PTX_TYPE_U64, HED_PTX_ROUND_RN, u64_to_f64},
    {HED_PTX_TYPE_F32, HED_PTX_TYPE_S64, HED_PTX_ROUND_RN, s64_to_f32},
    {HED_PTX_TYPE_F32, HED_PTX_TYPE_U64, HED_PTX_ROUND_RN, u64_to_f32},
    {HED_PTX_TYPE_S32, HED_PTX_TYPE_F32, HED_PTX_ROUND_RZI, f32_to_s32},
    {HED_PTX_TYPE_U32, HED_PTX_TYPE_F32, HED_PTX_ROUND_RZI, f32_to_u32},
    {HED_PTX_TYPE_F32, HED_PTX_TYPE_F16, HED_PTX_ROUND_NONE, f16_to_f32},
    {HED_PTX_TYPE_F32, HED_PTX_TYPE_BF16, HED_PTX_ROUND_NONE, bf16_to_f32},
    {HED_PTX_TYPE_F16, HED_PTX_TYPE_F32, HED_PTX_ROUND_RN, f32_to_f16},
    {HED_PTX_TYPE_BF16, HED_PTX_TYPE_F32, HED_PTX_ROUND_RN, f32_to_bf16},
};

/* Adds the step of a common conversion; false if there is none. */
static bool
emit_common(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const enum hed_ptx_type to = f->types[0], from = f->types[1];
    uint32_t v;

    if (f->flags == HED_PTX_FLAG(SAT) && !f->round && to == HED_PTX_TYPE_F32 && from == to) {
        v = hed_interp_operand(d, 1, from);
        hed_interp_emit3(d, saturate_f32, hed_interp_dest(d, &d->inst->operands[0], to), v, 0, 0);
        return true;
    }
    if (f->flags)
        return false;
    if (hed_ptx_is_int(to) && hed_ptx_is_int(from) && bits_of(to) <= 64) {
        v = hed_interp_operand(d, 1, from);
        hed_interp_resize(d, v, interp_bytes(from), hed_interp_dest(d, &d->inst->operands[0], to),
                          interp_bytes(to), interp_is_signed(from));
        return true;
    }
    for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++) {
        if (common[i].to == to && common[i].from == from &&
            (common[i].round == 255 || common[i].round == f->round)) {
            v = hed_interp_operand(d, 1, from);
            hed_interp_emit3(d, common[i].run, hed_interp_dest(d, &d->inst->operands[0], to), v, 0,
                             0);
            return true;
        }
    }
    return false;
}

/* ---- cvt ------------------------------------------------------------------------------------- */

void
hed_interp_op_cvt(struct interp_decoder *d)
{
    static const interp_scalar_fn lanes[] = {
        [HED_PTX_INT_TO_INT] = int_to_int_lane,    [HED_PTX_INT_TO_REAL] = int_to_real_lane,
        [HED_PTX_REAL_TO_INT] = real_to_int_lane,  [HED_PTX_REAL_TO_REAL] = real_to_real_lane,
        [HED_PTX_PAIR_TO_HALVES] = pair_to_halves, [HED_PTX_FLOATS_TO_PAIR] = floats_to_pair,
        [HED_PTX_HALVES_TO_PAIR] = halves_to_pair,
    };
    const struct hed_ptx_form *f = d->inst->form;
    const uint8_t types[3] = {f->types[0], f->types[1], f->types[1]};

    if (!emit_common(d))
        hed_interp_scalar(d, lanes[d->meaning->conversion], types, d->inst->noperands - 1u);
}
