/* The values of registers, as their class says: one number, one per row, or one per lane. */
#include <stddef.h>

#include "kernel/ptx/lower/mask/mask.h"

static const struct hed_uniform *
value_class(const struct hed_lower *l, const struct hed_ptx_reg *r)
{
    return &hed_mask_state(l)->uniforms.values[r->id];
}

unsigned
hed_mask_rows(const struct hed_lower *l, const struct hed_ptx_reg *r)
{
    return value_class(l, r)->kind == HED_ROWS ? HED_PTX_LANES / hed_mask_state(l)->uniforms.width
                                               : 1;
}

LLVMValueRef
hed_mask_slot(struct hed_lower *l, const struct hed_ptx_reg *r, unsigned row)
{
    struct mask_value *v = &hed_mask_state(l)->values[r->id];

    if (!v->slots[row]) {
        LLVMTypeRef t = hed_lower_int_type(l, r->type);

        v->slots[row] = hed_lower_alloca(
            l, value_class(l, r)->kind == HED_VARIES ? LLVMVectorType(t, HED_PTX_LANES) : t, 1, 0);
    }
    return v->slots[row];
}

/* A register that the text never writes. */
static bool
is_never_written(const struct hed_lower *l, const struct hed_ptx_reg *r)
{
    const struct hed_ssa_value *v = &hed_mask_state(l)->ssa.values[r->id];

    return !v->made_by && !v->phi;
}

LLVMValueRef
hed_mask_number(struct hed_lower *l, const struct hed_ptx_reg *r, unsigned row)
{
    const struct mask_value *v = &hed_mask_state(l)->values[r->id];
    LLVMTypeRef t = hed_lower_int_type(l, r->type);

    if (is_never_written(l, r))
        return LLVMConstNull(t);
    if (v->constant)
        return v->constant;
    return LLVMBuildLoad2(l->b, t,
                          hed_mask_slot(l, r, value_class(l, r)->kind == HED_ROWS ? row : 0), "");
}

/* ---- as 32 lanes ----------------------------------------------------------------------------- */

LLVMValueRef
hed_mask_offsets(struct hed_lower *l, LLVMTypeRef t, const struct hed_uniform *c)
{
    const unsigned width = hed_mask_state(l)->uniforms.width;
    LLVMValueRef each[HED_PTX_LANES];

    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        each[i] = LLVMConstInt(t,
                               (uint64_t)(c->kind == HED_OFFSETS ? c->offsets->lanes[i]
                                                                 : c->step * (int64_t)(i % width)),
                               false);
    return LLVMConstVector(each, HED_PTX_LANES);
}

static LLVMValueRef
splat_number(struct hed_lower *l, LLVMValueRef v)
{
    LLVMTypeRef t = LLVMVectorType(LLVMTypeOf(v), HED_PTX_LANES);
    LLVMValueRef one = LLVMBuildInsertElement(l->b, LLVMGetPoison(t), v, hed_lower_word(l, 0), "");

    return LLVMBuildShuffleVector(l->b, one, LLVMGetPoison(t),
                                  LLVMConstNull(LLVMVectorType(l->i32, HED_PTX_LANES)), "");
}

/* Each row's number in the lanes of the row. */
static LLVMValueRef
splat_rows(struct hed_lower *l, const struct hed_ptx_reg *r)
{
    const unsigned width = hed_mask_state(l)->uniforms.width, rows = HED_PTX_LANES / width;
    LLVMTypeRef t = LLVMVectorType(hed_lower_int_type(l, r->type), HED_PTX_LANES);
    LLVMValueRef all = LLVMGetPoison(t), picks[HED_PTX_LANES];

    if (rows == 1)
        return splat_number(l, hed_mask_number(l, r, 0));
    for (unsigned i = 0; i < rows; i++)
        all = LLVMBuildInsertElement(l->b, all, hed_mask_number(l, r, i), hed_lower_word(l, i), "");
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        picks[i] = hed_lower_word(l, i / width);
    return LLVMBuildShuffleVector(l->b, all, LLVMGetPoison(t),
                                  LLVMConstVector(picks, HED_PTX_LANES), "");
}

/* Adds what the lanes that wrapped around have more. */
static LLVMValueRef
add_wraps(struct hed_lower *l, const struct hed_uniform *c, LLVMValueRef v)
{
    LLVMValueRef slot = hed_mask_state(l)->values[c->wraps].wrapped;
    LLVMTypeRef t = LLVMTypeOf(v);
    LLVMValueRef more = LLVMConstInt(LLVMGetElementType(t), (uint64_t)c->wrap << 32, false);
    LLVMValueRef each[HED_PTX_LANES];

    if (!slot)
        return v;
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        each[i] = more;

    LLVMValueRef lanes = hed_lower_warp_unpack(l, LLVMBuildLoad2(l->b, l->i32, slot, ""));

    return LLVMBuildAdd(
        l->b, v,
        LLVMBuildSelect(l->b, lanes, LLVMConstVector(each, HED_PTX_LANES), LLVMConstNull(t), ""),
        "");
}

LLVMValueRef
hed_mask_lanes(struct hed_lower *l, const struct hed_ptx_reg *r)
{
    const struct hed_uniform *c = value_class(l, r);
    LLVMTypeRef t = hed_lower_int_type(l, r->type);
    LLVMValueRef v;

    if (is_never_written(l, r))
        return LLVMConstNull(LLVMVectorType(t, HED_PTX_LANES));
    if (hed_mask_state(l)->values[r->id].bits)
        return hed_lower_warp_unpack(
            l, LLVMBuildLoad2(l->b, l->i32, hed_mask_state(l)->values[r->id].bits, ""));
    if (c->kind == HED_VARIES)
        return LLVMBuildLoad2(l->b, LLVMVectorType(t, HED_PTX_LANES), hed_mask_slot(l, r, 0), "");
    if (c->kind == HED_UNIFORM)
        return hed_lower_splat(l, hed_mask_number(l, r, 0));
    v = splat_rows(l, r);
    if (c->step || c->kind == HED_OFFSETS)
        v = LLVMBuildAdd(l->b, v, hed_mask_offsets(l, t, c), "");
    return c->wraps == HED_FLOW_NONE ? v : add_wraps(l, c, v);
}

LLVMValueRef
hed_mask_bits(struct hed_lower *l, const struct hed_ptx_reg *r)
{
    const struct mask_value *v = &hed_mask_state(l)->values[r->id];

    if (v->bits)
        return LLVMBuildLoad2(l->b, l->i32, v->bits, "");
    if (value_class(l, r)->kind == HED_UNIFORM)
        return LLVMBuildSExt(l->b, hed_mask_number(l, r, 0), l->i32, "");
    return hed_lower_warp_pack(l, hed_mask_lanes(l, r));
}

/* ---- the shape's part ------------------------------------------------------------------------ */

bool
hed_mask_takes_any_nan(struct hed_lower *l, const struct hed_ptx_reg *r)
{
    const struct mask *m = hed_mask_state(l);

    return m->loose[r->id] || (m->late.pending[r->id] && !m->late.is_repeating);
}

#if defined(__aarch64__)
#define FOUR 4 /* words of a vector register */
#define PARTS (HED_PTX_LANES / FOUR)

/* Four words as they are, but LLVM does not know where they come from. */
static LLVMValueRef
hide_four(struct hed_lower *l, LLVMValueRef v)
{
    LLVMTypeRef four = LLVMVectorType(l->i32, FOUR), type = LLVMFunctionType(four, &four, 1, false);
    LLVMValueRef same =
        LLVMGetInlineAsm(type, "", 0, "=w,0", 4, false, false, LLVMInlineAsmDialectATT, false);

    return LLVMBuildCall2(l->b, type, same, &v, 1, "");
}

/* The GPU's NaN in four words. */
static LLVMValueRef
nan_four(struct hed_lower *l)
{
    LLVMValueRef nan = LLVMConstInt(l->i32, 0x7fffffff, false);

    return hide_four(l, LLVMConstVector((LLVMValueRef[]){nan, nan, nan, nan}, FOUR));
}
#endif

/* The GPU's NaN, in all lanes. On aarch64 LLVM makes five instructions of a choice between a value
 * and this constant, whose complement fits into an instruction, and two if it does not know it. */
static LLVMValueRef
nan_lanes(struct hed_lower *l)
{
    LLVMValueRef all[HED_PTX_LANES];

#if defined(__aarch64__)
    LLVMValueRef nan = nan_four(l);

    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        all[i] = hed_lower_word(l, i % FOUR);
    return LLVMBuildShuffleVector(l->b, nan, LLVMGetPoison(LLVMTypeOf(nan)),
                                  LLVMConstVector(all, HED_PTX_LANES), "");
#else
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        all[i] = LLVMConstInt(l->i32, 0x7fffffff, false);
    return LLVMConstVector(all, HED_PTX_LANES);
#endif
}

/* ---- the NaN of floats that are stored ------------------------------------------------------- */

/* On aarch64, "fminnm" of a quiet NaN and a number is the number, and of two quiet NaNs the first.
 * So one instruction makes the GPU's NaN of any other that is quiet, as those are that the
 * processor computes. LLVM may compute nothing where it knows an operand (x * 1 is x), so it must
 * not know them. */
#if defined(__aarch64__)
static const char minimum[] = "llvm.aarch64.neon.fminnm";

static bool
is_settled_by_minimum(const struct hed_lower *l, const struct hed_ptx_reg *r)
{
    return hed_mask_state(l)->stored[r->id] && value_class(l, r)->kind == HED_VARIES &&
           LLVMLookupIntrinsicID(minimum, sizeof(minimum) - 1) != 0;
}
#endif

LLVMValueRef
hed_mask_hide(struct hed_lower *l, const struct hed_ptx_reg *to, LLVMValueRef v)
{
#if defined(__aarch64__)
    LLVMValueRef parts[PARTS];

    if (l->lanes == 1 || !is_settled_by_minimum(l, to))
        return v;
    for (unsigned i = 0; i < PARTS; i++)
        parts[i] = hide_four(l, hed_lower_elements(l, v, i * FOUR, 1, FOUR));
    return hed_mask_join(l, parts, PARTS);
#else
    return v;
#endif
}

#if defined(__aarch64__)
static LLVMValueRef
settle_by_minimum(struct hed_lower *l, LLVMValueRef words)
{
    LLVMTypeRef floats = LLVMVectorType(l->f32, FOUR), four = LLVMVectorType(l->i32, FOUR);
    LLVMValueRef parts[PARTS], nan = LLVMBuildBitCast(l->b, nan_four(l), floats, "");

    for (unsigned i = 0; i < PARTS; i++) {
        LLVMValueRef v = hed_lower_elements(l, words, i * FOUR, 1, FOUR);
        LLVMValueRef args[] = {nan, LLVMBuildBitCast(l->b, v, floats, "")};

        parts[i] =
            LLVMBuildBitCast(l->b, hed_lower_intrinsic(l, minimum, floats, args, 2), four, "");
    }
    return hed_mask_join(l, parts, PARTS);
}
#endif

/* f, 32 floats, with the GPU's NaN for any other: words. */
static LLVMValueRef
choose_nans(struct hed_lower *l, LLVMValueRef f, LLVMValueRef words)
{
    return LLVMBuildSelect(l->b, LLVMBuildFCmp(l->b, LLVMRealUNO, f, f, ""), nan_lanes(l), words,
                           "");
}

/* On aarch64 the greater of two is NaN if one of them is; elsewhere a comparison of two tells. */
LLVMValueRef
hed_mask_any_nan(struct hed_lower *l, LLVMValueRef f)
{
#if defined(__aarch64__)
    /* LLVM 16 does not have it. */
    static const char across[] = "llvm.vector.reduce.fmaximum";
    const bool has_across = LLVMLookupIntrinsicID(across, sizeof(across) - 1) != 0;

    for (unsigned n = HED_PTX_LANES / 2; n >= (has_across ? 4 : 1); n /= 2) {
        LLVMValueRef halves[] = {hed_lower_elements(l, f, 0, 1, n),
                                 hed_lower_elements(l, f, n, 1, n)};

        f = hed_lower_intrinsic(l, "llvm.maximum", LLVMTypeOf(halves[0]), halves, 2);
    }
    f = has_across ? hed_lower_intrinsic(l, across, LLVMTypeOf(f), &f, 1)
                   : LLVMBuildExtractElement(l->b, f, hed_lower_word(l, 0), "");
    return LLVMBuildFCmp(l->b, LLVMRealUNO, f, f, "");
#else
    const unsigned n = HED_PTX_LANES / 2;
    LLVMValueRef any = LLVMBuildFCmp(l->b, LLVMRealUNO, hed_lower_elements(l, f, 0, 1, n),
                                     hed_lower_elements(l, f, n, 1, n), "");

    return LLVMBuildIsNotNull(l->b, LLVMBuildBitCast(l->b, any, l->i16, ""), "");
#endif
}

/* The same by a branch: one test of all lanes takes half as long as choosing for each. */
static LLVMValueRef
choose_nans_if_any(struct hed_lower *l, LLVMValueRef f, LLVMValueRef words)
{
    LLVMBasicBlockRef from, some = hed_lower_block(l, ""), after = hed_lower_block(l, "");
    LLVMValueRef chosen, v;

    hed_lower_unlikely(l, hed_mask_any_nan(l, f), some, after);
    from = LLVMGetInsertBlock(l->b);
    LLVMPositionBuilderAtEnd(l->b, some);
    chosen = choose_nans(l, f, words);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, after);
    v = LLVMBuildPhi(l->b, LLVMTypeOf(words), "");
    LLVMAddIncoming(v, (LLVMValueRef[]){words, chosen}, (LLVMBasicBlockRef[]){from, some}, 2);
    return v;
}

/* A store of one lane, or to places here and there, takes longer than to choose for each lane; and
 * LLVM sees then where lanes are the same, as behind a butterfly of shfl. */
static bool
stores_row(const struct hed_lower *l)
{
    return l->inst && l->inst->form->op == HED_PTX_OP_ST &&
           hed_uniform_moves_row(&hed_mask_state(l)->uniforms, l->inst);
}

LLVMValueRef
hed_mask_settle(struct hed_lower *l, const struct hed_ptx_reg *from, const struct hed_ptx_reg *to,
                LLVMValueRef v)
{
    const bool *loose = hed_mask_state(l)->loose;
    LLVMTypeRef t = LLVMTypeOf(v);
    const bool lanes = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
    LLVMValueRef f;

    if (!from || !loose[from->id] || (to && loose[to->id]))
        return v;
#if defined(__aarch64__)
    if (lanes && is_settled_by_minimum(l, from))
        return settle_by_minimum(l, v);
#endif
    if (lanes) {
        f = LLVMBuildBitCast(l->b, v, LLVMVectorType(l->f32, HED_PTX_LANES), "");
        return stores_row(l) ? choose_nans_if_any(l, f, v) : choose_nans(l, f, v);
    }
    f = LLVMBuildBitCast(l->b, v, l->f32, "");
    return LLVMBuildSelect(l->b, LLVMBuildFCmp(l->b, LLVMRealUNO, f, f, ""),
                           LLVMConstInt(l->i32, 0x7fffffff, false), v, "");
}

static LLVMValueRef
settle_read(struct hed_lower *l, const struct hed_ptx_reg *r, LLVMValueRef v)
{
    return l->reads_any_nan || (l->inst && hed_nan_blind(l->inst, &hed_mask_state(l)->ssa))
               ? v
               : hed_mask_settle(l, r, NULL, v);
}

LLVMValueRef
hed_mask_read(struct hed_lower *l, const struct hed_ptx_reg *r)
{
    if (hed_mask_state(l)->late.is_repeating)
        return settle_read(l, r, hed_mask_state(l)->late.own[r->id]);
    if (l->lanes != 1)
        return settle_read(l, r, hed_mask_lanes(l, r));
    if (hed_mask_state(l)->solo)
        return settle_read(l, r, hed_mask_solo_number(l, r));
    if (value_class(l, r)->kind == HED_VARIES && !is_never_written(l, r)) {
        hed_lower_refuse(l, "heddle takes %s for uniform, which is a bug", r->name);
        return LLVMConstNull(hed_lower_int_type(l, r->type));
    }
    return settle_read(l, r, hed_mask_number(l, r, hed_mask_state(l)->row));
}

void
hed_mask_write(struct hed_lower *l, const struct hed_ptx_reg *r, LLVMValueRef v)
{
    const struct warp *w = hed_lower_warp_state(l);
    struct mask *m = w->mask;
    const struct hed_uniform *c = value_class(l, r);
    LLVMValueRef slot;

    if (m->solo) {
        hed_mask_solo_write(l, r, v);
        return;
    }
    if (m->late.is_repeating) {
        m->late.own[r->id] = v;
        return;
    }
    if (l->lanes == 1 && c->kind == HED_UNIFORM && LLVMIsConstant(v) && !m->guard)
        m->values[r->id].constant = v;
    slot = hed_mask_slot(l, r, c->kind == HED_ROWS ? m->row : 0);
    if (l->lanes != 1 && c->kind == HED_UNIFORM) {
        /* What lanes found out together. A guard is uniform too, or the value would vary. Where it
         * holds for no lane, the value stays. */
        LLVMValueRef one = hed_lower_warp_first(l, v);

        if (w->holds)
            one = LLVMBuildSelect(l->b, LLVMBuildIsNotNull(l->b, hed_lower_warp_bits(l), ""), one,
                                  LLVMBuildLoad2(l->b, LLVMTypeOf(one), slot, ""), "");
        LLVMBuildStore(l->b, one, slot);
        return;
    }
    if (l->lanes != 1 && (w->holds || w->inside))
        v = LLVMBuildSelect(l->b, w->holds ? w->holds : w->inside, v,
                            LLVMBuildLoad2(l->b, LLVMTypeOf(v), slot, ""), "");
    LLVMBuildStore(l->b, v, slot);
}

void
hed_mask_copy(struct hed_lower *l, const struct hed_ptx_reg *to, const struct hed_ptx_reg *from)
{
    const unsigned lanes = l->lanes;

    if (value_class(l, to)->kind == HED_VARIES) {
        l->lanes = HED_PTX_LANES;
        LLVMBuildStore(
            l->b,
            from ? hed_mask_settle(l, from, to, hed_mask_lanes(l, from))
                 : LLVMConstNull(LLVMVectorType(hed_lower_int_type(l, to->type), HED_PTX_LANES)),
            hed_mask_slot(l, to, 0));
        l->lanes = lanes;
        return;
    }
    for (unsigned row = 0; row < hed_mask_rows(l, to); row++)
        LLVMBuildStore(l->b,
                       from ? hed_mask_settle(l, from, to, hed_mask_number(l, from, row))
                            : LLVMConstNull(hed_lower_int_type(l, to->type)),
                       hed_mask_slot(l, to, row));
}

/* ---- wrapping around ------------------------------------------------------------------------- */

/* The operand that was widened: the one with steps. */
static const struct hed_ptx_operand *
widened_operand(const struct hed_lower *l, const struct hed_ptx_inst *i)
{
    for (unsigned k = 1; k < i->noperands && k < 3; k++)
        if (i->operands[k].kind == HED_PTX_OPERAND_REG &&
            value_class(l, i->operands[k].reg)->kind == HED_ROWS &&
            value_class(l, i->operands[k].reg)->step != 0)
            return &i->operands[k];
    /* tid or laneid itself: it is small. */
    return NULL;
}

LLVMValueRef
hed_mask_row_wraps(struct hed_lower *l, LLVMValueRef first, int64_t span, bool is_signed)
{
    const char *name = is_signed
                           ? (span > 0 ? "llvm.sadd.with.overflow" : "llvm.ssub.with.overflow")
                           : (span > 0 ? "llvm.uadd.with.overflow" : "llvm.usub.with.overflow");
    LLVMValueRef args[] = {first, LLVMConstInt(l->i32, (uint64_t)(span > 0 ? span : -span), false)};

    return LLVMBuildExtractValue(l->b, hed_lower_intrinsic(l, name, l->i32, args, 2), 1, "");
}

/* The lanes whose number differs when it is widened by itself: i32. */
static LLVMValueRef
lanes_that_wrap(struct hed_lower *l, const struct hed_ptx_reg *r, bool is_signed)
{
    LLVMTypeRef wide = LLVMVectorType(l->i64, HED_PTX_LANES);
    LLVMValueRef own = hed_mask_lanes(l, r);
    LLVMValueRef first = splat_rows(l, r);
    LLVMValueRef exact =
        is_signed ? LLVMBuildSExt(l->b, own, wide, "") : LLVMBuildZExt(l->b, own, wide, "");
    LLVMValueRef base =
        is_signed ? LLVMBuildSExt(l->b, first, wide, "") : LLVMBuildZExt(l->b, first, wide, "");
    LLVMValueRef sum = LLVMBuildAdd(l->b, base, hed_mask_offsets(l, l->i64, value_class(l, r)), "");

    return hed_lower_warp_pack(l, LLVMBuildICmp(l->b, LLVMIntNE, exact, sum, ""));
}

void
hed_mask_note_wraps(struct hed_lower *l, const struct hed_ptx_inst *i)
{
    struct mask *m = hed_mask_state(l);
    const struct hed_ptx_operand *o;
    const struct hed_ptx_reg *made =
        i->noperands && i->operands[0].kind == HED_PTX_OPERAND_REG ? i->operands[0].reg : NULL;
    const unsigned from = i->form->types[i->form->op == HED_PTX_OP_CVT ? 1 : 0];
    const bool is_signed = hed_ptx_types[from].kind == HED_PTX_KIND_S;
    LLVMValueRef any = LLVMConstInt(l->i1, 0, false);
    LLVMBasicBlockRef slow, after;
    int64_t span;

    if (!made || value_class(l, made)->kind != HED_ROWS || value_class(l, made)->wraps != made->id)
        return;
    o = widened_operand(l, i);
    if (!o)
        return;
    span = value_class(l, o->reg)->step * (int64_t)(m->uniforms.width - 1);
    for (unsigned row = 0; row < hed_mask_rows(l, o->reg); row++)
        any = LLVMBuildOr(
            l->b, any, hed_mask_row_wraps(l, hed_mask_number(l, o->reg, row), span, is_signed), "");
    if (!m->values[made->id].wrapped)
        m->values[made->id].wrapped = hed_lower_alloca(l, l->i32, 1, 0);
    slow = hed_lower_block(l, "");
    after = hed_lower_block(l, "");
    LLVMBuildStore(l->b, hed_lower_word(l, 0), m->values[made->id].wrapped);
    LLVMBuildCondBr(l->b, any, slow, after);
    LLVMPositionBuilderAtEnd(l->b, slow);
    LLVMBuildStore(l->b, lanes_that_wrap(l, o->reg, is_signed), m->values[made->id].wrapped);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, after);
}

/* ---- positions ------------------------------------------------------------------------------- */

LLVMValueRef
hed_mask_tid(struct hed_lower *l, unsigned dimension)
{
    const struct mask *m = hed_mask_state(l);
    const size_t lane = (size_t)m->row * m->uniforms.width;
    LLVMValueRef v;

    if (l->lanes != 1)
        return hed_lower_warp_tid(l, dimension);
    if (m->solo) {
        v = hed_lower_at(l, l->function->warp,
                         offsetof(struct hed_ptx_warp, tid) +
                             (size_t)dimension * HED_PTX_LANES * sizeof(uint32_t));
        return LLVMBuildLoad2(l->b, l->i32,
                              hed_lower_warp_element(l, l->i32, v, hed_mask_solo_lane(l)), "");
    }
    if (m->uniforms.rows == HED_ROWS_ONE)
        return hed_lower_word(l, 0);
    v = hed_lower_field(l, l->i32, l->function->warp,
                        offsetof(struct hed_ptx_warp, tid) +
                            (dimension * HED_PTX_LANES + lane) * sizeof(uint32_t));
    /* LLVM proves with it that nothing wraps around. */
    if (dimension == 0)
        v = LLVMBuildAnd(l->b, v, hed_lower_word(l, ~(uint64_t)(m->uniforms.width - 1)), "");
    return v;
}

LLVMValueRef
hed_mask_lane(struct hed_lower *l)
{
    const struct mask *m = hed_mask_state(l);

    if (m->solo)
        return hed_mask_solo_lane(l);
    return l->lanes == 1 ? hed_lower_word(l, (uint64_t)m->row * m->uniforms.width)
                         : hed_lower_warp_lane(l);
}
