/* Comparing and choosing: set setp selp slct testp copysign. */
#include "ptx/lower/math.h"

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
    case HED_PTX_CMP_HS:
        return hed_icmp(l, LLVMIntUGE, a, b);
    default:
        hed_lower_refuse(l, "integers cannot be compared so");
        return hed_icmp(l, LLVMIntEQ, a, b);
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
    case HED_PTX_CMP_NAN:
        return LLVMRealUNO;
    default:
        return LLVMRealPredicateFalse;
    }
}

/* The bits of a float of type t (or of half a pair) as something LLVM compares. */
static LLVMValueRef
comparable(struct hed_lower *l, const struct hed_real *f, LLVMValueRef bits)
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
    const LLVMRealPredicate p = real_predicate(l->inst->form->cmp);

    if (p == LLVMRealPredicateFalse)
        hed_lower_refuse(l, "floats cannot be compared so");
    return LLVMBuildFCmp(l->b, p, comparable(l, f, a), comparable(l, f, b), "");
}

/* A comparison, combined with the predicate operand number `at` if there is one. */
static LLVMValueRef
combine(struct hed_lower *l, LLVMValueRef c, unsigned at)
{
    LLVMValueRef p;

    if (!l->inst->form->oper || l->inst->noperands <= at)
        return c;
    p = hed_operand(l, at, HED_PTX_TYPE_PRED);
    switch (l->inst->form->oper) {
    case HED_PTX_OPER_AND:
        return LLVMBuildAnd(l->b, c, p, "");
    case HED_PTX_OPER_OR:
        return LLVMBuildOr(l->b, c, p, "");
    case HED_PTX_OPER_XOR:
        return LLVMBuildXor(l->b, c, p, "");
    default:
        hed_lower_refuse(l, "comparisons cannot be combined so");
        return c;
    }
}

static LLVMValueRef
half_of(struct hed_lower *l, LLVMValueRef v, unsigned h)
{
    if (h)
        v = LLVMBuildLShr(l->b, v, hed_like(l, v, 16), "");
    return hed_trunc(l, v, l->i16);
}

static bool
is_pair(enum hed_ptx_type t)
{
    return t == HED_PTX_TYPE_F16X2 || t == HED_PTX_TYPE_BF16X2;
}

/* Sources 1 and 2, of type t; of a pair, half h. */
static LLVMValueRef
compare(struct hed_lower *l, enum hed_ptx_type t, unsigned h)
{
    const struct hed_real *f = hed_real_of(t);
    LLVMValueRef a = hed_operand(l, 1, t);
    LLVMValueRef b = hed_operand(l, 2, t);

    if (is_pair(t)) {
        a = half_of(l, a, h);
        b = half_of(l, b, h);
    }
    return f ? compare_reals(l, f, a, b) : compare_ints(l, hed_is_signed(t), a, b);
}

static void
lower_setp(struct hed_lower *l)
{
    const struct hed_ptx_operand *d = &l->inst->operands[0];
    const enum hed_ptx_type t = l->inst->form->types[0];
    const bool has_two = d->kind == HED_PTX_OPERAND_PAIR;
    LLVMValueRef c = compare(l, t, 0);
    LLVMValueRef p = combine(l, c, 3);

    /* Both are computed before either is written: the source predicate may be a destination. */
    if (has_two) {
        LLVMValueRef q = is_pair(t) ? compare(l, t, 1) : LLVMBuildNot(l->b, c, "");

        q = combine(l, q, 3);
        hed_lower_set(l, &d->elems[0], HED_PTX_TYPE_PRED, p);
        hed_lower_set(l, &d->elems[1], HED_PTX_TYPE_PRED, q);
    } else {
        hed_lower_set(l, d, HED_PTX_TYPE_PRED, p);
    }
}

/* ---- set ------------------------------------------------------------------------------------- */

/* What `true` is in a destination of type t (of half a pair). */
static uint64_t
true_of(enum hed_ptx_type t)
{
    const struct hed_real *f = hed_real_of(t);

    return f ? (uint64_t)f->bias << f->mantissa : UINT64_MAX;
}

static void
lower_set(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const enum hed_ptx_type to = f->types[0];
    const enum hed_ptx_type from = f->types[1];
    LLVMTypeRef t = hed_lower_int_type(l, to);
    LLVMValueRef zero = hed_lower_int(l, t, 0);
    LLVMValueRef yes = hed_lower_int(l, t, true_of(to));
    LLVMValueRef r = hed_lower_select(l, combine(l, compare(l, from, 0), 3), yes, zero);

    if (is_pair(from)) {
        const uint64_t one = is_pair(to) ? true_of(to) : 0xffff;
        LLVMValueRef upper = hed_lower_int(l, t, one << 16);

        yes = hed_lower_int(l, t, one);
        r = hed_lower_select(l, combine(l, compare(l, from, 0), 3), yes, zero);
        upper = hed_lower_select(l, combine(l, compare(l, from, 1), 3), upper, zero);
        r = LLVMBuildOr(l->b, r, upper, "");
    }
    hed_lower_set(l, &l->inst->operands[0], to, r);
}

/* ---- the others ------------------------------------------------------------------------------ */

static void
lower_slct(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const enum hed_ptx_type t = f->types[0];
    LLVMValueRef c = hed_operand(l, 3, f->types[1]);
    LLVMValueRef first;

    if (f->types[1] == HED_PTX_TYPE_F32) {
        c = comparable(l, &hed_real_f32, c);
        first = LLVMBuildFCmp(l->b, LLVMRealOGE, c, LLVMConstNull(LLVMTypeOf(c)), "");
    } else {
        first = hed_icmp(l, LLVMIntSGE, c, hed_like(l, c, 0));
    }
    hed_lower_set(l, &l->inst->operands[0], t,
                  hed_lower_select(l, first, hed_operand(l, 1, t), hed_operand(l, 2, t)));
}

/* Is lo <= the float without its sign < hi? */
static LLVMValueRef
between(struct hed_lower *l, LLVMValueRef mag, uint64_t lo, uint64_t hi)
{
    LLVMValueRef from = LLVMBuildSub(l->b, mag, hed_like(l, mag, lo), "");

    return hed_icmp(l, LLVMIntULT, from, hed_like(l, mag, hi - lo));
}

static void
lower_testp(struct hed_lower *l)
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
        p = between(l, mag, 0, inf);
        break;
    case HED_PTX_MODE_INFINITE:
        p = between(l, mag, inf, inf + 1);
        break;
    case HED_PTX_MODE_NUMBER:
        p = between(l, mag, 0, inf + 1);
        break;
    case HED_PTX_MODE_NOTANUMBER:
        p = between(l, mag, inf + 1, all + 1);
        break;
    case HED_PTX_MODE_NORMAL:
        /* "As a special case, positive and negative zero are considered normal numbers." */
        p = LLVMBuildOr(l->b, between(l, mag, normal, inf), between(l, mag, 0, 1), "");
        break;
    default:
        p = between(l, mag, 1, normal);
        break;
    }
    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_PRED, p);
}

/* "Copy sign bit of a into value of b, and return the result as d." PTX ISA, copysign. */
static void
lower_copysign(struct hed_lower *l)
{
    const enum hed_ptx_type t = l->inst->form->types[0];
    const uint64_t sign = t == HED_PTX_TYPE_F64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
    LLVMValueRef a = hed_operand(l, 1, t);
    LLVMValueRef b = hed_operand(l, 2, t);

    a = LLVMBuildAnd(l->b, a, hed_like(l, a, sign), "");
    b = LLVMBuildAnd(l->b, b, hed_like(l, b, ~sign), "");
    hed_lower_set(l, &l->inst->operands[0], t, LLVMBuildOr(l->b, a, b, ""));
}

bool
hed_lower_choose(struct hed_lower *l)
{
    const enum hed_ptx_type t = l->inst->form->types[0];

    switch (l->inst->form->op) {
    case HED_PTX_OP_SETP:
        lower_setp(l);
        return true;
    case HED_PTX_OP_SET:
        lower_set(l);
        return true;
    case HED_PTX_OP_SELP:
        hed_lower_set(l, &l->inst->operands[0], t,
                      hed_lower_select(l, hed_operand(l, 3, HED_PTX_TYPE_PRED),
                                       hed_operand(l, 1, t), hed_operand(l, 2, t)));
        return true;
    case HED_PTX_OP_SLCT:
        lower_slct(l);
        return true;
    case HED_PTX_OP_TESTP:
        lower_testp(l);
        return true;
    case HED_PTX_OP_COPYSIGN:
        lower_copysign(l);
        return true;
    default:
        return false;
    }
}
