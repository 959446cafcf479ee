/* The warp shape: a warp is 32 lanes and a register is a vector. Control flow is a machine that
 * runs those lanes together that are at the same place in the code (kernel/ptx/run/warp.h).
 *
 *   kernel     void hed_kernel(warp)
 *   function   void f(warp, lanes, rets, args): args points to one block of parameters per lane,
 *              one after the other; rets likewise
 *
 * The running lanes are a 32-bit mask. A branch tests whether they all go the same way; if so, it
 * is a plain branch. Before every place where lanes may wait for each other, one comparison with
 * machine.next tells whether any lane does.
 *
 * The following is left to the baseline tier: calls through pointers, recursion, functions in which
 * lanes meet, wait or exit, and kernels that are too long.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "kernel/ptx/lower/warp/warp.h"
#include "kernel/ptx/run/layout.h"

/* Of the functions in this shape. LLVM takes 0.4 to 0.8 ms for each. */
#define INSTRUCTIONS_MAX 10000
#define MATRIX_WEIGHT 30 /* a matrix instruction counts for this many */

/* ---- functions ------------------------------------------------------------------------------- */

LLVMTypeRef
hed_lower_warp_type(struct hed_lower *l, bool is_entry)
{
    LLVMTypeRef types[] = {l->ptr, l->i32, l->ptr, l->ptr};

    return LLVMFunctionType(l->nothing, types, is_entry ? 1 : 4, false);
}

/* The number of instructions, weighted by LLVM's work: a matrix instruction writes a dozen
 * vectors. */
static uint64_t
instruction_weight(const struct hed_ptx_func *f)
{
    uint64_t weight = 0;

    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind == HED_PTX_STMT_INST && !i->is_refused)
            weight += i->form->op == HED_PTX_OP_MMA || i->form->op == HED_PTX_OP_WMMA_LOAD ||
                              i->form->op == HED_PTX_OP_WMMA_STORE ||
                              i->form->op == HED_PTX_OP_WMMA_MMA
                          ? MATRIX_WEIGHT
                          : 1;
    }
    return weight;
}

void
hed_lower_warp_refuse(struct hed_lower *l, const struct hed_ptx_func *f)
{
    if (f == l->kernel) {
        uint64_t count = 0;

        for (uint32_t i = 0; i < l->unit->nfuncs; i++)
            if (l->unit->funcs[i] != f || !l->shape->functions)
                count += instruction_weight(l->unit->funcs[i]);
        if (l->unit->recurses)
            hed_lower_refuse(l, "warp shape: recursion or a call through a pointer");
        if (count > INSTRUCTIONS_MAX)
            hed_lower_refuse(l, "warp shape: too many instructions");
        return;
    }
    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind == HED_PTX_STMT_INST && !i->is_refused &&
            (hed_lower_warp_guard(i) == WARP_GUARD_SPLIT || i->form->op == HED_PTX_OP_EXIT))
            hed_lower_refuse(l, "warp shape: %s in function %s", i->form->text, f->name);
    }
}

LLVMValueRef
hed_lower_warp_declare(struct hed_lower *l, const struct hed_ptx_func *f)
{
    hed_lower_warp_refuse(l, f);
    return hed_lower_declare(l, f, hed_lower_warp_type(l, f == l->kernel));
}

static void
warp_place_params(struct hed_lower *l, const struct hed_ptx_var *first, LLVMValueRef base)
{
    uint64_t size = 0;

    for (const struct hed_ptx_var *v = first; v; v = v->next)
        size = v->offset + v->size;
    size = hed_round_up(size, 16);
    for (const struct hed_ptx_var *v = first; v; v = v->next) {
        hed_lower_map_add(l, l->function->vars, v, hed_lower_at(l, base, (int64_t)v->offset));
        hed_lower_map_add(l, hed_lower_warp_state(l)->strides, v, (void *)(uintptr_t)size);
    }
}

uint64_t
hed_lower_warp_stride(const struct hed_ptx_var *v)
{
    return hed_round_up(v->size ? v->size : 1, v->align);
}

void
hed_lower_warp_place_variable(struct hed_lower *l, const struct hed_ptx_var *v)
{
    const uint64_t stride = hed_lower_warp_stride(v);

    hed_lower_map_add(l, l->function->vars, v,
                      hed_lower_local(l, stride * HED_PTX_LANES, (unsigned)hed_max(v->align, 16)));
    hed_lower_map_add(l, hed_lower_warp_state(l)->strides, v, (void *)(uintptr_t)stride);
}

struct warp *
hed_lower_warp_new(struct hed_lower *l)
{
    const struct hed_ptx_func *f = l->function->ptx;
    struct warp *w = calloc(1, sizeof(*w));

    if (w) {
        w->blocks = calloc((size_t)f->nlabels + 1, sizeof(LLVMBasicBlockRef));
        w->seen = calloc((size_t)f->nlabels + 1, sizeof(bool));
        w->index = hed_lower_map_new();
        w->locals = hed_lower_map_new();
        w->strides = hed_lower_map_new();
    }
    if (!w || !w->blocks || !w->seen || !w->index || !w->locals || !w->strides)
        l->err = HED_ENOMEM;
    return w;
}

void
hed_lower_warp_free(struct warp *w)
{
    if (!w)
        return;
    free(w->blocks);
    free(w->seen);
    hed_lower_map_free(w->index);
    hed_lower_map_free(w->locals);
    hed_lower_map_free(w->strides);
    free(w);
}

static void
warp_enter(struct hed_lower *l)
{
    struct hed_lower_function *f = l->function;
    struct warp *w = hed_lower_warp_new(l);
    uintptr_t number = 0;

    f->state = w;
    if (l->err)
        return;
    for (const struct hed_ptx_stmt *s = f->ptx->body; s; s = s->next)
        hed_lower_map_add(l, w->index, s, (void *)++number);
    f->warp = LLVMGetParam(f->value, 0);
    if (f->ptx != l->kernel) {
        f->rets = LLVMGetParam(f->value, 2);
        f->params = LLVMGetParam(f->value, 3);
        warp_place_params(l, f->ptx->sig.rets, f->rets);
        warp_place_params(l, f->ptx->sig.params, f->params);
    }
    for (const struct hed_ptx_var *v = f->ptx->vars; v; v = v->next)
        if (v->space == HED_PTX_SPACE_LOCAL || v->space == HED_PTX_SPACE_PARAM)
            hed_lower_warp_place_variable(l, v);
}

/* Loads the registers among the parameters from memory, or stores those among the results. */
static void
warp_move_registers(struct hed_lower *l, const struct hed_ptx_var *v, bool is_in)
{
    for (; v; v = v->next) {
        const struct hed_lower_place at = {.var = v};
        LLVMTypeRef t = hed_lower_int_type(l, v->type);
        const struct hed_lower_access how = {
            .type = t == l->i1 ? l->i8 : t, .count = v->vec ? v->vec : 1, .align = 1};
        LLVMValueRef values[HED_LOWER_ELEMENTS_MAX];

        if (v->space != HED_PTX_SPACE_REG || !v->reg)
            continue;
        if (is_in)
            hed_lower_warp_load(l, &at, &how, values);
        for (unsigned i = 0; i < how.count; i++) {
            LLVMValueRef slot = hed_lower_slot(l, v->reg, i);

            if (is_in)
                LLVMBuildStore(l->b, hed_lower_resize(l, values[i], t, false), slot);
            else
                values[i] = hed_lower_resize(
                    l, LLVMBuildLoad2(l->b, hed_lower_lanes(l, t), slot, ""), how.type, false);
        }
        if (!is_in)
            hed_lower_warp_store(l, &at, &how, values);
    }
}

static void
make_dispatcher(struct hed_lower *l)
{
    struct warp *w = hed_lower_warp_state(l);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(l->b);
    LLVMBasicBlockRef nowhere = hed_lower_block(l, "nowhere");
    LLVMBasicBlockRef chosen = hed_lower_block(l, "chosen");
    LLVMValueRef active;

    w->next = hed_lower_block(l, "next");
    w->go = hed_lower_block(l, "go");
    w->end = hed_lower_block(l, "end");
    LLVMPositionBuilderAtEnd(l->b, w->next);
    LLVMBuildStore(l->b, hed_lower_runtime(l, "hed_warp_next", l->i32, &w->machine, 1), w->where);
    LLVMBuildBr(l->b, w->go);
    LLVMPositionBuilderAtEnd(l->b, w->go);
    active = hed_lower_warp_field(l, offsetof(struct hed_warp, active));
    LLVMBuildStore(l->b, active, w->bits);
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, active, ""), w->end, chosen);
    LLVMPositionBuilderAtEnd(l->b, chosen);
    w->jump = LLVMBuildSwitch(l->b, LLVMBuildLoad2(l->b, l->i32, w->where, ""), nowhere, 16);
    LLVMPositionBuilderAtEnd(l->b, nowhere);
    LLVMBuildUnreachable(l->b);
    LLVMPositionBuilderAtEnd(l->b, w->end);
    LLVMBuildRetVoid(l->b);
    LLVMPositionBuilderAtEnd(l->b, here);
}

static void
warp_start(struct hed_lower *l)
{
    struct hed_lower_function *f = l->function;
    struct warp *w = f->state;
    LLVMBasicBlockRef body = hed_lower_block(l, "body");
    const bool is_kernel = f->ptx == l->kernel;

    w->machine = hed_lower_alloca(l, l->i8, sizeof(struct hed_warp), 16);
    w->bits = hed_lower_alloca(l, l->i32, 1, 0);
    w->where = hed_lower_alloca(l, l->i32, 1, 0);
    hed_lower_runtime(l, "hed_warp_init", l->nothing, &w->machine, 1);
    LLVMBuildStore(l->b,
                   is_kernel
                       ? hed_lower_field(l, l->i32, f->warp, offsetof(struct hed_ptx_warp, lanes))
                       : LLVMGetParam(f->value, 1),
                   w->bits);
    hed_lower_warp_find_locals(l);
    make_dispatcher(l);
    for (uint32_t i = 0; i < f->ptx->nlabels; i++) {
        if (!f->labels[i])
            continue;
        w->blocks[i] = hed_lower_block(l, "");
        hed_lower_warp_may_resume(l, hed_lower_warp_number(l, f->labels[i]->at), w->blocks[i]);
    }
    if (!is_kernel)
        warp_move_registers(l, f->ptx->sig.params, true);
    LLVMBuildBr(l->b, body);
    LLVMPositionBuilderAtEnd(l->b, body);
}

/* The running lanes end, or those of them for which the guard holds. */
static void
warp_ret(struct hed_lower *l)
{
    struct warp *w = hed_lower_warp_state(l);
    LLVMValueRef gone = hed_lower_warp_bits(l);

    if (l->function->ptx != l->kernel)
        warp_move_registers(l, l->function->ptx->sig.rets, false);
    if (!w->holds) {
        LLVMBuildBr(l->b, w->next);
        hed_lower_warp_go_on(l);
        return;
    }

    LLVMBasicBlockRef rest = hed_lower_block(l, "");
    LLVMValueRef left =
        LLVMBuildAnd(l->b, hed_lower_warp_running(l), LLVMBuildNot(l->b, gone, ""), "");

    LLVMBuildStore(l->b, left, w->bits);
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, left, ""), w->next, rest);
    LLVMPositionBuilderAtEnd(l->b, rest);
}

static void
warp_leave(struct hed_lower *l)
{
    struct warp *w = hed_lower_warp_state(l);

    if (!l->err) {
        w->holds = NULL;
        warp_ret(l);
        LLVMBuildUnreachable(l->b);
    }
    hed_lower_warp_free(w);
}

static void
warp_label(struct hed_lower *l, const struct hed_ptx_label *label)
{
    struct warp *w = hed_lower_warp_state(l);
    LLVMBasicBlockRef block = w->blocks[label->id];

    if (!hed_lower_warp_is_closed(l))
        hed_lower_warp_proceed(l, hed_lower_warp_number(l, label->at), block);
    LLVMMoveBasicBlockAfter(block, LLVMGetInsertBlock(l->b));
    LLVMPositionBuilderAtEnd(l->b, block);
    w->seen[label->id] = true;
}

/* ---- guards ---------------------------------------------------------------------------------- */

static void
warp_guard_begin(struct hed_lower *l, LLVMValueRef holds)
{
    struct warp *w = hed_lower_warp_state(l);
    LLVMBasicBlockRef inside;
    LLVMValueRef bits;

    w->guard = hed_lower_warp_guard(l->inst);
    if (w->guard == WARP_GUARD_SELECT || w->guard == WARP_GUARD_LEAVE) {
        w->holds = holds;
        return;
    }
    w->outer = hed_lower_warp_running(l);
    bits = LLVMBuildAnd(l->b, w->outer, hed_lower_warp_pack(l, holds), "");
    inside = hed_lower_block(l, "");
    w->after = hed_lower_block(l, "");
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, bits, ""), w->after, inside);
    LLVMPositionBuilderAtEnd(l->b, inside);
    if (w->guard == WARP_GUARD_SPLIT) {
        LLVMBasicBlockRef split = hed_lower_block(l, "");
        LLVMBasicBlockRef in = hed_lower_block(l, "");
        LLVMValueRef rest = LLVMBuildXor(l->b, w->outer, bits, "");

        LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, rest, ""), in, split);
        LLVMPositionBuilderAtEnd(l->b, split);
        hed_lower_warp_wait_at(l, rest, hed_lower_warp_number(l, l->inst) + 2);
        LLVMBuildBr(l->b, in);
        LLVMPositionBuilderAtEnd(l->b, in);
    }
    LLVMBuildStore(l->b, bits, w->bits);
}

static void
warp_guard_end(struct hed_lower *l)
{
    struct warp *w = hed_lower_warp_state(l);
    const uint32_t pc = hed_lower_warp_number(l, l->inst) + 2;

    w->holds = NULL;
    if (w->guard == WARP_GUARD_SKIP) {
        if (!hed_lower_warp_is_closed(l)) {
            LLVMBuildStore(l->b, w->outer, w->bits);
            LLVMBuildBr(l->b, w->after);
        }
        LLVMPositionBuilderAtEnd(l->b, w->after);
    } else if (w->guard == WARP_GUARD_SPLIT) {
        hed_lower_warp_proceed(l, pc, w->after);
        hed_lower_warp_may_resume(l, pc, w->after);
        LLVMPositionBuilderAtEnd(l->b, w->after);
    }
    w->guard = WARP_GUARD_NONE;
}

void
hed_lower_warp_trap(struct hed_lower *l, LLVMValueRef condition, enum hed_ptx_trap trap)
{
    LLVMValueRef warp = l->function->warp;
    LLVMValueRef args[3] = {warp, hed_lower_word(l, trap), hed_lower_word(l, l->inst->stmt.line)};
    LLVMValueRef bits = hed_lower_warp_bits(l);
    LLVMBasicBlockRef hit = hed_lower_block(l, "");
    LLVMBasicBlockRef after = hed_lower_block(l, "");

    if (condition)
        bits = LLVMBuildAnd(l->b, bits, hed_lower_warp_pack(l, condition), "");
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, bits, ""), after, hit);
    LLVMPositionBuilderAtEnd(l->b, hit);
    LLVMBuildStore(l->b, hed_lower_warp_lowest(l, bits),
                   hed_lower_at(l, warp, offsetof(struct hed_ptx_warp, lane)));
    hed_lower_trap(l, args);
    LLVMPositionBuilderAtEnd(l->b, after);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void
warp_assign(struct hed_lower *l, LLVMValueRef slot, LLVMValueRef v)
{
    if (!hed_lower_map_get(hed_lower_warp_state(l)->locals, slot))
        v = LLVMBuildSelect(l->b, hed_lower_warp_mask(l), v,
                            LLVMBuildLoad2(l->b, LLVMTypeOf(v), slot, ""), "");
    LLVMBuildStore(l->b, v, slot);
}

LLVMValueRef
hed_lower_warp_tid(struct hed_lower *l, unsigned dimension)
{
    LLVMValueRef v = hed_lower_field(l, LLVMVectorType(l->i32, HED_PTX_LANES), l->function->warp,
                                     offsetof(struct hed_ptx_warp, tid) +
                                         dimension * sizeof(uint32_t[HED_PTX_LANES]));

    LLVMSetAlignment(v, 4);
    return v;
}

LLVMValueRef
hed_lower_warp_lane(struct hed_lower *l)
{
    return hed_lower_warp_iota(l, l->i32, 1);
}

const struct hed_lower_shape hed_lower_warp = {
    .made = HED_PTX_MADE_MACHINE,
    .declare = hed_lower_warp_declare,
    .enter = warp_enter,
    .start = warp_start,
    .leave = warp_leave,
    .label = warp_label,
    .guard_begin = warp_guard_begin,
    .guard_end = warp_guard_end,
    .branch = hed_lower_warp_branch,
    .branch_table = hed_lower_warp_branch_table,
    .ret = warp_ret,
    .exit = warp_ret,
    .call = hed_lower_warp_do_call,
    .trap = hed_lower_warp_trap,
    .assign = warp_assign,
    .tid = hed_lower_warp_tid,
    .lane = hed_lower_warp_lane,
    .address = hed_lower_warp_address,
    .load = hed_lower_warp_load,
    .store = hed_lower_warp_store,
    .each = hed_lower_warp_each,
    .barrier = hed_lower_warp_barrier,
    .barrier_arrive = hed_lower_warp_barrier_arrive,
    .barrier_reduce = hed_lower_warp_barrier_reduce,
    .shfl = hed_lower_warp_shfl,
    .vote = hed_lower_warp_vote,
    .match = hed_lower_warp_match,
    .redux = hed_lower_warp_redux,
    .activemask = hed_lower_warp_activemask,
    .elect = hed_lower_warp_elect,
    .warp_sync = hed_lower_warp_sync,
    .together = hed_lower_warp_together,
    .nanosleep = hed_lower_warp_nanosleep,
};
