/* Whether a warp can run a kernel under masks. See masks.h. */
#include "kernel/ptx/pass/masks.h"

#include <stdlib.h>

#include "base/err.h"
#include "kernel/ptx/pass/apart.h"
#include "kernel/ptx/pass/pass.h"
#include "kernel/ptx/pass/spin.h"
#include "kernel/ptx/pass/wait.h"
#include "kernel/ptx/run/layout.h"

#define LANES_MAX 16000 /* instructions for 32 lanes; LLVM takes 0.2 to 1.3 ms for each */

/* ---- loops that may wait --------------------------------------------------------------------- */

/* A loop that all lanes of the warp go round together can only wait for other warps. */
static bool
goes_round_together(const struct hed_uniforms *u, uint32_t loop)
{
    return !u->leaves_singly[loop] && !u->partial[u->f->loops[loop].header];
}

/* Lanes that are not in a loop while others go round it, and what they would do next. */
struct outside {
    const struct hed_uniforms *u;
    const struct hed_flow_loop *loop;
    bool global_only; /* the kernel waits for what is written to global memory, nothing else */
    bool *seen;       /* by block */
    uint32_t *stack, depth;
};

/* Does an instruction wait until all lanes of the warp have come? */
static bool
waits_for_warp(const struct hed_uniforms *u, const struct hed_ptx_inst *i)
{
    struct hed_uniform of;

    if (i->guard || i->is_refused || i->noperands != 1)
        return false;
    of = hed_uniform_operand(u, &i->operands[0]);
    if (!of.is_constant)
        return false;
    return (i->form->op == HED_PTX_OP_BARRIER_SYNC && of.constant == 0) ||
           (i->form->op == HED_PTX_OP_BAR_WARP_SYNC && (uint32_t)of.constant == UINT32_MAX);
}

static bool
is_in_space(const struct hed_ptx_inst *i, enum hed_ptx_space space)
{
    return i->form->nspaces && i->form->spaces[0] == space;
}

/* Does an instruction of a loop learn nothing of other threads but what they write to global
 * memory? */
static bool
learns_global_only(const struct hed_ptx_inst *i)
{
    if (i->is_refused)
        return false;
    switch (i->form->op) {
    case HED_PTX_OP_LD:
    case HED_PTX_OP_LDU:
        return is_in_space(i, HED_PTX_SPACE_GLOBAL) || !hed_wait_others_write(i->form);
    case HED_PTX_OP_ATOM:
        return is_in_space(i, HED_PTX_SPACE_GLOBAL);
    case HED_PTX_OP_ST:
    case HED_PTX_OP_RED:
    case HED_PTX_OP_MEMBAR:
    case HED_PTX_OP_FENCE:
    case HED_PTX_OP_NANOSLEEP:
    case HED_PTX_OP_BRA:
        return true;
    default:
        return hed_ptx_op_nature(i->form->op) == HED_PTX_COMPUTES;
    }
}

static bool
loop_learns_global_only(const struct hed_flow *f, const struct hed_flow_loop *loop)
{
    for (uint32_t b = loop->header; b <= loop->last; b++) {
        const struct hed_flow_block *block = &f->blocks[b];

        for (uint32_t i = 0; i < block->ninsts; i++)
            if (!learns_global_only(block->insts[i]))
                return false;
        if (block->last && !learns_global_only(block->last))
            return false;
    }
    return true;
}

/* Could a lane in the loop wait for what the instruction does? */
static bool
may_be_awaited(const struct outside *o, const struct hed_ptx_inst *i)
{
    if (i->is_refused)
        return true;
    switch (i->form->op) {
    case HED_PTX_OP_ST:
    case HED_PTX_OP_RED:
    case HED_PTX_OP_ATOM:
        return !o->global_only || !is_in_space(i, HED_PTX_SPACE_SHARED);
    case HED_PTX_OP_LD:
    case HED_PTX_OP_MEMBAR:
    case HED_PTX_OP_FENCE:
    case HED_PTX_OP_NANOSLEEP:
    case HED_PTX_OP_ACTIVEMASK:
        return false;
    default:
        return hed_ptx_op_nature(i->form->op) != HED_PTX_COMPUTES;
    }
}

static void
go_outside(struct outside *o, uint32_t b)
{
    for (uint32_t k = 0; k < o->u->f->blocks[b].nnext; k++) {
        const uint32_t to = o->u->f->blocks[b].next[k];

        if (!o->seen[to]) {
            o->seen[to] = true;
            o->stack[o->depth++] = to;
        }
    }
}

/* Follows lanes from a block that is behind the loop. True if all paths lead to a place where they
 * wait for those in the loop, or end, before they do anything that those could wait for. */
static bool
stops_harmlessly(struct outside *o, uint32_t b)
{
    const struct hed_flow_block *block = &o->u->f->blocks[b];

    for (uint32_t i = 0; i < block->ninsts; i++) {
        if (waits_for_warp(o->u, block->insts[i]))
            return true;
        if (may_be_awaited(o, block->insts[i]))
            return false;
    }
    for (uint32_t k = 0; k < block->nnext; k++)
        if (block->next[k] <= b)
            return false;
    go_outside(o, b);
    return true;
}

/* Lanes that part at the end of a block: may some of them go round the loop while others do not? */
static bool
parts_before(const struct hed_flow *f, uint32_t b, const struct hed_flow_loop *loop)
{
    const uint32_t after = f->blocks[b].after;

    if (b < loop->header)
        return after == HED_FLOW_NONE || after > loop->header;
    /* Some leave a loop around this one, and others go round it once more. */
    for (uint32_t l = loop->parent; l != HED_FLOW_NONE; l = f->loops[l].parent)
        if (hed_flow_in_loop(f, b, l) && (after == HED_FLOW_NONE || !hed_flow_in_loop(f, after, l)))
            return true;
    return false;
}

/* Lanes that leave the loop, and those that came by other ways, wait behind it under masks. That
 * does no harm where they would wait for the loop's lanes anyway: thread 0 takes a lock in a loop,
 * and all others are at the barrier behind it. */
static int
others_wait_anyway(const struct hed_uniforms *u, uint32_t loop, bool global_only, bool *they_do)
{
    const struct hed_flow *f = u->f;
    struct outside o = {
        .u = u,
        .loop = &f->loops[loop],
        .global_only = global_only,
        .seen = calloc((size_t)f->nblocks + 1, sizeof(bool)),
        .stack = calloc((size_t)f->nblocks + 1, sizeof(uint32_t)),
    };

    *they_do = true;
    if (!o.seen || !o.stack) {
        free(o.seen);
        free(o.stack);
        return HED_ENOMEM;
    }
    for (uint32_t b = o.loop->header; b <= o.loop->last && u->leaves_singly[loop]; b++)
        go_outside(&o, b);
    /* Blocks are numbered in the order in which they run: whoever would do something in an earlier
     * one has done it. */
    for (uint32_t b = 0; b < f->nblocks; b++)
        if (u->parts[b] && parts_before(f, b, o.loop))
            go_outside(&o, b);
    while (o.depth && *they_do) {
        const uint32_t b = o.stack[--o.depth];

        if (b > o.loop->last)
            *they_do = stops_harmlessly(&o, b);
        else if (b < o.loop->header)
            go_outside(&o, b);
    }
    /* Those that are at the beginning of a loop around this one do more than wait. */
    for (uint32_t l = o.loop->parent; l != HED_FLOW_NONE; l = f->loops[l].parent)
        for (uint32_t k = 0; k < f->blocks[f->loops[l].header].nbefore; k++) {
            const uint32_t from = f->blocks[f->loops[l].header].before[k];

            if (from >= f->loops[l].header && o.seen[from])
                *they_do = false;
        }
    free(o.seen);
    free(o.stack);
    return 0;
}

static int
look_at_waiting_loops(struct hed_masks *m, const struct hed_uniforms *u)
{
    bool global_only = true;
    int err = 0;

    /* Whoever waits for another kind of memory may be the one whom a loop waits for. */
    for (uint32_t i = 0; i < u->f->nloops; i++)
        global_only &= !m->waits[i] || loop_learns_global_only(u->f, &u->f->loops[i]);
    for (uint32_t i = 0; !err && i < u->f->nloops; i++) {
        bool is_safe;

        if (!m->waits[i])
            continue;
        m->any_waits = true;
        is_safe = goes_round_together(u, i);
        if (!is_safe)
            err = others_wait_anyway(u, i, global_only, &is_safe);
        if (!is_safe)
            m->why = "a loop in which a lane may wait for another";
    }
    return err;
}

/* Lanes that have come back from a function wait behind the call for those that are still in it. */
static int
look_at_waiting_functions(struct hed_masks *m, const struct hed_ptx_unit *unit)
{
    for (uint32_t i = 1; i < unit->nfuncs; i++) {
        const struct hed_ptx_func *f = unit->funcs[i];
        bool *waits = calloc((size_t)f->nlabels + 1, sizeof(bool));
        bool any = false;
        const int err = waits ? hed_ptx_find_waits(unit, f, waits, &any) : HED_ENOMEM;

        free(waits);
        if (err)
            return err;
        if (any) {
            m->why = "a function in which a lane may wait for another";
            m->is_apart = true;
        }
    }
    return 0;
}

/* ---- instructions ---------------------------------------------------------------------------- */

bool
hed_masks_is_barrier(const struct hed_ptx_inst *i)
{
    switch (i->form->op) {
    case HED_PTX_OP_BARRIER_SYNC:
    case HED_PTX_OP_BARRIER_ARRIVE:
    case HED_PTX_OP_BARRIER_RED:
    case HED_PTX_OP_CLUSTER_WAIT:
        return true;
    default:
        return false;
    }
}

bool
hed_masks_is_split(const struct hed_uniforms *u, uint32_t b, const struct hed_ptx_inst *i)
{
    return u->partial[b] || (i->guard && u->values[i->guard->id].kind != HED_UNIFORM);
}

static const char *
why_not_blocks(const struct hed_uniforms *u)
{
    uint32_t lanes = 0;

    for (uint32_t b = 0; b < u->f->nblocks; b++) {
        const struct hed_flow_block *block = &u->f->blocks[b];

        for (uint32_t k = 0; k < block->ninsts; k++) {
            const struct hed_ptx_inst *i = block->insts[k];

            if (hed_masks_is_barrier(i) && hed_masks_is_split(u, b, i))
                return "a barrier that some lanes do not reach";
            lanes += !i->is_refused && hed_uniform_way(u, i) == HED_PER_LANE;
        }
    }
    return lanes > LANES_MAX ? "too many instructions" : NULL;
}

int
hed_masks_init(struct hed_masks *m, struct hed_flow *f, const struct hed_uniforms *u,
               const struct hed_ptx_unit *unit)
{
    int err;

    *m = (struct hed_masks){0};
    err = hed_apart_find(f, u, &m->is_apart);
    m->waits = err == 0 ? hed_spin_init(f, u->ssa, unit) : NULL;
    if (!m->waits)
        return err ? err : HED_ENOMEM;
    err = look_at_waiting_loops(m, u);
    if (m->is_apart)
        m->why = "an operation that lanes may come to at different places";
    if (err == 0)
        err = look_at_waiting_functions(m, unit);
    if (err == 0 && !m->why)
        m->why = why_not_blocks(u);
    return err;
}
