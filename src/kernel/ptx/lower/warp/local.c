/* Finds the registers that are used in one stretch of code only, between two places where lanes
 * come together or part; and decides how guards are obeyed.
 *
 * An instruction writes only the running lanes; the others keep their values. Keeping them costs as
 * much as most instructions do. It is unnecessary for a register that is mentioned in one stretch
 * only, because all lanes that reach the stretch write the register before they read it. Most
 * registers in compiled PTX are like that.
 */
#include <stdlib.h>

#include "base/err.h"
#include "kernel/ptx/lower/warp/warp.h"

enum warp_guard
hed_lower_warp_guard(const struct hed_ptx_inst *i)
{
    switch (hed_ptx_op_nature(i->form->op)) {
    case HED_PTX_COMPUTES:
        return WARP_GUARD_SELECT;
    case HED_PTX_MEETS:
        return WARP_GUARD_SPLIT;
    case HED_PTX_LEAVES:
        return WARP_GUARD_LEAVE;
    default:
        return WARP_GUARD_SKIP;
    }
}

struct stretches {
    uint32_t *at; /* by register id: the stretch that mentions it; 0 if none has yet */
    bool *many;   /* by register id: several do, or it is written under a guard */
    uint32_t now; /* the current stretch */
};

static void
mention_register(struct stretches *p, const struct hed_ptx_reg *r)
{
    if (p->at[r->id] && p->at[r->id] != p->now)
        p->many[r->id] = true;
    p->at[r->id] = p->now;
}

static void
mention_operand(struct stretches *p, const struct hed_ptx_operand *o, bool guarded)
{
    switch (o->kind) {
    case HED_PTX_OPERAND_REG:
        mention_register(p, o->reg);
        p->many[o->reg->id] |= guarded;
        break;
    case HED_PTX_OPERAND_MEM:
        if (o->base == HED_PTX_OPERAND_REG)
            mention_register(p, o->reg);
        break;
    case HED_PTX_OPERAND_TUPLE:
    case HED_PTX_OPERAND_VEC:
    case HED_PTX_OPERAND_PAIR:
    case HED_PTX_OPERAND_LIST:
        for (uint32_t i = 0; i < o->count; i++)
            mention_operand(p, &o->elems[i], guarded);
        break;
    default:
        break;
    }
}

static void
number_stretches(struct stretches *p, const struct hed_ptx_func *f)
{
    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind == HED_PTX_STMT_LABEL)
            p->now++;
        if (s->kind != HED_PTX_STMT_INST || i->is_refused)
            continue;

        const enum warp_guard guard = hed_lower_warp_guard(i);
        const bool is_call = i->form->op == HED_PTX_OP_CALL;

        /* Lanes may be parked at the instruction, so its operands come from another stretch. */
        p->now += guard == WARP_GUARD_SPLIT;
        if (i->guard)
            mention_register(p, i->guard);
        for (unsigned k = 0; k < i->noperands; k++)
            mention_operand(p, &i->operands[k], i->guard != NULL && (k == 0 || is_call));
        p->now += guard == WARP_GUARD_SPLIT || guard == WARP_GUARD_LEAVE;
    }
}

void
hed_lower_warp_find_locals(struct hed_lower *l)
{
    const struct hed_lower_function *f = l->function;
    const struct warp *w = hed_lower_warp_state(l);
    struct stretches p = {.at = calloc((size_t)f->ptx->nregs + 1, sizeof(uint32_t)),
                          .many = calloc((size_t)f->ptx->nregs + 1, sizeof(bool)),
                          .now = 1};

    if (!p.at || !p.many) {
        l->err = HED_ENOMEM;
    } else {
        number_stretches(&p, f->ptx);
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
