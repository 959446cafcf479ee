/* What the lanes of a warp, or the threads of a block, do together: as the runner calls it. */
#include "kernel/ptx/meaning/family.h"

/* Sets the operation; -1 if there is none. */
static int
set_operation(struct hed_ptx_meaning *m, int operation, const char *cannot, struct hed_why *why)
{
    if (operation < 0)
        return hed_meaning_refuse(why, "%s", cannot);
    m->operation = (unsigned)operation;
    return 0;
}

static int
mode_of_shfl(unsigned mode)
{
    switch (mode) {
    case HED_PTX_MODE_UP:
        return HED_RT_SHFL_UP;
    case HED_PTX_MODE_DOWN:
        return HED_RT_SHFL_DOWN;
    case HED_PTX_MODE_BFLY:
        return HED_RT_SHFL_BFLY;
    case HED_PTX_MODE_IDX:
        return HED_RT_SHFL_IDX;
    default:
        return -1;
    }
}

HED_MEANING(shfl)
{
    return set_operation(m, mode_of_shfl(i->form->mode), "this mode is not supported", why);
}

static int
mode_of_vote(unsigned mode)
{
    switch (mode) {
    case HED_PTX_MODE_ALL:
        return HED_RT_VOTE_ALL;
    case HED_PTX_MODE_ANY:
        return HED_RT_VOTE_ANY;
    case HED_PTX_MODE_UNI:
        return HED_RT_VOTE_UNI;
    case HED_PTX_MODE_BALLOT:
        return HED_RT_VOTE_BALLOT;
    default:
        return -1;
    }
}

HED_MEANING(vote)
{
    return set_operation(m, mode_of_vote(i->form->mode), "this mode is not supported", why);
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

HED_MEANING(redux)
{
    return set_operation(m, redux_operation(i->form), "this reduction is not supported", why);
}

static int
barrier_operation(unsigned oper)
{
    switch (oper) {
    case HED_PTX_OPER_AND:
        return HED_RT_AND;
    case HED_PTX_OPER_OR:
        return HED_RT_OR;
    case HED_PTX_OPER_POPC:
        return HED_RT_POPC;
    default:
        return -1;
    }
}

HED_MEANING(barrier_red)
{
    return set_operation(m, barrier_operation(i->form->oper), "this reduction is not supported",
                         why);
}
