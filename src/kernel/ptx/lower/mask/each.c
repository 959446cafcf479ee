/* Short code for each lane, such as an atomic operation.
 *
 *      all lanes run:  the code, 32 times one after the other; operands come from registers
 *      some do:        a loop over them (warp/memory.c); operands come from arrays
 */
#include "kernel/ptx/lower/mask/mask.h"

#define OPERANDS_MAX 4

static void
make_for_all(struct hed_lower *l, hed_lower_each fn, void *arg, LLVMValueRef *args, unsigned nargs,
             LLVMValueRef *results, unsigned nresults)
{
    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        LLVMValueRef one[OPERANDS_MAX] = {NULL}, got[OPERANDS_MAX];

        for (unsigned k = 0; k < nargs; k++)
            one[k] = LLVMBuildExtractElement(l->b, args[k], hed_lower_word(l, i), "");
        fn(l, arg, one, got);
        for (unsigned k = 0; k < nresults; k++)
            results[k] = LLVMBuildInsertElement(l->b, results[k], got[k], hed_lower_word(l, i), "");
    }
}

void
hed_mask_each_short(struct hed_lower *l, hed_lower_each fn, void *arg, LLVMValueRef *args,
                    unsigned nargs, const LLVMTypeRef *types, LLVMValueRef *results,
                    unsigned nresults)
{
    LLVMValueRef all = hed_lower_word(l, UINT32_MAX), straight[OPERANDS_MAX];
    LLVMBasicBlockRef some, every, after, ends[2];

    if (hed_mask_state(l)->solo) {
        hed_mask_solo_each(l, fn, arg, args, results);
        return;
    }
    if (nargs > OPERANDS_MAX || nresults > OPERANDS_MAX) {
        hed_lower_warp_each(l, fn, arg, args, nargs, types, results, nresults);
        return;
    }
    some = hed_lower_block(l, "");
    every = hed_lower_block(l, "");
    after = hed_lower_block(l, "");
    all = LLVMBuildICmp(l->b, LLVMIntEQ, hed_lower_warp_bits(l), all, "");
    LLVMBuildCondBr(l->b, all, every, some);

    LLVMPositionBuilderAtEnd(l->b, every);
    for (unsigned k = 0; k < nresults; k++)
        straight[k] = LLVMGetPoison(LLVMVectorType(types[k], HED_PTX_LANES));
    make_for_all(l, fn, arg, args, nargs, straight, nresults);
    ends[0] = LLVMGetInsertBlock(l->b);
    LLVMBuildBr(l->b, after);

    LLVMPositionBuilderAtEnd(l->b, some);
    hed_lower_warp_each(l, fn, arg, args, nargs, types, results, nresults);
    ends[1] = LLVMGetInsertBlock(l->b);
    LLVMBuildBr(l->b, after);

    LLVMPositionBuilderAtEnd(l->b, after);
    for (unsigned k = 0; k < nresults; k++) {
        LLVMValueRef both[] = {straight[k], results[k]};

        results[k] = LLVMBuildPhi(l->b, LLVMTypeOf(both[0]), "");
        LLVMAddIncoming(results[k], both, ends, 2);
        /* Lanes that do not run have any value, but always the same. */
        results[k] = LLVMBuildFreeze(l->b, results[k], "");
    }
}

/* ---- all lanes in one ------------------------------------------------------------------------ */

/* The value that changes nothing. */
static LLVMValueRef
neutral_lanes(struct hed_lower *l, enum hed_ptx_oper op, LLVMTypeRef t, bool is_signed)
{
    const unsigned bits = LLVMGetIntTypeWidth(t);
    const uint64_t ones = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    uint64_t v = 0;

    if (op == HED_PTX_OPER_AND || (op == HED_PTX_OPER_MIN && !is_signed))
        v = ones;
    else if (op == HED_PTX_OPER_MIN)
        v = ones >> 1;
    else if (op == HED_PTX_OPER_MAX && is_signed)
        v = (ones >> 1) + 1;
    return hed_lower_int(l, t, v);
}

static const char *
reduction_name(enum hed_ptx_oper op, bool is_signed)
{
    switch (op) {
    case HED_PTX_OPER_ADD:
        return "llvm.vector.reduce.add";
    case HED_PTX_OPER_AND:
        return "llvm.vector.reduce.and";
    case HED_PTX_OPER_OR:
        return "llvm.vector.reduce.or";
    case HED_PTX_OPER_XOR:
        return "llvm.vector.reduce.xor";
    case HED_PTX_OPER_MIN:
        return is_signed ? "llvm.vector.reduce.smin" : "llvm.vector.reduce.umin";
    case HED_PTX_OPER_MAX:
        return is_signed ? "llvm.vector.reduce.smax" : "llvm.vector.reduce.umax";
    default:
        return NULL;
    }
}

/* The values of all running lanes in one. */
static LLVMValueRef
combine_lanes(struct hed_lower *l, enum hed_ptx_oper op, bool is_signed, LLVMValueRef v)
{
    LLVMTypeRef t = LLVMGetElementType(LLVMTypeOf(v));
    LLVMValueRef bits = hed_lower_warp_bits(l), first;

    /* Constants are added up by counting. */
    if (op == HED_PTX_OPER_ADD && LLVMIsConstant(v)) {
        first = LLVMGetAggregateElement(v, 0);
        bits = hed_lower_intrinsic(l, "llvm.ctpop", l->i32, &bits, 1);
        return LLVMBuildMul(l->b, hed_lower_resize(l, bits, t, false), first, "");
    }
    v = LLVMBuildSelect(l->b, hed_lower_warp_mask(l), v, neutral_lanes(l, op, t, is_signed), "");
    return hed_lower_intrinsic(l, reduction_name(op, is_signed), LLVMTypeOf(v), &v, 1);
}

bool
hed_mask_once(struct hed_lower *l, hed_lower_each fn, void *arg, LLVMValueRef *args,
              const struct hed_lower_place *at, const struct hed_ptx_operand *result,
              enum hed_ptx_oper op, bool is_signed)
{
    const struct mask *m = hed_mask_state(l);
    LLVMBasicBlockRef some, after;
    LLVMValueRef one[2], got;

    if (m->solo || !reduction_name(op, is_signed) ||
        (result && result->kind == HED_PTX_OPERAND_REG && m->ssa.is_read[result->reg->id]) ||
        !(at->reg ? m->uniforms.values[at->reg->id].kind == HED_UNIFORM : at->base != NULL))
        return false;
    some = hed_lower_block(l, "");
    after = hed_lower_block(l, "");
    one[0] = LLVMBuildExtractElement(l->b, args[0], hed_lower_word(l, 0), "");
    one[1] = combine_lanes(l, op, is_signed, args[1]);
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, hed_lower_warp_bits(l), ""), after, some);
    LLVMPositionBuilderAtEnd(l->b, some);
    fn(l, arg, one, &got);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, after);
    return true;
}
