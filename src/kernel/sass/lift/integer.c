/* Integer arithmetic. See inside.h for the rules. */
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"

static const char *
widened(struct lift *l, const char *word)
{
    const char *q = hed_lift_temp(l, 'q');

    hed_lift_calc(l, "cvt.u64.u32 %s, %s", q, word);
    return q;
}

/* The low word of a 64-bit value goes to the result, the bits above it are carries. */
static void
write_sum(struct lift *l, const char *sum)
{
    const char *low = hed_lift_temp(l, 't'), *high = hed_lift_temp(l, 't');
    const char *first, *second;

    hed_lift_calc(l, "mov.b64 {%s, %s}, %s", low, high, sum);
    first = hed_lift_def_pred(l, 81);
    second = hed_lift_def_pred(l, 84);
    if (first)
        hed_lift_put(l, "setp.ne.u32 %s, %s, 0", first, high);
    if (second)
        hed_lift_put(l, "setp.gt.u32 %s, %s, 1", second, high);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), low);
}

/* ---- IADD3 ----------------------------------------------------------------------------------- */

/* A negated source counts as its inverse plus one: that is how carries come out. */
static const char *
add_wide(struct lift *l, const struct hed_sass_operand *const in[3], bool extended)
{
    const char *sum = NULL;
    unsigned ones = 0;

    for (unsigned i = 0; i < 3; i++) {
        struct hed_sass_operand o = *in[i];
        const char *q;

        if (hed_lift_is_zero(&o) && !o.negate)
            continue;
        ones += o.negate;
        o.invert |= o.negate;
        o.negate = false;
        q = widened(l, hed_lift_u32(l, &o));
        if (sum) {
            const char *next = hed_lift_temp(l, 'q');

            hed_lift_calc(l, "add.u64 %s, %s, %s", next, sum, q);
            q = next;
        }
        sum = q;
    }
    if (!sum)
        sum = widened(l, "0");
    if (ones) {
        const char *next = hed_lift_temp(l, 'q');

        hed_lift_calc(l, "add.u64 %s, %s, %u", next, sum, ones);
        sum = next;
    }
    for (unsigned bit = 87; extended && bit >= 77; bit -= 10) {
        const char *n = hed_lift_pred_number(l, bit);

        if (strcmp(n, "0") != 0) {
            const char *q = widened(l, n), *next = hed_lift_temp(l, 'q');

            hed_lift_calc(l, "add.u64 %s, %s, %s", next, sum, q);
            sum = next;
        }
    }
    return sum;
}

/* Appends a summand to a sum of 32 bits. */
static const char *
plus(struct lift *l, const char *sum, const char *word, bool negative)
{
    const char *t;

    if (!sum && !negative)
        return word;
    t = hed_lift_temp(l, 't');
    if (!sum)
        hed_lift_calc(l, "neg.s32 %s, %s", t, word);
    else
        hed_lift_calc(l, "%s %s, %s, %s", negative ? "sub.s32" : "add.s32", t, sum, word);
    return t;
}

static const char *
add_narrow(struct lift *l, const struct hed_sass_operand *const in[3], bool extended)
{
    const char *sum = NULL;

    for (unsigned pass = 0; pass < 2; pass++) /* what is subtracted comes last */
        for (unsigned i = 0; i < 3; i++) {
            struct hed_sass_operand o = *in[i];

            if (o.negate != (pass == 1) || (hed_lift_is_zero(&o) && !o.negate))
                continue;
            o.negate = false;
            sum = plus(l, sum, hed_lift_u32(l, &o), pass == 1);
        }
    for (unsigned bit = 87; extended && bit >= 77; bit -= 10) {
        const char *n = hed_lift_pred_number(l, bit);

        if (strcmp(n, "0") != 0)
            sum = plus(l, sum, n, false);
    }
    return sum ? sum : "0";
}

/* Does anybody read a carry? Asked without saying that it is written. */
static bool
wants_carry(const struct lift *l, unsigned bit)
{
    const unsigned reg = (unsigned)hed_sass_bits(l->inst, bit, 3);
    const unsigned n = lift_pred_bit(reg, l->inst->uniform);

    return reg != HED_SASS_PT && (l->first_pass || (l->pred_live[l->index] >> n & 1));
}

/* UIADD3.64: pairs, without carries. */
static void
add_pairs(struct lift *l, const struct hed_sass_operand *const in[3])
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);
    const char *sum = "0";

    if (hed_lift_has(l, "X") || hed_sass_bits(l->inst, 81, 6) != 0x3f) {
        hed_lift_refuse(l, "pairs with carries");
        return;
    }
    for (unsigned i = 0; i < 3; i++) {
        const char *q, *next;

        if (hed_lift_is_zero(in[i]))
            continue;
        if (in[i]->kind != HED_SASS_UREG || in[i]->invert) {
            hed_lift_refuse(l, "a pair that is no register");
            return;
        }
        q = hed_lift_u64(l, in[i]);
        next = hed_lift_temp(l, 'q');
        hed_lift_calc(l, "%s.s64 %s, %s, %s", in[i]->negate ? "sub" : "add", next, sum, q);
        sum = next;
    }
    hed_lift_put(l, "mov.b64 %s, %s", hed_lift_def64(l, d), sum);
    hed_lift_end64(l, d);
}

void
hed_lift_add3(struct lift *l)
{
    const struct hed_sass_operand *const in[3] = {hed_lift_operand(l, 1), hed_lift_operand(l, 2),
                                                  hed_lift_operand(l, 3)};
    const bool extended = hed_lift_has(l, "X");

    if (hed_lift_has(l, "64")) {
        add_pairs(l, in);
        return;
    }
    if (wants_carry(l, 81) || wants_carry(l, 84)) {
        write_sum(l, add_wide(l, in, extended));
        return;
    }

    const char *sum = add_narrow(l, in, extended);

    (void)hed_lift_def_pred(l, 81);
    (void)hed_lift_def_pred(l, 84);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), sum);
}

/* ---- IMAD ------------------------------------------------------------------------------------ */

static void
mad_low(struct lift *l)
{
    const struct hed_sass_operand *a = hed_lift_operand(l, 1), *b = hed_lift_operand(l, 2),
                                  *c = hed_lift_operand(l, 3), *d = hed_lift_operand(l, 0);
    const bool no_product = hed_lift_is_zero(a) || hed_lift_is_zero(b);
    const bool extended = hed_lift_has(l, "X");
    int shift = -1; /* the product is only that */
    uint32_t v;
    const char *sum;

    if (no_product && !extended && !c->negate && !c->invert) {
        const char *w = hed_lift_word(l, c);

        hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, d), w);
        hed_lift_moved(l, d, c);
        return;
    }
    if (!extended && hed_lift_is_zero(c) && hed_lift_number(b, &v) && v == 1) {
        const char *w = hed_lift_word(l, a);

        hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, d), w);
        hed_lift_moved(l, d, a);
        return;
    }

    const char *addend = hed_lift_is_zero(c) && !c->negate ? "0" : hed_lift_u32(l, c);

    if (no_product) {
        sum = addend;
    } else if (hed_lift_number(b, &v) && v == 1) {
        sum = plus(l, hed_lift_word(l, a), addend, false);
    } else if (hed_lift_number(b, &v) && v && (v & (v - 1)) == 0 && strcmp(addend, "0") == 0) {
        sum = hed_lift_temp(l, 't');
        hed_lift_calc(l, "shl.b32 %s, %s, %d", sum, hed_lift_word(l, a), __builtin_ctz(v));
        shift = !extended ? __builtin_ctz(v) : -1;
    } else {
        const char *x = hed_lift_word(l, a), *y = hed_lift_word(l, b);

        sum = hed_lift_temp(l, 't');
        if (strcmp(addend, "0") == 0)
            hed_lift_calc(l, "mul.lo.s32 %s, %s, %s", sum, x, y);
        else
            hed_lift_calc(l, "mad.lo.s32 %s, %s, %s, %s", sum, x, y, addend);
    }
    if (extended) {
        const char *n = hed_lift_pred_number(l, 87);

        if (strcmp(n, "0") != 0)
            sum = plus(l, sum, n, false);
    }
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, d), sum);
    if (shift >= 0)
        hed_lift_shifted(l, d, a, (unsigned)shift, false);
}

/* A pair that is added or, with .X, inverted. With a carry, a negated one is inverted, too, and
 * *ones is what is missing then. */
static const char *
wide_addend(struct lift *l, const struct hed_sass_operand *c, bool carries, bool *ones)
{
    const char *q = hed_lift_u64(l, c), *t;

    *ones = carries && c->negate;
    if (!c->negate && !c->invert)
        return q;
    t = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "%s %s, %s", c->negate && !carries ? "neg.s64" : "not.b64", t, q);
    return t;
}

static const char *
wide_product(struct lift *l, const char *addend)
{
    const char *x = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *y = hed_lift_word(l, hed_lift_operand(l, 2));
    const char *type = hed_lift_has(l, "U32") ? "u32" : "s32", *q = hed_lift_temp(l, 'q');

    if (strcmp(addend, "0") == 0)
        hed_lift_calc(l, "mul.wide.%s %s, %s, %s", type, q, x, y);
    else
        hed_lift_calc(l, "mad.wide.%s %s, %s, %s, %s", type, q, x, y, addend);
    return q;
}

/* Adds 0 or 1, a word, to a 64-bit sum. *carry, if it is not NULL, is a predicate that becomes true
 * if this carries. */
static const char *
add_bit(struct lift *l, const char *q, const char *bit, const char **carry)
{
    const char *sum = hed_lift_temp(l, 'q');

    hed_lift_calc(l, "add.u64 %s, %s, %s", sum, q, widened(l, bit));
    if (*carry) {
        const char *again = hed_lift_temp(l, 'x'), *both = hed_lift_temp(l, 'x');

        hed_lift_calc(l, "setp.lt.u64 %s, %s, %s", again, sum, q);
        hed_lift_calc(l, "or.pred %s, %s, %s", both, *carry, again);
        *carry = both;
    }
    return sum;
}

/* Product plus pair, with the carries that the instruction has. The carry out of a 64-bit sum is
 * its order against a summand. */
static const char *
wide_sum(struct lift *l)
{
    const bool wants = wants_carry(l, 81);
    bool ones;
    const char *addend = wide_addend(l, hed_lift_operand(l, 3), wants, &ones);
    const char *q = wide_product(l, addend), *x = NULL;

    if (wants) {
        x = hed_lift_temp(l, 'x');
        hed_lift_calc(l, "setp.lt.u64 %s, %s, %s", x, q, addend);
    }
    if (ones)
        q = add_bit(l, q, "1", &x);
    if (hed_lift_has(l, "X")) {
        const char *n = hed_lift_pred_number(l, 87);

        if (strcmp(n, "0") != 0)
            q = add_bit(l, q, n, &x);
    }
    if (x)
        hed_lift_set_pred(l, 81, x);
    else
        (void)hed_lift_def_pred(l, 81);
    return q;
}

static void
mad_wide(struct lift *l)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);
    const char *q = wide_sum(l);

    hed_lift_put(l, "mov.b64 %s, %s", hed_lift_def64(l, d), q);
    hed_lift_end64(l, d);
}

/* The high word. */
static void
mad_high(struct lift *l)
{
    const char *q = wide_sum(l);
    const char *low = hed_lift_temp(l, 't'), *high = hed_lift_temp(l, 't');

    hed_lift_calc(l, "mov.b64 {%s, %s}, %s", low, high, q);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), high);
}

void
hed_lift_mad(struct lift *l)
{
    if (hed_lift_has(l, "WIDE"))
        mad_wide(l);
    else if (hed_lift_has(l, "HI"))
        mad_high(l);
    else
        mad_low(l);
}

/* ---- LEA ------------------------------------------------------------------------------------- */

/* What is shifted, as 64 bits: with a high word, sign-extended, or alone. */
static const char *
lea_shifted(struct lift *l, const struct hed_sass_operand *a, const struct hed_sass_operand *high,
            bool sign, unsigned by)
{
    const char *w = hed_lift_word(l, a), *q = hed_lift_temp(l, 'q'), *s;

    if (sign)
        hed_lift_calc(l, "cvt.s64.s32 %s, %s", q, w);
    else if (high)
        hed_lift_calc(l, "mov.b64 %s, {%s, %s}", q, w, hed_lift_word(l, high));
    else
        hed_lift_calc(l, "cvt.u64.u32 %s, %s", q, w);
    if (by == 0)
        return q;
    s = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "shl.b64 %s, %s, %u", s, q, by);
    return s;
}

/* A summand of 64 bits. A negated one counts as its inverse; the one that is missing is added to
 * *ones. That is how carries come out: 0 - 0 has one. */
static const char *
lea_summand(struct lift *l, const char *word, const struct hed_sass_operand *sign, unsigned *ones)
{
    const char *t;

    *ones += sign->negate;
    if (!sign->negate && !sign->invert)
        return widened(l, word);
    t = hed_lift_temp(l, 't');
    hed_lift_calc(l, "not.b32 %s, %s", t, word);
    return widened(l, t);
}

/* The low word where nobody asks for the carry: 32 bits are enough. */
static void
lea_narrow(struct lift *l)
{
    const struct hed_sass_operand *in[] = {hed_lift_operand(l, 1), hed_lift_operand(l, 2)};
    const unsigned by = (unsigned)hed_sass_bits(l->inst, 75, 5);
    const char *words[2] = {hed_lift_word(l, in[0]), hed_lift_word(l, in[1])}, *sum = NULL, *t;

    if (by) {
        t = hed_lift_temp(l, 't');
        hed_lift_calc(l, "shl.b32 %s, %s, %u", t, words[0], by);
        words[0] = t;
    }
    for (unsigned i = 0; i < 2; i++)
        if (in[i]->invert && !in[i]->negate) {
            t = hed_lift_temp(l, 't');
            hed_lift_calc(l, "not.b32 %s, %s", t, words[i]);
            words[i] = t;
        }
    for (unsigned pass = 0; pass < 2; pass++) /* what is subtracted comes last */
        for (unsigned i = 0; i < 2; i++)
            if (in[i]->negate == (pass == 1) && (in[i]->negate || strcmp(words[i], "0") != 0))
                sum = plus(l, sum, words[i], pass == 1);
    if (hed_lift_has(l, "X")) {
        const char *n = hed_lift_pred_number(l, 87);

        if (strcmp(n, "0") != 0)
            sum = plus(l, sum, n, false);
    }
    (void)hed_lift_def_pred(l, 81);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), sum ? sum : "0");
}

void
hed_lift_lea(struct lift *l)
{
    const struct hed_sass_operand *a = hed_lift_operand(l, 1), *b = hed_lift_operand(l, 2);
    const bool is_high = hed_lift_has(l, "HI"), sign = hed_lift_has(l, "SX32");
    const unsigned by = (unsigned)hed_sass_bits(l->inst, 75, 5);
    const char *q, *low, *high, *x, *y, *sum;
    unsigned ones = 0;

    if (!is_high && !wants_carry(l, 81)) {
        lea_narrow(l);
        return;
    }
    q = lea_shifted(l, a, is_high && !sign ? hed_lift_operand(l, 3) : NULL, sign, by);
    low = hed_lift_temp(l, 't');
    high = hed_lift_temp(l, 't');
    sum = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "mov.b64 {%s, %s}, %s", low, high, q);
    x = lea_summand(l, is_high ? high : low, a, &ones);
    y = lea_summand(l, hed_lift_word(l, b), b, &ones);
    hed_lift_calc(l, "add.u64 %s, %s, %s", sum, x, y);
    if (ones) {
        const char *t = hed_lift_temp(l, 'q');

        hed_lift_calc(l, "add.u64 %s, %s, %u", t, sum, ones);
        sum = t;
    }
    if (hed_lift_has(l, "X")) {
        const char *t = hed_lift_temp(l, 'q');

        hed_lift_calc(l, "add.u64 %s, %s, %s", t, sum, widened(l, hed_lift_pred_number(l, 87)));
        sum = t;
    }
    low = hed_lift_temp(l, 't');
    high = hed_lift_temp(l, 't');
    hed_lift_calc(l, "mov.b64 {%s, %s}, %s", low, high, sum);

    const char *carry = hed_lift_def_pred(l, 81);

    if (carry)
        hed_lift_put(l, "setp.ne.u32 %s, %s, 0", carry, high);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), low);
}

/* ---- others ---------------------------------------------------------------------------------- */

void
hed_lift_min_max(struct lift *l)
{
    const char *type = hed_lift_has(l, "U32") ? "u32" : "s32";
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *b = hed_lift_word(l, hed_lift_operand(l, 2));
    bool is_min;
    const char *p = hed_lift_pred(l, 87, &is_min);

    if (!p) {
        hed_lift_put(l, "%s.%s %s, %s, %s", is_min ? "min" : "max", type,
                     hed_lift_def(l, hed_lift_operand(l, 0)), a, b);
        return;
    }

    const char *low = hed_lift_temp(l, 't'), *high = hed_lift_temp(l, 't');

    hed_lift_calc(l, "min.%s %s, %s, %s", type, low, a, b);
    hed_lift_calc(l, "max.%s %s, %s, %s", type, high, a, b);
    hed_lift_put(l, "selp.b32 %s, %s, %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), low, high,
                 p);
}

void
hed_lift_abs(struct lift *l)
{
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1));

    hed_lift_put(l, "abs.s32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), a);
}

void
hed_lift_dot(struct lift *l)
{
    const bool four = hed_lift_has(l, "4A");
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *b = hed_lift_word(l, hed_lift_operand(l, 2));
    const char *c = hed_lift_u32(l, hed_lift_operand(l, 3));
    const char *left = hed_sass_bits(l->inst, 73, 1) ? "s32" : "u32";
    const char *right = hed_sass_bits(l->inst, 74, 1) ? "s32" : "u32";
    const char *d = hed_lift_def(l, hed_lift_operand(l, 0));

    if (four)
        hed_lift_put(l, "dp4a.%s.%s %s, %s, %s, %s", left, right, d, a, b, c);
    else
        hed_lift_put(l, "dp2a.%s.%s.%s %s, %s, %s, %s", hed_lift_has(l, "HI") ? "hi" : "lo", left,
                     right, d, a, b, c);
}

void
hed_lift_difference(struct lift *l)
{
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *b = hed_lift_word(l, hed_lift_operand(l, 2));
    const char *c = hed_lift_word(l, hed_lift_operand(l, 3));

    hed_lift_put(l, "sad.%s %s, %s, %s, %s", hed_lift_has(l, "U32") ? "u32" : "s32",
                 hed_lift_def(l, hed_lift_operand(l, 0)), a, b, c);
}

/* Of four bytes each, side by side or, with .ACC, all added up. */
void
hed_lift_differences(struct lift *l)
{
    const char *a = hed_lift_reg(l, hed_lift_word(l, hed_lift_operand(l, 1)));
    const char *b = hed_lift_reg(l, hed_lift_word(l, hed_lift_operand(l, 2)));
    const char *c = hed_lift_reg(l, hed_lift_word(l, hed_lift_operand(l, 3)));

    if (!hed_lift_has(l, "U8") || hed_sass_bits(l->inst, 81, 3) != HED_SASS_PT) {
        hed_lift_refuse(l, "a form that is not known");
        return;
    }
    hed_lift_put(l, "vabsdiff4.u32.u32.u32%s %s, %s, %s, %s", hed_lift_flag(l, "ACC", ".add"),
                 hed_lift_def(l, hed_lift_operand(l, 0)), a, b, c);
}

void
hed_lift_narrow(struct lift *l)
{
    static const char *const types[] = {"u8", "s8", "u16", "s16", NULL, NULL, "u4", "s4"};
    const char *type = types[hed_sass_bits(l->inst, 76, 3)];
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *b = hed_lift_word(l, hed_lift_operand(l, 2));
    const char *c = hed_lift_word(l, hed_lift_operand(l, 3));

    if (!type || type[1] == '4') {
        hed_lift_refuse(l, "a type that is not known");
        return;
    }

    const char *d = hed_lift_def(l, hed_lift_operand(l, 0));

    if (type[1] == '1')
        hed_lift_put(l, "cvt.pack.sat.%s.s32 %s, %s, %s", type, d, a, b);
    else
        hed_lift_put(l, "cvt.pack.sat.%s.s32.b32 %s, %s, %s, %s", type, d, a, b, c);
}

void
hed_lift_clamp(struct lift *l)
{
    static const char *const types[] = {"u8", "s8", "u16", "s16"};
    const char *a = hed_lift_reg(l, hed_lift_word(l, hed_lift_operand(l, 1)));

    hed_lift_put(l, "cvt.sat.%s.s32 %s, %s", types[hed_sass_bits(l->inst, 76, 2)],
                 hed_lift_def(l, hed_lift_operand(l, 0)), a);
}
