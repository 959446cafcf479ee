/* The scalar shape: a strand is one thread, and PTX's control flow becomes LLVM's.
 *
 *   kernel     void hed_kernel(strand)
 *   function   void f(strand, rets, args): parameters lie at their offsets from args, results at
 *              theirs from rets, also those that PTX passes in registers
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "ptx/lower/lower.h"
#include "ptx/lower/scalar/scalar.h"
#include "ptx/run/layout.h"

LLVMTypeRef
hed_lower_scalar_type(struct hed_lower *l, bool is_entry)
{
    LLVMTypeRef types[3] = {l->ptr, l->ptr, l->ptr};

    return LLVMFunctionType(l->nothing, types, is_entry ? 1 : 3, false);
}

static LLVMValueRef
scalar_declare(struct hed_lower *l, const struct hed_ptx_func *f)
{
    return hed_lower_declare(l, f, hed_lower_scalar_type(l, f == l->kernel));
}

/* ---- the body -------------------------------------------------------------------------------- */

static void
scalar_place_params(struct hed_lower *l, const struct hed_ptx_var *v, LLVMValueRef base)
{
    for (; v; v = v->next) {
        if (v->space != HED_PTX_SPACE_REG)
            hed_lower_map_add(l, l->function->vars, v, hed_lower_at(l, base, (int64_t)v->offset));
    }
}

static void
scalar_enter(struct hed_lower *l)
{
    struct hed_lower_function *f = l->function;
    struct scalar *s = calloc(1, sizeof(*s));

    f->state = s;
    if (s) {
        s->blocks = calloc((size_t)f->ptx->nlabels + 1, sizeof(LLVMBasicBlockRef));
        s->seen = calloc((size_t)f->ptx->nlabels + 1, sizeof(bool));
    }
    if (!s || !s->blocks || !s->seen) {
        l->err = HED_ENOMEM;
        return;
    }
    f->strand = LLVMGetParam(f->value, 0);
    if (f->ptx != l->kernel) {
        f->rets = LLVMGetParam(f->value, 1);
        f->params = LLVMGetParam(f->value, 2);
        scalar_place_params(l, f->ptx->sig.rets, f->rets);
        scalar_place_params(l, f->ptx->sig.params, f->params);
    }
    for (const struct hed_ptx_var *v = f->ptx->vars; v; v = v->next) {
        if (v->space == HED_PTX_SPACE_LOCAL || v->space == HED_PTX_SPACE_PARAM)
            hed_lower_map_add(l, f->vars, v,
                              hed_lower_alloca(l, l->i8, v->size > 1 ? v->size : 2, v->align));
    }
}

/* Loads the registers among the parameters from memory, or stores those among the results. */
static void
scalar_move_registers(struct hed_lower *l, const struct hed_ptx_var *v, LLVMValueRef base,
                      bool is_in)
{
    for (; v; v = v->next) {
        if (v->space != HED_PTX_SPACE_REG || !v->reg)
            continue;

        LLVMTypeRef t = hed_lower_int_type(l, v->type);
        LLVMValueRef at = hed_lower_at(l, base, (int64_t)v->offset);
        LLVMValueRef slot = hed_lower_slot(l, v->reg, 0);

        if (t == l->i1)
            t = l->i8;
        if (is_in) {
            LLVMValueRef value = LLVMBuildLoad2(l->b, t, at, "");

            LLVMBuildStore(l->b, hed_lower_resize(l, value, hed_lower_int_type(l, v->type), false),
                           slot);
        } else {
            LLVMValueRef value = LLVMBuildLoad2(l->b, hed_lower_int_type(l, v->type), slot, "");

            LLVMBuildStore(l->b, hed_lower_resize(l, value, t, false), at);
        }
    }
}

static void
scalar_start(struct hed_lower *l)
{
    struct hed_lower_function *f = l->function;
    struct scalar *s = f->state;
    LLVMBasicBlockRef body = hed_lower_block(l, "body");

    for (uint32_t i = 0; i < f->ptx->nlabels; i++) {
        if (f->labels[i])
            s->blocks[i] = hed_lower_block(l, "");
    }
    if (f->ptx != l->kernel)
        scalar_move_registers(l, f->ptx->sig.params, f->params, true);
    LLVMBuildBr(l->b, body);
    LLVMPositionBuilderAtEnd(l->b, body);
}

/* Code that is never reached still needs a block. */
static void
begin_unreachable(struct hed_lower *l)
{
    LLVMPositionBuilderAtEnd(l->b, hed_lower_block(l, ""));
}

static bool
is_block_closed(struct hed_lower *l)
{
    return LLVMGetBasicBlockTerminator(LLVMGetInsertBlock(l->b)) != NULL;
}

static void
scalar_ret(struct hed_lower *l)
{
    if (l->function->ptx != l->kernel)
        scalar_move_registers(l, l->function->ptx->sig.rets, l->function->rets, false);
    LLVMBuildRetVoid(l->b);
    begin_unreachable(l);
}

static void
scalar_leave(struct hed_lower *l)
{
    struct scalar *s = l->function->state;

    if (!l->err) {
        scalar_ret(l);
        LLVMBuildUnreachable(l->b);
        if (s->args)
            LLVMSetOperand(s->args, 0, LLVMConstInt(l->i32, s->args_size, false));
        if (s->rets)
            LLVMSetOperand(s->rets, 0, LLVMConstInt(l->i32, s->rets_size, false));
    }
    if (s) {
        free(s->blocks);
        free(s->seen);
    }
    free(s);
}

static void
scalar_label(struct hed_lower *l, const struct hed_ptx_label *label)
{
    struct scalar *s = l->function->state;
    LLVMBasicBlockRef block = s->blocks[label->id];

    if (!is_block_closed(l))
        LLVMBuildBr(l->b, block);
    LLVMMoveBasicBlockAfter(block, LLVMGetInsertBlock(l->b));
    LLVMPositionBuilderAtEnd(l->b, block);
    s->seen[label->id] = true;
}

static void
scalar_guard_begin(struct hed_lower *l, LLVMValueRef holds)
{
    struct scalar *s = l->function->state;
    LLVMBasicBlockRef inside = hed_lower_block(l, "");

    s->after = hed_lower_block(l, "");
    LLVMBuildCondBr(l->b, holds, inside, s->after);
    LLVMPositionBuilderAtEnd(l->b, inside);
}

static void
scalar_guard_end(struct hed_lower *l)
{
    struct scalar *s = l->function->state;

    if (!is_block_closed(l))
        LLVMBuildBr(l->b, s->after);
    LLVMPositionBuilderAtEnd(l->b, s->after);
}

/* ---- control --------------------------------------------------------------------------------- */

void
hed_lower_scalar_when(struct hed_lower *l, LLVMValueRef condition, LLVMBasicBlockRef *after)
{
    LLVMBasicBlockRef inside = hed_lower_block(l, "");

    *after = hed_lower_block(l, "");
    LLVMBuildCondBr(l->b, condition, inside, *after);
    LLVMPositionBuilderAtEnd(l->b, inside);
}

/* if (--s->fuel <= 0) hed_rt_yield(s) */
static void
scalar_burn_fuel(struct hed_lower *l)
{
    LLVMValueRef strand = l->function->strand;
    LLVMValueRef at = hed_lower_at(l, strand, offsetof(struct hed_ptx_strand, fuel));
    LLVMValueRef fuel = LLVMBuildLoad2(l->b, l->i32, at, "");
    LLVMBasicBlockRef after;

    fuel = LLVMBuildSub(l->b, fuel, LLVMConstInt(l->i32, 1, false), "");
    LLVMBuildStore(l->b, fuel, at);
    hed_lower_scalar_when(
        l, LLVMBuildICmp(l->b, LLVMIntSLE, fuel, LLVMConstInt(l->i32, 0, false), ""), &after);
    hed_lower_runtime(l, "hed_rt_yield", l->nothing, &strand, 1);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, after);
}

static void
scalar_branch(struct hed_lower *l, const struct hed_ptx_label *to)
{
    struct scalar *s = l->function->state;

    if (s->seen[to->id] && l->function->waits[to->id])
        scalar_burn_fuel(l);
    LLVMBuildBr(l->b, s->blocks[to->id]);
    begin_unreachable(l);
}

static void
scalar_branch_table(struct hed_lower *l, LLVMValueRef index, const struct hed_ptx_table *to)
{
    struct scalar *s = l->function->state;
    LLVMBasicBlockRef nowhere = hed_lower_block(l, "");
    bool waits = false;
    LLVMValueRef choice;

    for (uint32_t i = 0; i < to->count; i++) {
        const uint32_t id = to->targets[i].label->id;

        waits = waits || (s->seen[id] && l->function->waits[id]);
    }
    if (waits)
        scalar_burn_fuel(l);
    choice = LLVMBuildSwitch(l->b, index, nowhere, to->count);
    for (uint32_t i = 0; i < to->count; i++)
        LLVMAddCase(choice, LLVMConstInt(l->i32, i, false), s->blocks[to->targets[i].label->id]);
    LLVMPositionBuilderAtEnd(l->b, nowhere);
    LLVMBuildUnreachable(l->b);
    begin_unreachable(l);
}

static void
scalar_exit(struct hed_lower *l)
{
    if (l->function->ptx == l->kernel) {
        LLVMBuildRetVoid(l->b);
    } else {
        l->info.flags |= HED_PTX_WAITS;
        hed_lower_runtime(l, "hed_rt_exit", l->nothing, &l->function->strand, 1);
        LLVMBuildUnreachable(l->b);
    }
    begin_unreachable(l);
}

static void
scalar_trap(struct hed_lower *l, LLVMValueRef condition, enum hed_ptx_trap trap)
{
    LLVMValueRef args[3] = {l->function->strand, LLVMConstInt(l->i32, trap, false),
                            LLVMConstInt(l->i32, l->inst->stmt.line, false)};
    LLVMBasicBlockRef after = NULL;

    if (condition)
        hed_lower_scalar_when(l, condition, &after);
    hed_lower_runtime(l, "hed_rt_trap", l->nothing, args, 3);
    LLVMBuildUnreachable(l->b);
    if (after)
        LLVMPositionBuilderAtEnd(l->b, after);
    else
        begin_unreachable(l);
}

/* ---- values and memory ----------------------------------------------------------------------- */

static void
scalar_assign(struct hed_lower *l, LLVMValueRef slot, LLVMValueRef v)
{
    LLVMBuildStore(l->b, v, slot);
}

static LLVMValueRef
scalar_tid(struct hed_lower *l, unsigned dimension)
{
    return hed_lower_field(l, l->i32, l->function->strand,
                           offsetof(struct hed_ptx_strand, tid) +
                               dimension * sizeof(uint32_t[HED_PTX_LANES]));
}

static LLVMValueRef
scalar_lane(struct hed_lower *l)
{
    return hed_lower_field(l, l->i32, l->function->strand, offsetof(struct hed_ptx_strand, lane));
}

static LLVMValueRef
scalar_pointer(struct hed_lower *l, const struct hed_lower_place *at)
{
    if (at->address)
        return LLVMBuildIntToPtr(l->b, at->address, l->ptr, "");
    if (at->base)
        return hed_lower_at(l, at->base, at->offset);

    LLVMValueRef var = hed_lower_map_get(l->function->vars, at->var);

    if (!var) {
        hed_lower_refuse(l, "variable %s does not belong to this function", at->var->name);
        return LLVMGetPoison(l->ptr);
    }
    return hed_lower_at(l, var, at->offset);
}

static LLVMValueRef
scalar_address(struct hed_lower *l, const struct hed_lower_place *at)
{
    return at->address ? at->address : LLVMBuildPtrToInt(l->b, scalar_pointer(l, at), l->i64, "");
}

static void
scalar_qualify(struct hed_lower *l, LLVMValueRef v, const struct hed_lower_access *how)
{
    LLVMSetAlignment(v, how->align ? how->align : 1);
    LLVMSetVolatile(v, how->is_volatile);
    if (how->order != LLVMAtomicOrderingNotAtomic)
        LLVMSetOrdering(v, how->order);
    if (how->is_constant && LLVMGetInstructionOpcode(v) == LLVMLoad) {
        const unsigned kind = LLVMGetMDKindIDInContext(l->context, "invariant.load", 14);

        LLVMSetMetadata(v, kind,
                        LLVMMetadataAsValue(l->context, LLVMMDNodeInContext2(l->context, NULL, 0)));
    }
}

/* Several elements are accessed as one LLVM vector, unless each must be atomic by itself. */
static bool
is_one_vector(struct hed_lower *l, const struct hed_lower_access *how)
{
    return how->count > 1 && how->order == LLVMAtomicOrderingNotAtomic && how->type != l->i128;
}

static void
scalar_load(struct hed_lower *l, const struct hed_lower_place *at,
            const struct hed_lower_access *how, LLVMValueRef *out)
{
    LLVMValueRef p = scalar_pointer(l, at);

    if (is_one_vector(l, how)) {
        LLVMValueRef v = LLVMBuildLoad2(l->b, LLVMVectorType(how->type, how->count), p, "");

        scalar_qualify(l, v, how);
        for (unsigned i = 0; i < how->count; i++)
            out[i] = LLVMBuildExtractElement(l->b, v, LLVMConstInt(l->i32, i, false), "");
        return;
    }
    for (unsigned i = 0; i < how->count; i++) {
        out[i] = LLVMBuildLoad2(
            l->b, how->type, hed_lower_at(l, p, (int64_t)i * (LLVMGetIntTypeWidth(how->type) / 8)),
            "");
        scalar_qualify(l, out[i], how);
    }
}

static void
scalar_store(struct hed_lower *l, const struct hed_lower_place *at,
             const struct hed_lower_access *how, LLVMValueRef *in)
{
    LLVMValueRef p = scalar_pointer(l, at);

    if (is_one_vector(l, how)) {
        LLVMValueRef v = LLVMGetPoison(LLVMVectorType(how->type, how->count));

        for (unsigned i = 0; i < how->count; i++)
            v = LLVMBuildInsertElement(l->b, v, in[i], LLVMConstInt(l->i32, i, false), "");
        scalar_qualify(l, LLVMBuildStore(l->b, v, p), how);
        return;
    }
    for (unsigned i = 0; i < how->count; i++)
        scalar_qualify(
            l,
            LLVMBuildStore(l->b, in[i],
                           hed_lower_at(l, p, (int64_t)i * (LLVMGetIntTypeWidth(how->type) / 8))),
            how);
}

static void
scalar_each(struct hed_lower *l, hed_lower_each fn, void *arg, LLVMValueRef *args, unsigned nargs,
            const LLVMTypeRef *types, LLVMValueRef *results, unsigned nresults)
{
    (void)nargs;
    (void)types;
    (void)nresults;
    fn(l, arg, args, results);
}

const struct hed_lower_shape hed_lower_scalar = {
    .lanes = 1,
    .made = HED_PTX_MADE_SCALAR,
    .declare = scalar_declare,
    .enter = scalar_enter,
    .start = scalar_start,
    .leave = scalar_leave,
    .label = scalar_label,
    .guard_begin = scalar_guard_begin,
    .guard_end = scalar_guard_end,
    .branch = scalar_branch,
    .branch_table = scalar_branch_table,
    .ret = scalar_ret,
    .exit = scalar_exit,
    .call = hed_lower_scalar_call,
    .trap = scalar_trap,
    .assign = scalar_assign,
    .tid = scalar_tid,
    .lane = scalar_lane,
    .address = scalar_address,
    .load = scalar_load,
    .store = scalar_store,
    .each = scalar_each,
    .barrier = hed_lower_scalar_barrier,
    .barrier_arrive = hed_lower_scalar_barrier_arrive,
    .barrier_reduce = hed_lower_scalar_barrier_reduce,
    .shfl = hed_lower_scalar_shfl,
    .vote = hed_lower_scalar_vote,
    .match = hed_lower_scalar_match,
    .redux = hed_lower_scalar_redux,
    .activemask = hed_lower_scalar_activemask,
    .elect = hed_lower_scalar_elect,
    .warp_sync = hed_lower_scalar_warp_sync,
    .together = hed_lower_scalar_together,
    .nanosleep = hed_lower_scalar_nanosleep,
};
