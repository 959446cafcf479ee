/* Follows what other threads have done from value to value. See spin.h, and wait.c for the rules.
 *
 *   sources   atomics, ordered and volatile loads, barrier objects; what is loaded from the same
 *             place in each of a loop's rounds that write nothing
 *   spread    along operands, guards and phis, and through the thread's own memory, which is one
 *             location
 *   loops     wait if a branch in them depends on such a value and they get one
 */
#include "kernel/ptx/pass/spin.h"

#include <string.h>

#include "base/err.h"
#include "kernel/ptx/pass/pass.h"
#include "kernel/ptx/pass/wait.h"

#define LOOK_MOST 128 /* instructions of a round that only looks */

struct spin {
    struct hed_flow *f;
    const struct hed_ssa *ssa;
    bool *tainted;  /* by value id */
    uint32_t *same; /* by value id: a value that it is copied from or to, towards the lowest */
    bool *steady;   /* by value id: the same in each round that only looks */
    bool *moves;    /* by value id: a header's phi that is not */
    uint32_t *root; /* by value id: the value that it is, if only such rounds were made */
    uint8_t *round; /* by block: REACHED and RETURNS, of such rounds */
    bool calls_wait;
    bool own_memory; /* a tainted value was stored to the thread's own memory */
    bool changed;
};

typedef void (*inst_fn)(struct spin *s, struct hed_ptx_inst *i);

static void
each_inst(struct spin *s, uint32_t first, uint32_t last, inst_fn fn)
{
    for (uint32_t b = first; b <= last; b++) {
        const struct hed_flow_block *block = &s->f->blocks[b];

        for (uint32_t i = 0; i < block->ninsts; i++)
            fn(s, block->insts[i]);
    }
}

/* ---- copies ---------------------------------------------------------------------------------- */

static uint32_t
lowest_copy(const struct spin *s, uint32_t v)
{
    while (s->same[v] != v)
        v = s->same[v];
    return v;
}

static void
join_copies(struct spin *s, uint32_t a, uint32_t b)
{
    a = lowest_copy(s, a);
    b = lowest_copy(s, b);
    if (a < b)
        s->same[b] = a;
    else
        s->same[a] = b;
}

static void
join_copy(struct spin *s, struct hed_ptx_inst *i)
{
    if (hed_wait_is_copy(i))
        join_copies(s, i->operands[0].reg->id, i->operands[1].reg->id);
}

static void
join_copied_values(struct spin *s)
{
    for (uint32_t v = 0; v < s->f->nvalues; v++)
        s->same[v] = v;
    each_inst(s, 0, s->f->nblocks - 1, join_copy);
    for (uint32_t b = 0; b < s->f->nblocks; b++)
        for (const struct hed_flow_phi *p = s->f->blocks[b].phis; p; p = p->next)
            for (uint32_t k = 0; k < s->f->blocks[b].nbefore; k++)
                if (p->from[k])
                    join_copies(s, p->to->id, p->from[k]->id);
}

/* Is it a compare-and-swap that expects what it found the last time, and is done when it finds
 * that? It fails only if another thread's has succeeded. */
static bool
swap_is_tried_again(const struct spin *s, const struct hed_ptx_inst *swap)
{
    uint32_t found;

    if (!hed_wait_is_swap(swap))
        return false;
    found = lowest_copy(s, swap->operands[0].reg->id);
    if (found != lowest_copy(s, swap->operands[2].reg->id))
        return false;
    for (uint32_t b = 0; b < s->f->nblocks; b++) {
        for (uint32_t k = 0; k < s->f->blocks[b].ninsts; k++) {
            const struct hed_ptx_inst *i = s->f->blocks[b].insts[k];

            if (hed_wait_compares(i) && lowest_copy(s, i->operands[1].reg->id) == found &&
                lowest_copy(s, i->operands[2].reg->id) == found)
                return true;
        }
    }
    return false;
}

/* ---- loops that only look -------------------------------------------------------------------- */

static bool
inst_only_looks(const struct hed_ptx_inst *i)
{
    if (i->is_refused)
        return false;
    switch (i->form->op) {
    case HED_PTX_OP_BAR_WARP_SYNC:
    case HED_PTX_OP_MEMBAR:
    case HED_PTX_OP_FENCE:
    case HED_PTX_OP_NANOSLEEP:
    case HED_PTX_OP_LD:
        return true;
    default:
        return hed_ptx_op_nature(i->form->op) == HED_PTX_COMPUTES;
    }
}

/* Blocks of a loop that only look: reached from its header, and leading back to it, by such blocks
 * alone. */
enum { REACHED = 1, RETURNS = 2, IN_ROUND = 3 };

static bool
block_only_looks(const struct spin *s, uint32_t b)
{
    const struct hed_flow_block *block = &s->f->blocks[b];

    for (uint32_t i = 0; i < block->ninsts; i++)
        if (!inst_only_looks(block->insts[i]))
            return false;
    return true;
}

static bool
is_in_round(const struct spin *s, uint32_t b)
{
    return s->round[b] == IN_ROUND;
}

/* Finds the rounds of a loop that only look: whatever else it does in others, it may go round so
 * until another thread has written. False if there are none, or they are long. */
static bool
find_rounds(struct spin *s, const struct hed_flow_loop *loop)
{
    uint32_t count = 0;

    memset(s->round, 0, s->f->nblocks);
    for (uint32_t b = loop->header; b <= loop->last; b++) {
        bool comes = b == loop->header;

        for (uint32_t k = 0; k < s->f->blocks[b].nbefore; k++)
            comes |= s->f->blocks[b].before[k] < b && s->round[s->f->blocks[b].before[k]];
        if (comes && block_only_looks(s, b))
            s->round[b] = REACHED;
    }
    for (uint32_t b = loop->last + 1; b-- > loop->header;) {
        const struct hed_flow_block *block = &s->f->blocks[b];
        bool returns = false;

        for (uint32_t k = 0; k < block->nnext; k++)
            returns |= block->next[k] == loop->header ||
                       (block->next[k] > b && (s->round[block->next[k]] & RETURNS));
        if (s->round[b] && returns) {
            s->round[b] = IN_ROUND;
            count += block->ninsts + 1;
        }
    }
    return is_in_round(s, loop->header) && count <= LOOK_MOST;
}

struct reads {
    const bool *set;
    bool any, all;
};

static void
note_value_taken(void *arg, const struct hed_ptx_reg **reg)
{
    struct reads *r = arg;

    r->any |= r->set[(*reg)->id];
    r->all &= r->set[(*reg)->id];
}

static struct reads
look_at_reads(const bool *set, struct hed_ptx_inst *i)
{
    struct reads r = {.set = set, .all = true};

    hed_flow_each_read(i, note_value_taken, &r);
    return r;
}

/* The value that a phi has if only rounds that look were made: that of the edges of such rounds. */
static uint32_t
root_of_phi(const struct spin *s, const struct hed_flow_block *block, const struct hed_flow_phi *p)
{
    uint32_t root = HED_FLOW_NONE;

    for (uint32_t k = 0; k < block->nbefore; k++) {
        uint32_t from;

        if (!is_in_round(s, block->before[k]))
            continue;
        from = p->from[k] ? s->root[p->from[k]->id] : p->to->id;
        if (root != HED_FLOW_NONE && root != from)
            return p->to->id;
        root = from;
    }
    return root == HED_FLOW_NONE ? p->to->id : root;
}

/* Addresses are often computed in the loop, but from what stays the same. */
static void
note_steady(struct spin *s, struct hed_ptx_inst *i)
{
    if (!i->guard && i->form->op != HED_PTX_OP_LD && look_at_reads(s->steady, i).all)
        hed_flow_each_write(i, hed_flow_note_value, s->steady);
}

/* What stays the same from round to round. */
static void
find_steady(struct spin *s, uint32_t l)
{
    const struct hed_flow_loop *loop = &s->f->loops[l];

    for (uint32_t v = 0; v < s->f->nvalues; v++) {
        s->steady[v] = !hed_ssa_is_made_in(s->ssa, s->f, v, l);
        s->root[v] = v;
    }
    for (uint32_t b = loop->header; b <= loop->last; b++) {
        const struct hed_flow_block *block = &s->f->blocks[b];

        if (!is_in_round(s, b))
            continue;
        for (const struct hed_flow_phi *p = block->phis; p; p = p->next) {
            const uint32_t v = p->to->id;

            if (b == loop->header) {
                s->steady[v] = !s->moves[v];
            } else {
                s->root[v] = root_of_phi(s, block, p);
                s->steady[v] = s->root[v] != v && s->steady[s->root[v]];
            }
        }
        each_inst(s, b, b, note_steady);
    }
}

/* Header's phis that another round changes are not steady. True if there was a new one. */
static bool
find_moving(struct spin *s, const struct hed_flow_loop *loop)
{
    const struct hed_flow_block *header = &s->f->blocks[loop->header];
    bool any = false;

    for (const struct hed_flow_phi *p = header->phis; p; p = p->next) {
        const uint32_t v = p->to->id, next = root_of_phi(s, header, p);

        if (next != v && !s->moves[v])
            s->moves[v] = any = true;
    }
    return any;
}

static void
taint_steady_load(struct spin *s, struct hed_ptx_inst *i)
{
    if (i->form->op == HED_PTX_OP_LD && hed_wait_others_write(i->form) && !i->guard &&
        look_at_reads(s->steady, i).all)
        hed_flow_each_write(i, hed_flow_note_value, s->tainted);
}

static void
taint_repeated_loads(struct spin *s)
{
    for (uint32_t l = 0; l < s->f->nloops; l++) {
        const struct hed_flow_loop *loop = &s->f->loops[l];

        if (!find_rounds(s, loop))
            continue;
        do
            find_steady(s, l);
        while (find_moving(s, loop));
        for (uint32_t b = loop->header; b <= loop->last; b++)
            if (is_in_round(s, b))
                each_inst(s, b, b, taint_steady_load);
    }
}

/* ---- spreading ------------------------------------------------------------------------------- */

static void
taint_written(void *arg, const struct hed_ptx_reg **reg)
{
    struct spin *s = arg;

    s->changed |= !s->tainted[(*reg)->id];
    s->tainted[(*reg)->id] = true;
}

/* Do the lanes that a guard leaves out keep a tainted value? */
static void
taint_kept(void *arg, const struct hed_ptx_reg **reg)
{
    struct spin *s = arg;
    const struct hed_ptx_reg *old = s->ssa->values[(*reg)->id].old;

    if (old && s->tainted[old->id])
        taint_written(s, reg);
}

static void
spread_inst(struct spin *s, struct hed_ptx_inst *i)
{
    const unsigned op = i->form->op;

    if (i->is_refused)
        return;
    hed_flow_each_write(i, taint_kept, s);
    if (!(hed_wait_is_source(i) && !swap_is_tried_again(s, i)) &&
        !(op == HED_PTX_OP_CALL && s->calls_wait) &&
        !(op == HED_PTX_OP_LD && s->own_memory && hed_wait_is_own_memory(i->form)) &&
        !look_at_reads(s->tainted, i).any)
        return;
    hed_flow_each_write(i, taint_written, s);
    if ((op == HED_PTX_OP_ST && hed_wait_is_own_memory(i->form)) || op == HED_PTX_OP_CALL) {
        s->changed |= !s->own_memory;
        s->own_memory = true;
    }
}

static void
spread_phis(struct spin *s)
{
    for (uint32_t b = 0; b < s->f->nblocks; b++) {
        for (struct hed_flow_phi *p = s->f->blocks[b].phis; p; p = p->next) {
            bool is = false;

            for (uint32_t k = 0; k < s->f->blocks[b].nbefore; k++)
                is |= p->from[k] && s->tainted[p->from[k]->id];
            if (is)
                taint_written(s, &p->to);
        }
    }
}

static void
spread_over_values(struct spin *s)
{
    do {
        s->changed = false;
        each_inst(s, 0, s->f->nblocks - 1, spread_inst);
        spread_phis(s);
    } while (s->changed);
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* Does it go one way or another by what other threads do? A pause is such a wait, too. */
static bool
turns_on_taint(const struct spin *s, const struct hed_ptx_inst *i)
{
    switch (i->form->op) {
    case HED_PTX_OP_NANOSLEEP:
        return true;
    case HED_PTX_OP_BRA:
    case HED_PTX_OP_RET:
    case HED_PTX_OP_EXIT:
        return i->guard && s->tainted[i->guard->id];
    default:
        return false;
    }
}

static void
note_written(void *arg, const struct hed_ptx_reg **reg)
{
    struct reads *r = arg;

    r->any |= r->set[(*reg)->id];
}

static bool
writes_taint(const struct spin *s, struct hed_ptx_inst *i)
{
    struct reads r = {.set = s->tainted};

    hed_flow_each_write(i, note_written, &r);
    return r.any;
}

/* Does it learn what other threads do at this moment, or wait for them? */
static bool
inst_learns(const struct spin *s, struct hed_ptx_inst *i)
{
    const unsigned op = i->form->op;

    if (i->is_refused)
        return false;
    if (op == HED_PTX_OP_NANOSLEEP || (op == HED_PTX_OP_CALL && s->calls_wait))
        return true;
    if (hed_wait_is_source(i))
        return !swap_is_tried_again(s, i);
    return op == HED_PTX_OP_LD && hed_wait_others_write(i->form) && writes_taint(s, i);
}

static bool
loop_waits(const struct spin *s, const struct hed_flow_loop *loop)
{
    bool turns = false, learns = false;

    for (uint32_t b = loop->header; b <= loop->last; b++) {
        const struct hed_flow_block *block = &s->f->blocks[b];

        for (uint32_t i = 0; i < block->ninsts; i++) {
            turns |= turns_on_taint(s, block->insts[i]);
            learns |= inst_learns(s, block->insts[i]);
        }
        turns |= block->last && turns_on_taint(s, block->last);
    }
    return turns && learns;
}

bool *
hed_spin_init(struct hed_flow *f, const struct hed_ssa *ssa, const struct hed_ptx_unit *u)
{
    const size_t n = (size_t)f->nvalues + 1;
    struct spin s = {
        .f = f,
        .ssa = ssa,
        .tainted = hed_flow_alloc(f, n, sizeof(bool)),
        .steady = hed_flow_alloc(f, n, sizeof(bool)),
        .moves = hed_flow_alloc(f, n, sizeof(bool)),
        .root = hed_flow_alloc(f, n, sizeof(uint32_t)),
        .round = hed_flow_alloc(f, f->nblocks, sizeof(uint8_t)),
        .same = hed_flow_alloc(f, n, sizeof(uint32_t)),
        .calls_wait = hed_wait_calls(u),
    };
    bool *waits = hed_flow_alloc(f, f->nloops, sizeof(bool));

    if (!s.tainted || !s.steady || !s.same || !s.moves || !s.root || !s.round || !waits)
        return NULL;
    join_copied_values(&s);
    taint_repeated_loads(&s);
    spread_over_values(&s);
    for (uint32_t l = 0; l < f->nloops; l++)
        waits[l] = loop_waits(&s, &f->loops[l]);
    return waits;
}
