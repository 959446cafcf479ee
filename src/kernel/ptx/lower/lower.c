/* Functions and statements: makes the code of a kernel and of all it can reach.
 *
 * Every register is an alloca in the entry block; LLVM's passes turn them into values. Every
 * instruction goes to the function that opcodes.def names for its opcode. The shape does whatever
 * depends on the number of threads in a warp.
 */
#include "kernel/ptx/lower/lower.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/pass/pass.h"
#include "kernel/ptx/run/layout.h"

static void (*const lowerings[HED_PTX_OPS])(struct hed_lower *) = {
    [HED_PTX_OP_NONE] = hed_op_refused,
#define OP(name, family, lowering, ...) [HED_PTX_OP_##name] = hed_op_##lowering,
#define ALIAS(name, ...)
#include "kernel/ptx/opcodes.def"
};

void
hed_lower_refuse(struct hed_lower *l, const char *fmt, ...)
{
    va_list args;

    if (l->err)
        return;
    l->err = HED_ENOTSUP;
    va_start(args, fmt);
    hed_ptx_word_refusal(l->why, l->inst ? l->function->ptx : NULL, l->inst, fmt, args);
    va_end(args);
}

/* ---- instructions ---------------------------------------------------------------------------- */

void
hed_op_nothing(struct hed_lower *l)
{
    (void)l;
}

void
hed_op_refused(struct hed_lower *l)
{
    (void)l; /* hed_ptx_get_meaning() has refused it */
}

void
hed_lower_inst(struct hed_lower *l, const struct hed_ptx_inst *i)
{
    const struct hed_ptx_meaning *outer = l->meaning;
    struct hed_ptx_meaning meaning;
    struct hed_why why;

    l->inst = i;
    if (hed_ptx_get_meaning(l->function->ptx, i, &meaning, &why) != 0) {
        hed_lower_refuse(l, "%s", why.text);
        return;
    }
    l->meaning = &meaning;
    if (i->guard) {
        const struct hed_ptx_operand guard = {
            .kind = HED_PTX_OPERAND_REG, .negated = i->guard_negated, .reg = i->guard};

        l->shape->guard_begin(l, hed_lower_get(l, &guard, HED_PTX_TYPE_PRED));
    }
    lowerings[i->form->op](l);
    if (i->guard)
        l->shape->guard_end(l);
    l->inst = NULL;
    l->meaning = outer;
}

/* ---- functions ------------------------------------------------------------------------------- */

static void
make_registers(struct hed_lower *l)
{
    struct hed_lower_function *f = l->function;
    uint8_t *uses = hed_ptx_find_uses(f->ptx);

    f->regs = uses ? calloc((size_t)f->ptx->nregs + 1, sizeof(*f->regs)) : NULL;
    for (const struct hed_ptx_reg *r = f->regs ? f->ptx->regs : NULL; r; r = r->next) {
        const unsigned count = r->vec ? r->vec : 1;
        LLVMTypeRef t = hed_lower_lanes(l, hed_lower_int_type(l, r->type));

        f->regs[r->id] = calloc(count, sizeof(**f->regs));
        for (unsigned i = 0; f->regs[r->id] && i < count; i++) {
            f->regs[r->id][i] = hed_lower_alloca(l, t, 1, 0);
            /* PTX does not define what a register holds at first; zero makes both shapes behave the
             * same. Registers with a single value need none: LLVM is much faster without. */
            if (uses[r->id] != HED_PTX_USE_ONCE)
                LLVMBuildStore(l->b, LLVMConstNull(t), f->regs[r->id][i]);
        }
        if (!f->regs[r->id])
            l->err = HED_ENOMEM;
    }
    if (!f->regs)
        l->err = HED_ENOMEM;
    free(uses);
}

static void
make_labels(struct hed_lower *l)
{
    struct hed_lower_function *f = l->function;
    bool any = false;

    f->labels = calloc((size_t)f->ptx->nlabels + 1, sizeof(*f->labels));
    f->waits = calloc((size_t)f->ptx->nlabels + 1, sizeof(*f->waits));
    if (!f->labels || !f->waits) {
        l->err = HED_ENOMEM;
        return;
    }
    for (const struct hed_ptx_stmt *s = f->ptx->body; s; s = s->next) {
        if (s->kind == HED_PTX_STMT_LABEL)
            f->labels[s->label->id] = s->label;
    }
    if (hed_ptx_find_waits(l->unit, f->ptx, f->waits, &any) != 0)
        l->err = HED_ENOMEM;
    if (any)
        l->info.flags |= HED_PTX_WAITS | HED_PTX_GRID;
}

static void
load_warp_state(struct hed_lower *l)
{
    struct hed_lower_function *f = l->function;

    if (!f->grid)
        f->grid = hed_lower_field(l, l->ptr, f->warp, offsetof(struct hed_ptx_warp, grid));
    if (!f->block)
        f->block = hed_lower_field(l, l->ptr, f->warp, offsetof(struct hed_ptx_warp, block));
    f->shared = hed_lower_field(l, l->ptr, f->block, offsetof(struct hed_ptx_block, shared));
    if (l->options->confined)
        f->sandbox =
            hed_lower_field(l, l->ptr, f->grid, offsetof(struct hed_ptx_grid, sandbox_base));
    if (f->ptx->is_entry)
        f->params = hed_lower_field(l, l->ptr, f->grid, offsetof(struct hed_ptx_grid, params));
}

static void
lower_body(struct hed_lower *l)
{
    load_warp_state(l);
    if (l->shape->body) {
        l->shape->body(l);
        return;
    }
    make_registers(l);
    make_labels(l);
    if (l->err)
        return;
    l->shape->start(l);
    for (const struct hed_ptx_stmt *s = l->function->ptx->body; s && !l->err; s = s->next) {
        if (s->kind == HED_PTX_STMT_LABEL)
            l->shape->label(l, s->label);
        else if (s->kind == HED_PTX_STMT_INST)
            hed_lower_inst(l, (const struct hed_ptx_inst *)s);
    }
}

static void
free_function(struct hed_lower_function *f)
{
    for (uint32_t i = 0; f->regs && i < f->ptx->nregs; i++)
        free(f->regs[i]);
    free(f->regs);
    free(f->labels);
    free(f->waits);
    hed_lower_map_free(f->vars);
}

static void
check_local_size(struct hed_lower *l, const struct hed_ptx_func *ptx)
{
    struct hed_why why;

    if (hed_ptx_check_local(ptx, &why) != 0)
        hed_lower_refuse(l, "%s", why.text);
    if (ptx->sig.params_size > HED_PTX_LOCAL_MAX)
        hed_lower_refuse(l, "function %s: its parameters are too large", ptx->name);
}

static void
lower_function(struct hed_lower *l, const struct hed_ptx_func *ptx)
{
    const struct hed_lower_shape *const shape = l->shape;
    struct hed_lower_function f = {.ptx = ptx, .vars = hed_lower_map_new()};

    f.value = hed_lower_map_get(l->functions, ptx);
    if (!f.vars || !f.value) {
        hed_lower_map_free(f.vars);
        l->err = HED_ENOMEM;
        return;
    }
    check_local_size(l, ptx);
    if (l->err) {
        hed_lower_map_free(f.vars);
        return;
    }
    l->function = &f;
    f.entry = LLVMAppendBasicBlockInContext(l->context, f.value, "entry");
    LLVMPositionBuilderAtEnd(l->b, f.entry);
    if (ptx != l->kernel && shape->functions)
        l->shape = shape->functions;
    l->shape->enter(l);
    if (!l->err)
        lower_body(l);
    l->shape->leave(l);
    l->shape = shape;
    l->function = NULL;
    free_function(&f);
}

/* ---- units ----------------------------------------------------------------------------------- */

static void
add_var_index(void *arg, uint32_t index, const struct hed_ptx_var *v)
{
    struct hed_lower *l = arg;

    hed_lower_map_add(l, l->places, v, (void *)(uintptr_t)index);
}

static uint32_t
estimate_stack(const struct hed_ptx_unit *u, unsigned lanes)
{
    uint64_t bytes = 0;

    /* The size of a frame beyond its variables is unknown until there is code, so it is estimated.
     * Without recursion every function is on the stack at most once. */
    for (uint32_t i = 0; i < u->nfuncs; i++) {
        /* Vectors of 32 lanes do not stay in machine registers for long. */
        bytes += lanes == 1 ? 512 : 1024 + (uint64_t)u->funcs[i]->nregs * 12;
        for (const struct hed_ptx_var *v = u->funcs[i]->vars; v; v = v->next) {
            if (v->space == HED_PTX_SPACE_LOCAL || v->space == HED_PTX_SPACE_PARAM)
                bytes += v->size + v->align;
        }
    }
    bytes *= lanes;
    return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

static void
make_kernel_info(struct hed_lower *l)
{
    LLVMValueRef words[sizeof(struct hed_ptx_info) / 4];
    LLVMValueRef g;

    l->info.abi = HED_PTX_ABI;
    l->info.flags |= l->unit->recurses ? HED_PTX_RECURSES : 0;
    l->info.flags |= l->options->confined ? HED_PTX_CONFINED : 0;
    l->info.made = l->shape->made;
    l->info.shared = l->unit->shared_size;
    l->info.shared_align = l->unit->shared_align;
    l->info.stack = estimate_stack(l->unit, l->lanes);
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        words[i] = LLVMConstInt(l->i32, ((const uint32_t *)&l->info)[i], false);
    g = LLVMAddGlobal(l->module, LLVMArrayType(l->i32, sizeof(words) / sizeof(words[0])),
                      "hed_kernel_info");
    LLVMSetInitializer(g, LLVMConstArray(l->i32, words, sizeof(words) / sizeof(words[0])));
    LLVMSetGlobalConstant(g, true);
    LLVMSetAlignment(g, 8);
}

void
hed_lower_unit(struct hed_lower *l)
{
    const struct hed_ptx_unit *u = l->unit;

    l->places = hed_lower_map_new();
    l->functions = hed_lower_map_new();
    hed_ptx_each_var(l->ptx, add_var_index, l);
    for (uint32_t i = 0; i < u->nshared; i++)
        hed_lower_map_add(l, l->places, u->shared[i].var, (void *)(uintptr_t)u->shared[i].offset);
    for (uint32_t i = 0; i < u->nfuncs && !l->err; i++)
        hed_lower_map_add(l, l->functions, u->funcs[i], l->shape->declare(l, u->funcs[i]));
    for (uint32_t i = 0; i < u->nfuncs && !l->err; i++)
        lower_function(l, u->funcs[i]);
    if (!l->err && l->shape->finish)
        l->shape->finish(l);
    if (!l->err)
        make_kernel_info(l);
    hed_lower_map_free(l->places);
    hed_lower_map_free(l->functions);
    l->places = l->functions = NULL;
}
