/* Code that runs lane by lane: operands and results go through arrays. */
#include <stddef.h>

#include "kernel/ptx/lower/warp/warp.h"

#define EACH_MAX 32

/* A vector of predicates is stored as bits; an array must have bytes, so that it can be indexed. */
static LLVMTypeRef
array_element_type(struct hed_lower *l, LLVMTypeRef t)
{
    return t == l->i1 ? l->i8 : t;
}

static LLVMTypeRef
lane_type(LLVMValueRef v)
{
    return LLVMGetElementType(LLVMTypeOf(v));
}

static LLVMValueRef
resize_predicate(struct hed_lower *l, LLVMValueRef v, LLVMTypeRef t)
{
    return t == l->i1 || t == l->i8 ? hed_lower_resize(l, v, t, false) : v;
}

void
hed_lower_warp_each(struct hed_lower *l, hed_lower_each fn, void *arg, LLVMValueRef *args,
                    unsigned nargs, const LLVMTypeRef *types, LLVMValueRef *results,
                    unsigned nresults)
{
    LLVMValueRef in[EACH_MAX], out[EACH_MAX], got[EACH_MAX] = {NULL}, one[EACH_MAX] = {NULL};
    struct warp_loop loop;

    if (nargs > EACH_MAX || nresults > EACH_MAX) {
        hed_lower_refuse(l, "warp shape: too many operands");
        return;
    }
    for (unsigned i = 0; i < nargs; i++) {
        LLVMTypeRef t = array_element_type(l, lane_type(args[i]));

        in[i] = hed_lower_warp_array(l, t, resize_predicate(l, args[i], t));
    }
    for (unsigned i = 0; i < nresults; i++)
        out[i] = hed_lower_warp_array(l, array_element_type(l, types[i]), NULL);
    hed_lower_warp_loop_begin(l, hed_lower_warp_bits(l), &loop);
    LLVMBuildStore(l->b, loop.lane,
                   hed_lower_at(l, l->function->warp, offsetof(struct hed_ptx_warp, lane)));
    for (unsigned i = 0; i < nargs; i++) {
        LLVMTypeRef t = array_element_type(l, lane_type(args[i]));
        LLVMValueRef at = hed_lower_warp_element(l, t, in[i], loop.lane);

        one[i] = resize_predicate(l, LLVMBuildLoad2(l->b, t, at, ""), lane_type(args[i]));
    }
    fn(l, arg, one, got);
    for (unsigned i = 0; i < nresults; i++) {
        LLVMTypeRef t = array_element_type(l, types[i]);

        got[i] = got[i] ? got[i] : LLVMGetPoison(types[i]); /* NULL: it refused the kernel */
        LLVMBuildStore(l->b, resize_predicate(l, got[i], t),
                       hed_lower_warp_element(l, t, out[i], loop.lane));
    }
    hed_lower_warp_loop_end(l, &loop);
    for (unsigned i = 0; i < nresults; i++) {
        LLVMTypeRef t = array_element_type(l, types[i]);

        results[i] = LLVMBuildLoad2(l->b, hed_lower_lanes(l, t), out[i], "");
        LLVMSetAlignment(results[i], 16);
        results[i] = resize_predicate(l, results[i], types[i]);
    }
}
