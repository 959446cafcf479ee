/* Static single assignment form. See ssa.h.
 *
 *   live      which registers are read later, at the beginning of each block
 *   place     phis where several writes of a live register meet, and at the exits of loops
 *   rename    walks down the tree of dominators with the current value of each register
 */
#include "kernel/ptx/pass/ssa.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"

struct ssa {
    struct hed_ssa *out;
    struct hed_flow *f;
    uint32_t nregs, words; /* registers of the text; words of a set of them */
    uint64_t *live;        /* by block: set of registers that are live at its beginning */
    uint64_t *writes;      /* by block: written in it */
    uint64_t *reads;       /* by block: read before they are written in it */
    uint64_t *has_phi;     /* by block */
    uint32_t **frontier, *nfrontier;
    const struct hed_ptx_reg **now;  /* by register: the current value, or NULL */
    const struct hed_ptx_reg **zero; /* by register: its value before it is written, or NULL */
    uint32_t *versions;              /* by register */
    struct undo {
        uint32_t reg;
        const struct hed_ptx_reg *value;
    } * undo;
    uint32_t nundo, undo_room;
    uint32_t block; /* that is being looked at */
    const struct hed_ptx_inst *inst;
    int err;
};

static uint64_t *
set_of(uint64_t *sets, const struct ssa *s, uint32_t block)
{
    return sets + (size_t)block * s->words;
}

static bool
set_has(const uint64_t *set, uint32_t i)
{
    return set[i / 64] >> (i % 64) & 1;
}

static void
set_add(uint64_t *set, uint32_t i)
{
    set[i / 64] |= UINT64_C(1) << (i % 64);
}

/* ---- liveness -------------------------------------------------------------------------------- */

static void
note_register_read(void *arg, const struct hed_ptx_reg **reg)
{
    struct ssa *s = arg;

    if (!set_has(set_of(s->writes, s, s->block), (*reg)->id))
        set_add(set_of(s->reads, s, s->block), (*reg)->id);
}

static void
note_register_write(void *arg, const struct hed_ptx_reg **reg)
{
    struct ssa *s = arg;

    /* Lanes for which the guard does not hold keep what they had. */
    if (s->inst->guard)
        note_register_read(arg, reg);
    set_add(set_of(s->writes, s, s->block), (*reg)->id);
}

static void
note_inst(struct ssa *s, struct hed_ptx_inst *i)
{
    s->inst = i;
    hed_flow_each_read(i, note_register_read, s);
    hed_flow_each_write(i, note_register_write, s);
}

static void
find_live(struct ssa *s)
{
    bool changed = true;

    for (s->block = 0; s->block < s->f->nblocks; s->block++) {
        const struct hed_flow_block *b = &s->f->blocks[s->block];

        for (uint32_t i = 0; i < b->ninsts; i++)
            note_inst(s, b->insts[i]);
        if (b->last && b->last->guard)
            note_inst(s, (struct hed_ptx_inst *)b->last);
    }
    while (changed) {
        changed = false;
        for (uint32_t i = s->f->nblocks; i-- > 0;) {
            const struct hed_flow_block *b = &s->f->blocks[i];
            uint64_t *live = set_of(s->live, s, i);

            for (uint32_t w = 0; w < s->words; w++) {
                uint64_t out = 0, in;

                for (uint32_t k = 0; k < b->nnext; k++)
                    out |= set_of(s->live, s, b->next[k])[w];
                in = set_of(s->reads, s, i)[w] | (out & ~set_of(s->writes, s, i)[w]);
                changed |= in != live[w];
                live[w] = in;
            }
        }
    }
}

/* ---- phis ------------------------------------------------------------------------------------ */

/* The blocks where the dominance of a block ends. */
static bool
find_frontiers(struct ssa *s)
{
    struct hed_flow *f = s->f;

    s->frontier = hed_flow_alloc(f, f->nblocks, sizeof(uint32_t *));
    s->nfrontier = hed_flow_alloc(f, f->nblocks, sizeof(uint32_t));
    if (!s->frontier || !s->nfrontier)
        return false;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t b = 0; b < f->nblocks; b++) {
            if (f->blocks[b].nbefore < 2)
                continue;
            for (uint32_t k = 0; k < f->blocks[b].nbefore; k++) {
                uint32_t from = f->blocks[b].before[k];

                for (; from != f->blocks[b].dominator && from != HED_FLOW_NONE;
                     from = f->blocks[from].dominator) {
                    const uint32_t n = s->nfrontier[from];

                    if (pass == 1 && (n == 0 || s->frontier[from][n - 1] != b))
                        s->frontier[from][s->nfrontier[from]++] = b;
                    else if (pass == 0)
                        s->nfrontier[from]++;
                }
            }
        }
        for (uint32_t b = 0; pass == 0 && b < f->nblocks; b++) {
            s->frontier[b] = hed_flow_alloc(f, s->nfrontier[b], sizeof(uint32_t));
            s->nfrontier[b] = 0;
            if (!s->frontier[b])
                return false;
        }
    }
    return true;
}

/* Returns whether the block has a new phi. */
static bool
add_phi(struct ssa *s, uint32_t block, uint32_t reg)
{
    struct hed_flow_phi *phi;

    if (!set_has(set_of(s->live, s, block), reg) || set_has(set_of(s->has_phi, s, block), reg))
        return false;
    phi = hed_flow_alloc(s->f, 1, sizeof(*phi));
    if (phi)
        phi->from = hed_flow_alloc(s->f, s->f->blocks[block].nbefore, sizeof(*phi->from));
    if (!phi || !phi->from) {
        s->err = HED_ENOMEM;
        return false;
    }
    set_add(set_of(s->has_phi, s, block), reg);
    phi->origin = reg;
    phi->next = s->f->blocks[block].phis;
    s->f->blocks[block].phis = phi;
    return true;
}

/* Adds phis to the exits of the loops around a block that writes the register. */
static void
add_exit_phis(struct ssa *s, uint32_t block, uint32_t reg, uint32_t *work, uint32_t *nwork)
{
    const struct hed_flow *f = s->f;

    for (uint32_t l = f->blocks[block].loop; l != HED_FLOW_NONE; l = f->loops[l].parent) {
        for (uint32_t b = f->loops[l].header; b <= f->loops[l].last; b++) {
            for (uint32_t k = 0; k < f->blocks[b].nnext; k++) {
                const uint32_t to = f->blocks[b].next[k];

                if (!hed_flow_in_loop(f, to, l) && add_phi(s, to, reg))
                    work[(*nwork)++] = to;
            }
        }
    }
}

static void
place_phis(struct ssa *s)
{
    const uint32_t n = s->f->nblocks;
    uint32_t *work = hed_flow_alloc(s->f, 2 * (size_t)n, sizeof(uint32_t));

    if (!work) {
        s->err = HED_ENOMEM;
        return;
    }
    for (uint32_t r = 0; r < s->nregs; r++) {
        uint32_t nwork = 0;

        for (uint32_t b = 0; b < n; b++)
            if (set_has(set_of(s->writes, s, b), r))
                work[nwork++] = b;
        /* Each block is put on the list at most twice: for its write and for its phi. */
        while (nwork && !s->err) {
            const uint32_t b = work[--nwork];

            for (uint32_t i = 0; i < s->nfrontier[b]; i++)
                if (add_phi(s, s->frontier[b][i], r))
                    work[nwork++] = s->frontier[b][i];
            add_exit_phis(s, b, r, work, &nwork);
        }
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

static struct hed_ptx_reg *
make_value(struct ssa *s, const struct hed_ptx_reg *of)
{
    struct hed_ptx_reg *v = hed_flow_alloc(s->f, 1, sizeof(*v));
    const size_t size = strlen(of->name) + 12;
    char *name = hed_flow_alloc(s->f, size, 1);

    if (!v || !name || s->f->nvalues >= s->out->room) {
        s->err = HED_ENOMEM;
        return NULL;
    }
    snprintf(name, size, "%s.%u", of->name, ++s->versions[of->id]);
    *v = *of;
    v->name = name;
    v->id = s->f->nvalues;
    v->next = NULL;
    s->f->values[s->f->nvalues++] = v;
    s->out->values[v->id].block = s->block;
    return v;
}

static void
set_current_value(struct ssa *s, uint32_t reg, const struct hed_ptx_reg *value)
{
    if (s->nundo >= s->undo_room) {
        s->err = HED_ENOMEM;
        return;
    }
    s->undo[s->nundo++] = (struct undo){reg, s->now[reg]};
    s->now[reg] = value;
}

/* A register that is read but never written: a value of its own, which is 0. */
static const struct hed_ptx_reg *
current_value(struct ssa *s, const struct hed_ptx_reg *reg)
{
    if (s->now[reg->id])
        return s->now[reg->id];
    if (!s->zero[reg->id])
        s->zero[reg->id] = make_value(s, reg);
    return s->zero[reg->id];
}

static void
rename_read(void *arg, const struct hed_ptx_reg **reg)
{
    struct ssa *s = arg;
    const struct hed_ptx_reg *v = current_value(s, *reg);

    *reg = v ? v : *reg;
}

static void
rename_write(void *arg, const struct hed_ptx_reg **reg)
{
    struct ssa *s = arg;
    const struct hed_ptx_reg *old = s->now[(*reg)->id];
    struct hed_ptx_reg *v = make_value(s, *reg);

    if (!v)
        return;
    s->out->values[v->id].made_by = s->inst;
    s->out->values[v->id].old = s->inst->guard ? old : NULL;
    set_current_value(s, (*reg)->id, v);
    *reg = v;
}

static struct hed_ptx_operand *
copy_operands(struct ssa *s, const struct hed_ptx_operand *o, uint32_t n)
{
    struct hed_ptx_operand *copy = hed_flow_alloc(s->f, n, sizeof(*copy));

    for (uint32_t i = 0; copy && i < n; i++) {
        copy[i] = o[i];
        if (o[i].kind == HED_PTX_OPERAND_VEC || o[i].kind == HED_PTX_OPERAND_PAIR ||
            o[i].kind == HED_PTX_OPERAND_LIST || o[i].kind == HED_PTX_OPERAND_TUPLE) {
            copy[i].elems = copy_operands(s, o[i].elems, o[i].count);
            if (!copy[i].elems)
                return NULL;
        }
    }
    return copy;
}

/* The register that a move copies whole; NULL if it is something else. */
static const struct hed_ptx_reg *
copied_register(const struct hed_ptx_inst *i)
{
    return i && i->form->op == HED_PTX_OP_MOV && !i->is_refused &&
                   i->operands[0].kind == HED_PTX_OPERAND_REG &&
                   i->operands[1].kind == HED_PTX_OPERAND_REG
               ? i->operands[1].reg
               : NULL;
}

/* A guarded move of what the register holds anyway needs no guard. Compilers leave such moves
 * behind where they have joined branches, and the result would vary with the guard. */
static void
drop_idle_guard(struct ssa *s, struct hed_ptx_inst *i)
{
    const struct hed_ptx_reg *from = i->guard ? copied_register(i) : NULL, *old;

    if (!from)
        return;
    old = s->out->values[i->operands[0].reg->id].old;
    if (!old)
        return;

    const struct hed_ptx_inst *made = s->out->values[old->id].made_by;

    if (old == from || (made && !made->guard && copied_register(made) == from)) {
        i->guard = NULL;
        s->out->values[i->operands[0].reg->id].old = NULL;
    }
}

static struct hed_ptx_inst *
rename_inst(struct ssa *s, const struct hed_ptx_inst *i)
{
    struct hed_ptx_inst *copy = hed_flow_alloc(s->f, 1, sizeof(*copy));

    if (copy) {
        *copy = *i;
        copy->operands = copy_operands(s, i->operands, i->noperands);
    }
    if (!copy || !copy->operands) {
        s->err = HED_ENOMEM;
        return NULL;
    }
    s->inst = copy;
    hed_flow_each_read(copy, rename_read, s);
    hed_flow_each_write(copy, rename_write, s);
    if (!s->err)
        drop_idle_guard(s, copy);
    return copy;
}

static void
rename_block(struct ssa *s, const struct hed_ptx_reg *const *regs)
{
    struct hed_flow_block *b = &s->f->blocks[s->block];

    for (struct hed_flow_phi *p = b->phis; p; p = p->next) {
        p->to = make_value(s, regs[p->origin]);
        if (!p->to)
            return;
        s->out->values[p->to->id].phi = p;
        set_current_value(s, p->origin, p->to);
    }
    for (uint32_t i = 0; i < b->ninsts && !s->err; i++)
        b->insts[i] = rename_inst(s, b->insts[i]);
    if (b->last && !s->err)
        b->last = rename_inst(s, b->last);
    for (uint32_t k = 0; k < b->nnext; k++) {
        const struct hed_flow_block *to = &s->f->blocks[b->next[k]];

        for (struct hed_flow_phi *p = to->phis; p; p = p->next)
            for (uint32_t i = 0; i < to->nbefore; i++)
                if (to->before[i] == s->block)
                    p->from[i] = s->now[p->origin];
    }
}

/* Blocks in the order of the tree of dominators; what a block changed is undone behind its last
 * descendant. */
static void
rename_all(struct ssa *s, const struct hed_ptx_reg *const *regs)
{
    const uint32_t n = s->f->nblocks;
    uint32_t *stack = hed_flow_alloc(s->f, n, sizeof(uint32_t));
    uint32_t *undo_to = hed_flow_alloc(s->f, n, sizeof(uint32_t));
    uint32_t *child = hed_flow_alloc(s->f, n, sizeof(uint32_t));
    uint32_t *sibling = hed_flow_alloc(s->f, n, sizeof(uint32_t));
    uint32_t depth = 0;

    if (!stack || !undo_to || !child || !sibling) {
        s->err = HED_ENOMEM;
        return;
    }
    memset(child, 0xff, n * sizeof(*child));
    memset(sibling, 0xff, n * sizeof(*sibling));
    for (uint32_t i = n; i-- > 1;) {
        const uint32_t d = s->f->blocks[i].dominator;

        sibling[i] = child[d];
        child[d] = i;
    }
    stack[depth++] = 0;
    undo_to[0] = 0;
    s->block = 0;
    rename_block(s, regs);
    while (depth && !s->err) {
        const uint32_t b = stack[depth - 1];
        const uint32_t next = child[b];

        if (next == HED_FLOW_NONE) {
            for (; s->nundo > undo_to[b]; s->nundo--)
                s->now[s->undo[s->nundo - 1].reg] = s->undo[s->nundo - 1].value;
            depth--;
            continue;
        }
        child[b] = sibling[next];
        undo_to[next] = s->nundo;
        stack[depth++] = next;
        s->block = next;
        rename_block(s, regs);
    }
}

/* ---- which values are read ------------------------------------------------------------------- */

int
hed_ssa_find_reads(struct hed_ssa *s, struct hed_flow *f)
{
    bool *is_read = hed_flow_alloc(f, f->nvalues, sizeof(bool));

    s->is_read = is_read;
    if (!is_read)
        return HED_ENOMEM;
    for (uint32_t b = 0; b < f->nblocks; b++) {
        const struct hed_flow_block *block = &f->blocks[b];

        for (uint32_t i = 0; i < block->ninsts; i++)
            hed_flow_each_read(block->insts[i], hed_flow_note_value, is_read);
        if (block->last)
            hed_flow_each_read((struct hed_ptx_inst *)block->last, hed_flow_note_value, is_read);
        for (const struct hed_flow_phi *p = block->phis; p; p = p->next)
            for (uint32_t k = 0; k < block->nbefore; k++)
                if (p->from[k])
                    is_read[p->from[k]->id] = true;
    }
    /* A guarded write keeps the old value where the guard does not hold. */
    for (uint32_t v = 0; v < f->nvalues; v++)
        if (s->values[v].old)
            is_read[s->values[v].old->id] = true;
    return 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static uint64_t *
new_sets(struct ssa *s)
{
    return hed_flow_alloc(s->f, (size_t)s->f->nblocks * s->words, sizeof(uint64_t));
}

/* How many values there can be: one per write, per phi, and per register that is never written. */
static void
count_write(void *arg, const struct hed_ptx_reg **reg)
{
    (void)reg;
    ++*(uint32_t *)arg;
}

static uint32_t
count_values(const struct hed_flow *f, uint32_t nregs)
{
    uint32_t count = nregs;

    for (uint32_t i = 0; i < f->nblocks; i++) {
        for (uint32_t k = 0; k < f->blocks[i].ninsts; k++)
            hed_flow_each_write(f->blocks[i].insts[k], count_write, &count);
        for (const struct hed_flow_phi *p = f->blocks[i].phis; p; p = p->next)
            count++;
    }
    return count;
}

int
hed_ssa_init(struct hed_ssa *out, struct hed_flow *f, const char **why)
{
    struct ssa s = {.out = out, .f = f, .nregs = f->func->nregs, .words = f->func->nregs / 64 + 1};
    const struct hed_ptx_reg **regs = hed_flow_alloc(f, s.nregs, sizeof(*regs));

    s.live = new_sets(&s);
    s.writes = new_sets(&s);
    s.reads = new_sets(&s);
    s.has_phi = new_sets(&s);
    if (!regs || !s.live || !s.writes || !s.reads || !s.has_phi)
        return HED_ENOMEM;
    for (const struct hed_ptx_reg *r = f->func->regs; r; r = r->next) {
        regs[r->id] = r;
        if (r->vec) {
            *why = "a vector register";
            return HED_ENOTSUP;
        }
    }
    find_live(&s);
    if (!find_frontiers(&s))
        return HED_ENOMEM;
    place_phis(&s);
    out->room = count_values(f, s.nregs);
    s.undo_room = out->room;
    out->values = hed_flow_alloc(f, out->room, sizeof(*out->values));
    f->values = hed_flow_alloc(f, out->room, sizeof(*f->values));
    s.undo = hed_flow_alloc(f, s.undo_room, sizeof(*s.undo));
    s.now = hed_flow_alloc(f, s.nregs, sizeof(*s.now));
    s.zero = hed_flow_alloc(f, s.nregs, sizeof(*s.zero));
    s.versions = hed_flow_alloc(f, s.nregs, sizeof(*s.versions));
    if (!out->values || !f->values || !s.undo || !s.now || !s.zero || !s.versions)
        return HED_ENOMEM;
    if (!s.err)
        rename_all(&s, regs);
    if (!s.err)
        s.err = hed_ssa_find_reads(out, f);
    return s.err;
}

bool
hed_ssa_is_made_in(const struct hed_ssa *s, const struct hed_flow *f, uint32_t id, uint32_t loop)
{
    const struct hed_ssa_value *v = &s->values[id];

    return (v->made_by || v->phi) && hed_flow_in_loop(f, v->block, loop);
}
