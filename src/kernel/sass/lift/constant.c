/* Loads from constant banks: LDC and ULDC. See inside.h for the rules. */
#include <inttypes.h>
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"

#define POOL_CHOICES 64 /* addresses among which a register may choose in text for a GPU */

enum { CONST_WORD = 4, CONST_PAIR = 5 };

static const char *const types[] = {"u8", "s8", "u16", "s16", "b32", "b64"};
static const unsigned bytes_of[] = {1, 1, 2, 2, 4, 8};

/* A part of a word that was loaded without its sign. */
static const char *
with_sign(struct lift *l, const char *w, unsigned size)
{
    const char *t;

    if (types[size][0] != 's')
        return w;
    t = hed_lift_temp(l, 't');
    hed_lift_calc(l, "bfe.s32 %s, %s, 0, %u", t, w, bytes_of[size] * 8);
    return t;
}

/* A part of a word. */
static const char *
narrow_constant(struct lift *l, uint32_t bank, int64_t offset, unsigned size)
{
    const int64_t at = offset - l->code.kernel->param_bank;
    const char *p =
        bank == 0 && at % bytes_of[size] == 0 ? hed_lift_param(l, at, bytes_of[size]) : NULL;
    const char *t = hed_lift_temp(l, 't'), *w;

    if (p) {
        hed_lift_calc(l, "ld.param.%s %s, [%s]", types[size], t, p);
        return t;
    }
    if (bank == 3 && l->use == HED_SASS_FOR_GPU)
        return with_sign(l, hed_lift_named_constant(l, offset, bytes_of[size]), size);
    w = hed_lift_constant(l, bank, offset & ~INT64_C(3), 4);
    hed_lift_calc(l, "bfe.%c32 %s, %s, %u, %u", types[size][0], t, w, (unsigned)(offset & 3) * 8,
                  bytes_of[size] * 8);
    return t;
}

/* Whoever calls a function wants to know which. */
static void
note_pair(struct lift *l, const struct hed_sass_operand *d, uint32_t bank, int64_t offset)
{
    if (d->kind == HED_SASS_REG && d->reg != HED_SASS_RZ && !l->guarded && offset >= 0 &&
        offset <= 0xfffff)
        l->notes[d->reg] =
            (struct lift_note){.kind = LIFT_NOTE_LOADED, .key = bank << 20 | (uint32_t)offset};
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

    if (!p || hed_lift_patch(&l->code, at - 1) ||
        hed_sass_decode(hed_lift_arch(l), p, &inst) != 0 || inst.guard != HED_SASS_PT ||
        inst.guard_not || inst.operand_count == 0)
        return false;
    last = &inst.operands[inst.operand_count - 1];
    if (strcmp(inst.name, "MOV") == 0 && inst.operand_count > 1)
        last = &inst.operands[1];
    else if (strcmp(inst.name, "IMAD") != 0 || inst.operand_count != 4 ||
             inst.operands[1].kind != HED_SASS_REG || inst.operands[1].reg != HED_SASS_RZ ||
             last->negate)
        return false;
    return hed_lift_number(last, value);
}

/* The addresses of the pool, chosen by a register: comparisons, since a variable of them would need
 * a name that no symbol has. */
static void
put_chosen(struct lift *l, const struct hed_sass_operand *d, const char *index, int64_t offset)
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

/* Whoever loads the program fills in the addresses of a bank, but only those that are known. */
static bool
has_unknown_address(const struct lift_bank *bank)
{
    for (uint32_t i = 0; i < bank->count; i++)
        if (bank->addresses[i].kind == LIFT_UNKNOWN || bank->addresses[i].how != LIFT_WHOLE)
            return true;
    return false;
}

/* The address of a place in a bank, and its space; NULL if it has none. */
static const char *
bank_memory(struct lift *l, uint32_t bank, int64_t offset, const char **space)
{
    const char *name = NULL;

    *space = "const";
    if (bank == 0) {
        const int64_t at = offset - (int64_t)l->code.kernel->param_bank;

        *space = "param";
        name = hed_lift_param(l, at, 1);
        if (!name && offset < 0)
            name = hed_lift_param(l, at + LIFT_BANK_BYTES, 1);
        /* With an index that is never 0, the place may lie before the parameters. */
        if (!name && l->code.kernel->param_bytes && !l->is_function)
            name = hed_lift_text(l, "heddle_param0+%" PRId64, at);
    } else if (bank == 2 && l->code.literals.bytes.size) {
        if (l->use == HED_SASS_FOR_GPU && l->code.literals.count)
            hed_lift_refuse(l, "addresses among constants");
        name = l->use == HED_SASS_FOR_CPU && l->code.literals.var != LIFT_NONE
                   ? hed_lift_variable(l, l->code.literals.var, offset)
                   : hed_lift_text(l, "heddle_literals%u+%" PRId64, l->number, offset);
        l->uses_literals = true;
    } else if (bank == 3 && l->code.constants != LIFT_NONE) {
        name = l->use == HED_SASS_FOR_CPU ? hed_lift_variable(l, l->code.constants, offset) : "";
    } else if (bank == 4 && l->code.pool.var != LIFT_NONE && l->use == HED_SASS_FOR_CPU) {
        if (has_unknown_address(&l->code.pool))
            hed_lift_refuse(l, "an address that is not known");
        name = hed_lift_variable(l, l->code.pool.var, offset);
    }
    if (!name)
        hed_lift_refuse(l, "a constant bank that is not known");
    return name;
}

static void
put_named(struct lift *l, const struct hed_sass_operand *d, const char *index, int64_t offset,
          unsigned size)
{
    const char *v = hed_lift_named_indexed(l, offset, index, bytes_of[size]);

    if (size == CONST_PAIR) {
        hed_lift_put(l, "mov.b64 %s, %s", hed_lift_def64(l, d), v);
        hed_lift_end64(l, d);
        return;
    }
    v = with_sign(l, v, size);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, d), v);
}

/* The index may be negative: offsets are those of the first element. */
static void
put_indexed(struct lift *l, const struct hed_sass_operand *d, const char *index,
            const struct hed_sass_operand *c, unsigned size)
{
    const char *space, *name = bank_memory(l, c->bank, c->value, &space), *q, *base, *at;

    if (!name)
        return;
    if (c->bank == 3 && l->use == HED_SASS_FOR_GPU) {
        put_named(l, d, index, c->value, size);
        return;
    }
    q = hed_lift_temp(l, 'q');
    base = hed_lift_temp(l, 'q');
    at = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "cvt.s64.s32 %s, %s", q, index);
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
    if (c->kind == HED_SASS_CONST || hed_lift_number(&index, &number) ||
        (c->bank == 4 && known_register(l, &index, &number)))
        put_known(l, d, c->bank, c->value + (int32_t)number, size);
    else if (c->bank == 4 && size == CONST_PAIR && l->use == HED_SASS_FOR_GPU)
        put_chosen(l, d, hed_lift_word(l, &index), c->value);
    else
        put_indexed(l, d, hed_lift_word(l, &index), c, size);
}
