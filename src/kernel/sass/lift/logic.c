/* Moves, bits, comparisons and predicates. See inside.h for the rules. */
#include <stdio.h>
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"

void
hed_lift_nothing(struct lift *l)
{
    (void)l;
}

void
hed_lift_move(struct lift *l)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0), *s = hed_lift_operand(l, 1);
    const char *half = hed_lift_patched(l), *w = half ? half : hed_lift_word(l, s);

    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, d), w);
    if (!half)
        hed_lift_moved(l, d, s);
}

void
hed_lift_select(struct lift *l)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *b = hed_lift_word(l, hed_lift_operand(l, 2));
    bool constant;
    const char *p = hed_lift_pred(l, 87, &constant);

    if (p)
        hed_lift_put(l, "selp.b32 %s, %s, %s, %s", hed_lift_def(l, d), a, b, p);
    else
        hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, d), constant ? a : b);
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* LOP3 by a table, in the simplest form. */
static void
write_logic(struct lift *l, unsigned lut, const char *d, const char *a, const char *b,
            const char *c)
{
    switch (lut) {
    case 0xc0:
        hed_lift_calc(l, "and.b32 %s, %s, %s", d, a, b);
        break;
    case 0xfc:
        hed_lift_calc(l, "or.b32 %s, %s, %s", d, a, b);
        break;
    case 0x3c:
        hed_lift_calc(l, "xor.b32 %s, %s, %s", d, a, b);
        break;
    case 0x0f:
        hed_lift_calc(l, "not.b32 %s, %s", d, a);
        break;
    case 0x33:
        hed_lift_calc(l, "not.b32 %s, %s", d, b);
        break;
    default:
        hed_lift_calc(l, "lop3.b32 %s, %s, %s, %s, 0x%x", d, a, b, c, lut);
        break;
    }
}

void
hed_lift_logic(struct lift *l)
{
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *b = hed_lift_word(l, hed_lift_operand(l, 2));
    const char *c = hed_lift_word(l, hed_lift_operand(l, 3));
    const char *t = hed_lift_temp(l, 't'), *out, *in = NULL;
    bool constant = false;

    write_logic(l, (unsigned)hed_sass_bits(l->inst, 72, 8), t, a, b, c);
    if (hed_sass_bits(l->inst, 81, 3) != HED_SASS_PT)
        in = hed_lift_pred(l, 87, &constant);
    out = hed_lift_def_pred(l, 81);
    if (out) {
        const bool both = hed_lift_has(l, "PAND");

        if (in)
            hed_lift_put(l, "setp.ne.%s.b32 %s, %s, 0, %s", both ? "and" : "or", out, t, in);
        else if (constant == both)
            hed_lift_put(l, "setp.ne.b32 %s, %s, 0", out, t);
        else
            hed_lift_put(l, "setp.%s.b32 %s, 0, 0", constant ? "eq" : "ne", out);
    }
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), t);
}

void
hed_lift_permute(struct lift *l)
{
    static const char *const modes[] = {"", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16", NULL};
    const char *mode = l->inst->uniform ? "" : modes[hed_sass_bits(l->inst, 72, 3)];
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *selector = hed_lift_word(l, hed_lift_operand(l, 2));
    const char *c = hed_lift_word(l, hed_lift_operand(l, 3));

    if (!mode) {
        hed_lift_refuse(l, "a mode that is not known");
        return;
    }
    hed_lift_put(l, "prmt.b32%s %s, %s, %s, %s", mode, hed_lift_def(l, hed_lift_operand(l, 0)), a,
                 c, selector);
}

void
hed_lift_extend(struct lift *l)
{
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *b = hed_lift_word(l, hed_lift_operand(l, 2));

    hed_lift_put(l, "szext.%s.%s %s, %s, %s", hed_lift_has(l, "W") ? "wrap" : "clamp",
                 hed_lift_has(l, "U32") ? "u32" : "s32", hed_lift_def(l, hed_lift_operand(l, 0)), a,
                 b);
}

void
hed_lift_mask(struct lift *l)
{
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *b = hed_lift_word(l, hed_lift_operand(l, 2));

    hed_lift_put(l, "bmsk.%s.b32 %s, %s, %s", hed_lift_has(l, "W") ? "wrap" : "clamp",
                 hed_lift_def(l, hed_lift_operand(l, 0)), a, b);
}

void
hed_lift_find_leading(struct lift *l)
{
    const char *a = hed_lift_u32(l, hed_lift_operand(l, 1)), *t = hed_lift_temp(l, 't');
    const char *p;

    hed_lift_calc(l, "bfind%s.%s %s, %s", hed_lift_has(l, "SH") ? ".shiftamt" : "",
                  hed_lift_has(l, "U32") ? "u32" : "s32", t, a);
    p = hed_lift_def_pred(l, 81);
    if (p)
        hed_lift_put(l, "setp.ne.u32 %s, %s, 0xffffffff", p, t);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), t);
}

void
hed_lift_count(struct lift *l)
{
    const char *a = hed_lift_u32(l, hed_lift_operand(l, 1));

    hed_lift_put(l, "popc.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), a);
}

void
hed_lift_reverse(struct lift *l)
{
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1));

    hed_lift_put(l, "brev.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), a);
}

/* ---- comparisons ----------------------------------------------------------------------------- */

/* The predicate at 87, or NULL if combining with it changes nothing. */
static const char *
combining_pred(struct lift *l, bool is_and)
{
    bool constant;
    const char *in = hed_lift_pred(l, 87, &constant);

    if (!in && constant != is_and) {
        in = hed_lift_temp(l, 'x');
        hed_lift_calc(l, "setp.%s.b32 %s, 0, 0", constant ? "eq" : "ne", in);
    }
    return in;
}

const char *
hed_lift_combined(struct lift *l, const char *x, unsigned how)
{
    static const char *const words[] = {"and", "or", "xor", "and"};
    const char *word = words[how & 3], *in = combining_pred(l, word[0] == 'a'), *t;

    if (!in)
        return x;
    t = hed_lift_temp(l, 'x');
    hed_lift_calc(l, "%s.pred %s, %s, %s", word, t, x, in);
    return t;
}

void
hed_lift_compared(struct lift *l, const char *x, const char *second, unsigned how)
{
    if (hed_sass_bits(l->inst, 84, 3) == HED_SASS_PT) {
        second = NULL;
    } else if (!second) {
        second = hed_lift_temp(l, 'x');
        hed_lift_calc(l, "not.pred %s, %s", second, x);
    }
    x = hed_lift_combined(l, x, how);
    if (second)
        second = hed_lift_combined(l, second, how);
    hed_lift_set_pred(l, 81, x);
    if (second)
        hed_lift_set_pred(l, 84, second);
}

/* The upper halves of a comparison of 64 bits: the lower halves decide if these are equal. */
static const char *
compare_upper(struct lift *l, const char *cmp, const char *type, const char *a, const char *b)
{
    const char *below = hed_lift_pred_number(l, 68);
    const char *lower = hed_lift_temp(l, 'x'), *x = hed_lift_temp(l, 'x');
    const char *same = hed_lift_temp(l, 'x'), *t = hed_lift_temp(l, 'x'), *out;

    hed_lift_calc(l, "setp.ne.u32 %s, %s, 0", lower, below);
    if (strcmp(cmp, "eq") == 0 || strcmp(cmp, "ne") == 0) {
        hed_lift_calc(l, "setp.%s.%s.%s %s, %s, %s, %s", cmp, cmp[0] == 'e' ? "and" : "or", type, x,
                      a, b, lower);
        return x;
    }
    hed_lift_calc(l, "setp.eq.and.b32 %s, %s, %s, %s", same, a, b, lower);
    hed_lift_calc(l, "setp.%s.%s %s, %s, %s", cmp[0] == 'l' ? "lt" : "gt", type, x, a, b);
    hed_lift_calc(l, "or.pred %s, %s, %s", t, x, same);
    out = t;
    return out;
}

void
hed_lift_compare(struct lift *l)
{
    static const char *const cmps[] = {NULL, "lt", "eq", "le", "gt", "ne", "ge", NULL};
    const unsigned code = (unsigned)hed_sass_bits(l->inst, 76, 3);
    const char *cmp = cmps[code], *type = hed_lift_has(l, "U32") ? "u32" : "s32";
    const struct hed_sass_operand *a = hed_lift_operand(l, 0), *b = hed_lift_operand(l, 1);
    const char *x, *y, *p;

    x = hed_lift_word(l, a);
    y = hed_lift_word(l, b);
    if (!cmp) {
        p = hed_lift_temp(l, 'x');
        hed_lift_calc(l, "setp.%s.b32 %s, 0, 0", code ? "eq" : "ne", p);
    } else if (hed_lift_has(l, "EX")) {
        p = hed_lift_whole_compare(l, cmp, type);
        if (!p)
            p = compare_upper(l, cmp, type, x, y);
    } else {
        p = hed_lift_temp(l, 'x');
        hed_lift_calc(l, "setp.%s.%s %s, %s, %s", cmp, type, p, x, y);
    }
    hed_lift_compared(l, p, NULL, (unsigned)hed_sass_bits(l->inst, 74, 2));
}

/* ---- predicates ------------------------------------------------------------------------------ */

/* A function of three predicates by a table, whose bit 4a+2b+c is the result. */
static const char *
logic_of_preds(struct lift *l, unsigned lut, const char *const in[3])
{
    const char *t = hed_lift_temp(l, 't'), *bit = hed_lift_temp(l, 't'), *x = hed_lift_temp(l, 'x');

    if (lut == 0 || lut == 0xff) {
        hed_lift_calc(l, "setp.%s.b32 %s, 0, 0", lut ? "eq" : "ne", x);
        return x;
    }
    hed_lift_calc(l, "lop3.b32 %s, %s, %s, %s, 0x%x", t, in[0], in[1], in[2], lut);
    hed_lift_calc(l, "and.b32 %s, %s, 1", bit, t);
    hed_lift_calc(l, "setp.ne.u32 %s, %s, 0", x, bit);
    return x;
}

/* What a table is for inputs of which some are known. */
static unsigned
narrowed_table(unsigned lut, const char *const in[3])
{
    for (unsigned i = 0; i < 3; i++) {
        static const uint8_t set[] = {0xf0, 0xcc, 0xaa};
        static const uint8_t shifts[] = {4, 2, 1};

        if (strcmp(in[i], "1") == 0)
            lut = (lut & set[i]) | (lut & set[i]) >> shifts[i];
        else if (strcmp(in[i], "0") == 0)
            lut = (lut & (0xffu & ~set[i])) | (lut << shifts[i] & set[i]);
    }
    return lut & 0xff;
}

/* The same of the signs of three registers. */
static void
sign_logic(struct lift *l)
{
    const char *a = hed_lift_word(l, hed_lift_operand(l, 0));
    const char *b = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *c = hed_lift_word(l, hed_lift_operand(l, 2));
    const char *out[2] = {hed_lift_temp(l, 'x'), hed_lift_temp(l, 'x')};

    for (unsigned i = 0; i < 2; i++) {
        const char *t = hed_lift_temp(l, 't');

        hed_lift_calc(l, "lop3.b32 %s, %s, %s, %s, 0x%x", t, a, b, c,
                      (unsigned)hed_sass_bits(l->inst, i == 0 ? 72 : 16, 8));
        hed_lift_calc(l, "setp.lt.s32 %s, %s, 0", out[i], t);
    }
    hed_lift_set_pred(l, 81, out[0]);
    hed_lift_set_pred(l, 84, out[1]);
}

void
hed_lift_pred_logic(struct lift *l)
{
    if (hed_lift_operand(l, 0)->kind == HED_SASS_REG) {
        sign_logic(l);
        return;
    }

    const unsigned first =
        (unsigned)(hed_sass_bits(l->inst, 72, 5) << 3 | hed_sass_bits(l->inst, 64, 3));
    const unsigned second = (unsigned)hed_sass_bits(l->inst, 16, 8);
    const char *in[3], *x, *y = NULL;

    in[0] = hed_lift_pred_number(l, 87);
    in[1] = hed_lift_pred_number(l, 77);
    in[2] = hed_lift_pred_number(l, 68);
    x = logic_of_preds(l, narrowed_table(first, in), in);
    if (hed_sass_bits(l->inst, 84, 3) != HED_SASS_PT)
        y = logic_of_preds(l, narrowed_table(second, in), in);
    hed_lift_set_pred(l, 81, x);
    if (y)
        hed_lift_set_pred(l, 84, y);
}

/* The byte of a register that predicates are moved to or from. */
static unsigned
byte_shift(const struct lift *l)
{
    return (unsigned)hed_sass_bits(l->inst, 76, 2) * 8;
}

void
hed_lift_preds_to_reg(struct lift *l)
{
    const bool uniform = l->inst->uniform;
    const unsigned mask = (unsigned)hed_sass_bits(l->inst, 32, 32) & 0x7f, by = byte_shift(l);
    const struct hed_sass_operand *a = hed_lift_operand(l, 2);
    const char *sum = hed_lift_temp(l, 't');

    hed_lift_calc(l, "and.b32 %s, %s, 0x%x", sum, hed_lift_word(l, a),
                  ~((uint32_t)hed_sass_bits(l->inst, 32, 32) << by));
    for (unsigned i = 0; i < 7; i++) {
        const char *t = hed_lift_temp(l, 't'), *next = hed_lift_temp(l, 't');

        if (!(mask >> i & 1))
            continue;
        l->pred_uses[l->index] |= (uint16_t)(1u << lift_pred_bit(i, uniform));
        hed_lift_calc(l, "selp.b32 %s, 0x%x, 0, %%%c%u", t, 1u << (i + by), uniform ? 'v' : 'p', i);
        hed_lift_calc(l, "or.b32 %s, %s, %s", next, sum, t);
        sum = next;
    }
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), sum);
}

void
hed_lift_reg_to_preds(struct lift *l)
{
    const unsigned mask = (unsigned)hed_sass_bits(l->inst, 32, 32), by = byte_shift(l);
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1));

    for (unsigned i = 0; i < 7; i++) {
        const char *t;

        if (!(mask >> i & 1))
            continue;
        l->carries[i] = 0;
        if (!l->guarded)
            l->pred_defs[l->index] |= (uint16_t)(1u << i);
        if (!l->first_pass && !(l->pred_live[l->index] >> i & 1))
            continue;
        t = hed_lift_temp(l, 't');
        hed_lift_calc(l, "and.b32 %s, %s, 0x%x", t, a, 1u << (i + by));
        hed_lift_put(l, "setp.ne.u32 %%p%u, %s, 0", i, t);
    }
}
