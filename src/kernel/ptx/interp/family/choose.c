/* Comparing and choosing: set setp selp slct testp copysign. */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"
#include "kernel/ptx/interp/real.h"

/* ---- comparisons ----------------------------------------------------------------------------- */

#define COMPARE_INTS(n, T)          \
    STEP_COMPARE(eq_##n, T, a == b) \
    STEP_COMPARE(ne_##n, T, a != b) \
    STEP_COMPARE(lt_##n, T, a < b)  \
    STEP_COMPARE(le_##n, T, a <= b) \
    STEP_COMPARE(gt_##n, T, a > b)  \
    STEP_COMPARE(ge_##n, T, a >= b)

COMPARE_INTS(u16, uint16_t)
COMPARE_INTS(s16, int16_t)
COMPARE_INTS(u32, uint32_t)
COMPARE_INTS(s32, int32_t)
COMPARE_INTS(u64, uint64_t)
COMPARE_INTS(s64, int64_t)

#define INT_ROW(n)                                     \
    {                                                  \
        eq_##n, ne_##n, lt_##n, le_##n, gt_##n, ge_##n \
    }

/* By width and sign, then in the order of the words eq ne lt le gt ge. */
static const interp_run int_compares[6][6] = {INT_ROW(u16), INT_ROW(s16), INT_ROW(u32),
                                              INT_ROW(s32), INT_ROW(u64), INT_ROW(s64)};

#define COMPARE_FLOATS(n, T, V)                             \
    STEP_COMPARE(eq_##n, T, V(a) == V(b))                   \
    STEP_COMPARE(ne_##n, T, V(a) < V(b) || V(a) > V(b))     \
    STEP_COMPARE(lt_##n, T, V(a) < V(b))                    \
    STEP_COMPARE(le_##n, T, V(a) <= V(b))                   \
    STEP_COMPARE(gt_##n, T, V(a) > V(b))                    \
    STEP_COMPARE(ge_##n, T, V(a) >= V(b))                   \
    STEP_COMPARE(equ_##n, T, !(V(a) < V(b) || V(a) > V(b))) \
    STEP_COMPARE(neu_##n, T, V(a) != V(b))                  \
    STEP_COMPARE(ltu_##n, T, !(V(a) >= V(b)))               \
    STEP_COMPARE(leu_##n, T, !(V(a) > V(b)))                \
    STEP_COMPARE(gtu_##n, T, !(V(a) <= V(b)))               \
    STEP_COMPARE(geu_##n, T, !(V(a) < V(b)))                \
    STEP_COMPARE(num_##n, T, V(a) == V(a) && V(b) == V(b))  \
    STEP_COMPARE(nan_##n, T, V(a) != V(a) || V(b) != V(b))

static inline float
flush_operand(float v)
{
    return hed_from_bits32(real_flush32(hed_to_bits32(v)));
}

#define AS_IS(v) (v)
COMPARE_FLOATS(f32, float, AS_IS)
COMPARE_FLOATS(ftz_f32, float, flush_operand)
COMPARE_FLOATS(f64, double, AS_IS)

#define FLOAT_ROW(n)                                                                           \
    {                                                                                          \
        [HED_PTX_CMP_EQ] = eq_##n, [HED_PTX_CMP_NE] = ne_##n, [HED_PTX_CMP_LT] = lt_##n,       \
        [HED_PTX_CMP_LE] = le_##n, [HED_PTX_CMP_GT] = gt_##n, [HED_PTX_CMP_GE] = ge_##n,       \
        [HED_PTX_CMP_EQU] = equ_##n, [HED_PTX_CMP_NEU] = neu_##n, [HED_PTX_CMP_LTU] = ltu_##n, \
        [HED_PTX_CMP_LEU] = leu_##n, [HED_PTX_CMP_GTU] = gtu_##n, [HED_PTX_CMP_GEU] = geu_##n, \
        [HED_PTX_CMP_NUM] = num_##n, [HED_PTX_CMP_NAN] = nan_##n                               \
    }

static const interp_run float_compares[3][HED_PTX_CMP_NAN + 1] = {
    FLOAT_ROW(f32), FLOAT_ROW(ftz_f32), FLOAT_ROW(f64)};

static interp_run
int_compare(enum hed_ptx_cmp cmp, enum hed_ptx_type t)
{
    bool is_signed = interp_is_signed(t);

    switch (cmp) {
    case HED_PTX_CMP_LO:
        cmp = HED_PTX_CMP_LT;
        is_signed = false;
        break;
    case HED_PTX_CMP_LS:
        cmp = HED_PTX_CMP_LE;
        is_signed = false;
        break;
    case HED_PTX_CMP_HI:
        cmp = HED_PTX_CMP_GT;
        is_signed = false;
        break;
    case HED_PTX_CMP_HS:
        cmp = HED_PTX_CMP_GE;
        is_signed = false;
        break;
    default:
        break;
    }
    return int_compares[2 * (__builtin_ctz(interp_bytes(t)) - 1) + is_signed][cmp - HED_PTX_CMP_EQ];
}

/* ---- halves, lane by lane -------------------------------------------------------------------- */

static bool
floats_compare(enum hed_ptx_cmp cmp, float a, float b)
{
    const bool unordered = a != a || b != b;

    switch (cmp) {
    case HED_PTX_CMP_EQ:
        return a == b;
    case HED_PTX_CMP_NE:
        return !unordered && a != b;
    case HED_PTX_CMP_LT:
        return a < b;
    case HED_PTX_CMP_LE:
        return a <= b;
    case HED_PTX_CMP_GT:
        return a > b;
    case HED_PTX_CMP_GE:
        return a >= b;
    case HED_PTX_CMP_EQU:
        return unordered || a == b;
    case HED_PTX_CMP_NEU:
        return unordered || a != b;
    case HED_PTX_CMP_LTU:
        return unordered || a < b;
    case HED_PTX_CMP_LEU:
        return unordered || a <= b;
    case HED_PTX_CMP_GTU:
        return unordered || a > b;
    case HED_PTX_CMP_GEU:
        return unordered || a >= b;
    case HED_PTX_CMP_NUM:
        return !unordered;
    default:
        return unordered;
    }
}

/* The type of the sources: of set the second one. */
static enum hed_ptx_type
compared_type(const struct hed_ptx_form *f)
{
    return f->op == HED_PTX_OP_SET ? f->types[1] : f->types[0];
}

static bool
compare_halves(const struct hed_ptx_form *f, const uint64_t *in, unsigned h)
{
    const struct real_format *real = hed_interp_real(compared_type(f));
    uint64_t a = in[0] >> (16 * h) & 0xffff, b = in[1] >> (16 * h) & 0xffff;

    if (INTERP_HAS(f, FTZ)) {
        a = real_flush(a, real);
        b = real_flush(b, real);
    }
    return floats_compare(f->cmp, real_widen16((uint16_t)a, real), real_widen16((uint16_t)b, real));
}

static uint64_t
compare_low(const struct hed_ptx_form *f, const uint64_t *in)
{
    return compare_halves(f, in, 0);
}

static uint64_t
compare_high(const struct hed_ptx_form *f, const uint64_t *in)
{
    return compare_halves(f, in, 1);
}

/* ---- set and setp ---------------------------------------------------------------------------- */

/* Compares sources 1 and 2, of type t; of pairs, the halves h. Returns the place of the result. */
static uint32_t
emit_compare(struct interp_decoder *d, enum hed_ptx_type t, unsigned h)
{
    const struct hed_ptx_form *f = d->inst->form;
    const uint32_t from[2] = {hed_interp_operand(d, 1, t), hed_interp_operand(d, 2, t)};
    const uint32_t to = hed_interp_temp(d, 0);
    const uint8_t bytes[3] = {0, (uint8_t)interp_bytes(t), (uint8_t)interp_bytes(t)};
    const bool is_real = hed_interp_real(t) != NULL;
    interp_run run;

    if (is_real && (interp_bytes(t) == 2 || hed_ptx_is_half_pair(t))) {
        hed_interp_scalar_at(d, h ? compare_high : compare_low, to, from, bytes, 2);
        return to;
    }
    if (is_real)
        run = float_compares[t == HED_PTX_TYPE_F64 ? 2 : INTERP_HAS(f, FTZ)][f->cmp];
    else
        run = int_compare(f->cmp, t);
    hed_interp_emit3(d, run, to, from[0], from[1], 0);
    return to;
}

/* A comparison combined with a predicate; e is the operation. */
static INTERP_STEP(combine_lanes)
{
    const uint32_t a = interp_predicate(w, s->a);
    const uint32_t b = interp_predicate(w, s->b);

    interp_set_predicate(w, s->d,
                         s->e == HED_PTX_OPER_AND  ? a & b
                         : s->e == HED_PTX_OPER_OR ? a | b
                                                   : a ^ b);
    INTERP_NEXT(w, s);
}

static uint32_t
emit_combined(struct interp_decoder *d, uint32_t p)
{
    const unsigned oper = d->inst->form->oper;
    uint32_t to;

    if (!oper)
        return p;

    const uint32_t q = hed_interp_operand(d, 3, HED_PTX_TYPE_PRED);

    to = hed_interp_temp(d, 0);
    hed_interp_emit3(d, combine_lanes, to, p, q, 0)->e = oper;
    return to;
}

void
hed_interp_op_setp(struct interp_decoder *d)
{
    const struct hed_ptx_operand *o = &d->inst->operands[0];
    const enum hed_ptx_type t = d->inst->form->types[0];
    const uint32_t c = emit_compare(d, t, 0);
    uint32_t p, q;

    if (o->kind != HED_PTX_OPERAND_PAIR) {
        p = emit_combined(d, c);
        /* Most comparisons are one step: the last one writes the destination. */
        if (d->err)
            return;
        d->steps[d->count - 1].d = hed_interp_dest(d, o, HED_PTX_TYPE_PRED);
        (void)p;
        return;
    }
    /* Compute both before writing either: the source predicate may be a destination. */
    p = emit_combined(d, c);
    if (hed_ptx_is_half_pair(t)) {
        q = emit_compare(d, t, 1);
    } else {
        q = hed_interp_temp(d, 0);
        hed_interp_invert(d, q, c);
    }
    q = emit_combined(d, q);
    hed_interp_move(d, hed_interp_dest(d, &o->elems[0], HED_PTX_TYPE_PRED), p, 0);
    hed_interp_move(d, hed_interp_dest(d, &o->elems[1], HED_PTX_TYPE_PRED), q, 0);
}

/* ---- selecting ------------------------------------------------------------------------------- */

#define SELECT_STEP(name, T, B)                                                       \
    static INTERP_STEP(name)                                                          \
    {                                                                                 \
        const T *pa = interp_at(w, s->a);                                             \
        const T *pb = interp_at(w, s->b);                                             \
        const uint32_t p = interp_predicate(w, s->c);                                 \
        COMPUTE_LANES(T, const T a = pa[i]; const T b = pb[i]; r = p & B[i] ? a : b); \
    }

SELECT_STEP(selp_16, uint16_t, hed_interp_bits)
SELECT_STEP(selp_32, uint32_t, hed_interp_bits)
SELECT_STEP(selp_64, uint64_t, hed_interp_bits64)

static void
emit_select(struct interp_decoder *d, uint32_t to, uint32_t a, uint32_t b, uint32_t p,
            unsigned bytes)
{
    if (bytes != 2 && bytes != 4 && bytes != 8) {
        hed_interp_refuse(d, "values of this width cannot be selected");
        return;
    }
    hed_interp_emit3(d, bytes == 8 ? selp_64 : bytes == 4 ? selp_32 : selp_16, to, a, b, p);
}

void
hed_interp_op_selp(struct interp_decoder *d)
{
    const enum hed_ptx_type t = d->inst->form->types[0];
    const uint32_t a = hed_interp_operand(d, 1, t);
    const uint32_t b = hed_interp_operand(d, 2, t);
    const uint32_t p = hed_interp_operand(d, 3, HED_PTX_TYPE_PRED);

    emit_select(d, hed_interp_dest(d, &d->inst->operands[0], t), a, b, p, interp_bytes(t));
}

/* The value of "true" in a destination of type t (or in half a pair). */
static uint64_t
true_bits(enum hed_ptx_type t)
{
    const struct real_format *f = hed_interp_real(t);

    return f ? (uint64_t)f->bias << f->mantissa : UINT64_MAX;
}

void
hed_interp_op_set(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const enum hed_ptx_type to = f->types[0], from = f->types[1];
    const unsigned bytes = interp_bytes(to);
    const uint32_t zero = hed_interp_constant(d, 0, bytes);
    const uint64_t one =
        hed_ptx_is_half_pair(from) && !hed_ptx_is_half_pair(to) ? 0xffff : true_bits(to);
    const uint32_t p = emit_combined(d, emit_compare(d, from, 0));

    if (!hed_ptx_is_half_pair(from)) {
        emit_select(d, hed_interp_dest(d, &d->inst->operands[0], to),
                    hed_interp_constant(d, one, bytes), zero, p, bytes);
        return;
    }

    const uint32_t q = emit_combined(d, emit_compare(d, from, 1));
    const uint32_t low = hed_interp_temp(d, bytes);

    /* The upper half is chosen first: with the lower one, and without it. */
    emit_select(d, low, hed_interp_constant(d, one | one << 16, bytes),
                hed_interp_constant(d, one << 16, bytes), p, bytes);

    const uint32_t none = hed_interp_temp(d, bytes);

    emit_select(d, none, hed_interp_constant(d, one, bytes), zero, p, bytes);
    emit_select(d, hed_interp_dest(d, &d->inst->operands[0], to), low, none, q, bytes);
}

void
hed_interp_op_slct(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const enum hed_ptx_type t = f->types[0];
    const uint32_t a = hed_interp_operand(d, 1, t);
    const uint32_t b = hed_interp_operand(d, 2, t);
    const uint32_t c = hed_interp_operand(d, 3, f->types[1]);
    const uint32_t p = hed_interp_temp(d, 0);

    hed_interp_emit3(d,
                     f->types[1] != HED_PTX_TYPE_F32 ? ge_s32
                     : INTERP_HAS(f, FTZ)            ? ge_ftz_f32
                                                     : ge_f32,
                     p, c, hed_interp_constant(d, 0, 4), 0);
    emit_select(d, hed_interp_dest(d, &d->inst->operands[0], t), a, b, p, interp_bytes(t));
}

/* ---- testing --------------------------------------------------------------------------------- */

static uint64_t
testp_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const struct real_format *real = hed_interp_real(f->types[0]);
    const uint64_t inf = format_infinity(real);
    const uint64_t normal = UINT64_C(1) << real->mantissa;
    const uint64_t mag = in[0] & (format_sign(real) - 1);

    switch (f->mode) {
    case HED_PTX_MODE_FINITE:
        return mag < inf;
    case HED_PTX_MODE_INFINITE:
        return mag == inf;
    case HED_PTX_MODE_NUMBER:
        return mag <= inf;
    case HED_PTX_MODE_NOTANUMBER:
        return mag > inf;
    case HED_PTX_MODE_NORMAL:
        /* "As a special case, positive and negative zero are considered normal numbers." */
        return mag == 0 || (mag >= normal && mag < inf);
    default:
        return mag > 0 && mag < normal;
    }
}

void
hed_interp_op_testp(struct interp_decoder *d)
{
    const uint8_t types[2] = {HED_PTX_TYPE_PRED, d->inst->form->types[0]};

    hed_interp_scalar(d, testp_lane, types, 1);
}

/* "Copy sign bit of a into value of b, and return the result as d." PTX ISA, copysign. */
STEP_BINARY(copysign_32, uint32_t, uint32_t, uint32_t, (a & 0x80000000) | (b & 0x7fffffff))
STEP_BINARY(copysign_64, uint64_t, uint64_t, uint64_t,
            (a & UINT64_C(1) << 63) | (b & ~(UINT64_C(1) << 63)))

void
hed_interp_op_copysign(struct interp_decoder *d)
{
    const enum hed_ptx_type t = d->inst->form->types[0];
    const uint32_t a = hed_interp_operand(d, 1, t);
    const uint32_t b = hed_interp_operand(d, 2, t);

    hed_interp_emit3(d, t == HED_PTX_TYPE_F64 ? copysign_64 : copysign_32,
                     hed_interp_dest(d, &d->inst->operands[0], t), a, b, 0);
}
