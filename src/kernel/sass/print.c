/* Instructions as text, in the words of nvdisasm. See sass.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "kernel/sass/sass.h"

static void
print_hex(struct hed_buf *b, int64_t v)
{
    if (v < 0)
        hed_buf_addf(b, "-0x%" PRIx64, (uint64_t)0 - (uint64_t)v);
    else
        hed_buf_addf(b, "0x%" PRIx64, (uint64_t)v);
}

static void
print_word(struct hed_buf *b, const struct hed_sass_choice *c)
{
    if (!c->word)
        hed_buf_addf(b, ".INVALID%" PRIu32, c->value);
    else if (c->word[0])
        hed_buf_addf(b, ".%s", c->word);
}

/* As an operand. */
static void
print_spelling(struct hed_buf *b, const struct hed_sass_choice *c)
{
    if (c->word)
        hed_buf_addf(b, "%s", c->word);
    else
        hed_buf_addf(b, "INVALID%" PRIu32, c->value);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static double
f16_immediate(uint32_t bits)
{
    const int exponent = (int)(bits >> 10 & 31);
    const double fraction = bits & 1023;
    const double v = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                     : exponent == 0 ? ldexp(fraction, -24)
                                     : ldexp(fraction + 1024, exponent - 25);

    return bits & 0x8000 ? -v : v;
}

static double
f32_immediate(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static double
f64_immediate(uint32_t high)
{
    const uint64_t bits = (uint64_t)high << 32;
    double d;

    memcpy(&d, &bits, sizeof d);
    return d;
}

/* Infinities and NaNs always have a sign; the blank that nvdisasm writes after them is left out.
 * quiet: of a NaN. */
static void
print_number(struct hed_buf *b, double v, bool minus, bool quiet)
{
    if (isnan(v))
        hed_buf_addf(b, "%c%cNAN", minus ? '-' : '+', quiet ? 'Q' : 'S');
    else if (isinf(v))
        hed_buf_addf(b, "%cINF", minus ? '-' : '+');
    else if (v == 0 && minus)
        hed_buf_addf(b, "-0.0");
    else
        hed_buf_addf(b, fabs(v) >= 1e9 ? "%.20e" : "%.20g", v);
}

static void
print_pair(struct hed_buf *b, uint32_t bits, bool brain)
{
    for (int i = 1; i >= 0; i--) {
        const uint32_t half = bits >> 16 * i & 0xffff;

        print_number(b, brain ? f32_immediate(half << 16) : f16_immediate(half), half & 0x8000,
                     half & (brain ? 0x40 : 0x200));
        if (i)
            hed_buf_addf(b, ", ");
    }
}

/* ---- operands -------------------------------------------------------------------------------- */

static void
print_register(struct hed_buf *b, const char *prefix, uint32_t reg, uint32_t zero)
{
    if (reg == zero)
        hed_buf_addf(b, "%sZ", prefix);
    else
        hed_buf_addf(b, "%s%" PRIu32, prefix, reg);
}

static void
print_predicate(struct hed_buf *b, const char *prefix, uint32_t reg)
{
    if (reg == HED_SASS_PT)
        hed_buf_addf(b, "%sT", prefix);
    else
        hed_buf_addf(b, "%s%" PRIu32, prefix, reg);
}

static void
print_memory(struct hed_buf *b, const struct hed_sass_operand *o, const char *symbol)
{
    const bool hides_urz = o->wide && o->style != HED_SASS_STYLE_WITH_URZ;
    const bool ureg = o->has_ureg && !o->descriptor && !(hides_urz && o->ureg == HED_SASS_URZ);
    const bool bare = o->reg == HED_SASS_RZ && (ureg || !o->wide) &&
                      !(ureg && o->style == HED_SASS_STYLE_NARROW_ZERO);
    const char *plus = "";

    if (o->descriptor) {
        hed_buf_addf(b, "desc[");
        print_register(b, "UR", o->ureg, HED_SASS_URZ);
        hed_buf_addf(b, "]");
    }
    hed_buf_addf(b, "[");
    if (!bare || (!ureg && o->value == 0)) {
        print_register(b, "R", o->reg, HED_SASS_RZ);
        if (o->choice.word[0] && !bare)
            hed_buf_addf(b, ".%s", o->choice.word);
        if (o->wide)
            hed_buf_addf(b, ".64");
        plus = "+";
    }
    if (ureg) {
        hed_buf_addf(b, "%s", plus);
        print_register(b, "UR", o->ureg, HED_SASS_URZ);
        plus = "+";
    }
    if (symbol) {
        hed_buf_addf(b, "%s%s", plus, symbol);
    } else if (o->value) {
        hed_buf_addf(b, "%s", plus);
        print_hex(b, o->value);
    }
    hed_buf_addf(b, "]");
}

static void
print_constant(struct hed_buf *b, const struct hed_sass_operand *o, const char *symbol)
{
    const bool reg = o->kind == HED_SASS_CONST_REG && o->reg != HED_SASS_RZ;
    const bool ureg = o->kind == HED_SASS_CONST_UREG && o->ureg != HED_SASS_URZ;

    hed_buf_addf(b, "c[");
    if (!symbol) /* a symbol has its bank */
        hed_buf_addf(b, "0x%" PRIx32 "]%s[", o->bank, o->kind == HED_SASS_CONST_GAP ? " " : "");
    if (reg || ureg)
        hed_buf_addf(b, "%s%" PRIu32 "%s", ureg ? "UR" : "R", ureg ? o->ureg : o->reg,
                     o->value || symbol ? "+" : "");
    if (symbol)
        hed_buf_addf(b, "%s", symbol);
    else if (o->kind == HED_SASS_CONST_REG && !reg && !o->value)
        hed_buf_addf(b, "RZ");
    else if (o->value || !(reg || ureg))
        print_hex(b, o->value);
    hed_buf_addf(b, "]");
}

static void
print_descriptor(struct hed_buf *b, const struct hed_sass_operand *o)
{
    hed_buf_addf(b, o->kind == HED_SASS_DESC ? "desc[" : "gdesc[");
    print_register(b, "UR", o->reg, HED_SASS_URZ);
    hed_buf_addf(b, "]");
}

/* The scoreboards of a mask, highest first: {3,1}. */
static void
print_set(struct hed_buf *b, uint64_t mask)
{
    const char *between = "";

    hed_buf_addf(b, "{");
    for (int i = 63; i >= 0; i--) {
        if (!(mask >> i & 1))
            continue;
        hed_buf_addf(b, "%s%d", between, i);
        between = ",";
    }
    hed_buf_addf(b, "}");
}

static void
print_value(struct hed_buf *b, const struct hed_sass_operand *o, const char *symbol)
{
    const uint32_t bits = (uint32_t)o->value;

    switch (o->kind) {
    case HED_SASS_REG:
        print_register(b, "R", o->reg, HED_SASS_RZ);
        break;
    case HED_SASS_UREG:
        print_register(b, "UR", o->reg, HED_SASS_URZ);
        break;
    case HED_SASS_DESC:
    case HED_SASS_GDESC:
        print_descriptor(b, o);
        break;
    case HED_SASS_PRED:
        print_predicate(b, "P", o->reg);
        break;
    case HED_SASS_UPRED:
        print_predicate(b, "UP", o->reg);
        break;
    case HED_SASS_BARRIER:
        hed_buf_addf(b, "B%" PRIu32, o->reg);
        break;
    case HED_SASS_SCOREBOARD:
        hed_buf_addf(b, "SB%" PRIu32, o->reg);
        break;
    case HED_SASS_F32:
        print_number(b, f32_immediate(bits), bits >> 31, bits & 0x400000);
        break;
    case HED_SASS_F64:
        print_number(b, f64_immediate(bits), bits >> 31, bits & 0x80000);
        break;
    case HED_SASS_F16:
    case HED_SASS_BF16:
        print_pair(b, bits, o->kind == HED_SASS_BF16);
        break;
    case HED_SASS_CONST:
    case HED_SASS_CONST_GAP:
    case HED_SASS_CONST_REG:
    case HED_SASS_CONST_UREG:
        print_constant(b, o, symbol);
        break;
    case HED_SASS_MEMORY:
        print_memory(b, o, symbol);
        break;
    case HED_SASS_SET:
        print_set(b, bits);
        break;
    case HED_SASS_CHOSEN:
    case HED_SASS_NAMED:
        print_spelling(b, &o->choice);
        break;
    default:
        if (symbol)
            hed_buf_addf(b, "%s", symbol);
        else
            print_hex(b, o->value);
        break;
    }
}

/* Is this what a relocation changes? */
static bool
takes_symbol(enum hed_sass_kind kind)
{
    return kind == HED_SASS_HEX || kind == HED_SASS_SIGNED || kind == HED_SASS_ABSOLUTE ||
           kind == HED_SASS_CONST || kind == HED_SASS_CONST_GAP || kind == HED_SASS_CONST_REG ||
           kind == HED_SASS_CONST_UREG || kind == HED_SASS_MEMORY;
}

static void
print_sass_operand(struct hed_buf *b, const struct hed_sass_operand *o, const char *symbol)
{
    const bool chosen =
        o->kind != HED_SASS_CHOSEN && o->kind != HED_SASS_NAMED && o->kind != HED_SASS_MEMORY;
    const bool inside = o->inside && o->absolute;
    const bool predicate = o->kind == HED_SASS_PRED || o->kind == HED_SASS_UPRED;

    if (o->negate || o->invert)
        hed_buf_addf(b, o->invert ? "~" : predicate ? "!" : "-");
    if (o->absolute)
        hed_buf_addf(b, "|");
    print_value(b, o, symbol);
    if (inside && chosen)
        print_word(b, &o->choice);
    if (o->absolute)
        hed_buf_addf(b, "|");
    if (o->reuse)
        hed_buf_addf(b, ".reuse");
    if (!inside && chosen)
        print_word(b, &o->choice);
}

/* ---- instructions ---------------------------------------------------------------------------- */

bool
hed_sass_target(const struct hed_sass_inst *inst, uint64_t address, uint64_t *out)
{
    for (unsigned i = 0; i < inst->operand_count; i++) {
        const struct hed_sass_operand *o = &inst->operands[i];

        if (o->kind != HED_SASS_TARGET)
            continue;
        *out = address + HED_SASS_BYTES + (uint64_t)o->value;
        return true;
    }
    return false;
}

void
hed_sass_print(const struct hed_sass_inst *inst, uint64_t address,
               const struct hed_sass_naming *naming, struct hed_buf *out)
{
    static const struct hed_sass_naming none = {NULL, NULL, NULL};
    const struct hed_sass_naming *n = naming ? naming : &none;
    const char *symbol = n->symbol;
    uint64_t target;

    if (inst->guard != HED_SASS_PT || inst->guard_not) {
        hed_buf_addf(out, inst->guard_not ? "@!" : "@");
        print_predicate(out, inst->uniform ? "UP" : "P", inst->guard);
        hed_buf_addf(out, " ");
    }
    hed_buf_addf(out, "%s", inst->name);
    for (unsigned i = 0; i < inst->modifier_count; i++)
        print_word(out, &inst->modifiers[i]);
    for (unsigned i = 0; i < inst->operand_count; i++) {
        const struct hed_sass_operand *o = &inst->operands[i];

        hed_buf_addf(out, i == 0 || o->joined ? " " : ", ");
        if (o->kind == HED_SASS_TARGET) {
            if (hed_sass_target(inst, address, &target) &&
                !(n->label && n->label(n->arg, target, out)))
                print_hex(out, (int64_t)target);
            continue;
        }
        print_sass_operand(out, o, takes_symbol(o->kind) ? symbol : NULL);
        if (takes_symbol(o->kind))
            symbol = NULL;
    }
}
