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
    enum hed_rt_reduce op;
    LLVMValueRef v;

    switch (i->form->oper) {
    case HED_PTX_OPER_AND:
        op = HED_RT_AND;
        break;
    case HED_PTX_OPER_OR:
        op = HED_RT_OR;
        break;
    case HED_PTX_OPER_POPC:
        op = HED_RT_POPC;
        break;
    default:
        hed_lower_refuse(l, "this reduction is not supported");
        return;
    }
    v = l->shape->barrier_reduce(l, word32_operand(l, 1), threads, p, op);
    if (i->form->types[0] == HED_PTX_TYPE_PRED)
        v = LLVMBuildICmp(l->b, LLVMIntNE, v, hed_lower_int(l, l->i32, 0), "");
    hed_lower_set(l, &i->operands[0], i->form->types[0], v);
}

/* ---- warps ----------------------------------------------------------------------------------- */

void
hed_op_shfl(struct hed_lower *l)
{
    static const uint8_t modes[] = {
        [HED_PTX_MODE_UP] = HED_RT_SHFL_UP,
        [HED_PTX_MODE_DOWN] = HED_RT_SHFL_DOWN,
        [HED_PTX_MODE_BFLY] = HED_RT_SHFL_BFLY,
        [HED_PTX_MODE_IDX] = HED_RT_SHFL_IDX,
    };
    const unsigned mode = l->inst->form->mode;
    LLVMValueRef mask = l->inst->noperands > 4 ? word32_operand(l, 4) : NULL;
    LLVMValueRef v, inside;

    if (mode < HED_PTX_MODE_UP || mode > HED_PTX_MODE_IDX) {
        hed_lower_refuse(l, "this mode is not supported");
        return;
    }
    v = l->shape->shfl(l, modes[mode], word32_operand(l, 1), word32_operand(l, 2),
                       word32_operand(l, 3), mask, &inside);
    set_with_predicate(l, HED_PTX_TYPE_B32, v, inside);
}

void
hed_op_vote(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    LLVMValueRef p = hed_lower_get(l, &l->inst->operands[1], HED_PTX_TYPE_PRED);
    LLVMValueRef mask = l->inst->noperands > 2 ? word32_operand(l, 2) : NULL;
    enum hed_rt_vote mode;
    LLVMValueRef v;

    switch (f->mode) {
    case HED_PTX_MODE_ALL:
        mode = HED_RT_VOTE_ALL;
        break;
    case HED_PTX_MODE_ANY:
        mode = HED_RT_VOTE_ANY;
        break;
    case HED_PTX_MODE_UNI:
        mode = HED_RT_VOTE_UNI;
        break;
    case HED_PTX_MODE_BALLOT:
        mode = HED_RT_VOTE_BALLOT;
        break;
    default:
        hed_lower_refuse(l, "this mode is not supported");
        return;
    }
    v = l->shape->vote(l, mode, p, mask);
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

static int
redux_operation(const struct hed_ptx_form *f)
{
    const enum hed_ptx_type t = f->types[0];
    const bool is_min = f->oper == HED_PTX_OPER_MIN;
    int base;

    switch (f->oper) {
    case HED_PTX_OPER_ADD:
        return HED_RT_REDUX_ADD;
    case HED_PTX_OPER_AND:
        return HED_RT_REDUX_AND;
    case HED_PTX_OPER_OR:
        return HED_RT_REDUX_OR;
    case HED_PTX_OPER_XOR:
        return HED_RT_REDUX_XOR;
    case HED_PTX_OPER_MIN:
    case HED_PTX_OPER_MAX:
        break;
    default:
        return -1;
    }
    if (t == HED_PTX_TYPE_S32)
        return is_min ? HED_RT_REDUX_MIN_S : HED_RT_REDUX_MAX_S;
    if (t != HED_PTX_TYPE_F32)
        return is_min ? HED_RT_REDUX_MIN_U : HED_RT_REDUX_MAX_U;
    base = f->flags & HED_PTX_FLAG(ABS) ? HED_RT_REDUX_MIN_F_ABS : HED_RT_REDUX_MIN_F;
    base += f->flags & HED_PTX_FLAG(NAN) ? 2 : 0;
    return base + !is_min;
}

void
hed_op_redux(struct hed_lower *l)
{
    const int op = redux_operation(l->inst->form);

    if (op < 0) {
        hed_lower_refuse(l, "this reduction is not supported");
        return;
    }
    hed_lower_set(
        l, &l->inst->operands[0], HED_PTX_TYPE_B32,
        l->shape->redux(l, (enum hed_rt_redux)op, word32_operand(l, 1), word32_operand(l, 2)));
}

void
hed_op_elect(struct hed_lower *l)
{
    LLVMValueRef elected;
    LLVMValueRef v = l->shape->elect(l, word32_operand(l, 1), &elected);

    set_with_predicate(l, HED_PTX_TYPE_B32, v, elected);
}
