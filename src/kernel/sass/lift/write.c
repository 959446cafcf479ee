/* Statements, registers and operands of the lifted text. See inside.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernel/sass/lift/inside.h"

/* ---- text ------------------------------------------------------------------------------------ */

void
hed_lift_refuse(struct lift *l, const char *reason)
{
    struct hed_buf b;

    if (l->err)
        return;
    l->err = HED_ENOTSUP;
    hed_buf_init(&b, 512);
    if (l->inst)
        hed_sass_print(l->inst, (uint64_t)l->index * HED_SASS_BYTES, NULL, &b);
    hed_why_set(l->why, "machine code: %s: '%s' at 0x%x", reason, hed_buf_cstr(&b),
                l->index * HED_SASS_BYTES);
    hed_buf_fini(&b);
}

const char *
hed_lift_text(struct lift *l, const char *fmt, ...)
{
    char *at = l->text + l->text_used;
    const size_t room = sizeof l->text - l->text_used;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(at, room, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= room) {
        hed_lift_refuse(l, "its text is too long");
        return "0";
    }
    l->text_used += (size_t)n + 1;
    return at;
}

static void __attribute__((format(printf, 3, 0)))
add_statement(struct lift *l, const char *guard, const char *fmt, va_list args)
{
    char line[512];
    const int n = vsnprintf(line, sizeof line, fmt, args);

    if (n < 0 || (size_t)n >= sizeof line) {
        hed_lift_refuse(l, "its text is too long");
        return;
    }
    hed_buf_addf(&l->statements, "\t%s%s;\n", guard, line);
}

void
hed_lift_put(struct lift *l, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add_statement(l, l->guard, fmt, args);
    va_end(args);
}

void
hed_lift_calc(struct lift *l, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add_statement(l, "", fmt, args);
    va_end(args);
}

const char *
hed_lift_temp(struct lift *l, char kind)
{
    static const char kinds[] = "tqxh";
    const char *at = strchr(kinds, kind);

    return hed_lift_text(l, "%%%c%u", kind, l->temps[at ? at - kinds : 0]++);
}

const char *
hed_lift_braces(struct lift *l, const char *const *words, unsigned count)
{
    const char *text = words[0];

    for (unsigned i = 1; i < count; i++)
        text = hed_lift_text(l, "%s, %s", text, words[i]);
    if (count == 3)
        text = hed_lift_text(l, "%s, %s", text, words[2]);
    return hed_lift_text(l, "{%s}", text);
}

bool
hed_lift_inst_has(const struct hed_sass_inst *inst, const char *word)
{
    for (unsigned i = 0; i < inst->modifier_count; i++)
        if (inst->modifiers[i].word && strcmp(inst->modifiers[i].word, word) == 0)
            return true;
    return false;
}

bool
hed_lift_has(const struct lift *l, const char *word)
{
    return hed_lift_inst_has(l->inst, word);
}

/* ---- operands -------------------------------------------------------------------------------- */

static bool
is_predicate(const struct hed_sass_operand *o)
{
    return o->kind == HED_SASS_PRED || o->kind == HED_SASS_UPRED;
}

const struct hed_sass_operand *
hed_lift_inst_operand(const struct hed_sass_inst *inst, unsigned n)
{
    static const struct hed_sass_operand zero = {
        .kind = HED_SASS_REG, .reg = HED_SASS_RZ, .ureg = HED_SASS_URZ, .choice = {"", 0}};

    for (unsigned i = 0; i < inst->operand_count; i++) {
        if (is_predicate(&inst->operands[i]))
            continue;
        if (n-- == 0)
            return &inst->operands[i];
    }
    return &zero;
}

const struct hed_sass_operand *
hed_lift_operand(const struct lift *l, unsigned n)
{
    return hed_lift_inst_operand(l->inst, n);
}

const char *
hed_lift_word(struct lift *l, const struct hed_sass_operand *o)
{
    switch (o->kind) {
    case HED_SASS_REG:
        return o->reg == HED_SASS_RZ ? "0" : hed_lift_text(l, "%%r%u", o->reg);
    case HED_SASS_UREG:
        return o->reg == HED_SASS_URZ ? "0" : hed_lift_text(l, "%%u%u", o->reg);
    case HED_SASS_CONST:
    case HED_SASS_CONST_GAP:
        return hed_lift_constant(l, o->bank, o->value, 4);
    default:
        return hed_lift_text(l, "0x%x", (uint32_t)o->value);
    }
}

bool
hed_lift_number(const struct hed_sass_operand *o, uint32_t *value)
{
    *value = (uint32_t)o->value;
    switch (o->kind) {
    case HED_SASS_REG:
        *value = 0;
        return o->reg == HED_SASS_RZ;
    case HED_SASS_UREG:
        *value = 0;
        return o->reg == HED_SASS_URZ;
    case HED_SASS_CONST:
    case HED_SASS_CONST_GAP:
        return false;
    default:
        return true;
    }
}

bool
hed_lift_is_zero(const struct hed_sass_operand *o)
{
    uint32_t v;

    return hed_lift_number(o, &v) && v == 0 && !o->invert;
}

const char *
hed_lift_u32(struct lift *l, const struct hed_sass_operand *o)
{
    const char *w = hed_lift_word(l, o), *t;

    if (!o->negate && !o->invert)
        return w;
    t = hed_lift_temp(l, 't');
    hed_lift_calc(l, "%s %s, %s", o->negate ? "neg.s32" : "not.b32", t, w);
    return t;
}

const char *
hed_lift_f32(struct lift *l, const struct hed_sass_operand *o)
{
    const char *w = hed_lift_word(l, o);

    if (o->absolute) {
        const char *t = hed_lift_temp(l, 't');

        hed_lift_calc(l, "and.b32 %s, %s, 0x7fffffff", t, w);
        w = t;
    }
    if (o->negate) {
        const char *t = hed_lift_temp(l, 't');

        hed_lift_calc(l, "xor.b32 %s, %s, 0x80000000", t, w);
        w = t;
    }
    return w;
}

const char *
hed_lift_nth(struct lift *l, const struct hed_sass_operand *o, unsigned n)
{
    const unsigned zero = o->kind == HED_SASS_UREG ? HED_SASS_URZ : HED_SASS_RZ;

    if (o->reg == zero)
        return "0";
    if (o->reg + n >= zero) {
        hed_lift_refuse(l, "a group of registers that does not exist");
        return "0";
    }
    return hed_lift_text(l, o->kind == HED_SASS_UREG ? "%%u%u" : "%%r%u", o->reg + n);
}

const char *
hed_lift_def_nth(struct lift *l, const struct hed_sass_operand *o, unsigned n)
{
    const bool uniform = o->kind == HED_SASS_UREG;
    const unsigned zero = uniform ? HED_SASS_URZ : HED_SASS_RZ;

    if (o->reg == zero)
        return hed_lift_temp(l, 't');
    if (o->reg + n >= zero) {
        hed_lift_refuse(l, "a group of registers that does not exist");
        return "%t0";
    }
    hed_lift_wrote(l, o->reg + n + (uniform ? 256 : 0));
    return hed_lift_text(l, uniform ? "%%u%u" : "%%r%u", o->reg + n);
}

const char *
hed_lift_def(struct lift *l, const struct hed_sass_operand *o)
{
    return hed_lift_def_nth(l, o, 0);
}

/* ---- predicates ------------------------------------------------------------------------------ */

/* Is the field at this bit a uniform predicate? Instructions on uniform registers have only those;
 * PLOP3 can read one. */
static bool
is_uniform_pred(const struct lift *l, unsigned bit)
{
    if (hed_lift_has_uniform_condition(l->inst))
        return bit == 24;
    for (unsigned i = 0; i < l->inst->operand_count; i++)
        if (l->inst->operands[i].kind == HED_SASS_UPRED && !l->inst->uniform)
            return strcmp(l->inst->name, "PLOP3") == 0 ? bit == 68 : bit == 81 || bit == 84;
    return l->inst->uniform;
}

const char *
hed_lift_pred(struct lift *l, unsigned bit, bool *constant)
{
    const unsigned reg = (unsigned)hed_sass_bits(l->inst, bit, 3);
    const bool inverted = hed_sass_bits(l->inst, bit + 3, 1);
    const bool uniform = is_uniform_pred(l, bit);
    const char *p, *x;

    *constant = !inverted;
    if (reg == HED_SASS_PT)
        return NULL;
    l->pred_uses[l->index] |= (uint16_t)(1u << lift_pred_bit(reg, uniform));
    p = hed_lift_text(l, uniform ? "%%v%u" : "%%p%u", reg);
    if (!inverted)
        return p;
    x = hed_lift_temp(l, 'x');
    hed_lift_calc(l, "not.pred %s, %s", x, p);
    return x;
}

const char *
hed_lift_pred_number(struct lift *l, unsigned bit)
{
    bool constant;
    const char *p = hed_lift_pred(l, bit, &constant), *t;

    if (!p)
        return constant ? "1" : "0";
    t = hed_lift_temp(l, 't');
    hed_lift_calc(l, "selp.b32 %s, 1, 0, %s", t, p);
    return t;
}

const char *
hed_lift_def_pred(struct lift *l, unsigned bit)
{
    const unsigned reg = (unsigned)hed_sass_bits(l->inst, bit, 3);
    const bool uniform = is_uniform_pred(l, bit);
    const unsigned n = lift_pred_bit(reg, uniform);

    if (reg == HED_SASS_PT)
        return NULL;
    l->carries[n] = 0;
    if (!l->guarded)
        l->pred_defs[l->index] |= (uint16_t)(1u << n);
    if (!l->first_pass && !(l->pred_live[l->index] >> n & 1))
        return NULL;
    return hed_lift_text(l, uniform ? "%%v%u" : "%%p%u", reg);
}

void
hed_lift_set_pred(struct lift *l, unsigned bit, const char *value)
{
    const char *p = hed_lift_def_pred(l, bit);

    if (p)
        hed_lift_put(l, "mov.pred %s, %s", p, value);
}
