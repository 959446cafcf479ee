/* Blocks from a body, and their order. See flow.h.
 *
 *   cut        the body into raw blocks, in the order of the text
 *   prune      edges to blocks that only return; unreachable blocks
 *   dominators by the method of Cooper, Harvey and Kennedy
 *   loops      from edges back to a dominator
 *   order      loop by loop: a loop counts as one node of the graph around it
 */
#include "kernel/ptx/pass/flow.h"

#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "kernel/ptx/pass/graph.h"

#define CEILING ((size_t)1 << 30)

void *
hed_flow_alloc(struct hed_flow *f, size_t count, size_t size)
{
    void *p =
        count < CEILING / (size + 1) ? hed_arena_alloc(&f->arena, (count + 1) * size, 16) : NULL;

    return p ? memset(p, 0, (count + 1) * size) : NULL;
}

bool
hed_flow_in_loop(const struct hed_flow *f, uint32_t block, uint32_t loop)
{
    return loop == HED_FLOW_NONE ||
           (block >= f->loops[loop].header && block <= f->loops[loop].last);
}

uint32_t
hed_flow_edge(const struct hed_flow *f, uint32_t from, uint32_t to)
{
    const struct hed_flow_block *b = &f->blocks[to];

    for (uint32_t i = 0; i < b->nbefore; i++)
        if (b->before[i] == from)
            return i;
    return 0;
}

bool
hed_flow_dominates(const struct hed_flow *f, uint32_t a, uint32_t b)
{
    while (b != HED_FLOW_NONE && b > a)
        b = f->blocks[b].dominator;
    return a == b;
}

/* ---- cutting --------------------------------------------------------------------------------- */

struct cut {
    struct hed_flow *f;
    uint32_t now; /* the block that is being filled */
    bool fresh;   /* nothing has been put into it */
    bool tables;  /* a jump through a table was seen */
};

static bool
ends_block(const struct hed_ptx_inst *i)
{
    const unsigned op = i->form->op;

    return op == HED_PTX_OP_BRA || op == HED_PTX_OP_BRX_IDX ||
           (!i->guard && (op == HED_PTX_OP_RET || op == HED_PTX_OP_EXIT));
}

/* Counts instructions and blocks at most. */
static uint32_t
count_blocks(const struct hed_ptx_func *func, uint32_t *ninsts)
{
    uint32_t blocks = 2;

    *ninsts = 0;
    for (const struct hed_ptx_stmt *s = func->body; s; s = s->next) {
        if (s->kind == HED_PTX_STMT_LABEL)
            blocks++;
        if (s->kind != HED_PTX_STMT_INST)
            continue;
        (*ninsts)++;
        blocks += ends_block((const struct hed_ptx_inst *)s);
    }
    return blocks;
}

static void
open_block(struct cut *c)
{
    if (!c->fresh)
        c->now++;
    c->fresh = true;
}

/* The first pass finds where labels are; the second knows all targets. */
static void
place_labels(struct cut *c)
{
    c->now = 0;
    c->fresh = true;
    for (const struct hed_ptx_stmt *s = c->f->func->body; s; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind == HED_PTX_STMT_LABEL) {
            /* Block 0 has no predecessor, so a label never begins it. */
            if (c->now == 0)
                c->fresh = false;
            open_block(c);
            c->f->of_label[s->label->id] = c->now;
        } else if (s->kind == HED_PTX_STMT_INST) {
            c->fresh = false;
            if (ends_block(i))
                open_block(c);
        }
    }
}

static void
end_block(struct cut *c, const struct hed_ptx_inst *i)
{
    struct hed_flow_block *b = &c->f->blocks[c->now];

    b->last = i;
    if (i->form->op == HED_PTX_OP_BRX_IDX) {
        c->tables = true;
    } else if (i->form->op != HED_PTX_OP_BRA) {
        b->end = HED_FLOW_LEAVES;
    } else {
        b->end = i->guard ? HED_FLOW_BRANCHES : HED_FLOW_GOES;
        b->next[0] = c->f->of_label[i->operands[0].label->id];
        b->next[1] = c->now + 1;
        b->nnext = i->guard ? 2 : 1;
        if (b->nnext == 2 && b->next[0] == b->next[1]) {
            b->end = HED_FLOW_GOES;
            b->nnext = 1;
        }
    }
}

/* A block that runs into the next one. */
static void
fall_through(struct cut *c)
{
    struct hed_flow_block *b = &c->f->blocks[c->now];

    b->end = HED_FLOW_GOES;
    b->next[0] = c->now + 1;
    b->nnext = 1;
}

static void
fill_blocks(struct cut *c, struct hed_ptx_inst **insts)
{
    c->now = 0;
    c->fresh = true;
    c->f->blocks[0].insts = insts;
    for (struct hed_ptx_stmt *s = c->f->func->body; s; s = s->next) {
        struct hed_ptx_inst *i = (struct hed_ptx_inst *)s;

        if (s->kind == HED_PTX_STMT_LABEL) {
            if (c->now == 0)
                c->fresh = false;
            if (!c->fresh)
                fall_through(c);
            open_block(c);
            c->f->blocks[c->now].insts = insts;
        } else if (s->kind == HED_PTX_STMT_INST) {
            c->fresh = false;
            if (!ends_block(i)) {
                *insts++ = i;
                c->f->blocks[c->now].ninsts++;
                continue;
            }
            end_block(c, i);
            open_block(c);
            c->f->blocks[c->now].insts = insts;
        }
    }
    /* The end of the body returns, as an empty block or behind the last instruction. */
    c->f->blocks[c->now].end = HED_FLOW_LEAVES;
    c->f->nblocks = c->now + 1;
}

/* ---- pruning --------------------------------------------------------------------------------- */

static bool
only_leaves(const struct hed_flow *f, uint32_t b)
{
    return f->blocks[b].ninsts == 0 && f->blocks[b].end == HED_FLOW_LEAVES;
}

/* Where a chain of empty blocks leads. */
static uint32_t
skip_empty_blocks(const struct hed_flow *f, uint32_t b)
{
    uint32_t steps = f->nblocks;

    while (steps-- && f->blocks[b].ninsts == 0 && f->blocks[b].end == HED_FLOW_GOES)
        b = f->blocks[b].next[0];
    return b;
}

static void
prune_edges(struct hed_flow *f)
{
    for (uint32_t i = 0; i < f->func->nlabels; i++)
        f->of_label[i] = skip_empty_blocks(f, f->of_label[i]);
    for (uint32_t i = 0; i < f->nblocks; i++) {
        struct hed_flow_block *b = &f->blocks[i];

        for (uint32_t k = 0; k < b->nnext; k++)
            b->next[k] = skip_empty_blocks(f, b->next[k]);
        if (b->end == HED_FLOW_GOES && only_leaves(f, b->next[0])) {
            b->end = HED_FLOW_LEAVES;
            b->nnext = 0;
        } else if (b->end == HED_FLOW_BRANCHES) {
            const bool taken = only_leaves(f, b->next[0]), other = only_leaves(f, b->next[1]);

            b->nnext = taken && other ? 0 : taken || other ? 1 : 2;
            if (taken && other)
                b->end = HED_FLOW_LEAVES;
            else if (taken)
                b->end = HED_FLOW_LEAVES_IF;
            else if (other)
                b->end = HED_FLOW_LEAVES_UNLESS;
            if (taken && !other)
                b->next[0] = b->next[1];
            if (b->nnext == 2 && b->next[0] == b->next[1]) {
                b->end = HED_FLOW_GOES;
                b->nnext = 1;
            }
        }
    }
}

static int
cut_blocks(struct hed_flow *f, const char **why)
{
    uint32_t ninsts;
    const uint32_t most = count_blocks(f->func, &ninsts);
    struct cut c = {.f = f};
    struct hed_ptx_inst **insts = hed_flow_alloc(f, ninsts, sizeof(struct hed_ptx_inst *));

    f->blocks = hed_flow_alloc(f, most, sizeof(*f->blocks));
    f->of_label = hed_flow_alloc(f, f->func->nlabels, sizeof(uint32_t));
    if (!f->blocks || !f->of_label || !insts)
        return HED_ENOMEM;
    place_labels(&c);
    fill_blocks(&c, insts);
    if (c.tables) {
        *why = "a jump through a table";
        return HED_ENOTSUP;
    }
    prune_edges(f);
    return 0;
}

int
hed_flow_init(struct hed_flow *f, const struct hed_ptx_func *func, const char **why)
{
    int err;

    memset(f, 0, sizeof(*f));
    f->func = func;
    hed_arena_init(&f->arena, CEILING);
    err = cut_blocks(f, why);
    if (err == 0)
        err = hed_flow_order(f, why);
    return err;
}

void
hed_flow_fini(struct hed_flow *f)
{
    hed_arena_fini(&f->arena);
}

/* ---- registers of an instruction ------------------------------------------------------------- */

static void
each_register(struct hed_ptx_operand *o, bool memory_only, hed_flow_reg_fn fn, void *arg)
{
    switch (o->kind) {
    case HED_PTX_OPERAND_REG:
        if (!memory_only)
            fn(arg, &o->reg);
        break;
    case HED_PTX_OPERAND_MEM:
        if (o->base == HED_PTX_OPERAND_REG)
            fn(arg, &o->reg);
        break;
    case HED_PTX_OPERAND_TUPLE: /* the operands of an access to a texture are read */
    case HED_PTX_OPERAND_VEC:
    case HED_PTX_OPERAND_PAIR:
    case HED_PTX_OPERAND_LIST:
        for (uint32_t i = 0; i < o->count; i++)
            each_register(&o->elems[i], memory_only && o->kind != HED_PTX_OPERAND_TUPLE, fn, arg);
        break;
    default:
        break;
    }
}

static bool
writes_first_operand(const struct hed_ptx_inst *i)
{
    const char role = i->form->patterns[i->pattern].slots[0].role;

    return i->noperands > 0 && (i->form->op == HED_PTX_OP_CALL || role == 'd' || role == 'D' ||
                                role == 'v' || role == 'V');
}

void
hed_flow_each_read(struct hed_ptx_inst *i, hed_flow_reg_fn fn, void *arg)
{
    const bool writes = writes_first_operand(i);

    if (i->guard)
        fn(arg, &i->guard);
    for (unsigned k = 0; k < i->noperands; k++)
        each_register(&i->operands[k], writes && k == 0, fn, arg);
}

static void
each_written(struct hed_ptx_operand *o, hed_flow_reg_fn fn, void *arg)
{
    if (o->kind == HED_PTX_OPERAND_REG)
        fn(arg, &o->reg);
    else if (o->kind == HED_PTX_OPERAND_VEC || o->kind == HED_PTX_OPERAND_PAIR ||
             o->kind == HED_PTX_OPERAND_LIST)
        for (uint32_t i = 0; i < o->count; i++)
            each_written(&o->elems[i], fn, arg);
}

void
hed_flow_each_write(struct hed_ptx_inst *i, hed_flow_reg_fn fn, void *arg)
{
    if (writes_first_operand(i))
        each_written(&i->operands[0], fn, arg);
}

void
hed_flow_note_value(void *set, const struct hed_ptx_reg **reg)
{
    bool *element = (bool *)set + (*reg)->id;

    *element = true;
}
