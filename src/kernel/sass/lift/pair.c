/* Pairs of registers as 64-bit values. See inside.h.
 *
 * Addresses are computed in halves. Whoever looks for rows of memory wants to see one value. So
 * every pair has a wide register of 64 bits that is kept up to date: a 64-bit result goes to the
 * wide register and is split; a pair that is read is put together in it if it is not valid. Where
 * it is valid at the beginning of a block is found between the two passes (kernel.c).
 *
 * Halves are often made one by one. A note says what a register holds; when the notes of both
 * registers say that they are halves of one value, the wide register gets that value:
 *
 *   MOV R4, c[0x0][0x160]   MOV R5, c[0x0][0x164]       a constant of 64 bits
 *   SHF.R.S32.HI R5, RZ, 0x1f, R4                       R4 with its sign
 *   SHF.L.U32 R6, R4, 0x2   SHF.L.U64.HI R7, R4, 0x2, R5    R4, R5 shifted
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernel/sass/lift/inside.h"

#define UNIFORM 256 /* where UR begin among all registers */

/* ---- wide registers -------------------------------------------------------------------------- */

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
wide_becomes(struct lift *l, unsigned pair, bool valid)
{
    pair_set(&l->valid, pair, valid);
    pair_set(&l->node->gen, pair, valid);
    pair_set(&l->node->kill, pair, !valid);
}

void
hed_lift_wrote(struct lift *l, unsigned reg)
{
    wide_becomes(l, pair_of(reg), false);
    l->notes[reg].kind = 0;
    l->written[reg] = l->index + 1;
    if (reg == 1)
        l->stack = INT64_MIN;
}

static const char *
wide_name(struct lift *l, unsigned reg)
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
    const char *q = reg % 2 ? hed_lift_temp(l, 'q') : wide_name(l, reg);

    if (reg % 2 == 0 && pair_test(&l->valid, pair_of(reg)) && !l->first_pass)
        return q;
    hed_lift_calc(l, "mov.b64 %s, {%s, %s}", q, low, high);
    if (reg % 2 == 0)
        wide_becomes(l, pair_of(reg), true);
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
hed_lift_has_wide(const struct lift *l, const struct hed_sass_operand *o, unsigned n)
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
    return wide_name(l, reg);
}

/* A guarded result is in the wide register and in the halves, or in neither: what was valid stays
 * so. */
void
hed_lift_end64_nth(struct lift *l, const struct hed_sass_operand *o, unsigned n)
{
    const struct lift_pairs before = l->valid, gen = l->node->gen, kill = l->node->kill;
    unsigned reg;

    if (!group_begins(l, o, n, &reg))
        return;

    hed_lift_put(l, "mov.b64 {%s, %s}, %s", reg_name(l, reg), reg_name(l, reg + 1),
                 wide_name(l, reg));
    hed_lift_wrote(l, reg);
    hed_lift_wrote(l, reg + 1);
    if (!l->guarded) {
        wide_becomes(l, pair_of(reg), true);
    } else {
        l->valid = before;
        l->node->gen = gen;
        l->node->kill = kill;
    }
}

struct lift_pair_state
hed_lift_pair_state(const struct lift *l, const struct hed_sass_operand *o)
{
    const unsigned pair = pair_of(o->reg + (o->kind == HED_SASS_UREG ? UNIFORM : 0));

    return (struct lift_pair_state){.valid = pair_test(&l->valid, pair),
                                    .gen = pair_test(&l->node->gen, pair),
                                    .kill = pair_test(&l->node->kill, pair)};
}

void
hed_lift_pair_restore(struct lift *l, const struct hed_sass_operand *o, struct lift_pair_state was)
{
    const unsigned pair = pair_of(o->reg + (o->kind == HED_SASS_UREG ? UNIFORM : 0));

    if (pair_test(&l->valid, pair) && pair_test(&l->node->gen, pair))
        return; /* it was put together since */
    pair_set(&l->valid, pair, was.valid);
    pair_set(&l->node->gen, pair, was.gen);
    pair_set(&l->node->kill, pair, was.kill);
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

/* ---- notes ----------------------------------------------------------------------------------- */

static uint32_t
last_write(const struct lift *l, unsigned reg)
{
    return l->written[reg] > l->written[reg + 1] ? l->written[reg] : l->written[reg + 1];
}

/* The number of a register among all; false for RZ and what is no register. */
static bool
reg_of(const struct hed_sass_operand *o, unsigned *reg)
{
    if (o->kind == HED_SASS_REG && o->reg != HED_SASS_RZ)
        *reg = o->reg;
    else if (o->kind == HED_SASS_UREG && o->reg != HED_SASS_URZ)
        *reg = o->reg + UNIFORM;
    else
        return false;
    return true;
}

static bool
are_same_value(const struct lift_note *a, const struct lift_note *b)
{
    return a->kind && a->kind == b->kind && a->key == b->key && a->by == b->by &&
           a->written == b->written && !a->high && b->high;
}

/* Writes the value that both notes of a pair are halves of to its wide register. */
static void
write_noted(struct lift *l, unsigned low)
{
    const struct lift_note *n = &l->notes[low];
    const char *q, *d;

    switch (n->kind) {
    case LIFT_NOTE_CONSTANT:
        q = hed_lift_constant(l, n->key >> 20, n->key & 0xfffff, 8);
        break;
    case LIFT_NOTE_PAIR:
    case LIFT_NOTE_SHIFTED:
        if (last_write(l, n->key) != n->written)
            return;
        q = read_pair(l, n->key);
        break;
    default:
        return;
    }
    d = wide_name(l, low);
    if (n->kind == LIFT_NOTE_SHIFTED)
        hed_lift_calc(l, "shl.b64 %s, %s, %u", d, q, n->by);
    else
        hed_lift_calc(l, "mov.b64 %s, %s", d, q);
    wide_becomes(l, pair_of(low), true);
}

static void
note_half(struct lift *l, const struct hed_sass_operand *to, struct lift_note n)
{
    unsigned reg;

    if (l->guarded || !reg_of(to, &reg) || n.high != reg % 2)
        return;
    l->notes[reg] = n;
    if (are_same_value(&l->notes[reg & ~1u], &l->notes[reg | 1u]))
        write_noted(l, reg & ~1u);
}

void
hed_lift_moved(struct lift *l, const struct hed_sass_operand *to,
               const struct hed_sass_operand *from)
{
    unsigned reg;

    if (from->negate || from->invert)
        return;
    if (from->kind == HED_SASS_CONST && from->value >= 0 && from->value <= 0xfffff &&
        from->value % 4 == 0)
        note_half(l, to,
                  (struct lift_note){.kind = LIFT_NOTE_CONSTANT,
                                     .high = from->value % 8 == 4,
                                     .key = from->bank << 20 | ((uint32_t)from->value & 0xffff8)});
    else if (reg_of(from, &reg))
        note_half(l, to,
                  (struct lift_note){.kind = LIFT_NOTE_PAIR,
                                     .high = reg % 2,
                                     .key = reg & ~1u,
                                     .written = last_write(l, reg & ~1u)});
}

void
hed_lift_shifted(struct lift *l, const struct hed_sass_operand *to,
                 const struct hed_sass_operand *low, unsigned by, bool high)
{
    unsigned reg;

    if (reg_of(low, &reg) && reg % 2 == 0)
        note_half(l, to,
                  (struct lift_note){.kind = LIFT_NOTE_SHIFTED,
                                     .high = high,
                                     .by = (uint8_t)by,
                                     .key = reg,
                                     .written = last_write(l, reg)});
}

void
hed_lift_is_sign(struct lift *l, const struct hed_sass_operand *to,
                 const struct hed_sass_operand *of)
{
    unsigned reg, sign;

    if (l->guarded || !reg_of(to, &sign) || !reg_of(of, &reg) || sign == reg)
        return;
    l->notes[sign] =
        (struct lift_note){.kind = LIFT_NOTE_SIGN, .key = reg, .written = l->written[reg]};
    if (reg % 2 == 0 && sign == reg + 1) {
        hed_lift_calc(l, "cvt.s64.s32 %s, %s", wide_name(l, reg), reg_name(l, reg));
        wide_becomes(l, pair_of(reg), true);
    }
}

bool
hed_lift_has_sign(const struct lift *l, const struct hed_sass_operand *low,
                  const struct hed_sass_operand *high)
{
    unsigned reg, sign;

    return reg_of(low, &reg) && reg_of(high, &sign) && l->notes[sign].kind == LIFT_NOTE_SIGN &&
           l->notes[sign].key == reg && l->notes[sign].written == l->written[reg];
}
