/* Integer arithmetic: add sub mul mad mul24 mad24 sad div rem abs neg min max, and with carry.
 *
 * What a GPU gives where PTX leaves it open: x / 0 and x % 0 are all ones in every width; the
 * smallest number divided by -1 is itself.
 */
#include "ptx/lower/math.h"

static LLVMValueRef
extend(struct hed_lower *l, LLVMValueRef v, LLVMTypeRef t, bool is_signed)
{
    return is_signed ? hed_sext(l, v, t) : hed_zext(l, v, t);
}

static LLVMTypeRef
twice(struct hed_lower *l, LLVMValueRef v)
{
    return LLVMIntTypeInContext(l->context, 2 * LLVMGetIntTypeWidth(hed_lane_type(v)));
}

/* The part of a product an instruction wants; `wide` has twice the width. */
static LLVMValueRef
product(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, enum hed_ptx_part part, bool is_signed)
{
    LLVMTypeRef t = hed_lane_type(a);
    LLVMTypeRef wide = twice(l, a);
    LLVMValueRef p;

    if (part == HED_PTX_PART_LO || part == HED_PTX_PART_NONE)
        return LLVMBuildMul(l->b, a, b, "");
    p = LLVMBuildMul(l->b, extend(l, a, wide, is_signed), extend(l, b, wide, is_signed), "");
    if (part == HED_PTX_PART_WIDE)
        return p;
    p = LLVMBuildLShr(l->b, p, hed_like(l, p, LLVMGetIntTypeWidth(t)), "");
    return hed_trunc(l, p, t);
}

static LLVMValueRef
negate(struct hed_lower *l, LLVMValueRef v)
{
    return LLVMBuildNeg(l->b, v, "");
}

/* Quotient or remainder, defined for all inputs. */
static LLVMValueRef
divide(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, bool is_signed, bool remainder)
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

/* a + b with a carry in, and the carry out. a - b is a + ~b + 1, and the carry says "no borrow", as
 * on a GPU: so add.cc and subc, sub.cc and addc mix as they do there. */
static LLVMValueRef
add_carry(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef in, bool subtract)
{
    LLVMTypeRef t = hed_lane_type(a);
    LLVMTypeRef wide = twice(l, a);
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
        a = product(l, a, b, f->part, hed_is_signed(t));
        b = hed_operand(l, 3, t);
    }
    hed_lower_set(l, &l->inst->operands[0], t, add_carry(l, a, b, in, subtract));
}

static LLVMValueRef
sum_of(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, bool is_signed, bool subtract)
{
    if (HED_SAID(l, SAT))
        return is_signed ? hed_two(l, subtract ? "llvm.ssub.sat" : "llvm.sadd.sat", a, b)
                         : hed_two(l, subtract ? "llvm.usub.sat" : "llvm.uadd.sat", a, b);
    return subtract ? LLVMBuildSub(l->b, a, b, "") : LLVMBuildAdd(l->b, a, b, "");
}

/* mul24: the low 24 bits of each; .hi are bits 16 to 47 of the product. */
static LLVMValueRef
product24(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, enum hed_ptx_part part,
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
    p = product(l, a, b, HED_PTX_PART_WIDE, is_signed);
    return hed_trunc(l, LLVMBuildLShr(l->b, p, hed_like(l, p, 16), ""), l->i32);
}

static LLVMValueRef
least(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, bool is_signed)
{
    const bool max = l->inst->form->op == HED_PTX_OP_MAX;

    if (is_signed)
        return hed_two(l, max ? "llvm.smax" : "llvm.smin", a, b);
    return hed_two(l, max ? "llvm.umax" : "llvm.umin", a, b);
}

/* One operation on plain integers; c is there for three sources. */
static LLVMValueRef
compute(struct hed_lower *l, bool is_signed, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    const struct hed_ptx_form *f = l->inst->form;
    LLVMValueRef r;

    switch (f->op) {
    case HED_PTX_OP_ADD:
    case HED_PTX_OP_SUB:
        return sum_of(l, a, b, is_signed, f->op == HED_PTX_OP_SUB);
    case HED_PTX_OP_MUL:
        return product(l, a, b, f->part, is_signed);
    case HED_PTX_OP_MAD:
        return sum_of(l, product(l, a, b, f->part, is_signed), c, is_signed, false);
    case HED_PTX_OP_MUL24:
        return product24(l, a, b, f->part, is_signed);
    case HED_PTX_OP_MAD24:
        return sum_of(l, product24(l, a, b, f->part, is_signed), c, is_signed, false);
    case HED_PTX_OP_SAD:
        r = hed_icmp(l, is_signed ? LLVMIntSLT : LLVMIntULT, a, b);
        r = hed_lower_select(l, r, LLVMBuildSub(l->b, b, a, ""), LLVMBuildSub(l->b, a, b, ""));
        return LLVMBuildAdd(l->b, r, c, "");
    case HED_PTX_OP_DIV:
    case HED_PTX_OP_REM:
        return divide(l, a, b, is_signed, f->op == HED_PTX_OP_REM);
    case HED_PTX_OP_ABS:
        return hed_lower_select(l, hed_icmp(l, LLVMIntSLT, a, hed_like(l, a, 0)), negate(l, a), a);
    case HED_PTX_OP_NEG:
        return negate(l, a);
    default:
        r = least(l, a, b, is_signed);
        if (c)
            r = least(l, r, c, is_signed);
        return HED_SAID(l, RELU) ? hed_two(l, "llvm.smax", r, hed_like(l, r, 0)) : r;
    }
}

/* u16x2 and s16x2: each half alone. */
static void
lower_pair(struct hed_lower *l, enum hed_ptx_type t)
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
        half[h] = compute(l, t == HED_PTX_TYPE_S16X2, in[0], in[1], in[2]);
        half[h] = hed_zext(l, half[h], l->i32);
    }
    half[1] = LLVMBuildShl(l->b, half[1], sixteen, "");
    hed_lower_set(l, &i->operands[0], t, LLVMBuildOr(l->b, half[0], half[1], ""));
}

static bool
is_ours(const struct hed_ptx_form *f)
{
    switch (f->op) {
    case HED_PTX_OP_ADD:
    case HED_PTX_OP_SUB:
    case HED_PTX_OP_MUL:
    case HED_PTX_OP_MAD:
    case HED_PTX_OP_ADDC:
    case HED_PTX_OP_SUBC:
    case HED_PTX_OP_MADC:
    case HED_PTX_OP_MUL24:
    case HED_PTX_OP_MAD24:
    case HED_PTX_OP_SAD:
    case HED_PTX_OP_DIV:
    case HED_PTX_OP_REM:
    case HED_PTX_OP_ABS:
    case HED_PTX_OP_NEG:
    case HED_PTX_OP_MIN:
    case HED_PTX_OP_MAX:
        return true;
    default:
        return false;
    }
}

bool
hed_lower_integer(struct hed_lower *l)
{
    const struct hed_ptx_inst *i = l->inst;
    const struct hed_ptx_form *f = i->form;
    const enum hed_ptx_type t = f->types[0];
    const bool has_three = i->noperands > 3;
    enum hed_ptx_type wide = t;

    if (!is_ours(f))
        return false;
    if (t == HED_PTX_TYPE_U16X2 || t == HED_PTX_TYPE_S16X2) {
        lower_pair(l, t);
        return true;
    }
    if (!hed_is_int(t))
        return false;
    if (HED_SAID(l, CC) || f->op == HED_PTX_OP_ADDC || f->op == HED_PTX_OP_SUBC ||
        f->op == HED_PTX_OP_MADC) {
        lower_carry(l, t);
        return true;
    }
    /* The types of one kind stand in order of width. */
    if (f->part == HED_PTX_PART_WIDE)
        wide = (enum hed_ptx_type)(t + 1);
    LLVMValueRef a = hed_operand(l, 1, t);
    LLVMValueRef b = i->noperands > 2 ? hed_operand(l, 2, t) : NULL;
    LLVMValueRef c = has_three ? hed_operand(l, 3, wide) : NULL;

    hed_lower_set(l, &i->operands[0], wide, compute(l, hed_is_signed(t), a, b, c));
    return true;
}
