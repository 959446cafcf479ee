/* The analysis: values start as unknown and only get worse, until nothing changes. See uniform.h.
 *
 *   divergence   a branch whose guard is not uniform parts the lanes; the blocks where they can
 *                meet again get `joins`, and phis there vary
 *   transfer     what an instruction makes of its operands' classes: transfer.c
 */
#include "kernel/ptx/pass/uniform.h"

#include <string.h>

#include "base/err.h"
#include "kernel/ptx/pass/bounds.h"
#include "kernel/ptx/pass/class.h"
#include "kernel/ptx/pass/transfer.h"

enum hed_rows
hed_rows_of(const uint32_t ntid[3])
{
    if (ntid[0] % 32 == 0)
        return HED_ROWS_32;
    if (ntid[1] == 1 && ntid[2] == 1)
        return ntid[0] == 1 ? HED_ROWS_ONE : HED_ROWS_FLAT;
    return ntid[0] == 16 ? HED_ROWS_16 : ntid[0] == 8 ? HED_ROWS_8 : HED_ROWS_ANY;
}

unsigned
hed_rows_width(enum hed_rows rows)
{
    return rows == HED_ROWS_16 ? 16 : rows == HED_ROWS_8 ? 8 : 32;
}

struct analysis {
    struct hed_uniforms *u;
    uint8_t *reached; /* by block: 1 and 2 for the two sides of a branch */
    uint32_t *stack;
    bool changed;
};

/* ---- divergence ------------------------------------------------------------------------------ */

/* Marks what can be reached from a block before `until`, by edges that go forward only or by
 * all. */
static void
reach(struct analysis *a, uint32_t from, uint32_t until, uint8_t mark, bool forward_only)
{
    const struct hed_flow *f = a->u->f;
    uint32_t depth = 0;

    if (a->reached[from] & mark)
        return;
    a->reached[from] |= mark;
    a->stack[depth++] = from;
    while (depth) {
        const uint32_t b = a->stack[--depth];

        if (b == until)
            continue;
        for (uint32_t k = 0; k < f->blocks[b].nnext; k++) {
            const uint32_t to = f->blocks[b].next[k];

            if ((forward_only && to <= b) || (a->reached[to] & mark))
                continue;
            a->reached[to] |= mark;
            a->stack[depth++] = to;
        }
    }
}

/* Lanes have parted at the end of a block in the loop, and meet at `after`, which is in it, too.
 * Those that went back to the header instead (of a loop in this one that begins at the same place)
 * wait there while the others go on from `after`, and perhaps leave the loop. */
static void
note_early_rounds(struct analysis *a, uint32_t b, uint32_t loop)
{
    struct hed_uniforms *u = a->u;
    const struct hed_flow_loop *l = &u->f->loops[loop];
    const struct hed_flow_block *header = &u->f->blocks[l->header];
    const uint32_t after = u->f->blocks[b].after;
    bool any = false;

    if (after == HED_FLOW_NONE || after == l->header || !hed_flow_in_loop(u->f, after, loop))
        return;
    for (uint32_t k = 0; k < header->nbefore; k++)
        any |= header->before[k] >= l->header && header->before[k] != after &&
               (header->before[k] == b || a->reached[header->before[k]]);
    if (!any)
        return;
    u->leaves_singly[loop] = true;
    for (uint32_t i = after; i <= l->last; i++) {
        u->partial[i] = true;
        u->joins[i] |= i > after && a->reached[i] != 0;
    }
}

/* Lanes part at the end of block b: finds where they meet. */
static void
part_lanes(struct analysis *a, uint32_t b)
{
    struct hed_uniforms *u = a->u;
    const struct hed_flow_block *block = &u->f->blocks[b];

    u->parts[b] = true;
    a->changed = true;
    memset(a->reached, 0, u->f->nblocks);
    reach(a, block->next[0], block->after, 1, true);
    reach(a, block->next[1], block->after, 2, true);
    for (uint32_t i = 0; i < u->f->nblocks; i++)
        u->joins[i] |= a->reached[i] == 3;
    /* A loop that both sides of the branch can go round again: lanes meet at its header. */
    for (uint32_t l = block->loop; l != HED_FLOW_NONE; l = u->f->loops[l].parent) {
        const uint32_t h = u->f->loops[l].header;
        unsigned sides = 0;

        for (uint32_t k = 0; k < u->f->blocks[h].nbefore; k++)
            if (u->f->blocks[h].before[k] >= h)
                sides |=
                    u->f->blocks[h].before[k] == b ? 1u : a->reached[u->f->blocks[h].before[k]];
        if (u->f->loops[l].nlatches > 1 && sides)
            u->joins[h] = true;
        /* Lanes that do not meet again inside of the loop leave it at different times. */
        if (block->after == HED_FLOW_NONE || !hed_flow_in_loop(u->f, block->after, l))
            u->leaves_singly[l] = true;
        note_early_rounds(a, b, l);
    }
    memset(a->reached, 0, u->f->nblocks);
    reach(a, block->next[0], block->after, 1, false);
    reach(a, block->next[1], block->after, 1, false);
    for (uint32_t i = 0; i < u->f->nblocks; i++)
        u->partial[i] |= a->reached[i] && i != block->after;
    /* Lanes may leave a loop before they meet, and come back to it by one around it. */
    for (uint32_t l = block->loop; l != HED_FLOW_NONE; l = u->f->loops[l].parent)
        for (uint32_t i = 0; i < u->f->nblocks; i++)
            u->leaves_singly[l] |=
                a->reached[i] && i != block->after && !hed_flow_in_loop(u->f, i, l);
}

/* Do lanes come to the end of block b in different rounds of a loop that they may leave there? Then
 * they part, although all that come together go the same way. */
static bool
leaves_in_turns(const struct hed_uniforms *u, uint32_t b)
{
    const struct hed_flow_block *block = &u->f->blocks[b];

    return u->partial[b] && (hed_uniform_leaves_singly(u, b, block->next[0]) ||
                             hed_uniform_leaves_singly(u, b, block->next[1]));
}

/* ---- values ---------------------------------------------------------------------------------- */

static void
lower_value(struct analysis *a, const struct hed_ptx_reg *v, struct hed_uniform now)
{
    struct hed_uniform *was = &a->u->values[v->id], before = *was;

    /* Of what stands there, and of what comes: both are this value. */
    before.below = now.below = a->u->bounds[v->id];
    now = hed_class_join(a->u, before, now);
    now.below = 0;
    if (!hed_class_is_same(was, &now)) {
        *was = now;
        a->changed = true;
    }
}

bool
hed_uniform_leaves_singly(const struct hed_uniforms *u, uint32_t from, uint32_t to)
{
    for (uint32_t l = u->f->blocks[from].loop; l != HED_FLOW_NONE; l = u->f->loops[l].parent)
        if (!hed_flow_in_loop(u->f, to, l) && u->leaves_singly[l])
            return true;
    return false;
}

static void
visit_phi(struct analysis *a, uint32_t b, const struct hed_flow_phi *p)
{
    struct hed_uniforms *u = a->u;
    const struct hed_flow_block *block = &u->f->blocks[b];
    struct hed_uniform now = {.kind = HED_UNKNOWN, .wraps = HED_FLOW_NONE};
    const struct hed_ptx_reg *only = NULL;
    bool any = false, same = true, singly = false;

    for (uint32_t k = 0; k < block->nbefore; k++) {
        const struct hed_ptx_reg *from = p->from[k];

        if (hed_flow_in_loop(u->f, block->before[k], u->loop)) {
            only = any ? only : from;
            same &= from == only;
            singly |= hed_uniform_leaves_singly(u, block->before[k], b);
            any = true;
        }
        if (from)
            now = hed_class_join(u, now, hed_uniform_of_value(u, from));
        else /* a register that was never written is 0 */
            now = hed_class_join(u, now, hed_class_constant(0));
    }
    /* Lanes come to u->loop together, whatever was before. */
    if (((u->joins[b] && !same) || singly) && hed_flow_in_loop(u->f, b, u->loop))
        now = (struct hed_uniform){.kind = HED_VARIES, .wraps = HED_FLOW_NONE};
    if (now.kind != HED_UNKNOWN)
        lower_value(a, p->to, now);
}

/* The best and the worst kind among registers. */
struct kinds {
    const struct hed_uniforms *u;
    unsigned best, worst;
};

static void
note_kind(void *arg, const struct hed_ptx_reg **reg)
{
    struct kinds *k = arg;
    const unsigned kind = k->u->values[(*reg)->id].kind;

    k->best = kind < k->best ? kind : k->best;
    k->worst = kind > k->worst ? kind : k->worst;
}

struct visit {
    struct analysis *a;
    struct hed_ptx_inst *inst;
    struct hed_uniform result;
};

static void
visit_write(void *arg, const struct hed_ptx_reg **reg)
{
    const struct visit *v = arg;
    struct hed_uniforms *u = v->a->u;
    struct hed_uniform now = v->result;

    if (now.kind == HED_UNKNOWN)
        return;
    if (v->inst->guard) {
        const struct hed_ptx_reg *old = u->ssa->values[(*reg)->id].old;
        const struct hed_uniform *guard = &u->values[v->inst->guard->id];

        if (guard->kind == HED_UNKNOWN)
            return;
        now.below = u->bounds[(*reg)->id];
        now = hed_class_join(u, now, old ? hed_uniform_of_value(u, old) : hed_class_constant(0));
        if (guard->kind != HED_UNIFORM)
            now = (struct hed_uniform){.kind = HED_VARIES, .wraps = HED_FLOW_NONE};
    }
    /* A value that may wrap around is known by its own id. */
    if (now.kind == HED_ROWS && now.wraps == HED_WRAPS_HERE)
        now.wraps = (*reg)->id;
    lower_value(v->a, *reg, now);
}

/* Two words of a number: each has a class of its own. */
static void
visit_halves(struct analysis *a, struct hed_ptx_inst *i)
{
    struct hed_ptx_operand *words = i->operands[0].elems;
    struct visit v = {.a = a, .inst = i};

    for (unsigned half = 0; half < 2; half++) {
        if (words[half].kind != HED_PTX_OPERAND_REG)
            continue;
        v.result = hed_uniform_half(a->u, i, half);
        visit_write(&v, &words[half].reg);
    }
}

static void
visit_inst(struct analysis *a, struct hed_ptx_inst *i)
{
    struct visit v = {.a = a, .inst = i};
    struct kinds k = {.u = a->u, .best = HED_VARIES};

    if (hed_uniform_is_split(a->u, i)) {
        visit_halves(a, i);
    } else {
        v.result = hed_uniform_transfer(a->u, i);
        hed_flow_each_write(i, visit_write, &v);
    }
    /* Under a guard, what an instruction writes may be of several classes, because old values are.
     * But it is carried out in one way. */
    hed_flow_each_write(i, note_kind, &k);
    if (k.best < k.worst && k.best != HED_UNKNOWN &&
        (a->u->width != HED_PTX_LANES || k.worst == HED_VARIES)) {
        v.result = (struct hed_uniform){.kind = HED_VARIES, .wraps = HED_FLOW_NONE};
        hed_flow_each_write(i, visit_write, &v);
    }
}

static void
visit_block(struct analysis *a, uint32_t b)
{
    struct hed_uniforms *u = a->u;
    const struct hed_flow_block *block = &u->f->blocks[b];

    for (const struct hed_flow_phi *p = block->phis; p; p = p->next)
        visit_phi(a, b, p);
    for (uint32_t i = 0; i < block->ninsts; i++)
        visit_inst(a, block->insts[i]);
    if (block->end == HED_FLOW_BRANCHES && !u->parts[b]) {
        const unsigned kind = u->values[block->last->guard->id].kind;

        if (kind != HED_UNKNOWN && (kind != HED_UNIFORM || leaves_in_turns(u, b)))
            part_lanes(a, b);
    }
}

/* What is set in *u says for which threads and loop. */
static int
init_analysis(struct hed_uniforms *u, struct hed_flow *f)
{
    const struct hed_ssa *ssa = u->ssa;
    struct analysis a = {.u = u};

    u->f = f;
    u->width = hed_rows_width(u->rows);
    u->values = hed_flow_alloc(f, f->nvalues, sizeof(*u->values));
    u->parts = hed_flow_alloc(f, f->nblocks, sizeof(bool));
    u->joins = hed_flow_alloc(f, f->nblocks, sizeof(bool));
    u->partial = hed_flow_alloc(f, f->nblocks, sizeof(bool));
    u->leaves_singly = hed_flow_alloc(f, f->nloops, sizeof(bool));
    u->memory = f;
    u->bounds = hed_bounds_init(f, ssa);
    a.reached = hed_flow_alloc(f, f->nblocks, 1);
    a.stack = hed_flow_alloc(f, f->nblocks, sizeof(uint32_t));
    if (!u->values || !u->parts || !u->joins || !u->partial || !u->leaves_singly || !u->bounds ||
        !a.reached || !a.stack || hed_locals_init(&u->locals, f, ssa) != 0)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < f->nvalues; i++) {
        const struct hed_ssa_value *v = &ssa->values[i];

        u->values[i].wraps = HED_FLOW_NONE;
        if (!v->made_by && !v->phi)
            u->values[i] = hed_class_constant(0);
    }
    do {
        a.changed = false;
        for (uint32_t b = 0; b < f->nblocks; b++)
            visit_block(&a, b);
    } while (a.changed);
    /* What is still unknown is never reached with a value. */
    for (uint32_t i = 0; i < f->nvalues; i++)
        if (u->values[i].kind == HED_UNKNOWN)
            u->values[i].kind = HED_VARIES;
    return 0;
}

int
hed_uniforms_init(struct hed_uniforms *u, struct hed_flow *f, const struct hed_ssa *ssa,
                  enum hed_rows rows)
{
    return hed_uniforms_init_in(u, f, ssa, rows, HED_FLOW_NONE);
}

int
hed_uniforms_init_in(struct hed_uniforms *u, struct hed_flow *f, const struct hed_ssa *ssa,
                     enum hed_rows rows, uint32_t loop)
{
    *u = (struct hed_uniforms){.ssa = ssa, .rows = rows, .loop = loop};
    return init_analysis(u, f);
}

int
hed_uniforms_init_block(struct hed_uniforms *u, struct hed_flow *f, const struct hed_ssa *ssa)
{
    *u = (struct hed_uniforms){
        .ssa = ssa, .rows = HED_ROWS_ANY, .loop = HED_FLOW_NONE, .of_block = true};
    return init_analysis(u, f);
}

/* ---- ways ------------------------------------------------------------------------------------ */

/* A store of one number to one address is done once. */
static bool
stores_once(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    struct kinds k = {.u = u, .worst = HED_UNIFORM};

    if (i->form->op != HED_PTX_OP_ST || i->operands[0].kind != HED_PTX_OPERAND_MEM)
        return false;
    hed_flow_each_read((struct hed_ptx_inst *)i, note_kind, &k);
    return k.worst == HED_UNIFORM && hed_uniform_memory(u, i).kind == HED_UNIFORM &&
           hed_uniform_operand(u, &i->operands[1]).kind == HED_UNIFORM;
}

enum hed_uniform_way
hed_uniform_way(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    struct kinds k = {.u = u, .worst = HED_UNKNOWN};

    hed_flow_each_write((struct hed_ptx_inst *)i, note_kind, &k);
    if (hed_uniform_is_together(i))
        return HED_PER_LANE;
    if (k.worst == HED_UNKNOWN)
        return stores_once(u, i) ? HED_ONCE : HED_PER_LANE;
    if (k.worst == HED_ROWS)
        return HED_PER_ROW;
    /* Bits that are the same in all lanes of a number that varies: see bits.c. */
    if (k.worst == HED_UNIFORM)
        hed_flow_each_read((struct hed_ptx_inst *)i, note_kind, &k);
    return k.worst == HED_VARIES ? HED_PER_LANE : HED_ONCE;
}

uint32_t
hed_uniform_bytes(const struct hed_ptx_inst *i)
{
    return (hed_ptx_types[i->form->types[0]].bits + 7u) / 8 * (i->form->vec ? i->form->vec : 1u);
}

bool
hed_uniform_moves_row(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    struct hed_uniform at;

    if (i->is_refused || (i->form->op != HED_PTX_OP_LD && i->form->op != HED_PTX_OP_ST))
        return false;
    at = hed_uniform_memory(u, i);
    return at.kind == HED_ROWS && at.step == (int64_t)hed_uniform_bytes(i);
}
