/* Instructions whose code is long, made once per module rather than wherever they stand.
 *
 *     bits = apart.<form>(a, b)         called with all 32 lanes
 *       for i in 0, 16:                 a loop, so that its code is made for 16 lanes
 *         out[i..i+15] = make(a[i..i+15], b[i..i+15])
 *
 * Inline, a polynomial in f64 takes 16 registers of 128 bits per value, and most of LLVM's time
 * goes into finding places for them. Sixteen lanes are enough to keep the processor busy while each
 * operation waits for the one before it; eight are slower by a fifth.
 */
#include <stdio.h>

#include "kernel/ptx/lower/lower.h"

#define ARGS_MAX 3
#define LANES_APART 16 /* lanes that one round of the loop computes */

static LLVMValueRef
declare_apart(struct hed_lower *l, const char *name, LLVMTypeRef type)
{
    static const char *const facts[] = {"noinline", "nounwind", "willreturn", "memory"};
    LLVMValueRef f = LLVMAddFunction(l->module, name, type);

    LLVMSetLinkage(f, LLVMInternalLinkage);
    for (unsigned i = 0; i < sizeof(facts) / sizeof(*facts); i++)
        hed_lower_attribute(l, f, facts[i], 0);
    return f;
}

/* Memory for the 32 lanes of v, or for those of a result. */
static LLVMValueRef
lanes_in_memory(struct hed_lower *l, LLVMTypeRef t, LLVMValueRef v)
{
    LLVMValueRef a = LLVMBuildAlloca(l->b, t, "");

    if (v)
        LLVMBuildStore(l->b, v, a);
    return a;
}

/* The lanes from `first` on, as a pointer. */
static LLVMValueRef
lanes_from(struct hed_lower *l, LLVMTypeRef all, LLVMValueRef memory, LLVMValueRef first)
{
    return LLVMBuildGEP2(l->b, LLVMGetElementType(all), memory, &first, 1, "");
}

static void
make_round(struct hed_lower *l, hed_lower_make make, LLVMValueRef *from, const LLVMTypeRef *types,
           unsigned n, LLVMValueRef to, LLVMValueRef first)
{
    const unsigned lanes = l->lanes;
    LLVMValueRef part[ARGS_MAX], out;
    LLVMTypeRef t;

    l->lanes = LANES_APART;
    for (unsigned i = 0; i < n; i++) {
        t = LLVMVectorType(LLVMGetElementType(types[i]), LANES_APART);
        part[i] = LLVMBuildLoad2(l->b, t, lanes_from(l, types[i], from[i], first), "");
    }
    out = make(l, part, n);
    t = LLVMTypeOf(out);
    LLVMBuildStore(l->b, out, LLVMBuildGEP2(l->b, LLVMGetElementType(t), to, &first, 1, ""));
    l->lanes = lanes;
}

static void
fill_apart(struct hed_lower *l, LLVMValueRef f, LLVMTypeRef result, const LLVMTypeRef *types,
           unsigned n, hed_lower_make make)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(l->b);
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(l->context, f, "");
    LLVMBasicBlockRef again = LLVMAppendBasicBlockInContext(l->context, f, "");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(l->context, f, "");
    LLVMValueRef from[ARGS_MAX], to, first, next, start = hed_lower_word(l, 0);

    LLVMPositionBuilderAtEnd(l->b, entry);
    for (unsigned i = 0; i < n; i++)
        from[i] = lanes_in_memory(l, types[i], LLVMGetParam(f, i));
    to = lanes_in_memory(l, result, NULL);
    LLVMBuildBr(l->b, again);
    LLVMPositionBuilderAtEnd(l->b, again);
    first = LLVMBuildPhi(l->b, l->i32, "");
    make_round(l, make, from, types, n, to, first);
    next = LLVMBuildAdd(l->b, first, hed_lower_word(l, LANES_APART), "");
    LLVMAddIncoming(first, &start, &entry, 1);
    LLVMAddIncoming(first, &next, &again, 1);
    LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntULT, next, hed_lower_word(l, l->lanes), ""),
                    again, after);
    LLVMPositionBuilderAtEnd(l->b, after);
    LLVMBuildRet(l->b, LLVMBuildLoad2(l->b, result, to, ""));
    LLVMPositionBuilderAtEnd(l->b, here);
}

LLVMValueRef
hed_lower_apart(struct hed_lower *l, LLVMValueRef *args, unsigned n, LLVMTypeRef result,
                hed_lower_make make)
{
    LLVMTypeRef types[ARGS_MAX], type;
    LLVMValueRef f;
    char name[128];

    if (l->lanes < LANES_APART)
        return make(l, args, n);
    for (unsigned i = 0; i < n; i++)
        types[i] = LLVMTypeOf(args[i]);
    result = hed_lower_lanes(l, result);
    type = LLVMFunctionType(result, types, n, false);
    snprintf(name, sizeof(name), "apart.%s", l->inst->form->text);
    f = LLVMGetNamedFunction(l->module, name);
    if (!f) {
        f = declare_apart(l, name, type);
        fill_apart(l, f, result, types, n, make);
    }
    return LLVMBuildCall2(l->b, type, f, args, n, "");
}
