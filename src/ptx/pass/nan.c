/* Which values may be any NaN. See nan.h. */
#include "ptx/pass/nan.h"

#include <string.h>

static bool
is_plain_arithmetic(const struct hed_ptx_inst *i)
{
    switch (i->form->op) {
    case HED_PTX_OP_ADD:
    case HED_PTX_OP_SUB:
    case HED_PTX_OP_MUL:
    case HED_PTX_OP_MAD:
    case HED_PTX_OP_FMA:
    case HED_PTX_OP_ABS:
    case HED_PTX_OP_NEG:
        return i->form->types[0] == HED_PTX_TYPE_F32 && i->form->ntypes == 1 && !i->is_refused;
    default:
        return false;
    }
}

bool
hed_nan_blind(const struct hed_ptx_inst *i)
{
    return is_plain_arithmetic(i) ||
           (i->form->op == HED_PTX_OP_SETP && i->form->types[0] == HED_PTX_TYPE_F32);
}

/* A constant that is no NaN. */
static bool
is_plain_constant(const struct hed_ptx_inst *i)
{
    const struct hed_ptx_operand *o = i ? &i->operands[1] : NULL;

    if (!i || i->form->op != HED_PTX_OP_MOV || i->guard ||
        (o->kind != HED_PTX_OPERAND_FLOAT && o->kind != HED_PTX_OPERAND_INT))
        return false;
    /* Of doubles only those are taken that are nothing but zeros. */
    return o->bits == 0 ||
           ((o->is_f32 || o->kind == HED_PTX_OPERAND_INT) && (o->bits & 0x7fffffff) < 0x7f800000);
}

static bool
may_be_loose(const struct hed_ssa_value *values, const bool *loose, const struct hed_ptx_reg *r)
{
    return !r || loose[r->id] || is_plain_constant(values[r->id].made_by) ||
           (!values[r->id].made_by && !values[r->id].phi);
}

bool *
hed_nan_init(struct hed_flow *f, const struct hed_ssa *ssa)
{
    bool *loose = hed_flow_alloc(f, f->nvalues, sizeof(bool));
    bool changed = true;

    for (uint32_t v = 0; loose && v < f->nvalues; v++) {
        const struct hed_ptx_inst *i = ssa->values[v].made_by;

        loose[v] = hed_ptx_types[f->values[v]->type].bits == 32 &&
                   (ssa->values[v].phi || (i && is_plain_arithmetic(i) && !i->guard &&
                                           !(i->form->flags & HED_PTX_FLAG(SAT))));
    }
    while (loose && changed) {
        changed = false;
        for (uint32_t b = 0; b < f->nblocks; b++) {
            for (const struct hed_flow_phi *p = f->blocks[b].phis; p; p = p->next) {
                bool all = true;

                for (uint32_t k = 0; k < f->blocks[b].nbefore; k++)
                    all = all && may_be_loose(ssa->values, loose, p->from[k]);
                changed |= loose[p->to->id] && !all;
                loose[p->to->id] = loose[p->to->id] && all;
            }
        }
    }
    return loose;
}
