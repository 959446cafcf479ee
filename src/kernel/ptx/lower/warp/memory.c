/* Loads and stores of the warp shape: of an address that all lanes share, of a variable of theirs,
 * and of an address each, which mover.c does.
 */
#include "base/number.h"
#include "kernel/ptx/lower/warp/warp.h"

unsigned
hed_lower_warp_bytes(LLVMTypeRef t)
{
    return LLVMGetIntTypeWidth(t) / 8;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static LLVMValueRef
warp_variable(struct hed_lower *l, const struct hed_lower_place *at)
{
    LLVMValueRef base = hed_lower_map_get(l->function->vars, at->var);

    if (!base) {
        hed_lower_refuse(l, "variable %s does not belong to this function", at->var->name);
        return LLVMGetPoison(l->ptr);
    }
    return hed_lower_at(l, base, hed_lower_reaches(l, at->offset) ? at->offset : 0);
}

static uint64_t
variable_stride(struct hed_lower *l, const struct hed_ptx_var *v)
{
    const struct warp *w = hed_lower_warp_state(l);

    return (uintptr_t)hed_lower_map_get(w->strides, v);
}

LLVMValueRef
hed_lower_warp_address(struct hed_lower *l, const struct hed_lower_place *at)
{
    LLVMValueRef base;

    if (at->address)
        return at->address;
    if (at->first)
        return LLVMBuildAdd(l->b, hed_lower_splat(l, at->first),
                            hed_lower_warp_iota(l, l->i64, (uint64_t)at->step), "");
    if (at->reg)
        return hed_lower_place_address(l, at);
    base = at->base ? hed_lower_at(l, at->base, at->offset) : warp_variable(l, at);
    base = hed_lower_splat(l, LLVMBuildPtrToInt(l->b, base, l->i64, ""));
    if (at->base)
        return base;
    return LLVMBuildAdd(l->b, base, hed_lower_warp_iota(l, l->i64, variable_stride(l, at->var)),
                        "");
}

/* ---- an access of one lane ------------------------------------------------------------------- */

/* The claim about the alignment is for element 0. */
static void
warp_qualify(LLVMValueRef v, const struct hed_lower_access *how, unsigned i)
{
    unsigned own = hed_lower_warp_bytes(how->type);

    LLVMSetVolatile(v, how->is_volatile);
    if (how->order != LLVMAtomicOrderingNotAtomic)
        LLVMSetOrdering(v, how->order);
    else if (i > 0)
        own = 1;
    LLVMSetAlignment(v, i > 0 && own < how->align ? own : how->align ? how->align : 1);
}

LLVMValueRef
hed_lower_warp_load_element(struct hed_lower *l, LLVMValueRef at,
                            const struct hed_lower_access *how, unsigned i)
{
    LLVMValueRef v = LLVMBuildLoad2(
        l->b, how->type, hed_lower_at(l, at, (int64_t)i * hed_lower_warp_bytes(how->type)), "");

    warp_qualify(v, how, i);
    return v;
}

void
hed_lower_warp_store_element(struct hed_lower *l, LLVMValueRef at,
                             const struct hed_lower_access *how, unsigned i, LLVMValueRef v)
{
    LLVMValueRef s =
        LLVMBuildStore(l->b, v, hed_lower_at(l, at, (int64_t)i * hed_lower_warp_bytes(how->type)));

    warp_qualify(s, how, i);
}

/* ---- loads and stores ------------------------------------------------------------------------ */

/* A variable of the function whose lanes are consecutive: memory that LLVM can turn into a
 * value. */
static bool
is_consecutive_variable(struct hed_lower *l, const struct hed_lower_place *at,
                        const struct hed_lower_access *how)
{
    return at->var && at->offset == 0 && how->count == 1 &&
           variable_stride(l, at->var) == hed_lower_warp_bytes(how->type);
}

void
hed_lower_warp_load(struct hed_lower *l, const struct hed_lower_place *at,
                    const struct hed_lower_access *how, LLVMValueRef *out)
{
    LLVMTypeRef lanes = LLVMVectorType(how->type, HED_PTX_LANES);

    if (at->base) {
        for (unsigned k = 0, i; k < how->count; k++) {
            i = hed_lower_nth_load(how, k);
            out[i] = hed_lower_warp_load_element(l, hed_lower_at(l, at->base, at->offset), how, i);
            out[i] = hed_lower_splat(l, out[i]);
        }
        return;
    }
    if (is_consecutive_variable(l, at, how)) {
        *out = LLVMBuildLoad2(l->b, lanes, warp_variable(l, at), "");
        LLVMSetAlignment(*out, hed_min(hed_lower_warp_bytes(how->type), 16));
        return;
    }

    struct warp *w = hed_lower_warp_state(l);
    LLVMValueRef data = hed_lower_warp_scratch(l, &w->data);

    hed_lower_warp_move(l, at, how, false, data);
    for (unsigned i = 0; i < how->count; i++) {
        out[i] = LLVMBuildLoad2(
            l->b, lanes,
            hed_lower_at(l, data, (int64_t)i * HED_PTX_LANES * hed_lower_warp_bytes(how->type)),
            "");
        LLVMSetAlignment(out[i], 16);
    }
}

/* All lanes write to the same address; the value of the last lane stays. */
static void
store_last_lane(struct hed_lower *l, const struct hed_lower_place *at,
                const struct hed_lower_access *how, LLVMValueRef *in)
{
    LLVMValueRef bits = hed_lower_warp_bits(l);
    LLVMValueRef count[] = {bits, LLVMConstInt(l->i1, 0, false)};
    LLVMBasicBlockRef some = hed_lower_block(l, "");
    LLVMBasicBlockRef after = hed_lower_block(l, "");
    LLVMValueRef last;

    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, bits, ""), after, some);
    LLVMPositionBuilderAtEnd(l->b, some);
    last = LLVMBuildSub(l->b, hed_lower_word(l, 31),
                        hed_lower_intrinsic(l, "llvm.ctlz", l->i32, count, 2), "");
    for (unsigned i = 0; i < how->count; i++)
        hed_lower_warp_store_element(l, hed_lower_at(l, at->base, at->offset), how, i,
                                     LLVMBuildExtractElement(l->b, in[i], last, ""));
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, after);
}

void
hed_lower_warp_store(struct hed_lower *l, const struct hed_lower_place *at,
                     const struct hed_lower_access *how, LLVMValueRef *in)
{
    if (at->base) {
        store_last_lane(l, at, how, in);
        return;
    }
    if (is_consecutive_variable(l, at, how)) {
        LLVMValueRef p = warp_variable(l, at);
        LLVMValueRef old = LLVMBuildLoad2(l->b, LLVMTypeOf(in[0]), p, "");
        const unsigned align = hed_min(hed_lower_warp_bytes(how->type), 16);

        LLVMSetAlignment(old, align);
        LLVMSetAlignment(
            LLVMBuildStore(l->b, LLVMBuildSelect(l->b, hed_lower_warp_mask(l), in[0], old, ""), p),
            align);
        return;
    }

    struct warp *w = hed_lower_warp_state(l);
    LLVMValueRef data = hed_lower_warp_scratch(l, &w->data);

    for (unsigned i = 0; i < how->count; i++)
        LLVMSetAlignment(LLVMBuildStore(l->b, in[i],
                                        hed_lower_at(l, data,
                                                     (int64_t)i * HED_PTX_LANES *
                                                         hed_lower_warp_bytes(how->type))),
                         16);
    hed_lower_warp_move(l, at, how, true, data);
}
