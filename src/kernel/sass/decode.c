/* From bits to operands, by the tables of spec/sass. See sass.h. */
#include <string.h>

#include "base/err.h"
#include "base/search.h"
#include "kernel/fatbin/bytes.h"
#include "kernel/sass/sass.h"
#include "kernel/sass/table.h"

#define GUARD_END 16     /* the opcode and the guard are below */
#define CONSTANT_WORD 40 /* the offset of a whole word in a bank begins here */
#define CONTROL 105      /* from here on: when it is issued, which changes no result */

/* The 128 bits of an instruction, and which of them have been looked at. */
struct word128 {
    uint64_t low, high;
    uint64_t seen_low, seen_high;
};

static uint64_t
mask_of(unsigned width)
{
    return width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

/* At most 64 bits. */
static uint64_t
bits_at(uint64_t low, uint64_t high, unsigned bit, unsigned width)
{
    const uint64_t v = bit >= 64  ? high >> (bit - 64)
                       : bit == 0 ? low
                                  : low >> bit | high << (64 - bit);

    return v & mask_of(width);
}

static uint64_t
word_bits(struct word128 *w, unsigned bit, unsigned width)
{
    const uint64_t mask = mask_of(width);

    if (bit < 64)
        w->seen_low |= mask << bit;
    if (bit >= 64)
        w->seen_high |= mask << (bit - 64);
    else if (bit)
        w->seen_high |= mask >> (64 - bit);
    return bits_at(w->low, w->high, bit, width);
}

uint64_t
hed_sass_bits(const struct hed_sass_inst *inst, unsigned bit, unsigned width)
{
    return bits_at(inst->low, inst->high, bit, width);
}

static bool
word_bit(struct word128 *w, unsigned bit)
{
    return bit == HED_SASS_ALWAYS || (bit != HED_SASS_NONE && word_bits(w, bit, 1));
}

static int64_t
signed_bits(struct word128 *w, unsigned bit, unsigned width)
{
    const uint64_t v = word_bits(w, bit, width);
    const uint64_t top = UINT64_C(1) << (width - 1);

    return (int64_t)((v ^ top) - top);
}

static bool
test_holds(struct word128 *w, const struct hed_sass_test *t)
{
    return t->width == 0 || (word_bits(w, t->bit, t->width) == t->value) != t->other;
}

static struct hed_sass_choice
read_choice(struct word128 *w, unsigned bit, unsigned width, const struct hed_sass_item *item)
{
    const uint32_t v = (uint32_t)word_bits(w, bit, width);

    return (struct hed_sass_choice){v < item->word_count ? hed_sass_words[item->words + v] : NULL,
                                    v};
}

/* The offset ends at bit 53. Loads have it in bytes, from bit 38 on; arithmetic reads whole words
 * and has it without its two lowest bits. */
static void
read_constant(struct word128 *w, unsigned bit, struct hed_sass_operand *o)
{
    o->value = signed_bits(w, bit, 54 - bit) * (bit == CONSTANT_WORD ? 4 : 1);
    o->bank = (uint32_t)word_bits(w, 54, 5);
}

static void
read_memory(struct word128 *w, const struct hed_sass_memory *m, struct hed_sass_operand *o)
{
    static const char *const scales[] = {"", "X4", "X8", "X16"};

    o->reg = m->reg == HED_SASS_NONE ? HED_SASS_RZ : (uint32_t)word_bits(w, m->reg, 8);
    o->wide = word_bit(w, m->wide);
    o->choice.word = "";
    if (m->scale != HED_SASS_NONE)
        o->choice.word = scales[o->choice.value = (uint32_t)word_bits(w, m->scale, 2)];
    o->descriptor = word_bit(w, m->descriptor);
    o->has_ureg = m->ureg != HED_SASS_NONE && !word_bit(w, m->no_ureg) &&
                  (m->with_ureg == HED_SASS_NONE || word_bit(w, m->with_ureg));
    o->ureg = o->has_ureg || o->descriptor ? (uint32_t)word_bits(w, m->ureg, 6) : HED_SASS_URZ;
    o->style = (enum hed_sass_style)m->style;
    if ((m->style == HED_SASS_STYLE_NARROW || m->style == HED_SASS_STYLE_NARROW_ZERO) &&
        o->has_ureg && !o->wide)
        o->choice.word = "U32";
    o->value = m->offset_width ? signed_bits(w, m->offset, m->offset_width) : 0;
}

/* Where the value is; signs and spellings come later. */
static void
read_place(struct word128 *w, const struct hed_sass_item *item, struct hed_sass_operand *o)
{
    switch (o->kind) {
    case HED_SASS_REG:
    case HED_SASS_UREG:
    case HED_SASS_BARRIER:
    case HED_SASS_SCOREBOARD:
    case HED_SASS_DESC:
    case HED_SASS_GDESC:
        o->reg = (uint32_t)word_bits(w, item->bit, item->width);
        break;
    case HED_SASS_PRED:
    case HED_SASS_UPRED:
        o->reg = (uint32_t)word_bits(w, item->bit, item->width);
        if (item->flags & HED_SASS_IS_BACKWARD)
            o->reg = HED_SASS_PT - o->reg;
        o->negate = (item->flags & HED_SASS_IS_NOT) && word_bits(w, item->bit + 3U, 1);
        break;
    case HED_SASS_SIGNED:
        o->value = signed_bits(w, item->bit, item->width);
        break;
    case HED_SASS_TARGET:
    case HED_SASS_ABSOLUTE:
    case HED_SASS_DISTANCE:
        o->value = signed_bits(w, item->bit, item->width) * 4;
        if (item->flags & HED_SASS_IS_SPLIT)
            o->value = o->value * 256 + (int64_t)word_bits(w, 16, 8) * 4;
        break;
    case HED_SASS_CONST_UREG:
        o->ureg = (uint32_t)word_bits(w, 24, 6);
        read_constant(w, item->bit, o);
        break;
    case HED_SASS_CONST_REG:
        o->reg = (uint32_t)word_bits(w, 24, 8);
        read_constant(w, item->bit, o);
        break;
    case HED_SASS_CONST:
    case HED_SASS_CONST_GAP:
        read_constant(w, item->bit, o);
        break;
    case HED_SASS_SPLIT:
        o->value = (int64_t)(word_bits(w, 72, 5) << 3 | word_bits(w, 64, 3));
        break;
    case HED_SASS_MEMORY:
        read_memory(w, &hed_sass_memories[item->bit], o);
        break;
    default:
        o->value = (int64_t)word_bits(w, item->bit, item->width);
        break;
    }
}

static bool
is_dropped(const struct hed_sass_item *item, const struct hed_sass_operand *o)
{
    if (!(item->flags & HED_SASS_IS_OPTIONAL))
        return false;
    switch (o->kind) {
    case HED_SASS_PRED:
    case HED_SASS_UPRED:
        return o->reg == HED_SASS_PT && !o->negate;
    case HED_SASS_REG:
        return o->reg == HED_SASS_RZ;
    case HED_SASS_UREG:
        return o->reg == HED_SASS_URZ;
    default:
        return o->value == 0;
    }
}

static void
read_operand(struct word128 *w, const struct hed_sass_item *item, struct hed_sass_inst *inst)
{
    struct hed_sass_operand o = {.kind = (enum hed_sass_kind)item->kind, .choice = {"", 0}};

    read_place(w, item, &o);
    if (is_dropped(item, &o))
        return;
    o.joined = item->flags & HED_SASS_IS_JOINED;
    o.inside = item->flags & HED_SASS_IS_INSIDE;
    o.reuse = word_bit(w, item->reuse);
    o.absolute = word_bit(w, item->absolute);
    if (word_bit(w, item->negate)) {
        o.invert = (item->flags & HED_SASS_IS_TILDE) ||
                   ((item->flags & HED_SASS_IS_X_TILDE) && word_bits(w, 74, 1));
        o.negate = !o.invert;
    }
    if (item->choice != HED_SASS_NONE)
        o.choice = read_choice(w, item->choice, item->choice_width, item);
    else if (o.kind == HED_SASS_CHOSEN)
        o.choice = read_choice(w, item->bit, item->width, item);
    else if (o.kind == HED_SASS_NAMED)
        o.choice.word = hed_sass_words[item->words];
    inst->operands[inst->operand_count++] = o;
}

static int
compare_opcode(const void *opcode, const void *row)
{
    return *(const uint16_t *)opcode - ((const struct hed_sass_row *)row)->opcode;
}

/* The first row of an opcode; rows of another one, or none, if it has none. */
static const struct hed_sass_row *
first_row(uint16_t opcode)
{
    return hed_sass_rows + hed_lower_bound(&opcode, hed_sass_rows, hed_sass_row_count,
                                           sizeof *hed_sass_rows, compare_opcode);
}

static bool
is_row_of(const struct hed_sass_row *row, uint16_t opcode)
{
    return row < hed_sass_rows + hed_sass_row_count && row->opcode == opcode;
}

static bool
is_row_for(const struct hed_sass_row *row, unsigned arch)
{
    return arch >= row->since && arch <= row->until;
}

static const struct hed_sass_row *
find_sass_row(struct word128 *w, unsigned arch, uint16_t opcode)
{
    for (const struct hed_sass_row *row = first_row(opcode); is_row_of(row, opcode); row++) {
        unsigned i = 0;

        if (!is_row_for(row, arch))
            continue;
        while (i < row->test_count && test_holds(w, &hed_sass_tests[row->tests + i]))
            i++;
        if (i == row->test_count)
            return row;
    }
    return NULL;
}

int
hed_sass_decode(unsigned arch, const uint8_t bytes[HED_SASS_BYTES], struct hed_sass_inst *out)
{
    struct word128 w = {.low = hed_load_u64(bytes), .high = hed_load_u64(bytes + 8)};
    const uint16_t opcode = (uint16_t)word_bits(&w, 0, 12);
    const struct hed_sass_row *row = find_sass_row(&w, arch, opcode);

    if (!row)
        return HED_ENOTSUP;
    memset(out, 0, sizeof *out);
    out->name = row->name;
    out->low = w.low;
    out->high = w.high;
    out->arch = arch;
    out->opcode = opcode;
    out->uniform = row->uniform;
    out->guard = (uint8_t)word_bits(&w, 12, 3);
    out->guard_not = word_bits(&w, 15, 1);
    out->stall = (uint8_t)word_bits(&w, 105, 4);
    out->yield = word_bits(&w, 109, 1);
    out->write_barrier = (uint8_t)word_bits(&w, 110, 3);
    out->read_barrier = (uint8_t)word_bits(&w, 113, 3);
    out->wait = (uint8_t)word_bits(&w, 116, 6);
    for (const struct hed_sass_item *i = &hed_sass_items[row->items]; i->kind != HED_SASS_END;
         i++) {
        if (!test_holds(&w, &i->test))
            continue;
        if (i->kind != HED_SASS_WORD && i->kind != HED_SASS_CHOICE)
            read_operand(&w, i, out);
        else
            out->modifiers[out->modifier_count++] =
                i->kind == HED_SASS_WORD ? (struct hed_sass_choice){hed_sass_words[i->words], 0}
                                         : read_choice(&w, i->bit, i->width, i);
    }
    return 0;
}

/* Reads every field that a spelling of the opcode has, whether it is written for this word or
 * not. */
static void
see_fields(struct word128 *w, const struct hed_sass_row *row)
{
    struct hed_sass_inst unused;

    for (unsigned i = 0; i < row->test_count; i++)
        (void)test_holds(w, &hed_sass_tests[row->tests + i]);
    for (const struct hed_sass_item *i = &hed_sass_items[row->items]; i->kind != HED_SASS_END;
         i++) {
        unused.operand_count = 0;
        (void)test_holds(w, &i->test);
        if (i->kind == HED_SASS_CHOICE)
            (void)read_choice(w, i->bit, i->width, i);
        else if (i->kind != HED_SASS_WORD)
            read_operand(w, i, &unused);
    }
}

/* Fields that say nothing which the opcode or another field does not say. */
static const struct {
    uint16_t opcode; /* without its form; 0 for all */
    uint8_t bit, width;
} silent[] = {
    {0, 91, 1},     /* an operand is a uniform register */
    {0x014, 81, 3}, /* VABSDIFF has no second result: PT */
    {0x024, 81, 3}, /* nor has IMAD */
    {0x0a4, 81, 3}, /* nor has UIMAD */
    {0x048, 81, 6}, /* VIMNMX has none at all */
    {0x107, 84, 3}, /* FRND: the size */
    {0x108, 60, 1}, /* MUFU: the upper half */
    {0x113, 84, 3}, /* FRND of doubles: the size */
    {0x11c, 78, 1}, /* B2R: of the result */
    {0x18a, 64, 8}, /* ATOM: there is a descriptor; of sm_75, no register to be swapped in */
    {0x18c, 64, 8}, /* ATOMS: no register to be swapped in */
    {0x18c, 87, 4}, /* ATOMS.POPC.INC: the operation */
    {0x1a2, 64, 8}, /* ATOM of floats: as ATOM */
    {0x1a3, 64, 8}, /* ATOMG of floats */
    {0x1a8, 64, 8}, /* ATOMG: as ATOM */
    {0x1bb, 74, 1}, /* UBLKRED: from shared memory */
    {0x1ae, 70, 1}, /* LDGSTS: there is a descriptor */
    {0x1ae, 76, 1}, /* LDGSTS: the order */
};

bool
hed_sass_is_understood(const struct hed_sass_inst *inst)
{
    /* Some fields are only read if others have a certain value: one of these words has it. */
    struct word128 words[] = {
        {.low = inst->low, .high = inst->high},
        {.low = 0, .high = 0},
        {.low = UINT64_MAX, .high = UINT64_MAX},
    };
    uint64_t low = mask_of(GUARD_END), high = ~mask_of(CONTROL - 64);

    for (const struct hed_sass_row *row = first_row(inst->opcode); is_row_of(row, inst->opcode);
         row++)
        for (unsigned k = 0; k < 3 && is_row_for(row, inst->arch); k++)
            see_fields(&words[k], row);
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (!silent[i].opcode || silent[i].opcode == (inst->opcode & 0x1ff))
            (void)word_bits(&words[0], silent[i].bit, silent[i].width);
    for (unsigned k = 0; k < 3; k++) {
        low |= words[k].seen_low;
        high |= words[k].seen_high;
    }
    return !(inst->low & ~low) && !(inst->high & ~high);
}
