/* Two halves in a register: f16 and bf16. See inside.h for the rules. */
#include <stdlib.h>
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"

/* Which halves of a register a source is. */
enum { BOTH, WHOLE, LOW_TWICE, HIGH_TWICE };

/* A source as two halves in a register. */
static const char *
source_of_halves(struct lift *l, const struct hed_sass_operand *o)
{
    const char *w = hed_lift_reg(l, hed_lift_word(l, o)), *t;

    if (o->choice.word && strcmp(o->choice.word, "H0_NH1") == 0) {
        /* Complex products: the lower half above, and the negative of the upper one below. */
        if (o->absolute)
            hed_lift_refuse(l, "a sign of a half without its sign");
        t = hed_lift_temp(l, 't');
        hed_lift_calc(l, "prmt.b32 %s, %s, 0, 0x1032", t, w);
        w = hed_lift_temp(l, 't');
        hed_lift_calc(l, "xor.b32 %s, %s, 0x8000", w, t);
    } else if (o->choice.value == WHOLE)
        hed_lift_refuse(l, "a source of f32 in place of halves");
    else if (o->choice.value == LOW_TWICE || o->choice.value == HIGH_TWICE) {
        t = hed_lift_temp(l, 't');
        hed_lift_calc(l, "prmt.b32 %s, %s, 0, %s", t, w,
                      o->choice.value == LOW_TWICE ? "0x1010" : "0x3232");
        w = t;
    }
    if (o->absolute) {
        t = hed_lift_temp(l, 't');
        hed_lift_calc(l, "and.b32 %s, %s, 0x7fff7fff", t, w);
        w = t;
    }
    if (o->negate) {
        t = hed_lift_temp(l, 't');
        hed_lift_calc(l, "xor.b32 %s, %s, 0x80008000", t, w);
        w = t;
    }
    return w;
}

static bool
is_half_number(const struct hed_sass_operand *o, uint32_t value, bool negative)
{
    uint32_t v;

    return hed_lift_number(o, &v) && v == value && o->negate == negative;
}

static bool
is_bf16(const struct lift *l)
{
    return hed_lift_has(l, "BF16_V2");
}

/* What has no PTX, for all of them. */
static bool
is_odd(struct lift *l)
{
    const bool bf16 = is_bf16(l), ftz = hed_lift_has(l, "FTZ"), sat = hed_lift_has(l, "SAT");

    if (hed_lift_has(l, "FMZ"))
        hed_lift_refuse(l, "a product with zero that is always zero");
    else if ((bf16 && (ftz || sat)) || (sat && hed_lift_has(l, "RELU")))
        hed_lift_refuse(l, "modifiers that do not go together");
    else if (hed_lift_has(l, "F32") && (bf16 || ftz || hed_lift_has(l, "RELU")))
        hed_lift_refuse(l, "a result of f32 with these modifiers");
    else
        return false;
    return true;
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* The lower of the two halves that a source is, as f32. */
static const char *
widened_half(struct lift *l, const struct hed_sass_operand *o)
{
    const char *w = source_of_halves(l, o), *low = hed_lift_temp(l, 'h'),
               *high = hed_lift_temp(l, 'h');
    const char *t = hed_lift_temp(l, 't');

    hed_lift_calc(l, "mov.b32 {%s, %s}, %s", low, high, w);
    hed_lift_calc(l, "cvt.f32.f16 %s, %s", t, low);
    return t;
}

static void
arithmetic_wide(struct lift *l, const char *op, unsigned sources)
{
    const char *sat = hed_lift_flag(l, "SAT", ".sat"), *in[3] = {"", "", ""};

    if (sources == 2 && op[0] == 'a' && !*sat &&
        is_half_number(hed_lift_operand(l, 1), 0, true)) { /* -0 + x: the usual conversion */
        const char *x = widened_half(l, hed_lift_operand(l, 2));

        hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), x);
        return;
    }
    for (unsigned i = 0; i < sources; i++)
        in[i] = widened_half(l, hed_lift_operand(l, i + 1));
    hed_lift_put(l, "%s.rn%s.f32 %s, %s, %s%s%s", op, sat, hed_lift_def(l, hed_lift_operand(l, 0)),
                 in[0], in[1], sources > 2 ? ", " : "", in[2]);
}

/* HADD2 R6, -RZ.H0_H0, R20.F32 or the other way round: sm_75's conversion to half, towards zero. */
static bool
narrow_float(struct lift *l)
{
    const bool first = hed_lift_operand(l, 1)->choice.value == WHOLE;
    const struct hed_sass_operand *a = hed_lift_operand(l, first ? 1 : 2);
    const char *h, *sat = hed_lift_flag(l, "SAT", ".sat");

    if (a->choice.value != WHOLE || hed_lift_has(l, "FTZ") || is_bf16(l) ||
        !is_half_number(hed_lift_operand(l, first ? 2 : 1), 0, true))
        return false;
    h = hed_lift_temp(l, 'h');
    hed_lift_calc(l, "cvt.rz%s.f16.f32 %s, %s", sat, h, hed_lift_reg(l, hed_lift_f32(l, a)));
    hed_lift_put(l, "mov.b32 %s, {%s, %s}", hed_lift_def(l, hed_lift_operand(l, 0)), h, h);
    return true;
}

static void
arithmetic_half(struct lift *l, const char *op, unsigned sources)
{
    const char *in[3] = {"", "", ""};

    if (is_odd(l) || (op[0] == 'a' && narrow_float(l)))
        return;
    if (hed_lift_has(l, "F32")) {
        arithmetic_wide(l, op, sources);
        return;
    }
    for (unsigned i = 0; i < sources; i++)
        in[i] = source_of_halves(l, hed_lift_operand(l, i + 1));
    hed_lift_put(l, "%s.rn%s%s%s%s.%s %s, %s, %s%s%s", op, hed_lift_flag(l, "FTZ", ".ftz"),
                 hed_lift_flag(l, "SAT", ".sat"), hed_lift_flag(l, "OOB", ".oob"),
                 hed_lift_flag(l, "RELU", ".relu"), is_bf16(l) ? "bf16x2" : "f16x2",
                 hed_lift_def(l, hed_lift_operand(l, 0)), in[0], in[1], sources > 2 ? ", " : "",
                 in[2]);
}

void
hed_lift_hadd2(struct lift *l)
{
    arithmetic_half(l, "add", 2);
}

void
hed_lift_hmul2(struct lift *l)
{
    arithmetic_half(l, "mul", 2);
}

/* ptxas moves numbers with -0 * 0 + x, which keeps all bits. */
void
hed_lift_hfma2(struct lift *l)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0), *c = hed_lift_operand(l, 3);
    bool constant;
    uint32_t v;

    if (hed_lift_has(l, "RELU") && (hed_lift_pred(l, 87, &constant) || !constant)) {
        hed_lift_refuse(l, "a predicate that is not known");
        return;
    }
    if (is_half_number(hed_lift_operand(l, 1), 0, true) &&
        is_half_number(hed_lift_operand(l, 2), 0, false) && hed_lift_number(c, &v) && !c->negate &&
        !hed_lift_has(l, "F32")) {
        const char *w = hed_lift_word(l, c);

        hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, d), w);
        hed_lift_moved(l, d, c);
        return;
    }
    arithmetic_half(l, "fma", 3);
}

void
hed_lift_hmnmx2(struct lift *l)
{
    struct hed_sass_operand a = *hed_lift_operand(l, 1), b = *hed_lift_operand(l, 2);

    if (hed_lift_has(l, "F32"))
        hed_lift_refuse(l, "a result of f32 with these modifiers");
    if (is_odd(l))
        return;
    if (hed_lift_has(l, "XORSIGN"))
        a.absolute = b.absolute = false;
    hed_lift_smaller_or_larger(l, is_bf16(l) ? "bf16x2" : "f16x2", source_of_halves(l, &a),
                               source_of_halves(l, &b));
}

/* ---- comparisons ----------------------------------------------------------------------------- */

/* Compares the low halves and the high ones. */
static void
compare_both(struct lift *l, unsigned first, const char *out[2])
{
    const char *a = source_of_halves(l, hed_lift_operand(l, first));
    const char *b = source_of_halves(l, hed_lift_operand(l, first + 1));
    const char *x[2] = {hed_lift_temp(l, 'h'), hed_lift_temp(l, 'h')};
    const char *y[2] = {hed_lift_temp(l, 'h'), hed_lift_temp(l, 'h')};

    hed_lift_calc(l, "mov.b32 {%s, %s}, %s", x[0], x[1], a);
    hed_lift_calc(l, "mov.b32 {%s, %s}, %s", y[0], y[1], b);
    for (unsigned i = 0; i < 2; i++)
        out[i] = hed_lift_float_compare(l, is_bf16(l) ? "bf16" : "f16", x[i], y[i]);
}

static unsigned
how_to_combine(const struct lift *l)
{
    return (unsigned)hed_sass_bits(l->inst, 69, 2);
}

void
hed_lift_hsetp2(struct lift *l)
{
    const char *is[2], *both;

    compare_both(l, 0, is);
    if (!hed_lift_has(l, "H_AND")) {
        hed_lift_compared(l, is[0], is[1], how_to_combine(l));
        return;
    }
    both = hed_lift_temp(l, 'x');
    hed_lift_calc(l, "and.pred %s, %s, %s", both, is[0], is[1]);
    hed_lift_compared(l, both, NULL, how_to_combine(l));
}

void
hed_lift_hset2(struct lift *l)
{
    const unsigned yes = !hed_lift_has(l, "BF") ? 0xffff : is_bf16(l) ? 0x3f80 : 0x3c00;
    const char *is[2], *low, *high;

    compare_both(l, 1, is);
    for (unsigned i = 0; i < 2; i++)
        is[i] = hed_lift_combined(l, is[i], how_to_combine(l));
    low = hed_lift_temp(l, 't');
    high = hed_lift_temp(l, 't');
    hed_lift_calc(l, "selp.b32 %s, 0x%x, 0, %s", low, yes, is[0]);
    hed_lift_calc(l, "selp.b32 %s, 0x%x, 0, %s", high, yes << 16, is[1]);
    hed_lift_put(l, "or.b32 %s, %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), low, high);
}
