/* Which values may be any NaN. See nan.h. */
#include "kernel/ptx/pass/nan.h"

#include <string.h>

#include "kernel/ptx/pass/transfer.h"

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

/* Products of matrices with sums of f32. That a sum is any NaN makes the result one. */
static bool
is_product(const struct hed_ptx_inst *i)
{
    return i->form->op == HED_PTX_OP_MMA && i->form->types[0] == HED_PTX_TYPE_F32 &&
           i->form->types[3] == HED_PTX_TYPE_F32 && !i->is_refused;
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
is_word_register(const struct hed_ptx_operand *o)
{
    return o->kind == HED_PTX_OPERAND_REG && !o->sel && !o->negated &&
           hed_ptx_types[o->reg->type].bits == 32;
}

/* A number, or a register that holds one: an instruction that hands NaNs on may not take its other
 * operands from a loose value. */
static bool
is_plain_number_operand(const struct hed_ptx_operand *o, const struct hed_ssa *ssa)
{
    const struct hed_ptx_inst *i =
        o->kind == HED_PTX_OPERAND_REG ? ssa->values[o->reg->id].made_by : NULL;

    return o->kind == HED_PTX_OPERAND_INT || (i && i->form->op == HED_PTX_OP_MOV && !i->guard &&
                                              i->operands[1].kind == HED_PTX_OPERAND_INT);
}

/* The register that mov or shfl moves as it is, or NULL. */
static const struct hed_ptx_reg *
moved_register(const struct hed_ptx_inst *i, const struct hed_ssa *ssa)
{
    const bool is_mov = i->form->op == HED_PTX_OP_MOV;

    if ((!is_mov && i->form->op != HED_PTX_OP_SHFL) || i->guard || i->is_refused ||
        i->noperands < 2 || hed_ptx_types[i->form->types[0]].bits != 32 ||
        !is_word_register(&i->operands[1]) || (is_mov && !is_word_register(&i->operands[0])))
        return NULL;
    for (unsigned k = 2; k < i->noperands; k++)
        if (!is_plain_number_operand(&i->operands[k], ssa))
            return NULL;
    return i->operands[1].reg;
}

bool
hed_nan_blind(const struct hed_ptx_inst *i, const struct hed_ssa *ssa)
{
    return is_plain_arithmetic(i) || moved_register(i, ssa) ||
           (i->form->op == HED_PTX_OP_SETP && i->form->types[0] == HED_PTX_TYPE_F32);
}

static bool
may_be_loose(const struct hed_ssa_value *values, const bool *loose, const struct hed_ptx_reg *r)
{
    return !r || loose[r->id] || is_plain_constant(values[r->id].made_by) ||
           (!values[r->id].made_by && !values[r->id].phi);
}

/* Takes back what was said of phis and of moved values. Returns whether anything changed. */
static bool
tighten(const struct hed_flow *f, const struct hed_ssa *ssa, bool *loose)
{
    bool changed = false;

    for (uint32_t v = 0; v < f->nvalues; v++) {
        const struct hed_ptx_inst *i = ssa->values[v].made_by;
        const struct hed_flow_phi *p = ssa->values[v].phi;
        bool all = true;

        for (uint32_t k = 0; p && k < f->blocks[ssa->values[v].block].nbefore; k++)
            all = all && may_be_loose(ssa->values, loose, p->from[k]);
        if (i && moved_register(i, ssa))
            all = loose[moved_register(i, ssa)->id];
        changed |= loose[v] && !all;
        loose[v] = loose[v] && all;
    }
    return changed;
}

bool *
hed_nan_init(struct hed_flow *f, const struct hed_ssa *ssa)
{
    bool *loose = hed_flow_alloc(f, f->nvalues, sizeof(bool));

    for (uint32_t v = 0; loose && v < f->nvalues; v++) {
        const struct hed_ptx_inst *i = ssa->values[v].made_by;
        const bool is_made = i && !i->guard &&
                             (moved_register(i, ssa) || is_product(i) ||
                              (is_plain_arithmetic(i) && !(i->form->flags & HED_PTX_FLAG(SAT))));

        loose[v] = hed_ptx_types[f->values[v]->type].bits == 32 && (ssa->values[v].phi || is_made);
    }
    while (loose && tighten(f, ssa, loose))
        continue;
    return loose;
}

static bool
is_nearest_sum(const struct hed_ptx_inst *i)
{
    return i && !i->guard && i->form->op != HED_PTX_OP_ABS && i->form->op != HED_PTX_OP_NEG &&
           is_plain_arithmetic(i) && !(i->form->flags & HED_PTX_FLAG(FTZ)) &&
           (i->form->round == HED_PTX_ROUND_NONE || i->form->round == HED_PTX_ROUND_RN);
}

static void
drop_read(void *arg, const struct hed_ptx_reg **reg)
{
    bool *stored = arg;

    stored[(*reg)->id] = false;
}

static void
drop_reads_of_block(const struct hed_flow_block *b, const struct hed_uniforms *u, bool *stored)
{
    for (uint32_t i = 0; i < b->ninsts; i++)
        if (b->insts[i]->form->op != HED_PTX_OP_ST || !hed_uniform_moves_row(u, b->insts[i]))
            hed_flow_each_read(b->insts[i], drop_read, stored);
    if (b->last)
        hed_flow_each_read((struct hed_ptx_inst *)b->last, drop_read, stored);
    for (const struct hed_flow_phi *p = b->phis; p; p = p->next)
        for (uint32_t i = 0; i < b->nbefore; i++)
            if (p->from[i])
                stored[p->from[i]->id] = false;
}

bool *
hed_nan_stored(struct hed_flow *f, const struct hed_ssa *ssa, const struct hed_uniforms *u,
               const bool *loose)
{
    bool *stored = hed_flow_alloc(f, f->nvalues, sizeof(bool));

    for (uint32_t v = 0; stored && v < f->nvalues; v++)
        stored[v] = loose[v] && is_nearest_sum(ssa->values[v].made_by);
    for (uint32_t b = 0; stored && b < f->nblocks; b++)
        drop_reads_of_block(&f->blocks[b], u, stored);
    return stored;
}
