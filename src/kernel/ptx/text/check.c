/* Checks operands against the patterns of their form, by the type rules of the PTX manual; and
 * finds the functions that cannot run because of the functions they call.
 */
#include "kernel/ptx/text/check.h"

#include <string.h>

#include "kernel/ptx/text/parser.h"

static const char mismatch[] = "Arguments mismatch for instruction '%s'";
static const char wrong_space[] =
    "State space mismatch between instruction and address in instruction '%s'";
static const char no_sreg[] = "Special register argument not allowed for instruction '%s'";
static const char bad_address[] = "Illegal address operand of instruction '%s'";
static const char no_predicate[] = "Predicate output expected for instruction '%s'";
static const char need_bool[] = "Boolean operation is required for instruction '%s'";

/* Instructions whose registers may be wider than the type: "operand type checking relaxed". */
static bool
is_relaxed(unsigned op)
{
    switch (op) {
    case HED_PTX_OP_LD:
    case HED_PTX_OP_LDU:
    case HED_PTX_OP_ST:
    case HED_PTX_OP_CVT:
    case HED_PTX_OP_SULD:
    case HED_PTX_OP_SUST:
    case HED_PTX_OP_ST_ASYNC:
        return true;
    default:
        return false;
    }
}

static bool
is_integer_kind(uint8_t kind)
{
    return kind == HED_PTX_KIND_U || kind == HED_PTX_KIND_S || kind == HED_PTX_KIND_B;
}

bool
hed_ptx_fits(enum hed_ptx_type reg, enum hed_ptx_type type, bool relaxed)
{
    const struct hed_ptx_type_info *r = &hed_ptx_types[reg];
    const struct hed_ptx_type_info *t = &hed_ptx_types[type];
    const bool same = r->bits == t->bits;
    const bool wider = relaxed && r->bits > t->bits;

    if (reg == type)
        return true;
    if (r->kind == HED_PTX_KIND_P || t->kind == HED_PTX_KIND_P)
        return false;
    switch (t->kind) {
    case HED_PTX_KIND_B:
        return same || wider;
    case HED_PTX_KIND_U:
    case HED_PTX_KIND_S:
        return is_integer_kind(r->kind) && (same || wider);
    case HED_PTX_KIND_F:
        return r->kind == HED_PTX_KIND_B && (same || wider);
    case HED_PTX_KIND_X:
        return same || wider || (is_integer_kind(r->kind) && t->bits < 16 && r->bits == 16);
    default:
        return false;
    }
}

/* Does a single register, with its component, fit a slot? */
static bool
reg_fits(const struct hed_ptx_operand *o, const struct hed_ptx_slot *s, bool relaxed)
{
    const uint8_t type = o->reg->type;
    const struct hed_ptx_type_info *t = &hed_ptx_types[type];

    if (o->reg->vec && !o->sel)
        return s->role == 'x';
    if (s->type)
        return hed_ptx_fits(type, s->type, relaxed);
    if (s->is_address)
        return is_integer_kind(t->kind) && (t->bits == 32 || t->bits == 64);
    return s->size == 0 || (t->bits == s->size && is_integer_kind(t->kind));
}

static bool
is_float_slot(const struct hed_ptx_slot *s)
{
    const uint8_t kind = hed_ptx_types[s->type].kind;

    return kind == HED_PTX_KIND_F || s->type == HED_PTX_TYPE_BF16 || s->type == HED_PTX_TYPE_BF16X2;
}

/* Integer constants fit integers, float constants floats, and bits take both. */
static bool
constant_fits(const struct hed_ptx_operand *o, const struct hed_ptx_slot *s)
{
    if (s->type == HED_PTX_TYPE_F16 || s->type == HED_PTX_TYPE_F16X2)
        return true;
    if (o->kind == HED_PTX_OPERAND_INT)
        return !is_float_slot(s) || s->type == HED_PTX_TYPE_BF16 || s->type == HED_PTX_TYPE_BF16X2;
    return is_float_slot(s) || !s->type || hed_ptx_types[s->type].kind == HED_PTX_KIND_B ||
           hed_ptx_types[s->type].kind == HED_PTX_KIND_X;
}

static bool
allows_sreg(unsigned op)
{
    return op == HED_PTX_OP_MOV || op == HED_PTX_OP_CVT || op == HED_PTX_OP_CVTA;
}

/* A source that is not a vector. NULL if it fits, else the complaint. */
static const char *
check_source(const struct hed_ptx_inst *i, const struct hed_ptx_slot *s,
             const struct hed_ptx_operand *o)
{
    if (o->negated && s->type != HED_PTX_TYPE_PRED && i->form->op != HED_PTX_OP_VMAD)
        return mismatch;
    switch (o->kind) {
    case HED_PTX_OPERAND_REG:
        return reg_fits(o, s, is_relaxed(i->form->op)) ? NULL : mismatch;
    case HED_PTX_OPERAND_INT:
    case HED_PTX_OPERAND_FLOAT:
        return constant_fits(o, s) ? NULL : mismatch;
    case HED_PTX_OPERAND_SREG:
        return allows_sreg(i->form->op) ? NULL : no_sreg;
    case HED_PTX_OPERAND_VAR:
    case HED_PTX_OPERAND_FUNC:
    case HED_PTX_OPERAND_LABEL:
    case HED_PTX_OPERAND_NONE:
        return s->role == 'M' || s->is_address ? NULL : mismatch;
    default:
        return mismatch;
    }
}

static const char *
check_dest(const struct hed_ptx_inst *i, const struct hed_ptx_slot *s,
           const struct hed_ptx_operand *o)
{
    if (o->kind == HED_PTX_OPERAND_SINK)
        return NULL;
    if (o->kind == HED_PTX_OPERAND_REG && !o->negated && reg_fits(o, s, is_relaxed(i->form->op)))
        return NULL;
    return mismatch;
}

/* A scalar may be written as a vector of one. */
static bool
is_vector(const struct hed_ptx_slot *s, const struct hed_ptx_operand *o)
{
    return s->arity || o->kind == HED_PTX_OPERAND_VEC;
}

/* Checks each element of a vector as if it stood alone. */
static const char *
check_elements(const struct hed_ptx_inst *i, const struct hed_ptx_slot *s,
               const struct hed_ptx_operand *o, bool is_dest)
{
    if (o->kind == HED_PTX_OPERAND_REG && s->arity && o->reg->vec == s->arity)
        return hed_ptx_fits(o->reg->type, s->type, is_relaxed(i->form->op)) ? NULL : mismatch;
    if (o->kind != HED_PTX_OPERAND_VEC || o->count != (s->arity ? s->arity : 1))
        return mismatch;
    for (uint32_t k = 0; k < o->count; k++) {
        const char *why =
            is_dest ? check_dest(i, s, &o->elems[k]) : check_source(i, s, &o->elems[k]);

        if (!is_dest && o->elems[k].kind == HED_PTX_OPERAND_SINK)
            continue;
        if (why)
            return why;
    }
    return NULL;
}

/* The destination a|p, or a alone. */
static const char *
check_destination_pair(const struct hed_ptx_inst *i, const struct hed_ptx_slot *s,
                       const struct hed_ptx_operand *o)
{
    const struct hed_ptx_slot predicate = {.role = 'd', .type = HED_PTX_TYPE_PRED};

    if (o->kind == HED_PTX_OPERAND_PAIR) {
        if (check_dest(i, &predicate, &o->elems[1]))
            return no_predicate;
        o = &o->elems[0];
    }
    return is_vector(s, o) ? check_elements(i, s, o, true) : check_dest(i, s, o);
}

/* A vector that splits or joins a value: mov.b64 {a, b}, c */
static const char *
check_split_value(const struct hed_ptx_slot *s, const struct hed_ptx_operand *o)
{
    unsigned bits = hed_ptx_types[s->type].bits;

    if (o->count != 2 && o->count != 4 && o->count != 8)
        return "Illegal vector size in instruction '%s'";
    bits /= o->count;
    for (uint32_t k = 0; k < o->count; k++) {
        const struct hed_ptx_operand *e = &o->elems[k];

        if (e->kind == HED_PTX_OPERAND_REG && hed_ptx_types[e->reg->type].bits != bits)
            return mismatch;
        if (e->kind != HED_PTX_OPERAND_REG && e->kind != HED_PTX_OPERAND_SINK &&
            e->kind != HED_PTX_OPERAND_INT && e->kind != HED_PTX_OPERAND_FLOAT)
            return mismatch;
    }
    return NULL;
}

static unsigned
base_space(unsigned space)
{
    switch (space) {
    case HED_PTX_SPACE_SHARED_CTA:
    case HED_PTX_SPACE_SHARED_CLUSTER:
        return HED_PTX_SPACE_SHARED;
    case HED_PTX_SPACE_PARAM_ENTRY:
    case HED_PTX_SPACE_PARAM_FUNC:
        return HED_PTX_SPACE_PARAM;
    default:
        return space;
    }
}

/* [..]; nth is the number of the memory operand: each has its own state space. */
static const char *
check_memory_operand(const struct hed_ptx_inst *i, const struct hed_ptx_operand *o, unsigned nth)
{
    const struct hed_ptx_form *f = i->form;
    const unsigned space = base_space(nth < f->nspaces ? f->spaces[nth] : HED_PTX_SPACE_NONE);

    if (o->kind == HED_PTX_OPERAND_VAR && (f->op == HED_PTX_OP_LD || f->op == HED_PTX_OP_ST))
        return NULL; /* ld.global.u32 a, arr[2] */
    if (o->kind != HED_PTX_OPERAND_MEM)
        return mismatch;
    if (o->base == HED_PTX_OPERAND_REG) {
        const struct hed_ptx_slot address = {.role = 's', .is_address = true};
        struct hed_ptx_operand reg = *o;

        reg.kind = HED_PTX_OPERAND_REG;
        return reg_fits(&reg, &address, false) ? NULL : bad_address;
    }
    if (o->base == HED_PTX_OPERAND_VAR)
        return space && f->nspaces <= 1 && base_space(o->var->space) != space ? wrong_space : NULL;
    return o->base == HED_PTX_OPERAND_INT ? NULL : bad_address;
}

bool
hed_ptx_is_wanted(const struct hed_ptx_operand *o, uint8_t want)
{
    if (o->kind == HED_PTX_OPERAND_NONE)
        return true;
    if (want == HED_PTX_WANT_LABEL)
        return o->kind == HED_PTX_OPERAND_LABEL;
    return o->kind == HED_PTX_OPERAND_TABLE &&
           (o->table->kind == HED_PTX_TABLE_BRANCH) == (want == HED_PTX_WANT_BRANCHES);
}

static const char *
check_operand(const struct hed_ptx_inst *i, const struct hed_ptx_slot *s,
              const struct hed_ptx_operand *o, unsigned *memories)
{
    switch (s->role) {
    case 'd':
        return check_dest(i, s, o);
    case 'D':
        return check_destination_pair(i, s, o);
    case 'v':
        return is_vector(s, o) ? check_elements(i, s, o, true) : check_dest(i, s, o);
    case 'u':
        return is_vector(s, o) ? check_elements(i, s, o, false) : check_source(i, s, o);
    case 's':
        return check_source(i, s, o);
    case 'V':
        if (!s->type)
            return o->kind == HED_PTX_OPERAND_VEC || o->kind == HED_PTX_OPERAND_REG ? NULL
                                                                                    : mismatch;
        return o->kind == HED_PTX_OPERAND_VEC ? check_split_value(s, o) : check_dest(i, s, o);
    case 'M':
        return o->kind == HED_PTX_OPERAND_VEC ? check_split_value(s, o) : check_source(i, s, o);
    case 'm':
        return check_memory_operand(i, o, (*memories)++);
    case 'T':
        return o->kind == HED_PTX_OPERAND_TUPLE || o->kind == HED_PTX_OPERAND_MEM ? NULL : mismatch;
    case 'l':
        return hed_ptx_is_wanted(o, i->form->op == HED_PTX_OP_BRA ? HED_PTX_WANT_LABEL
                                                                  : HED_PTX_WANT_BRANCHES)
                   ? NULL
                   : mismatch;
    default:
        return NULL;
    }
}

static const char *
check_pattern(const struct hed_ptx_inst *i, const struct hed_ptx_pattern *p)
{
    unsigned memories = 0;

    if (i->noperands < p->least || i->noperands > p->most)
        return mismatch;
    for (unsigned k = 0; k < i->noperands && p->slots[k].role; k++) {
        const char *why = check_operand(i, &p->slots[k], &i->operands[k], &memories);

        if (why)
            return why;
    }
    return NULL;
}

/* Checks what the patterns cannot express: rules between operands and modifiers. */
static const char *
check_modifier_rules(const struct hed_ptx_inst *i)
{
    const struct hed_ptx_form *f = i->form;

    switch (f->op) {
    case HED_PTX_OP_SETP:
    case HED_PTX_OP_SET:
        return (i->noperands == 4) != (f->oper != 0) ? need_bool : NULL;
    case HED_PTX_OP_SHFL:
        return (i->noperands == 5) != ((f->flags & HED_PTX_FLAG(SYNC)) != 0) ? mismatch : NULL;
    case HED_PTX_OP_VOTE:
        return (i->noperands == 3) != ((f->flags & HED_PTX_FLAG(SYNC)) != 0) ? mismatch : NULL;
    case HED_PTX_OP_CALL:
        if (i->operands[1].kind == HED_PTX_OPERAND_FUNC &&
            (i->operands[0].count != i->operands[1].func->sig.nrets ||
             i->operands[2].count != i->operands[1].func->sig.nparams))
            return mismatch;
        if (i->noperands == 4 && !hed_ptx_is_wanted(&i->operands[3], HED_PTX_WANT_CALLS))
            return mismatch;
        return NULL;
    case HED_PTX_OP_MMA:
    case HED_PTX_OP_WMMA_LOAD:
    case HED_PTX_OP_WMMA_STORE:
    case HED_PTX_OP_WMMA_MMA:
    case HED_PTX_OP_LDMATRIX:
    case HED_PTX_OP_STMATRIX:
        return hed_ptx_check_matrix(i) ? NULL : mismatch;
    default:
        return NULL;
    }
}

void
hed_ptx_check_inst(struct hed_ptx_parser *p, struct hed_ptx_inst *i)
{
    const char *why = NULL;

    for (uint8_t k = 0; k < i->form->npatterns; k++) {
        const char *now = check_pattern(i, &i->form->patterns[k]);

        if (!now) {
            i->pattern = k;
            why = check_modifier_rules(i);
            break;
        }
        why = k == 0 ? now : mismatch;
    }
    if (why) {
        const char *mark = strstr(why, "%s");
        const int head = (int)(mark - why);

        hed_ptx_error_at(p, p->line, p->column, "%.*s%s%s", head, why, hed_ptx_op_text(i->form->op),
                         mark + 2);
    }
}

/* A call through a register may reach every function whose address is taken somewhere, but mostly
 * reaches few of them: what cannot be run there is a matter of the run. */
static const struct hed_ptx_refusal *
refused_by_calls(const struct hed_ptx_func *f)
{
    if (f->alias && f->alias->refused)
        return f->alias->refused;
    for (const struct hed_ptx_call *c = f->calls; c; c = c->next) {
        if (c->callee->refused)
            return c->callee->refused;
    }
    return NULL;
}

void
hed_ptx_spread_refusals(struct hed_ptx_parser *p)
{
    bool any = false;

    for (const struct hed_ptx_func *f = p->m->funcs; f; f = f->next)
        any = any || f->refused;
    while (any) {
        any = false;
        for (struct hed_ptx_func *f = p->m->funcs; f; f = f->next) {
            if (f->refused)
                continue;
            f->refused = refused_by_calls(f);
            any = any || f->refused;
        }
    }
    for (const struct hed_ptx_func *f = p->m->funcs; f; f = f->next)
        p->m->nrefused += f->refused != NULL;
}
