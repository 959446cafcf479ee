/* Loads from constant banks: LDC and ULDC. See inside.h for the rules. */
#include <inttypes.h>
#include <string.h>

#include "sass/lift/family.h"
#include "sass/lift/inside.h"

#define POOL_CHOICES 64 /* addresses among which a register may choose */

enum { CONST_WORD = 4, CONST_PAIR = 5 };

static const char *const types[] = {"u8", "s8", "u16", "s16", "b32", "b64"};
static const unsigned bytes_of[] = {1, 1, 2, 2, 4, 8};

/* A part of a word. */
static const char *
narrow_constant(struct lift *l, uint32_t bank, int64_t offset, unsigned size)
{
    const int64_t at = offset - l->code.kernel->param_bank;
    const char *t = hed_lift_temp(l, 't'), *w;

    if (bank == 0 && at >= 0 &&
        hed_range_fits((uint64_t)at, bytes_of[size], l->code.kernel->param_bytes) &&
        at % bytes_of[size] == 0) {
        hed_lift_calc(l, "ld.param.%s %s, [heddle_params+%" PRId64 "]", types[size], t, at);
        return t;
    }
    w = hed_lift_constant(l, bank, offset & ~INT64_C(3), 4);
    hed_lift_calc(l, "bfe.%c32 %s, %s, %u, %u", types[size][0], t, w, (unsigned)(offset & 3) * 8,
                  bytes_of[size] * 8);
    return t;
}

/* Whoever calls a function wants to know which. */
static void
note_pair(struct lift *l, const struct hed_sass_operand *d, uint32_t bank, int64_t offset)
{
    if (d->kind == HED_SASS_REG && d->reg != HED_SASS_RZ && !l->guarded && offset >= 0)
        l->notes[d->reg] = (struct lift_note){.kind = HED_SASS_CONST,
                                              .key = bank << 20 | ((uint32_t)offset & 0xfffff)};
}

static void
put_known(struct lift *l, const struct hed_sass_operand *d, uint32_t bank, int64_t offset,
          unsigned size)
{
    const struct hed_sass_operand from = {.kind = HED_SASS_CONST, .bank = bank, .value = offset};
    const char *v;

    if (size == CONST_PAIR) {
        v = hed_lift_constant(l, bank, offset, 8);
        hed_lift_put(l, "mov.b64 %s, %s", hed_lift_def64(l, d), v);
        hed_lift_end64(l, d);
        note_pair(l, d, bank, offset);
        return;
    }
    v = size == CONST_WORD ? hed_lift_constant(l, bank, offset, 4)
                           : narrow_constant(l, bank, offset, size);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, d), v);
    if (size == CONST_WORD)
        hed_lift_moved(l, d, &from);
}

/* ---- with a register ------------------------------------------------------------------------- */

/* The number that an instruction of this block has put into a register, if it did: addresses of
 * functions are loaded by such a number. */
static bool
known_register(const struct lift *l, const struct hed_sass_operand *index, uint32_t *value)
{
    const uint32_t at = index->kind == HED_SASS_REG ? l->written[index->reg] : 0;
    const uint8_t *p =
        at ? hed_bytes_at(l->code.bytes, (uint64_t)(at - 1) * HED_SASS_BYTES, HED_SASS_BYTES)
           : NULL;
    const struct hed_sass_operand *last;
    struct hed_sass_inst inst;

    if (!p || hed_sass_decode(p, &inst) != 0 || inst.guard != HED_SASS_PT || inst.guard_not ||
        inst.operand_count == 0)
        return false;
    last = &inst.operands[inst.operand_count - 1];
    if (strcmp(inst.name, "MOV") == 0 && inst.operand_count > 1)
        last = &inst.operands[1];
    else if (strcmp(inst.name, "IMAD") != 0 || inst.operand_count != 4 ||
             inst.operands[1].kind != HED_SASS_REG || inst.operands[1].reg != HED_SASS_RZ ||
             last->negate)
        return false;
    return hed_lift_number(l, last, value);
}

/* The addresses of the pool, chosen by a register. */
static void
put_pooled(struct lift *l, const struct hed_sass_operand *d, const char *index, int64_t offset)
{
    const char *sum = "0", *x, *q;

    if (l->code.pool.count > POOL_CHOICES) {
        hed_lift_refuse(l, "a choice among too many addresses");
        return;
    }
    for (uint32_t i = 0; i < l->code.pool.count; i++) {
        const int64_t at = (int64_t)l->code.pool.addresses[i].at;
        const char *v = hed_lift_constant(l, 4, at, 8);

        x = hed_lift_temp(l, 'x');
        q = hed_lift_temp(l, 'q');
        hed_lift_calc(l, "setp.eq.s32 %s, %s, %" PRId64, x, index, at - offset);
        hed_lift_calc(l, "selp.b64 %s, %s, %s, %s", q, v, sum, x);
        sum = q;
    }
    hed_lift_put(l, "mov.b64 %s, %s", hed_lift_def64(l, d), sum);
    hed_lift_end64(l, d);
}

/* Where a bank begins in memory: the space, the name, and the offset of its first byte. */
static bool
bank_memory(struct lift *l, uint32_t bank, const char **space, const char **name, int64_t *begin)
{
    *begin = 0;
    *space = "const";
    if (bank == 0 && l->code.kernel->param_bytes) {
        *space = "param";
        *name = "heddle_params";
        *begin = l->code.kernel->param_bank;
    } else if (bank == 2 && l->code.literals.bytes.size) {
        *name = "heddle_literals";
        l->uses_literals = true;
    } else if (bank == 3 && l->code.constants != LIFT_NONE) {
        *name = l->program->vars[l->code.constants].name;
    } else {
        hed_lift_refuse(l, "a constant bank that is not known");
        return false;
    }
    return true;
}

static void
put_indexed(struct lift *l, const struct hed_sass_operand *d, const char *index,
            const struct hed_sass_operand *c, unsigned size)
{
    const char *space, *name, *t, *q, *base, *at;
    int64_t begin;

    if (!bank_memory(l, c->bank, &space, &name, &begin))
        return;
    t = hed_lift_temp(l, 't');
    q = hed_lift_temp(l, 'q');
    base = hed_lift_temp(l, 'q');
    at = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "add.s32 %s, %s, %" PRId64, t, index, c->value - begin);
    hed_lift_calc(l, "cvt.u64.u32 %s, %s", q, t);
    hed_lift_calc(l, "mov.b64 %s, %s", base, name);
    hed_lift_calc(l, "add.s64 %s, %s, %s", at, base, q);
    if (size == CONST_PAIR) {
        hed_lift_put(l, "ld.%s.b64 %s, [%s]", space, hed_lift_def64(l, d), at);
        hed_lift_end64(l, d);
    } else {
        hed_lift_put(l, "ld.%s.%s %s, [%s]", space, types[size], hed_lift_def(l, d), at);
    }
}

void
hed_lift_load_constant(struct lift *l)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0), *c = hed_lift_operand(l, 1);
    const unsigned size = (unsigned)hed_sass_bits(l->inst, 73, 3);
    struct hed_sass_operand index = {.kind = HED_SASS_REG, .reg = c->reg};
    uint32_t number = 0;

    if (size > CONST_PAIR || hed_lift_has(l, "IL") || hed_lift_has(l, "IS") ||
        hed_lift_has(l, "ISL")) {
        hed_lift_refuse(l, "a way to load constants that is not known");
        return;
    }
    if (c->kind == HED_SASS_CONST_UREG)
        index = (struct hed_sass_operand){.kind = HED_SASS_UREG, .reg = c->ureg};
    if (c->kind == HED_SASS_CONST || hed_lift_number(l, &index, &number) ||
        (c->bank == 4 && known_register(l, &index, &number)))
        put_known(l, d, c->bank, c->value + (int32_t)number, size);
    else if (c->bank == 4 && size == CONST_PAIR)
        put_pooled(l, d, hed_lift_word(l, &index), c->value);
    else
        put_indexed(l, d, hed_lift_word(l, &index), c, size);
}
