/* What instructions make of the classes of their operands. See uniform.h.
 *
 * Sums, differences, products with constants, shifts and moves keep ROWS. Everything else that only
 * computes gives a uniform value from uniform ones, a number per row from numbers per row, and
 * otherwise varies.
 */
#include "kernel/ptx/pass/transfer.h"

#include "base/number.h"
#include "kernel/ptx/pass/bounds.h"
#include "kernel/ptx/pass/class.h"
#include "kernel/ptx/run/abi.h"

static const struct hed_uniform varies = {.kind = HED_VARIES, .wraps = HED_FLOW_NONE};
static const struct hed_uniform unknown = {.kind = HED_UNKNOWN, .wraps = HED_FLOW_NONE};
static const struct hed_uniform uniform = {.kind = HED_UNIFORM, .wraps = HED_FLOW_NONE};

/* ---- types ----------------------------------------------------------------------------------- */

static unsigned
bits_of_type(unsigned t)
{
    return hed_ptx_types[t].bits;
}

static bool
is_integer(unsigned t)
{
    const unsigned kind = hed_ptx_types[t].kind;

    return (kind == HED_PTX_KIND_S || kind == HED_PTX_KIND_U || kind == HED_PTX_KIND_B) &&
           (bits_of_type(t) == 16 || bits_of_type(t) == 32 || bits_of_type(t) == 64);
}

/* Is the operand as wide as the instruction's type? A register of another width would be
 * converted. */
static bool
has_width(const struct hed_ptx_operand *o, unsigned bits)
{
    return o->kind != HED_PTX_OPERAND_REG || bits_of_type(o->reg->type) == bits;
}

static bool
is_plain_number(const struct hed_ptx_inst *i)
{
    return i->operands[0].kind == HED_PTX_OPERAND_REG && !i->operands[0].sel &&
           has_width(&i->operands[0], bits_of_type(i->form->types[0]));
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* The result of an instruction that only computes, from the worst of its operands. */
static struct hed_uniform
worst_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    struct hed_uniform r = uniform;

    for (unsigned k = 1; k < i->noperands; k++) {
        const struct hed_uniform o = hed_uniform_operand(u, &i->operands[k]);

        if (o.kind == HED_UNKNOWN)
            return unknown;
        if (hed_class_has_steps(o))
            return varies;
        r.kind = (uint8_t)hed_max(r.kind, o.kind);
    }
    return r;
}

struct hed_uniform
hed_transfer_operand(const struct hed_uniforms *u, const struct hed_ptx_inst *i, unsigned k,
                     unsigned bits)
{
    const struct hed_uniform c = hed_uniform_operand(u, &i->operands[k]);

    return (has_width(&i->operands[k], bits) && !i->operands[k].negated) || !hed_class_has_steps(c)
               ? c
               : varies;
}

/* add, sub, mul and mad of integers. */
static struct hed_uniform
arithmetic_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const struct hed_ptx_form *f = i->form;
    const unsigned bits = bits_of_type(f->types[0]);
    const bool wide = f->part == HED_PTX_PART_WIDE;
    const bool is_signed = hed_ptx_types[f->types[0]].kind == HED_PTX_KIND_S;
    struct hed_uniform in[3] = {unknown, unknown, unknown}, r;

    if (f->flags & HED_PTX_FLAG(CC))
        return varies; /* the carry is kept for 32 lanes */
    if (!is_integer(f->types[0]) || (f->flags & HED_PTX_FLAG(SAT)) || f->part == HED_PTX_PART_HI)
        return worst_class(u, i);
    in[0] = hed_transfer_operand(u, i, 1, bits);
    in[1] = hed_transfer_operand(u, i, 2, bits);
    if (f->op == HED_PTX_OP_ADD)
        return hed_class_add(u, in[0], in[1], 1);
    if (f->op == HED_PTX_OP_SUB)
        return hed_class_add(u, in[0], in[1], -1);
    if (wide && (in[0].wraps != HED_FLOW_NONE || in[1].wraps != HED_FLOW_NONE))
        return varies;
    for (unsigned k = 0; wide && k < 2; k++) {
        if (!is_signed && in[k].is_constant && hed_class_number(in[k].constant, bits) < 0)
            return worst_class(u, i);
        /* Constants are factors; see hed_class_multiply for their signs. */
        if (!in[k].is_constant)
            in[k] = hed_class_widen(in[k]);
    }
    r = hed_class_multiply(u, in[0], in[1], bits);
    if (f->op == HED_PTX_OP_MAD) {
        in[2] = hed_transfer_operand(u, i, 3, wide ? 2 * bits : bits);
        r = hed_class_add(u, r, in[2], 1);
    }
    return r;
}

/* Do all lanes of a row have the same bits from bit k on, and steps only below? */
static bool
steps_below(const struct hed_uniforms *u, struct hed_uniform a, unsigned k)
{
    return a.kind == HED_ROWS && a.wraps == HED_FLOW_NONE && a.step >= 0 && k < 63 &&
           a.align >= k && (uint64_t)a.step * (u->width - 1) < UINT64_C(1) << k;
}

/* Shifts of rows that are narrower than a warp, too. */
static struct hed_uniform
shift_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const unsigned bits = bits_of_type(i->form->types[0]);
    const struct hed_uniform a = hed_transfer_operand(u, i, 1, bits);
    const struct hed_uniform b = hed_uniform_operand(u, &i->operands[2]);
    const struct hed_uniform r = hed_transfer_bits(u, i);

    /* "tid / 32" of signed numbers asks for the sign first. */
    if (i->form->op == HED_PTX_OP_SHR && a.below < bits && b.is_constant && b.constant >= a.below &&
        a.kind != HED_VARIES && a.kind != HED_UNKNOWN)
        return hed_class_constant(0);
    if (r.kind != HED_VARIES)
        return r;
    if (b.kind != HED_UNIFORM || !b.is_constant || b.constant >= bits || a.kind != HED_ROWS)
        return worst_class(u, i);
    if (i->form->op == HED_PTX_OP_SHL)
        return b.constant < 24 ? hed_class_scale(u, a, INT64_C(1) << b.constant) : varies;
    if (a.step == 0)
        return worst_class(u, i);
    for (unsigned k = 0; k <= b.constant; k++)
        if (steps_below(u, a, k))
            return hed_class_rows(u, 0, 0);
    return varies;
}

/* and with a mask of low bits, or of high bits, also of rows that are narrower than a warp. */
static struct hed_uniform
mask_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const unsigned bits = bits_of_type(i->form->types[0]);
    const struct hed_uniform a = hed_transfer_operand(u, i, 1, bits);
    const struct hed_uniform m = hed_uniform_operand(u, &i->operands[2]);
    const struct hed_uniform r = hed_transfer_bits(u, i);
    const uint64_t all = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;

    if (r.kind != HED_VARIES)
        return r;
    if (bits < 16 || !m.is_constant || a.kind != HED_ROWS || a.step == 0)
        return worst_class(u, i);

    const uint64_t mask = m.constant & all;

    /* The steps stay below bit k: a mask that keeps all of those bits keeps the steps. */
    for (unsigned k = 0; k < bits; k++) {
        const uint64_t low = (UINT64_C(1) << k) - 1;

        if (!steps_below(u, a, k))
            continue;
        if ((mask & low) == low)
            return hed_class_rows(u, a.step, k);
        if ((mask & low) == 0)
            return hed_class_rows(u, 0, 0);
    }
    return varies;
}

/* or, xor, not, lop3, bfe. */
static struct hed_uniform
bits_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const struct hed_uniform r =
        is_plain_number(i) ? hed_transfer_bits(u, i)
                           : (struct hed_uniform){.kind = HED_VARIES, .wraps = HED_FLOW_NONE};

    return r.kind != HED_VARIES ? r : worst_class(u, i);
}

/* The lower word of a number of 64 bits: 2^32 is nothing in 32 bits. */
static struct hed_uniform
cut_class(const struct hed_uniforms *u, struct hed_uniform a)
{
    int64_t lanes[HED_PTX_LANES];

    a.wraps = HED_FLOW_NONE;
    a.wrap = 0;
    if (a.is_constant)
        return hed_class_constant(a.constant & UINT32_MAX);
    if (a.kind == HED_UNIFORM)
        return a;
    if (a.kind == HED_ROWS)
        return hed_class_rows(u, a.step, a.align);
    return hed_class_get_offsets(a, lanes) ? hed_class_offsets(u, lanes, a.align) : varies;
}

static struct hed_uniform
convert_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const unsigned to = i->form->types[0], from = i->form->types[1];
    const struct hed_uniform a = hed_uniform_operand(u, &i->operands[1]);

    if (i->noperands != 2 || i->form->ntypes != 2 || !is_integer(to) || !is_integer(from) ||
        (i->form->flags & HED_PTX_FLAG(SAT)) || a.kind == HED_VARIES || a.kind == HED_UNKNOWN)
        return worst_class(u, i);
    if (!has_width(&i->operands[1], bits_of_type(from)) ||
        !has_width(&i->operands[0], bits_of_type(to)))
        return worst_class(u, i);
    if (bits_of_type(to) == bits_of_type(from))
        return a;
    if (bits_of_type(to) > bits_of_type(from))
        return bits_of_type(from) == 32 && a.wraps == HED_FLOW_NONE ? hed_class_widen(a)
                                                                    : worst_class(u, i);
    return bits_of_type(to) == 32 ? cut_class(u, a) : worst_class(u, i);
}

static bool
is_parameter(const struct hed_ptx_form *f)
{
    return f->nspaces &&
           (f->spaces[0] == HED_PTX_SPACE_PARAM || f->spaces[0] == HED_PTX_SPACE_PARAM_ENTRY);
}

/* A load from one address gives one value. What other threads may change between two lanes' loads
 * is loaded lane by lane only if the program says so. */
static struct hed_uniform
load_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const struct hed_ptx_form *f = i->form;
    const struct hed_uniform at = hed_uniform_memory(u, i);

    if (at.kind == HED_UNKNOWN)
        return unknown;
    if (u->of_block && !is_parameter(f))
        return varies; /* a warp may write there before another one reads */
    if (hed_class_has_steps(at) || (f->nspaces && f->spaces[0] == HED_PTX_SPACE_LOCAL))
        return varies;
    return (struct hed_uniform){.kind = at.kind, .wraps = HED_FLOW_NONE};
}

static bool
is_word_element(const struct hed_ptx_operand *o)
{
    return (o->kind == HED_PTX_OPERAND_REG && !o->sel && bits_of_type(o->reg->type) == 32) ||
           o->kind == HED_PTX_OPERAND_INT;
}

/* mov.b64 %d, {%r, %r}: the lower word may differ from lane to lane, if it does not wrap around. */
static struct hed_uniform
packed_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const struct hed_ptx_operand *o = &i->operands[1];
    struct hed_uniform low, high;

    if (bits_of_type(i->form->types[0]) != 64 || o->count != 2 || !is_word_element(&o->elems[0]) ||
        !is_word_element(&o->elems[1]))
        return worst_class(u, i);
    low = hed_uniform_operand(u, &o->elems[0]);
    high = hed_uniform_operand(u, &o->elems[1]);
    if (low.kind == HED_UNKNOWN || high.kind == HED_UNKNOWN)
        return unknown;
    if (high.kind != HED_UNIFORM || !hed_class_has_steps(low) || low.wraps != HED_FLOW_NONE ||
        (low.below >= 32 && !hed_class_never_carries(low)))
        return worst_class(u, i);
    if (!high.is_constant || high.constant)
        low.align = (uint8_t)hed_min(low.align, 32);
    return low;
}

bool
hed_uniform_is_split(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const struct hed_ptx_operand *o = &i->operands[0];

    return u->width == HED_PTX_LANES && !i->is_refused && i->form->op == HED_PTX_OP_MOV &&
           bits_of_type(i->form->types[0]) == 64 && o->kind == HED_PTX_OPERAND_VEC &&
           o->count == 2 && i->operands[1].kind == HED_PTX_OPERAND_REG && !i->operands[1].sel &&
           bits_of_type(i->operands[1].reg->type) == 64 &&
           (is_word_element(&o->elems[0]) || o->elems[0].kind == HED_PTX_OPERAND_SINK) &&
           (is_word_element(&o->elems[1]) || o->elems[1].kind == HED_PTX_OPERAND_SINK);
}

struct hed_uniform
hed_uniform_half(const struct hed_uniforms *u, const struct hed_ptx_inst *i, unsigned half)
{
    struct hed_uniform a = hed_uniform_operand(u, &i->operands[1]);
    const struct hed_ptx_reg *to = i->operands[0].elems[half].reg;

    if (a.kind == HED_UNKNOWN)
        return a;
    if (a.kind == HED_VARIES) {
        a.same = half == 0 ? a.same & UINT32_MAX : a.same >> 32;
        return a;
    }
    if (half == 0)
        return cut_class(u, a);
    if (a.is_constant)
        return hed_class_constant(a.constant >> 32);
    if (a.below <= 32)
        return hed_class_constant(0);
    /* Lanes may carry into the upper word; nobody minds if nobody reads it. */
    return a.kind == HED_UNIFORM || hed_class_never_carries(a) || !u->ssa->is_read[to->id] ? uniform
                                                                                           : varies;
}

static struct hed_uniform
move_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const struct hed_uniform a = hed_uniform_operand(u, &i->operands[1]);

    if (i->form->op == HED_PTX_OP_CVTA) {
        const unsigned space = i->form->nspaces ? i->form->spaces[0] : HED_PTX_SPACE_NONE;

        /* Shared addresses are cut to 32 bits on the way. */
        if (space != HED_PTX_SPACE_GLOBAL && space != HED_PTX_SPACE_CONST &&
            space != HED_PTX_SPACE_LOCAL)
            return worst_class(u, i);
    }
    if (!is_plain_number(i))
        return worst_class(u, i);
    if (i->operands[1].kind == HED_PTX_OPERAND_VEC)
        return packed_class(u, i);
    return has_width(&i->operands[1], bits_of_type(i->form->types[0])) ? a : worst_class(u, i);
}

/* selp where all lanes choose alike. */
static struct hed_uniform
choice_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const unsigned bits = bits_of_type(i->form->types[0]);
    struct hed_uniform r;

    if (!is_plain_number(i) || hed_uniform_operand(u, &i->operands[3]).kind != HED_UNIFORM)
        return worst_class(u, i);
    r = hed_class_join(u, hed_transfer_operand(u, i, 1, bits), hed_transfer_operand(u, i, 2, bits));
    return r.kind == HED_VARIES ? worst_class(u, i) : r;
}

/* Is a number that steps from lane to lane on the same side of c in all lanes? Its first one is a
 * multiple of some power of two, and the others stay below the next multiple. */
static bool
is_on_one_side(const struct hed_uniforms *u, struct hed_uniform a, uint64_t c)
{
    const uint64_t unit = UINT64_C(1) << a.align;
    const uint64_t span = (u->width - 1) * (uint64_t)a.step;

    return a.below < 32 && a.step > 0 && c <= INT32_MAX && span < unit &&
           (c % unit == 0 || c % unit > span);
}

/* %tid.x < 64 is the same for all lanes of a warp, if its first thread has a multiple of 32. */
static struct hed_uniform
compare_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const struct hed_uniform a = hed_uniform_operand(u, &i->operands[1]);
    const struct hed_uniform b = hed_uniform_operand(u, &i->operands[2]);

    if (i->noperands != 3 || u->width != HED_PTX_LANES || a.kind != HED_ROWS || !b.is_constant ||
        !is_integer(i->form->types[0]) || bits_of_type(i->form->types[0]) != 32)
        return worst_class(u, i);
    switch (i->form->cmp) {
    case HED_PTX_CMP_LT:
    case HED_PTX_CMP_LO:
    case HED_PTX_CMP_GE:
    case HED_PTX_CMP_HS:
        return is_on_one_side(u, a, b.constant) ? uniform : worst_class(u, i);
    case HED_PTX_CMP_LE:
    case HED_PTX_CMP_LS:
    case HED_PTX_CMP_GT:
    case HED_PTX_CMP_HI:
        return is_on_one_side(u, a, b.constant + 1) ? uniform : worst_class(u, i);
    default:
        return worst_class(u, i);
    }
}

/* Does each lane get the value of one lane, the same for all? Segments of the warp and lanes beyond
 * its end are no such case. */
static bool
is_broadcast(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const struct hed_uniform from = hed_uniform_operand(u, &i->operands[2]);
    const struct hed_uniform within = hed_uniform_operand(u, &i->operands[3]);

    return i->form->mode == HED_PTX_MODE_IDX && from.kind == HED_UNIFORM && within.is_constant &&
           (within.constant & 0x1f1f) == 0x1f;
}

/* What all lanes of the mask find out together is the same for them. */
static struct hed_uniform
together_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const unsigned op = i->form->op;
    /* The mask is the last operand; the old forms and barriers have none. */
    const unsigned mask = op == HED_PTX_OP_SHFL || op == HED_PTX_OP_BARRIER_RED ? 4 : 2;

    if (u->of_block && op != HED_PTX_OP_BARRIER_RED)
        return varies;
    for (unsigned k = 1; k < i->noperands; k++)
        if (hed_uniform_operand(u, &i->operands[k]).kind == HED_UNKNOWN)
            return unknown;
    if (i->noperands > mask && hed_uniform_operand(u, &i->operands[mask]).kind != HED_UNIFORM)
        return varies;
    return op != HED_PTX_OP_SHFL || is_broadcast(u, i) ? uniform : varies;
}

bool
hed_uniform_is_together(const struct hed_ptx_inst *i)
{
    return i->form->op == HED_PTX_OP_VOTE || i->form->op == HED_PTX_OP_REDUX ||
           i->form->op == HED_PTX_OP_SHFL || i->form->op == HED_PTX_OP_ACTIVEMASK ||
           i->form->op == HED_PTX_OP_BARRIER_RED;
}

static struct hed_uniform
class_of_result(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    if (i->is_refused)
        return varies;
    if (hed_uniform_is_together(i))
        return together_class(u, i);
    switch (i->form->op) {
    case HED_PTX_OP_MOV:
    case HED_PTX_OP_CVTA:
        return move_class(u, i);
    case HED_PTX_OP_ADD:
    case HED_PTX_OP_SUB:
    case HED_PTX_OP_MUL:
    case HED_PTX_OP_MAD:
        return is_plain_number(i) || i->form->part == HED_PTX_PART_WIDE ? arithmetic_class(u, i)
                                                                        : worst_class(u, i);
    case HED_PTX_OP_SETP:
        return compare_class(u, i);
    case HED_PTX_OP_SHL:
    case HED_PTX_OP_SHR:
        return shift_class(u, i);
    case HED_PTX_OP_AND:
        return i->form->types[0] == HED_PTX_TYPE_PRED ? worst_class(u, i) : mask_class(u, i);
    case HED_PTX_OP_OR:
    case HED_PTX_OP_XOR:
    case HED_PTX_OP_NOT:
    case HED_PTX_OP_LOP3:
    case HED_PTX_OP_BFE:
        return bits_class(u, i);
    case HED_PTX_OP_SELP:
        return choice_class(u, i);
    case HED_PTX_OP_CVT:
        return convert_class(u, i);
    case HED_PTX_OP_LD:
    case HED_PTX_OP_LDU:
        return load_class(u, i);
    case HED_PTX_OP_ADDC:
    case HED_PTX_OP_SUBC:
    case HED_PTX_OP_MADC:
        return varies; /* the carry is kept for 32 lanes */
    default:
        if (i->form->flags & HED_PTX_FLAG(CC))
            return varies;
        return hed_ptx_op_nature(i->form->op) == HED_PTX_COMPUTES ? worst_class(u, i) : varies;
    }
}

struct hed_uniform
hed_uniform_transfer(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    struct hed_uniform r = class_of_result(u, i);

    if (r.kind == HED_VARIES && !i->is_refused && is_plain_number(i)) {
        r.same = hed_transfer_same_bits(u, i);
        if (bits_of_type(i->form->types[0]) <= 64 &&
            ~r.same << (64 - bits_of_type(i->form->types[0])) == 0)
            r = uniform;
    } else {
        r.same = 0;
    }
    return r;
}
