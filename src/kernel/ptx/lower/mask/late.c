/* The NaNs of f64, chosen late.
 *
 * Which NaN an f64 instruction gives depends on its operands (family/float.c), and to choose it
 * takes several times as long as the instruction. But a NaN stays a NaN in all that is computed
 * from it, so the choice can wait until bits are about to be seen, and then one test is enough:
 *
 *      mul.f64 %a, %x, %y          any NaN
 *      fma.f64 %b, %a, %a, %z      any NaN
 *      sub.f64 %c, %b, %x          any NaN
 *      (is any lane of %c NaN?  then: all of this once more, lane by lane, with the right NaNs)
 *      st.f64  [%rd], %c
 *
 * Invariants:
 * 1. A value is pending if an instruction in `insts` makes it. Nobody but these instructions, and
 *    those that treat all NaNs alike, has read it.
 * 2. `insts` belong to one block, have no guards and no effects, and are in their order. Where a
 *    lane's pending value has the wrong bits, a value that they test is NaN in that lane.
 */
#include "kernel/ptx/lower/mask/mask.h"

/* ---- which instructions ---------------------------------------------------------------------- */

/* Does it give a NaN whenever an operand is one, and may that be any NaN for a while? */
static bool
keeps_nan(const struct hed_ptx_inst *i)
{
    const struct hed_ptx_form *f = i->form;

    if (f->types[0] != HED_PTX_TYPE_F64 || f->ntypes != 1 || i->is_refused ||
        (f->flags & HED_PTX_FLAG(APPROX)) ||
        (f->round != HED_PTX_ROUND_NONE && f->round != HED_PTX_ROUND_RN))
        return false;
    switch (f->op) {
    case HED_PTX_OP_ADD:
    case HED_PTX_OP_SUB:
    case HED_PTX_OP_MUL:
    case HED_PTX_OP_MAD:
    case HED_PTX_OP_FMA:
    case HED_PTX_OP_DIV:
    case HED_PTX_OP_RCP:
    case HED_PTX_OP_SQRT:
    case HED_PTX_OP_ABS:
    case HED_PTX_OP_NEG:
        return true;
    default:
        return false;
    }
}

/* May it be done once more with other operands? */
static bool
is_repeatable(const struct hed_ptx_inst *i)
{
    if (i->is_refused || i->noperands < 2 || i->operands[0].kind != HED_PTX_OPERAND_REG)
        return false;
    switch (i->form->op) {
    case HED_PTX_OP_SELP:
        return true;
    case HED_PTX_OP_MIN:
    case HED_PTX_OP_MAX:
        return i->form->types[0] == HED_PTX_TYPE_F64;
    case HED_PTX_OP_MOV:
        return i->operands[1].kind == HED_PTX_OPERAND_REG && !i->operands[1].reg->vec;
    default:
        return false;
    }
}

static bool
is_blind(const struct hed_ptx_inst *i)
{
    return i->form->op == HED_PTX_OP_SETP && i->form->types[0] == HED_PTX_TYPE_F64;
}

struct mask_reads {
    const struct mask_late *late;
    bool any; /* a pending value is read */
};

static void
note_read(void *arg, const struct hed_ptx_reg **reg)
{
    struct mask_reads *r = arg;

    r->any |= r->late->pending[(*reg)->id];
}

static bool
reads_pending(const struct mask_late *late, struct hed_ptx_inst *i)
{
    struct mask_reads r = {.late = late};

    hed_flow_each_read(i, note_read, &r);
    return r.any;
}

/* ---- the test -------------------------------------------------------------------------------- */

static bool
reads_value(struct hed_ptx_inst *i, uint32_t id)
{
    for (unsigned k = 1; k < i->noperands; k++)
        if (i->operands[k].kind == HED_PTX_OPERAND_REG && i->operands[k].reg->id == id)
            return true;
    return false;
}

/* Is the result of instruction n NaN in no lane if no later result is? */
static bool
is_tested_by_another(const struct mask_late *late, uint32_t n)
{
    for (uint32_t k = n + 1; k < late->ninsts; k++)
        if (keeps_nan(late->insts[k]) &&
            reads_value(late->insts[k], late->insts[n]->operands[0].reg->id))
            return true;
    return false;
}

/* NaN where a or b is. */
static LLVMValueRef
nan_of_either(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef args[] = {a, b};

    return hed_lower_intrinsic(l, "llvm.maximum", LLVMTypeOf(a), args, 2);
}

/* i1: is a lane of a value NaN that insts make? */
static LLVMValueRef
any_result_is_nan(struct hed_lower *l, const struct mask_late *late)
{
    LLVMTypeRef t = LLVMVectorType(l->f64, HED_PTX_LANES);
    LLVMValueRef all = NULL;

    for (uint32_t n = 0; n < late->ninsts; n++) {
        LLVMValueRef v;

        if (!keeps_nan(late->insts[n]) || is_tested_by_another(late, n))
            continue;
        v = hed_mask_lanes(l, late->insts[n]->operands[0].reg);
        v = LLVMBuildBitCast(l->b, v, t, "");
        all = all ? nan_of_either(l, all, v) : v;
    }
    return hed_mask_any_nan(l, all);
}

/* ---- once more ------------------------------------------------------------------------------- */

struct mask_leaves {
    struct mask *m;
    const struct hed_ptx_reg *regs[MASK_LATE_MAX];
    unsigned n;
};

static void
note_leaf(void *arg, const struct hed_ptx_reg **reg)
{
    struct mask_leaves *leaves = arg;
    const struct mask_late *late = &leaves->m->late;

    if (late->pending[(*reg)->id])
        return;
    /* Only so many are kept. Without the second test, compilers know that there are not more. */
    for (unsigned i = 0; i < leaves->n && i < MASK_LATE_MAX; i++)
        if (leaves->regs[i] == *reg)
            return;
    if (leaves->n < MASK_LATE_MAX)
        leaves->regs[leaves->n] = *reg;
    leaves->n++;
}

/* Makes insts for one lane; args are the values that they read and do not make. */
static void
repeat_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    struct mask_leaves *leaves = arg;
    struct mask *m = leaves->m;
    struct mask_late *late = &m->late;
    const struct hed_ptx_inst *outer = l->inst;
    const unsigned lanes = l->lanes;

    l->lanes = 1;
    late->is_repeating = true;
    for (unsigned i = 0; i < leaves->n; i++)
        late->own[leaves->regs[i]->id] = args[i];
    for (uint32_t n = 0; n < late->ninsts && !l->err; n++) {
        hed_lower_inst(l, late->insts[n]);
        results[n] = late->own[late->insts[n]->operands[0].reg->id];
    }
    late->is_repeating = false;
    l->lanes = lanes;
    l->inst = outer;
}

static void
repeat_lane_by_lane(struct hed_lower *l, struct mask_leaves *leaves)
{
    struct mask_late *late = &leaves->m->late;
    LLVMValueRef args[MASK_LATE_MAX], results[MASK_LATE_MAX];
    LLVMTypeRef types[MASK_LATE_MAX];

    for (unsigned i = 0; i < leaves->n; i++)
        args[i] = hed_mask_lanes(l, leaves->regs[i]);
    for (uint32_t n = 0; n < late->ninsts; n++)
        types[n] = hed_lower_int_type(l, late->insts[n]->operands[0].reg->type);
    hed_lower_warp_each(l, repeat_for_lane, leaves, args, leaves->n, types, results, late->ninsts);
    for (uint32_t n = 0; n < late->ninsts && !l->err; n++)
        LLVMBuildStore(l->b, results[n], hed_mask_slot(l, late->insts[n]->operands[0].reg, 0));
}

void
hed_mask_settle_late(struct hed_lower *l)
{
    struct mask *m = hed_mask_state(l);
    struct mask_leaves leaves = {.m = m};
    LLVMBasicBlockRef again, after;

    if (m->late.ninsts == 0 || l->err)
        return;
    for (uint32_t n = 0; n < m->late.ninsts; n++)
        hed_flow_each_read(m->late.insts[n], note_leaf, &leaves);
    if (leaves.n > MASK_LATE_MAX) { /* has_room_for() was asked for each of them */
        hed_lower_refuse(l, "mask shape: heddle collects too many NaNs, which is a bug");
        return;
    }
    again = hed_lower_block(l, "");
    after = hed_lower_block(l, "");
    hed_lower_unlikely(l, any_result_is_nan(l, &m->late), again, after);
    LLVMPositionBuilderAtEnd(l->b, again);
    repeat_lane_by_lane(l, &leaves);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, after);
    for (uint32_t n = 0; n < m->late.ninsts; n++)
        m->late.pending[m->late.insts[n]->operands[0].reg->id] = false;
    m->late.ninsts = 0;
}

/* ---- collecting ------------------------------------------------------------------------------ */

static bool
has_room_for(struct mask *m, struct hed_ptx_inst *i)
{
    struct mask_leaves leaves = {.m = m};

    for (uint32_t n = 0; n < m->late.ninsts; n++)
        hed_flow_each_read(m->late.insts[n], note_leaf, &leaves);
    hed_flow_each_read(i, note_leaf, &leaves);
    return leaves.n <= MASK_LATE_MAX && m->late.ninsts < MASK_LATE_MAX;
}

void
hed_mask_note_late(struct hed_lower *l, struct hed_ptx_inst *i)
{
    struct mask *m = hed_mask_state(l);
    struct mask_late *late = &m->late;
    const bool reads = late->ninsts && reads_pending(late, i);
    const bool joins = !i->guard && hed_uniform_way(&m->uniforms, i) == HED_PER_LANE &&
                       i->operands[0].kind == HED_PTX_OPERAND_REG &&
                       (keeps_nan(i) || (reads && is_repeatable(i)));

    if (late->ninsts &&
        (i->guard || (joins && !has_room_for(m, i)) || (reads && !joins && !is_blind(i))))
        hed_mask_settle_late(l);
    if (joins && (keeps_nan(i) || late->ninsts)) {
        late->insts[late->ninsts++] = i;
        late->pending[i->operands[0].reg->id] = true;
    }
}
