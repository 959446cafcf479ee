/* Shifts: SHF and USHF. See inside.h for the rules. */
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"

static bool
is_wide_shift(const struct lift *l)
{
    return hed_lift_has(l, "U64") || hed_lift_has(l, "S64");
}

/* The shifts that PTX has: of one word, or a funnel of two. */
static bool
shift_narrow(struct lift *l)
{
    const struct hed_sass_operand *a = hed_lift_operand(l, 1), *by = hed_lift_operand(l, 2),
                                  *c = hed_lift_operand(l, 3), *d = hed_lift_operand(l, 0);
    const bool right = hed_lift_has(l, "R"), high = hed_lift_has(l, "HI");
    const bool wraps = hed_lift_has(l, "W");
    uint32_t n = 0;
    const bool known = hed_lift_number(by, &n);
    const char *op = NULL, *x;

    if (wraps && !known)
        return false;
    if (right && high && hed_lift_is_zero(a)) {
        op = hed_lift_has(l, "S32") ? "shr.s32" : "shr.u32";
        x = hed_lift_word(l, c);
    } else if (!right && !high && hed_lift_is_zero(c)) {
        op = "shl.b32";
        x = hed_lift_word(l, a);
    } else {
        return false;
    }

    const char *amount = wraps ? hed_lift_text(l, "%u", n & 31) : hed_lift_word(l, by);

    hed_lift_put(l, "%s %s, %s, %s", op, hed_lift_def(l, d), x, amount);
    if (known && n == 31 && strcmp(op, "shr.s32") == 0)
        hed_lift_is_sign(l, d, c);
    else if (known && n < 32 && !right)
        hed_lift_shifted(l, d, a, n, false);
    return true;
}

static bool
shift_funnel(struct lift *l)
{
    const bool right = hed_lift_has(l, "R"), high = hed_lift_has(l, "HI");
    const char *a, *c, *by;

    /* The word of 64 bits that PTX's funnel gives. */
    if (right == high)
        return false;
    a = hed_lift_word(l, hed_lift_operand(l, 1));
    by = hed_lift_word(l, hed_lift_operand(l, 2));
    c = hed_lift_word(l, hed_lift_operand(l, 3));
    hed_lift_put(l, "shf.%s.%s.b32 %s, %s, %s, %s", right ? "r" : "l",
                 hed_lift_has(l, "W") ? "wrap" : "clamp", hed_lift_def(l, hed_lift_operand(l, 0)),
                 a, c, by);
    return true;
}

/* The upper half of a pair that is shifted left. */
static void
note_shifted_pair(struct lift *l)
{
    const struct hed_sass_operand *a = hed_lift_operand(l, 1), *c = hed_lift_operand(l, 3);
    uint32_t n;

    if (!hed_lift_has(l, "R") && hed_lift_has(l, "HI") && c->kind == a->kind &&
        c->reg == a->reg + 1 && hed_lift_number(hed_lift_operand(l, 2), &n) && n < 32)
        hed_lift_shifted(l, hed_lift_operand(l, 0), a, n, true);
}

/* Any other: 64 bits, shifted, and one word of the result. */
static void
shift_pair(struct lift *l)
{
    const bool right = hed_lift_has(l, "R"), wide = is_wide_shift(l);
    const bool is_signed = hed_lift_has(l, "S64") || hed_lift_has(l, "S32");
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *by = hed_lift_word(l, hed_lift_operand(l, 2));
    const char *c = hed_lift_word(l, hed_lift_operand(l, 3));
    const char *q = hed_lift_temp(l, 'q'), *r = hed_lift_temp(l, 'q');
    const char *low = hed_lift_temp(l, 't'), *high = hed_lift_temp(l, 't');
    const char *amount = hed_lift_temp(l, 't');

    hed_lift_calc(l, "mov.b64 %s, {%s, %s}", q, a, c);
    if (hed_lift_has(l, "W"))
        hed_lift_calc(l, "and.b32 %s, %s, %u", amount, by, wide ? 63u : 31u);
    else
        hed_lift_calc(l, "min.u32 %s, %s, %u", amount, by, wide ? 64u : 32u);
    hed_lift_calc(l, "%s %s, %s, %s",
                  !right      ? "shl.b64"
                  : is_signed ? "shr.s64"
                              : "shr.u64",
                  r, q, amount);
    hed_lift_calc(l, "mov.b64 {%s, %s}, %s", low, high, r);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)),
                 hed_lift_has(l, "HI") ? high : low);
    note_shifted_pair(l);
}

void
hed_lift_shift(struct lift *l)
{
    if (is_wide_shift(l) || (!shift_narrow(l) && !shift_funnel(l)))
        shift_pair(l);
}
