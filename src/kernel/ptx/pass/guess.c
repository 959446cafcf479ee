/* Finds the loops, and what to ask before them. See guess.h. */
#include "kernel/ptx/pass/guess.h"

#include "kernel/ptx/pass/transfer.h"

#define BLOCKS_MAX 12 /* of the loop */

struct guessing {
    struct hed_flow *f;
    const struct hed_uniforms *known;
    struct hed_guess *guess;
    uint32_t loop;
    bool fails;
};

bool
hed_guess_tests(const struct hed_guess *g, uint32_t id)
{
    for (uint32_t i = 0; i < g->ntested; i++)
        if (g->tested[i] == id)
            return true;
    return false;
}

static bool
is_value_inside(const struct guessing *g, uint32_t id)
{
    return hed_ssa_is_made_in(g->known->ssa, g->f, id, g->loop);
}

static bool
is_same_class(const struct hed_uniform *a, const struct hed_uniform *b)
{
    return a->kind == b->kind && a->step == b->step && a->offsets == b->offsets;
}

/* Notes a value that must be tested: it comes from outside, and the guess says more of it. */
static void
note_tested(struct guessing *g, uint32_t id)
{
    struct hed_guess *guess = g->guess;
    const struct hed_uniform *known = &g->known->values[id], *guessed = &guess->u.values[id];

    /* Bits that are the same in all lanes cannot be tested. */
    if (known->kind == HED_VARIES && guessed->kind == HED_VARIES && guessed->same & ~known->same) {
        g->fails = true;
        return;
    }
    if (is_same_class(known, guessed) || hed_guess_tests(guess, id))
        return;
    if (guess->ntested == HED_GUESS_MAX || hed_ptx_types[g->f->values[id]->type].bits < 32) {
        g->fails = true;
        return;
    }
    guess->tested[guess->ntested++] = id;
}

static void
note_outer_read(void *arg, const struct hed_ptx_reg **reg)
{
    struct guessing *g = arg;

    if (!is_value_inside(g, (*reg)->id))
        note_tested(g, (*reg)->id);
}

/* What lanes keep for which a guard does not hold is read, too. */
static void
note_outer_old(void *arg, const struct hed_ptx_reg **reg)
{
    const struct guessing *g = arg;
    const struct hed_ptx_reg *old = g->known->ssa->values[(*reg)->id].old;

    if (old)
        note_outer_read(arg, &old);
}

/* Everything that the loop takes from outside. */
static void
find_tested(struct guessing *g)
{
    const struct hed_flow_loop *loop = &g->f->loops[g->loop];

    for (const struct hed_flow_phi *p = g->f->blocks[loop->header].phis; p; p = p->next)
        note_tested(g, p->to->id);
    for (uint32_t b = loop->header; b <= loop->last; b++) {
        const struct hed_flow_block *block = &g->f->blocks[b];

        for (uint32_t i = 0; i < block->ninsts; i++) {
            hed_flow_each_read(block->insts[i], note_outer_read, g);
            hed_flow_each_write(block->insts[i], note_outer_old, g);
        }
        if (block->last)
            hed_flow_each_read((struct hed_ptx_inst *)block->last, note_outer_read, g);
        for (uint32_t k = 0; k < block->nnext; k++) {
            const uint32_t edge = hed_flow_edge(g->f, b, block->next[k]);

            for (struct hed_flow_phi *p = g->f->blocks[block->next[k]].phis; p; p = p->next)
                if (p->from[edge])
                    note_outer_read(g, &p->from[edge]);
        }
    }
}

/* Takes what is known for values from outside that are not tested; tested ones did not wrap. */
static void
limit_guess(struct guessing *g)
{
    struct hed_uniform *values = g->guess->u.values;

    for (uint32_t v = 0; v < g->f->nvalues; v++) {
        if (!hed_guess_tests(g->guess, v) && !is_value_inside(g, v))
            values[v] = g->known->values[v];
        if (values[v].kind == HED_ROWS && values[v].wraps != HED_FLOW_NONE &&
            !is_value_inside(g, values[v].wraps) &&
            g->known->values[values[v].wraps].kind == HED_VARIES) {
            values[v].wraps = HED_FLOW_NONE;
            values[v].wrap = 0;
        }
    }
}

/* ---- is it worth it? ------------------------------------------------------------------------- */

/* Does an access become a row, or one address? */
static bool
becomes_row(const struct guessing *g, const struct hed_ptx_inst *i)
{
    struct hed_uniform at;

    if (i->form->op != HED_PTX_OP_LD && i->form->op != HED_PTX_OP_ST)
        return false;
    at = hed_uniform_memory(&g->guess->u, i);
    return hed_uniform_memory(g->known, i).kind == HED_VARIES &&
           (at.kind == HED_UNIFORM ||
            (at.kind == HED_ROWS && at.step == (int64_t)hed_uniform_bytes(i)));
}

static bool
may_block_be_made_twice(const struct guessing *g, uint32_t b, bool *helps)
{
    const struct hed_flow_block *block = &g->f->blocks[b];

    for (uint32_t i = 0; i < block->ninsts; i++) {
        const struct hed_ptx_inst *inst = block->insts[i];
        const enum hed_ptx_nature nature = hed_ptx_op_nature(inst->form->op);

        if (inst->is_refused || (nature != HED_PTX_COMPUTES && inst->form->op != HED_PTX_OP_LD &&
                                 inst->form->op != HED_PTX_OP_ST))
            return false;
        *helps |= becomes_row(g, inst);
    }
    for (uint32_t k = 0; k < block->nnext; k++)
        for (struct hed_flow_phi *p = g->f->blocks[block->next[k]].phis; p; p = p->next)
            if (!is_value_inside(g, p->to->id) &&
                g->known->values[p->to->id].wraps != HED_FLOW_NONE)
                return false;
    return true;
}

static bool
is_worth_guessing(const struct guessing *g)
{
    const struct hed_flow_loop *loop = &g->f->loops[g->loop];
    bool helps = false;

    for (uint32_t b = loop->header; b <= loop->last; b++)
        if (!may_block_be_made_twice(g, b, &helps))
            return false;
    return helps;
}

/* Returns whether there was memory. */
static bool
guess_loop(struct guessing *g, struct hed_guess **out)
{
    const struct hed_uniforms *u = g->known;

    g->guess = hed_flow_alloc(g->f, 1, sizeof(*g->guess));
    if (!g->guess)
        return false;
    g->guess->tested = hed_flow_alloc(g->f, HED_GUESS_MAX, sizeof(uint32_t));
    if (!g->guess->tested ||
        hed_uniforms_init_in(&g->guess->u, g->f, u->ssa, u->rows, g->loop) != 0)
        return false;
    find_tested(g);
    limit_guess(g);
    if (!g->fails && g->guess->ntested && is_worth_guessing(g))
        *out = g->guess;
    return true;
}

struct hed_guess **
hed_guess_init(struct hed_flow *f, const struct hed_uniforms *u)
{
    struct hed_guess **all = hed_flow_alloc(f, f->nloops, sizeof(*all));

    for (uint32_t l = 0; all && l < f->nloops; l++) {
        struct guessing g = {.f = f, .known = u, .loop = l};

        /* Inner loops only: they take the time. */
        for (uint32_t k = 0; k < f->nloops; k++)
            g.fails |= f->loops[k].parent == l;
        if (g.fails || u->width != 32 || f->loops[l].last - f->loops[l].header >= BLOCKS_MAX)
            continue;
        if (!guess_loop(&g, &all[l]))
            return NULL;
    }
    return all;
}
