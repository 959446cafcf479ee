/* Barriers of a block and what the lanes of a warp do together: operands in, the shape's work,
 * results out. */
#include "ptx/lower/lower.h"

static LLVMValueRef
get32(struct hed_lower *l, unsigned n)
{
    return hed_lower_get(l, &l->inst->operands[n], HED_PTX_TYPE_B32);
}

/* Writes a or a|p. */
static void
set_pair(struct hed_lower *l, enum hed_ptx_type t, LLVMValueRef v, LLVMValueRef p)
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

static void
barrier(struct hed_lower *l, bool waits)
{
    LLVMValueRef id = get32(l, 0);
    LLVMValueRef threads = l->inst->noperands > 1 ? get32(l, 1) : hed_lower_int(l, l->i32, 0);

    if (waits)
        l->shape->barrier(l, id, threads);
    else
        l->shape->barrier_arrive(l, id, threads);
}

static void
barrier_reduce(struct hed_lower *l)
{
    const struct hed_ptx_inst *i = l->inst;
    const bool counted = i->noperands == 4;
    LLVMValueRef threads = counted ? get32(l, 2) : hed_lower_int(l, l->i32, 0);
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
        hed_lower_refuse(l, "this reduction");
        return;
    }
    v = l->shape->barrier_reduce(l, get32(l, 1), threads, p, op);
    if (i->form->types[0] == HED_PTX_TYPE_PRED)
        v = LLVMBuildICmp(l->b, LLVMIntNE, v, hed_lower_int(l, l->i32, 0), "");
    hed_lower_set(l, &i->operands[0], i->form->types[0], v);
}

/* ---- warps ----------------------------------------------------------------------------------- */

static void
shuffle(struct hed_lower *l)
{
    static const uint8_t modes[] = {
        [HED_PTX_MODE_UP] = HED_RT_SHFL_UP,
        [HED_PTX_MODE_DOWN] = HED_RT_SHFL_DOWN,
        [HED_PTX_MODE_BFLY] = HED_RT_SHFL_BFLY,
        [HED_PTX_MODE_IDX] = HED_RT_SHFL_IDX,
    };
    const unsigned mode = l->inst->form->mode;
    LLVMValueRef mask = l->inst->noperands > 4 ? get32(l, 4) : NULL;
    LLVMValueRef v, inside;

    if (mode < HED_PTX_MODE_UP || mode > HED_PTX_MODE_IDX) {
        hed_lower_refuse(l, "this mode");
        return;
    }
    v = l->shape->shfl(l, modes[mode], get32(l, 1), get32(l, 2), get32(l, 3), mask, &inside);
    set_pair(l, HED_PTX_TYPE_B32, v, inside);
}

static void
vote(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    LLVMValueRef p = hed_lower_get(l, &l->inst->operands[1], HED_PTX_TYPE_PRED);
    LLVMValueRef mask = l->inst->noperands > 2 ? get32(l, 2) : NULL;
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
        hed_lower_refuse(l, "this mode");
        return;
    }
    v = l->shape->vote(l, mode, p, mask);
    if (f->types[0] == HED_PTX_TYPE_PRED)
        v = LLVMBuildICmp(l->b, LLVMIntNE, v, hed_lower_int(l, l->i32, 0), "");
    hed_lower_set(l, &l->inst->operands[0], f->types[0], v);
}

static void
match(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    LLVMValueRef v = hed_lower_get(l, &l->inst->operands[1], f->types[0]);
    LLVMValueRef same = hed_lower_int(l, l->i1, 0);

    v = hed_lower_resize(l, v, l->i64, false);
    v = l->shape->match(l, v, get32(l, 2), f->mode == HED_PTX_MODE_ALL ? &same : NULL);
    set_pair(l, HED_PTX_TYPE_B32, v, same);
}

static int
redux_of(const struct hed_ptx_form *f)
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

static void
redux(struct hed_lower *l)
{
    const int op = redux_of(l->inst->form);

    if (op < 0) {
        hed_lower_refuse(l, "this reduction");
        return;
    }
    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_B32,
                  l->shape->redux(l, (enum hed_rt_redux)op, get32(l, 1), get32(l, 2)));
}

static void
elect(struct hed_lower *l)
{
    LLVMValueRef elected;
    LLVMValueRef v = l->shape->elect(l, get32(l, 1), &elected);

    set_pair(l, HED_PTX_TYPE_B32, v, elected);
}

bool
hed_lower_sync(struct hed_lower *l)
{
    switch (l->inst->form->op) {
    case HED_PTX_OP_BARRIER_SYNC:
    case HED_PTX_OP_BARRIER_ARRIVE:
        barrier(l, l->inst->form->op == HED_PTX_OP_BARRIER_SYNC);
        return true;
    case HED_PTX_OP_BARRIER_RED:
        barrier_reduce(l);
        return true;
    case HED_PTX_OP_BAR_WARP_SYNC:
        l->shape->warp_sync(l, get32(l, 0));
        return true;
    case HED_PTX_OP_SHFL:
        shuffle(l);
        return true;
    case HED_PTX_OP_VOTE:
        vote(l);
        return true;
    case HED_PTX_OP_MATCH:
        match(l);
        return true;
    case HED_PTX_OP_REDUX:
        redux(l);
        return true;
    case HED_PTX_OP_ACTIVEMASK:
        hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_B32, l->shape->activemask(l));
        return true;
    case HED_PTX_OP_ELECT:
        elect(l);
        return true;
    case HED_PTX_OP_NANOSLEEP:
        l->shape->nanosleep(l, get32(l, 0));
        return true;
    default:
        return false;
    }
}
