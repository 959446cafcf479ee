/* Comparisons of a number that steps from lane to lane with a uniform one: "i < n".
 *
 *      i: 96 97 98 99 ...          n = 98: the first two lanes, so the answer is the bits 0..011
 *
 * As a mask of bits that is a handful of scalar instructions, and a branch wants bits. As vectors
 * it would be a comparison of 32 lanes and then packing them. "i == n" is one lane at most.
 */
#include "kernel/ptx/lower/mask/mask.h"

/* How a comparison follows from "how many lanes, from the first on, are below". */
struct below {
    bool or_equal; /* lanes that are equal count as well */
    bool others;   /* the answer is the lanes that are not below */
};

static bool
comparison_of(const struct hed_ptx_form *f, bool *is_signed, struct below *b)
{
    *is_signed = hed_ptx_types[f->types[0]].kind == HED_PTX_KIND_S;
    switch (f->cmp) {
    case HED_PTX_CMP_LT:
    case HED_PTX_CMP_LO:
        *b = (struct below){false, false};
        return true;
    case HED_PTX_CMP_LE:
    case HED_PTX_CMP_LS:
        *b = (struct below){true, false};
        return true;
    case HED_PTX_CMP_GE:
    case HED_PTX_CMP_HS:
        *b = (struct below){false, true};
        return true;
    case HED_PTX_CMP_GT:
    case HED_PTX_CMP_HI:
        *b = (struct below){true, true};
        return true;
    default:
        return false;
    }
}

static bool
is_equality(const struct hed_ptx_form *f)
{
    return f->cmp == HED_PTX_CMP_EQ || f->cmp == HED_PTX_CMP_NE;
}

/* May the instruction be done so? The first operand must step upwards, in rows of 32. */
static bool
is_step_comparison(const struct hed_lower *l, const struct hed_ptx_inst *i)
{
    const struct hed_uniforms *u = &hed_mask_state(l)->uniforms;
    const struct hed_ptx_form *f = i->form;
    struct hed_uniform a, b;

    if (f->op != HED_PTX_OP_SETP || i->guard || i->noperands != 3 || u->width != HED_PTX_LANES ||
        i->operands[0].kind != HED_PTX_OPERAND_REG || i->operands[1].kind != HED_PTX_OPERAND_REG ||
        (f->types[0] != HED_PTX_TYPE_S32 && f->types[0] != HED_PTX_TYPE_U32 &&
         !(f->types[0] == HED_PTX_TYPE_B32 && is_equality(f))) ||
        hed_ptx_types[i->operands[1].reg->type].bits != 32 ||
        u->values[i->operands[0].reg->id].kind == HED_UNIFORM)
        return false;
    a = hed_uniform_operand(u, &i->operands[1]);
    b = hed_uniform_operand(u, &i->operands[2]);
    return a.kind == HED_ROWS && a.step > 0 && a.wraps == HED_FLOW_NONE && b.kind == HED_UNIFORM;
}

/* Stores the lanes below n as bits: base and n are i64, and base + 31 * step does not wrap around.
 * That all lanes are below is the most likely, and a branch of its own: behind it LLVM knows the
 * bits. */
static void
store_lanes_below(struct hed_lower *l, LLVMValueRef base, LLVMValueRef n, int64_t step,
                  struct below how, LLVMValueRef slot)
{
    LLVMValueRef zero = LLVMConstInt(l->i64, 0, false), one = hed_lower_word(l, 1);
    LLVMValueRef most = LLVMConstInt(l->i64, (uint64_t)step * HED_PTX_LANES, false);
    LLVMBasicBlockRef all = hed_lower_block(l, ""), some = hed_lower_block(l, "");
    LLVMBasicBlockRef after = hed_lower_block(l, "");
    LLVMValueRef room = LLVMBuildSub(l->b, n, base, ""), count, bits;

    /* Lane k is below if k * step < n - base: that is ceil((n - base) / step) lanes. */
    room = LLVMBuildAdd(l->b, room,
                        LLVMConstInt(l->i64, (uint64_t)(step - (how.or_equal ? 0 : 1)), false), "");
    hed_lower_unlikely(l, LLVMBuildICmp(l->b, LLVMIntSLT, room, most, ""), some, all);
    LLVMPositionBuilderAtEnd(l->b, all);
    LLVMBuildStore(l->b, hed_lower_word(l, how.others ? 0 : UINT32_MAX), slot);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, some);
    room = LLVMBuildSelect(l->b, LLVMBuildICmp(l->b, LLVMIntSLT, room, zero, ""), zero, room, "");
    count = LLVMBuildUDiv(l->b, hed_lower_resize(l, room, l->i32, false),
                          hed_lower_word(l, (uint64_t)step), "");
    bits = LLVMBuildSub(l->b, LLVMBuildShl(l->b, one, count, ""), one, "");
    LLVMBuildStore(l->b, how.others ? LLVMBuildNot(l->b, bits, "") : bits, slot);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, after);
}

/* The lane whose number is n, as bits; both are i32. Lane k has the number base + k * step, and
 * none has another's: steps are small. */
static LLVMValueRef
lane_equal(struct hed_lower *l, LLVMValueRef base, LLVMValueRef n, int64_t step)
{
    LLVMValueRef distance = LLVMBuildSub(l->b, n, base, ""), by = hed_lower_word(l, (uint64_t)step);
    LLVMValueRef lane = LLVMBuildUDiv(l->b, distance, by, "");
    LLVMValueRef is_there = LLVMBuildAnd(
        l->b, LLVMBuildICmp(l->b, LLVMIntULT, lane, hed_lower_word(l, HED_PTX_LANES), ""),
        LLVMBuildIsNull(l->b, LLVMBuildURem(l->b, distance, by, ""), ""), "");
    LLVMValueRef safe = LLVMBuildAnd(l->b, lane, hed_lower_word(l, HED_PTX_LANES - 1), "");

    return LLVMBuildSelect(l->b, is_there, LLVMBuildShl(l->b, hed_lower_word(l, 1), safe, ""),
                           hed_lower_word(l, 0), "");
}

/* The same by 32 comparisons, where the steps wrap around. */
static LLVMValueRef
compare_lanes(struct hed_lower *l, const struct hed_ptx_inst *i, bool is_signed, struct below how)
{
    LLVMValueRef a = hed_mask_lanes(l, i->operands[1].reg);
    LLVMValueRef b = hed_lower_get(l, &i->operands[2], i->form->types[0]);
    const LLVMIntPredicate less = how.or_equal ? (is_signed ? LLVMIntSLE : LLVMIntULE)
                                               : (is_signed ? LLVMIntSLT : LLVMIntULT);
    LLVMValueRef bits = hed_lower_warp_pack(l, LLVMBuildICmp(l->b, less, a, b, ""));

    return how.others ? LLVMBuildNot(l->b, bits, "") : bits;
}

/* The slot of the bits of a predicate. */
static LLVMValueRef
bits_slot(struct hed_lower *l, const struct hed_ptx_reg *r)
{
    LLVMValueRef *slot = &hed_mask_state(l)->values[r->id].bits;

    *slot = *slot ? *slot : hed_lower_alloca(l, l->i32, 1, 0);
    return *slot;
}

/* ---- and, or, xor, not of such answers ------------------------------------------------------- */

static bool
is_kept_as_bits(const struct hed_lower *l, const struct hed_ptx_operand *o)
{
    return o->kind == HED_PTX_OPERAND_REG && hed_mask_state(l)->values[o->reg->id].bits;
}

static LLVMValueRef
operand_bits(struct hed_lower *l, const struct hed_ptx_operand *o)
{
    LLVMValueRef bits = o->kind == HED_PTX_OPERAND_REG
                            ? hed_mask_bits(l, o->reg)
                            : hed_lower_word(l, o->bits ? UINT32_MAX : 0);

    return o->negated ? LLVMBuildNot(l->b, bits, "") : bits;
}

static bool
combine_bits(struct hed_lower *l, const struct hed_ptx_inst *i)
{
    const struct mask *m = hed_mask_state(l);
    const struct hed_ptx_operand *o = i->operands;
    LLVMValueRef a, b;

    if (i->form->types[0] != HED_PTX_TYPE_PRED || i->guard || o[0].kind != HED_PTX_OPERAND_REG ||
        m->uniforms.values[o[0].reg->id].kind != HED_VARIES ||
        !(is_kept_as_bits(l, &o[1]) || (i->noperands > 2 && is_kept_as_bits(l, &o[2]))))
        return false;
    a = operand_bits(l, &o[1]);
    b = i->noperands > 2 ? operand_bits(l, &o[2]) : NULL;
    switch (i->form->op) {
    case HED_PTX_OP_AND:
        a = LLVMBuildAnd(l->b, a, b, "");
        break;
    case HED_PTX_OP_OR:
        a = LLVMBuildOr(l->b, a, b, "");
        break;
    case HED_PTX_OP_XOR:
        a = LLVMBuildXor(l->b, a, b, "");
        break;
    case HED_PTX_OP_NOT:
        a = LLVMBuildNot(l->b, a, "");
        break;
    default:
        return false;
    }
    LLVMBuildStore(l->b, a, bits_slot(l, o[0].reg));
    return true;
}

bool
hed_mask_compare(struct hed_lower *l, const struct hed_ptx_inst *i)
{
    const struct mask *m = hed_mask_state(l);
    LLVMValueRef base, n, slot, wraps, bits;
    LLVMBasicBlockRef slow, fast, after;
    struct below how = {false, false};
    bool is_signed = false;
    int64_t step;

    if (i->form->op == HED_PTX_OP_AND || i->form->op == HED_PTX_OP_OR ||
        i->form->op == HED_PTX_OP_XOR || i->form->op == HED_PTX_OP_NOT)
        return combine_bits(l, i);
    if (!is_step_comparison(l, i) ||
        !(is_equality(i->form) || comparison_of(i->form, &is_signed, &how)))
        return false;
    l->inst = i;
    step = m->uniforms.values[i->operands[1].reg->id].step;
    base = hed_mask_number(l, i->operands[1].reg, 0);
    l->lanes = 1;
    n = hed_lower_get(l, &i->operands[2], i->form->types[0]);
    l->lanes = HED_PTX_LANES;
    slot = bits_slot(l, i->operands[0].reg);
    if (is_equality(i->form)) {
        bits = lane_equal(l, base, n, step);
        LLVMBuildStore(l->b, i->form->cmp == HED_PTX_CMP_NE ? LLVMBuildNot(l->b, bits, "") : bits,
                       slot);
        l->inst = NULL;
        return true;
    }
    wraps = hed_mask_row_wraps(l, base, step * (HED_PTX_LANES - 1), is_signed);
    slow = hed_lower_block(l, "");
    fast = hed_lower_block(l, "");
    after = hed_lower_block(l, "");
    LLVMBuildCondBr(l->b, wraps, slow, fast);
    LLVMPositionBuilderAtEnd(l->b, fast);
    store_lanes_below(l, hed_lower_resize(l, base, l->i64, is_signed),
                      hed_lower_resize(l, n, l->i64, is_signed), step, how, slot);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, slow);
    LLVMBuildStore(l->b, compare_lanes(l, i, is_signed, how), slot);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, after);
    l->inst = NULL;
    return true;
}
