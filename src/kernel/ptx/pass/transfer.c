/* What instructions make of the classes of their operands. See uniform.h.
 *
 * Sums, differences, products with constants, shifts and moves keep ROWS. Everything else that only
 * computes gives a uniform value from uniform ones, a number per row from numbers per row, and
 * otherwise varies.
 */
#include "kernel/ptx/pass/transfer.h"

#include "base/number.h"
#include "kernel/ptx/pass/class.h"
#include "kernel/ptx/run/abi.h"

#define SMALL_BITS 16

static const struct hed_uniform varies = {.kind = HED_VARIES, .wraps = HED_FLOW_NONE};
static const struct hed_uniform unknown = {.kind = HED_UNKNOWN, .wraps = HED_FLOW_NONE};
static const struct hed_uniform uniform = {.kind = HED_UNIFORM, .wraps = HED_FLOW_NONE};

static struct hed_uniform
make_small(struct hed_uniform c)
{
    c.is_small = true;
    return c;
}

/* ---- operands -------------------------------------------------------------------------------- */

static struct hed_uniform
sreg_class(const struct hed_uniforms *u, const struct hed_ptx_operand *o)
{
    const unsigned d = o->sel ? o->sel - 1u : 0;

    switch (o->sreg) {
    case HED_PTX_SREG_TID:
        if (u->rows == HED_ROWS_ONE)
            return hed_class_constant(0);
        if (u->rows == HED_ROWS_ANY)
            return varies;
        return make_small(d == 0 ? hed_class_rows(u, 1, hed_class_align(u->width))
                                 : hed_class_rows(u, 0, 0));
    case HED_PTX_SREG_LANEID:
        if (u->rows == HED_ROWS_ONE)
            return hed_class_constant(0);
        return make_small(hed_class_rows(u, 1, hed_class_align(u->width)));
    case HED_PTX_SREG_LANEMASK_EQ:
    case HED_PTX_SREG_LANEMASK_LE:
    case HED_PTX_SREG_LANEMASK_LT:
    case HED_PTX_SREG_LANEMASK_GE:
    case HED_PTX_SREG_LANEMASK_GT:
        return varies;
    case HED_PTX_SREG_NTID:
        if (u->rows == HED_ROWS_ONE)
            return hed_class_constant(1);
        if (d == 0 && u->rows == HED_ROWS_32)
            return (struct hed_uniform){.kind = HED_UNIFORM, .align = 5, .wraps = HED_FLOW_NONE};
        if (d == 0 && (u->rows == HED_ROWS_16 || u->rows == HED_ROWS_8))
            return hed_class_constant(u->width);
        return uniform;
    default:
        return uniform;
    }
}

/* Every lane has its own copy of a variable in local memory, and of the arguments of a call. */
static struct hed_uniform
variable_class(const struct hed_uniforms *u, const struct hed_ptx_var *v, int64_t offset)
{
    if (v->space != HED_PTX_SPACE_LOCAL && v->space != HED_PTX_SPACE_PARAM)
        return uniform;
    if (hed_locals_find(&u->locals, v))
        return hed_class_constant((uint64_t)offset);
    for (const struct hed_ptx_var *own = u->f->func->sig.params; own; own = own->next)
        if (own == v)
            return uniform;
    return varies;
}

struct hed_uniform
hed_uniform_operand(const struct hed_uniforms *u, const struct hed_ptx_operand *o)
{
    struct hed_uniform all = unknown;

    switch (o->kind) {
    case HED_PTX_OPERAND_REG:
        return o->sel ? varies : u->values[o->reg->id];
    case HED_PTX_OPERAND_SREG:
        return sreg_class(u, o);
    case HED_PTX_OPERAND_INT:
        return hed_class_constant(o->bits);
    case HED_PTX_OPERAND_VAR:
        return variable_class(u, o->var, o->offset);
    case HED_PTX_OPERAND_FLOAT:
    case HED_PTX_OPERAND_FUNC:
    case HED_PTX_OPERAND_SINK:
        return uniform;
    case HED_PTX_OPERAND_VEC:
    case HED_PTX_OPERAND_PAIR:
        for (uint32_t i = 0; i < o->count; i++) {
            const struct hed_uniform e = hed_uniform_operand(u, &o->elems[i]);

            if (e.kind == HED_UNKNOWN)
                return unknown;
            all.kind =
                (uint8_t)hed_max(all.kind, e.kind == HED_ROWS && e.step ? HED_VARIES : e.kind);
        }
        return all;
    default:
        return varies;
    }
}

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
        if (o.kind == HED_VARIES || o.step != 0 || o.wraps != HED_FLOW_NONE)
            return varies;
        r.kind = (uint8_t)hed_max(r.kind, o.kind);
    }
    return r;
}

/* The class of an operand of a linear function; one that would be converted first, or negated,
 * varies unless it has no steps. */
static struct hed_uniform
operand_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i, unsigned k, unsigned bits)
{
    const struct hed_uniform c = hed_uniform_operand(u, &i->operands[k]);

    return (has_width(&i->operands[k], bits) && !i->operands[k].negated) || c.kind != HED_ROWS ||
                   c.step == 0
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
    struct hed_uniform a, b, r;

    if (f->flags & HED_PTX_FLAG(CC))
        return varies; /* the carry is kept for 32 lanes */
    if (!is_integer(f->types[0]) || (f->flags & HED_PTX_FLAG(SAT)) || f->part == HED_PTX_PART_HI)
        return worst_class(u, i);
    a = operand_class(u, i, 1, bits);
    b = operand_class(u, i, 2, bits);
    if (f->op == HED_PTX_OP_ADD)
        return hed_class_add(u, a, b, 1);
    if (f->op == HED_PTX_OP_SUB)
        return hed_class_add(u, a, b, -1);
    if (wide && (a.wraps != HED_FLOW_NONE || b.wraps != HED_FLOW_NONE))
        return varies;
    if (wide) {
        struct hed_uniform wa = hed_class_widen(a), wb = hed_class_widen(b);

        /* Constants are factors; see hed_class_multiply for their signs. */
        if (b.is_constant)
            wb = b;
        if (a.is_constant)
            wa = a;
        if (hed_ptx_types[f->types[0]].kind != HED_PTX_KIND_S &&
            ((a.is_constant && hed_class_number(a.constant, bits) < 0) ||
             (b.is_constant && hed_class_number(b.constant, bits) < 0)))
            return worst_class(u, i);
        r = hed_class_multiply(u, wa, wb, bits);
    } else {
        r = hed_class_multiply(u, a, b, bits);
    }
    if (f->op == HED_PTX_OP_MAD)
        r = hed_class_add(u, r, operand_class(u, i, 3, wide ? 2 * bits : bits), 1);
    return r;
}

/* Do all lanes of a row have the same bits from bit k on, and steps only below? */
static bool
steps_below(const struct hed_uniforms *u, struct hed_uniform a, unsigned k)
{
    return a.kind == HED_ROWS && a.wraps == HED_FLOW_NONE && a.step >= 0 && k < 63 &&
           a.align >= k && (uint64_t)a.step * (u->width - 1) < UINT64_C(1) << k;
}

static struct hed_uniform
shift_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const unsigned bits = bits_of_type(i->form->types[0]);
    const struct hed_uniform a = operand_class(u, i, 1, bits);
    const struct hed_uniform b = hed_uniform_operand(u, &i->operands[2]);

    /* "tid / 32" of signed numbers asks for the sign first. */
    if (i->form->op == HED_PTX_OP_SHR && a.is_small && b.is_constant && b.constant >= SMALL_BITS)
        return hed_class_constant(0);
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

/* and with a mask of low bits, or of high bits. */
static struct hed_uniform
mask_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const unsigned bits = bits_of_type(i->form->types[0]);
    const struct hed_uniform a = operand_class(u, i, 1, bits);
    const struct hed_uniform m = hed_uniform_operand(u, &i->operands[2]);
    const uint64_t all = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;

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

static struct hed_uniform
convert_class(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const unsigned to = i->form->types[0], from = i->form->types[1];
    const struct hed_uniform a = hed_uniform_operand(u, &i->operands[1]);

    if (i->noperands != 2 || i->form->ntypes != 2 || !is_integer(to) || !is_integer(from) ||
        (i->form->flags & HED_PTX_FLAG(SAT)) || a.kind != HED_ROWS || a.step == 0)
        return worst_class(u, i);
    if (!has_width(&i->operands[1], bits_of_type(from)) ||
        !has_width(&i->operands[0], bits_of_type(to)))
        return varies;
    if (bits_of_type(to) > bits_of_type(from))
        return bits_of_type(from) == 32 && a.wraps == HED_FLOW_NONE ? hed_class_widen(a) : varies;
    if (bits_of_type(to) < bits_of_type(from)) {
        /* 2^32 is nothing in 32 bits. */
        struct hed_uniform r = hed_class_rows(u, a.step, a.align);

        return bits_of_type(to) == 32 ? r : varies;
    }
    return a;
}

struct hed_uniform
hed_uniform_memory(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    const struct hed_ptx_operand *o = NULL;

    for (unsigned k = 0; k < i->noperands && !o; k++)
        if (i->operands[k].kind == HED_PTX_OPERAND_MEM)
            o = &i->operands[k];
    /* The same offset into local memory is another place for each lane. */
    if (!o || hed_locals_accessed(&u->locals, o))
        return varies;
    if (o->base == HED_PTX_OPERAND_REG)
        return o->sel ? varies : u->values[o->reg->id];
    return o->base == HED_PTX_OPERAND_VAR ? variable_class(u, o->var, o->offset) : uniform;
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
    if (at.kind == HED_VARIES || at.step != 0 || at.wraps != HED_FLOW_NONE ||
        (f->nspaces && f->spaces[0] == HED_PTX_SPACE_LOCAL))
        return varies;
    return (struct hed_uniform){.kind = at.kind, .wraps = HED_FLOW_NONE};
}

static bool
is_plain_number(const struct hed_ptx_inst *i)
{
    return i->operands[0].kind == HED_PTX_OPERAND_REG && !i->operands[0].sel &&
           has_width(&i->operands[0], bits_of_type(i->form->types[0]));
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
    return is_plain_number(i) && has_width(&i->operands[1], bits_of_type(i->form->types[0]))
               ? a
               : worst_class(u, i);
}

/* Is a number that steps from lane to lane on the same side of c in all lanes? Its first one is a
 * multiple of some power of two, and the others stay below the next multiple. */
static bool
is_on_one_side(const struct hed_uniforms *u, struct hed_uniform a, uint64_t c)
{
    const uint64_t unit = UINT64_C(1) << a.align;
    const uint64_t span = (u->width - 1) * (uint64_t)a.step;

    return a.is_small && a.step > 0 && c <= INT32_MAX && span < unit &&
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

struct hed_uniform
hed_uniform_transfer(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
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
