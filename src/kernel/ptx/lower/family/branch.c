/* Branches and ends: the lane goes on somewhere else. */
#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/lower.h"

void
hed_op_bra(struct hed_lower *l)
{
    l->shape->branch(l, l->inst->operands[0].label);
}

void
hed_op_brx_idx(struct hed_lower *l)
{
    const struct hed_ptx_operand *o = l->inst->operands;

    l->shape->branch_table(l, hed_lower_get(l, &o[0], HED_PTX_TYPE_U32), o[1].table);
}

void
hed_op_ret(struct hed_lower *l)
{
    l->shape->ret(l);
}

void
hed_op_exit(struct hed_lower *l)
{
    l->shape->exit(l);
}
