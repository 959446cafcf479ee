/* Functions and statements: makes the code of a kernel and of all it can reach.
 *
 * Every register is an alloca in the entry block (LLVM's passes make values of them), every
 * instruction goes to the first family that knows it. What depends on how many threads a strand has
 * is the shape's.
 */
#include "ptx/lower/lower.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "ptx/run/layout.h"
#include "ptx/text/print.h"

#define TEXT_MAX 200

static bool (*const families[])(struct hed_lower *) = {
    hed_lower_move,    hed_lower_integer, hed_lower_real,    hed_lower_memory,  hed_lower_control,
    hed_lower_choose,  hed_lower_bits,    hed_lower_convert, hed_lower_atomic,  hed_lower_sync,
    hed_lower_barrier, hed_lower_matrix,  hed_lower_video,   hed_lower_texture,
};

void
hed_lower_refuse(struct hed_lower *l, const char *fmt, ...)
{
    char reason[256];
    struct hed_buf text;
    va_list args;

    if (l->err)
        return;
    l->err = HED_ENOTSUP;
    va_start(args, fmt);
    vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);
    if (!l->inst) {
        hed_why_set(l->why, "kernel %s: %s", l->kernel->name, reason);
        return;
    }
    hed_buf_init(&text, TEXT_MAX * 8);
    hed_ptx_print_inst(l->inst, &text);
    hed_why_set(l->why, "kernel %s: '%.*s' (function %s, line %u): %s", l->kernel->name, TEXT_MAX,
                hed_buf_cstr(&text), l->function->ptx->name, l->inst->stmt.line, reason);
    hed_buf_fini(&text);
}

/* ---- instructions ---------------------------------------------------------------------------- */

static void
lower_by_family(struct hed_lower *l)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (families[i](l) || l->err)
            return;
    }
    hed_lower_refuse(l, "no code can be made for this instruction");
}

static void
lower_inst(struct hed_lower *l, const struct hed_ptx_inst *i)
{
    l->inst = i;
    if (i->is_refused) {
        hed_lower_refuse(l, "%s", i->form->refused);
        return;
    }
    if (i->guard) {
        const struct hed_ptx_operand guard = {
            .kind = HED_PTX_OPERAND_REG, .negated = i->guard_negated, .reg = i->guard};

        l->shape->guard_begin(l, hed_lower_get(l, &guard, HED_PTX_TYPE_PRED));
    }
    lower_by_family(l);
    if (i->guard)
        l->shape->guard_end(l);
    l->inst = NULL;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* How a body uses a register, in the order of the text. */
enum use { USE_NONE, USE_ONCE, USE_MANY };

/* Marks what an operand mentions. A register that is written by the first instruction that mentions
 * it, always, and by no other, is USE_ONCE. */
static void
mark_uses(uint8_t *uses, const struct hed_ptx_operand *o, bool is_write)
{
    switch (o->kind) {
    case HED_PTX_OPERAND_MEM:
        if (o->base != HED_PTX_OPERAND_REG)
            return;
        is_write = false;
        break;
    case HED_PTX_OPERAND_REG:
        break;
    case HED_PTX_OPERAND_VEC:
    case HED_PTX_OPERAND_PAIR:
    case HED_PTX_OPERAND_LIST:
    case HED_PTX_OPERAND_TUPLE:
        for (uint32_t i = 0; i < o->count; i++)
            mark_uses(uses, &o->elems[i], is_write);
        return;
    default:
        return;
    }

    uint8_t *use = &uses[o->reg->id];

    if (is_write)
        *use = *use == USE_NONE ? USE_ONCE : USE_MANY;
    else if (*use == USE_NONE)
        *use = USE_MANY;
}

static uint8_t *
find_uses(const struct hed_ptx_func *f)
{
    uint8_t *uses = calloc((size_t)f->nregs + 1, 1);

    for (const struct hed_ptx_stmt *s = uses ? f->body : NULL; s; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind != HED_PTX_STMT_INST || i->is_refused)
            continue;
        if (i->guard && uses[i->guard->id] == USE_NONE)
            uses[i->guard->id] = USE_MANY;
        for (unsigned k = i->noperands; k-- > 1;)
            mark_uses(uses, &i->operands[k], false);
        if (i->noperands > 0)
            mark_uses(uses, &i->operands[0], !i->guard);
    }
    return uses;
}

static void
make_registers(struct hed_lower *l)
{
    struct hed_lower_function *f = l->function;
    uint8_t *uses = find_uses(f->ptx);

    f->regs = uses ? calloc((size_t)f->ptx->nregs + 1, sizeof(*f->regs)) : NULL;
    for (const struct hed_ptx_reg *r = f->regs ? f->ptx->regs : NULL; r; r = r->next) {
        const unsigned count = r->vec ? r->vec : 1;
        LLVMTypeRef t = hed_lower_lanes(l, hed_lower_int_type(l, r->type));

        f->regs[r->id] = calloc(count, sizeof(**f->regs));
        for (unsigned i = 0; f->regs[r->id] && i < count; i++) {
            f->regs[r->id][i] = hed_lower_alloca(l, t, 1, 0);
            /* What it holds before PTX leaves open; both shapes shall do the same. Registers that
             * have one value do without: LLVM is much faster with a single store. */
            if (uses[r->id] != USE_ONCE)
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
    if (hed_lower_find_waits(l))
        l->info.flags |= HED_PTX_WAITS | HED_PTX_GRID;
}

static void
load_state(struct hed_lower *l)
{
    struct hed_lower_function *f = l->function;

    f->grid = hed_lower_field(l, l->ptr, f->strand, offsetof(struct hed_ptx_strand, grid));
    f->block = hed_lower_field(l, l->ptr, f->strand, offsetof(struct hed_ptx_strand, block));
    f->shared = hed_lower_field(l, l->ptr, f->block, offsetof(struct hed_ptx_block, shared));
    if (f->ptx->is_entry)
        f->params = hed_lower_field(l, l->ptr, f->grid, offsetof(struct hed_ptx_grid, params));
}

static void
lower_body(struct hed_lower *l)
{
    load_state(l);
    make_registers(l);
    make_labels(l);
    if (l->err)
        return;
    l->shape->start(l);
    for (const struct hed_ptx_stmt *s = l->function->ptx->body; s && !l->err; s = s->next) {
        if (s->kind == HED_PTX_STMT_LABEL)
            l->shape->label(l, s->label);
        else if (s->kind == HED_PTX_STMT_INST)
            lower_inst(l, (const struct hed_ptx_inst *)s);
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

/* What a GPU gives a thread, and what a stack of ours can hold. */
#define LOCAL_MAX (UINT64_C(512) << 10)

static void
check_sizes(struct hed_lower *l, const struct hed_ptx_func *ptx)
{
    uint64_t bytes = 0;

    for (const struct hed_ptx_var *v = ptx->vars; v; v = v->next) {
        if (v->space != HED_PTX_SPACE_LOCAL && v->space != HED_PTX_SPACE_PARAM)
            continue;
        bytes += v->size < LOCAL_MAX ? v->size : LOCAL_MAX + 1;
        if (bytes > LOCAL_MAX) {
            hed_lower_refuse(l, "function %s: variables of a thread take more than %u KiB",
                             ptx->name, (unsigned)(LOCAL_MAX >> 10));
            return;
        }
    }
    if (ptx->sig.params_size > LOCAL_MAX)
        hed_lower_refuse(l, "function %s: too large parameters", ptx->name);
}

static void
lower_function(struct hed_lower *l, const struct hed_ptx_func *ptx)
{
    struct hed_lower_function f = {.ptx = ptx, .vars = hed_lower_map_new()};

    f.value = hed_lower_map_get(l->functions, ptx);
    if (!f.vars || !f.value) {
        hed_lower_map_free(f.vars);
        l->err = HED_ENOMEM;
        return;
    }
    check_sizes(l, ptx);
    if (l->err) {
        hed_lower_map_free(f.vars);
        return;
    }
    l->function = &f;
    f.entry = LLVMAppendBasicBlockInContext(l->context, f.value, "entry");
    LLVMPositionBuilderAtEnd(l->b, f.entry);
    l->shape->enter(l);
    if (!l->err)
        lower_body(l);
    l->shape->leave(l);
    l->function = NULL;
    free_function(&f);
}

/* ---- units ----------------------------------------------------------------------------------- */

static void
add_place(void *arg, uint32_t index, const struct hed_ptx_var *v)
{
    struct hed_lower *l = arg;

    hed_lower_map_add(l, l->places, v, (void *)(uintptr_t)index);
}

static uint32_t
stack_of(const struct hed_ptx_unit *u, unsigned lanes)
{
    uint64_t bytes = 0;

    /* What a frame takes beyond its variables is not known before code is made; functions without
     * recursion are on the stack once each at most. */
    for (uint32_t i = 0; i < u->nfuncs; i++) {
        /* A vector of 32 lanes has no place in machine registers for long. */
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
make_info(struct hed_lower *l)
{
    LLVMValueRef words[sizeof(struct hed_ptx_info) / 4];
    LLVMValueRef g;

    l->info.abi = HED_PTX_ABI;
    l->info.flags |= l->unit->recurses ? HED_PTX_RECURSES : 0;
    l->info.lanes = l->lanes;
    l->info.shared = l->unit->shared_size;
    l->info.shared_align = l->unit->shared_align;
    l->info.stack = stack_of(l->unit, l->lanes);
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
    hed_ptx_each_var(l->ptx, add_place, l);
    for (uint32_t i = 0; i < u->nshared; i++)
        hed_lower_map_add(l, l->places, u->shared[i].var, (void *)(uintptr_t)u->shared[i].offset);
    for (uint32_t i = 0; i < u->nfuncs && !l->err; i++)
        hed_lower_map_add(l, l->functions, u->funcs[i], l->shape->declare(l, u->funcs[i]));
    for (uint32_t i = 0; i < u->nfuncs && !l->err; i++)
        lower_function(l, u->funcs[i]);
    if (!l->err)
        make_info(l);
    hed_lower_map_free(l->places);
    hed_lower_map_free(l->functions);
    l->places = l->functions = NULL;
}
