/* Which values are wanted where a guard holds, and nowhere else. See tidy.h.
 *
 * From the instructions that act (stores, branches) back to those that compute: a value is wanted
 * nowhere, under one guard, or anywhere. What an instruction without a guard computes with is
 * wanted where its result is; with a guard, under that. The old value of a guarded write is wanted
 * where the guard does not hold; nowhere, if the result is wanted under that guard alone.
 *
 * The guard is a value, so it is the same in an instruction that writes under it and in one that
 * reads under it: whoever made the guard once more, in a loop, made the value once more, too. What
 * a phi takes along an edge is wanted where lanes go along it: under the guard of the branch.
 */
#include "kernel/ptx/pass/tidy.h"

#include "base/err.h"

enum want { WANTED_NOWHERE, WANTED_UNDER, WANTED_ANYWHERE };

struct wish {
    uint8_t want; /* enum want */
    bool negated;
    const struct hed_ptx_reg *guard; /* with WANTED_UNDER */
};

struct tidying {
    struct hed_flow *f;
    struct hed_ssa *s;
    struct wish *wishes; /* by value */
    bool changed;
};

static const struct wish nowhere = {.want = WANTED_NOWHERE};
static const struct wish anywhere = {.want = WANTED_ANYWHERE};

static bool
is_same_wish(const struct wish *a, const struct wish *b)
{
    return a->want == b->want && a->guard == b->guard && a->negated == b->negated;
}

static struct wish
join_wishes(struct wish a, struct wish b)
{
    if (a.want == WANTED_NOWHERE)
        return b;
    return b.want == WANTED_NOWHERE || is_same_wish(&a, &b) ? a : anywhere;
}

static void
want_value(struct tidying *t, const struct hed_ptx_reg *r, struct wish wish)
{
    struct wish *was = &t->wishes[r->id];
    const struct wish now = join_wishes(*was, wish);

    if (is_same_wish(was, &now))
        return;
    *was = now;
    t->changed = true;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* Does it nothing but compute its results, so that it may as well run for more lanes? */
static bool
is_pure(const struct hed_ptx_inst *i)
{
    if (i->is_refused || (i->form->flags & HED_PTX_FLAG(CC)) ||
        hed_ptx_op_nature(i->form->op) != HED_PTX_COMPUTES)
        return false;
    switch (i->form->op) {
    case HED_PTX_OP_ADDC: /* they read the carry, which is no value */
    case HED_PTX_OP_SUBC:
    case HED_PTX_OP_MADC:
        return false;
    default:
        return true;
    }
}

static struct wish
wish_of_guard(const struct hed_ptx_inst *i)
{
    return (struct wish){WANTED_UNDER, i->guard_negated, i->guard};
}

struct visit {
    struct tidying *t;
    const struct hed_ptx_inst *inst;
    struct wish wish;
};

static void
join_result(void *arg, const struct hed_ptx_reg **reg)
{
    struct visit *v = arg;

    v->wish = join_wishes(v->wish, v->t->wishes[(*reg)->id]);
}

static void
want_old(void *arg, const struct hed_ptx_reg **reg)
{
    const struct visit *v = arg;
    const struct hed_ptx_reg *old = v->t->s->values[(*reg)->id].old;
    const struct wish own = wish_of_guard(v->inst), *wish = &v->t->wishes[(*reg)->id];
    struct wish others = own;

    others.negated = !own.negated;
    if (old && wish->want != WANTED_NOWHERE && !is_same_wish(wish, &own))
        want_value(v->t, old, others);
}

static void
want_read(void *arg, const struct hed_ptx_reg **reg)
{
    const struct visit *v = arg;

    want_value(v->t, *reg, v->wish);
}

static void
tidy_inst(struct tidying *t, struct hed_ptx_inst *i)
{
    struct visit v = {.t = t, .inst = i, .wish = nowhere};
    const struct hed_ptx_reg *guard = i->guard;
    const struct wish own = wish_of_guard(i);
    bool obeys;

    hed_flow_each_write(i, join_result, &v);
    if (is_pure(i) && v.wish.want == WANTED_NOWHERE)
        return;
    obeys = !is_pure(i) || !is_same_wish(&v.wish, &own);
    if (guard) {
        hed_flow_each_write(i, want_old, &v);
        if (obeys)
            want_value(t, guard, anywhere);
        v.wish = own;
    } else if (!is_pure(i)) {
        v.wish = anywhere;
    }
    i->guard = NULL; /* which is among what it reads */
    hed_flow_each_read(i, want_read, &v);
    i->guard = guard;
}

static void
want_anywhere(void *arg, const struct hed_ptx_reg **reg)
{
    want_value(arg, *reg, anywhere);
}

/* Where do lanes go from one block to another? */
static struct wish
wish_of_edge(const struct hed_flow *f, uint32_t from, uint32_t to)
{
    const struct hed_flow_block *b = &f->blocks[from];
    struct wish wish = anywhere;

    if (!b->last || !b->last->guard)
        return anywhere;
    wish = wish_of_guard(b->last);
    switch (b->end) {
    case HED_FLOW_BRANCHES:
        wish.negated ^= to != b->next[0];
        return wish;
    case HED_FLOW_LEAVES_IF:
        wish.negated = !wish.negated;
        return wish;
    case HED_FLOW_LEAVES_UNLESS:
        return wish;
    default:
        return anywhere;
    }
}

static void
tidy_block(struct tidying *t, uint32_t b)
{
    const struct hed_flow_block *block = &t->f->blocks[b];

    if (block->last)
        hed_flow_each_read((struct hed_ptx_inst *)block->last, want_anywhere, t);
    for (uint32_t i = block->ninsts; i-- > 0;)
        tidy_inst(t, block->insts[i]);
    for (const struct hed_flow_phi *p = block->phis; p; p = p->next)
        for (uint32_t k = 0; k < block->nbefore; k++)
            if (p->from[k] && t->wishes[p->to->id].want != WANTED_NOWHERE)
                want_value(t, p->from[k], wish_of_edge(t->f, block->before[k], b));
}

/* ---- guards ---------------------------------------------------------------------------------- */

static void
forget_old(void *arg, const struct hed_ptx_reg **reg)
{
    struct tidying *t = arg;

    t->s->values[(*reg)->id].old = NULL;
}

/* Takes the guard away if nobody sees where it does not hold. A guard that stays may still have
 * nothing to keep. */
static bool
drop_guard(struct tidying *t, struct hed_ptx_inst *i)
{
    struct visit v = {.t = t, .inst = i, .wish = nowhere};
    const struct wish own = wish_of_guard(i);

    if (!i->guard)
        return false;
    hed_flow_each_write(i, join_result, &v);
    if (!is_same_wish(&v.wish, &own))
        return false;
    hed_flow_each_write(i, forget_old, t);
    if (!is_pure(i))
        return false;
    i->guard = NULL;
    i->guard_negated = false;
    return true;
}

/* ---- wholes ---------------------------------------------------------------------------------- */

static bool
is_plain_register(const struct hed_ptx_operand *o, unsigned bits)
{
    return o->kind == HED_PTX_OPERAND_REG && !o->sel && !o->negated &&
           hed_ptx_types[o->reg->type].bits == bits;
}

/* The value that a number of 64 bits was moved from, through all moves. */
static const struct hed_ptx_reg *
origin_of(const struct tidying *t, const struct hed_ptx_reg *r)
{
    for (;;) {
        const struct hed_ptx_inst *i = t->s->values[r->id].made_by;

        if (!i || i->guard || i->is_refused || i->form->op != HED_PTX_OP_MOV ||
            !is_plain_register(&i->operands[0], 64) || !is_plain_register(&i->operands[1], 64))
            return r;
        r = i->operands[1].reg;
    }
}

/* The number whose lower (0) or upper (1) word a value is; NULL if it is not known. */
static const struct hed_ptx_reg *
whole_of(const struct tidying *t, const struct hed_ptx_operand *word, unsigned half)
{
    const struct hed_ptx_inst *i;
    const struct hed_ptx_operand *o;

    if (!is_plain_register(word, 32))
        return NULL;
    i = t->s->values[word->reg->id].made_by;
    if (!i || i->guard || i->is_refused || i->noperands != 2 ||
        !is_plain_register(&i->operands[1], 64))
        return NULL;
    o = &i->operands[0];
    if (i->form->op == HED_PTX_OP_CVT && half == 0 && i->form->ntypes == 2 && i->form->flags == 0 &&
        i->form->types[0] == HED_PTX_TYPE_U32 && i->form->types[1] == HED_PTX_TYPE_U64)
        return origin_of(t, i->operands[1].reg);
    if (i->form->op == HED_PTX_OP_MOV && o->kind == HED_PTX_OPERAND_VEC && o->count == 2 &&
        o->elems[half].kind == HED_PTX_OPERAND_REG && o->elems[half].reg == word->reg)
        return origin_of(t, i->operands[1].reg);
    return NULL;
}

/* A number that is put together of the words of one becomes that. */
static bool
find_whole(const struct tidying *t, struct hed_ptx_inst *i)
{
    struct hed_ptx_operand *words = &i->operands[1];
    const struct hed_ptx_reg *low, *high;

    if (i->is_refused || i->form->op != HED_PTX_OP_MOV || i->noperands != 2 ||
        words->kind != HED_PTX_OPERAND_VEC || words->count != 2 ||
        !is_plain_register(&i->operands[0], 64))
        return false;
    low = whole_of(t, &words->elems[0], 0);
    high = whole_of(t, &words->elems[1], 1);
    if (!low || low != high)
        return false;
    *words = (struct hed_ptx_operand){.kind = HED_PTX_OPERAND_REG, .reg = low};
    return true;
}

int
hed_tidy(struct hed_flow *f, struct hed_ssa *s, struct hed_tidied *did)
{
    struct tidying t = {.f = f, .s = s, .changed = true};

    *did = (struct hed_tidied){0};
    t.wishes = hed_flow_alloc(f, f->nvalues, sizeof(*t.wishes));
    if (!t.wishes)
        return HED_ENOMEM;
    while (t.changed) {
        t.changed = false;
        for (uint32_t b = f->nblocks; b-- > 0;)
            tidy_block(&t, b);
    }
    for (uint32_t b = 0; b < f->nblocks; b++)
        for (uint32_t i = 0; i < f->blocks[b].ninsts; i++)
            did->guards += drop_guard(&t, f->blocks[b].insts[i]);
    for (uint32_t b = 0; b < f->nblocks; b++)
        for (uint32_t i = 0; i < f->blocks[b].ninsts; i++)
            did->wholes += find_whole(&t, f->blocks[b].insts[i]);
    return hed_ssa_find_reads(s, f);
}
