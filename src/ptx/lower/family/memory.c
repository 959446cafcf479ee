/* ld and st in all spaces and orders, and memory on the stack. */
#include "ptx/lower/lower.h"

#include "ptx/lower/family/family.h"

/* Element i of an operand that is a register, a vector register or a list of registers; a sink if
 * there is no such element. */
static struct hed_ptx_operand
vector_element(const struct hed_ptx_operand *o, unsigned i)
{
    struct hed_ptx_operand e = *o;

    if (o->kind == HED_PTX_OPERAND_VEC)
        return i < o->count ? o->elems[i] : (struct hed_ptx_operand){.kind = HED_PTX_OPERAND_SINK};
    if (o->kind == HED_PTX_OPERAND_REG && o->reg->vec && !o->sel)
        e.sel = (uint16_t)(i + 1);
    return e;
}

/* .cv means "don't cache and fetch again": programs wait for the host with it. */
static bool
is_volatile_form(const struct hed_ptx_form *f)
{
    return f->sem == HED_PTX_SEM_VOLATILE || f->cop == HED_PTX_COP_CV ||
           (f->flags & HED_PTX_FLAG(MMIO));
}

static LLVMAtomicOrdering
access_order(const struct hed_ptx_form *f)
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
        return is_volatile_form(f) ? LLVMAtomicOrderingMonotonic : LLVMAtomicOrderingNotAtomic;
    }
}

static unsigned
operand_space(const struct hed_ptx_form *f, unsigned nth)
{
    return nth < f->nspaces ? f->spaces[nth] : HED_PTX_SPACE_NONE;
}

static struct hed_lower_access
access_of_instruction(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const unsigned space = operand_space(f, 0);
    const bool is_private = space == HED_PTX_SPACE_PARAM || space == HED_PTX_SPACE_PARAM_FUNC ||
                            space == HED_PTX_SPACE_LOCAL;
    struct hed_lower_access how = {
        .type = hed_lower_int_type(l, f->types[0]),
        .count = f->vec ? f->vec : 1,
        .align = 1,
        /* No other thread sees this memory. */
        .order = is_private ? LLVMAtomicOrderingNotAtomic : access_order(f),
        .is_volatile = is_volatile_form(f),
        .is_constant =
            space == HED_PTX_SPACE_CONST || space == HED_PTX_SPACE_PARAM_ENTRY ||
            (space == HED_PTX_SPACE_PARAM && l->function->ptx->is_entry && f->op == HED_PTX_OP_LD),
    };
    const unsigned bytes = hed_ptx_types[f->types[0]].bits / 8;

    /* LLVM splits atomic accesses of unknown alignment, so claim it: misaligned ones trap. */
    if (how.order != LLVMAtomicOrderingNotAtomic)
        how.align = bytes;
    else if (l->options->check_alignment)
        how.align = bytes * how.count;
    return how;
}

/* Accesses to a variable are checked against its declared alignment, which may be less than what
 * the access could claim. */
static void
limit_alignment(const struct hed_lower_place *at, struct hed_lower_access *how)
{
    if (at->var || at->base)
        how->align = how->order == LLVMAtomicOrderingNotAtomic ? 1 : how->align;
}

void
hed_op_load(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    struct hed_lower_access how = access_of_instruction(l);
    const unsigned whole = hed_ptx_types[f->types[0]].bits / 8 * how.count;
    const struct hed_lower_place at =
        hed_lower_place(l, &l->inst->operands[1], operand_space(f, 0), whole);
    LLVMValueRef out[HED_LOWER_ELEMENTS_MAX];

    /* In a kernel, .param also holds the arguments of the functions it calls, and an address in a
     * register may point there. */
    if (!at.base && operand_space(f, 0) != HED_PTX_SPACE_CONST)
        how.is_constant = false;
    limit_alignment(&at, &how);
    if (l->err)
        return;
    l->shape->load(l, &at, &how, out);
    for (unsigned i = 0; i < how.count; i++) {
        const struct hed_ptx_operand e = vector_element(&l->inst->operands[0], i);

        hed_lower_set(l, &e, f->types[0], out[i]);
    }
}

void
hed_op_store(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    struct hed_lower_access how = access_of_instruction(l);
    const unsigned whole = hed_ptx_types[f->types[0]].bits / 8 * how.count;
    const struct hed_lower_place at =
        hed_lower_place(l, &l->inst->operands[0], operand_space(f, 0), whole);
    LLVMValueRef in[HED_LOWER_ELEMENTS_MAX];

    limit_alignment(&at, &how);
    for (unsigned i = 0; i < how.count; i++) {
        const struct hed_ptx_operand e = vector_element(&l->inst->operands[1], i);

        in[i] = hed_lower_get(l, &e, f->types[0]);
    }
    if (!l->err)
        l->shape->store(l, &at, &how, in);
}

/* ---- the stack ------------------------------------------------------------------------------- */

static void
allocate_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    LLVMValueRef a = LLVMBuildArrayAlloca(l->b, l->i8, args[0], "");

    LLVMSetAlignment(a, *(const unsigned *)arg);
    results[0] = LLVMBuildPtrToInt(l->b, a, l->i64, "");
}

void
hed_op_alloca(struct hed_lower *l)
{
    const struct hed_ptx_inst *i = l->inst;
    const enum hed_ptx_type t = i->form->types[0];
    unsigned align = 8;
    LLVMValueRef size = hed_lower_get(l, &i->operands[1], t);
    LLVMValueRef at;

    if (i->noperands > 2 && i->operands[2].kind == HED_PTX_OPERAND_INT)
        align = (unsigned)i->operands[2].bits;
    if (align == 0 || (align & (align - 1)) != 0 || align > 4096) {
        hed_lower_refuse(l, "an alignment of %u bytes is not supported", align);
        return;
    }
    if (l->options->confined) {
        hed_lower_refuse(l, "memory on the stack of a confined kernel");
        return;
    }
    l->shape->each(l, allocate_for_lane, &align, &size, 1, &l->i64, &at, 1);
    hed_lower_set(l, &i->operands[0], t, hed_lower_resize(l, at, hed_lower_int_type(l, t), false));
}

/* The memory of alloca is released when the function returns, so any value will do. */
void
hed_op_stacksave(struct hed_lower *l)
{
    const enum hed_ptx_type t = l->inst->form->types[0];

    hed_lower_set(l, &l->inst->operands[0], t, hed_lower_int(l, hed_lower_int_type(l, t), 0));
}

/* Only cache hints use the value of createpolicy. */
void
hed_op_createpolicy(struct hed_lower *l)
{
    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_B64, hed_lower_int(l, l->i64, 0));
}
