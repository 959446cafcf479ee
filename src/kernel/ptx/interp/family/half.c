/* f16, bf16, and pairs of them; min and max of all floats.
 *
 * Sums and products are computed in f32 and rounded once more. f32 has more than twice the bits, so
 * the result is what a single rounding would give. fma takes the exact product and first rounds the
 * sum to odd.
 */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"
#include "kernel/ptx/interp/real.h"

/* ---- min and max ----------------------------------------------------------------------------- */

/* Without modifiers, a number wins over NaN, and -0 is less than +0. */
static inline int32_t
ordered32(uint32_t bits)
{
    return (int32_t)(bits ^ (uint32_t)((int32_t)bits >> 31) >> 1);
}

static inline uint32_t
pick_number(uint32_t a, uint32_t b, uint32_t r)
{
    const bool a_nan = (a & 0x7fffffff) > 0x7f800000;
    const bool b_nan = (b & 0x7fffffff) > 0x7f800000;

    r = b_nan ? a : r;
    r = a_nan ? b : r;
    return a_nan && b_nan ? 0x7fffffff : r;
}

STEP_BINARY(min_f32, uint32_t, uint32_t, uint32_t,
            pick_number(a, b, ordered32(a) < ordered32(b) ? a : b))
STEP_BINARY(max_f32, uint32_t, uint32_t, uint32_t,
            pick_number(a, b, ordered32(a) > ordered32(b) ? a : b))

static inline uint32_t
least_ftz(uint32_t a, uint32_t b)
{
    a = real_flush32(a);
    b = real_flush32(b);
    return pick_number(a, b, ordered32(a) < ordered32(b) ? a : b);
}

static inline uint32_t
most_ftz(uint32_t a, uint32_t b)
{
    a = real_flush32(a);
    b = real_flush32(b);
    return pick_number(a, b, ordered32(a) > ordered32(b) ? a : b);
}

STEP_BINARY(min_ftz_f32, uint32_t, uint32_t, uint32_t, least_ftz(a, b))
STEP_BINARY(max_ftz_f32, uint32_t, uint32_t, uint32_t, most_ftz(a, b))

static int64_t
ordered_number(uint64_t bits, const struct real_format *f)
{
    const int64_t v = (int64_t)(bits << (64 - f->bits)) >> (64 - f->bits);

    return v ^ (int64_t)((uint64_t)(v >> 63) >> 1 & (format_sign(f) - 1));
}

static uint64_t
least_of_two(const struct hed_ptx_form *form, const struct real_format *f, uint64_t a, uint64_t b)
{
    uint64_t nan = f->nan, flip = 0, r;
    bool a_nan, b_nan, wins;

    if (INTERP_HAS(form, FTZ)) {
        a = real_flush(a, f);
        b = real_flush(b, f);
    }
    if (f->bits == 64)
        nan = b | UINT64_C(1) << 51;
    a_nan = real_is_nan(a, f);
    b_nan = real_is_nan(b, f);
    if (INTERP_HAS(form, XORSIGN))
        flip = (a ^ b) & format_sign(f);
    if (INTERP_HAS(form, ABS)) {
        a &= ~format_sign(f);
        b &= ~format_sign(f);
    }
    wins = form->op == HED_PTX_OP_MAX ? ordered_number(a, f) > ordered_number(b, f)
                                      : ordered_number(a, f) < ordered_number(b, f);
    r = wins ? a : b;
    r = (a_nan ? b : b_nan ? a : r) | flip;
    return (INTERP_HAS(form, NAN) ? a_nan || b_nan : a_nan && b_nan) ? nan : r;
}

static uint64_t
least_of_all(const struct hed_ptx_form *form, const struct real_format *f, const uint64_t *in,
             bool has_three)
{
    uint64_t r = least_of_two(form, f, in[0], in[1]);

    if (has_three)
        r = least_of_two(form, f, r, in[2]);
    return INTERP_HAS(form, RELU) ? real_relu(r, f) : r;
}

static uint64_t
least_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    return least_of_all(f, hed_interp_real(f->types[0]), in, false);
}

static uint64_t
least_lane_of_three(const struct hed_ptx_form *f, const uint64_t *in)
{
    return least_of_all(f, hed_interp_real(f->types[0]), in, true);
}

void
hed_interp_least(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const uint8_t t = f->types[0];
    const uint8_t types[4] = {t, t, t, t};
    const unsigned n = d->inst->noperands - 1u;

    if (t == HED_PTX_TYPE_F32 && n == 2 && (f->flags & ~HED_PTX_FLAG(FTZ)) == 0) {
        const bool is_min = f->op == HED_PTX_OP_MIN;
        const uint32_t a = hed_interp_operand(d, 1, t);
        const uint32_t b = hed_interp_operand(d, 2, t);

        hed_interp_emit3(d,
                         f->flags ? (is_min ? min_ftz_f32 : max_ftz_f32)
                         : is_min ? min_f32
                                  : max_f32,
                         hed_interp_dest(d, &d->inst->operands[0], t), a, b, 0);
        return;
    }
    hed_interp_scalar(d, n > 2 ? least_lane_of_three : least_lane, types, n);
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* The f32 that rounds to the right f16; f32 holds every product of two f16 exactly. */
static inline float
fma_in_f16(float a, float b, float c)
{
    const float product = a * b;
    const float sum = product + c;
    const float bb = sum - product;
    const float err = (product - (sum - bb)) + (c - bb);

    return real_oddf(sum, err);
}

/* bf16 has the range of f32, so its products need f64. */
static inline float
fma_in_bf16(float a, float b, float c)
{
    double err;
    const double sum = real_two_sum((double)a * (double)b, (double)c, &err);
    const double odd = real_odd(sum, err);
    const float f = (float)odd;
    const double off = odd - (double)f;

    /* Where the float became infinite the step goes back to the largest; infinities stay. */
    return real_oddf(f, off > 0 ? 1.0f : off < 0 ? -1.0f : 0.0f);
}

static float
half_in_float(const struct hed_ptx_form *form, const struct real_format *f, const float *v)
{
    switch (form->op) {
    case HED_PTX_OP_ADD:
        return v[0] + v[1];
    case HED_PTX_OP_SUB:
        return v[0] - v[1];
    case HED_PTX_OP_MUL:
        return v[0] * v[1];
    case HED_PTX_OP_EX2:
    case HED_PTX_OP_TANH:
        return hed_interp_approx_one(form->op, v[0]);
    default:
        return f->mantissa == 10 ? fma_in_f16(v[0], v[1], v[2]) : fma_in_bf16(v[0], v[1], v[2]);
    }
}

/* Rounds, and flushes what is subnormal after that; only the exact result in f32 can tell. */
static uint64_t
narrow_result(const struct hed_ptx_form *form, const struct real_format *f, float wide)
{
    const struct real_rounding how = {.mode = HED_PTX_ROUND_RN, .ftz = true};

    if (INTERP_HAS(form, FTZ))
        return real_narrow(hed_to_bits32(wide), &real_f32, f, how);
    return real_narrow16(wide, f);
}

/* Computes one half; operands and result are 16 bits. */
static uint64_t
one_half(const struct hed_ptx_form *form, const uint64_t *source)
{
    const struct real_format *f = hed_interp_real(form->types[0]);
    /* fma.oob: a factor with the bits 0xffff, a NaN, stands for an element out of bounds and makes
     * the result 0. */
    const bool is_out = INTERP_HAS(form, OOB) && (source[0] == 0xffff || source[1] == 0xffff);
    uint64_t in[3], r;
    float v[3];

    for (unsigned i = 0; i < 3; i++) {
        in[i] = INTERP_HAS(form, FTZ) ? real_flush(source[i], f) : source[i];
        v[i] = real_widen16((uint16_t)in[i], f);
    }
    if (form->op == HED_PTX_OP_ABS || form->op == HED_PTX_OP_NEG) {
        r = form->op == HED_PTX_OP_ABS ? in[0] & 0x7fff : in[0] ^ 0x8000;
        return real_is_nan(in[0], f) ? f->nan : r;
    }
    r = narrow_result(form, f, half_in_float(form, f, v));
    if (INTERP_HAS(form, SAT))
        r = real_saturate(r, f);
    if (INTERP_HAS(form, RELU))
        r = real_relu(r, f);
    return is_out ? 0 : r;
}

static uint64_t
half_pair(const struct hed_ptx_form *f, const uint64_t *in)
{
    const struct real_format *real = hed_interp_real(f->types[0]);
    const bool is_least = f->op == HED_PTX_OP_MIN || f->op == HED_PTX_OP_MAX;
    uint64_t r = 0;

    for (unsigned h = 0; h < 2; h++) {
        const uint64_t half[3] = {in[0] >> (16 * h) & 0xffff, in[1] >> (16 * h) & 0xffff,
                                  in[2] >> (16 * h) & 0xffff};

        r |= (is_least ? least_of_all(f, real, half, false) : one_half(f, half)) << (16 * h);
    }
    return r;
}

static uint64_t
half_pair_of_three(const struct hed_ptx_form *f, const uint64_t *in)
{
    const struct real_format *real = hed_interp_real(f->types[0]);
    uint64_t r = 0;

    for (unsigned h = 0; h < 2; h++) {
        const uint64_t half[3] = {in[0] >> (16 * h) & 0xffff, in[1] >> (16 * h) & 0xffff,
                                  in[2] >> (16 * h) & 0xffff};

        r |= least_of_all(f, real, half, true) << (16 * h);
    }
    return r;
}

/* The forms that programs use most: without modifiers. */
#define HALF_STEPS(n, widen, narrow, fused)                                         \
    STEP_BINARY(add_##n, uint16_t, uint16_t, uint16_t, narrow(widen(a) + widen(b))) \
    STEP_BINARY(sub_##n, uint16_t, uint16_t, uint16_t, narrow(widen(a) - widen(b))) \
    STEP_BINARY(mul_##n, uint16_t, uint16_t, uint16_t, narrow(widen(a) * widen(b))) \
    STEP_TERNARY(fma_##n, uint16_t, uint16_t, uint16_t, uint16_t,                   \
                 narrow(fused(widen(a), widen(b), widen(c))))

HALF_STEPS(f16, real_widen_f16, real_narrow_f16, fma_in_f16)
HALF_STEPS(bf16, real_widen_bf16, real_narrow_bf16, fma_in_bf16)

/* A pair of halves is 64 halves, which the same expressions compute. */
#define PAIR_LANES(...)                                                      \
    uint16_t room[2 * HED_PTX_LANES];                                        \
    uint16_t *const to = w->write == INTERP_ALL ? interp_at(w, s->d) : room; \
                                                                             \
    for (unsigned i = 0; i < 2 * HED_PTX_LANES; i++)                         \
        to[i] = __VA_ARGS__;                                                 \
    if (to == room)                                                          \
        interp_merge(interp_at(w, s->d), room, w->write, 4);                 \
    return s + 1

#define PAIR_STEPS(n, widen, narrow, fused)                                                       \
    static INTERP_STEP(add_##n)                                                                   \
    {                                                                                             \
        const uint16_t *a = interp_at(w, s->a), *b = interp_at(w, s->b);                          \
        PAIR_LANES(narrow(widen(a[i]) + widen(b[i])));                                            \
    }                                                                                             \
    static INTERP_STEP(sub_##n)                                                                   \
    {                                                                                             \
        const uint16_t *a = interp_at(w, s->a), *b = interp_at(w, s->b);                          \
        PAIR_LANES(narrow(widen(a[i]) - widen(b[i])));                                            \
    }                                                                                             \
    static INTERP_STEP(mul_##n)                                                                   \
    {                                                                                             \
        const uint16_t *a = interp_at(w, s->a), *b = interp_at(w, s->b);                          \
        PAIR_LANES(narrow(widen(a[i]) * widen(b[i])));                                            \
    }                                                                                             \
    static INTERP_STEP(fma_##n)                                                                   \
    {                                                                                             \
        const uint16_t *a = interp_at(w, s->a), *b = interp_at(w, s->b), *c = interp_at(w, s->c); \
        PAIR_LANES(narrow(fused(widen(a[i]), widen(b[i]), widen(c[i]))));                         \
    }

PAIR_STEPS(f16x2, real_widen_f16, real_narrow_f16, fma_in_f16)
PAIR_STEPS(bf16x2, real_widen_bf16, real_narrow_bf16, fma_in_bf16)

/* The step of a form without modifiers; NULL if there is none. */
static interp_run
half_step(const struct hed_ptx_form *f)
{
    static const interp_run steps[4][4] = {
        {add_f16, sub_f16, mul_f16, fma_f16},
        {add_bf16, sub_bf16, mul_bf16, fma_bf16},
        {add_f16x2, sub_f16x2, mul_f16x2, fma_f16x2},
        {add_bf16x2, sub_bf16x2, mul_bf16x2, fma_bf16x2},
    };
    const enum hed_ptx_type t = f->types[0];
    const unsigned row =
        (t == HED_PTX_TYPE_BF16 || t == HED_PTX_TYPE_BF16X2) + (interp_bytes(t) == 4 ? 2u : 0u);

    if (f->flags)
        return NULL;
    switch (f->op) {
    case HED_PTX_OP_ADD:
        return steps[row][0];
    case HED_PTX_OP_SUB:
        return steps[row][1];
    case HED_PTX_OP_MUL:
        return steps[row][2];
    case HED_PTX_OP_FMA:
        return steps[row][3];
    default:
        return NULL;
    }
}

void
hed_interp_half(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const uint8_t t = f->types[0];
    const uint8_t types[4] = {t, t, t, t};
    const bool is_least = f->op == HED_PTX_OP_MIN || f->op == HED_PTX_OP_MAX;
    const unsigned n = d->inst->noperands - 1u;
    const interp_run run = half_step(f);

    if (run) {
        const uint32_t a = hed_interp_operand(d, 1, t);
        const uint32_t b = hed_interp_operand(d, 2, t);
        const uint32_t c = n > 2 ? hed_interp_operand(d, 3, t) : 0;

        hed_interp_emit3(d, run, hed_interp_dest(d, &d->inst->operands[0], t), a, b, c);
    } else if (interp_bytes(t) == 4) {
        hed_interp_scalar(d, is_least && n > 2 ? half_pair_of_three : half_pair, types, n);
    } else if (is_least) {
        hed_interp_least(d);
    } else {
        hed_interp_scalar(d, one_half, types, n);
    }
}
