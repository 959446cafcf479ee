/* Operations on bits: what they make of classes. See transfer.h.
 *
 * Where all lanes have the same bits from bit k on, and known ones below it, an operation on bits
 * keeps that apart:
 *
 *      %tid.x             n | 00000 00001 00010 00011 ...     n: the first lane's, a multiple of 32
 *      shr 2              n >> 2 | 000 000 000 000 001 ...
 *      and 3              n & 3  |   0   1   2   3   0 ...
 */
#include "base/number.h"
#include "kernel/ptx/pass/class.h"
#include "kernel/ptx/pass/transfer.h"

#define OPERANDS_MAX 3

static const struct hed_uniform varies = {.kind = HED_VARIES, .wraps = HED_FLOW_NONE};
static const struct hed_uniform unknown = {.kind = HED_UNKNOWN, .wraps = HED_FLOW_NONE};

/* ---- what is known of bits ------------------------------------------------------------------- */

/* A bit of an operand, in all lanes. */
enum bit {
    BIT_KNOWN,   /* what it is in each lane */
    BIT_UNIFORM, /* the same in all lanes */
    BIT_ANY,
};

/* An operand. Its lanes differ in the lowest `differ` bits at most. If `aligned` bits are enough to
 * hold the differences, those bits of the first lane's number are 0, so all lanes' are known. */
struct bits {
    struct hed_uniform class;
    int64_t lanes[HED_PTX_LANES];
    unsigned aligned, differ;
};

static bool
class_bits(struct hed_uniform c, unsigned width, struct bits *out)
{
    int64_t most = 0;
    bool is_above = true;
    unsigned least;

    out->class = c;
    if (!hed_class_get_offsets(c, out->lanes))
        return false;
    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        is_above = is_above && out->lanes[i] >= 0;
        most = out->lanes[i] > most ? out->lanes[i] : most;
    }
    least = most ? 64 - (unsigned)__builtin_clzll((uint64_t)most) : 0;
    out->aligned = c.is_constant ? width : (unsigned)hed_min(c.align, width);
    out->differ = is_above && least <= out->aligned ? least : hed_class_differ(c);
    if (!is_above || least > out->aligned)
        out->aligned = 0;
    return out->differ < width || c.kind == HED_UNIFORM;
}

static enum bit
bit_of(const struct bits *b, unsigned p)
{
    return p < b->aligned ? BIT_KNOWN : p >= b->differ ? BIT_UNIFORM : BIT_ANY;
}

/* A known bit of one lane. */
static unsigned
value_of_bit(const struct bits *b, unsigned lane, unsigned p)
{
    const uint64_t first = b->class.is_constant ? b->class.constant : 0;

    return (unsigned)((first + (uint64_t)b->lanes[lane]) >> p & 1);
}

/* ---- functions of bits ----------------------------------------------------------------------- */

/* Operands whose bits go through a function, whose table is that of lop3: operand 0 is bit 2 of the
 * index. */
struct function {
    const struct hed_uniforms *u;
    struct bits in[OPERANDS_MAX];
    uint64_t changes[OPERANDS_MAX]; /* bits of the result that depend on the operand */
    unsigned n, table, width;
};

static unsigned
bit_of_index(unsigned operand)
{
    return 4u >> operand;
}

static uint64_t
apply_table(unsigned table, const uint64_t x[OPERANDS_MAX])
{
    uint64_t r = 0;

    for (unsigned i = 0; i < 8; i++)
        if (table >> i & 1)
            r |= (i & 4 ? x[0] : ~x[0]) & (i & 2 ? x[1] : ~x[1]) & (i & 1 ? x[2] : ~x[2]);
    return r;
}

/* The bits of the result that change with those of an operand, for some bits of the others;
 * constants are what they are. */
static uint64_t
changes_with(const struct hed_uniform in[OPERANDS_MAX], unsigned table, unsigned operand)
{
    uint64_t changes = 0;

    for (unsigned others = 0; others < 8; others++) {
        uint64_t x[OPERANDS_MAX], r;

        for (unsigned k = 0; k < OPERANDS_MAX; k++)
            x[k] = in[k].is_constant ? in[k].constant : others >> k & 1 ? UINT64_MAX : 0;
        r = apply_table(table, x);
        x[operand] = ~x[operand];
        changes |= r ^ apply_table(table, x);
    }
    return changes;
}

/* Bit p of the result: the worst of the bits that decide it. A known one and a uniform one together
 * are not known. */
static enum bit
bit_of_result(const struct function *f, unsigned p)
{
    bool is_known = true, is_uniform = true;

    for (unsigned k = 0; k < f->n; k++) {
        if (!(f->changes[k] >> p & 1))
            continue;
        is_known = is_known && bit_of(&f->in[k], p) == BIT_KNOWN;
        is_uniform = is_uniform && p >= f->in[k].differ;
    }
    return is_known ? BIT_KNOWN : is_uniform ? BIT_UNIFORM : BIT_ANY;
}

static unsigned
value_of_result(const struct function *f, unsigned lane, unsigned p)
{
    unsigned index = 0;

    for (unsigned k = 0; k < f->n; k++)
        if (bit_of(&f->in[k], p) == BIT_KNOWN && value_of_bit(&f->in[k], lane, p))
            index |= bit_of_index(k);
    return f->table >> index & 1;
}

/* Each bit of the result is known, or the same in all lanes. */
static struct hed_uniform
combine_known(const struct function *f)
{
    int64_t lanes[HED_PTX_LANES] = {0};
    unsigned align = 0;
    bool is_zero = true;

    for (unsigned p = 0; p < f->width; p++) {
        const enum bit bit = bit_of_result(f, p);

        if (bit == BIT_ANY)
            return varies;
        is_zero = is_zero && bit == BIT_KNOWN && !value_of_result(f, 0, p);
        align += is_zero;
        for (unsigned i = 0; bit == BIT_KNOWN && i < HED_PTX_LANES; i++)
            lanes[i] += (int64_t)((uint64_t)value_of_result(f, i, p) << p) -
                        (int64_t)((uint64_t)value_of_result(f, 0, p) << p);
    }
    return hed_class_offsets(f->u, lanes, is_zero ? 63 : align);
}

/* The bits in which one operand's lanes differ are those of the result, and the others are the same
 * in all lanes: "address ^ 16384" changes from buffer to buffer. */
static struct hed_uniform
keep_differences(const struct function *f, unsigned operand)
{
    const struct bits *b = &f->in[operand];
    const uint64_t below = ~(b->differ < 64 ? UINT64_MAX << b->differ : 0);
    struct hed_uniform r = b->class;
    uint64_t x[OPERANDS_MAX] = {0};

    for (unsigned k = 0; k < f->n; k++) {
        x[k] = k == operand ? UINT64_MAX : f->in[k].class.is_constant ? f->in[k].class.constant : 0;
        if ((f->changes[k] ^ (k == operand ? UINT64_MAX : 0)) & below)
            return varies;
    }
    if (~apply_table(f->table, x) & below) /* it is inverted */
        return varies;
    for (unsigned p = b->differ; p < f->width; p++)
        if (bit_of_result(f, p) == BIT_ANY)
            return varies;
    r.is_constant = false;
    r.constant = 0;
    r.align = (uint8_t)hed_min(r.align, b->differ);
    r.differ = (uint8_t)b->differ;
    return r;
}

/* Each bit is a function of the bits of the operands at the same place. */
static struct hed_uniform
combine_classes(const struct hed_uniforms *u, const struct hed_uniform classes[OPERANDS_MAX],
                unsigned n, unsigned table, unsigned width)
{
    struct function f = {.u = u, .n = n, .table = table, .width = width};
    struct hed_uniform r;

    for (unsigned k = 0; k < n; k++) {
        if (!class_bits(classes[k], width, &f.in[k]))
            return varies;
        f.changes[k] = classes[k].is_constant ? 0 : changes_with(classes, table, k);
    }
    r = combine_known(&f);
    for (unsigned k = 0; k < n && r.kind == HED_VARIES; k++)
        if (!f.in[k].aligned && classes[k].kind != HED_UNIFORM)
            r = keep_differences(&f, k);
    return r;
}

/* A number of the first lane that is below the unit that it is a multiple of is 0. */
static struct hed_uniform
settle_align(const struct hed_uniforms *u, const struct hed_ptx_inst *i, struct hed_uniform r)
{
    const struct hed_ptx_operand *to = &i->operands[0];

    if (r.kind != HED_VARIES && !i->guard && to->kind == HED_PTX_OPERAND_REG &&
        u->bounds[to->reg->id] <= r.align)
        r.align = 63;
    return r;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* The tables of and, or, xor, not: of a and b, whatever c. */
static unsigned
table_of(const struct hed_ptx_inst *i)
{
    switch (i->form->op) {
    case HED_PTX_OP_AND:
        return 0xc0;
    case HED_PTX_OP_OR:
        return 0xfc;
    case HED_PTX_OP_XOR:
        return 0x3c;
    case HED_PTX_OP_NOT:
        return 0x0f;
    default:
        return (unsigned)(i->operands[4].bits & 255); /* lop3 */
    }
}

static struct hed_uniform
logic_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i, unsigned width)
{
    const unsigned n = i->form->op == HED_PTX_OP_NOT ? 1 : i->form->op == HED_PTX_OP_LOP3 ? 3 : 2;
    struct hed_uniform in[OPERANDS_MAX] = {{0}};

    for (unsigned k = 0; k < n; k++) {
        in[k] = hed_transfer_operand(u, i, k + 1, width);
        if (in[k].kind == HED_UNKNOWN)
            return unknown;
    }
    return combine_classes(u, in, n, table_of(i), width);
}

/* A number of which the lowest bits are known is shifted to the right. */
static struct hed_uniform
shift_right(const struct hed_uniforms *u, struct hed_uniform a, unsigned by, unsigned width)
{
    struct bits in;
    int64_t lanes[HED_PTX_LANES];

    if (!class_bits(a, width, &in) || in.aligned < in.differ)
        return varies;
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        lanes[i] = in.lanes[i] >> by;
    return hed_class_offsets(u, lanes, a.align == 63 ? 63 : a.align > by ? a.align - by : 0);
}

static struct hed_uniform
shift_known(const struct hed_uniforms *u, const struct hed_ptx_inst *i, unsigned width)
{
    const struct hed_uniform a = hed_transfer_operand(u, i, 1, width);
    const struct hed_uniform by = hed_uniform_operand(u, &i->operands[2]);

    if (a.kind == HED_UNKNOWN || by.kind == HED_UNKNOWN)
        return unknown;
    if (!by.is_constant || by.constant >= width)
        return varies;
    if (i->form->op == HED_PTX_OP_SHR)
        return shift_right(u, a, (unsigned)by.constant, width);
    if (by.constant >= 24)
        return varies;
    return hed_class_scale(u, a, INT64_C(1) << by.constant);
}

/* bfe.u32 is a shift and a mask. */
static struct hed_uniform
extract_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i, unsigned width)
{
    const struct hed_uniform a = hed_transfer_operand(u, i, 1, width);
    const struct hed_uniform from = hed_uniform_operand(u, &i->operands[2]);
    const struct hed_uniform count = hed_uniform_operand(u, &i->operands[3]);
    struct hed_uniform in[OPERANDS_MAX] = {{0}};

    if (a.kind == HED_UNKNOWN || from.kind == HED_UNKNOWN || count.kind == HED_UNKNOWN)
        return unknown;
    if (hed_ptx_types[i->form->types[0]].kind == HED_PTX_KIND_S || !from.is_constant ||
        !count.is_constant || from.constant >= width || count.constant >= width)
        return varies;
    in[0] = shift_right(u, a, (unsigned)from.constant, width);
    in[1] = hed_class_constant((UINT64_C(1) << count.constant) - 1);
    return in[0].kind == HED_VARIES ? varies : combine_classes(u, in, 2, 0xc0, width);
}

struct hed_uniform
hed_transfer_bits(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const unsigned width = hed_ptx_types[i->form->types[0]].bits;

    if (u->width != HED_PTX_LANES || width < 16)
        return varies;
    switch (i->form->op) {
    case HED_PTX_OP_SHL:
    case HED_PTX_OP_SHR:
        return settle_align(u, i, shift_known(u, i, width));
    case HED_PTX_OP_BFE:
        return settle_align(u, i, extract_class(u, i, width));
    default:
        return settle_align(u, i, logic_class(u, i, width));
    }
}

/* ---- bits that are the same ------------------------------------------------------------------ */

/* The class of an operand, whose `same` is set whatever its kind. */
static struct hed_uniform
operand_with_same(const struct hed_uniforms *u, const struct hed_ptx_operand *o, unsigned width)
{
    struct hed_uniform c = hed_uniform_operand(u, o);
    const bool is_whole = o->kind == HED_PTX_OPERAND_REG && !o->sel && !o->negated &&
                          hed_ptx_types[o->reg->type].bits == width;

    c.same = is_whole || c.kind == HED_UNIFORM || c.kind == HED_UNKNOWN ? hed_class_same(u, c) : 0;
    return c;
}

static uint64_t
same_of_table(const struct hed_uniform in[OPERANDS_MAX], unsigned n, unsigned table)
{
    uint64_t same = UINT64_MAX;

    for (unsigned k = 0; k < n; k++)
        if (in[k].same != UINT64_MAX)
            same &= in[k].same | ~changes_with(in, table, k);
    return same;
}

/* One of two, by a predicate that may vary. */
static uint64_t
same_of_choice(const struct hed_uniforms *u, const struct hed_ptx_inst *i,
               const struct hed_uniform *in)
{
    const struct hed_uniform by = hed_uniform_operand(u, &i->operands[3]);

    if (by.kind == HED_UNIFORM || by.kind == HED_UNKNOWN)
        return in[0].same & in[1].same;
    return in[0].is_constant && in[1].is_constant ? ~(in[0].constant ^ in[1].constant) : 0;
}

uint64_t
hed_transfer_same_bits(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const unsigned width = hed_ptx_types[i->form->types[0]].bits;
    const unsigned op = i->form->op;
    struct hed_uniform in[OPERANDS_MAX] = {{0}};

    if (hed_ptx_types[i->form->types[0]].kind == HED_PTX_KIND_F || width < 16 || width > 64)
        return 0;
    for (unsigned k = 0; k < OPERANDS_MAX && k + 1 < i->noperands; k++)
        in[k] = operand_with_same(u, &i->operands[k + 1], width);
    switch (op) {
    case HED_PTX_OP_MOV:
    case HED_PTX_OP_NOT:
        return in[0].same;
    case HED_PTX_OP_AND:
    case HED_PTX_OP_OR:
    case HED_PTX_OP_XOR:
        return same_of_table(in, 2, table_of(i));
    case HED_PTX_OP_LOP3:
        return same_of_table(in, 3, table_of(i));
    case HED_PTX_OP_SELP:
        return same_of_choice(u, i, in);
    default:
        return 0;
    }
}
