/* Integer arithmetic: add sub mul mad mul24 mad24 sad div rem abs neg min max, and with carry.
 *
 * Where PTX leaves a result open, it is what a GPU gives: x / 0 and x % 0 are all ones in every
 * width, and the smallest number divided by -1 is itself.
 */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"
#include "kernel/ptx/run/bits.h"

/* Columns of the tables: u16 s16 u32 s32 u64 s64. */
#define WIDTHS 6

/* U and S are the unsigned and signed type of a width, W and X those of twice the width; M is a
 * type in which U can be multiplied. */
#define ARITHMETIC_STEPS(n, U, S, W, X, M)                                        \
    STEP_BINARY(add_##n, U, U, U, a + b)                                          \
    STEP_BINARY(sub_##n, U, U, U, a - b)                                          \
    STEP_BINARY(mul_##n, U, U, U, (M)a *b)                                        \
    STEP_TERNARY(mad_##n, U, U, U, U, (M)a *b + c)                                \
    STEP_BINARY(mulhi_u##n, U, U, U, (W)a *b >> n)                                \
    STEP_BINARY(mulhi_s##n, U, S, S, (W)((X)a * b) >> n)                          \
    STEP_TERNARY(madhi_u##n, U, U, U, U, ((W)a * b >> n) + c)                     \
    STEP_TERNARY(madhi_s##n, U, S, S, S, ((W)((X)a * b) >> n) + (W)c)             \
    STEP_TERNARY(sad_u##n, U, U, U, U, (a < b ? b - a : a - b) + c)               \
    STEP_TERNARY(sad_s##n, U, S, S, U, (a < b ? (U)b - (U)a : (U)a - (U)b) + c)   \
    STEP_BINARY(min_u##n, U, U, U, a < b ? a : b)                                 \
    STEP_BINARY(min_s##n, S, S, S, a < b ? a : b)                                 \
    STEP_BINARY(max_u##n, U, U, U, a > b ? a : b)                                 \
    STEP_BINARY(max_s##n, S, S, S, a > b ? a : b)                                 \
    STEP_BINARY(div_u##n, U, U, U, b ? a / (b ? b : 1) : (U)-1)                   \
    STEP_BINARY(div_s##n, S, S, S, b == 0 ? -1 : b == -1 ? (S)(0 - (U)a) : a / b) \
    STEP_BINARY(rem_u##n, U, U, U, b ? a % (b ? b : 1) : (U)-1)                   \
    STEP_BINARY(rem_s##n, S, S, S, b == 0 ? -1 : b == -1 ? 0 : a % b)             \
    STEP_UNARY(abs_##n, U, S, a < 0 ? 0 - (U)a : (U)a)                            \
    STEP_UNARY(neg_##n, U, U, 0 - a)

typedef unsigned __int128 u128;
typedef __int128 i128;

ARITHMETIC_STEPS(16, uint16_t, int16_t, uint32_t, int32_t, uint32_t)
ARITHMETIC_STEPS(32, uint32_t, int32_t, uint64_t, int64_t, uint32_t)
ARITHMETIC_STEPS(64, uint64_t, int64_t, u128, i128, uint64_t)

#define WIDE_STEPS(n, U, S, W, X)                       \
    STEP_BINARY(mulwide_u##n, W, U, U, (W)a *b)         \
    STEP_BINARY(mulwide_s##n, W, S, S, (W)((X)a * b))   \
    STEP_TERNARY(madwide_u##n, W, U, U, W, (W)a *b + c) \
    STEP_TERNARY(madwide_s##n, W, S, S, W, (W)((X)a * b) + c)

WIDE_STEPS(16, uint16_t, int16_t, uint32_t, int32_t)
WIDE_STEPS(32, uint32_t, int32_t, uint64_t, int64_t)

#define SAME(op)                                             \
    {                                                        \
        op##_16, op##_16, op##_32, op##_32, op##_64, op##_64 \
    }
#define BOTH(op)                                                   \
    {                                                              \
        op##_u16, op##_s16, op##_u32, op##_s32, op##_u64, op##_s64 \
    }

static const interp_run adds[WIDTHS] = SAME(add);
static const interp_run subs[WIDTHS] = SAME(sub);
static const interp_run muls[WIDTHS] = SAME(mul);
static const interp_run mads[WIDTHS] = SAME(mad);
static const interp_run mulhis[WIDTHS] = BOTH(mulhi);
static const interp_run madhis[WIDTHS] = BOTH(madhi);
static const interp_run sads[WIDTHS] = BOTH(sad);
static const interp_run mins[WIDTHS] = BOTH(min);
static const interp_run maxs[WIDTHS] = BOTH(max);
static const interp_run divs[WIDTHS] = BOTH(div);
static const interp_run rems[WIDTHS] = BOTH(rem);
static const interp_run abss[WIDTHS] = SAME(abs);
static const interp_run negs[WIDTHS] = SAME(neg);
static const interp_run mulwides[WIDTHS] = {mulwide_u16, mulwide_s16, mulwide_u32, mulwide_s32};
static const interp_run madwides[WIDTHS] = {madwide_u16, madwide_s16, madwide_u32, madwide_s32};

static unsigned
width_column(enum hed_ptx_type t)
{
    return 2u * (unsigned)__builtin_ctz(interp_bytes(t) / 2) + interp_is_signed(t);
}

/* The step of an instruction that only has a type and a part; NULL if it has more. */
static interp_run
plain_step(const struct hed_ptx_form *f, unsigned column)
{
    switch (f->op) {
    case HED_PTX_OP_ADD:
        return adds[column];
    case HED_PTX_OP_SUB:
        return subs[column];
    case HED_PTX_OP_MUL:
        return f->part == HED_PTX_PART_HI     ? mulhis[column]
               : f->part == HED_PTX_PART_WIDE ? mulwides[column]
                                              : muls[column];
    case HED_PTX_OP_MAD:
        return f->part == HED_PTX_PART_HI     ? madhis[column]
               : f->part == HED_PTX_PART_WIDE ? madwides[column]
                                              : mads[column];
    case HED_PTX_OP_SAD:
        return sads[column];
    case HED_PTX_OP_DIV:
        return divs[column];
    case HED_PTX_OP_REM:
        return rems[column];
    case HED_PTX_OP_ABS:
        return abss[column];
    case HED_PTX_OP_NEG:
        return negs[column];
    case HED_PTX_OP_MIN:
        return mins[column];
    case HED_PTX_OP_MAX:
        return maxs[column];
    default:
        return NULL;
    }
}

/* ---- carry ----------------------------------------------------------------------------------- */

/* a + b with carry in and carry out. a - b is a + ~b + 1, and the carry means "no borrow", as on a
 * GPU. The bits of e: carry out, carry in, subtract. */
#define CARRY_OUT 1u
#define CARRY_IN 2u
#define SUBTRACT 4u

#define CARRY_STEP(name, U)                                         \
    static INTERP_STEP(name)                                        \
    {                                                               \
        const U *pa = interp_at(w, s->a);                           \
        const U *pb = interp_at(w, s->b);                           \
        const uint32_t in = interp_predicate(w, INTERP_CARRY);      \
        const U flip = s->e & SUBTRACT ? (U)-1 : 0;                 \
        U *d = interp_at(w, s->d);                                  \
        uint32_t out = 0;                                           \
                                                                    \
        for (unsigned i = 0; i < HED_PTX_LANES; i++) {              \
            const U a = pa[i];                                      \
            const U b = pb[i] ^ flip;                               \
            const U one = s->e & CARRY_IN ? in >> i & 1 : flip & 1; \
            const U half = a + b;                                   \
            const U sum = half + one;                               \
                                                                    \
            out |= (uint32_t)(half < a || sum < half) << i;         \
            d[i] = w->write >> i & 1 ? sum : d[i];                  \
        }                                                           \
        if (s->e & CARRY_OUT)                                       \
            interp_set_predicate(w, INTERP_CARRY, out);             \
        return s + 1;                                               \
    }

CARRY_STEP(carry_16, uint16_t)
CARRY_STEP(carry_32, uint32_t)
CARRY_STEP(carry_64, uint64_t)

static void
emit_carry(struct interp_decoder *d, enum hed_ptx_type t)
{
    const struct hed_ptx_form *f = d->inst->form;
    const bool subtracts = f->op == HED_PTX_OP_SUB || f->op == HED_PTX_OP_SUBC;
    const bool reads =
        f->op == HED_PTX_OP_ADDC || f->op == HED_PTX_OP_SUBC || f->op == HED_PTX_OP_MADC;
    const unsigned column = width_column(t);
    uint32_t a = hed_interp_operand(d, 1, t);
    uint32_t b = hed_interp_operand(d, 2, t);

    if (f->op == HED_PTX_OP_MAD || f->op == HED_PTX_OP_MADC) {
        const uint32_t product = hed_interp_temp(d, interp_bytes(t));
        const uint32_t c = hed_interp_operand(d, 3, t);

        hed_interp_emit3(d, f->part == HED_PTX_PART_HI ? mulhis[column] : muls[column], product, a,
                         b, 0);
        a = product;
        b = c;
    }

    const uint32_t to = hed_interp_dest(d, &d->inst->operands[0], t);
    struct interp_step *s = hed_interp_emit3(d,
                                             interp_bytes(t) == 8   ? carry_64
                                             : interp_bytes(t) == 4 ? carry_32
                                                                    : carry_16,
                                             to, a, b, 0);

    s->e =
        (INTERP_HAS(f, CC) ? CARRY_OUT : 0) | (reads ? CARRY_IN : 0) | (subtracts ? SUBTRACT : 0);
}

/* ---- lane by lane ---------------------------------------------------------------------------- */

static int64_t
clamp_signed(i128 v, unsigned bits)
{
    const i128 most = ((i128)1 << (bits - 1)) - 1;

    return (int64_t)(v > most ? most : v < -most - 1 ? -most - 1 : v);
}

static uint64_t
clamp_unsigned(i128 v, unsigned bits)
{
    const i128 most = ((i128)1 << bits) - 1;

    return (uint64_t)(v > most ? most : v < 0 ? 0 : v);
}

/* The low 24 bits of each; .hi takes bits 16 to 47 of the product. */
static uint32_t
product24(const struct hed_ptx_form *f, uint64_t x, uint64_t y)
{
    const bool is_signed = f->types[0] == HED_PTX_TYPE_S32;
    const int64_t a = is_signed ? hed_sign_extend(x, 24) : (int64_t)(x & 0xffffff);
    const int64_t b = is_signed ? hed_sign_extend(y, 24) : (int64_t)(y & 0xffffff);

    return (uint32_t)(f->part == HED_PTX_PART_HI ? (uint64_t)(a * b) >> 16 : (uint64_t)(a * b));
}

/* One operation on numbers of `bits` bits that saturates, or is otherwise rare. */
static uint64_t
rare_integer(const struct hed_ptx_form *f, const uint64_t *in, unsigned bits, bool is_signed)
{
    const i128 a = is_signed ? (i128)hed_sign_extend(in[0], bits) : (i128)in[0];
    const i128 b = is_signed ? (i128)hed_sign_extend(in[1], bits) : (i128)in[1];
    const i128 c = is_signed ? (i128)hed_sign_extend(in[2], bits) : (i128)in[2];
    const bool sat = INTERP_HAS(f, SAT);
    i128 r;

    switch (f->op) {
    case HED_PTX_OP_ADD:
        r = a + b;
        break;
    case HED_PTX_OP_SUB:
        r = a - b;
        break;
    case HED_PTX_OP_MAD:
        r = (i128)hed_sign_extend((uint64_t)((u128)(a * b) >> bits), bits) + c;
        break;
    case HED_PTX_OP_MUL24:
        return product24(f, in[0], in[1]);
    case HED_PTX_OP_MAD24: {
        const uint64_t p = product24(f, in[0], in[1]);

        r = (is_signed ? (i128)hed_sign_extend(p, 32) : (i128)p) + c;
        break;
    }
    case HED_PTX_OP_MIN:
        r = a < b ? a : b;
        break;
    case HED_PTX_OP_MAX:
        r = a > b ? a : b;
        break;
    case HED_PTX_OP_ABS:
        r = a < 0 ? -a : a;
        break;
    default:
        r = -a;
        break;
    }
    if (f->op == HED_PTX_OP_MIN || f->op == HED_PTX_OP_MAX)
        return (uint64_t)(INTERP_HAS(f, RELU) && r < 0 ? 0 : r);
    if (sat)
        return is_signed ? (uint64_t)clamp_signed(r, bits) : clamp_unsigned(r, bits);
    return (uint64_t)r;
}

static uint64_t
integer_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    return rare_integer(f, in, hed_ptx_types[f->types[0]].bits, interp_is_signed(f->types[0]));
}

/* min and max of three. */
static uint64_t
least_of_three(const struct hed_ptx_form *f, const uint64_t *in)
{
    const uint64_t first[3] = {integer_lane(f, in), in[2], 0};

    return integer_lane(f, first);
}

/* u16x2 and s16x2: each half on its own. */
static uint64_t
integer_pair(const struct hed_ptx_form *f, const uint64_t *in)
{
    const bool is_signed = f->types[0] == HED_PTX_TYPE_S16X2;
    uint64_t r = 0;

    for (unsigned h = 0; h < 2; h++) {
        const uint64_t half[3] = {in[0] >> (16 * h) & 0xffff, in[1] >> (16 * h) & 0xffff,
                                  in[2] >> (16 * h) & 0xffff};

        r |= (rare_integer(f, half, 16, is_signed) & 0xffff) << (16 * h);
    }
    return r;
}

static uint64_t
least_pair_of_three(const struct hed_ptx_form *f, const uint64_t *in)
{
    const uint64_t first[3] = {integer_pair(f, in), in[2], 0};

    return integer_pair(f, first);
}

void
hed_interp_integer(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const enum hed_ptx_type t = f->types[0];
    const unsigned n = d->inst->noperands - 1u;
    const uint8_t types[4] = {t, t, t, t};
    enum hed_ptx_type wide = t;
    uint32_t from[3] = {0, 0, 0};
    interp_run run;

    if (t == HED_PTX_TYPE_U16X2 || t == HED_PTX_TYPE_S16X2) {
        hed_interp_scalar(d, n > 2 ? least_pair_of_three : integer_pair, types, n);
        return;
    }
    if (INTERP_HAS(f, CC) || f->op == HED_PTX_OP_ADDC || f->op == HED_PTX_OP_SUBC ||
        f->op == HED_PTX_OP_MADC) {
        emit_carry(d, t);
        return;
    }
    run = plain_step(f, width_column(t));
    if (!run || INTERP_HAS(f, SAT) || INTERP_HAS(f, RELU)) {
        hed_interp_scalar(d,
                          f->op == HED_PTX_OP_MIN || f->op == HED_PTX_OP_MAX
                              ? (n > 2 ? least_of_three : integer_lane)
                              : integer_lane,
                          types, n);
        return;
    }
    /* Types of the same kind are numbered in order of width. */
    if (f->part == HED_PTX_PART_WIDE)
        wide = (enum hed_ptx_type)(t + 1);
    for (unsigned i = 0; i < n && i < 3; i++)
        from[i] = hed_interp_operand(d, i + 1, i == 2 ? wide : t);

    const uint32_t to = hed_interp_dest(d, &d->inst->operands[0], wide);

    if ((f->op == HED_PTX_OP_MIN || f->op == HED_PTX_OP_MAX) && n > 2) {
        const uint32_t least = hed_interp_temp(d, interp_bytes(t));

        hed_interp_emit3(d, run, least, from[0], from[1], 0);
        hed_interp_emit3(d, run, to, least, from[2], 0);
        return;
    }
    hed_interp_emit3(d, run, to, from[0], from[1], from[2]);
}

void
hed_interp_op_arithmetic(struct interp_decoder *d)
{
    switch (d->inst->form->types[0]) {
    case HED_PTX_TYPE_F16:
    case HED_PTX_TYPE_BF16:
    case HED_PTX_TYPE_F16X2:
    case HED_PTX_TYPE_BF16X2:
        hed_interp_half(d);
        break;
    case HED_PTX_TYPE_F32:
    case HED_PTX_TYPE_F64:
    case HED_PTX_TYPE_F32X2:
        hed_interp_float(d);
        break;
    default:
        hed_interp_integer(d);
        break;
    }
}
