/* Comparing and choosing: set setp selp slct testp copysign. */
#include "kernel/ptx/lower/family/math.h"

#include "kernel/ptx/lower/family/family.h"

/* ---- comparisons ----------------------------------------------------------------------------- */

static LLVMValueRef
compare_ints(struct hed_lower *l, bool is_signed, LLVMValueRef a, LLVMValueRef b)
{
    switch (l->inst->form->cmp) {
    case HED_PTX_CMP_EQ:
        return hed_icmp(l, LLVMIntEQ, a, b);
    case HED_PTX_CMP_NE:
        return hed_icmp(l, LLVMIntNE, a, b);
    case HED_PTX_CMP_LT:
        return hed_icmp(l, is_signed ? LLVMIntSLT : LLVMIntULT, a, b);
    case HED_PTX_CMP_LE:
        return hed_icmp(l, is_signed ? LLVMIntSLE : LLVMIntULE, a, b);
    case HED_PTX_CMP_GT:
        return hed_icmp(l, is_signed ? LLVMIntSGT : LLVMIntUGT, a, b);
    case HED_PTX_CMP_GE:
        return hed_icmp(l, is_signed ? LLVMIntSGE : LLVMIntUGE, a, b);
    case HED_PTX_CMP_LO:
        return hed_icmp(l, LLVMIntULT, a, b);
    case HED_PTX_CMP_LS:
        return hed_icmp(l, LLVMIntULE, a, b);
    case HED_PTX_CMP_HI:
        return hed_icmp(l, LLVMIntUGT, a, b);
    default: /* hs */
        return hed_icmp(l, LLVMIntUGE, a, b);
    }
}

static LLVMRealPredicate
real_predicate(enum hed_ptx_cmp cmp)
{
    switch (cmp) {
    case HED_PTX_CMP_EQ:
        return LLVMRealOEQ;
    case HED_PTX_CMP_NE:
        return LLVMRealONE;
    case HED_PTX_CMP_LT:
        return LLVMRealOLT;
    case HED_PTX_CMP_LE:
        return LLVMRealOLE;
    case HED_PTX_CMP_GT:
        return LLVMRealOGT;
    case HED_PTX_CMP_GE:
        return LLVMRealOGE;
    case HED_PTX_CMP_EQU:
        return LLVMRealUEQ;
    case HED_PTX_CMP_NEU:
        return LLVMRealUNE;
    case HED_PTX_CMP_LTU:
        return LLVMRealULT;
    case HED_PTX_CMP_LEU:
        return LLVMRealULE;
    case HED_PTX_CMP_GTU:
        return LLVMRealUGT;
    case HED_PTX_CMP_GEU:
        return LLVMRealUGE;
    case HED_PTX_CMP_NUM:
        return LLVMRealORD;
    default: /* nan */
        return LLVMRealUNO;
    }
}

/* The bits of a float of the format f as a float that LLVM can compare. */
static LLVMValueRef
comparable_real(struct hed_lower *l, const struct hed_real *f, LLVMValueRef bits)
{
    if (HED_SAID(l, FTZ))
        bits = hed_real_flush(l, bits, f);
    if (f->bits == 16)
        return hed_real_widen16(l, bits, f);
    return hed_cast(l, bits, f->bits == 64 ? l->f64 : l->f32);
}

static LLVMValueRef
compare_reals(struct hed_lower *l, const struct hed_real *f, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFCmp(l->b, real_predicate(l->inst->form->cmp), comparable_real(l, f, a),
                         comparable_real(l, f, b), "");
}

/* A comparison, combined with the predicate in operand `at` if there is one. */
static LLVMValueRef
combine_predicate(struct hed_lower *l, LLVMValueRef c, unsigned at)
{
    LLVMValueRef p;

    if (!l->inst->form->oper)
        return c;
    p = hed_operand(l, at, HED_PTX_TYPE_PRED);
    switch (l->inst->form->oper) {
    case HED_PTX_OPER_AND:
        return LLVMBuildAnd(l->b, c, p, "");
    case HED_PTX_OPER_OR:
        return LLVMBuildOr(l->b, c, p, "");
    default: /* xor */
        return LLVMBuildXor(l->b, c, p, "");
    }
}

static LLVMValueRef
half_of_pair16(struct hed_lower *l, LLVMValueRef v, unsigned h)
{
    if (h)
        v = LLVMBuildLShr(l->b, v, hed_like(l, v, 16), "");
    return hed_trunc(l, v, l->i16);
}

/* Compares sources 1 and 2, of type t; of pairs, the halves h. */
static LLVMValueRef
compare_sources(struct hed_lower *l, enum hed_ptx_type t, unsigned h)
{
    const struct hed_real *f = hed_real_of(t);
    LLVMValueRef a = hed_operand(l, 1, t);
    LLVMValueRef b = hed_operand(l, 2, t);

    if (hed_ptx_is_half_pair(t)) {
        a = half_of_pair16(l, a, h);
        b = half_of_pair16(l, b, h);
    }
    return f ? compare_reals(l, f, a, b) : compare_ints(l, hed_is_signed(t), a, b);
}

void
hed_op_setp(struct hed_lower *l)
{
    const struct hed_ptx_operand *d = &l->inst->operands[0];
    const enum hed_ptx_type t = l->inst->form->types[0];
    const bool has_two = d->kind == HED_PTX_OPERAND_PAIR;
    LLVMValueRef c = compare_sources(l, t, 0);
    LLVMValueRef p = combine_predicate(l, c, 3);

    /* Compute both before writing either: the source predicate may be a destination. */
    if (has_two) {
        LLVMValueRef q =
            hed_ptx_is_half_pair(t) ? compare_sources(l, t, 1) : LLVMBuildNot(l->b, c, "");

        q = combine_predicate(l, q, 3);
        hed_lower_set(l, &d->elems[0], HED_PTX_TYPE_PRED, p);
        hed_lower_set(l, &d->elems[1], HED_PTX_TYPE_PRED, q);
    } else {
        hed_lower_set(l, d, HED_PTX_TYPE_PRED, p);
    }
}

/* ---- set ------------------------------------------------------------------------------------- */

/* The value of "true" in a destination of type t (or in half a pair). */
static uint64_t
true_value(enum hed_ptx_type t)
{
    const struct hed_real *f = hed_real_of(t);

    return f ? (uint64_t)f->bias << f->mantissa : UINT64_MAX;
}

void
hed_op_set(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const enum hed_ptx_type to = f->types[0];
    const enum hed_ptx_type from = f->types[1];
    LLVMTypeRef t = hed_lower_int_type(l, to);
    LLVMValueRef zero = hed_lower_int(l, t, 0);
    LLVMValueRef yes = hed_lower_int(l, t, true_value(to));
    LLVMValueRef r =
        hed_lower_select(l, combine_predicate(l, compare_sources(l, from, 0), 3), yes, zero);

    if (hed_ptx_is_half_pair(from)) {
        const uint64_t one = hed_ptx_is_half_pair(to) ? true_value(to) : 0xffff;
        LLVMValueRef upper = hed_lower_int(l, t, one << 16);

        yes = hed_lower_int(l, t, one);
        r = hed_lower_select(l, combine_predicate(l, compare_sources(l, from, 0), 3), yes, zero);
        upper =
            hed_lower_select(l, combine_predicate(l, compare_sources(l, from, 1), 3), upper, zero);
        r = LLVMBuildOr(l->b, r, upper, "");
    }
    hed_lower_set(l, &l->inst->operands[0], to, r);
}

/* ---- selecting and testing ------------------------------------------------------------------- */

void
hed_op_slct(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const enum hed_ptx_type t = f->types[0];
    LLVMValueRef c = hed_operand(l, 3, f->types[1]);
    LLVMValueRef first;

    if (f->types[1] == HED_PTX_TYPE_F32) {
        c = comparable_real(l, &hed_real_f32, c);
        first = LLVMBuildFCmp(l->b, LLVMRealOGE, c, LLVMConstNull(LLVMTypeOf(c)), "");
    } else {
        first = hed_icmp(l, LLVMIntSGE, c, hed_like(l, c, 0));
    }
    hed_lower_set(l, &l->inst->operands[0], t,
                  hed_lower_select(l, first, hed_operand(l, 1, t), hed_operand(l, 2, t)));
}

/* Is the float without its sign at least lo and less than hi? */
static LLVMValueRef
magnitude_between(struct hed_lower *l, LLVMValueRef mag, uint64_t lo, uint64_t hi)
{
    LLVMValueRef from = LLVMBuildSub(l->b, mag, hed_like(l, mag, lo), "");

    return hed_icmp(l, LLVMIntULT, from, hed_like(l, mag, hi - lo));
}

void
hed_op_testp(struct hed_lower *l)
{
    const enum hed_ptx_type t = l->inst->form->types[0];
    const bool is_double = t == HED_PTX_TYPE_F64;
    const uint64_t inf = is_double ? UINT64_C(0x7ff) << 52 : UINT64_C(0xff) << 23;
    const uint64_t normal = is_double ? UINT64_C(1) << 52 : UINT64_C(1) << 23;
    const uint64_t all = is_double ? INT64_MAX : INT32_MAX;
    LLVMValueRef mag = hed_operand(l, 1, t);
    LLVMValueRef p;

    mag = LLVMBuildAnd(l->b, mag, hed_like(l, mag, all), "");
    switch (l->inst->form->mode) {
    case HED_PTX_MODE_FINITE:
        p = magnitude_between(l, mag, 0, inf);
        break;
    case HED_PTX_MODE_INFINITE:
        p = magnitude_between(l, mag, inf, inf + 1);
        break;
    case HED_PTX_MODE_NUMBER:
        p = magnitude_between(l, mag, 0, inf + 1);
        break;
    case HED_PTX_MODE_NOTANUMBER:
        p = magnitude_between(l, mag, inf + 1, all + 1);
        break;
    case HED_PTX_MODE_NORMAL:
        /* "As a special case, positive and negative zero are considered normal numbers." */
        p = LLVMBuildOr(l->b, magnitude_between(l, mag, normal, inf),
                        magnitude_between(l, mag, 0, 1), "");
        break;
    default:
        p = magnitude_between(l, mag, 1, normal);
        break;
    }
    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_PRED, p);
}

/* "Copy sign bit of a into value of b, and return the result as d." PTX ISA, copysign. */
void
hed_op_copysign(struct hed_lower *l)
{
    const enum hed_ptx_type t = l->inst->form->types[0];
    const uint64_t sign = t == HED_PTX_TYPE_F64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
    LLVMValueRef a = hed_operand(l, 1, t);
    LLVMValueRef b = hed_operand(l, 2, t);

    a = LLVMBuildAnd(l->b, a, hed_like(l, a, sign), "");
    b = LLVMBuildAnd(l->b, b, hed_like(l, b, ~sign), "");
    hed_lower_set(l, &l->inst->operands[0], t, LLVMBuildOr(l->b, a, b, ""));
}

void
hed_op_selp(struct hed_lower *l)
{
    const enum hed_ptx_type t = l->inst->form->types[0];

    hed_lower_set(l, &l->inst->operands[0], t,
                  hed_lower_select(l, hed_operand(l, 3, HED_PTX_TYPE_PRED), hed_operand(l, 1, t),
                                   hed_operand(l, 2, t)));
}
