/* Going to a place in the code, waiting there, meeting, branching. */
#include <stddef.h>

#include "kernel/ptx/lower/warp/warp.h"

#define FUEL_APART 64 /* the price of a round of a waiting loop while other lanes wait */

/* ---- going places ---------------------------------------------------------------------------- */

uint32_t
hed_lower_warp_number(struct hed_lower *l, const void *stmt)
{
    return 4 * (uint32_t)(uintptr_t)hed_lower_map_get(hed_lower_warp_state(l)->index, stmt);
}

void
hed_lower_warp_may_resume(struct hed_lower *l, uint32_t pc, LLVMBasicBlockRef at)
{
    LLVMAddCase(hed_lower_warp_state(l)->jump, hed_lower_word(l, pc), at);
}

bool
hed_lower_warp_is_closed(struct hed_lower *l)
{
    return LLVMGetBasicBlockTerminator(LLVMGetInsertBlock(l->b)) != NULL;
}

LLVMValueRef
hed_lower_warp_field(struct hed_lower *l, size_t offset)
{
    return LLVMBuildLoad2(l->b, l->i32,
                          hed_lower_at(l, hed_lower_warp_state(l)->machine, (int64_t)offset), "");
}

void
hed_lower_warp_wait_at(struct hed_lower *l, LLVMValueRef bits, uint32_t pc)
{
    LLVMValueRef args[] = {hed_lower_warp_state(l)->machine, bits, hed_lower_word(l, pc)};

    hed_lower_runtime(l, "hed_warp_wait", l->nothing, args, 3);
}

void
hed_lower_warp_proceed(struct hed_lower *l, uint32_t pc, LLVMBasicBlockRef to)
{
    LLVMBasicBlockRef meet = hed_lower_block(l, "");
    LLVMValueRef next = hed_lower_warp_field(l, offsetof(struct hed_warp, next));

    LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntULT, hed_lower_word(l, pc), next, ""), to,
                    meet);
    LLVMPositionBuilderAtEnd(l->b, meet);
    hed_lower_warp_wait_at(l, hed_lower_warp_running(l), pc);
    LLVMBuildBr(l->b, hed_lower_warp_state(l)->next);
}

void
hed_lower_warp_go_on(struct hed_lower *l)
{
    LLVMPositionBuilderAtEnd(l->b, hed_lower_block(l, ""));
}

/* All lanes that any of the running lanes wants to meet. */
static LLVMValueRef
lanes_to_meet(struct hed_lower *l, const struct warp_kept *mask)
{
    LLVMTypeRef lanes = LLVMVectorType(l->i32, HED_PTX_LANES);
    LLVMValueRef v;

    if (!mask)
        return hed_lower_word(l, UINT32_MAX);
    v = LLVMBuildSelect(l->b, hed_lower_warp_unpack(l, hed_lower_warp_running(l)),
                        hed_lower_warp_kept(l, mask), LLVMConstNull(lanes), "");
    return hed_lower_intrinsic(l, "llvm.vector.reduce.or", lanes, &v, 1);
}

void
hed_lower_warp_meet(struct hed_lower *l, const struct warp_kept *mask)
{
    struct warp *w = hed_lower_warp_state(l);
    const uint32_t pc = w->machine ? hed_lower_warp_number(l, l->inst) : 0;
    LLVMBasicBlockRef here, slow, all;
    LLVMValueRef next, got;

    if (!w->machine)
        return; /* all lanes that will come are here */
    here = hed_lower_block(l, "");
    slow = hed_lower_block(l, "");
    all = hed_lower_block(l, "");
    LLVMBuildBr(l->b, here);
    LLVMPositionBuilderAtEnd(l->b, here);
    hed_lower_warp_may_resume(l, pc, here);
    next = hed_lower_warp_field(l, offsetof(struct hed_warp, next));
    LLVMBuildCondBr(l->b,
                    LLVMBuildICmp(l->b, LLVMIntEQ, next, hed_lower_word(l, HED_WARP_NONE), ""), all,
                    slow);
    LLVMPositionBuilderAtEnd(l->b, slow);

    LLVMValueRef args[] = {w->machine, hed_lower_warp_running(l), hed_lower_word(l, pc),
                           lanes_to_meet(l, mask)};

    got = hed_lower_runtime(l, "hed_warp_meet", l->i32, args, 4);
    LLVMBuildStore(l->b, got, w->bits);
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, got, ""), w->next, all);
    LLVMPositionBuilderAtEnd(l->b, all);
}

/* ---- branches -------------------------------------------------------------------------------- */

/* A loop that may wait yields to other warps, and to other lanes, now and then. */
static void
warp_burn_fuel(struct hed_lower *l, uint32_t pc)
{
    struct warp *w = hed_lower_warp_state(l);
    LLVMValueRef warp = l->function->warp;
    LLVMValueRef at = hed_lower_at(l, warp, offsetof(struct hed_ptx_warp, fuel));
    LLVMValueRef next = hed_lower_warp_field(l, offsetof(struct hed_warp, next));
    LLVMValueRef apart = LLVMBuildICmp(l->b, LLVMIntULT, next, hed_lower_word(l, HED_WARP_FAR), "");
    LLVMValueRef price =
        LLVMBuildSelect(l->b, apart, hed_lower_word(l, FUEL_APART), hed_lower_word(l, 1), "");
    LLVMValueRef fuel = LLVMBuildSub(l->b, LLVMBuildLoad2(l->b, l->i32, at, ""), price, "");
    LLVMBasicBlockRef empty = hed_lower_block(l, "");
    LLVMBasicBlockRef on = hed_lower_block(l, "");

    LLVMBuildStore(l->b, fuel, at);
    LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntSLE, fuel, hed_lower_word(l, 0), ""), empty,
                    on);
    LLVMPositionBuilderAtEnd(l->b, empty);
    hed_lower_runtime(l, "hed_rt_yield", l->nothing, &warp, 1);

    LLVMValueRef args[] = {w->machine, hed_lower_warp_running(l), hed_lower_word(l, pc)};

    LLVMBuildStore(l->b, hed_lower_runtime(l, "hed_warp_rotate", l->i32, args, 3), w->where);
    LLVMBuildBr(l->b, w->go);
    LLVMPositionBuilderAtEnd(l->b, on);
}

static void
jump_to_label(struct hed_lower *l, const struct hed_ptx_label *to)
{
    struct warp *w = hed_lower_warp_state(l);
    const uint32_t pc = hed_lower_warp_number(l, to->at);

    if (w->seen[to->id] && l->function->waits[to->id])
        warp_burn_fuel(l, pc);
    hed_lower_warp_proceed(l, pc, w->blocks[to->id]);
}

/* Some lanes branch and some do not. The lanes that are further ahead in the code wait, the others
 * run. */
static void
split_lanes(struct hed_lower *l, const struct hed_ptx_label *to, LLVMValueRef taken,
            LLVMValueRef staying, LLVMBasicBlockRef after)
{
    struct warp *w = hed_lower_warp_state(l);

    if (!w->seen[to->id]) {
        hed_lower_warp_wait_at(l, taken, hed_lower_warp_number(l, to->at));
        LLVMBuildStore(l->b, staying, w->bits);
        LLVMBuildBr(l->b, after);
        return;
    }

    const uint32_t pc = hed_lower_warp_number(l, l->inst) + 1;

    hed_lower_warp_may_resume(l, pc, after);
    hed_lower_warp_wait_at(l, staying, pc);
    LLVMBuildStore(l->b, taken, w->bits);
    jump_to_label(l, to);
}

void
hed_lower_warp_branch(struct hed_lower *l, const struct hed_ptx_label *to)
{
    struct warp *w = hed_lower_warp_state(l);
    LLVMValueRef holds = w->holds;
    LLVMValueRef all, taken, staying;

    w->holds = NULL;
    if (!holds) {
        jump_to_label(l, to);
        hed_lower_warp_go_on(l);
        return;
    }

    LLVMBasicBlockRef some = hed_lower_block(l, "");
    LLVMBasicBlockRef both = hed_lower_block(l, "");
    LLVMBasicBlockRef only = hed_lower_block(l, "");
    LLVMBasicBlockRef after = hed_lower_block(l, "");

    all = hed_lower_warp_running(l);
    taken = LLVMBuildAnd(l->b, all, hed_lower_warp_pack(l, holds), "");
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, taken, ""), after, some);
    LLVMPositionBuilderAtEnd(l->b, some);
    staying = LLVMBuildXor(l->b, all, taken, "");
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, staying, ""), only, both);
    LLVMPositionBuilderAtEnd(l->b, only);
    jump_to_label(l, to);
    LLVMPositionBuilderAtEnd(l->b, both);
    split_lanes(l, to, taken, staying, after);
    LLVMPositionBuilderAtEnd(l->b, after);
}

/* Each target in turn takes its lanes; the machine decides which lanes run first. */
void
hed_lower_warp_branch_table(struct hed_lower *l, LLVMValueRef index, const struct hed_ptx_table *to)
{
    struct warp *w = hed_lower_warp_state(l);
    LLVMValueRef all = hed_lower_warp_bits(l);
    LLVMValueRef outer = hed_lower_warp_running(l);
    LLVMBasicBlockRef rest = hed_lower_block(l, "");
    LLVMValueRef left;

    for (uint32_t i = 0; i < to->count; i++) {
        LLVMValueRef hits = LLVMBuildICmp(l->b, LLVMIntEQ, index, hed_lower_int(l, l->i32, i), "");
        LLVMValueRef lanes = LLVMBuildAnd(l->b, all, hed_lower_warp_pack(l, hits), "");
        LLVMBasicBlockRef some = hed_lower_block(l, "");
        LLVMBasicBlockRef none = hed_lower_block(l, "");

        LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, lanes, ""), none, some);
        LLVMPositionBuilderAtEnd(l->b, some);
        hed_lower_warp_wait_at(l, lanes, hed_lower_warp_number(l, to->targets[i].label->at));
        LLVMBuildBr(l->b, none);
        LLVMPositionBuilderAtEnd(l->b, none);
    }
    left = LLVMBuildXor(l->b, outer, all, "");
    w->holds = NULL;
    LLVMBuildStore(l->b, left, w->bits);
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, left, ""), w->next, rest);
    LLVMPositionBuilderAtEnd(l->b, rest);
}
