/* atom, red and fences. Each lane does its own: an atomic operation of LLVM, or a loop around a
 * compare-and-exchange. A block runs on one thread of the system, and nobody else reaches its
 * shared memory, so there a load and a store are enough. Where all lanes change one word and none
 * asks for its old value, they do so together.
 */
#include <stddef.h>

#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/lower.h"

/* The operation of one lane. */
struct atomic {
    enum hed_ptx_oper oper;
    enum hed_ptx_type type; /* of one element */
    LLVMAtomicOrdering order;
    unsigned at; /* bytes from the address */
    enum hed_ptx_space space;
    bool is_alone;           /* nobody else reaches the memory */
    LLVMValueRef is_flushed; /* i1: for f32, are subnormal numbers flushed at this address? */
};

static LLVMAtomicOrdering
atomic_order(const struct hed_ptx_form *f)
{
    switch (f->sem) {
    case HED_PTX_SEM_ACQUIRE:
        return LLVMAtomicOrderingAcquire;
    case HED_PTX_SEM_RELEASE:
        return LLVMAtomicOrderingRelease;
    case HED_PTX_SEM_ACQ_REL:
        return LLVMAtomicOrderingAcquireRelease;
    case HED_PTX_SEM_SC:
        return LLVMAtomicOrderingSequentiallyConsistent;
    default:
        return LLVMAtomicOrderingMonotonic;
    }
}

/* The order of an exchange that failed and so only reads. */
static LLVMAtomicOrdering
failure_order(LLVMAtomicOrdering order)
{
    switch (order) {
    case LLVMAtomicOrderingAcquire:
    case LLVMAtomicOrderingAcquireRelease:
        return LLVMAtomicOrderingAcquire;
    case LLVMAtomicOrderingSequentiallyConsistent:
        return order;
    default:
        return LLVMAtomicOrderingMonotonic;
    }
}

static LLVMValueRef
compare_exchange(struct hed_lower *l, const struct atomic *a, LLVMValueRef p, LLVMValueRef expected,
                 LLVMValueRef wanted)
{
    return LLVMBuildAtomicCmpXchg(l->b, p, expected, wanted, a->order, failure_order(a->order),
                                  false);
}

/* ---- halves ---------------------------------------------------------------------------------- */

static bool
is_bf16_type(enum hed_ptx_type t)
{
    return t == HED_PTX_TYPE_BF16 || t == HED_PTX_TYPE_BF16X2;
}

static LLVMValueRef
int_constant(LLVMTypeRef t, uint64_t v)
{
    return LLVMConstInt(t, v, false);
}

static LLVMValueRef
widen_half(struct hed_lower *l, enum hed_ptx_type t, LLVMValueRef v)
{
    if (!is_bf16_type(t))
        return LLVMBuildFPExt(l->b, LLVMBuildBitCast(l->b, v, l->f16, ""), l->f32, "");
    v = LLVMBuildShl(l->b, LLVMBuildZExt(l->b, v, l->i32, ""), int_constant(l->i32, 16), "");
    return LLVMBuildBitCast(l->b, v, l->f32, "");
}

/* Rounds to nearest even; a NaN becomes the one that the hardware makes. */
static LLVMValueRef
narrow_half(struct hed_lower *l, enum hed_ptx_type t, LLVMValueRef v)
{
    LLVMValueRef nan = LLVMBuildFCmp(l->b, LLVMRealUNO, v, v, "");
    LLVMValueRef bits, odd, half;

    if (!is_bf16_type(t)) {
        half = LLVMBuildBitCast(l->b, LLVMBuildFPTrunc(l->b, v, l->f16, ""), l->i16, "");
    } else {
        bits = LLVMBuildBitCast(l->b, v, l->i32, "");
        odd = LLVMBuildAnd(l->b, LLVMBuildLShr(l->b, bits, int_constant(l->i32, 16), ""),
                           int_constant(l->i32, 1), "");
        bits =
            LLVMBuildAdd(l->b, LLVMBuildAdd(l->b, bits, odd, ""), int_constant(l->i32, 0x7fff), "");
        bits = LLVMBuildLShr(l->b, bits, int_constant(l->i32, 16), "");
        half = LLVMBuildTrunc(l->b, bits, l->i16, "");
    }
    return LLVMBuildSelect(l->b, nan, int_constant(l->i16, 0x7fff), half, "");
}

static LLVMValueRef
atomic_half(struct hed_lower *l, const struct atomic *a, LLVMValueRef old, LLVMValueRef v)
{
    LLVMValueRef x = widen_half(l, a->type, old);
    LLVMValueRef y = widen_half(l, a->type, v);
    LLVMValueRef less, pick;

    if (a->oper == HED_PTX_OPER_ADD)
        return narrow_half(l, a->type, LLVMBuildFAdd(l->b, x, y, ""));
    /* The smaller or larger one; a NaN loses. -0 is less than +0, as their bits as integers say. */
    less = LLVMBuildFCmp(l->b, LLVMRealOLT, x, y, "");
    less = LLVMBuildOr(l->b, less,
                       LLVMBuildAnd(l->b, LLVMBuildFCmp(l->b, LLVMRealOEQ, x, y, ""),
                                    LLVMBuildICmp(l->b, LLVMIntSLT, old, v, ""), ""),
                       "");
    if (a->oper == HED_PTX_OPER_MAX)
        less = LLVMBuildNot(l->b, less, "");
    pick = LLVMBuildSelect(l->b, less, old, v, "");
    pick = LLVMBuildSelect(l->b, LLVMBuildFCmp(l->b, LLVMRealUNO, x, x, ""), v, pick, "");
    return LLVMBuildSelect(l->b, LLVMBuildFCmp(l->b, LLVMRealUNO, y, y, ""), old, pick, "");
}

static LLVMValueRef
atomic_halves(struct hed_lower *l, const struct atomic *a, LLVMValueRef old, LLVMValueRef v)
{
    LLVMValueRef sixteen = int_constant(l->i32, 16);
    LLVMValueRef low, high;

    low = atomic_half(l, a, LLVMBuildTrunc(l->b, old, l->i16, ""),
                      LLVMBuildTrunc(l->b, v, l->i16, ""));
    high =
        atomic_half(l, a, LLVMBuildTrunc(l->b, LLVMBuildLShr(l->b, old, sixteen, ""), l->i16, ""),
                    LLVMBuildTrunc(l->b, LLVMBuildLShr(l->b, v, sixteen, ""), l->i16, ""));
    return LLVMBuildOr(l->b, LLVMBuildZExt(l->b, low, l->i32, ""),
                       LLVMBuildShl(l->b, LLVMBuildZExt(l->b, high, l->i32, ""), sixteen, ""), "");
}

/* ---- single precision ------------------------------------------------------------------------ */

/* A GPU's atomic units flush subnormal numbers in global memory but not in shared memory. */
static LLVMValueRef
flushes_at(struct hed_lower *l, const struct atomic *a, LLVMValueRef address)
{
    const struct hed_lower_function *f = l->function;
    LLVMValueRef first, last;

    switch (a->space) {
    case HED_PTX_SPACE_GLOBAL:
        return LLVMConstInt(l->i1, 1, false);
    case HED_PTX_SPACE_NONE:
        first = hed_lower_field(l, l->i64, f->grid, offsetof(struct hed_ptx_grid, shared_first));
        last = hed_lower_field(l, l->i64, f->grid, offsetof(struct hed_ptx_grid, shared_last));
        return LLVMBuildOr(l->b, LLVMBuildICmp(l->b, LLVMIntULT, address, first, ""),
                           LLVMBuildICmp(l->b, LLVMIntUGE, address, last, ""), "");
    default:
        return LLVMConstInt(l->i1, 0, false);
    }
}

static LLVMValueRef
flush_f32(struct hed_lower *l, const struct atomic *a, LLVMValueRef bits)
{
    LLVMValueRef exponent = LLVMBuildAnd(l->b, bits, int_constant(l->i32, 0x7f800000), "");
    LLVMValueRef is_small = LLVMBuildICmp(l->b, LLVMIntEQ, exponent, int_constant(l->i32, 0), "");
    LLVMValueRef zero = LLVMBuildAnd(l->b, bits, int_constant(l->i32, 0x80000000), "");

    return LLVMBuildSelect(l->b, LLVMBuildAnd(l->b, is_small, a->is_flushed, ""), zero, bits, "");
}

static LLVMValueRef
atomic_add_f32(struct hed_lower *l, const struct atomic *a, LLVMValueRef old, LLVMValueRef v)
{
    LLVMValueRef x = LLVMBuildBitCast(l->b, flush_f32(l, a, old), l->f32, "");
    LLVMValueRef y = LLVMBuildBitCast(l->b, flush_f32(l, a, v), l->f32, "");
    LLVMValueRef sum = LLVMBuildFAdd(l->b, x, y, "");
    LLVMValueRef bits = flush_f32(l, a, LLVMBuildBitCast(l->b, sum, l->i32, ""));

    return LLVMBuildSelect(l->b, LLVMBuildFCmp(l->b, LLVMRealUNO, sum, sum, ""),
                           int_constant(l->i32, 0x7fffffff), bits, "");
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* The new value, for operations that LLVM does not have. */
static LLVMValueRef
atomic_new_value(struct hed_lower *l, const struct atomic *a, LLVMValueRef old, LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(old);
    LLVMValueRef one = int_constant(t, 1);
    LLVMValueRef zero = int_constant(t, 0);
    LLVMValueRef wraps;

    switch (a->oper) {
    case HED_PTX_OPER_INC:
        wraps = LLVMBuildICmp(l->b, LLVMIntUGE, old, v, "");
        return LLVMBuildSelect(l->b, wraps, zero, LLVMBuildAdd(l->b, old, one, ""), "");
    case HED_PTX_OPER_DEC:
        wraps = LLVMBuildOr(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, old, zero, ""),
                            LLVMBuildICmp(l->b, LLVMIntUGT, old, v, ""), "");
        return LLVMBuildSelect(l->b, wraps, v, LLVMBuildSub(l->b, old, one, ""), "");
    default:
        if (a->type == HED_PTX_TYPE_F32)
            return atomic_add_f32(l, a, old, v);
        return hed_ptx_types[a->type].bits == 32 ? atomic_halves(l, a, old, v)
                                                 : atomic_half(l, a, old, v);
    }
}

static LLVMValueRef
exchange_loop(struct hed_lower *l, const struct atomic *a, LLVMValueRef p, LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b);
    LLVMBasicBlockRef again = hed_lower_block(l, "");
    LLVMBasicBlockRef after = hed_lower_block(l, "");
    LLVMValueRef first = LLVMBuildLoad2(l->b, t, p, "");
    LLVMValueRef old, pair, seen;

    LLVMSetOrdering(first, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(first, LLVMGetIntTypeWidth(t) / 8);
    LLVMBuildBr(l->b, again);
    LLVMPositionBuilderAtEnd(l->b, again);
    old = LLVMBuildPhi(l->b, t, "");
    pair = compare_exchange(l, a, p, old, atomic_new_value(l, a, old, v));
    seen = LLVMBuildExtractValue(l->b, pair, 0, "");
    LLVMBuildCondBr(l->b, LLVMBuildExtractValue(l->b, pair, 1, ""), after, again);
    LLVMAddIncoming(old, &first, &before, 1);
    LLVMAddIncoming(old, &seen, &again, 1);
    LLVMPositionBuilderAtEnd(l->b, after);
    return seen;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* LLVM's operation; -1 if it has none. */
static int
llvm_operation(const struct atomic *a)
{
    const bool is_signed = hed_ptx_types[a->type].kind == HED_PTX_KIND_S;
    const bool is_half =
        a->type == HED_PTX_TYPE_F16 || a->type == HED_PTX_TYPE_F16X2 || is_bf16_type(a->type);

    switch (a->oper) {
    case HED_PTX_OPER_ADD:
        if (a->type == HED_PTX_TYPE_F64)
            return LLVMAtomicRMWBinOpFAdd;
        return is_half || a->type == HED_PTX_TYPE_F32 ? -1 : LLVMAtomicRMWBinOpAdd;
    case HED_PTX_OPER_MIN:
        return is_half ? -1 : is_signed ? LLVMAtomicRMWBinOpMin : LLVMAtomicRMWBinOpUMin;
    case HED_PTX_OPER_MAX:
        return is_half ? -1 : is_signed ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpUMax;
    case HED_PTX_OPER_AND:
        return LLVMAtomicRMWBinOpAnd;
    case HED_PTX_OPER_OR:
        return LLVMAtomicRMWBinOpOr;
    case HED_PTX_OPER_XOR:
        return LLVMAtomicRMWBinOpXor;
    case HED_PTX_OPER_EXCH:
        return LLVMAtomicRMWBinOpXchg;
    default:
        return -1;
    }
}

/* The new value, for operations that LLVM has. */
static LLVMValueRef
plain_new_value(struct hed_lower *l, int op, LLVMValueRef old, LLVMValueRef v)
{
    LLVMIntPredicate p;

    switch (op) {
    case LLVMAtomicRMWBinOpAdd:
        return LLVMBuildAdd(l->b, old, v, "");
    case LLVMAtomicRMWBinOpAnd:
        return LLVMBuildAnd(l->b, old, v, "");
    case LLVMAtomicRMWBinOpOr:
        return LLVMBuildOr(l->b, old, v, "");
    case LLVMAtomicRMWBinOpXor:
        return LLVMBuildXor(l->b, old, v, "");
    case LLVMAtomicRMWBinOpXchg:
        return v;
    case LLVMAtomicRMWBinOpFAdd:
        v = LLVMBuildFAdd(l->b, LLVMBuildBitCast(l->b, old, l->f64, ""),
                          LLVMBuildBitCast(l->b, v, l->f64, ""), "");
        return LLVMBuildBitCast(l->b, v, l->i64, "");
    default:
        p = op == LLVMAtomicRMWBinOpMin    ? LLVMIntSLT
            : op == LLVMAtomicRMWBinOpMax  ? LLVMIntSGT
            : op == LLVMAtomicRMWBinOpUMin ? LLVMIntULT
                                           : LLVMIntUGT;
        return LLVMBuildSelect(l->b, LLVMBuildICmp(l->b, p, old, v, ""), old, v, "");
    }
}

/* Nobody is between the load and the store. They are atomic all the same, so that LLVM leaves them
 * where they are: another lane may wait for the value. */
static LLVMValueRef
change_alone(struct hed_lower *l, const struct atomic *a, LLVMValueRef p, LLVMValueRef v,
             LLVMValueRef wanted)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    const unsigned bytes = LLVMGetIntTypeWidth(t) / 8;
    const int op = llvm_operation(a);
    LLVMValueRef old = LLVMBuildLoad2(l->b, t, p, ""), next, done;

    LLVMSetOrdering(old, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(old, bytes);
    if (a->oper == HED_PTX_OPER_CAS)
        next = LLVMBuildSelect(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, old, v, ""), wanted, old, "");
    else
        next = op >= 0 ? plain_new_value(l, op, old, v) : atomic_new_value(l, a, old, v);
    done = LLVMBuildStore(l->b, next, p);
    LLVMSetOrdering(done, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(done, bytes);
    return old;
}

/* The address is an i64, or an offset into shared memory, i32. */
static LLVMValueRef
atomic_pointer(struct hed_lower *l, const struct atomic *a, LLVMValueRef address)
{
    LLVMValueRef p;

    if (LLVMTypeOf(address) == l->i32) {
        address = LLVMBuildZExt(l->b, address, l->i64, "");
        p = LLVMBuildGEP2(l->b, l->i8, l->function->shared, &address, 1, "");
    } else {
        p = hed_lower_pointer(l, address);
    }
    return hed_lower_at(l, p, a->at);
}

/* args are the address, the value and, for cas, the new value. */
static void
atomic_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    struct atomic *a = arg;
    LLVMValueRef p = atomic_pointer(l, a, args[0]);
    LLVMTypeRef real = hed_lower_float_type(l, a->type);
    const int op = llvm_operation(a);
    LLVMValueRef v = args[1];

    if (a->type == HED_PTX_TYPE_F32)
        a->is_flushed = flushes_at(l, a, args[0]);
    if (a->is_alone) {
        results[0] = change_alone(l, a, p, v, a->oper == HED_PTX_OPER_CAS ? args[2] : NULL);
    } else if (a->oper == HED_PTX_OPER_CAS) {
        results[0] = LLVMBuildExtractValue(l->b, compare_exchange(l, a, p, v, args[2]), 0, "");
    } else if (op == LLVMAtomicRMWBinOpFAdd) {
        v = LLVMBuildBitCast(l->b, v, real, "");
        v = LLVMBuildAtomicRMW(l->b, op, p, v, a->order, false);
        results[0] = LLVMBuildBitCast(l->b, v, LLVMTypeOf(args[1]), "");
    } else if (op >= 0) {
        results[0] = LLVMBuildAtomicRMW(l->b, (LLVMAtomicRMWBinOp)op, p, v, a->order, false);
    } else {
        results[0] = exchange_loop(l, a, p, v);
    }
}

/* ---- for all lanes --------------------------------------------------------------------------- */

/* Addresses as i64, or offsets into shared memory as i32, with lanes. */
static LLVMValueRef
atomic_addresses(struct hed_lower *l, const struct hed_lower_place *at)
{
    const struct hed_ptx_operand reg = {.kind = HED_PTX_OPERAND_REG, .reg = at->reg};
    LLVMValueRef v;

    if (!at->is_shared || !at->reg)
        return l->shape->address(l, at);
    v = hed_lower_get(l, &reg, HED_PTX_TYPE_U32);
    return LLVMBuildAdd(l->b, v, hed_lower_int(l, l->i32, (uint64_t)at->reg_offset), "");
}

/* May lanes act in any order, and with what they have together? */
static bool
may_act_once(const struct atomic *a)
{
    const uint8_t kind = hed_ptx_types[a->type].kind;

    return kind == HED_PTX_KIND_S || kind == HED_PTX_KIND_U || kind == HED_PTX_KIND_B;
}

/* The operation on one element. `to` is NULL if it has no result. Returns the result, or NULL if
 * nobody reads it. */
static LLVMValueRef
act_on_element(struct hed_lower *l, struct atomic *a, const struct hed_lower_place *at,
               LLVMValueRef *args, const struct hed_ptx_operand *to)
{
    const bool is_signed = hed_ptx_types[a->type].kind == HED_PTX_KIND_S;
    LLVMTypeRef type = hed_lower_int_type(l, a->type);
    const unsigned n = a->oper == HED_PTX_OPER_CAS ? 3 : 2;
    LLVMValueRef result;

    if (l->shape->once && may_act_once(a) &&
        l->shape->once(l, atomic_for_lane, a, args, at, to, a->oper, is_signed))
        return NULL;
    if (l->shape->each_short && (a->is_alone || llvm_operation(a) >= 0))
        l->shape->each_short(l, atomic_for_lane, a, args, n, &type, &result, 1);
    else
        l->shape->each(l, atomic_for_lane, a, args, n, &type, &result, 1);
    return result;
}

void
hed_op_atom(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const struct hed_ptx_atomic *m = &l->meaning->atomic;
    struct atomic a = {.oper = f->oper,
                       .type = f->types[0],
                       .order = atomic_order(f),
                       .space = hed_ptx_first_space(f)};
    const struct hed_lower_place at = hed_lower_place(l, m->memory, a.space, m->bytes * m->count);
    LLVMValueRef args[3], result;

    a.is_alone =
        (a.space == HED_PTX_SPACE_SHARED || a.space == HED_PTX_SPACE_SHARED_CTA) && m->bytes <= 8;
    args[0] = atomic_addresses(l, &at);
    for (unsigned i = 0; i < m->count && !l->err; i++) {
        const struct hed_ptx_operand in = hed_ptx_nth_element(m->from, i);
        const struct hed_ptx_operand out = m->to ? hed_ptx_nth_element(m->to, i) : in;

        args[1] = hed_lower_get(l, &in, a.type);
        args[2] = m->swap ? hed_lower_get(l, m->swap, a.type) : NULL;
        a.at = i * m->bytes;
        result = act_on_element(l, &a, &at, args, m->to ? &out : NULL);
        if (m->to && result)
            hed_lower_set(l, &out, a.type, result);
    }
}

void
hed_op_fence(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    LLVMAtomicOrdering order = LLVMAtomicOrderingSequentiallyConsistent;

    if (f->op == HED_PTX_OP_FENCE && f->sem == HED_PTX_SEM_ACQ_REL)
        order = LLVMAtomicOrderingAcquireRelease;
    LLVMBuildFence(l->b, order, false, "");
}
