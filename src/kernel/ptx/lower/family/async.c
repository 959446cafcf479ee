/* Asynchronous copies, which are finished at once here, and mbarriers, the barrier objects in
 * shared memory that such copies complete.
 */
#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/lower.h"

/* ---- copies ---------------------------------------------------------------------------------- */

/* The first bytes of an element, and zeros behind them. */
static LLVMValueRef
load_part(struct hed_lower *l, LLVMTypeRef type, LLVMValueRef from, LLVMValueRef size)
{
    LLVMValueRef buffer = hed_lower_alloca(l, type, 1, 16);

    LLVMBuildStore(l->b, LLVMConstNull(type), buffer);
    LLVMBuildMemCpy(l->b, buffer, 1, from, 1, LLVMBuildZExt(l->b, size, l->i64, ""));
    return LLVMBuildLoad2(l->b, type, buffer, "");
}

static LLVMValueRef
load_whole(struct hed_lower *l, LLVMTypeRef type, LLVMValueRef from)
{
    LLVMValueRef v = LLVMBuildLoad2(l->b, type, from, "");

    LLVMSetAlignment(v, 1);
    return v;
}

/* args are the destination, the source and how many bytes to take from it; zeros follow them.
 * Nearly always it is all of them. */
static void
copy_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    LLVMValueRef to = hed_lower_pointer(l, args[0]);
    LLVMValueRef from = hed_lower_pointer(l, args[1]);
    const unsigned bytes = *(const unsigned *)arg;
    LLVMTypeRef type = LLVMIntTypeInContext(l->context, 8 * bytes);
    LLVMBasicBlockRef whole, part, after, ends[2];
    LLVMValueRef v, ways[2];

    (void)results;
    if (!args[2]) {
        LLVMSetAlignment(LLVMBuildStore(l->b, load_whole(l, type, from), to), 1);
        return;
    }
    whole = hed_lower_block(l, "");
    part = hed_lower_block(l, "");
    after = hed_lower_block(l, "");
    hed_lower_unlikely(l, LLVMBuildICmp(l->b, LLVMIntULT, args[2], hed_lower_word(l, bytes), ""),
                       part, whole);
    LLVMPositionBuilderAtEnd(l->b, whole);
    ways[0] = load_whole(l, type, from);
    ends[0] = LLVMGetInsertBlock(l->b);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, part);
    ways[1] = load_part(l, type, from, args[2]);
    ends[1] = LLVMGetInsertBlock(l->b);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, after);
    v = LLVMBuildPhi(l->b, type, "");
    LLVMAddIncoming(v, ways, ends, 2);
    LLVMSetAlignment(LLVMBuildStore(l->b, v, to), 1);
}

static LLVMValueRef
address_operand(struct hed_lower *l, const struct hed_ptx_operand *o, enum hed_ptx_space space,
                unsigned align)
{
    const struct hed_lower_place at = hed_lower_place(l, o, space, align);

    return l->err ? hed_lower_int(l, l->i64, 0) : l->shape->address(l, &at);
}

void
hed_op_copy(struct hed_lower *l)
{
    const struct hed_ptx_copy *m = &l->meaning->copy;
    const struct hed_ptx_operand *o = l->inst->operands;
    unsigned bytes = m->bytes;
    LLVMValueRef args[3] = {NULL, NULL, NULL};

    args[0] = address_operand(l, &o[0], HED_PTX_SPACE_SHARED, bytes);
    args[1] = address_operand(l, &o[1], HED_PTX_SPACE_GLOBAL, bytes);
    if (m->take_is_predicate)
        args[2] = hed_lower_select(l, hed_lower_get(l, m->take, HED_PTX_TYPE_PRED),
                                   hed_lower_int(l, l->i32, 0), hed_lower_int(l, l->i32, bytes));
    else if (m->take)
        args[2] = hed_lower_get(l, m->take, HED_PTX_TYPE_U32);
    if (!l->err)
        l->shape->each(l, copy_for_lane, &bytes, args, args[2] ? 3 : 2, NULL, NULL, 0);
}

/* args are the destination, the source and the number of bytes. */
static void
bulk_copy_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    LLVMValueRef to = hed_lower_pointer(l, args[0]);
    LLVMValueRef from = hed_lower_pointer(l, args[1]);

    (void)arg;
    (void)results;
    LLVMBuildMemCpy(l->b, to, 16, from, 16, LLVMBuildZExt(l->b, args[2], l->i64, ""));
}

/* args are the destination and the number of bytes. */
static void
clear_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    LLVMValueRef to = hed_lower_pointer(l, args[0]);

    (void)arg;
    (void)results;
    if (l->options->confined) {
        LLVMValueRef most[] = {args[1], LLVMConstInt(l->i64, HED_PTX_SANDBOX_LENGTH, false)};

        args[1] = hed_lower_intrinsic(l, "llvm.umin", l->i64, most, 2);
    }
    LLVMBuildMemSet(l->b, to, LLVMConstInt(l->i8, 0, false), args[1], 8);
}

void
hed_op_bulk_clear(struct hed_lower *l)
{
    LLVMValueRef args[2];

    args[0] = address_operand(l, &l->inst->operands[0], hed_ptx_first_space(l->inst->form), 8);
    args[1] = hed_lower_get(l, &l->inst->operands[1], HED_PTX_TYPE_U64);
    if (!l->err)
        l->shape->each(l, clear_for_lane, NULL, args, 2, NULL, NULL, 0);
}

/* ---- mbarriers ------------------------------------------------------------------------------- */

/* What an arrival adds to a barrier: constants, or values with lanes. NULL is 0. */
struct arrival {
    LLVMValueRef count, tx, drop;
};

/* args are the barrier and the members of struct arrival. */
static void
arrive_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    LLVMValueRef all[] = {hed_lower_pointer(l, args[0]), args[1], args[2], args[3]};

    (void)arg;
    results[0] = hed_lower_runtime(l, "hed_ptx_mbarrier_arrive", l->i64, all, 4);
}

static LLVMValueRef
arrive_at_mbarrier(struct hed_lower *l, LLVMValueRef barrier, const struct arrival *a)
{
    LLVMValueRef zero = hed_lower_int(l, l->i32, 0);
    LLVMValueRef args[] = {barrier, a->count ? a->count : zero, a->tx ? a->tx : zero,
                           a->drop ? a->drop : zero};
    LLVMValueRef old = hed_lower_int(l, l->i64, 0);

    if (!l->err)
        l->shape->each(l, arrive_for_lane, NULL, args, 4, &l->i64, &old, 1);
    return old;
}

static LLVMValueRef
mbarrier_operand(struct hed_lower *l, const struct hed_ptx_operand *o)
{
    return address_operand(l, o, hed_ptx_first_space(l->inst->form), 8);
}

void
hed_op_mbarrier_arrive(struct hed_lower *l)
{
    const struct hed_ptx_arrival *m = &l->meaning->arrival;
    struct arrival a = {
        .count =
            m->count ? hed_lower_get(l, m->count, HED_PTX_TYPE_B32) : hed_lower_int(l, l->i32, 1),
        .tx = m->bytes ? hed_lower_get(l, m->bytes, HED_PTX_TYPE_B32) : NULL,
    };
    LLVMValueRef old;

    a.drop = m->drops ? a.count : NULL;
    old = arrive_at_mbarrier(l, mbarrier_operand(l, m->barrier), &a);
    if (m->state && !l->err)
        hed_lower_set(l, m->state, HED_PTX_TYPE_B64, old);
}

/* mbarrier.expect_tx and .complete_tx */
void
hed_op_mbarrier_tx(struct hed_lower *l)
{
    const bool is_done = l->inst->form->op == HED_PTX_OP_MBARRIER_COMPLETE_TX;
    LLVMValueRef bytes = hed_lower_get(l, &l->inst->operands[1], HED_PTX_TYPE_B32);
    const struct arrival a = {.tx = is_done ? LLVMBuildNeg(l->b, bytes, "") : bytes};

    arrive_at_mbarrier(l, mbarrier_operand(l, &l->inst->operands[0]), &a);
}

static void
init_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    LLVMValueRef all[] = {hed_lower_pointer(l, args[0]), args[1]};

    (void)arg;
    (void)results;
    hed_lower_runtime(l, "hed_ptx_mbarrier_init", l->nothing, all, 2);
}

void
hed_op_mbarrier_init(struct hed_lower *l)
{
    LLVMValueRef args[2];

    args[0] = mbarrier_operand(l, &l->inst->operands[0]);
    args[1] = hed_lower_get(l, &l->inst->operands[1], HED_PTX_TYPE_B32);
    if (!l->err)
        l->shape->each(l, init_for_lane, NULL, args, 2, NULL, NULL, 0);
}

static void
test_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    LLVMValueRef all[] = {hed_lower_pointer(l, args[0]), args[1]};

    (void)arg;
    results[0] = hed_lower_runtime(l, "hed_ptx_mbarrier_test", l->i32, all, 2);
}

void
hed_op_mbarrier_test(struct hed_lower *l)
{
    const struct hed_ptx_operand *o = l->inst->operands;
    LLVMValueRef args[2], done;

    args[0] = mbarrier_operand(l, &o[1]);
    if (l->inst->form->flags & HED_PTX_FLAG(PARITY)) {
        args[1] = hed_lower_resize(l, hed_lower_get(l, &o[2], HED_PTX_TYPE_B32), l->i64, false);
        args[1] = LLVMBuildShl(l->b, args[1], hed_lower_int(l, l->i64, 63), "");
    } else {
        args[1] = hed_lower_get(l, &o[2], HED_PTX_TYPE_B64);
    }
    if (l->err)
        return;
    l->shape->each(l, test_for_lane, NULL, args, 2, &l->i32, &done, 1);
    done = LLVMBuildICmp(l->b, LLVMIntNE, done, hed_lower_int(l, l->i32, 0), "");
    hed_lower_set(l, &o[0], HED_PTX_TYPE_PRED, done);
}

/* Copies are finished when they are started, so their arrival happens at once. Without .noinc it
 * would also raise the expected count by one, which cancels out. */
void
hed_op_copy_arrive(struct hed_lower *l)
{
    const struct arrival a = {.count = hed_lower_int(l, l->i32, 1)};

    if (l->inst->form->flags & HED_PTX_FLAG(NOINC))
        arrive_at_mbarrier(l, mbarrier_operand(l, &l->inst->operands[0]), &a);
}

void
hed_op_bulk_copy(struct hed_lower *l)
{
    const struct hed_ptx_inst *i = l->inst;
    const struct hed_ptx_operand *o = i->operands;
    const struct hed_ptx_operand *barrier = l->meaning->copy.barrier;
    LLVMValueRef args[3];

    args[0] = address_operand(l, &o[0], i->form->spaces[0], 16);
    args[1] = address_operand(l, &o[1], i->form->spaces[1], 16);
    args[2] = hed_lower_get(l, &o[2], HED_PTX_TYPE_U32);
    if (l->err)
        return;
    l->shape->each(l, bulk_copy_for_lane, NULL, args, 3, NULL, NULL, 0);
    if (barrier) {
        const struct arrival a = {.tx = LLVMBuildNeg(l->b, args[2], "")};

        arrive_at_mbarrier(l, address_operand(l, barrier, HED_PTX_SPACE_SHARED, 8), &a);
    }
}

void
hed_op_mbarrier_pending(struct hed_lower *l)
{
    LLVMValueRef state = hed_lower_get(l, &l->inst->operands[1], HED_PTX_TYPE_B64);

    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_B32,
                  hed_lower_helper(l, "hed_ptx_mbarrier_pending", l->i32, &state, 1));
}
