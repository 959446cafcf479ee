/* Moving values and addresses without computing anything: mov, cvta, isspacep, mapa, getctarank;
 * and the addresses of memory operands.
 */
#include <stddef.h>

#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/lower.h"
#include "kernel/ptx/run/layout.h"

/* ---- addresses ------------------------------------------------------------------------------- */

static LLVMValueRef
shared_base(struct hed_lower *l)
{
    return hed_lower_splat(l, LLVMBuildPtrToInt(l->b, l->function->shared, l->i64, ""));
}

/* The place where a variable begins, plus an offset. */
static struct hed_lower_place
place_of_var(struct hed_lower *l, const struct hed_ptx_var *v, int64_t offset)
{
    struct hed_lower_place at = {.offset = offset};
    const struct hed_lower_function *f = l->function;
    const uint64_t place = (uintptr_t)hed_lower_map_get(l->places, v);

    if (!hed_lower_reaches(l, offset))
        at.offset = 0;
    if (hed_ptx_var_counts(v)) {
        LLVMValueRef vars =
            hed_lower_field(l, l->ptr, f->grid, offsetof(struct hed_ptx_grid, vars));

        at.base = hed_lower_field(l, l->ptr, vars, place * sizeof(uint64_t));
    } else if (hed_ptx_is_shared_space(v->space)) {
        at.base = f->shared;
        at.offset += (int64_t)place;
    } else if (v->space == HED_PTX_SPACE_PARAM && f->ptx->is_entry && v->owner == f->ptx &&
               !hed_lower_map_get(f->vars, v)) {
        at.base = f->params;
        at.offset += (int64_t)v->offset;
    } else { /* in local memory, or a parameter of a function */
        at.var = v;
    }
    return at;
}

LLVMValueRef
hed_lower_address_of(struct hed_lower *l, const struct hed_ptx_operand *o)
{
    if (o->kind == HED_PTX_OPERAND_FUNC)
        return hed_lower_int(l, l->i64, hed_ptx_func_address(l->ptx, o->func));
    if (hed_ptx_is_shared_space(o->var->space))
        return hed_lower_int(l, l->i64,
                             (uintptr_t)hed_lower_map_get(l->places, o->var) + (uint64_t)o->offset);

    const struct hed_lower_place at = place_of_var(l, o->var, o->offset);

    return l->shape->address(l, &at);
}

/* The lower half of an address. Shared memory begins at a multiple of every alignment. */
static LLVMValueRef
low_address_bits(struct hed_lower *l, const struct hed_lower_place *at)
{
    const struct hed_ptx_operand reg = {.kind = HED_PTX_OPERAND_REG, .reg = at->reg};

    if (!at->reg || !at->is_shared)
        return LLVMBuildTrunc(l->b, l->shape->address(l, at), hed_lower_lanes(l, l->i32), "");
    return LLVMBuildAdd(l->b, hed_lower_get(l, &reg, HED_PTX_TYPE_U32),
                        hed_lower_int(l, l->i32, (uint64_t)at->reg_offset), "");
}

static void
check_alignment(struct hed_lower *l, const struct hed_lower_place *at, unsigned align)
{
    LLVMValueRef low;

    if (!l->options->check_alignment || align <= 1 || l->err)
        return;
    /* Loads and stores check addresses themselves. */
    if ((at->address || at->reg) &&
        (l->inst->form->op == HED_PTX_OP_LD || l->inst->form->op == HED_PTX_OP_ST))
        return;
    if (!at->address && !at->reg && at->offset % (int64_t)align == 0)
        return;
    low = low_address_bits(l, at);
    low = LLVMBuildAnd(l->b, low, hed_lower_int(l, l->i32, align - 1), "");
    l->shape->trap(l, LLVMBuildICmp(l->b, LLVMIntNE, low, hed_lower_int(l, l->i32, 0), ""),
                   HED_PTX_TRAP_ALIGN);
}

LLVMValueRef
hed_lower_place_address(struct hed_lower *l, const struct hed_lower_place *at)
{
    const struct hed_ptx_operand reg = {.kind = HED_PTX_OPERAND_REG, .reg = at->reg};
    LLVMValueRef v = hed_lower_get(l, &reg, HED_PTX_TYPE_U64);

    v = LLVMBuildAdd(l->b, v, hed_lower_int(l, l->i64, (uint64_t)at->reg_offset), "");
    if (!at->is_shared)
        return v;
    /* A shared address is 32 bits wide, whatever the register's width. */
    v = LLVMBuildAnd(l->b, v, hed_lower_int(l, l->i64, UINT32_MAX), "");
    return LLVMBuildAdd(l->b, v, shared_base(l), "");
}

struct hed_lower_place
hed_lower_place(struct hed_lower *l, const struct hed_ptx_operand *o, enum hed_ptx_space space,
                unsigned align)
{
    struct hed_lower_place at = {0};

    if (o->kind == HED_PTX_OPERAND_VAR || o->base == HED_PTX_OPERAND_VAR) {
        at = place_of_var(l, o->var, o->offset);
    } else if (o->base == HED_PTX_OPERAND_REG) {
        at.reg = o->reg;
        at.reg_offset = o->offset;
        at.is_shared = hed_ptx_is_shared_space(space);
        if (l->lanes == 1)
            at.address = hed_lower_place_address(l, &at);
    } else {
        at.address = hed_lower_int(l, l->i64, o->bits + (uint64_t)o->offset);
        if (hed_ptx_is_shared_space(space))
            at.address = LLVMBuildAdd(l->b, at.address, shared_base(l), "");
    }
    check_alignment(l, &at, align);
    return at;
}

/* ---- mov ------------------------------------------------------------------------------------- */

static LLVMValueRef
shift_amount(struct hed_lower *l, LLVMTypeRef t, unsigned bits)
{
    if (LLVMGetIntTypeWidth(t) <= 64 || l->lanes == 1)
        return hed_lower_int(l, t, bits);
    return hed_lower_splat(l, LLVMConstInt(t, bits, false));
}

/* The type of a part of a value, by its number of bits. */
static enum hed_ptx_type
type_of_bits(unsigned bits)
{
    switch (bits) {
    case 8:
        return HED_PTX_TYPE_B8;
    case 16:
        return HED_PTX_TYPE_B16;
    case 32:
        return HED_PTX_TYPE_B32;
    default:
        return HED_PTX_TYPE_B64;
    }
}

static LLVMValueRef
pack_elements(struct hed_lower *l, const struct hed_ptx_operand *o, enum hed_ptx_type t)
{
    const unsigned bits = hed_ptx_types[t].bits / o->count;
    LLVMTypeRef whole = hed_lower_int_type(l, t);
    LLVMValueRef v = hed_lower_int(l, whole, 0);

    for (unsigned i = 0; i < o->count; i++) {
        LLVMValueRef part = hed_lower_get(l, &o->elems[i], type_of_bits(bits));

        part = hed_lower_resize(l, part, whole, false);
        v = LLVMBuildOr(l->b, v, LLVMBuildShl(l->b, part, shift_amount(l, whole, i * bits), ""),
                        "");
    }
    return v;
}

static void
unpack_elements(struct hed_lower *l, const struct hed_ptx_operand *o, enum hed_ptx_type t,
                LLVMValueRef v)
{
    const unsigned bits = hed_ptx_types[t].bits / o->count;
    LLVMTypeRef whole = hed_lower_int_type(l, t);

    for (unsigned i = 0; i < o->count; i++) {
        LLVMValueRef part = LLVMBuildLShr(l->b, v, shift_amount(l, whole, i * bits), "");

        part = hed_lower_resize(l, part, hed_lower_int_type(l, type_of_bits(bits)), false);
        hed_lower_set(l, &o->elems[i], type_of_bits(bits), part);
    }
}

void
hed_op_mov(struct hed_lower *l)
{
    const struct hed_ptx_operand *to = &l->inst->operands[0];
    const struct hed_ptx_operand *from = &l->inst->operands[1];
    const enum hed_ptx_type t = l->inst->form->types[0];
    LLVMValueRef v;

    v = from->kind == HED_PTX_OPERAND_VEC ? pack_elements(l, from, t) : hed_lower_get(l, from, t);
    if (to->kind == HED_PTX_OPERAND_VEC)
        unpack_elements(l, to, t, v);
    else
        hed_lower_set(l, to, t, v);
}

/* ---- spaces ---------------------------------------------------------------------------------- */

void
hed_op_cvta(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const enum hed_ptx_type t = f->types[0];
    LLVMValueRef v = hed_lower_get(l, &l->inst->operands[1], HED_PTX_TYPE_U64);

    /* Only shared memory has addresses that differ from the generic ones. */
    if (hed_ptx_is_shared_space(f->spaces[0])) {
        if (f->flags & HED_PTX_FLAG(TO)) {
            v = LLVMBuildSub(l->b, v, shared_base(l), "");
        } else {
            v = LLVMBuildAnd(l->b, v, hed_lower_int(l, l->i64, UINT32_MAX), "");
            v = LLVMBuildAdd(l->b, v, shared_base(l), "");
        }
    }
    hed_lower_set(l, &l->inst->operands[0], t,
                  hed_lower_resize(l, v, hed_lower_int_type(l, t), false));
}

static LLVMValueRef
is_within_range(struct hed_lower *l, LLVMValueRef v, size_t first, size_t last)
{
    LLVMValueRef from = hed_lower_splat(l, hed_lower_field(l, l->i64, l->function->grid, first));
    LLVMValueRef to = hed_lower_splat(l, hed_lower_field(l, l->i64, l->function->grid, last));

    return LLVMBuildAnd(l->b, LLVMBuildICmp(l->b, LLVMIntUGE, v, from, ""),
                        LLVMBuildICmp(l->b, LLVMIntULT, v, to, ""), "");
}

void
hed_op_isspacep(struct hed_lower *l)
{
    const unsigned space = l->inst->form->spaces[0];
    LLVMValueRef v = hed_lower_get(l, &l->inst->operands[1], HED_PTX_TYPE_U64);
    LLVMValueRef shared = is_within_range(l, v, offsetof(struct hed_ptx_grid, shared_first),
                                          offsetof(struct hed_ptx_grid, shared_last));
    LLVMValueRef local = is_within_range(l, v, offsetof(struct hed_ptx_grid, local_first),
                                         offsetof(struct hed_ptx_grid, local_last));
    LLVMValueRef is = NULL;

    if (hed_ptx_is_shared_space(space))
        is = shared;
    else if (space == HED_PTX_SPACE_LOCAL)
        is = local;
    else if (space == HED_PTX_SPACE_GLOBAL)
        is = LLVMBuildNot(l->b, LLVMBuildOr(l->b, shared, local, ""), "");
    else
        /* Constants and parameters cannot be told from global memory, since a program may pass
         * global memory for either. Every use of the address works if they count as global. */
        is = hed_lower_int(l, l->i1, 0);
    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_PRED, is);
}

/* ---- clusters: every block is one of its own, so its memory is all there is ----------------- */

void
hed_op_mapa(struct hed_lower *l)
{
    const enum hed_ptx_type t = l->inst->form->types[0];

    hed_lower_set(l, &l->inst->operands[0], t, hed_lower_get(l, &l->inst->operands[1], t));
}

void
hed_op_getctarank(struct hed_lower *l)
{
    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_B32, hed_lower_int(l, l->i32, 0));
}
