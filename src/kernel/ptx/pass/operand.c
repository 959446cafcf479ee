/* The classes of operands. See transfer.h. */
#include "kernel/ptx/pass/transfer.h"

#include "base/number.h"
#include "kernel/ptx/pass/bounds.h"
#include "kernel/ptx/pass/class.h"
#include "kernel/ptx/run/abi.h"

static const struct hed_uniform varies = {.kind = HED_VARIES, .wraps = HED_FLOW_NONE};
static const struct hed_uniform unknown = {.kind = HED_UNKNOWN, .wraps = HED_FLOW_NONE};
static const struct hed_uniform uniform = {.kind = HED_UNIFORM, .wraps = HED_FLOW_NONE};

/* Special registers that all threads of a block see alike, whenever they look. */
static bool
is_same_in_block(const struct hed_ptx_operand *o)
{
    return o->sreg == HED_PTX_SREG_NTID || o->sreg == HED_PTX_SREG_CTAID ||
           o->sreg == HED_PTX_SREG_NCTAID;
}

static struct hed_uniform
sreg_class(const struct hed_uniforms *u, const struct hed_ptx_operand *o)
{
    const unsigned d = o->sel ? o->sel - 1u : 0;

    if (u->of_block)
        return is_same_in_block(o) ? uniform : varies;
    switch (o->sreg) {
    case HED_PTX_SREG_TID:
        if (u->rows == HED_ROWS_ONE)
            return hed_class_constant(0);
        if (u->rows == HED_ROWS_ANY)
            return varies;
        return d == 0 ? hed_class_rows(u, 1, hed_class_align(u->width)) : hed_class_rows(u, 0, 0);
    case HED_PTX_SREG_LANEID:
        if (u->rows == HED_ROWS_ONE)
            return hed_class_constant(0);
        /* The first lane of a warp that is one row is lane 0. */
        return hed_class_rows(u, 1, u->width == HED_PTX_LANES ? 63 : hed_class_align(u->width));
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
    if (v->space == HED_PTX_SPACE_SHARED)
        return (struct hed_uniform){
            .kind = HED_UNIFORM,
            .align = (uint8_t)hed_min(hed_class_align(v->align), hed_class_align((uint64_t)offset)),
            .wraps = HED_FLOW_NONE};
    if (v->space != HED_PTX_SPACE_LOCAL && v->space != HED_PTX_SPACE_PARAM)
        return uniform;
    if (hed_locals_find(&u->locals, v))
        return hed_class_constant((uint64_t)offset);
    for (const struct hed_ptx_var *own = u->f->func->sig.params; own; own = own->next)
        if (own == v)
            return uniform;
    return varies;
}

static struct hed_uniform
operand_class(const struct hed_uniforms *u, const struct hed_ptx_operand *o)
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
            const struct hed_uniform e = operand_class(u, &o->elems[i]);

            if (e.kind == HED_UNKNOWN)
                return unknown;
            all.kind = (uint8_t)hed_max(all.kind, hed_class_has_steps(e) ? HED_VARIES : e.kind);
        }
        return all;
    default:
        return varies;
    }
}

struct hed_uniform
hed_uniform_of_value(const struct hed_uniforms *u, const struct hed_ptx_reg *r)
{
    struct hed_uniform c = u->values[r->id];

    c.below = u->bounds[r->id];
    if (c.kind == HED_ROWS || c.kind == HED_OFFSETS)
        c.differ = (uint8_t)hed_class_differ(c);
    return c;
}

struct hed_uniform
hed_uniform_operand(const struct hed_uniforms *u, const struct hed_ptx_operand *o)
{
    struct hed_uniform c = operand_class(u, o);
    const unsigned bits = o->kind == HED_PTX_OPERAND_REG ? hed_ptx_types[o->reg->type].bits : 64;

    c.below = (uint8_t)hed_bounds_operand(u->bounds, o, bits);
    return c;
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
