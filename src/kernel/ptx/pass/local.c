/* Which variables in local memory can lie element by element. See local.h.
 *
 *   follow   the addresses of variables from value to value, until nothing changes
 *   check    every instruction and phi that reads one: is it a use that is understood?
 */
#include "kernel/ptx/pass/local.h"

#include "base/err.h"
#include "base/number.h"

#define UNIT_MAX 8 /* bytes */

struct follow {
    struct hed_locals *s;
    struct hed_flow *f;
    const struct hed_ssa *ssa;
    bool changed;
};

static struct hed_local *
find_local(const struct hed_locals *s, const struct hed_ptx_var *v)
{
    for (uint32_t i = 0; i < s->nvars; i++)
        if (s->vars[i].var == v)
            return &s->vars[i];
    return NULL;
}

/* The variable that an operand, or the base of a memory operand, points into; or NULL. */
static struct hed_local *
operand_local(const struct hed_locals *s, const struct hed_ptx_operand *o)
{
    const unsigned kind = o->kind == HED_PTX_OPERAND_MEM ? o->base : o->kind;

    if (kind == HED_PTX_OPERAND_REG)
        return (struct hed_local *)s->of[o->reg->id];
    return kind == HED_PTX_OPERAND_VAR ? find_local(s, o->var) : NULL;
}

/* ---- follow ---------------------------------------------------------------------------------- */

/* Bits of the operands that may be an address, if the result is then an address in the same
 * variable; else 0. */
static unsigned
address_operands(const struct hed_ptx_inst *i)
{
    const struct hed_ptx_form *f = i->form;
    const unsigned bits = hed_ptx_types[f->types[0]].bits;

    if (i->is_refused || i->noperands < 2 || i->operands[0].kind != HED_PTX_OPERAND_REG ||
        i->operands[0].sel || hed_ptx_types[i->operands[0].reg->type].bits != 64 ||
        (f->flags & (HED_PTX_FLAG(CC) | HED_PTX_FLAG(SAT))))
        return 0;
    if (f->op == HED_PTX_OP_MAD && f->part == HED_PTX_PART_WIDE && bits == 32)
        return 1u << 3;
    if (bits != 64 || hed_ptx_types[f->types[0]].kind == HED_PTX_KIND_F)
        return 0;
    switch (f->op) {
    case HED_PTX_OP_MOV:
    case HED_PTX_OP_SUB:
        return 1u << 1;
    case HED_PTX_OP_CVTA:
        return f->nspaces && f->spaces[0] == HED_PTX_SPACE_LOCAL ? 1u << 1 : 0;
    case HED_PTX_OP_ADD:
    case HED_PTX_OP_SELP:
        return 1u << 1 | 1u << 2;
    case HED_PTX_OP_MAD:
        return f->part == HED_PTX_PART_LO ? 1u << 3 : 0;
    default:
        return 0;
    }
}

static void
follow_to(struct follow *w, const struct hed_ptx_reg *to, const struct hed_local *from)
{
    if (from && !w->s->of[to->id]) {
        w->s->of[to->id] = from;
        w->changed = true;
    }
}

static void
follow_inst(struct follow *w, const struct hed_ptx_inst *i)
{
    const unsigned which = address_operands(i);
    const struct hed_ptx_reg *old;

    for (unsigned k = 1; which && k < i->noperands; k++)
        if (which >> k & 1)
            follow_to(w, i->operands[0].reg, operand_local(w->s, &i->operands[k]));
    old = which && i->guard ? w->ssa->values[i->operands[0].reg->id].old : NULL;
    if (old)
        follow_to(w, i->operands[0].reg, w->s->of[old->id]);
}

static void
follow_in(struct follow *w, const struct hed_flow_block *b)
{
    for (const struct hed_flow_phi *p = b->phis; p; p = p->next)
        for (uint32_t k = 0; k < b->nbefore; k++)
            if (p->from[k])
                follow_to(w, p->to, w->s->of[p->from[k]->id]);
    for (uint32_t i = 0; i < b->ninsts; i++)
        follow_inst(w, b->insts[i]);
}

/* ---- check ----------------------------------------------------------------------------------- */

static void
let_escape(const struct hed_local *v)
{
    if (v)
        ((struct hed_local *)v)->escapes = true;
}

/* One value becomes the other: both are in the same variable, or `from` is never written. */
static void
check_same(const struct follow *w, const struct hed_ptx_reg *to, const struct hed_ptx_reg *from)
{
    const struct hed_ssa_value *v = from ? &w->ssa->values[from->id] : NULL;

    if (!v || (!v->made_by && !v->phi) || w->s->of[to->id] == w->s->of[from->id])
        return;
    let_escape(w->s->of[to->id]);
    let_escape(w->s->of[from->id]);
}

/* Takes note of an access; false if it is of a kind that needs an address. */
static bool
note_access(const struct hed_ptx_inst *i, unsigned k, struct hed_local *v)
{
    const struct hed_ptx_form *f = i->form;
    const unsigned bytes = hed_ptx_types[f->types[0]].bits / 8;
    const unsigned space = f->nspaces ? f->spaces[0] : HED_PTX_SPACE_NONE;

    if (i->operands[k].kind != HED_PTX_OPERAND_MEM || i->operands[k].sel ||
        !((f->op == HED_PTX_OP_LD && k == 1) || (f->op == HED_PTX_OP_ST && k == 0)))
        return false;
    if ((space != HED_PTX_SPACE_LOCAL && space != HED_PTX_SPACE_NONE) || bytes == 0 ||
        bytes > UNIT_MAX || (f->flags & HED_PTX_FLAG(MMIO)))
        return false;
    v->unit = v->unit && v->unit < bytes ? v->unit : bytes;
    v->largest = (unsigned)hed_max(v->largest, bytes);
    return true;
}

/* Is it a comparison of two addresses in the variable? */
static bool
compares_addresses(const struct follow *w, const struct hed_ptx_inst *i, const struct hed_local *v)
{
    return i->form->op == HED_PTX_OP_SETP && i->noperands == 3 &&
           (i->form->cmp == HED_PTX_CMP_EQ || i->form->cmp == HED_PTX_CMP_NE) &&
           hed_ptx_types[i->form->types[0]].bits == 64 &&
           hed_ptx_types[i->form->types[0]].kind != HED_PTX_KIND_F &&
           operand_local(w->s, &i->operands[1]) == v && operand_local(w->s, &i->operands[2]) == v;
}

/* An operand inside of a list or a vector. */
static void
check_inner_operands(const struct follow *w, const struct hed_ptx_operand *o)
{
    if (o->kind == HED_PTX_OPERAND_VEC || o->kind == HED_PTX_OPERAND_PAIR ||
        o->kind == HED_PTX_OPERAND_LIST || o->kind == HED_PTX_OPERAND_TUPLE)
        for (uint32_t i = 0; i < o->count; i++) {
            let_escape(operand_local(w->s, &o->elems[i]));
            check_inner_operands(w, &o->elems[i]);
        }
}

static void
check_use(const struct follow *w, const struct hed_ptx_inst *i)
{
    const unsigned which = address_operands(i);
    unsigned addresses = 0, plain = 0;

    for (unsigned k = 0; k < i->noperands; k++) {
        struct hed_local *v = operand_local(w->s, &i->operands[k]);

        check_inner_operands(w, &i->operands[k]);
        if (k == 0 && which)
            continue; /* the result */
        addresses += v && (which >> k & 1);
        plain += !v && (which >> k & 1);
        if (v && !(which >> k & 1) && !note_access(i, k, v) && !compares_addresses(w, i, v))
            v->escapes = true;
    }
    if (which && i->guard)
        check_same(w, i->operands[0].reg, w->ssa->values[i->operands[0].reg->id].old);
    /* The sum of two addresses is none; a choice is one only between two in the same variable. */
    if (i->form->op == HED_PTX_OP_ADD ? addresses > 1 : addresses && plain) {
        let_escape(operand_local(w->s, &i->operands[1]));
        let_escape(operand_local(w->s, &i->operands[2]));
    }
    if (i->form->op == HED_PTX_OP_SELP && addresses > 1 &&
        operand_local(w->s, &i->operands[1]) != operand_local(w->s, &i->operands[2])) {
        let_escape(operand_local(w->s, &i->operands[1]));
        let_escape(operand_local(w->s, &i->operands[2]));
    }
}

static void
check_uses_in(const struct follow *w, const struct hed_flow_block *b)
{
    for (const struct hed_flow_phi *p = b->phis; p; p = p->next)
        for (uint32_t k = 0; k < b->nbefore; k++)
            check_same(w, p->to, p->from[k]);
    for (uint32_t i = 0; i < b->ninsts; i++)
        check_use(w, b->insts[i]);
}

/* All elements have one size, or are words and pairs of words. */
static bool
lies_by_elements(const struct hed_local *v)
{
    return !v->escapes && v->unit && v->var->size % v->unit == 0 &&
           (v->unit == v->largest || v->unit == 4);
}

/* ---- the pass -------------------------------------------------------------------------------- */

const struct hed_local *
hed_locals_find(const struct hed_locals *s, const struct hed_ptx_var *v)
{
    const struct hed_local *local = find_local(s, v);

    return local && !local->escapes ? local : NULL;
}

const struct hed_local *
hed_locals_accessed(const struct hed_locals *s, const struct hed_ptx_operand *memory)
{
    const struct hed_local *local = operand_local(s, memory);

    return local && !local->escapes ? local : NULL;
}

int
hed_locals_init(struct hed_locals *s, struct hed_flow *f, const struct hed_ssa *ssa)
{
    struct follow w = {.s = s, .f = f, .ssa = ssa};

    *s = (struct hed_locals){.vars = hed_flow_alloc(f, f->func->nvars, sizeof(*s->vars)),
                             .of = hed_flow_alloc(f, f->nvalues, sizeof(*s->of))};
    if (!s->vars || !s->of)
        return HED_ENOMEM;
    for (const struct hed_ptx_var *v = f->func->vars; v; v = v->next)
        if (v->space == HED_PTX_SPACE_LOCAL)
            s->vars[s->nvars++].var = v;
    do {
        w.changed = false;
        for (uint32_t b = 0; s->nvars && b < f->nblocks; b++)
            follow_in(&w, &f->blocks[b]);
    } while (w.changed);
    for (uint32_t b = 0; s->nvars && b < f->nblocks; b++)
        check_uses_in(&w, &f->blocks[b]);
    for (uint32_t i = 0; i < s->nvars; i++)
        s->vars[i].escapes = !lies_by_elements(&s->vars[i]);
    for (uint32_t v = 0; s->nvars && v < f->nvalues; v++)
        if (s->of[v] && s->of[v]->escapes)
            s->of[v] = NULL;
    return 0;
}
