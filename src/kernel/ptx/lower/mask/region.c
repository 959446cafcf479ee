/* Kernels that are cut at barriers: no warp needs a stack of its own.
 *
 *      hed_warp(warp, at)            run.c, for each block:
 *        switch (at)                   do
 *          0: begin                          for each warp: hed_warp(warp, where it goes on)
 *          1: take values out of frame   while a warp is not at its end
 *
 *      at a barrier: put the live values into the frame, say where to go on, return
 *
 * Numbers that follow from parameters and positions are made again rather than kept: that is
 * cheaper, and LLVM knows more about them than about a word from memory.
 *
 * Warps are `together` if those that have not ended always come to the same barrier. Then where
 * they go on, and values that are the same in all of them, such as the counter of a loop with a
 * barrier in it, are not in frames: run.c has two copies of them, because the first warp must not
 * change what the next one reads.
 *
 * Cut are kernels whose barriers are all "bar.sync 0" or "bar.red 0", where no lane waits
 * elsewhere. Others wait at their barriers on stacks of their own, as in the warp shape.
 *
 * At a bar.red each warp adds its lanes to block->coming. When all warps have come, run.c makes
 * that block->came, from which they take the result.
 */
#include <stddef.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/number.h"
#include "kernel/ptx/lower/mask/mask.h"
#include "kernel/ptx/run/layout.h"

#define FRAME_ALIGN 16     /* of values in the frame */
#define VARIABLES_MAX 8192 /* bytes in local memory, of a thread of a kernel that is cut */

/* ---- may it be cut? -------------------------------------------------------------------------- */

/* A barrier of all threads of the block. */
static bool
is_plain_barrier(const struct mask *m, const struct hed_ptx_inst *i)
{
    const bool reduces = i->form->op == HED_PTX_OP_BARRIER_RED;
    const struct hed_ptx_operand *id = &i->operands[reduces ? 1 : 0];

    if ((i->form->op != HED_PTX_OP_BARRIER_SYNC && !reduces) || i->noperands != (reduces ? 3 : 1) ||
        i->guard)
        return false;
    if (id->kind == HED_PTX_OPERAND_REG)
        return m->uniforms.values[id->reg->id].is_constant &&
               m->uniforms.values[id->reg->id].constant == 0;
    return id->kind == HED_PTX_OPERAND_INT && id->bits == 0;
}

/* Does the frame have room for the variables in local memory? */
static bool
may_keep_variables(const struct hed_ptx_func *f)
{
    uint64_t bytes = 0;

    for (const struct hed_ptx_var *v = f->vars; v; v = v->next)
        if (v->space == HED_PTX_SPACE_LOCAL)
            bytes += hed_lower_warp_stride(v);
    return bytes <= VARIABLES_MAX;
}

/* A function that sleeps gives its warp back to the runner, in the middle of a region. */
static bool
some_function_sleeps(const struct hed_ptx_unit *u)
{
    for (uint32_t i = 1; i < u->nfuncs; i++)
        for (const struct hed_ptx_stmt *s = u->funcs[i]->body; s; s = s->next)
            if (s->kind == HED_PTX_STMT_INST &&
                ((const struct hed_ptx_inst *)s)->form->op == HED_PTX_OP_NANOSLEEP)
                return true;
    return false;
}

bool
hed_mask_may_be_cut(const struct hed_lower *l)
{
    const struct mask *m = hed_mask_state(l);
    bool any = false;

    if (l->info.flags & HED_PTX_WAITS || some_function_sleeps(l->unit))
        return false;
    for (uint32_t b = 0; b < m->flow.nblocks; b++) {
        for (uint32_t i = 0; i < m->flow.blocks[b].ninsts; i++) {
            const struct hed_ptx_inst *inst = m->flow.blocks[b].insts[i];

            if (inst->form->op == HED_PTX_OP_NANOSLEEP || inst->form->op == HED_PTX_OP_ALLOCA)
                return false;
            if (!hed_masks_is_barrier(inst))
                continue;
            if (!is_plain_barrier(m, inst))
                return false;
            any = true;
        }
    }
    return any && may_keep_variables(l->function->ptx);
}

/* ---- values that are made again -------------------------------------------------------------- */

struct again {
    const struct mask *m;
    bool all;
};

static void
note_source(void *arg, const struct hed_ptx_reg **reg)
{
    struct again *a = arg;
    const struct hed_ssa_value *v = &a->m->ssa.values[(*reg)->id];

    a->all = a->all && (a->m->again[(*reg)->id] || (!v->made_by && !v->phi));
}

static void
note_result(void *arg, const struct hed_ptx_reg **reg)
{
    const struct again *a = arg;
    const unsigned kind = a->m->uniforms.values[(*reg)->id].kind;

    if (a->all && (kind == HED_UNIFORM || kind == HED_ROWS || kind == HED_OFFSETS))
        a->m->again[(*reg)->id] = true;
}

/* May a special register have another value the next time? */
static bool
may_change(const struct hed_ptx_operand *o)
{
    if (o->kind != HED_PTX_OPERAND_SREG)
        return false;
    switch (o->sreg) {
    case HED_PTX_SREG_TID:
    case HED_PTX_SREG_NTID:
    case HED_PTX_SREG_CTAID:
    case HED_PTX_SREG_NCTAID:
    case HED_PTX_SREG_LANEID:
    case HED_PTX_SREG_WARPID:
        return false;
    default:
        return true;
    }
}

/* Cheap, and the same each time. */
static bool
can_be_made_again(const struct hed_ptx_inst *i)
{
    if (i->guard || i->is_refused)
        return false;
    switch (i->form->op) {
    case HED_PTX_OP_MOV:
        return i->operands[0].kind == HED_PTX_OPERAND_REG && !may_change(&i->operands[1]);
    case HED_PTX_OP_ADD:
    case HED_PTX_OP_SUB:
    case HED_PTX_OP_MUL:
    case HED_PTX_OP_MAD:
        return hed_ptx_types[i->form->types[0]].kind != HED_PTX_KIND_F;
    case HED_PTX_OP_CVT:
        return hed_ptx_types[i->form->types[0]].kind != HED_PTX_KIND_F &&
               hed_ptx_types[i->form->types[1]].kind != HED_PTX_KIND_F;
    case HED_PTX_OP_SHL:
    case HED_PTX_OP_SHR:
    case HED_PTX_OP_AND:
    case HED_PTX_OP_OR:
    case HED_PTX_OP_XOR:
    case HED_PTX_OP_LOP3:
    case HED_PTX_OP_BFE:
    case HED_PTX_OP_CVTA:
        return true;
    case HED_PTX_OP_LD:
        return i->form->nspaces && (i->form->spaces[0] == HED_PTX_SPACE_PARAM ||
                                    i->form->spaces[0] == HED_PTX_SPACE_PARAM_ENTRY);
    default:
        return false;
    }
}

static void
find_again(struct mask *m)
{
    for (uint32_t b = 0; b < m->flow.nblocks; b++) {
        for (uint32_t i = 0; i < m->flow.blocks[b].ninsts; i++) {
            struct hed_ptx_inst *inst = m->flow.blocks[b].insts[i];
            struct again a = {.m = m, .all = can_be_made_again(inst)};

            hed_flow_each_read(inst, note_source, &a);
            hed_flow_each_write(inst, note_result, &a);
        }
    }
}

static void
note_made(void *arg, const struct hed_ptx_reg **reg)
{
    struct again *a = arg;

    a->all = a->all && a->m->again[(*reg)->id];
}

/* Makes them again: those of the blocks that dominate this one, and of its first i instructions. */
static void
make_again(struct hed_lower *l, uint32_t block, uint32_t i)
{
    struct mask *m = hed_mask_state(l);

    for (uint32_t b = 0; b <= block && !l->err; b++) {
        const uint32_t n = b == block ? i : m->flow.blocks[b].ninsts;

        for (uint32_t k = 0; k < n && hed_flow_dominates(&m->flow, b, block); k++) {
            struct hed_ptx_inst *inst = m->flow.blocks[b].insts[k];
            struct again a = {.m = m, .all = can_be_made_again(inst)};

            hed_flow_each_write(inst, note_made, &a);
            if (a.all)
                hed_mask_inst(l, inst);
        }
    }
}

/* ---- the frame ------------------------------------------------------------------------------- */

/* Where the next value goes, and which way it is moved. */
struct frame {
    LLVMValueRef at;
    uint32_t size;
    uint32_t common; /* words that all warps have in common; the first says where they go on */
    bool is_out;
};

/* Is the value the same in all warps that come to a barrier? */
static bool
is_common(const struct hed_lower *l, uint32_t v)
{
    const struct mask *m = hed_mask_state(l);

    return l->cut.together && m->uniforms.values[v].kind == HED_UNIFORM &&
           m->of_block.values[v].kind == HED_UNIFORM &&
           hed_ptx_types[m->flow.values[v]->type].bits <= 64;
}

static void
move_common(struct hed_lower *l, struct frame *f, LLVMValueRef slot, LLVMTypeRef t)
{
    const struct mask *m = hed_mask_state(l);
    LLVMValueRef p =
        hed_lower_at(l, f->is_out ? m->out : m->in, (int64_t)(f->common++ * sizeof(uint64_t)));
    LLVMValueRef x = LLVMBuildLoad2(l->b, f->is_out ? t : l->i64, f->is_out ? slot : p, "");

    x = hed_lower_resize(l, x, f->is_out ? l->i64 : t, false);
    LLVMBuildStore(l->b, x, f->is_out ? p : slot);
}

/* Moves a slot of one lane's type, or of 32. Predicates take a byte, or 32 bits. */
static void
move_slot(struct hed_lower *l, struct frame *f, LLVMValueRef slot, LLVMTypeRef t, bool varies)
{
    const unsigned bits = LLVMGetIntTypeWidth(t);
    LLVMTypeRef type = varies ? LLVMVectorType(t, HED_PTX_LANES) : t, kept = type;
    LLVMValueRef p = hed_lower_at(l, f->at, f->size), x;

    if (bits == 1)
        kept = varies ? l->i32 : l->i8;
    x = LLVMBuildLoad2(l->b, f->is_out ? type : kept, f->is_out ? slot : p, "");
    if (!f->is_out)
        LLVMSetAlignment(x, FRAME_ALIGN);
    if (bits == 1 && varies)
        x = LLVMBuildBitCast(l->b, x, f->is_out ? kept : type, "");
    else if (bits == 1)
        x = hed_lower_resize(l, x, f->is_out ? kept : type, false);
    x = LLVMBuildStore(l->b, x, f->is_out ? p : slot);
    if (f->is_out)
        LLVMSetAlignment(x, FRAME_ALIGN);
    f->size += (uint32_t)hed_round_up(
        varies ? (uint64_t)bits * HED_PTX_LANES / 8 : hed_divide_up(bits, 8), FRAME_ALIGN);
}

static void
move_value(struct hed_lower *l, struct frame *f, uint32_t v)
{
    struct mask *m = hed_mask_state(l);
    const struct hed_ptx_reg *r = m->flow.values[v];
    const struct hed_uniform *c = &m->uniforms.values[v];

    /* The lanes that wrapped around belong to the value. */
    if (c->kind == HED_ROWS && c->wraps != HED_FLOW_NONE && !m->again[c->wraps] &&
        m->values[c->wraps].wrapped)
        move_slot(l, f, m->values[c->wraps].wrapped, l->i32, false);
    if (m->again[v] || m->values[v].constant ||
        (!m->ssa.values[v].made_by && !m->ssa.values[v].phi))
        return;
    if (m->values[v].bits) {
        move_slot(l, f, m->values[v].bits, l->i32, false);
        return;
    }
    if (is_common(l, v)) {
        move_common(l, f, hed_mask_slot(l, r, 0), hed_lower_int_type(l, r->type));
        return;
    }
    for (unsigned row = 0; row < hed_mask_rows(l, r); row++)
        move_slot(l, f, hed_mask_slot(l, r, row), hed_lower_int_type(l, r->type),
                  c->kind == HED_VARIES);
}

/* Stores the live values in the frame, or loads them. */
static void
move_values(struct hed_lower *l, LLVMValueRef at, const uint64_t *live, bool is_out)
{
    struct frame f = {.at = at, .size = FRAME_ALIGN, .common = 1, .is_out = is_out};
    const struct mask *m = hed_mask_state(l);

    for (uint32_t v = 0; v < m->flow.nvalues; v++)
        if (hed_live_has(live, v))
            move_value(l, &f, v);
    l->info.frame = (uint32_t)hed_max(l->info.frame, m->variables + f.size);
    l->cut.common = (uint32_t)hed_max(l->cut.common, f.common);
}

/* Where the values lie, behind the variables. */
static LLVMValueRef
frame_of(struct hed_lower *l)
{
    return hed_lower_at(
        l, hed_lower_field(l, l->ptr, l->function->warp, offsetof(struct hed_ptx_warp, frame)),
        hed_mask_state(l)->variables);
}

static bool
is_split_guard(const struct hed_uniforms *u, uint32_t b, const struct hed_ptx_inst *i)
{
    return u->partial[b] || (i && i->guard && u->values[i->guard->id].kind != HED_UNIFORM);
}

/* May some lanes, or threads of the block, end in the middle of block b while others go on? */
static bool
some_may_end_within(const struct hed_uniforms *u, uint32_t b)
{
    const struct hed_flow_block *block = &u->f->blocks[b];

    for (uint32_t i = 0; i < block->ninsts; i++) {
        const struct hed_ptx_inst *inst = block->insts[i];

        if ((inst->form->op == HED_PTX_OP_RET || inst->form->op == HED_PTX_OP_EXIT) &&
            is_split_guard(u, b, inst))
            return true;
    }
    return false;
}

/* The same of the middle and the end. */
static bool
some_may_end(const struct hed_uniforms *u, uint32_t b)
{
    const struct hed_flow_block *block = &u->f->blocks[b];

    return some_may_end_within(u, b) ||
           (block->end != HED_FLOW_GOES && block->end != HED_FLOW_BRANCHES &&
            is_split_guard(u, b, block->last));
}

/* Have all come to block b that began, through the blocks before it and those of the loops around
 * it? And do they run it to its end? */
static bool
all_come(const struct hed_uniforms *u, uint32_t b)
{
    const struct hed_flow *f = u->f;
    uint32_t end = b; /* blocks below it may have been run */

    if (u->partial[b])
        return false;
    for (uint32_t loop = f->blocks[b].loop; loop != HED_FLOW_NONE; loop = f->loops[loop].parent)
        end = f->loops[loop].last + 1;
    for (uint32_t k = 0; k < end; k++)
        if (some_may_end(u, k))
            return false;
    return !some_may_end_within(u, b);
}

bool
hed_mask_all_lanes_come(const struct mask *m, uint32_t b)
{
    return all_come(&m->uniforms, b);
}

static bool
has_barrier(const struct hed_flow_block *b)
{
    for (uint32_t i = 0; i < b->ninsts; i++)
        if (hed_masks_is_barrier(b->insts[i]))
            return true;
    return false;
}

/* Finds out whether warps come to barriers together. */
static void
find_together(struct hed_lower *l)
{
    struct mask *m = hed_mask_state(l);

    if (hed_uniforms_init_block(&m->of_block, &m->flow, &m->ssa) != 0) {
        l->err = HED_ENOMEM;
        return;
    }
    l->cut.together = true;
    for (uint32_t b = 0; b < m->flow.nblocks; b++) {
        if (!has_barrier(&m->flow.blocks[b]))
            continue;
        l->cut.together &= !m->of_block.partial[b];
        l->cut.some_end |= !all_come(&m->of_block, b);
    }
}

/* Notes where the warp goes on. Warps that are together need it only if some of them have ended. */
static void
store_resume(struct hed_lower *l, uint32_t at)
{
    if (!l->cut.together || l->cut.some_end)
        LLVMBuildStore(l->b, hed_lower_word(l, at),
                       hed_lower_at(l, l->function->warp, offsetof(struct hed_ptx_warp, resume)));
    if (l->cut.together && at)
        LLVMBuildStore(l->b, LLVMConstInt(l->i64, at, false), hed_mask_state(l)->out);
}

void
hed_mask_cut(struct hed_lower *l, uint32_t block, uint32_t i)
{
    struct mask *m = hed_mask_state(l);
    const struct warp *w = hed_lower_warp_state(l);
    LLVMValueRef frame = frame_of(l);
    LLVMBasicBlockRef on = hed_lower_block(l, "resume");
    const bool all = hed_mask_all_lanes_come(m, block);
    uint64_t *live = calloc(m->live.words, sizeof(*live));

    if (!live) {
        l->err = HED_ENOMEM;
        return;
    }
    l->inst = m->flow.blocks[block].insts[i];
    hed_live_behind(&m->live, block, i, live);
    if (!all)
        LLVMBuildStore(l->b, hed_lower_warp_running(l), frame);
    move_values(l, frame, live, true);
    store_resume(l, ++l->cut.cuts);
    LLVMBuildRetVoid(l->b);
    LLVMAddCase(m->resume, hed_lower_word(l, l->cut.cuts), on);
    LLVMMoveBasicBlockAfter(on, LLVMGetInsertBlock(l->b));
    LLVMPositionBuilderAtEnd(l->b, on);
    frame = frame_of(l);
    LLVMBuildStore(l->b,
                   all ? hed_mask_lanes_that_exist(l) : LLVMBuildLoad2(l->b, l->i32, frame, ""),
                   w->bits);
    make_again(l, block, i);
    move_values(l, frame, live, false);
    free(live);
}

/* ---- reductions ------------------------------------------------------------------------------ */

static LLVMValueRef
votes_at(struct hed_lower *l, size_t votes, size_t member)
{
    return hed_lower_at(l, l->function->block, (int64_t)(votes + member));
}

static void
add_votes(struct hed_lower *l, size_t member, LLVMValueRef lanes)
{
    LLVMValueRef at = votes_at(l, offsetof(struct hed_ptx_block, coming), member);
    LLVMValueRef n = hed_lower_intrinsic(l, "llvm.ctpop", l->i32, &lanes, 1);

    LLVMBuildStore(l->b, LLVMBuildAdd(l->b, LLVMBuildLoad2(l->b, l->i32, at, ""), n, ""), at);
}

/* What the block has found out: i32. */
static LLVMValueRef
read_votes(struct hed_lower *l, enum hed_rt_reduce op)
{
    const size_t came = offsetof(struct hed_ptx_block, came);
    LLVMValueRef count =
        LLVMBuildLoad2(l->b, l->i32, votes_at(l, came, offsetof(struct hed_ptx_votes, count)), "");
    LLVMValueRef trues =
        LLVMBuildLoad2(l->b, l->i32, votes_at(l, came, offsetof(struct hed_ptx_votes, trues)), "");

    if (op == HED_RT_POPC)
        return trues;
    return LLVMBuildZExt(l->b,
                         op == HED_RT_AND ? LLVMBuildICmp(l->b, LLVMIntEQ, trues, count, "")
                                          : LLVMBuildIsNotNull(l->b, trues, ""),
                         l->i32, "");
}

LLVMValueRef
hed_mask_barrier_reduce(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads,
                        LLVMValueRef predicate, enum hed_rt_reduce op)
{
    struct mask *m = hed_mask_state(l);
    const struct hed_ptx_inst *inst = l->inst;
    LLVMValueRef running = hed_lower_warp_running(l);

    if (!m->is_cut)
        return hed_lower_warp_barrier_reduce(l, id, threads, predicate, op);
    add_votes(l, offsetof(struct hed_ptx_votes, count), running);
    add_votes(l, offsetof(struct hed_ptx_votes, trues),
              LLVMBuildAnd(l->b, running, hed_lower_warp_pack(l, predicate), ""));
    hed_mask_cut(l, m->block, m->index);
    /* Other instructions may have been made again meanwhile. */
    l->inst = inst;
    m->way = HED_PER_LANE;
    return hed_lower_splat(l, read_votes(l, op));
}

void
hed_mask_prepare_cuts(struct hed_lower *l)
{
    struct mask *m = hed_mask_state(l);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(l->b);

    if (m->is_cut) {
        find_together(l);
        m->again = calloc((size_t)m->flow.nvalues + 1, sizeof(bool));
        if (!m->again || hed_live_init(&m->live, &m->flow, &m->ssa) != 0) {
            l->err = HED_ENOMEM;
            return;
        }
        find_again(m);
        l->info.flags |= HED_PTX_CUT;
        m->resume = LLVMBuildSwitch(l->b, m->at, m->begins[0], 4);
    } else {
        LLVMBuildBr(l->b, m->begins[0]);
    }
    LLVMPositionBuilderAtEnd(l->b, m->end);
    if (m->is_cut)
        store_resume(l, 0);
    LLVMBuildRetVoid(l->b);
    LLVMPositionBuilderAtEnd(l->b, here);
}
