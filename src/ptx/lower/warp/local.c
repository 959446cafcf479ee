/* Which registers belong to one place of the code, and how guards are made to hold.
 *
 * An instruction writes only the lanes that run; the others keep what they had. Keeping costs as
 * much as most instructions do, and is needless for a register that is only mentioned between two
 * places where lanes come or go: whoever comes there writes it before it is read. Most registers of
 * a compiler's PTX are like that.
 */
#include <stdlib.h>

#include "base/err.h"
#include "ptx/lower/warp/warp.h"

enum warp_guard
hed_lower_warp_guard(const struct hed_ptx_inst *i)
{
    switch (i->form->op) {
    case HED_PTX_OP_BRA:
    case HED_PTX_OP_BRX_IDX:
    case HED_PTX_OP_RET:
    case HED_PTX_OP_EXIT:
        return WARP_GUARD_LEAVE;
    case HED_PTX_OP_SHFL:
    case HED_PTX_OP_VOTE:
    case HED_PTX_OP_MATCH:
    case HED_PTX_OP_REDUX:
    case HED_PTX_OP_ELECT:
    case HED_PTX_OP_BARRIER_SYNC:
    case HED_PTX_OP_BARRIER_ARRIVE:
    case HED_PTX_OP_BARRIER_RED:
    case HED_PTX_OP_BAR_WARP_SYNC:
    case HED_PTX_OP_CLUSTER_ARRIVE:
    case HED_PTX_OP_CLUSTER_WAIT:
    case HED_PTX_OP_LDMATRIX:
    case HED_PTX_OP_STMATRIX:
    case HED_PTX_OP_MOVMATRIX:
    case HED_PTX_OP_MMA:
    case HED_PTX_OP_WMMA_LOAD:
    case HED_PTX_OP_WMMA_STORE:
    case HED_PTX_OP_WMMA_MMA:
        return WARP_GUARD_SPLIT;
    default:
        /* Up to the first that touches memory they only compute. */
        return i->form->op < HED_PTX_OP_LD ? WARP_GUARD_SELECT : WARP_GUARD_SKIP;
    }
}

struct places {
    uint32_t *at; /* by register id: the place it is mentioned in; 0: none yet */
    bool *many;   /* it is mentioned in several, or written under a guard */
    uint32_t now;
};

static void
mention_reg(struct places *p, const struct hed_ptx_reg *r)
{
    if (p->at[r->id] && p->at[r->id] != p->now)
        p->many[r->id] = true;
    p->at[r->id] = p->now;
}

static void
mention(struct places *p, const struct hed_ptx_operand *o, bool guarded)
{
    switch (o->kind) {
    case HED_PTX_OPERAND_REG:
        mention_reg(p, o->reg);
        p->many[o->reg->id] |= guarded;
        break;
    case HED_PTX_OPERAND_MEM:
        if (o->base == HED_PTX_OPERAND_REG)
            mention_reg(p, o->reg);
        break;
    case HED_PTX_OPERAND_TUPLE:
    case HED_PTX_OPERAND_VEC:
    case HED_PTX_OPERAND_PAIR:
    case HED_PTX_OPERAND_LIST:
        for (uint32_t i = 0; i < o->count; i++)
            mention(p, &o->elems[i], guarded);
        break;
    default:
        break;
    }
}

static void
walk(struct places *p, const struct hed_ptx_func *f)
{
    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind == HED_PTX_STMT_LABEL)
            p->now++;
        if (s->kind != HED_PTX_STMT_INST || i->is_refused)
            continue;

        const enum warp_guard guard = hed_lower_warp_guard(i);
        const bool is_call = i->form->op == HED_PTX_OP_CALL;

        /* Lanes may be parked at it: what it reads was written at another place. */
        p->now += guard == WARP_GUARD_SPLIT;
        if (i->guard)
            mention_reg(p, i->guard);
        for (unsigned k = 0; k < i->noperands; k++)
            mention(p, &i->operands[k], i->guard != NULL && (k == 0 || is_call));
        p->now += guard == WARP_GUARD_SPLIT || guard == WARP_GUARD_LEAVE;
    }
}

void
hed_lower_warp_find_locals(struct hed_lower *l)
{
    const struct hed_lower_function *f = l->function;
    const struct warp *w = hed_lower_warp_state(l);
    struct places p = {.at = calloc((size_t)f->ptx->nregs + 1, sizeof(uint32_t)),
                       .many = calloc((size_t)f->ptx->nregs + 1, sizeof(bool)),
                       .now = 1};

    if (!p.at || !p.many) {
        l->err = HED_ENOMEM;
    } else {
        walk(&p, f->ptx);
        for (const struct hed_ptx_reg *r = f->ptx->regs; r; r = r->next) {
            if (!p.many[r->id] && !r->vec)
                hed_lower_map_add(l, w->locals, f->regs[r->id][0], f->regs[r->id]);
            else
                for (unsigned i = 0; i < (r->vec ? r->vec : 1); i++)
                    hed_lower_warp_pin(l, f->regs[r->id][i]);
        }
    }
    free(p.at);
    free(p.many);
}
