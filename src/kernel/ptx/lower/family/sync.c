/* Barriers of a block, and operations among the lanes of a warp. The functions here read operands
 * and write results; the shape does the work.
 */
#include "kernel/ptx/lower/lower.h"

#include "kernel/ptx/lower/family/family.h"

static LLVMValueRef
word32_operand(struct hed_lower *l, unsigned n)
{
    return hed_lower_get(l, &l->inst->operands[n], HED_PTX_TYPE_B32);
}

/* Writes the destination a or a|p. */
static void
set_with_predicate(struct hed_lower *l, enum hed_ptx_type t, LLVMValueRef v, LLVMValueRef p)
{
    const struct hed_ptx_operand *o = &l->inst->operands[0];

    if (o->kind != HED_PTX_OPERAND_PAIR) {
        hed_lower_set(l, o, t, v);
        return;
    }
    hed_lower_set(l, &o->elems[0], t, v);
    hed_lower_set(l, &o->elems[1], HED_PTX_TYPE_PRED, p);
}

/* ---- barriers -------------------------------------------------------------------------------- */

/* The operand with the number of threads; 0, for all of the block, if it is not there. */
static LLVMValueRef
barrier_threads(struct hed_lower *l, unsigned n)
{
    return l->inst->noperands > n ? word32_operand(l, n) : hed_lower_int(l, l->i32, 0);
}

void
hed_op_barrier_sync(struct hed_lower *l)
{
    LLVMValueRef id = word32_operand(l, 0);

    l->shape->barrier(l, id, barrier_threads(l, 1));
}

void
hed_op_barrier_arrive(struct hed_lower *l)
{
    LLVMValueRef id = word32_operand(l, 0);

    l->shape->barrier_arrive(l, id, barrier_threads(l, 1));
}

/* Every block is a cluster of its own. */
void
hed_op_cluster_wait(struct hed_lower *l)
{
    l->shape->barrier(l, hed_lower_int(l, l->i32, HED_PTX_CLUSTER_BARRIER),
                      hed_lower_int(l, l->i32, 0));
}

void
hed_op_warp_sync(struct hed_lower *l)
{
    l->shape->warp_sync(l, word32_operand(l, 0));
}

void
hed_op_barrier_red(struct hed_lower *l)
{
    const struct hed_ptx_inst *i = l->inst;
    const bool counted = i->noperands == 4;
    LLVMValueRef threads = counted ? word32_operand(l, 2) : hed_lower_int(l, l->i32, 0);
    LLVMValueRef p = hed_lower_get(l, &i->operands[counted ? 3 : 2], HED_PTX_TYPE_PRED);
    LLVMValueRef v;

    v = l->shape->barrier_reduce(l, word32_operand(l, 1), threads, p,
                                 (enum hed_rt_reduce)l->meaning->operation);
    if (i->form->types[0] == HED_PTX_TYPE_PRED)
        v = LLVMBuildICmp(l->b, LLVMIntNE, v, hed_lower_int(l, l->i32, 0), "");
    hed_lower_set(l, &i->operands[0], i->form->types[0], v);
}

/* ---- warps ----------------------------------------------------------------------------------- */

void
hed_op_shfl(struct hed_lower *l)
{
    LLVMValueRef mask = l->inst->noperands > 4 ? word32_operand(l, 4) : NULL;
    LLVMValueRef v, inside;

    v = l->shape->shfl(l, (enum hed_rt_shfl)l->meaning->operation, word32_operand(l, 1),
                       word32_operand(l, 2), word32_operand(l, 3), mask, &inside);
    set_with_predicate(l, HED_PTX_TYPE_B32, v, inside);
}

void
hed_op_vote(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    LLVMValueRef p = hed_lower_get(l, &l->inst->operands[1], HED_PTX_TYPE_PRED);
    LLVMValueRef mask = l->inst->noperands > 2 ? word32_operand(l, 2) : NULL;
    LLVMValueRef v;

    v = l->shape->vote(l, (enum hed_rt_vote)l->meaning->operation, p, mask);
    if (f->types[0] == HED_PTX_TYPE_PRED)
        v = LLVMBuildICmp(l->b, LLVMIntNE, v, hed_lower_int(l, l->i32, 0), "");
    hed_lower_set(l, &l->inst->operands[0], f->types[0], v);
}

void
hed_op_match(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    LLVMValueRef v = hed_lower_get(l, &l->inst->operands[1], f->types[0]);
    LLVMValueRef same = hed_lower_int(l, l->i1, 0);

    v = hed_lower_resize(l, v, l->i64, false);
    v = l->shape->match(l, v, word32_operand(l, 2), f->mode == HED_PTX_MODE_ALL ? &same : NULL);
    set_with_predicate(l, HED_PTX_TYPE_B32, v, same);
}

void
hed_op_redux(struct hed_lower *l)
{
    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_B32,
                  l->shape->redux(l, (enum hed_rt_redux)l->meaning->operation, word32_operand(l, 1),
                                  word32_operand(l, 2)));
}

void
hed_op_elect(struct hed_lower *l)
{
    LLVMValueRef elected;
    LLVMValueRef v = l->shape->elect(l, word32_operand(l, 1), &elected);

    set_with_predicate(l, HED_PTX_TYPE_B32, v, elected);
}
