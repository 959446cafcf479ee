/* Loads and stores of scattered lanes by the processor's own gathers and scatters, which AVX-512
 * has: lanes that do not run neither read nor write, and of lanes that store to one place, the last
 * one does. Elements of 32 and 64 bits; two of 32 are one of 64.
 */
#include "kernel/ptx/lower/warp/warp.h"

#include <string.h>

/* What is moved at once. */
struct unit {
    LLVMTypeRef type;
    unsigned count; /* elements in it */
};

static bool
find_unit(struct hed_lower *l, const struct hed_lower_access *how, struct unit *u)
{
    const unsigned bits = LLVMGetIntTypeWidth(how->type);

    *u = (struct unit){how->type, 1};
    if (!hed_lower_has(l, "avx512vl") || !hed_lower_has(l, "avx512dq") || how->is_volatile ||
        how->order != LLVMAtomicOrderingNotAtomic)
        return false;
    if (bits == 32 && how->count == 2 && how->align >= 8) {
        *u = (struct unit){l->i64, 2};
        return true;
    }
    return how->count == 1 && (bits == 32 || bits == 64);
}

/* Calls llvm.masked.gather or scatter. Since LLVM 22 the alignment is no argument. */
static LLVMValueRef
call_masked(struct hed_lower *l, bool is_store, LLVMTypeRef t, LLVMValueRef pointers,
            unsigned align, LLVMValueRef mask, LLVMValueRef value)
{
    const char *name = is_store ? "llvm.masked.scatter" : "llvm.masked.gather";
    LLVMTypeRef types[] = {t, LLVMTypeOf(pointers)};
    const unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMTypeRef type = LLVMIntrinsicGetType(l->context, id, types, 2);
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(l->module, id, types, 2);
    LLVMValueRef args[4];
    unsigned n = 0;

    if (is_store)
        args[n++] = value;
    args[n++] = pointers;
    if (LLVMCountParamTypes(type) == 4)
        args[n++] = hed_lower_word(l, align);
    args[n++] = mask;
    if (!is_store)
        args[n++] = value;
    return LLVMBuildCall2(l->b, type, f, args, n, "");
}

/* Two words of each lane as one, and back. */
static LLVMValueRef
join_words(struct hed_lower *l, LLVMValueRef *in)
{
    LLVMTypeRef wide = LLVMVectorType(l->i64, HED_PTX_LANES);
    LLVMValueRef high =
        LLVMBuildShl(l->b, LLVMBuildZExt(l->b, in[1], wide, ""), hed_lower_int(l, l->i64, 32), "");

    return LLVMBuildOr(l->b, LLVMBuildZExt(l->b, in[0], wide, ""), high, "");
}

static void
split_words(struct hed_lower *l, LLVMValueRef v, LLVMValueRef *out)
{
    LLVMTypeRef words = LLVMVectorType(l->i32, HED_PTX_LANES);

    out[0] = LLVMBuildTrunc(l->b, v, words, "");
    out[1] =
        LLVMBuildTrunc(l->b, LLVMBuildLShr(l->b, v, hed_lower_int(l, l->i64, 32), ""), words, "");
}

bool
hed_lower_has_gather(struct hed_lower *l, const struct hed_lower_access *how)
{
    struct unit u;

    return find_unit(l, how, &u);
}

void
hed_lower_gather(struct hed_lower *l, const struct hed_lower_access *how, LLVMValueRef pointers,
                 LLVMValueRef mask, bool is_store, LLVMValueRef *values)
{
    const unsigned align = how->align ? how->align : 1;
    LLVMTypeRef t;
    LLVMValueRef v;
    struct unit u;

    (void)find_unit(l, how, &u);
    t = LLVMVectorType(u.type, HED_PTX_LANES);
    if (is_store) {
        v = u.count == 2 ? join_words(l, values) : values[0];
        (void)call_masked(l, true, t, pointers, align, mask, v);
        return;
    }
    v = call_masked(l, false, t, pointers, align, mask, LLVMConstNull(t));
    if (u.count == 2)
        split_words(l, v, values);
    else
        values[0] = v;
}
