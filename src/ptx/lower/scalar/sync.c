/* Calls of the scalar shape, and what threads do together: each thread calls the runtime. */
#include <stdlib.h>

#include "base/err.h"
#include "ptx/lower/scalar/scalar.h"
#include "ptx/run/layout.h"

/* ---- calls ----------------------------------------------------------------------------------- */

#define BUFFER_ALIGN 16

/* Memory for arguments or results, shared by all calls of the function: it is written right before
 * a call and read right after it. Its size is known only at the end of the function. */
static LLVMValueRef
call_buffer(struct hed_lower *l, LLVMValueRef *slot, uint64_t *size, uint64_t wanted)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(l->b);

    if (wanted > *size)
        *size = wanted;
    if (!*slot) {
        LLVMPositionBuilderBefore(l->b, LLVMGetFirstInstruction(l->function->entry));
        *slot = LLVMBuildArrayAlloca(l->b, l->i8, LLVMConstInt(l->i32, 1, false), "");
        LLVMSetAlignment(*slot, BUFFER_ALIGN);
        LLVMPositionBuilderAtEnd(l->b, here);
    }
    return *slot;
}

static uint64_t
argument_size(const struct hed_ptx_var *formal, const struct hed_ptx_operand *actual)
{
    /* If the parameter has no size, the caller's variable does. */
    if (formal->unsized && actual->kind == HED_PTX_OPERAND_VAR)
        return actual->var->size;
    return formal->size;
}

static uint64_t
arguments_size(const struct hed_ptx_var *formal, const struct hed_ptx_operand *list)
{
    uint64_t size = 0;

    for (uint32_t i = 0; formal && i < list->count; i++, formal = formal->next)
        size = formal->offset + argument_size(formal, &list->elems[i]);
    return size;
}

static LLVMTypeRef
param_memory_type(struct hed_lower *l, enum hed_ptx_type t)
{
    return t == HED_PTX_TYPE_PRED ? l->i8 : hed_lower_int_type(l, t);
}

static void
copy_bytes(struct hed_lower *l, LLVMValueRef to, LLVMValueRef from, uint64_t size)
{
    LLVMBuildMemCpy(l->b, to, 1, from, 1, LLVMConstInt(l->i64, size, false));
}

static LLVMValueRef
variable_pointer(struct hed_lower *l, const struct hed_ptx_operand *o)
{
    const struct hed_lower_place at = {.var = o->var, .offset = o->offset};
    LLVMValueRef p = hed_lower_map_get(l->function->vars, at.var);

    if (!p) {
        hed_lower_refuse(l, "argument %s is not a variable of this function", o->var->name);
        return LLVMGetPoison(l->ptr);
    }
    return hed_lower_at(l, p, at.offset);
}

static void
store_arguments(struct hed_lower *l, const struct hed_ptx_var *formal,
                const struct hed_ptx_operand *list, LLVMValueRef args)
{
    for (uint32_t i = 0; formal && i < list->count; i++, formal = formal->next) {
        const struct hed_ptx_operand *o = &list->elems[i];
        LLVMValueRef at = hed_lower_at(l, args, (int64_t)formal->offset);

        if (o->kind == HED_PTX_OPERAND_VAR && o->var->space == HED_PTX_SPACE_PARAM) {
            copy_bytes(l, at, variable_pointer(l, o), argument_size(formal, o));
        } else {
            LLVMValueRef v = hed_lower_get(l, o, formal->type);

            LLVMBuildStore(l->b, hed_lower_resize(l, v, param_memory_type(l, formal->type), false),
                           at);
        }
    }
}

static void
load_results(struct hed_lower *l, const struct hed_ptx_var *formal,
             const struct hed_ptx_operand *list, LLVMValueRef rets)
{
    for (uint32_t i = 0; formal && i < list->count; i++, formal = formal->next) {
        const struct hed_ptx_operand *o = &list->elems[i];
        LLVMValueRef at = hed_lower_at(l, rets, (int64_t)formal->offset);

        if (o->kind == HED_PTX_OPERAND_VAR) {
            copy_bytes(l, variable_pointer(l, o), at, argument_size(formal, o));
        } else {
            LLVMValueRef v = LLVMBuildLoad2(l->b, param_memory_type(l, formal->type), at, "");

            hed_lower_set(l, o, formal->type,
                          hed_lower_resize(l, v, hed_lower_int_type(l, formal->type), false));
        }
    }
}

static LLVMValueRef
function_table(struct hed_lower *l)
{
    const uint32_t n = l->ptx->nfuncs;
    LLVMTypeRef type = LLVMArrayType(l->ptr, n);
    LLVMValueRef *all;
    uint32_t i = 0;

    if (l->function_table)
        return l->function_table;
    all = calloc((size_t)n + 1, sizeof(LLVMValueRef));
    if (!all) {
        l->err = HED_ENOMEM;
        return LLVMGetPoison(l->ptr);
    }
    for (const struct hed_ptx_func *f = l->ptx->funcs; f && i < n; f = f->next, i++)
        all[i] = l->unit->reached[i] && !f->is_entry ? hed_lower_map_get(l->functions, f)
                                                     : LLVMConstNull(l->ptr);
    l->function_table = LLVMAddGlobal(l->module, type, "hed_functions");
    LLVMSetInitializer(l->function_table, LLVMConstArray(l->ptr, all, n));
    LLVMSetGlobalConstant(l->function_table, true);
    LLVMSetLinkage(l->function_table, LLVMInternalLinkage);
    free(all);
    return l->function_table;
}

/* The function that a pointer means, which is HED_PTX_FUNC_STRIDE * (1 + index); traps if it means
 * none. */
static LLVMValueRef
find_callee(struct hed_lower *l, LLVMValueRef pointer)
{
    LLVMValueRef zero = LLVMConstInt(l->i64, 0, false);
    LLVMValueRef stride = LLVMConstInt(l->i64, HED_PTX_FUNC_STRIDE, false);
    LLVMValueRef index = LLVMBuildSub(l->b, LLVMBuildUDiv(l->b, pointer, stride, ""),
                                      LLVMConstInt(l->i64, 1, false), "");
    LLVMValueRef odd =
        LLVMBuildICmp(l->b, LLVMIntNE, LLVMBuildURem(l->b, pointer, stride, ""), zero, "");
    LLVMValueRef out =
        LLVMBuildICmp(l->b, LLVMIntUGE, index, LLVMConstInt(l->i64, l->ptx->nfuncs, false), "");
    LLVMValueRef at, callee;

    l->shape->trap(l, LLVMBuildOr(l->b, odd, out, ""), HED_PTX_TRAP_CALL);
    at = LLVMBuildGEP2(l->b, l->ptr, function_table(l), &index, 1, "");
    callee = LLVMBuildLoad2(l->b, l->ptr, at, "");
    l->shape->trap(l, LLVMBuildIsNull(l->b, callee, ""), HED_PTX_TRAP_CALL);
    return callee;
}

void
hed_lower_scalar_call(struct hed_lower *l, const struct hed_ptx_func *callee, LLVMValueRef pointer,
                      const struct hed_ptx_sig *sig, const struct hed_ptx_operand *rets,
                      const struct hed_ptx_operand *args)
{
    struct scalar *s = l->function->state;
    LLVMValueRef values[3] = {l->function->strand};
    LLVMValueRef f;

    values[1] = call_buffer(l, &s->rets, &s->rets_size, arguments_size(sig->rets, rets));
    values[2] = call_buffer(l, &s->args, &s->args_size, arguments_size(sig->params, args));
    store_arguments(l, sig->params, args, values[2]);
    f = callee ? hed_lower_map_get(l->functions, callee) : find_callee(l, pointer);
    if (l->err || !f)
        return;
    LLVMBuildCall2(l->b, hed_lower_scalar_type(l, false), f, values, 3, "");
    load_results(l, sig->rets, rets, values[1]);
}

/* ---- barriers -------------------------------------------------------------------------------- */

void
hed_lower_scalar_barrier(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads)
{
    LLVMValueRef args[] = {l->function->strand, id, threads, hed_lower_word(l, 1)};

    l->info.flags |= HED_PTX_WAITS;
    hed_lower_runtime(l, "hed_rt_barrier", l->nothing, args, 4);
}

void
hed_lower_scalar_barrier_arrive(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads)
{
    LLVMValueRef args[] = {l->function->strand, id, threads, hed_lower_word(l, 1)};

    l->info.flags |= HED_PTX_WAITS;
    hed_lower_runtime(l, "hed_rt_barrier_arrive", l->nothing, args, 4);
}

LLVMValueRef
hed_lower_scalar_barrier_reduce(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads,
                                LLVMValueRef predicate, enum hed_rt_reduce op)
{
    LLVMValueRef args[] = {l->function->strand,
                           id,
                           threads,
                           hed_lower_word(l, 1),
                           hed_lower_resize(l, predicate, l->i32, false),
                           hed_lower_word(l, op)};

    l->info.flags |= HED_PTX_WAITS;
    return hed_lower_runtime(l, "hed_rt_barrier_reduce", l->i32, args, 6);
}

/* ---- warps ----------------------------------------------------------------------------------- */

/* Without a mask, all threads of the warp that still run take part. */
static LLVMValueRef
warp_mask_or_all(struct hed_lower *l, LLVMValueRef mask)
{
    l->info.flags |= HED_PTX_WAITS;
    return mask ? mask : hed_lower_word(l, UINT32_MAX);
}

/* The word that a function of the runtime wrote to a slot, as a predicate. */
static LLVMValueRef
load_predicate(struct hed_lower *l, LLVMValueRef slot)
{
    return LLVMBuildICmp(l->b, LLVMIntNE, LLVMBuildLoad2(l->b, l->i32, slot, ""),
                         hed_lower_word(l, 0), "");
}

LLVMValueRef
hed_lower_scalar_shfl(struct hed_lower *l, enum hed_rt_shfl mode, LLVMValueRef value,
                      LLVMValueRef b, LLVMValueRef c, LLVMValueRef mask, LLVMValueRef *inside)
{
    LLVMValueRef slot = hed_lower_alloca(l, l->i32, 1, 0);
    LLVMValueRef args[] = {
        l->function->strand, hed_lower_word(l, mode), value, b, c, warp_mask_or_all(l, mask), slot};
    LLVMValueRef v = hed_lower_runtime(l, "hed_rt_shfl", l->i32, args, 7);

    *inside = load_predicate(l, slot);
    return v;
}

LLVMValueRef
hed_lower_scalar_vote(struct hed_lower *l, enum hed_rt_vote mode, LLVMValueRef predicate,
                      LLVMValueRef mask)
{
    LLVMValueRef args[] = {l->function->strand, hed_lower_word(l, mode),
                           hed_lower_resize(l, predicate, l->i32, false),
                           warp_mask_or_all(l, mask)};

    return hed_lower_runtime(l, "hed_rt_vote", l->i32, args, 4);
}

LLVMValueRef
hed_lower_scalar_match(struct hed_lower *l, LLVMValueRef value64, LLVMValueRef mask,
                       LLVMValueRef *same)
{
    LLVMValueRef args[] = {l->function->strand, value64, warp_mask_or_all(l, mask), NULL};
    LLVMValueRef v;

    if (!same)
        return hed_lower_runtime(l, "hed_rt_match_any", l->i32, args, 3);
    args[3] = hed_lower_alloca(l, l->i32, 1, 0);
    v = hed_lower_runtime(l, "hed_rt_match_all", l->i32, args, 4);
    *same = load_predicate(l, args[3]);
    return v;
}

LLVMValueRef
hed_lower_scalar_redux(struct hed_lower *l, enum hed_rt_redux op, LLVMValueRef value,
                       LLVMValueRef mask)
{
    LLVMValueRef args[] = {l->function->strand, hed_lower_word(l, op), value,
                           warp_mask_or_all(l, mask)};

    return hed_lower_runtime(l, "hed_rt_redux", l->i32, args, 4);
}

LLVMValueRef
hed_lower_scalar_activemask(struct hed_lower *l)
{
    l->info.flags |= HED_PTX_WAITS;
    return hed_lower_runtime(l, "hed_rt_activemask", l->i32, &l->function->strand, 1);
}

LLVMValueRef
hed_lower_scalar_elect(struct hed_lower *l, LLVMValueRef mask, LLVMValueRef *elected)
{
    LLVMValueRef args[] = {l->function->strand, warp_mask_or_all(l, mask),
                           hed_lower_alloca(l, l->i32, 1, 0)};
    LLVMValueRef v = hed_lower_runtime(l, "hed_rt_elect", l->i32, args, 3);

    *elected = load_predicate(l, args[2]);
    return v;
}

void
hed_lower_scalar_warp_sync(struct hed_lower *l, LLVMValueRef mask)
{
    LLVMValueRef args[] = {l->function->strand, warp_mask_or_all(l, mask)};

    hed_lower_runtime(l, "hed_rt_warp_sync", l->nothing, args, 2);
}

void
hed_lower_scalar_together(struct hed_lower *l, const char *helper, LLVMValueRef mask, uint64_t arg,
                          LLVMValueRef *in, unsigned nin, LLVMValueRef *out, unsigned nout)
{
    LLVMTypeRef types[] = {l->ptr, l->i32, l->i64};
    LLVMTypeRef type = LLVMFunctionType(l->nothing, types, 3, false);
    LLVMValueRef data = hed_lower_alloca(l, l->i32, (uint64_t)nin + nout + 1, 8);
    LLVMValueRef args[] = {l->function->strand, warp_mask_or_all(l, mask),
                           hed_lower_external(l, helper, type), data,
                           LLVMConstInt(l->i64, arg, false)};

    for (unsigned i = 0; i < nin; i++)
        LLVMBuildStore(l->b, in[i], hed_lower_at(l, data, 4 * (int64_t)i));
    hed_lower_runtime(l, "hed_rt_collect", l->nothing, args, 5);
    for (unsigned i = 0; i < nout; i++)
        out[i] = LLVMBuildLoad2(l->b, l->i32, hed_lower_at(l, data, 4 * ((int64_t)nin + i)), "");
}

void
hed_lower_scalar_nanosleep(struct hed_lower *l, LLVMValueRef ns)
{
    LLVMValueRef args[] = {l->function->strand, ns};

    l->info.flags |= HED_PTX_WAITS | HED_PTX_GRID;
    hed_lower_runtime(l, "hed_rt_nanosleep", l->nothing, args, 2);
}
