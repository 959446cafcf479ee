/* Pairs of registers as 64-bit values. See inside.h.
 *
 *   IADD3   R2, P0, R4, c[0x0][0x160], RZ      add.s64 %q, %d4, [params]; low half to %r2
 *   IADD3.X R3, R5, c[0x0][0x164], RZ, P0      %d2 and %r3 get the rest
 *
 * Addresses are computed in halves. Whoever looks for rows of memory wants to see one value. So
 * every pair has a twin, a 64-bit register that is kept up to date: a 64-bit result goes to the
 * twin and is split; a pair that is read and has no valid twin is put together in it. Where the
 * twin is valid at the beginning of a block is found between the two passes (kernel.c).
 *
 * Two instructions that are halves of one addition are lifted as one if nothing in between changes
 * what the second one reads: then the sum is made where the first one stands.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sass/lift/inside.h"

#define UNIFORM 256 /* where UR begin among all registers */

/* ---- twins ----------------------------------------------------------------------------------- */

static unsigned
pair_of(unsigned reg)
{
    return reg / 2;
}

static bool
pair_test(const struct lift_pairs *p, unsigned pair)
{
    return p->bits[pair / 64] >> pair % 64 & 1;
}

static void
pair_set(struct lift_pairs *p, unsigned pair, bool value)
{
    const uint64_t bit = UINT64_C(1) << pair % 64;

    if (value)
        p->bits[pair / 64] |= bit;
    else
        p->bits[pair / 64] &= ~bit;
}

static void
twin_becomes(struct lift *l, unsigned pair, bool valid)
{
    pair_set(&l->valid, pair, valid);
    pair_set(&l->node->gen, pair, valid);
    pair_set(&l->node->kill, pair, !valid);
}

void
hed_lift_wrote(struct lift *l, unsigned reg)
{
    twin_becomes(l, pair_of(reg), false);
    l->notes[reg].kind = 0;
    l->written[reg] = l->index + 1;
    if (reg == 1)
        l->stack = INT64_MIN;
}

static const char *
twin_name(struct lift *l, unsigned reg)
{
    return reg >= UNIFORM ? hed_lift_text(l, "%%e%u", reg - UNIFORM)
                          : hed_lift_text(l, "%%d%u", reg);
}

static const char *
reg_name(struct lift *l, unsigned reg)
{
    return reg >= UNIFORM ? hed_lift_text(l, "%%u%u", reg - UNIFORM)
                          : hed_lift_text(l, "%%r%u", reg);
}

static const char *
read_pair(struct lift *l, unsigned reg)
{
    const char *low = reg_name(l, reg), *high = reg_name(l, reg + 1);
    const char *q = reg % 2 ? hed_lift_temp(l, 'q') : twin_name(l, reg);

    if (reg % 2 == 0 && pair_test(&l->valid, pair_of(reg)) && !l->first_pass)
        return q;
    hed_lift_calc(l, "mov.b64 %s, {%s, %s}", q, low, high);
    if (reg % 2 == 0)
        twin_becomes(l, pair_of(reg), true);
    return q;
}

/* The number of a register among all, if the group from it on exists. */
static bool
group_begins(struct lift *l, const struct hed_sass_operand *o, unsigned n, unsigned *reg)
{
    const bool uniform = o->kind == HED_SASS_UREG;
    const unsigned zero = uniform ? HED_SASS_URZ : HED_SASS_RZ;

    if (o->reg == zero)
        return false;
    if (o->reg + n + 1 >= zero) {
        hed_lift_refuse(l, "a group of registers that does not exist");
        return false;
    }
    *reg = o->reg + n + (uniform ? UNIFORM : 0);
    return true;
}

bool
hed_lift_has_twin(const struct lift *l, const struct hed_sass_operand *o, unsigned n)
{
    const unsigned reg = o->reg + n;

    return !l->first_pass && o->kind == HED_SASS_REG && reg % 2 == 0 && reg + 1 < HED_SASS_RZ &&
           pair_test(&l->valid, pair_of(reg));
}

const char *
hed_lift_u64_nth(struct lift *l, const struct hed_sass_operand *o, unsigned n)
{
    unsigned reg;

    return group_begins(l, o, n, &reg) ? read_pair(l, reg) : "0";
}

const char *
hed_lift_u64(struct lift *l, const struct hed_sass_operand *o)
{
    switch (o->kind) {
    case HED_SASS_REG:
    case HED_SASS_UREG:
        return hed_lift_u64_nth(l, o, 0);
    case HED_SASS_CONST:
    case HED_SASS_CONST_GAP:
        return hed_lift_constant(l, o->bank, o->value, 8);
    case HED_SASS_F64: /* its upper half */
        return hed_lift_text(l, "0x%" PRIx64, (uint64_t)(uint32_t)o->value << 32);
    default:
        return hed_lift_text(l, "%" PRId64, (int64_t)(int32_t)o->value);
    }
}

const char *
hed_lift_def64_nth(struct lift *l, const struct hed_sass_operand *o, unsigned n)
{
    unsigned reg;

    if (!group_begins(l, o, n, &reg))
        return hed_lift_temp(l, 'q');
    if (reg % 2)
        hed_lift_refuse(l, "a pair that begins with an odd register");
    return twin_name(l, reg);
}

/* A guarded result is in the twin and in the halves, or in neither: the twin stays what it was. */
void
hed_lift_end64_nth(struct lift *l, const struct hed_sass_operand *o, unsigned n)
{
    const struct lift_pairs before = l->valid, gen = l->node->gen, kill = l->node->kill;
    unsigned reg;

    if (!group_begins(l, o, n, &reg))
        return;

    hed_lift_put(l, "mov.b64 {%s, %s}, %s", reg_name(l, reg), reg_name(l, reg + 1),
                 twin_name(l, reg));
    hed_lift_wrote(l, reg);
    hed_lift_wrote(l, reg + 1);
    if (!l->guarded) {
        twin_becomes(l, pair_of(reg), true);
    } else {
        l->valid = before;
        l->node->gen = gen;
        l->node->kill = kill;
    }
}

const char *
hed_lift_def64(struct lift *l, const struct hed_sass_operand *o)
{
    return hed_lift_def64_nth(l, o, 0);
}

void
hed_lift_end64(struct lift *l, const struct hed_sass_operand *o)
{
    hed_lift_end64_nth(l, o, 0);
}

void
hed_lift_begin_block(struct lift *l)
{
    memset(l->notes, 0, sizeof l->notes);
    memset(l->written, 0, sizeof l->written);
    memset(l->carries, 0, sizeof l->carries);
    l->valid = l->node->in;
    l->stack = l->node->stack;
}

/* ---- moves ----------------------------------------------------------------------------------- */

static uint32_t
last_write(const struct lift *l, unsigned reg)
{
    return l->written[reg] > l->written[reg + 1] ? l->written[reg] : l->written[reg + 1];
}

/* What half of what the operand is; the kind is 0 if it is none. */
static struct lift_note
half_note(const struct lift *l, const struct hed_sass_operand *o)
{
    struct lift_note n = {.kind = (uint8_t)o->kind};
    unsigned reg;

    switch (o->kind) {
    case HED_SASS_CONST:
        if (o->value < 0 || o->value % 4)
            return (struct lift_note){0};
        n.high = o->value % 8 == 4;
        n.key = o->bank << 20 | ((uint32_t)o->value & ~7u);
        return n;
    case HED_SASS_REG:
    case HED_SASS_UREG:
        if (o->reg == (o->kind == HED_SASS_REG ? HED_SASS_RZ : HED_SASS_URZ))
            return (struct lift_note){0};
        reg = o->reg + (o->kind == HED_SASS_UREG ? UNIFORM : 0);
        n.high = reg % 2;
        n.key = reg & ~1u;
        n.written = last_write(l, reg & ~1u);
        return n;
    default:
        return (struct lift_note){0};
    }
}

void
hed_lift_moved(struct lift *l, const struct hed_sass_operand *to,
               const struct hed_sass_operand *from)
{
    const unsigned zero = to->kind == HED_SASS_UREG ? HED_SASS_URZ : HED_SASS_RZ;
    const unsigned reg = to->reg + (to->kind == HED_SASS_UREG ? UNIFORM : 0);
    const struct lift_note n = half_note(l, from);
    struct hed_sass_operand low = *from;

    if (to->reg == zero || l->guarded || from->negate || from->invert || !n.kind ||
        n.high != reg % 2)
        return;
    l->notes[reg] = n;

    const struct lift_note *a = &l->notes[reg & ~1u], *b = &l->notes[reg | 1u];

    if (!a->kind || a->kind != b->kind || a->key != b->key || a->written != b->written)
        return;
    if (a->kind != HED_SASS_CONST && last_write(l, a->key) != a->written)
        return;
    /* Both halves are there: the twin gets the whole. */
    low.value &= ~INT64_C(7);
    low.reg &= ~1u;

    const char *q = hed_lift_u64(l, &low);

    hed_lift_calc(l, "mov.b64 %s, %s", twin_name(l, reg & ~1u), q);
    twin_becomes(l, pair_of(reg), true);
}

/* ---- sums in two halves ---------------------------------------------------------------------- */

/* A sum of two: x + y, perhaps with y subtracted. */
struct sum {
    struct hed_sass_operand x, y; /* zero if there is only one */
    bool subtracts;               /* y */
    unsigned carry;               /* predicate, out of the low half or into the high one */
    struct hed_sass_operand to;
};

static bool
is_zero(const struct lift *l, const struct hed_sass_operand *o)
{
    uint32_t v;

    return hed_lift_number(l, o, &v) && v == 0;
}

/* Sorts three sources so that one that is zero comes last; false if none is. */
static bool
drop_zero(const struct lift *l, const struct hed_sass_operand *in[3])
{
    for (unsigned i = 0; i < 3; i++)
        if (is_zero(l, in[i]) && !in[i]->negate && !in[i]->invert) {
            const struct hed_sass_operand *z = in[i];

            in[i] = in[2];
            in[2] = z;
            return true;
        }
    return false;
}

static bool
sum_of_sources(const struct lift *l, const struct hed_sass_operand *in[3], struct sum *out)
{
    if (!drop_zero(l, in))
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
    return strcmp(inst->name, "IADD3") == 0 || strcmp(inst->name, "UIADD3") == 0;
}

static bool
is_mad(const struct hed_sass_inst *inst)
{
    return strcmp(inst->name, "IMAD") == 0 || strcmp(inst->name, "UIMAD") == 0;
}

/* The low half: a carry goes out, none comes in. */
static bool
low_sum(const struct lift *l, struct sum *out)
{
    const struct hed_sass_operand *in[3] = {hed_lift_operand(l, 1), hed_lift_operand(l, 2),
                                            hed_lift_operand(l, 3)};

    if (!is_add(l->inst) || hed_lift_has(l, "X") || hed_sass_bits(l->inst, 84, 3) != HED_SASS_PT)
        return false;
    out->carry = (unsigned)hed_sass_bits(l->inst, 81, 3);
    out->to = *hed_lift_operand(l, 0);
    return out->carry != HED_SASS_PT && sum_of_sources(l, in, out);
}

/* The high half: IADD3.X, or IMAD.X with a product that is 0 or a factor of 1. */
static bool
high_sum(const struct lift *l, struct sum *out)
{
    static const struct hed_sass_operand zero = {.kind = HED_SASS_HEX};
    const struct hed_sass_operand *in[3] = {hed_lift_operand(l, 1), hed_lift_operand(l, 2),
                                            hed_lift_operand(l, 3)};
    uint32_t v;

    if (!hed_lift_has(l, "X") || hed_sass_bits(l->inst, 90, 1) ||
        hed_sass_bits(l->inst, 81, 3) != HED_SASS_PT)
        return false;
    if (is_mad(l->inst) && l->inst->modifier_count) {
        if (hed_lift_has(l, "WIDE") || hed_lift_has(l, "HI"))
            return false;
        if (is_zero(l, in[0]) || is_zero(l, in[1]))
            in[0] = &zero;
        else if (!hed_lift_number(l, in[1], &v) || v != 1)
            return false;
        in[1] = in[2];
        in[2] = &zero;
    } else if (!is_add(l->inst) || hed_sass_bits(l->inst, 84, 3) != HED_SASS_PT ||
               hed_sass_bits(l->inst, 77, 3) != HED_SASS_PT || !hed_sass_bits(l->inst, 80, 1)) {
        return false;
    }
    out->carry = (unsigned)hed_sass_bits(l->inst, 87, 3);
    out->to = *hed_lift_operand(l, 0);
    return out->carry != HED_SASS_PT && sum_of_sources(l, in, out);
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

static unsigned
carry_index(const struct lift *l, unsigned carry)
{
    return carry + (l->inst->uniform ? 8 : 0);
}

/* Is this the high half of a low half before it? */
static bool
completes(struct lift *l, const struct sum *high, uint32_t at)
{
    const struct hed_sass_inst *inst = l->inst;
    struct hed_sass_inst first;
    const uint32_t index = l->index;
    struct sum low;
    bool fits;

    if (!hed_lift_decode(l, at, &first))
        return false;
    l->inst = &first;
    l->index = at;
    fits = low_sum(l, &low);
    l->inst = inst;
    l->index = index;
    /* written[] counts from 1: what the low half itself wrote has at + 1. */
    return fits && first.guard == inst->guard && first.guard_not == inst->guard_not &&
           first.uniform == inst->uniform && low.to.kind == high->to.kind && low.to.reg % 2 == 0 &&
           high->to.reg == low.to.reg + 1 && low.subtracts == high->subtracts &&
           is_unchanged(l, &low.to, at + 1) && is_unchanged(l, &high->x, at) &&
           is_unchanged(l, &high->y, at) &&
           !(high->x.kind == low.to.kind && high->x.reg == low.to.reg && low.to.reg != 255) &&
           !(high->y.kind == low.to.kind && high->y.reg == low.to.reg && low.to.reg != 255);
}

void
hed_lift_note_halves(struct lift *l)
{
    struct sum s;

    if (high_sum(l, &s)) {
        const uint32_t at = l->carries[carry_index(l, s.carry)];

        if (at && completes(l, &s, at - 1)) {
            l->fused[l->index].other = at;
            l->fused[at - 1].other = l->index + 1;
            l->pred_skips[l->index] = (uint16_t)(1u << carry_index(l, s.carry));
        }
    }
}

void
hed_lift_note_carry(struct lift *l)
{
    struct sum s;

    if (low_sum(l, &s))
        l->carries[carry_index(l, s.carry)] = l->index + 1;
}

/* ---- lifting both halves --------------------------------------------------------------------- */

static const char *
join_halves(struct lift *l, const struct hed_sass_operand *low, const struct hed_sass_operand *high)
{
    uint32_t a, b;
    const char *q;

    if (hed_lift_number(l, low, &a) && hed_lift_number(l, high, &b))
        return hed_lift_text(l, "%" PRId64, (int64_t)((uint64_t)b << 32 | a));
    if (are_halves(low, high))
        return hed_lift_u64(l, low);

    const char *x = hed_lift_word(l, low), *y = hed_lift_word(l, high);

    q = hed_lift_temp(l, 'q');
    if (is_zero(l, high))
        hed_lift_calc(l, "cvt.u64.u32 %s, %s", q, x);
    else
        hed_lift_calc(l, "mov.b64 %s, {%s, %s}", q, x, y);
    return q;
}

/* The numbers of a low half are sign-extended where the high half says so; any pairing of the
 * halves of two summands gives the same sum, so the one that makes pairs is taken. */
static void
lift_low(struct lift *l, const struct sum *low, const struct sum *high)
{
    const bool crossed = !low->subtracts && !are_halves(&low->x, &high->x) &&
                         (are_halves(&low->x, &high->y) || are_halves(&low->y, &high->x));
    const char *x = join_halves(l, &low->x, crossed ? &high->y : &high->x);
    const char *y = join_halves(l, &low->y, crossed ? &high->x : &high->y);
    const char *q = hed_lift_temp(l, 'q');
    uint32_t number = 0;

    (void)sscanf(q, "%%q%u", &number);
    l->fused[l->index].temp = number;
    hed_lift_calc(l, "%s %s, %s, %s", low->subtracts ? "sub.s64" : "add.s64", q, x, y);

    const char *p = hed_lift_def_pred(l, 81);

    if (p) { /* somebody else reads the carry */
        const char *a = hed_lift_temp(l, 't'), *b = hed_lift_temp(l, 't');
        const char *c = hed_lift_word(l, &low->x);

        hed_lift_calc(l, "mov.b64 {%s, %s}, %s", a, b, q);
        hed_lift_put(l, low->subtracts ? "setp.le.u32 %s, %s, %s" : "setp.lt.u32 %s, %s, %s", p, a,
                     c);
    }
    hed_lift_put(l, "cvt.u32.u64 %s, %s", hed_lift_def(l, &low->to), q);
}

static void
lift_high(struct lift *l, const struct sum *high)
{
    struct hed_sass_operand pair = high->to;
    const char *d;

    pair.reg--;
    d = hed_lift_def64(l, &pair);
    hed_lift_put(l, "mov.b64 %s, %%q%u", d, l->fused[l->fused[l->index].other - 1].temp);
    hed_lift_end64(l, &pair);
}

bool
hed_lift_half(struct lift *l)
{
    const uint32_t other = l->fused[l->index].other;
    struct sum mine, theirs;
    struct hed_sass_inst second;
    const struct hed_sass_inst *inst = l->inst;

    if (!other)
        return false;
    if (other - 1 < l->index) {
        if (!high_sum(l, &mine))
            return false;
        lift_high(l, &mine);
        return true;
    }
    if (!hed_lift_decode(l, other - 1, &second))
        return false;
    l->inst = &second;

    const bool fits = high_sum(l, &theirs);

    l->inst = inst;
    if (!fits || !low_sum(l, &mine))
        return false;
    lift_low(l, &mine, &theirs);
    return true;
}
