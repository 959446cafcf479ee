/* Integer arithmetic: add sub mul mad mul24 mad24 sad div rem abs neg min max, and with carry.
 *
 * Where PTX leaves a result open, it is what a GPU gives: x / 0 and x % 0 are all ones in every
 * width, and the smallest number divided by -1 is itself.
 */
#include "kernel/ptx/lower/family/math.h"

static LLVMValueRef
extend_int(struct hed_lower *l, LLVMValueRef v, LLVMTypeRef t, bool is_signed)
{
    return is_signed ? hed_sext(l, v, t) : hed_zext(l, v, t);
}

static LLVMTypeRef
double_width(struct hed_lower *l, LLVMValueRef v)
{
    return LLVMIntTypeInContext(l->context, 2 * LLVMGetIntTypeWidth(hed_lane_type(v)));
}

/* The part of a product that the instruction asks for; .wide has twice the width. */
static LLVMValueRef
int_product(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, enum hed_ptx_part part,
            bool is_signed)
{
    LLVMTypeRef t = hed_lane_type(a);
    LLVMTypeRef wide = double_width(l, a);
    LLVMValueRef p;

    if (part == HED_PTX_PART_LO || part == HED_PTX_PART_NONE)
        return LLVMBuildMul(l->b, a, b, "");
    p = LLVMBuildMul(l->b, extend_int(l, a, wide, is_signed), extend_int(l, b, wide, is_signed),
                     "");
    if (part == HED_PTX_PART_WIDE)
        return p;
    p = LLVMBuildLShr(l->b, p, hed_like(l, p, LLVMGetIntTypeWidth(t)), "");
    return hed_trunc(l, p, t);
}

static LLVMValueRef
negate_int(struct hed_lower *l, LLVMValueRef v)
{
    return LLVMBuildNeg(l->b, v, "");
}

/* Quotient or remainder, defined for all inputs. */
static LLVMValueRef
divide_ints(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, bool is_signed, bool remainder)
{
    LLVMTypeRef t = hed_lane_type(a);
    LLVMValueRef zero = hed_like(l, b, 0);
    LLVMValueRef none = hed_icmp(l, LLVMIntEQ, b, zero);
    LLVMValueRef safe = hed_lower_select(l, none, hed_like(l, b, 1), b);
    LLVMValueRef r;

    if (!is_signed) {
        r = remainder ? LLVMBuildURem(l->b, a, safe, "") : LLVMBuildUDiv(l->b, a, safe, "");
    } else {
        const uint64_t least = UINT64_C(1) << (LLVMGetIntTypeWidth(t) - 1);
        LLVMValueRef minus = hed_icmp(l, LLVMIntEQ, b, hed_like(l, b, UINT64_MAX));
        LLVMValueRef over =
            LLVMBuildAnd(l->b, minus, hed_icmp(l, LLVMIntEQ, a, hed_like(l, a, least)), "");

        safe = hed_lower_select(l, over, hed_like(l, b, 1), safe);
        r = remainder ? LLVMBuildSRem(l->b, a, safe, "") : LLVMBuildSDiv(l->b, a, safe, "");
    }
    return hed_lower_select(l, none, hed_like(l, r, UINT64_MAX), r);
}

/* a + b with carry in and carry out. a - b is a + ~b + 1, and the carry means "no borrow", as on a
 * GPU, so that add.cc and subc, or sub.cc and addc, can be mixed as they can there. */
static LLVMValueRef
add_with_carry(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef in, bool subtract)
{
    LLVMTypeRef t = hed_lane_type(a);
    LLVMTypeRef wide = double_width(l, a);
    LLVMValueRef r;

    if (subtract)
        b = LLVMBuildNot(l->b, b, "");
    r = LLVMBuildAdd(l->b, hed_zext(l, a, wide), hed_zext(l, b, wide), "");
    if (in)
        r = LLVMBuildAdd(l->b, r, hed_zext(l, in, wide), "");
    else if (subtract)
        r = LLVMBuildAdd(l->b, r, hed_like(l, r, 1), "");
    if (HED_SAID(l, CC)) {
        LLVMValueRef top = LLVMBuildLShr(l->b, r, hed_like(l, r, LLVMGetIntTypeWidth(t)), "");

        hed_lower_set_carry(l, hed_trunc(l, top, l->i1));
    }
    return hed_trunc(l, r, t);
}

static void
lower_carry(struct hed_lower *l, enum hed_ptx_type t)
{
    const struct hed_ptx_form *f = l->inst->form;
    const bool subtract = f->op == HED_PTX_OP_SUB || f->op == HED_PTX_OP_SUBC;
    const bool reads =
        f->op == HED_PTX_OP_ADDC || f->op == HED_PTX_OP_SUBC || f->op == HED_PTX_OP_MADC;
    LLVMValueRef in = reads ? hed_lower_get_carry(l) : NULL;
    LLVMValueRef a = hed_operand(l, 1, t);
    LLVMValueRef b = hed_operand(l, 2, t);

    if (f->op == HED_PTX_OP_MAD || f->op == HED_PTX_OP_MADC) {
        a = int_product(l, a, b, f->part, hed_is_signed(t));
        b = hed_operand(l, 3, t);
    }
    hed_lower_set(l, &l->inst->operands[0], t, add_with_carry(l, a, b, in, subtract));
}

static LLVMValueRef
int_sum(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, bool is_signed, bool subtract)
{
    if (HED_SAID(l, SAT))
        return is_signed ? hed_two(l, subtract ? "llvm.ssub.sat" : "llvm.sadd.sat", a, b)
                         : hed_two(l, subtract ? "llvm.usub.sat" : "llvm.uadd.sat", a, b);
    return subtract ? LLVMBuildSub(l->b, a, b, "") : LLVMBuildAdd(l->b, a, b, "");
}

/* mul24 multiplies the low 24 bits of each; .hi takes bits 16 to 47 of the product. */
static LLVMValueRef
int_product24(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, enum hed_ptx_part part,
              bool is_signed)
{
    LLVMValueRef eight = hed_like(l, a, 8);
    LLVMValueRef p;

    a = LLVMBuildShl(l->b, a, eight, "");
    b = LLVMBuildShl(l->b, b, eight, "");
    a = is_signed ? LLVMBuildAShr(l->b, a, eight, "") : LLVMBuildLShr(l->b, a, eight, "");
    b = is_signed ? LLVMBuildAShr(l->b, b, eight, "") : LLVMBuildLShr(l->b, b, eight, "");
    if (part != HED_PTX_PART_HI)
        return LLVMBuildMul(l->b, a, b, "");
    p = int_product(l, a, b, HED_PTX_PART_WIDE, is_signed);
    return hed_trunc(l, LLVMBuildLShr(l->b, p, hed_like(l, p, 16), ""), l->i32);
}

static LLVMValueRef
least_int(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, bool is_signed)
{
    const bool max = l->inst->form->op == HED_PTX_OP_MAX;

    if (is_signed)
        return hed_two(l, max ? "llvm.smax" : "llvm.smin", a, b);
    return hed_two(l, max ? "llvm.umax" : "llvm.umin", a, b);
}

/* One operation on plain integers; c is NULL unless there are three sources. */
static LLVMValueRef
compute_int(struct hed_lower *l, bool is_signed, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    const struct hed_ptx_form *f = l->inst->form;
    LLVMValueRef r;

    switch (f->op) {
    case HED_PTX_OP_ADD:
    case HED_PTX_OP_SUB:
        return int_sum(l, a, b, is_signed, f->op == HED_PTX_OP_SUB);
    case HED_PTX_OP_MUL:
        return int_product(l, a, b, f->part, is_signed);
    case HED_PTX_OP_MAD:
        return int_sum(l, int_product(l, a, b, f->part, is_signed), c, is_signed, false);
    case HED_PTX_OP_MUL24:
        return int_product24(l, a, b, f->part, is_signed);
    case HED_PTX_OP_MAD24:
        return int_sum(l, int_product24(l, a, b, f->part, is_signed), c, is_signed, false);
    case HED_PTX_OP_SAD:
        r = hed_icmp(l, is_signed ? LLVMIntSLT : LLVMIntULT, a, b);
        r = hed_lower_select(l, r, LLVMBuildSub(l->b, b, a, ""), LLVMBuildSub(l->b, a, b, ""));
        return LLVMBuildAdd(l->b, r, c, "");
    case HED_PTX_OP_DIV:
    case HED_PTX_OP_REM:
        return divide_ints(l, a, b, is_signed, f->op == HED_PTX_OP_REM);
    case HED_PTX_OP_ABS:
        return hed_lower_select(l, hed_icmp(l, LLVMIntSLT, a, hed_like(l, a, 0)), negate_int(l, a),
                                a);
    case HED_PTX_OP_NEG:
        return negate_int(l, a);
    default:
        r = least_int(l, a, b, is_signed);
        if (c)
            r = least_int(l, r, c, is_signed);
        return HED_SAID(l, RELU) ? hed_two(l, "llvm.smax", r, hed_like(l, r, 0)) : r;
    }
}

/* u16x2 and s16x2: each half is computed on its own. */
static void
lower_int_pair(struct hed_lower *l, enum hed_ptx_type t)
{
    const struct hed_ptx_inst *i = l->inst;
    LLVMValueRef sixteen = hed_lower_int(l, l->i32, 16);
    LLVMValueRef half[2];

    for (unsigned h = 0; h < 2; h++) {
        LLVMValueRef in[3] = {NULL, NULL, NULL};

        for (unsigned k = 0; k < 3 && k + 1 < i->noperands; k++) {
            in[k] = hed_operand(l, k + 1, t);
            if (h)
                in[k] = LLVMBuildLShr(l->b, in[k], sixteen, "");
            in[k] = hed_trunc(l, in[k], l->i16);
        }
        half[h] = compute_int(l, t == HED_PTX_TYPE_S16X2, in[0], in[1], in[2]);
        half[h] = hed_zext(l, half[h], l->i32);
    }
    half[1] = LLVMBuildShl(l->b, half[1], sixteen, "");
    hed_lower_set(l, &i->operands[0], t, LLVMBuildOr(l->b, half[0], half[1], ""));
}

void
hed_lower_integer(struct hed_lower *l)
{
    const struct hed_ptx_inst *i = l->inst;
    const struct hed_ptx_form *f = i->form;
    const enum hed_ptx_type t = f->types[0];
    const bool has_three = i->noperands > 3;
    enum hed_ptx_type wide = t;

    if (t == HED_PTX_TYPE_U16X2 || t == HED_PTX_TYPE_S16X2) {
        lower_int_pair(l, t);
        return;
    }
    if (HED_SAID(l, CC) || f->op == HED_PTX_OP_ADDC || f->op == HED_PTX_OP_SUBC ||
        f->op == HED_PTX_OP_MADC) {
        lower_carry(l, t);
        return;
    }
    /* Types of the same kind are numbered in order of width. */
    if (f->part == HED_PTX_PART_WIDE)
        wide = (enum hed_ptx_type)(t + 1);
    LLVMValueRef a = hed_operand(l, 1, t);
    LLVMValueRef b = i->noperands > 2 ? hed_operand(l, 2, t) : NULL;
    LLVMValueRef c = has_three ? hed_operand(l, 3, wide) : NULL;

    hed_lower_set(l, &i->operands[0], wide, compute_int(l, hed_is_signed(t), a, b, c));
}
