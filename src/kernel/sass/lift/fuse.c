/* Two instructions that are halves of one 64-bit operation. See inside.h.
 *
 *   IADD3   R2, P0, R4, c[0x0][0x160], RZ      add.s64 %q, %d4, [params]; low half to %r2
 *   IADD3.X R3, R5, c[0x0][0x164], RZ, P0      %d2 and %r3 get the rest
 *
 *   LEA       R2, P0, R4, R6, 0x2              shl, add.s64 %q; low half to %r2
 *   LEA.HI.X  R3, R4, R7, R5, 0x2, P0          %d2 and %r3 get the rest
 *
 *   ISETP.LT.U32.AND  P0, PT, R4, R6, PT       nothing
 *   ISETP.LT.AND.EX   P0, PT, R5, R7, PT, P0   setp.lt.s64 %p0, %d4, %d6
 *
 * The halves are found in the first pass: the second one reads the predicate that the first one
 * wrote, and nothing in between changes what it reads. A sum is made where the first half stands,
 * a comparison where the second one does.
 */
#include <inttypes.h>
#include <string.h>

#include "kernel/sass/lift/inside.h"

#define UNIFORM 256 /* where UR begin among all registers */

/* ---- sums ------------------------------------------------------------------------------------ */

/* A sum of two: x + y, perhaps with y subtracted. */
struct sum {
    struct hed_sass_operand x, y; /* zero if there is only one */
    bool subtracts;               /* y */
    unsigned carry;               /* predicate, out of the low half or into the high one */
    struct hed_sass_operand to;
};

/* Sorts three sources so that one that is zero comes last; false if none is. */
static bool
drop_zero(const struct hed_sass_operand *in[3])
{
    for (unsigned i = 0; i < 3; i++)
        if (hed_lift_is_zero(in[i]) && !in[i]->negate && !in[i]->invert) {
            const struct hed_sass_operand *z = in[i];

            in[i] = in[2];
            in[2] = z;
            return true;
        }
    return false;
}

static bool
sum_of_sources(const struct hed_sass_operand *in[3], struct sum *out)
{
    if (!drop_zero(in))
        return false;
    out->x = *in[0];
    out->y = *in[1];
    if (out->x.negate || out->x.invert) {
        out->x = *in[1];
        out->y = *in[0];
    }
    out->subtracts = out->y.negate || out->y.invert;
    return !out->x.negate && !out->x.invert;
}

static bool
is_add(const struct hed_sass_inst *inst)
{
    return (strcmp(inst->name, "IADD3") == 0 || strcmp(inst->name, "UIADD3") == 0) &&
           !hed_lift_inst_has(inst, "64");
}

static bool
is_mad(const struct hed_sass_inst *inst)
{
    return strcmp(inst->name, "IMAD") == 0 || strcmp(inst->name, "UIMAD") == 0;
}

/* The low half: a carry goes out, none comes in. */
static bool
low_sum(const struct hed_sass_inst *inst, struct sum *out)
{
    const struct hed_sass_operand *in[3] = {hed_lift_inst_operand(inst, 1),
                                            hed_lift_inst_operand(inst, 2),
                                            hed_lift_inst_operand(inst, 3)};

    if (!is_add(inst) || hed_lift_inst_has(inst, "X") || hed_sass_bits(inst, 84, 3) != HED_SASS_PT)
        return false;
    out->carry = (unsigned)hed_sass_bits(inst, 81, 3);
    out->to = *hed_lift_inst_operand(inst, 0);
    return out->carry != HED_SASS_PT && sum_of_sources(in, out);
}

/* The high half: IADD3.X, or IMAD.X with a product that is 0 or a factor of 1. */
static bool
high_sum(const struct hed_sass_inst *inst, struct sum *out)
{
    static const struct hed_sass_operand zero = {.kind = HED_SASS_HEX};
    const struct hed_sass_operand *in[3] = {hed_lift_inst_operand(inst, 1),
                                            hed_lift_inst_operand(inst, 2),
                                            hed_lift_inst_operand(inst, 3)};
    uint32_t v;

    if (!hed_lift_inst_has(inst, "X") || hed_sass_bits(inst, 90, 1) ||
        hed_sass_bits(inst, 81, 3) != HED_SASS_PT)
        return false;
    if (is_mad(inst) && inst->modifier_count) {
        if (hed_lift_inst_has(inst, "WIDE") || hed_lift_inst_has(inst, "HI"))
            return false;
        if (hed_lift_is_zero(in[0]) || hed_lift_is_zero(in[1]))
            in[0] = &zero;
        else if (!hed_lift_number(in[1], &v) || v != 1)
            return false;
        in[1] = in[2];
        in[2] = &zero;
    } else if (!is_add(inst) || hed_sass_bits(inst, 84, 3) != HED_SASS_PT ||
               hed_sass_bits(inst, 77, 3) != HED_SASS_PT || !hed_sass_bits(inst, 80, 1)) {
        return false;
    }
    out->carry = (unsigned)hed_sass_bits(inst, 87, 3);
    out->to = *hed_lift_inst_operand(inst, 0);
    return out->carry != HED_SASS_PT && sum_of_sources(in, out);
}

/* Do the two operands make a pair? */
static bool
are_halves(const struct hed_sass_operand *low, const struct hed_sass_operand *high)
{
    if (low->kind != high->kind)
        return false;
    switch (low->kind) {
    case HED_SASS_REG:
    case HED_SASS_UREG:
        return low->reg % 2 == 0 && high->reg == low->reg + 1;
    case HED_SASS_CONST:
        return low->bank == high->bank && low->value % 8 == 0 && high->value == low->value + 4;
    default:
        return true;
    }
}

/* Nothing has written the operand since the low half. */
static bool
is_unchanged(const struct lift *l, const struct hed_sass_operand *o, uint32_t since)
{
    if (o->kind == HED_SASS_REG && o->reg != HED_SASS_RZ)
        return l->written[o->reg] <= since;
    if (o->kind == HED_SASS_UREG && o->reg != HED_SASS_URZ)
        return l->written[UNIFORM + o->reg] <= since;
    return true;
}

static bool
is_same_reg(const struct hed_sass_operand *a, const struct hed_sass_operand *b)
{
    return a->kind == b->kind && (a->kind == HED_SASS_REG || a->kind == HED_SASS_UREG) &&
           a->reg == b->reg;
}

/* written[] counts from 1: what the low half itself wrote has at + 1. */
static bool
sums_fit(const struct lift *l, const struct sum *low, const struct sum *high, uint32_t at)
{
    return low->to.kind == high->to.kind && low->to.reg % 2 == 0 &&
           high->to.reg == low->to.reg + 1 && low->subtracts == high->subtracts &&
           is_unchanged(l, &low->to, at + 1) && is_unchanged(l, &high->x, at) &&
           is_unchanged(l, &high->y, at) && !is_same_reg(&low->to, &high->x) &&
           !is_same_reg(&low->to, &high->y);
}

/* ---- scaled sums ----------------------------------------------------------------------------- */

/* b, plus or minus a << by. */
struct scaled {
    struct hed_sass_operand a, b, to;
    struct hed_sass_operand above; /* of the high half: the upper word of a */
    bool sign;                     /* of the high half: a has a sign and no upper word */
    bool subtracts;
    unsigned by, carry;
};

static bool
is_lea(const struct hed_sass_inst *inst)
{
    return strcmp(inst->name, "LEA") == 0 || strcmp(inst->name, "ULEA") == 0;
}

static bool
read_scaled(const struct hed_sass_inst *inst, struct scaled *out)
{
    out->to = *hed_lift_inst_operand(inst, 0);
    out->a = *hed_lift_inst_operand(inst, 1);
    out->b = *hed_lift_inst_operand(inst, 2);
    out->above = *hed_lift_inst_operand(inst, 3);
    out->sign = hed_lift_inst_has(inst, "SX32");
    out->by = (unsigned)hed_sass_bits(inst, 75, 5);
    out->subtracts = out->a.negate || out->a.invert;
    return !out->b.negate && !out->b.invert;
}

static bool
low_scaled(const struct hed_sass_inst *inst, struct scaled *out)
{
    if (!is_lea(inst) || hed_lift_inst_has(inst, "X") || hed_lift_inst_has(inst, "HI"))
        return false;
    out->carry = (unsigned)hed_sass_bits(inst, 81, 3);
    return out->carry != HED_SASS_PT && read_scaled(inst, out) && !out->a.invert;
}

/* What is subtracted is inverted here: the low half has added the one. */
static bool
high_scaled(const struct hed_sass_inst *inst, struct scaled *out)
{
    if (!is_lea(inst) || !hed_lift_inst_has(inst, "X") || !hed_lift_inst_has(inst, "HI") ||
        hed_sass_bits(inst, 90, 1) || hed_sass_bits(inst, 81, 3) != HED_SASS_PT)
        return false;
    out->carry = (unsigned)hed_sass_bits(inst, 87, 3);
    return out->carry != HED_SASS_PT && read_scaled(inst, out) && !out->a.negate;
}

static bool
scaled_fit(const struct lift *l, const struct scaled *low, const struct scaled *high, uint32_t at)
{
    return low->by == high->by && low->subtracts == high->subtracts &&
           is_same_reg(&low->a, &high->a) && low->to.kind == high->to.kind &&
           low->to.reg % 2 == 0 && high->to.reg == low->to.reg + 1 &&
           !is_same_reg(&low->to, &high->a) && !is_same_reg(&low->to, &high->b) &&
           !is_same_reg(&low->to, &high->above) && is_unchanged(l, &low->to, at + 1) &&
           is_unchanged(l, &high->a, at) && is_unchanged(l, &high->b, at) &&
           (high->sign || is_unchanged(l, &high->above, at));
}

/* ---- comparisons ----------------------------------------------------------------------------- */

static bool
is_compare(const struct hed_sass_inst *inst)
{
    return strcmp(inst->name, "ISETP") == 0 || strcmp(inst->name, "UISETP") == 0;
}

/* The low half has one result and is not combined with anything. */
static bool
is_low_compare(const struct hed_sass_inst *inst)
{
    return is_compare(inst) && !hed_lift_inst_has(inst, "EX") &&
           hed_sass_bits(inst, 81, 3) != HED_SASS_PT && hed_sass_bits(inst, 84, 3) == HED_SASS_PT &&
           hed_sass_bits(inst, 74, 2) == 0 && hed_sass_bits(inst, 87, 4) == HED_SASS_PT;
}

static bool
is_high_compare(const struct hed_sass_inst *inst)
{
    return is_compare(inst) && hed_lift_inst_has(inst, "EX") &&
           hed_sass_bits(inst, 68, 3) != HED_SASS_PT && !hed_sass_bits(inst, 71, 1);
}

/* Orders compare the low halves without a sign; for equality it does not matter. */
static bool
compares_fit(const struct lift *l, const struct hed_sass_inst *low, uint32_t at)
{
    const unsigned cmp = (unsigned)hed_sass_bits(low, 76, 3);
    return cmp == hed_sass_bits(l->inst, 76, 3) && cmp != 0 && cmp != 7 &&
           (cmp == 2 || cmp == 5 || !hed_sass_bits(low, 73, 1)) &&
           is_unchanged(l, hed_lift_inst_operand(low, 0), at) &&
           is_unchanged(l, hed_lift_inst_operand(low, 1), at);
}

/* ---- finding halves -------------------------------------------------------------------------- */

static bool
have_same_guard(const struct hed_sass_inst *a, const struct hed_sass_inst *b)
{
    return a->guard == b->guard && a->guard_not == b->guard_not && a->uniform == b->uniform;
}

/* The predicate by which this instruction could be a high half; 7 if it is none. */
static unsigned
link_of(const struct hed_sass_inst *inst)
{
    struct sum sum;
    struct scaled scaled;

    if (is_high_compare(inst))
        return (unsigned)hed_sass_bits(inst, 68, 3);
    if (high_sum(inst, &sum))
        return sum.carry;
    return high_scaled(inst, &scaled) ? scaled.carry : HED_SASS_PT;
}

static bool
completes(struct lift *l, uint32_t at)
{
    struct hed_sass_inst low;
    struct sum x, y;
    struct scaled a, b;

    if (!hed_lift_decode(l, at, &low) || !have_same_guard(&low, l->inst))
        return false;
    if (is_high_compare(l->inst))
        return is_low_compare(&low) && compares_fit(l, &low, at);
    if (high_sum(l->inst, &y))
        return low_sum(&low, &x) && sums_fit(l, &x, &y, at);
    return high_scaled(l->inst, &b) && low_scaled(&low, &a) && scaled_fit(l, &a, &b, at);
}

void
hed_lift_note_halves(struct lift *l)
{
    const unsigned link = link_of(l->inst);
    const uint32_t at = link == HED_SASS_PT ? 0 : l->carries[lift_pred_bit(link, l->inst->uniform)];

    if (at && completes(l, at - 1)) {
        l->fused[l->index].other = at;
        l->fused[at - 1].other = l->index + 1;
        l->pred_skips[l->index] = (uint16_t)(1u << lift_pred_bit(link, l->inst->uniform));
    }
}

void
hed_lift_note_carry(struct lift *l)
{
    const unsigned carry = lift_pred_bit((unsigned)hed_sass_bits(l->inst, 81, 3), l->inst->uniform);
    struct sum sum;
    struct scaled scaled;

    if (low_sum(l->inst, &sum) || low_scaled(l->inst, &scaled) || is_low_compare(l->inst))
        l->carries[carry] = l->index + 1;
}

void
hed_lift_note_pair(struct lift *l)
{
    struct sum sum;
    struct scaled scaled;

    if (low_sum(l->inst, &sum))
        l->fused[l->index].pair = hed_lift_pair_state(l, &sum.to);
    else if (low_scaled(l->inst, &scaled))
        l->fused[l->index].pair = hed_lift_pair_state(l, &scaled.to);
}

/* ---- lifting both halves --------------------------------------------------------------------- */

static const char *
join_halves(struct lift *l, const struct hed_sass_operand *low, const struct hed_sass_operand *high)
{
    uint32_t a, b;
    const char *q, *x, *y;

    if (hed_lift_number(low, &a) && hed_lift_number(high, &b))
        return hed_lift_text(l, "%" PRId64, (int64_t)((uint64_t)b << 32 | a));
    if (are_halves(low, high))
        return hed_lift_u64(l, low);
    x = hed_lift_word(l, low);
    y = hed_lift_word(l, high);
    q = hed_lift_temp(l, 'q');
    if (hed_lift_is_zero(high))
        hed_lift_calc(l, "cvt.u64.u32 %s, %s", q, x);
    else if (hed_lift_has_sign(l, low, high))
        hed_lift_calc(l, "cvt.s64.s32 %s, %s", q, x);
    else
        hed_lift_calc(l, "mov.b64 %s, {%s, %s}", q, x, y);
    return q;
}

/* The temporary that the high half takes the sum from. */
static const char *
sum_temp(struct lift *l)
{
    l->fused[l->index].temp = l->temps[1];
    return hed_lift_temp(l, 'q');
}

/* The sum is made: writes its low half. `than`: a summand, to find the carry if somebody else reads
 * it. */
static void
write_low(struct lift *l, const char *q, const struct hed_sass_operand *to, const char *than,
          bool subtracts)
{
    const char *p = hed_lift_def_pred(l, 81);

    if (p) {
        const char *low = hed_lift_temp(l, 't'), *high = hed_lift_temp(l, 't');

        hed_lift_calc(l, "mov.b64 {%s, %s}, %s", low, high, q);
        hed_lift_put(l, subtracts ? "setp.le.u32 %s, %s, %s" : "setp.lt.u32 %s, %s, %s", p, low,
                     than);
    }
    hed_lift_put(l, "cvt.u32.u64 %s, %s", hed_lift_def(l, to), q);
}

/* Any pairing of the halves of two summands gives the same sum, so the one that makes pairs is
 * taken. */
static void
lift_low_sum(struct lift *l, const struct sum *low, const struct sum *high)
{
    const bool crossed = !low->subtracts && !are_halves(&low->x, &high->x) &&
                         (are_halves(&low->x, &high->y) || are_halves(&low->y, &high->x));
    const char *x = join_halves(l, &low->x, crossed ? &high->y : &high->x);
    const char *y = join_halves(l, &low->y, crossed ? &high->x : &high->y);
    const char *than = hed_lift_word(l, &low->x);
    const char *q = sum_temp(l);

    hed_lift_calc(l, "%s %s, %s, %s", low->subtracts ? "sub.s64" : "add.s64", q, x, y);
    write_low(l, q, &low->to, than, low->subtracts);
}

static void
lift_low_scaled(struct lift *l, const struct scaled *low, const struct scaled *high)
{
    const char *b = join_halves(l, &low->b, &high->b), *than = hed_lift_word(l, &low->b);
    struct hed_sass_operand x = low->a;
    const char *a, *q = sum_temp(l);

    x.negate = false;
    if (high->sign || hed_lift_has_sign(l, &x, &high->above)) {
        a = hed_lift_word(l, &x);
        if (low->by < 31 && !low->subtracts) {
            hed_lift_calc(l, "mad.wide.s32 %s, %s, %u, %s", q, a, 1u << low->by, b);
            write_low(l, q, &low->to, than, false);
            return;
        }
        a = hed_lift_temp(l, 'q');
        hed_lift_calc(l, "cvt.s64.s32 %s, %s", a, hed_lift_word(l, &x));
    } else {
        a = join_halves(l, &x, &high->above);
    }
    if (low->by) {
        const char *s = hed_lift_temp(l, 'q');

        hed_lift_calc(l, "shl.b64 %s, %s, %u", s, a, low->by);
        a = s;
    }
    hed_lift_calc(l, "%s %s, %s, %s", low->subtracts ? "sub.s64" : "add.s64", q, b, a);
    write_low(l, q, &low->to, than, low->subtracts);
}

static void
lift_high(struct lift *l)
{
    struct hed_sass_operand pair = *hed_lift_operand(l, 0);
    const char *d;

    const struct lift_fused *low = &l->fused[l->fused[l->index].other - 1];

    pair.reg--;
    d = hed_lift_def64(l, &pair);
    hed_lift_put(l, "mov.b64 %s, %%q%u", d, low->temp);
    hed_lift_end64(l, &pair);
    /* Both halves have the same guard: where it does not hold, neither has changed anything. */
    if (l->guarded)
        hed_lift_pair_restore(l, &pair, low->pair);
}

bool
hed_lift_half(struct lift *l)
{
    const uint32_t other = l->fused[l->index].other;
    struct hed_sass_inst second;
    struct sum x, y;
    struct scaled a, b;

    if (!other)
        return false;
    if (is_compare(l->inst)) /* the high half asks for the whole; the low one may still be wanted */
        return is_low_compare(l->inst) && !l->first_pass && !hed_lift_def_pred(l, 81);
    if (other - 1 < l->index) {
        lift_high(l);
        return true;
    }
    if (!hed_lift_decode(l, other - 1, &second))
        return false;
    if (low_sum(l->inst, &x) && high_sum(&second, &y))
        lift_low_sum(l, &x, &y);
    else if (low_scaled(l->inst, &a) && high_scaled(&second, &b))
        lift_low_scaled(l, &a, &b);
    else
        return false;
    return true;
}

const char *
hed_lift_whole_compare(struct lift *l, const char *cmp, const char *type)
{
    const uint32_t other = l->fused[l->index].other;
    struct hed_sass_inst low;
    const char *a, *b, *x;

    if (!other || other - 1 >= l->index || !hed_lift_decode(l, other - 1, &low))
        return NULL;

    a = join_halves(l, hed_lift_inst_operand(&low, 0), hed_lift_operand(l, 0));
    b = join_halves(l, hed_lift_inst_operand(&low, 1), hed_lift_operand(l, 1));
    x = hed_lift_temp(l, 'x');
    hed_lift_calc(l, "setp.%s.%c64 %s, %s, %s", cmp, type[0], x, a, b);
    return x;
}
