/* Single and double precision. See inside.h for the rules.
 *
 * The instructions are those that ptxas makes of the PTX written here, so what a NaN becomes and
 * what .ftz flushes is PTX's business. Numbers of f64 take their signs from neg and abs: these
 * leave a NaN as it is, and that is the one that the machine passes on.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"

#define SIGN32 UINT32_C(0x80000000)
#define SIGN64 (UINT64_C(1) << 63)

/* ---- sources --------------------------------------------------------------------------------- */

static bool
is_register(const char *text)
{
    return text[0] == '%';
}

const char *
hed_lift_reg(struct lift *l, const char *text)
{
    const char *t;

    if (is_register(text))
        return text;
    t = hed_lift_temp(l, 't');
    hed_lift_calc(l, "mov.b32 %s, %s", t, text);
    return t;
}

const char *
hed_lift_reg64(struct lift *l, const char *text)
{
    const char *q;

    if (is_register(text))
        return text;
    q = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "%s %s, %s", text[1] == 'd' ? "mov.f64" : "mov.b64", q, text);
    return q;
}

const char *
hed_lift_float(struct lift *l, const struct hed_sass_operand *o)
{
    const char *w;
    uint32_t v;

    if (hed_lift_number(o, &v)) {
        v = o->absolute ? v & ~SIGN32 : v;
        return hed_lift_text(l, "0f%08" PRIx32, o->negate ? v ^ SIGN32 : v);
    }
    w = hed_lift_f32(l, o);
    return is_register(w) ? w : hed_lift_text(l, "0f%08" PRIx32, (uint32_t)strtoull(w, NULL, 0));
}

const char *
hed_lift_double(struct lift *l, const struct hed_sass_operand *o)
{
    const char *q = hed_lift_u64(l, o);

    if (!is_register(q)) {
        uint64_t v = strtoull(q, NULL, 0);

        v = o->absolute ? v & ~SIGN64 : v;
        return hed_lift_text(l, "0d%016" PRIx64, o->negate ? v ^ SIGN64 : v);
    }
    for (unsigned i = 0; i < 2; i++) {
        const bool wanted = i == 0 ? o->absolute : o->negate;
        const char *t;

        if (!wanted)
            continue;
        t = hed_lift_temp(l, 'q');
        hed_lift_calc(l, "%s.f64 %s, %s", i == 0 ? "abs" : "neg", t, q);
        q = t;
    }
    return q;
}

const char *
hed_lift_round(const struct lift *l)
{
    static const char *const rounds[] = {"rn", "rm", "rp", "rz"};

    return rounds[hed_sass_bits(l->inst, 78, 2)];
}

const char *
hed_lift_flag(const struct lift *l, const char *word, const char *ptx)
{
    return hed_lift_has(l, word) ? ptx : "";
}

/* ---- f32 ------------------------------------------------------------------------------------- */

static void
arithmetic_f32(struct lift *l, const char *op, unsigned sources)
{
    const char *ftz = hed_lift_flag(l, "FTZ", ".ftz"), *sat = hed_lift_flag(l, "SAT", ".sat");
    const char *in[3] = {"", "", ""};

    if (hed_lift_has(l, "FMZ")) {
        hed_lift_refuse(l, "a product with zero that is always zero");
        return;
    }
    for (unsigned i = 0; i < sources; i++)
        in[i] = hed_lift_float(l, hed_lift_operand(l, i + 1));
    hed_lift_put(l, "%s.%s%s%s.f32 %s, %s, %s%s%s", op, hed_lift_round(l), ftz, sat,
                 hed_lift_def(l, hed_lift_operand(l, 0)), in[0], in[1], sources > 2 ? ", " : "",
                 in[2]);
}

void
hed_lift_fadd(struct lift *l)
{
    arithmetic_f32(l, "add", 2);
}

void
hed_lift_ffma(struct lift *l)
{
    arithmetic_f32(l, "fma", 3);
}

/* A product that is scaled before it is rounded: in f64 nothing is lost. The sum with -0 makes the
 * NaN of f32 of any other. */
static void
scaled_product(struct lift *l, const char *scale)
{
    const char *ftz = hed_lift_flag(l, "FTZ", ".ftz"), *sat = hed_lift_flag(l, "SAT", ".sat");
    const char *a = hed_lift_reg(l, hed_lift_f32(l, hed_lift_operand(l, 1)));
    const char *b = hed_lift_reg(l, hed_lift_f32(l, hed_lift_operand(l, 2)));
    const char *x = hed_lift_temp(l, 'q'), *y = hed_lift_temp(l, 'q');
    const char *product = hed_lift_temp(l, 'q'), *scaled = hed_lift_temp(l, 'q');
    const char *t = hed_lift_temp(l, 't');

    if (hed_lift_has(l, "FMZ"))
        hed_lift_refuse(l, "a product with zero that is always zero");
    hed_lift_calc(l, "cvt%s.f64.f32 %s, %s", ftz, x, a);
    hed_lift_calc(l, "cvt%s.f64.f32 %s, %s", ftz, y, b);
    hed_lift_calc(l, "mul.rn.f64 %s, %s, %s", product, x, y);
    hed_lift_calc(l, "mul.rn.f64 %s, %s, %s", scaled, product, scale);
    hed_lift_calc(l, "cvt.%s%s%s.f32.f64 %s, %s", hed_lift_round(l), ftz, sat, t, scaled);
    hed_lift_put(l, "add.rn.f32 %s, %s, 0f80000000", hed_lift_def(l, hed_lift_operand(l, 0)), t);
}

void
hed_lift_fmul(struct lift *l)
{
    static const char *const scales[] = {
        NULL,
        "0d3fc0000000000000", /* .D8 */
        "0d3fd0000000000000",
        "0d3fe0000000000000",
        "",
        "0d4000000000000000", /* .M2 */
        "0d4010000000000000",
        "0d4020000000000000",
    };
    const char *scale = scales[hed_sass_bits(l->inst, 84, 3)];

    if (!scale)
        hed_lift_refuse(l, "a scale that is not known");
    else if (*scale)
        scaled_product(l, scale);
    else
        arithmetic_f32(l, "mul", 2);
}

/* The modifier by which a result has the product of the signs. */
static const char *
xorsign(struct lift *l)
{
    const struct hed_sass_operand *a = hed_lift_operand(l, 1), *b = hed_lift_operand(l, 2);

    if (!hed_lift_has(l, "XORSIGN"))
        return "";
    if (!a->absolute || !b->absolute || a->negate || b->negate)
        hed_lift_refuse(l, "signs that are not those of absolute values");
    return ".xorsign.abs";
}

void
hed_lift_smaller_or_larger(struct lift *l, const char *type, const char *a, const char *b)
{
    const char *how = hed_lift_text(l, "%s%s%s.%s", hed_lift_flag(l, "FTZ", ".ftz"),
                                    hed_lift_flag(l, "NAN", ".NaN"), xorsign(l), type);
    bool is_min;
    const char *p = hed_lift_pred(l, 87, &is_min), *low, *high;

    if (!p) {
        hed_lift_put(l, "%s%s %s, %s, %s", is_min ? "min" : "max", how,
                     hed_lift_def(l, hed_lift_operand(l, 0)), a, b);
        return;
    }
    low = hed_lift_temp(l, 't');
    high = hed_lift_temp(l, 't');
    hed_lift_calc(l, "min%s %s, %s, %s", how, low, a, b);
    hed_lift_calc(l, "max%s %s, %s, %s", how, high, a, b);
    hed_lift_put(l, "selp.b32 %s, %s, %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), low, high,
                 p);
}

void
hed_lift_fmnmx(struct lift *l)
{
    struct hed_sass_operand a = *hed_lift_operand(l, 1), b = *hed_lift_operand(l, 2);

    if (hed_lift_has(l, "XORSIGN")) /* which looks at the signs that |a| and |b| drop */
        a.absolute = b.absolute = false;
    hed_lift_smaller_or_larger(l, "f32", hed_lift_float(l, &a), hed_lift_float(l, &b));
}

/* Bits with signs, as nothing is computed. */
void
hed_lift_fsel(struct lift *l)
{
    const char *a = hed_lift_f32(l, hed_lift_operand(l, 1));
    const char *b = hed_lift_f32(l, hed_lift_operand(l, 2));
    bool constant;
    const char *p = hed_lift_pred(l, 87, &constant);

    if (hed_lift_has(l, "FTZ"))
        hed_lift_refuse(l, "a choice that flushes");
    if (p)
        hed_lift_put(l, "selp.b32 %s, %s, %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), a, b,
                     p);
    else
        hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)),
                     constant ? a : b);
}

/* ---- comparisons ----------------------------------------------------------------------------- */

const char *
hed_lift_float_compare(struct lift *l, const char *type, const char *a, const char *b)
{
    static const char *const cmps[] = {NULL,  "lt",  "eq",  "le",  "gt",  "ne",  "ge",  "num",
                                       "nan", "ltu", "equ", "leu", "gtu", "neu", "geu", NULL};
    const unsigned code = (unsigned)hed_sass_bits(l->inst, 76, 4);
    const char *x = hed_lift_temp(l, 'x');

    if (cmps[code])
        hed_lift_calc(l, "setp.%s%s.%s %s, %s, %s", cmps[code], hed_lift_flag(l, "FTZ", ".ftz"),
                      type, x, a, b);
    else
        hed_lift_calc(l, "setp.%s.b32 %s, 0, 0", code ? "eq" : "ne", x);
    return x;
}

void
hed_lift_fsetp(struct lift *l)
{
    const char *a = hed_lift_float(l, hed_lift_operand(l, 0));
    const char *b = hed_lift_float(l, hed_lift_operand(l, 1));

    hed_lift_compared(l, hed_lift_float_compare(l, "f32", a, b), NULL,
                      (unsigned)hed_sass_bits(l->inst, 74, 2));
}

void
hed_lift_fset(struct lift *l)
{
    const char *a = hed_lift_float(l, hed_lift_operand(l, 1));
    const char *b = hed_lift_float(l, hed_lift_operand(l, 2));
    const char *x = hed_lift_combined(l, hed_lift_float_compare(l, "f32", a, b),
                                      (unsigned)hed_sass_bits(l->inst, 74, 2));

    hed_lift_put(l, "selp.b32 %s, 0x3f800000, 0, %s", hed_lift_def(l, hed_lift_operand(l, 0)), x);
}

/* Does exponent e, or a difference of two, lie outside of a range? */
static const char *
is_outside(struct lift *l, const char *e, int from, int to)
{
    const char *t = hed_lift_temp(l, 't'), *x = hed_lift_temp(l, 'x');

    hed_lift_calc(l, "sub.s32 %s, %s, %d", t, e, from);
    hed_lift_calc(l, "setp.gt.u32 %s, %s, %d", x, t, to - from);
    return x;
}

/* Must a division take the slow path? */
void
hed_lift_fchk(struct lift *l)
{
    const char *a = hed_lift_word(l, hed_lift_operand(l, 0));
    const char *b = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *ea = hed_lift_temp(l, 't'), *eb = hed_lift_temp(l, 't');
    const char *apart = hed_lift_temp(l, 't'), *x, *y, *z, *either, *any;

    hed_lift_calc(l, "bfe.u32 %s, %s, 23, 8", ea, a);
    hed_lift_calc(l, "bfe.u32 %s, %s, 23, 8", eb, b);
    hed_lift_calc(l, "sub.s32 %s, %s, %s", apart, ea, eb);
    x = is_outside(l, ea, 25, 254);
    y = is_outside(l, eb, 2, 251);
    z = is_outside(l, apart, -124, 126);
    either = hed_lift_temp(l, 'x');
    any = hed_lift_temp(l, 'x');
    hed_lift_calc(l, "or.pred %s, %s, %s", either, x, y);
    hed_lift_calc(l, "or.pred %s, %s, %s", any, either, z);
    hed_lift_set_pred(l, 81, any);
}

/* ---- MUFU ------------------------------------------------------------------------------------ */

/* The angle is in turns. Whole turns are dropped first, exactly; a zero keeps its sign. */
static void
wave(struct lift *l, const char *op, const char *turns)
{
    const char *whole = hed_lift_temp(l, 't'), *rest = hed_lift_temp(l, 't');
    const char *size = hed_lift_temp(l, 't'), *part = hed_lift_temp(l, 't');
    const char *angle = hed_lift_temp(l, 't'), *small = hed_lift_temp(l, 'x');

    hed_lift_calc(l, "cvt.rni.ftz.f32.f32 %s, %s", whole, turns);
    hed_lift_calc(l, "sub.rn.ftz.f32 %s, %s, %s", rest, turns, whole);
    hed_lift_calc(l, "abs.f32 %s, %s", size, turns);
    hed_lift_calc(l, "setp.lt.f32 %s, %s, 0f3f000000", small, size);
    hed_lift_calc(l, "selp.b32 %s, %s, %s, %s", part, turns, rest, small);
    hed_lift_calc(l, "mul.rn.ftz.f32 %s, %s, 0f40c90fdb", angle, part);
    hed_lift_put(l, "%s.approx.ftz.f32 %s, %s", op, hed_lift_def(l, hed_lift_operand(l, 0)), angle);
}

/* The upper half of a double, and of the result. */
static void
upper_approx(struct lift *l, const char *op, const char *upper)
{
    const char *q = hed_lift_temp(l, 'q'), *r = hed_lift_temp(l, 'q');
    const char *low = hed_lift_temp(l, 't'), *high = hed_lift_temp(l, 't');

    hed_lift_calc(l, "mov.b64 %s, {0, %s}", q, upper);
    hed_lift_calc(l, "%s.approx.ftz.f64 %s, %s", op, r, q);
    hed_lift_calc(l, "mov.b64 {%s, %s}, %s", low, high, r);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), high);
}

static void
half_approx(struct lift *l, const char *op, const char *type, const char *word)
{
    const char *low = hed_lift_temp(l, 'h'), *high = hed_lift_temp(l, 'h');
    const char *r = hed_lift_temp(l, 'h');

    hed_lift_calc(l, "mov.b32 {%s, %s}, %s", low, high, word);
    hed_lift_calc(l, "%s.approx.%s %s, %s", op, type, r,
                  hed_sass_bits(l->inst, 60, 1) ? high : low);
    hed_lift_put(l, "cvt.u32.u16 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), r);
}

void
hed_lift_mufu(struct lift *l)
{
    enum { COS, SIN, EX2, RCP64H = 6, RSQ64H, SQRT, TANH };
    static const char *const ops[] = {"cos",   "sin", "ex2",   "lg2",  "rcp",
                                      "rsqrt", "rcp", "rsqrt", "sqrt", "tanh"};
    const unsigned code = (unsigned)hed_sass_bits(l->inst, 74, 4);
    const struct hed_sass_operand *s = hed_lift_operand(l, 1);
    const bool bf16 = hed_lift_has(l, "BF16"), half = bf16 || hed_lift_has(l, "F16");
    const char *a;

    if (code > TANH || (half && ((code != EX2 && code != TANH) || s->negate || s->absolute ||
                                 s->kind != HED_SASS_REG))) {
        hed_lift_refuse(l, "a function that is not known");
        return;
    }
    a = hed_lift_reg(l, hed_lift_f32(l, s));
    if (half)
        half_approx(l, ops[code], !bf16 ? "f16" : code == EX2 ? "ftz.bf16" : "bf16", a);
    else if (code == COS || code == SIN)
        wave(l, ops[code], a);
    else if (code == RCP64H || code == RSQ64H)
        upper_approx(l, ops[code], a);
    else if (code == TANH)
        hed_lift_put(l, "tanh.approx.f32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), a);
    else
        hed_lift_put(l, "%s.approx.ftz.f32 %s, %s", ops[code],
                     hed_lift_def(l, hed_lift_operand(l, 0)), a);
}

/* ---- f64 ------------------------------------------------------------------------------------- */

static void
arithmetic_f64(struct lift *l, const char *op, unsigned sources)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);
    const char *in[3] = {"", "", ""};

    for (unsigned i = 0; i < sources; i++)
        in[i] = hed_lift_double(l, hed_lift_operand(l, i + 1));
    hed_lift_put(l, "%s.%s.f64 %s, %s, %s%s%s", op, hed_lift_round(l), hed_lift_def64(l, d), in[0],
                 in[1], sources > 2 ? ", " : "", in[2]);
    hed_lift_end64(l, d);
}

void
hed_lift_dadd(struct lift *l)
{
    arithmetic_f64(l, "add", 2);
}

void
hed_lift_dmul(struct lift *l)
{
    arithmetic_f64(l, "mul", 2);
}

void
hed_lift_dfma(struct lift *l)
{
    arithmetic_f64(l, "fma", 3);
}

/* A double as an integer of the same order, in which -0 is less than +0. */
static const char *
ordered(struct lift *l, const char *a)
{
    const char *sign = hed_lift_temp(l, 'q'), *low = hed_lift_temp(l, 'q');
    const char *key = hed_lift_temp(l, 'q');

    hed_lift_calc(l, "shr.s64 %s, %s, 63", sign, a);
    hed_lift_calc(l, "shr.u64 %s, %s, 1", low, sign);
    hed_lift_calc(l, "xor.b64 %s, %s, %s", key, a, low);
    return key;
}

/* Whether to take a rather than b as the lesser or greater one, and whether both are NaN. */
static void
take_first(struct lift *l, const char *a, const char *b, bool is_min)
{
    const char *x = hed_lift_temp(l, 'x'), *p = hed_lift_temp(l, 'q'), *q = hed_lift_temp(l, 'q');
    const char *number = hed_lift_temp(l, 'x'), *not_b = hed_lift_temp(l, 'x');
    const char *not_a = hed_lift_temp(l, 'x'), *both = hed_lift_temp(l, 'x');
    const char *either = hed_lift_temp(l, 'x'), *first = hed_lift_temp(l, 'x');

    hed_lift_calc(l, "mov.b64 %s, %s", p, a);
    hed_lift_calc(l, "mov.b64 %s, %s", q, b);
    hed_lift_calc(l, "setp.%s.s64 %s, %s, %s", is_min ? "le" : "gt", x, ordered(l, p),
                  ordered(l, q));
    hed_lift_calc(l, "setp.num.f64 %s, %s, %s", number, p, p);
    hed_lift_calc(l, "setp.nan.f64 %s, %s, %s", not_b, q, q);
    hed_lift_calc(l, "or.pred %s, %s, %s", either, x, not_b);
    hed_lift_calc(l, "and.pred %s, %s, %s", first, either, number);
    hed_lift_calc(l, "not.pred %s, %s", not_a, number);
    hed_lift_calc(l, "and.pred %s, %s, %s", both, not_a, not_b);
    hed_lift_compared(l, first, both, (unsigned)hed_sass_bits(l->inst, 74, 2));
}

void
hed_lift_dsetp(struct lift *l)
{
    const char *a = hed_lift_double(l, hed_lift_operand(l, 0));
    const char *b = hed_lift_double(l, hed_lift_operand(l, 1));

    if (hed_lift_has(l, "MIN") || hed_lift_has(l, "MAX"))
        take_first(l, a, b, hed_lift_has(l, "MIN"));
    else
        hed_lift_compared(l, hed_lift_float_compare(l, "f64", a, b), NULL,
                          (unsigned)hed_sass_bits(l->inst, 74, 2));
}
