/* What the passes find out about a kernel. See explain.h. */
#include "kernel/ptx/pass/explain.h"

#include <stdlib.h>

#include "base/err.h"
#include "kernel/ptx/pass/apart.h"
#include "kernel/ptx/pass/masks.h"
#include "kernel/ptx/pass/solo.h"
#include "kernel/ptx/pass/tidy.h"
#include "kernel/ptx/pass/transfer.h"
#include "kernel/ptx/run/abi.h"

#define CAUSE_STEPS 64 /* instructions that are followed back to a cause */
#define VECTOR_BITS 128

/* ---- why an address varies ------------------------------------------------------------------- */

static uint32_t
line_of_block(const struct hed_flow *f, uint32_t b)
{
    const struct hed_flow_block *block = &f->blocks[b];

    if (block->ninsts)
        return block->insts[0]->stmt.line;
    return block->last ? block->last->stmt.line : 0;
}

static bool
is_varying(const struct hed_explain *e, const struct hed_ptx_reg *r)
{
    return r && e->uniforms.values[r->id].kind == HED_VARIES;
}

/* A phi: where lanes come together, or a source to follow. */
static const struct hed_ptx_reg *
cause_of_phi(const struct hed_explain *e, const struct hed_flow_phi *p, uint32_t b,
             struct hed_explain_line *out)
{
    const struct hed_flow_block *block = &e->flow.blocks[b];
    const struct hed_ptx_reg *next = NULL;
    bool same = true;

    for (uint32_t k = 0; k < block->nbefore; k++) {
        if (hed_uniform_leaves_singly(&e->uniforms, block->before[k], b)) {
            out->cause = "lanes leave a loop one by one";
            return NULL;
        }
        same = same && p->from[k] == p->from[0];
        if (!next && p->from[k] != p->to && is_varying(e, p->from[k]))
            next = p->from[k];
    }
    if (e->uniforms.joins[b] && !same) {
        out->cause = "lanes come by different ways";
        return NULL;
    }
    out->cause = "changes in a loop";
    return next;
}

struct reads {
    const struct hed_explain *e;
    const struct hed_ptx_reg *varying; /* the first that is read */
};

static void
note_varying(void *arg, const struct hed_ptx_reg **reg)
{
    struct reads *r = arg;

    if (!r->varying && is_varying(r->e, *reg))
        r->varying = *reg;
}

static bool
has_memory_operand(const struct hed_ptx_inst *i)
{
    for (unsigned k = 0; k < i->noperands; k++)
        if (i->operands[k].kind == HED_PTX_OPERAND_MEM)
            return true;
    return false;
}

/* An instruction: a cause in itself, or an operand to follow. */
static const struct hed_ptx_reg *
cause_of_inst(const struct hed_explain *e, const struct hed_ptx_inst *i,
              struct hed_explain_line *out)
{
    struct reads r = {.e = e};

    out->cause_line = i->stmt.line;
    if (i->is_refused || hed_ptx_op_nature(i->form->op) == HED_PTX_MEETS) {
        out->cause = "comes from another lane";
        return NULL;
    }
    if (has_memory_operand(i)) {
        out->cause = "loaded from memory";
        return NULL;
    }
    hed_flow_each_read((struct hed_ptx_inst *)i, note_varying, &r);
    if (r.varying)
        return r.varying;
    out->cause = i->guard ? "written for some lanes only" : "keeps no fixed step from lane to lane";
    return NULL;
}

static void
find_cause(const struct hed_explain *e, const struct hed_ptx_reg *reg, struct hed_explain_line *out)
{
    out->cause = "follows from itself";
    for (unsigned n = 0; reg && n < CAUSE_STEPS; n++) {
        const struct hed_ssa_value *v = &e->ssa.values[reg->id];

        if (v->phi) {
            out->cause_line = line_of_block(&e->flow, v->block);
            reg = cause_of_phi(e, v->phi, v->block, out);
        } else if (v->made_by) {
            reg = cause_of_inst(e, v->made_by, out);
        } else {
            return;
        }
    }
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* The operand with the address of a load, store or atomic that is not a parameter; or NULL. */
static const struct hed_ptx_operand *
memory_operand(const struct hed_ptx_inst *i)
{
    if (i->is_refused || i->form->ntypes == 0 ||
        (i->form->nspaces && (i->form->spaces[0] == HED_PTX_SPACE_PARAM)))
        return NULL;
    switch (i->form->op) {
    case HED_PTX_OP_LD:
    case HED_PTX_OP_LDU:
    case HED_PTX_OP_ST:
    case HED_PTX_OP_ATOM:
    case HED_PTX_OP_RED:
        break;
    default:
        return NULL;
    }
    for (unsigned k = 0; k < i->noperands; k++)
        if (i->operands[k].kind == HED_PTX_OPERAND_MEM)
            return &i->operands[k];
    return NULL;
}

static void
explain_access(const struct hed_explain *e, struct hed_explain_line *out)
{
    const struct hed_ptx_inst *i = out->inst;
    const struct hed_ptx_operand *o = memory_operand(i);
    struct hed_uniform at;

    if (!o)
        return;
    at = hed_uniform_memory(&e->uniforms, i);
    out->bytes = hed_uniform_bytes(i);
    out->step = at.kind == HED_ROWS ? at.step : 0;
    if (at.kind == HED_UNIFORM || (at.kind == HED_ROWS && at.step == 0))
        out->access = HED_ACCESS_ONE;
    else if (at.kind == HED_ROWS)
        out->access = at.step == (int64_t)out->bytes ? HED_ACCESS_ROW : HED_ACCESS_STEPS;
    else if (at.kind == HED_OFFSETS)
        out->access = HED_ACCESS_OFFSETS;
    else
        out->access = HED_ACCESS_ANYWHERE;
    if (out->access == HED_ACCESS_ANYWHERE && o->base == HED_PTX_OPERAND_REG)
        find_cause(e, o->reg, out);
    else if (out->access == HED_ACCESS_ANYWHERE)
        out->cause = "a variable of each thread";
}

static void
explain_barrier(struct hed_explain *e, uint32_t b, uint32_t index, struct hed_explain_line *out)
{
    const struct hed_ptx_inst *i = out->inst;
    uint64_t *set;

    switch (i->form->op) {
    case HED_PTX_OP_BARRIER_SYNC:
    case HED_PTX_OP_BARRIER_RED:
        break;
    default:
        return;
    }
    out->is_barrier = true;
    out->is_split = hed_masks_is_split(&e->uniforms, b, i);
    e->barriers++;
    e->splits += out->is_split;
    set = calloc(e->live.words, sizeof(*set));
    if (!set)
        return;
    hed_live_behind(&e->live, b, index, set);
    for (uint32_t k = 0; k < e->live.words; k++)
        out->live += (uint32_t)__builtin_popcountll(set[k]);
    free(set);
}

struct first_write {
    const struct hed_explain *e;
    struct hed_explain_line *out;
};

static void
note_first_write(void *arg, const struct hed_ptx_reg **reg)
{
    const struct first_write *w = arg;

    if (!w->out->value)
        w->out->value = &w->e->uniforms.values[(*reg)->id];
}

/* index: of the instruction in its block; ninsts for the one that ends the block. */
static void
add_line(struct hed_explain *e, uint32_t b, uint32_t index)
{
    const struct hed_flow_block *block = &e->flow.blocks[b];
    const bool is_last = index == block->ninsts;
    struct hed_explain_line *out = &e->lines[e->nlines++];

    *out = (struct hed_explain_line){
        .inst = is_last ? block->last : block->insts[index], .block = b, .loop = block->loop};
    out->line = out->inst->stmt.line;
    hed_flow_each_write((struct hed_ptx_inst *)out->inst, note_first_write,
                        &(struct first_write){e, out});
    out->way = is_last ? HED_ONCE : hed_uniform_way(&e->uniforms, out->inst);
    out->parts = is_last && e->uniforms.parts[b];
    e->partings += out->parts;
    e->ways[out->way] += !is_last;
    if (!is_last) {
        explain_access(e, out);
        explain_barrier(e, b, index, out);
    }
    e->accesses[out->access]++;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static void
add_cost(const struct hed_explain *e, const struct hed_explain_line *line, bool is_solo,
         struct hed_explain_cost *cost)
{
    const struct hed_ptx_form *form = line->inst->form;
    const uint32_t rows = HED_PTX_LANES / e->uniforms.width;
    const uint32_t bits = form->ntypes ? hed_ptx_types[form->types[0]].bits : 8;

    if (line->inst->is_refused)
        return;
    cost->slow += line->way == HED_PER_LANE && hed_solo_takes_long(line->inst);
    if (is_solo || line->way == HED_ONCE || line->access == HED_ACCESS_ONE)
        cost->numbers++;
    else if (line->access == HED_ACCESS_ROW || line->access == HED_ACCESS_OFFSETS)
        cost->vectors += (line->bytes * 8 * HED_PTX_LANES + VECTOR_BITS - 1) / VECTOR_BITS;
    else if (line->access != HED_ACCESS_NONE)
        cost->singles += HED_PTX_LANES;
    else if (line->way == HED_PER_ROW)
        cost->numbers += rows;
    else
        cost->vectors += (HED_PTX_LANES * (bits < 8 ? 8 : bits) + VECTOR_BITS - 1) / VECTOR_BITS;
}

static int
explain_loops(struct hed_explain *e)
{
    const struct hed_flow *f = &e->flow;
    const bool *solo = hed_solo_init(&e->flow, &e->uniforms);

    e->nloops = f->nloops;
    e->loops = hed_flow_alloc(&e->flow, f->nloops + 1, sizeof(*e->loops));
    if (!e->loops || (!solo && f->nloops))
        return HED_ENOMEM;
    for (uint32_t i = 0; i < f->nloops; i++)
        e->loops[i] = (struct hed_explain_loop){.first = UINT32_MAX,
                                                .parent = f->loops[i].parent,
                                                .is_solo = solo[i],
                                                .leaves_singly = e->uniforms.leaves_singly[i]};
    for (uint32_t i = 0; i < e->nlines; i++) {
        const struct hed_explain_line *line = &e->lines[i];

        for (uint32_t l = line->loop; l != HED_FLOW_NONE; l = f->loops[l].parent) {
            struct hed_explain_loop *loop = &e->loops[l];

            loop->first = line->line < loop->first ? line->line : loop->first;
            loop->last = line->line > loop->last ? line->line : loop->last;
        }
        add_cost(e, line, line->loop != HED_FLOW_NONE && solo[line->loop],
                 line->loop == HED_FLOW_NONE ? &e->cost : &e->loops[line->loop].cost);
    }
    return 0;
}

/* ---- a kernel -------------------------------------------------------------------------------- */

static int
explain_blocks(struct hed_explain *e)
{
    uint32_t count = 0;

    for (uint32_t b = 0; b < e->flow.nblocks; b++)
        count += e->flow.blocks[b].ninsts + 1;
    e->lines = hed_flow_alloc(&e->flow, count, sizeof(*e->lines));
    if (!e->lines)
        return HED_ENOMEM;
    for (uint32_t b = 0; b < e->flow.nblocks; b++) {
        const struct hed_flow_block *block = &e->flow.blocks[b];

        for (uint32_t i = 0; i < block->ninsts + (block->last ? 1 : 0); i++)
            add_line(e, b, i);
    }
    return explain_loops(e);
}

int
hed_explain_init(struct hed_explain *e, const struct hed_ptx_unit *unit,
                 const struct hed_ptx_func *kernel, enum hed_rows rows)
{
    struct hed_masks masks = {0};
    struct hed_tidied did;
    const char *why = NULL;
    int err;

    *e = (struct hed_explain){0};
    err = hed_flow_init(&e->flow, kernel, &why);
    if (err == 0)
        err = hed_ssa_init(&e->ssa, &e->flow, &why);
    if (err == HED_ENOTSUP) {
        e->why = why ? why : "blocks have no order";
        e->is_baseline_only = hed_apart_unknown(kernel);
        return 0;
    }
    if (err == 0)
        err = hed_tidy(&e->flow, &e->ssa, &did);
    if (err == 0)
        err = hed_uniforms_init(&e->uniforms, &e->flow, &e->ssa, rows);
    if (err == 0)
        err = hed_masks_init(&masks, &e->flow, &e->uniforms, unit);
    e->why = masks.why;
    e->is_baseline_only = masks.is_apart;
    if (err == 0)
        err = hed_live_init(&e->live, &e->flow, &e->ssa);
    if (err == 0)
        err = explain_blocks(e);
    return err;
}

void
hed_explain_fini(struct hed_explain *e)
{
    hed_flow_fini(&e->flow);
}
