/* Arithmetic of f32 and f64.
 *
 * For rounding to nearest, the processor's operations are what PTX asks for. In the other
 * directions, f32 is computed in f64, rounded to odd with the help of the exact error, and rounded
 * again to f32; f64 is computed with integers (run/soft.c).
 *
 * NaNs are those of a GPU: in f32 there is one, 0x7fffffff; f64 keeps an operand's NaN, made quiet,
 * and otherwise produces 0xfff8000000000000.
 */
#include <math.h>

#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"
#include "kernel/ptx/interp/real.h"
#include "kernel/ptx/run/soft.h"

/* ---- f32, to nearest ------------------------------------------------------------------------- */

static inline uint32_t
bits_or_nan(float r)
{
    return r != r ? 0x7fffffff : hed_to_bits32(r);
}

static inline float
flush_in(float v)
{
    return hed_from_bits32(real_flush32(hed_to_bits32(v)));
}

/* Zero if the result is subnormal after rounding. To find out, the result is computed again, scaled
 * up far enough not to be subnormal. */
static inline uint32_t
flush_out(float r, float scaled)
{
    const uint32_t bits = hed_to_bits32(r);

    return r != r ? 0x7fffffff : __builtin_fabsf(scaled) < 0x1p-62f ? bits & 0x80000000 : bits;
}

static inline uint32_t
saturated(uint32_t bits)
{
    const uint32_t low = bits < 0x3f800000 ? bits : 0x3f800000;

    return (bits & 0x7fffffff) > 0x7f800000 || bits >> 31 ? 0 : low;
}

static inline uint32_t
add_ftz(float a, float b)
{
    const float r = flush_in(a) + flush_in(b);

    return r != r ? 0x7fffffff : real_flush32(hed_to_bits32(r));
}

static inline uint32_t
sub_ftz(float a, float b)
{
    const float r = flush_in(a) - flush_in(b);

    return r != r ? 0x7fffffff : real_flush32(hed_to_bits32(r));
}

static inline uint32_t
mul_ftz(float a, float b)
{
    const float x = flush_in(a), y = flush_in(b);

    return flush_out(x * y, x * 0x1p64f * y);
}

static inline uint32_t
fma_ftz(float a, float b, float c)
{
    const float x = flush_in(a), y = flush_in(b), z = flush_in(c);

    return flush_out(__builtin_fmaf(x, y, z), __builtin_fmaf(x * 0x1p64f, y, z * 0x1p64f));
}

static inline uint32_t
div_ftz(float a, float b)
{
    const float x = flush_in(a), y = flush_in(b);

    return flush_out(x / y, x * 0x1p64f / y);
}

static inline uint32_t
rcp_ftz(float a)
{
    const float r = 1 / flush_in(a);

    return r != r ? 0x7fffffff : real_flush32(hed_to_bits32(r));
}

static inline uint32_t
sqrt_ftz(float a)
{
    const float r = __builtin_sqrtf(flush_in(a));

    return r != r ? 0x7fffffff : real_flush32(hed_to_bits32(r));
}

/* "For 2^126 < |b| < 2^128, if a is infinity, div.approx.f32 returns NaN, otherwise it returns 0":
 * it multiplies with the reciprocal, and that is tiny. PTX ISA, div. */
static inline float
div_approx(float a, float b)
{
    const float q = a / b;

    return __builtin_fabsf(b) > 0x1p126f ? a * __builtin_copysignf(0, b) : q;
}

static inline uint32_t
div_approx_ftz(float a, float b)
{
    const float r = div_approx(flush_in(a), flush_in(b));

    return r != r ? 0x7fffffff : real_flush32(hed_to_bits32(r));
}

static inline uint32_t
div_full_ftz(float a, float b)
{
    const float r = flush_in(a) / flush_in(b);

    return r != r ? 0x7fffffff : real_flush32(hed_to_bits32(r));
}

static inline float
rsqrt_of(float a)
{
    return (float)(1 / __builtin_sqrt((double)a));
}

static inline uint32_t
rsqrt_ftz(float a)
{
    const float r = rsqrt_of(flush_in(a));

    return r != r ? 0x7fffffff : real_flush32(hed_to_bits32(r));
}

#define F32_TWO(name, plain, ftz)                                                      \
    STEP_BINARY(name##_f32, uint32_t, float, float, bits_or_nan(plain))                \
    STEP_BINARY(name##_ftz_f32, uint32_t, float, float, ftz)                           \
    STEP_BINARY(name##_sat_f32, uint32_t, float, float, saturated(bits_or_nan(plain))) \
    STEP_BINARY(name##_ftz_sat_f32, uint32_t, float, float, saturated(ftz))

F32_TWO(add, a + b, add_ftz(a, b))
F32_TWO(sub, a - b, sub_ftz(a, b))
F32_TWO(mul, a *b, mul_ftz(a, b))
F32_TWO(div, a / b, div_ftz(a, b))
STEP_TERNARY(fma_f32, uint32_t, float, float, float, bits_or_nan(__builtin_fmaf(a, b, c)))
STEP_TERNARY(fma_ftz_f32, uint32_t, float, float, float, fma_ftz(a, b, c))
STEP_TERNARY(fma_sat_f32, uint32_t, float, float, float,
             saturated(bits_or_nan(__builtin_fmaf(a, b, c))))
STEP_TERNARY(fma_ftz_sat_f32, uint32_t, float, float, float, saturated(fma_ftz(a, b, c)))
STEP_UNARY(rcp_f32, uint32_t, float, bits_or_nan(1 / a))
STEP_UNARY(rcp_ftz_f32, uint32_t, float, rcp_ftz(a))
STEP_UNARY(sqrt_f32, uint32_t, float, bits_or_nan(__builtin_sqrtf(a)))
STEP_UNARY(sqrt_ftz_f32, uint32_t, float, sqrt_ftz(a))
STEP_UNARY(rsqrt_f32, uint32_t, float, bits_or_nan(rsqrt_of(a)))
STEP_UNARY(rsqrt_ftz_f32, uint32_t, float, rsqrt_ftz(a))
STEP_BINARY(div_approx_f32, uint32_t, float, float, bits_or_nan(div_approx(a, b)))
STEP_BINARY(div_approx_ftz_f32, uint32_t, float, float, div_approx_ftz(a, b))
STEP_BINARY(div_full_ftz_f32, uint32_t, float, float, div_full_ftz(a, b))

/* By .ftz and .sat. */
static interp_run
nearest_f32(const struct hed_ptx_form *f)
{
    static const interp_run adds[] = {add_f32, add_ftz_f32, add_sat_f32, add_ftz_sat_f32};
    static const interp_run subs[] = {sub_f32, sub_ftz_f32, sub_sat_f32, sub_ftz_sat_f32};
    static const interp_run muls[] = {mul_f32, mul_ftz_f32, mul_sat_f32, mul_ftz_sat_f32};
    static const interp_run fmas[] = {fma_f32, fma_ftz_f32, fma_sat_f32, fma_ftz_sat_f32};
    static const interp_run divs[] = {div_f32, div_ftz_f32, div_sat_f32, div_ftz_sat_f32};
    const bool ftz = INTERP_HAS(f, FTZ);
    const unsigned column = ftz + 2u * INTERP_HAS(f, SAT);

    switch (f->op) {
    case HED_PTX_OP_ADD:
        return adds[column];
    case HED_PTX_OP_SUB:
        return subs[column];
    case HED_PTX_OP_MUL:
        return muls[column];
    case HED_PTX_OP_DIV:
        return divs[column];
    case HED_PTX_OP_RCP:
        return ftz ? rcp_ftz_f32 : rcp_f32;
    case HED_PTX_OP_SQRT:
        return ftz ? sqrt_ftz_f32 : sqrt_f32;
    default:
        return fmas[column];
    }
}

static interp_run
approximate_f32(const struct hed_ptx_form *f)
{
    const bool ftz = INTERP_HAS(f, FTZ);

    switch (f->op) {
    case HED_PTX_OP_DIV:
        if (INTERP_HAS(f, FULL))
            return ftz ? div_full_ftz_f32 : div_f32;
        return ftz ? div_approx_ftz_f32 : div_approx_f32;
    case HED_PTX_OP_RSQRT:
        return ftz ? rsqrt_ftz_f32 : rsqrt_f32;
    case HED_PTX_OP_RCP:
    case HED_PTX_OP_SQRT:
        return nearest_f32(f);
    default:
        return hed_interp_approx(f->op, ftz);
    }
}

/* ---- f64, to nearest ------------------------------------------------------------------------- */

static inline uint64_t
quiet64(double v)
{
    return hed_to_bits64(v) | UINT64_C(1) << 51;
}

/* The NaN that an f64 operation gives is an operand's. If several are, a GPU takes the second, then
 * the third, then the first; of a division, the first. */
static inline uint64_t
nan_of_two(double r, double first, double second)
{
    return r == r             ? hed_to_bits64(r)
           : first != first   ? quiet64(first)
           : second != second ? quiet64(second)
                              : real_f64.nan;
}

static inline uint64_t
nan_of_three(double r, double a, double b, double c)
{
    return r == r   ? hed_to_bits64(r)
           : b != b ? quiet64(b)
           : c != c ? quiet64(c)
           : a != a ? quiet64(a)
                    : UINT64_C(0xfff8000000000000);
}

STEP_BINARY(add_f64, uint64_t, double, double, nan_of_two(a + b, b, a))
STEP_BINARY(sub_f64, uint64_t, double, double, nan_of_two(a - b, b, a))
STEP_BINARY(mul_f64, uint64_t, double, double, nan_of_two(a *b, b, a))
STEP_BINARY(div_f64, uint64_t, double, double, nan_of_two(a / b, a, b))
STEP_TERNARY(fma_f64, uint64_t, double, double, double,
             nan_of_three(__builtin_fma(a, b, c), a, b, c))
STEP_UNARY(rcp_f64, uint64_t, double, nan_of_two(1 / a, a, a))
STEP_UNARY(sqrt_f64, uint64_t, double, nan_of_two(__builtin_sqrt(a), a, a))

static interp_run
nearest_f64(const struct hed_ptx_form *f)
{
    switch (f->op) {
    case HED_PTX_OP_ADD:
        return add_f64;
    case HED_PTX_OP_SUB:
        return sub_f64;
    case HED_PTX_OP_MUL:
        return mul_f64;
    case HED_PTX_OP_DIV:
        return div_f64;
    case HED_PTX_OP_RCP:
        return rcp_f64;
    case HED_PTX_OP_SQRT:
        return sqrt_f64;
    default:
        return fma_f64;
    }
}

/* ---- in a direction, lane by lane ------------------------------------------------------------ */

static unsigned
rounding_word(const struct hed_ptx_form *f)
{
    return f->round ? f->round : HED_PTX_ROUND_RN;
}

/* When rounding down, a sum that is zero is -0 unless both parts are +0. */
static double
sum_to_odd(const struct hed_ptx_form *f, double a, double b)
{
    double err;
    double r = real_two_sum(a, b, &err);

    if (rounding_word(f) == HED_PTX_ROUND_RM && r == 0)
        r = hed_from_bits64((hed_to_bits64(a) | hed_to_bits64(b)) & UINT64_C(1) << 63);
    return real_odd(r, err);
}

/* The result of f32 sources as a double that rounds to the right f32 in every direction. */
static double
wide_result(const struct hed_ptx_form *f, const float *v)
{
    double a = (double)v[0], b = (double)v[1];
    double r;

    switch (f->op) {
    case HED_PTX_OP_MUL:
        return a * b;
    case HED_PTX_OP_RCP:
        b = a;
        a = 1;
        __attribute__((fallthrough));
    case HED_PTX_OP_DIV:
        /* The quotient is off by rest / b, whose sign depends on that of b. */
        r = a / b;
        return real_odd(r, __builtin_fma(-r, b, a) * copysign(1, b));
    case HED_PTX_OP_SQRT:
        r = sqrt(a);
        return real_odd(r, __builtin_fma(-r, r, a));
    case HED_PTX_OP_SUB:
        return sum_to_odd(f, a, -b);
    case HED_PTX_OP_ADD:
        return sum_to_odd(f, a, b);
    default:
        return sum_to_odd(f, a * b, (double)v[2]);
    }
}

static uint32_t
nearest_result(const struct hed_ptx_form *f, const float *v)
{
    const bool ftz = INTERP_HAS(f, FTZ);

    switch (f->op) {
    case HED_PTX_OP_ADD:
        return ftz ? add_ftz(v[0], v[1]) : bits_or_nan(v[0] + v[1]);
    case HED_PTX_OP_SUB:
        return ftz ? sub_ftz(v[0], v[1]) : bits_or_nan(v[0] - v[1]);
    case HED_PTX_OP_MUL:
        return ftz ? mul_ftz(v[0], v[1]) : bits_or_nan(v[0] * v[1]);
    default:
        return ftz ? fma_ftz(v[0], v[1], v[2]) : bits_or_nan(__builtin_fmaf(v[0], v[1], v[2]));
    }
}

/* One f32 result, rounded in any direction. */
static uint32_t
rounded_result(const struct hed_ptx_form *f, float *v)
{
    const struct real_rounding how = {.mode = (uint8_t)rounding_word(f), .ftz = INTERP_HAS(f, FTZ)};
    uint32_t bits;

    if (how.mode == HED_PTX_ROUND_RN) {
        bits = nearest_result(f, v);
    } else {
        for (unsigned i = 0; how.ftz && i < 3; i++)
            v[i] = flush_in(v[i]);
        bits = (uint32_t)real_narrow(hed_to_bits64(wide_result(f, v)), &real_f64, &real_f32, how);
        if ((bits & 0x7fffffff) > 0x7f800000)
            bits = 0x7fffffff;
    }
    return INTERP_HAS(f, SAT) ? saturated(bits) : bits;
}

static uint64_t
directed_f32_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    float v[3] = {hed_from_bits32((uint32_t)in[0]), hed_from_bits32((uint32_t)in[1]),
                  hed_from_bits32((uint32_t)in[2])};

    return rounded_result(f, v);
}

/* f32x2: each half on its own, like the f32 instruction with the same words. */
static uint64_t
pair_f32(const struct hed_ptx_form *f, const uint64_t *in)
{
    uint64_t r = 0;

    for (unsigned h = 0; h < 2; h++) {
        float v[3];

        for (unsigned k = 0; k < 3; k++)
            v[k] = hed_from_bits32((uint32_t)(in[k] >> (32 * h)));
        r |= (uint64_t)rounded_result(f, v) << (32 * h);
    }
    return r;
}

static uint64_t
directed_f64_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const uint32_t mode = rounding_word(f);
    const double a = hed_from_bits64(in[0]), b = hed_from_bits64(in[1]), c = hed_from_bits64(in[2]);
    double r;

    switch (f->op) {
    case HED_PTX_OP_ADD:
        r = hed_from_bits64(hed_ptx_add_f64(in[0], in[1], mode));
        return nan_of_two(r, b, a);
    case HED_PTX_OP_SUB:
        r = hed_from_bits64(hed_ptx_sub_f64(in[0], in[1], mode));
        return nan_of_two(r, b, a);
    case HED_PTX_OP_MUL:
        r = hed_from_bits64(hed_ptx_mul_f64(in[0], in[1], mode));
        return nan_of_two(r, b, a);
    case HED_PTX_OP_DIV:
        r = hed_from_bits64(hed_ptx_div_f64(in[0], in[1], mode));
        return nan_of_two(r, a, b);
    case HED_PTX_OP_RCP:
        r = hed_from_bits64(hed_ptx_rcp_f64(in[0], mode));
        return nan_of_two(r, a, a);
    case HED_PTX_OP_SQRT:
        r = hed_from_bits64(hed_ptx_sqrt_f64(in[0], mode));
        return nan_of_two(r, a, a);
    default:
        r = hed_from_bits64(hed_ptx_fma_f64(in[0], in[1], in[2], mode));
        return nan_of_three(r, a, b, c);
    }
}

/* add.f32.f16 and the like: the first source (of fma: the factors) has the second type. */
static uint64_t
mixed_f32(const struct hed_ptx_form *f, const uint64_t *in)
{
    const struct real_format *half = hed_interp_real(f->types[f->ntypes - 1]);
    const bool is_fma = f->op == HED_PTX_OP_FMA;
    float v[3];

    v[0] = real_widen16((uint16_t)in[0], half);
    v[1] = is_fma ? real_widen16((uint16_t)in[1], half) : hed_from_bits32((uint32_t)in[1]);
    v[2] = hed_from_bits32((uint32_t)in[2]);
    return rounded_result(f, v);
}

static void
emit_mixed(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const unsigned n = d->inst->noperands - 1u;
    uint8_t types[4] = {f->types[0], f->types[0], f->types[0], f->types[0]};

    if (f->types[0] == HED_PTX_TYPE_F32 && interp_bytes(f->types[f->ntypes - 1]) == 2)
        for (unsigned i = 1; i < n; i++)
            types[i] = f->types[f->ntypes - 1];
    hed_interp_scalar(d, interp_bytes(types[1]) == 2 ? mixed_f32 : directed_f32_lane, types, n);
}

/* ---- the upper half of f64 ------------------------------------------------------------------- */

/* Subnormal numbers become zeros of the same sign; the low half of the input is ignored. */
static uint64_t
high_part(uint64_t v)
{
    v &= UINT64_C(0xffffffff00000000);
    if (v << 1 > UINT64_C(0xffe0000000000000))
        return UINT64_C(0x7fffffff00000000);
    return (v & UINT64_C(0x7ff0000000000000)) == 0 ? v & UINT64_C(1) << 63 : v;
}

static uint64_t
rcp_high(const struct hed_ptx_form *f, const uint64_t *in)
{
    (void)f;
    return high_part(hed_to_bits64(1 / hed_from_bits64(high_part(in[0]))));
}

static uint64_t
rsqrt_high(const struct hed_ptx_form *f, const uint64_t *in)
{
    (void)f;
    return high_part(hed_to_bits64(1 / sqrt(hed_from_bits64(high_part(in[0])))));
}

/* ---- signs ----------------------------------------------------------------------------------- */

/* A GPU adds 0 to do this, so NaNs keep their sign. */
STEP_UNARY(abs_f32, uint32_t, uint32_t, (a & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : a & 0x7fffffff)
STEP_UNARY(neg_f32, uint32_t, uint32_t, (a & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : a ^ 0x80000000)
STEP_UNARY(abs_ftz_f32, uint32_t, uint32_t,
           (a & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : real_flush32(a) & 0x7fffffff)
STEP_UNARY(neg_ftz_f32, uint32_t, uint32_t,
           (a & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : real_flush32(a) ^ 0x80000000)

#define INF64 UINT64_C(0x7ff0000000000000)
#define SIGN64 (UINT64_C(1) << 63)

STEP_UNARY(abs_f64, uint64_t, uint64_t, (a & ~SIGN64) > INF64 ? a | UINT64_C(1) << 51 : a & ~SIGN64)
STEP_UNARY(neg_f64, uint64_t, uint64_t, (a & ~SIGN64) > INF64 ? a | UINT64_C(1) << 51 : a ^ SIGN64)

static interp_run
sign_step(const struct hed_ptx_form *f)
{
    const bool is_abs = f->op == HED_PTX_OP_ABS;

    if (f->types[0] == HED_PTX_TYPE_F64)
        return is_abs ? abs_f64 : neg_f64;
    if (INTERP_HAS(f, FTZ))
        return is_abs ? abs_ftz_f32 : neg_ftz_f32;
    return is_abs ? abs_f32 : neg_f32;
}

/* ---- decoding -------------------------------------------------------------------------------- */

static void
emit_plain(struct interp_decoder *d, interp_run run)
{
    const enum hed_ptx_type t = d->inst->form->types[0];
    uint32_t from[3] = {0, 0, 0};

    if (!run) {
        hed_interp_refuse(d, "this approximation does not exist");
        return;
    }
    for (unsigned i = 0; i < 3 && i + 1u < d->inst->noperands; i++)
        from[i] = hed_interp_operand(d, i + 1, t);
    hed_interp_emit3(d, run, hed_interp_dest(d, &d->inst->operands[0], t), from[0], from[1],
                     from[2]);
}

void
hed_interp_float(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const enum hed_ptx_type t = f->types[0];
    const unsigned n = d->inst->noperands - 1u;
    const uint8_t types[4] = {t, t, t, t};
    const bool is_rcp = f->op == HED_PTX_OP_RCP;

    if (f->op == HED_PTX_OP_ABS || f->op == HED_PTX_OP_NEG)
        emit_plain(d, sign_step(f));
    else if (f->op == HED_PTX_OP_MIN || f->op == HED_PTX_OP_MAX)
        hed_interp_least(d);
    else if (t == HED_PTX_TYPE_F32X2)
        hed_interp_scalar(d, pair_f32, types, n);
    else if (t == HED_PTX_TYPE_F64 && INTERP_HAS(f, APPROX))
        hed_interp_scalar(d, is_rcp ? rcp_high : rsqrt_high, types, n);
    else if (f->ntypes > 1)
        emit_mixed(d);
    else if (INTERP_HAS(f, APPROX) || INTERP_HAS(f, FULL))
        emit_plain(d, approximate_f32(f));
    else if (hed_interp_directed(f))
        emit_plain(d, hed_interp_directed(f));
    else if (rounding_word(f) != HED_PTX_ROUND_RN)
        hed_interp_scalar(d, t == HED_PTX_TYPE_F64 ? directed_f64_lane : directed_f32_lane, types,
                          n);
    else
        emit_plain(d, t == HED_PTX_TYPE_F64 ? nearest_f64(f) : nearest_f32(f));
}
