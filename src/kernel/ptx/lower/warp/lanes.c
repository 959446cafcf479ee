/* Lanes as bits and as vectors, and loops over lanes. */
#include "kernel/ptx/lower/warp/warp.h"

/* ---- lanes as bits ------------------------------------------------------------------------- */

LLVMValueRef
hed_lower_warp_pack(struct hed_lower *l, LLVMValueRef lanes)
{
    return LLVMBuildBitCast(l->b, lanes, l->i32, "");
}

LLVMValueRef
hed_lower_warp_unpack(struct hed_lower *l, LLVMValueRef bits)
{
    LLVMValueRef each[HED_PTX_LANES];

    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        each[i] = hed_lower_word(l, UINT64_C(1) << i);

    LLVMValueRef own =
        LLVMBuildAnd(l->b, hed_lower_splat(l, bits), LLVMConstVector(each, HED_PTX_LANES), "");

    return LLVMBuildICmp(l->b, LLVMIntNE, own, hed_lower_int(l, l->i32, 0), "");
}

LLVMValueRef
hed_lower_warp_running(struct hed_lower *l)
{
    return LLVMBuildLoad2(l->b, l->i32, hed_lower_warp_state(l)->bits, "");
}

LLVMValueRef
hed_lower_warp_bits(struct hed_lower *l)
{
    const struct warp *w = hed_lower_warp_state(l);
    LLVMValueRef bits = hed_lower_warp_running(l);

    return w->holds ? LLVMBuildAnd(l->b, bits, hed_lower_warp_pack(l, w->holds), "") : bits;
}

LLVMValueRef
hed_lower_warp_mask(struct hed_lower *l)
{
    const struct warp *w = hed_lower_warp_state(l);
    LLVMValueRef mask = hed_lower_warp_unpack(l, hed_lower_warp_running(l));

    return w->holds ? LLVMBuildAnd(l->b, mask, w->holds, "") : mask;
}

LLVMValueRef
hed_lower_warp_iota(struct hed_lower *l, LLVMTypeRef t, uint64_t step)
{
    LLVMValueRef each[HED_PTX_LANES];

    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        each[i] = LLVMConstInt(t, i * step, false);
    return LLVMConstVector(each, HED_PTX_LANES);
}

LLVMValueRef
hed_lower_warp_lowest(struct hed_lower *l, LLVMValueRef bits)
{
    LLVMValueRef args[] = {bits, LLVMConstInt(l->i1, 0, false)};

    /* For an empty mask cttz gives 32; modulo 32 it is still a lane. */
    return LLVMBuildAnd(l->b, hed_lower_intrinsic(l, "llvm.cttz", l->i32, args, 2),
                        hed_lower_word(l, 31), "");
}

LLVMValueRef
hed_lower_warp_first(struct hed_lower *l, LLVMValueRef v)
{
    /* A constant is the same for all lanes. */
    if (LLVMIsConstant(v) && LLVMGetAggregateElement(v, 0))
        return LLVMGetAggregateElement(v, 0);
    return LLVMBuildExtractElement(l->b, v, hed_lower_warp_lowest(l, hed_lower_warp_bits(l)), "");
}

LLVMValueRef
hed_lower_warp_array(struct hed_lower *l, LLVMTypeRef element, LLVMValueRef v)
{
    LLVMValueRef a = hed_lower_alloca(l, LLVMArrayType(element, HED_PTX_LANES), 1, HED_LOWER_LINE);

    if (v)
        LLVMSetAlignment(LLVMBuildStore(l->b, v, a), 16);
    return a;
}

/* ---- values that outlive a wait ------------------------------------------------------------ */

void
hed_lower_warp_pin(struct hed_lower *l, LLVMValueRef slot)
{
    LLVMTypeRef type = LLVMFunctionType(l->nothing, &l->ptr, 1, false);
    LLVMValueRef nothing =
        LLVMGetInlineAsm(type, "", 0, "r", 1, true, false, LLVMInlineAsmDialectATT, false);

    LLVMBuildCall2(l->b, type, nothing, &slot, 1, "");
}

struct warp_kept
hed_lower_warp_keep(struct hed_lower *l, LLVMValueRef v)
{
    struct warp_kept k = {.type = LLVMTypeOf(v)};

    /* Without a machine nothing is parked. */
    if (LLVMIsConstant(v) || !hed_lower_warp_state(l)->machine) {
        k.constant = v;
        return k;
    }
    k.slot = hed_lower_alloca(l, k.type, 1, 0);
    hed_lower_warp_pin(l, k.slot);
    LLVMBuildStore(l->b,
                   LLVMBuildSelect(l->b, hed_lower_warp_mask(l), v,
                                   LLVMBuildLoad2(l->b, k.type, k.slot, ""), ""),
                   k.slot);
    return k;
}

LLVMValueRef
hed_lower_warp_kept(struct hed_lower *l, const struct warp_kept *k)
{
    return k->constant ? k->constant : LLVMBuildLoad2(l->b, k->type, k->slot, "");
}

/* ---- loops over lanes ---------------------------------------------------------------------- */

void
hed_lower_warp_loop_begin(struct hed_lower *l, LLVMValueRef bits, struct warp_loop *loop)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(l->b);

    loop->head = hed_lower_block(l, "");
    loop->after = hed_lower_block(l, "");
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, bits, ""), loop->after, loop->head);
    LLVMPositionBuilderAtEnd(l->b, loop->head);
    loop->left = LLVMBuildPhi(l->b, l->i32, "");
    LLVMAddIncoming(loop->left, &bits, &here, 1);
    loop->lane = hed_lower_warp_lowest(l, loop->left);
}

void
hed_lower_warp_loop_end(struct hed_lower *l, struct warp_loop *loop)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(l->b);
    LLVMValueRef less = LLVMBuildSub(l->b, loop->left, hed_lower_word(l, 1), "");
    LLVMValueRef left = LLVMBuildAnd(l->b, loop->left, less, "");

    LLVMAddIncoming(loop->left, &left, &here, 1);
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, left, ""), loop->after, loop->head);
    LLVMPositionBuilderAtEnd(l->b, loop->after);
}

LLVMValueRef
hed_lower_warp_element(struct hed_lower *l, LLVMTypeRef t, LLVMValueRef array, LLVMValueRef lane)
{
    return LLVMBuildGEP2(l->b, t, array, &lane, 1, "");
}
