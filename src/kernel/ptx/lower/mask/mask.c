/* The mask shape: a warp is 32 lanes, and the order in which they run the blocks of a kernel is
 * fixed when the code is made (pass/flow.h). Each block runs once for all lanes that want it; lanes
 * on other paths are bits in a mask. Values that are the same in all lanes, or step from lane to
 * lane, are plain numbers (pass/uniform.h).
 *
 * What it does to a kernel, pass by pass, is a list: lower/passes.c.
 *
 * It refuses what it cannot do, and the warp shape (lower/warp/) does it instead: loops with two
 * entries, jumps through tables, loops in which a lane may wait for another, barriers that only
 * some lanes of a warp reach, vector registers. Functions other than the kernel always have that
 * shape.
 */
#include "kernel/ptx/lower/mask/mask.h"

#include <stdlib.h>

#include "base/err.h"
#include "kernel/ptx/lower/passes.h"

/* A block with this many accesses to rows and at most so many instructions is made twice. */
#define TWICE_ROWS 2
#define TWICE_MOST 48

/* ---- instructions ---------------------------------------------------------------------------- */

/* What a guarded instruction does not write stays as it was. */
static void
keep_old_value(void *arg, const struct hed_ptx_reg **reg)
{
    struct hed_lower *l = arg;

    hed_mask_copy(l, *reg, hed_mask_state(l)->ssa.values[(*reg)->id].old);
}

void
hed_mask_inst(struct hed_lower *l, struct hed_ptx_inst *i)
{
    struct mask *m = hed_mask_state(l);
    const unsigned rows = HED_PTX_LANES / m->uniforms.width;

    if (i->is_refused) {
        hed_lower_inst(l, i);
        return;
    }
    if (i->guard)
        hed_flow_each_write(i, keep_old_value, l);
    m->row = 0;
    if (hed_mask_compare(l, i))
        return;
    m->way = hed_uniform_way(&m->uniforms, i);
    if (m->way == HED_PER_LANE) {
        hed_lower_inst(l, i);
        return;
    }
    l->lanes = 1;
    for (m->row = 0; m->row < (m->way == HED_ONCE ? 1 : rows) && !l->err; m->row++)
        hed_lower_inst(l, i);
    m->row = 0;
    l->lanes = HED_PTX_LANES;
    if (m->way == HED_PER_ROW)
        hed_mask_note_wraps(l, i);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Is the block made twice: once for the case that all 32 lanes run? That saves each access to a row
 * its test. */
static bool
is_made_twice(const struct hed_lower *l, uint32_t b)
{
    const struct mask *m = hed_mask_state(l);
    const struct hed_flow_block *block = &m->flow.blocks[b];
    unsigned rows = 0;

    if (block->ninsts > TWICE_MOST || l->options->rows == HED_ROWS_ONE ||
        (l->options->rows == HED_ROWS_32 && hed_mask_all_lanes_come(m, b)))
        return false;
    for (uint32_t i = 0; i < block->ninsts; i++) {
        if (hed_masks_is_barrier(block->insts[i]))
            return false;
        rows += hed_uniform_moves_row(&m->uniforms, block->insts[i]);
    }
    return rows >= TWICE_ROWS;
}

/* The instructions of a block, and where lanes go then. */
static void
make_code(struct hed_lower *l, uint32_t b)
{
    struct mask *m = hed_mask_state(l);
    const struct hed_flow_block *block = &m->flow.blocks[b];

    for (uint32_t i = 0; i < block->ninsts && !l->err; i++) {
        const bool cuts = m->is_cut && hed_masks_is_barrier(block->insts[i]);
        const uint32_t in_tile = hed_mask_make_tile(l, block->insts + i, block->ninsts - i);

        if (in_tile) {
            i += in_tile - 1;
            continue;
        }
        m->index = i;
        if (cuts)
            hed_mask_settle_late(l);
        else
            hed_mask_note_late(l, block->insts[i]);
        if (cuts && block->insts[i]->form->op == HED_PTX_OP_BARRIER_SYNC)
            hed_mask_cut(l, b, i);
        else
            hed_mask_inst(l, block->insts[i]);
    }
    hed_mask_settle_late(l);
    if (!l->err)
        hed_mask_end_block(l, b);
}

void
hed_mask_make_block(struct hed_lower *l, uint32_t b)
{
    const struct warp *w = hed_lower_warp_state(l);
    LLVMBasicBlockRef all, some;
    LLVMValueRef rest;

    w->mask->block = b;
    hed_mask_begin_block(l, b);
    if (is_made_twice(l, b)) {
        all = hed_lower_block(l, "");
        some = hed_lower_block(l, "");
        rest = LLVMBuildNot(l->b, hed_lower_warp_running(l), "");
        hed_lower_unlikely(l, LLVMBuildIsNotNull(l->b, rest, ""), some, all);
        LLVMPositionBuilderAtEnd(l->b, all);
        LLVMBuildStore(l->b, hed_lower_word(l, UINT32_MAX), w->bits);
        make_code(l, b);
        LLVMPositionBuilderAtEnd(l->b, some);
    }
    make_code(l, b);
}

static void
make_blocks(struct hed_lower *l)
{
    const struct mask *m = hed_mask_state(l);
    const struct hed_flow *f = &m->flow;

    for (uint32_t b = 0; b < f->nblocks && !l->err; b++) {
        uint32_t solo = HED_FLOW_NONE;

        for (uint32_t i = 0; i < f->nloops && !l->err; i++) {
            if (f->loops[i].header == b && m->guesses[i])
                hed_mask_make_guess(l, i);
            if (f->loops[i].header == b && m->runs_solo[i] && solo == HED_FLOW_NONE)
                solo = i;
        }
        if (l->err)
            return;
        if (solo == HED_FLOW_NONE) {
            hed_mask_make_block(l, b);
        } else {
            hed_mask_make_solo(l, solo);
            b = f->loops[solo].last;
        }
    }
}

/* ---- the shape's part ------------------------------------------------------------------------ */

static void
mask_enter(struct hed_lower *l)
{
    struct hed_lower_function *f = l->function;
    struct warp *w = hed_lower_warp_new(l);

    f->state = w;
    if (l->err)
        return;
    w->mask = calloc(1, sizeof(*w->mask));
    if (!w->mask) {
        l->err = HED_ENOMEM;
        return;
    }
    hed_mask_take_arguments(l);
}

/* Rows of 32 fill their warps. */
LLVMValueRef
hed_mask_lanes_that_exist(struct hed_lower *l)
{
    if (l->options->rows == HED_ROWS_32)
        return hed_lower_word(l, UINT32_MAX);
    if (l->options->rows == HED_ROWS_ONE)
        return hed_lower_word(l, 1);
    return hed_lower_field(l, l->i32, l->function->warp, offsetof(struct hed_ptx_warp, lanes));
}

int
hed_pass_frame(struct hed_lower *l)
{
    struct warp *w = l->function->state;
    struct mask *m = w->mask;

    if (m->masks.any_waits)
        l->info.flags |= HED_PTX_WAITS | HED_PTX_GRID;
    m->is_cut = hed_mask_may_be_cut(l);
    hed_mask_place_variables(l);
    m->values = calloc((size_t)m->flow.nvalues + 1, sizeof(*m->values));
    w->bits = hed_lower_alloca(l, l->i32, 1, 0);
    if (!m->values || hed_mask_make_gates(l) != 0)
        return HED_ENOMEM;
    LLVMBuildStore(l->b, hed_mask_lanes_that_exist(l), m->waiting[0]);
    hed_mask_prepare_cuts(l);
    hed_pass_did(l, "%s", m->is_cut ? "cut at barriers" : "not cut");
    return l->err;
}

/* Makes the code of all blocks; loops in the way, or the ways, that the passes chose. */
int
hed_pass_blocks(struct hed_lower *l)
{
    make_blocks(l);
    return l->err;
}

static void
mask_body(struct hed_lower *l)
{
    (void)hed_lower_run_passes(l, hed_passes_of_masks);
}

static void
mask_leave(struct hed_lower *l)
{
    struct warp *w = l->function->state;

    if (w && w->mask) {
        hed_flow_fini(&w->mask->flow);
        free(w->mask->values);
        free(w->mask->begins);
        free(w->mask->gates);
        free(w->mask->waiting);
        free(w->mask->again);
        free(w->mask);
    }
    hed_lower_warp_free(w);
}

static void
mask_guard_begin(struct hed_lower *l, LLVMValueRef holds)
{
    struct warp *w = hed_lower_warp_state(l);
    LLVMBasicBlockRef inside;
    LLVMValueRef bits;

    if (l->lanes == 1) {
        inside = hed_lower_block(l, "");
        w->mask->after = hed_lower_block(l, "");
        w->mask->guard = holds;
        LLVMBuildCondBr(l->b, holds, inside, w->mask->after);
        LLVMPositionBuilderAtEnd(l->b, inside);
        return;
    }
    w->guard = hed_lower_warp_guard(l->inst);
    if (w->guard == WARP_GUARD_SELECT || w->guard == WARP_GUARD_LEAVE) {
        w->holds = holds;
        return;
    }
    w->outer = hed_lower_warp_running(l);
    bits = LLVMBuildAnd(l->b, w->outer, hed_lower_warp_pack(l, holds), "");
    inside = hed_lower_block(l, "");
    w->after = hed_lower_block(l, "");
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, bits, ""), w->after, inside);
    LLVMPositionBuilderAtEnd(l->b, inside);
    LLVMBuildStore(l->b, bits, w->bits);
    w->inside = holds;
}

static void
mask_guard_end(struct hed_lower *l)
{
    struct warp *w = hed_lower_warp_state(l);

    if (l->lanes == 1) {
        LLVMBuildBr(l->b, w->mask->after);
        LLVMPositionBuilderAtEnd(l->b, w->mask->after);
        w->mask->guard = NULL;
        return;
    }
    if (w->guard == WARP_GUARD_SKIP || w->guard == WARP_GUARD_SPLIT) {
        LLVMBuildStore(l->b, w->outer, w->bits);
        LLVMBuildBr(l->b, w->after);
        LLVMPositionBuilderAtEnd(l->b, w->after);
    }
    w->holds = NULL;
    w->inside = NULL;
    w->guard = WARP_GUARD_NONE;
}

/* Under a guard: without one it ends the block, and edge.c does it. */
static void
mask_ret(struct hed_lower *l)
{
    hed_mask_leave(l, hed_lower_warp_bits(l));
}

static LLVMValueRef
mask_all_run(struct hed_lower *l)
{
    return LLVMBuildICmp(l->b, LLVMIntEQ, hed_lower_warp_bits(l), hed_lower_word(l, UINT32_MAX),
                         "");
}

/* A slot that is no register's: the carry, operands of calls. */
static void
mask_assign(struct hed_lower *l, LLVMValueRef slot, LLVMValueRef v)
{
    v = LLVMBuildSelect(l->b, hed_lower_warp_mask(l), v,
                        LLVMBuildLoad2(l->b, LLVMTypeOf(v), slot, ""), "");
    LLVMBuildStore(l->b, v, slot);
}

const struct hed_lower_shape hed_lower_mask = {
    .made = HED_PTX_MADE_MASKS,
    .functions = &hed_lower_warp,
    .declare = hed_mask_declare,
    .enter = mask_enter,
    .body = mask_body,
    .leave = mask_leave,
    .finish = hed_mask_finish,
    .guard_begin = mask_guard_begin,
    .guard_end = mask_guard_end,
    .ret = mask_ret,
    .exit = mask_ret,
    .call = hed_lower_warp_do_call,
    .trap = hed_mask_trap,
    .assign = mask_assign,
    .read = hed_mask_read,
    .write = hed_mask_write,
    .takes_any_nan = hed_mask_takes_any_nan,
    .hide = hed_mask_hide,
    .tid = hed_mask_tid,
    .lane = hed_mask_lane,
    .address = hed_mask_address,
    .load = hed_mask_load,
    .store = hed_mask_store,
    .each = hed_lower_warp_each,
    .each_short = hed_mask_each_short,
    .once = hed_mask_once,
    .barrier = hed_lower_warp_barrier,
    .barrier_arrive = hed_lower_warp_barrier_arrive,
    .barrier_reduce = hed_mask_barrier_reduce,
    .shfl = hed_lower_warp_shfl,
    .vote = hed_lower_warp_vote,
    .match = hed_lower_warp_match,
    .redux = hed_lower_warp_redux,
    .activemask = hed_lower_warp_activemask,
    .elect = hed_lower_warp_elect,
    .warp_sync = hed_lower_warp_sync,
    .all_run = mask_all_run,
    .together = hed_lower_warp_together,
    .nanosleep = hed_lower_warp_nanosleep,
};
