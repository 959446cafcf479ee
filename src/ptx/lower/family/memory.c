/* ld and st in all spaces and orders, hints that do nothing here, memory of the stack. */
#include "ptx/lower/lower.h"

#define ELEMENTS_MAX 8

/* Element i of an operand that is a register, a vector register or a list of registers. */
static struct hed_ptx_operand
element(const struct hed_ptx_operand *o, unsigned i)
{
    struct hed_ptx_operand e = *o;

    if (o->kind == HED_PTX_OPERAND_VEC)
        return i < o->count ? o->elems[i] : (struct hed_ptx_operand){.kind = HED_PTX_OPERAND_SINK};
    if (o->kind == HED_PTX_OPERAND_REG && o->reg->vec && !o->sel)
        e.sel = (uint16_t)(i + 1);
    return e;
}

/* .cv: "don't cache and fetch again", which is how programs wait for the host. */
static bool
is_volatile(const struct hed_ptx_form *f)
{
    return f->sem == HED_PTX_SEM_VOLATILE || f->cop == HED_PTX_COP_CV ||
           (f->flags & HED_PTX_FLAG(MMIO));
}

static LLVMAtomicOrdering
order_of(const struct hed_ptx_form *f)
{
    switch (f->sem) {
    case HED_PTX_SEM_ACQUIRE:
        return LLVMAtomicOrderingAcquire;
    case HED_PTX_SEM_RELEASE:
        return LLVMAtomicOrderingRelease;
    case HED_PTX_SEM_VOLATILE:
    case HED_PTX_SEM_RELAXED:
        return LLVMAtomicOrderingMonotonic;
    default:
        return is_volatile(f) ? LLVMAtomicOrderingMonotonic : LLVMAtomicOrderingNotAtomic;
    }
}

static unsigned
space_of(const struct hed_ptx_form *f, unsigned nth)
{
    return nth < f->nspaces ? f->spaces[nth] : HED_PTX_SPACE_NONE;
}

static struct hed_lower_access
access_of(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const unsigned space = space_of(f, 0);
    const bool is_private = space == HED_PTX_SPACE_PARAM || space == HED_PTX_SPACE_PARAM_FUNC ||
                            space == HED_PTX_SPACE_LOCAL;
    struct hed_lower_access how = {
        .type = hed_lower_int_type(l, f->types[0]),
        .count = f->vec ? f->vec : 1,
        .align = 1,
        /* Nobody else sees a thread's own memory. */
        .order = is_private ? LLVMAtomicOrderingNotAtomic : order_of(f),
        .is_volatile = is_volatile(f),
        .is_constant =
            space == HED_PTX_SPACE_CONST || space == HED_PTX_SPACE_PARAM_ENTRY ||
            (space == HED_PTX_SPACE_PARAM && l->function->ptx->is_entry && f->op == HED_PTX_OP_LD),
    };
    const unsigned bytes = hed_ptx_types[f->types[0]].bits / 8;

    /* LLVM splits atomic accesses whose alignment it does not know; these trap if misaligned. */
    if (how.order != LLVMAtomicOrderingNotAtomic)
        how.align = bytes;
    else if (l->options->check_alignment)
        how.align = bytes * how.count;
    return how;
}

/* A variable's accesses are checked by its declared alignment, which need not be the access's. */
static void
settle_alignment(const struct hed_lower_place *at, struct hed_lower_access *how)
{
    if (at->var || at->base)
        how->align = how->order == LLVMAtomicOrderingNotAtomic ? 1 : how->align;
}

static void
load(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    struct hed_lower_access how = access_of(l);
    const unsigned whole = hed_ptx_types[f->types[0]].bits / 8 * how.count;
    const struct hed_lower_place at =
        hed_lower_place(l, &l->inst->operands[1], space_of(f, 0), whole);
    LLVMValueRef out[ELEMENTS_MAX];

    /* In a kernel, .param is also where the arguments of its calls are made, and an address in a
     * register may lead there. */
    if (!at.base && space_of(f, 0) != HED_PTX_SPACE_CONST)
        how.is_constant = false;
    settle_alignment(&at, &how);
    if (l->err)
        return;
    l->shape->load(l, &at, &how, out);
    for (unsigned i = 0; i < how.count; i++) {
        const struct hed_ptx_operand e = element(&l->inst->operands[0], i);

        hed_lower_set(l, &e, f->types[0], out[i]);
    }
}

static void
store(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    struct hed_lower_access how = access_of(l);
    const unsigned whole = hed_ptx_types[f->types[0]].bits / 8 * how.count;
    const struct hed_lower_place at =
        hed_lower_place(l, &l->inst->operands[0], space_of(f, 0), whole);
    LLVMValueRef in[ELEMENTS_MAX];

    settle_alignment(&at, &how);
    for (unsigned i = 0; i < how.count; i++) {
        const struct hed_ptx_operand e = element(&l->inst->operands[1], i);

        in[i] = hed_lower_get(l, &e, f->types[0]);
    }
    if (!l->err)
        l->shape->store(l, &at, &how, in);
}

/* ---- the stack ------------------------------------------------------------------------------- */

static void
allocate_one(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    LLVMValueRef a = LLVMBuildArrayAlloca(l->b, l->i8, args[0], "");

    LLVMSetAlignment(a, *(const unsigned *)arg);
    results[0] = LLVMBuildPtrToInt(l->b, a, l->i64, "");
}

static void
allocate(struct hed_lower *l)
{
    const struct hed_ptx_inst *i = l->inst;
    const enum hed_ptx_type t = i->form->types[0];
    unsigned align = 8;
    LLVMValueRef size = hed_lower_get(l, &i->operands[1], t);
    LLVMValueRef at;

    if (i->noperands > 2 && i->operands[2].kind == HED_PTX_OPERAND_INT)
        align = (unsigned)i->operands[2].bits;
    if (align == 0 || (align & (align - 1)) != 0 || align > 4096) {
        hed_lower_refuse(l, "alignment %u", align);
        return;
    }
    l->shape->each(l, allocate_one, &align, &size, 1, &l->i64, &at, 1);
    hed_lower_set(l, &i->operands[0], t, hed_lower_resize(l, at, hed_lower_int_type(l, t), false));
}

/* What alloca took is given back when the function returns; here is only a name for it. */
static void
save_stack(struct hed_lower *l)
{
    const enum hed_ptx_type t = l->inst->form->types[0];

    hed_lower_set(l, &l->inst->operands[0], t, hed_lower_int(l, hed_lower_int_type(l, t), 0));
}

/* createpolicy gives a value that only cache hints take. */
static void
make_policy(struct hed_lower *l)
{
    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_B64, hed_lower_int(l, l->i64, 0));
}

bool
hed_lower_memory(struct hed_lower *l)
{
    switch (l->inst->form->op) {
    case HED_PTX_OP_LD:
    case HED_PTX_OP_LDU:
        load(l);
        return true;
    case HED_PTX_OP_ST:
        store(l);
        return true;
    case HED_PTX_OP_PREFETCH:
    case HED_PTX_OP_PREFETCHU:
    case HED_PTX_OP_APPLYPRIORITY:
    case HED_PTX_OP_DISCARD:
    case HED_PTX_OP_STACKRESTORE:
        return true;
    case HED_PTX_OP_CREATEPOLICY:
        make_policy(l);
        return true;
    case HED_PTX_OP_ALLOCA:
        allocate(l);
        return true;
    case HED_PTX_OP_STACKSAVE:
        save_stack(l);
        return true;
    default:
        return false;
    }
}
