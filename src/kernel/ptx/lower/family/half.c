/* f16, bf16, and pairs of them; min and max of all floats.
 *
 * A processor that computes with f16 does so, on pairs as on twice as many lanes; its results are
 * those of a GPU but for NaNs. Otherwise sums and products are computed in f32 and rounded once
 * more. f32 has more than twice the bits, so the result is what a single rounding would give. fma
 * takes the exact product and first rounds the sum to odd.
 */
#include "base/number.h"
#include "kernel/ptx/lower/family/math.h"

/* ---- min and max ----------------------------------------------------------------------------- */

/* A float as an integer that compares as the float does; -0 is less than +0. */
static LLVMValueRef
ordered_bits(struct hed_lower *l, LLVMValueRef bits, const struct hed_real *f)
{
    LLVMValueRef sign = LLVMBuildAShr(l->b, bits, hed_like(l, bits, f->bits - 1u), "");
    LLVMValueRef low = LLVMBuildLShr(l->b, sign, hed_like(l, bits, 1), "");

    return LLVMBuildXor(l->b, bits, low, "");
}

#if defined(__aarch64__)

/* fminnm or fmaxnm, by vectors of 128 bits: numbers win over quiet NaNs, and -0 is less than +0. */
static LLVMValueRef
machine_least(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b)
{
    const char *name = l->inst->form->op == HED_PTX_OP_MAX ? "llvm.aarch64.neon.fmaxnm"
                                                           : "llvm.aarch64.neon.fminnm";
    const unsigned part = hed_lane_type(a) == l->f64 ? 2 : 4;
    LLVMValueRef all = LLVMGetPoison(LLVMTypeOf(a));

    for (unsigned i = 0; i < l->lanes; i += part) {
        LLVMValueRef at[4], picks, r;

        for (unsigned k = 0; k < part; k++)
            at[k] = hed_lower_word(l, i + k);
        picks = LLVMConstVector(at, part);
        r = hed_two(l, name, LLVMBuildShuffleVector(l->b, a, a, picks, ""),
                    LLVMBuildShuffleVector(l->b, b, b, picks, ""));
        for (unsigned k = 0; k < part; k++)
            all = LLVMBuildInsertElement(
                l->b, all, LLVMBuildExtractElement(l->b, r, hed_lower_word(l, k), ""), at[k], "");
    }
    return all;
}

/* By the processor's instruction, if it has one. Where that gives a NaN, an operand is a signaling
 * one and the other may be a number. */
static LLVMValueRef
quick_least(struct hed_lower *l, const struct hed_real *f, LLVMValueRef a, LLVMValueRef b)
{
    LLVMTypeRef t = f == &hed_real_f64 ? l->f64 : l->f32;
    LLVMValueRef r, other, nan;

    if ((f != &hed_real_f32 && f != &hed_real_f64) || l->lanes == 1 || HED_SAID(l, XORSIGN) ||
        HED_SAID(l, ABS) || HED_SAID(l, NAN))
        return NULL;
    r = hed_cast(l, machine_least(l, hed_cast(l, a, t), hed_cast(l, b, t)), hed_lane_type(a));
    other = hed_lower_select(l, hed_real_is_nan(l, a, f), b, a);
    nan = f == &hed_real_f64 ? LLVMBuildOr(l->b, other, hed_like(l, other, UINT64_C(1) << 51), "")
                             : hed_like(l, other, f->nan);
    other = hed_lower_select(l, hed_real_is_nan(l, other, f), nan, other);
    return hed_lower_select(l, hed_real_is_nan(l, r, f), other, r);
}

#else

static LLVMValueRef
quick_least(struct hed_lower *l, const struct hed_real *f, LLVMValueRef a, LLVMValueRef b)
{
    (void)l;
    (void)f;
    (void)a;
    (void)b;
    return NULL;
}

#endif

static LLVMValueRef
least_real(struct hed_lower *l, const struct hed_real *f, LLVMValueRef a, LLVMValueRef b)
{
    const bool max = l->inst->form->op == HED_PTX_OP_MAX;
    const uint64_t sign = UINT64_C(1) << (f->bits - 1);
    LLVMValueRef nan = hed_like(l, a, f->nan);
    LLVMValueRef a_nan, b_nan, less, r, flip = NULL;

    if (HED_SAID(l, FTZ)) {
        a = hed_real_flush(l, a, f);
        b = hed_real_flush(l, b, f);
    }
    r = quick_least(l, f, a, b);
    if (r)
        return r;
    if (f == &hed_real_f64)
        nan = LLVMBuildOr(l->b, b, hed_like(l, b, UINT64_C(1) << 51), "");
    a_nan = hed_real_is_nan(l, a, f);
    b_nan = hed_real_is_nan(l, b, f);
    if (HED_SAID(l, XORSIGN)) {
        flip = LLVMBuildXor(l->b, a, b, "");
        flip = LLVMBuildAnd(l->b, flip, hed_like(l, a, sign), "");
    }
    if (HED_SAID(l, ABS)) {
        a = LLVMBuildAnd(l->b, a, hed_like(l, a, ~sign), "");
        b = LLVMBuildAnd(l->b, b, hed_like(l, a, ~sign), "");
    }
    less = hed_icmp(l, max ? LLVMIntSGT : LLVMIntSLT, ordered_bits(l, a, f), ordered_bits(l, b, f));
    r = hed_lower_select(l, less, a, b);
    r = hed_lower_select(l, a_nan, b, hed_lower_select(l, b_nan, a, r));
    if (flip)
        r = LLVMBuildOr(l->b, r, flip, "");
    a_nan = HED_SAID(l, NAN) ? LLVMBuildOr(l->b, a_nan, b_nan, "")
                             : LLVMBuildAnd(l->b, a_nan, b_nan, "");
    return hed_lower_select(l, a_nan, nan, r);
}

static LLVMValueRef
least_of_reals(struct hed_lower *l, const struct hed_real *f, const LLVMValueRef *in, unsigned n)
{
    LLVMValueRef r = least_real(l, f, in[0], in[1]);

    if (n > 2)
        r = least_real(l, f, r, in[2]);
    return HED_SAID(l, RELU) ? hed_real_relu(l, r, f) : r;
}

void
hed_lower_least(struct hed_lower *l, const struct hed_real *f)
{
    const enum hed_ptx_type t = l->inst->form->types[0];
    const unsigned n = l->inst->noperands - 1u;
    LLVMValueRef in[3] = {NULL, NULL, NULL};

    for (unsigned i = 0; i < n && i < 3; i++)
        in[i] = hed_operand(l, i + 1, t);
    hed_lower_set(l, &l->inst->operands[0], t, least_of_reals(l, f, in, n));
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* The f32 that rounds to the right f16; f32 holds every product of two f16 exactly. */
static LLVMValueRef
fma_f16(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    LLVMValueRef err;
    LLVMValueRef sum = hed_real_two_sum(l, LLVMBuildFMul(l->b, a, b, ""), c, &err);

    return hed_real_odd(l, sum, err);
}

/* bf16 has the range of f32, so its products need f64. */
static LLVMValueRef
fma_bf16(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    LLVMTypeRef t = hed_lower_lanes(l, l->f64);
    LLVMValueRef err, sum;

    a = LLVMBuildFPExt(l->b, a, t, "");
    b = LLVMBuildFPExt(l->b, b, t, "");
    c = LLVMBuildFPExt(l->b, c, t, "");
    sum = hed_real_two_sum(l, LLVMBuildFMul(l->b, a, b, ""), c, &err);
    return hed_real_odd_f32(l, hed_real_odd(l, sum, err));
}

static LLVMValueRef
fma_half(struct hed_lower *l, const struct hed_real *f, const LLVMValueRef *v)
{
    LLVMValueRef args[] = {v[0], v[1], v[2]};

    if (hed_lane_type(v[0]) == l->f16)
        return hed_lower_intrinsic(l, "llvm.fma", LLVMTypeOf(v[0]), args, 3);
    return f == &hed_real_f16 ? fma_f16(l, v[0], v[1], v[2]) : fma_bf16(l, v[0], v[1], v[2]);
}

/* v are f16 or f32, and so is the result. */
static LLVMValueRef
compute_in_float(struct hed_lower *l, const struct hed_real *f, const LLVMValueRef *v)
{
    switch (l->inst->form->op) {
    case HED_PTX_OP_ADD:
        return LLVMBuildFAdd(l->b, v[0], v[1], "");
    case HED_PTX_OP_SUB:
        return LLVMBuildFSub(l->b, v[0], v[1], "");
    case HED_PTX_OP_MUL:
        return LLVMBuildFMul(l->b, v[0], v[1], "");
    case HED_PTX_OP_EX2:
    case HED_PTX_OP_TANH:
        return hed_lower_approx(l, l->inst->form->op, v[0]);
    default:
        return fma_half(l, f, v);
    }
}

/* Does the processor do this in f16 itself? */
static bool
is_native_half(const struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;

    if (hed_real_of(f->types[0]) != &hed_real_f16 || HED_SAID(l, FTZ) ||
        !hed_lower_has(l, "fullfp16"))
        return false;
    switch (f->op) {
    case HED_PTX_OP_ADD:
    case HED_PTX_OP_SUB:
    case HED_PTX_OP_MUL:
    case HED_PTX_OP_MAD:
    case HED_PTX_OP_FMA:
        return true;
    default:
        return false;
    }
}

/* Rounds, and flushes what is subnormal after that; only the exact result in f32 can tell. */
static LLVMValueRef
narrow_flush(struct hed_lower *l, LLVMValueRef wide, const struct hed_real *f)
{
    const struct hed_rounding how = {.mode = HED_PTX_ROUND_RN, .ftz = true};

    return hed_trunc(l, hed_real_narrow(l, hed_cast(l, wide, l->i32), &hed_real_f32, f, how),
                     l->i16);
}

/* fma.oob: a factor with the bits 0xffff, a NaN, stands for an element out of bounds and makes the
 * result 0. */
static LLVMValueRef
is_out_of_bounds(struct hed_lower *l, const LLVMValueRef *in)
{
    LLVMValueRef mark = hed_like(l, in[0], 0xffff);

    return LLVMBuildOr(l->b, hed_icmp(l, LLVMIntEQ, in[0], mark),
                       hed_icmp(l, LLVMIntEQ, in[1], mark), "");
}

/* The GPU's NaN for any other. */
static LLVMValueRef
native_bits(struct hed_lower *l, LLVMValueRef v)
{
    LLVMValueRef bits = hed_cast(l, v, l->i16);

    return hed_lower_select(l, LLVMBuildFCmp(l->b, LLVMRealUNO, v, v, ""),
                            hed_like(l, bits, hed_real_f16.nan), bits);
}

static LLVMValueRef
sign_of_half(struct hed_lower *l, const struct hed_real *f, LLVMValueRef in)
{
    const bool is_abs = l->inst->form->op == HED_PTX_OP_ABS;
    LLVMValueRef r = is_abs ? LLVMBuildAnd(l->b, in, hed_like(l, in, 0x7fff), "")
                            : LLVMBuildXor(l->b, in, hed_like(l, in, 0x8000), "");

    return hed_lower_select(l, hed_real_is_nan(l, in, f), hed_like(l, r, f->nan), r);
}

/* Computes halves; operands and result are integers of 16 bits. */
static LLVMValueRef
compute_halves(struct hed_lower *l, LLVMValueRef *in, unsigned n)
{
    const struct hed_real *f = hed_real_of(l->inst->form->types[0]);
    const enum hed_ptx_op op = l->inst->form->op;
    const bool ftz = HED_SAID(l, FTZ), native = is_native_half(l);
    LLVMValueRef v[3] = {NULL, NULL, NULL};
    LLVMValueRef wide, r, out;

    if (op == HED_PTX_OP_MIN || op == HED_PTX_OP_MAX)
        return least_of_reals(l, f, in, n);
    out = HED_SAID(l, OOB) ? is_out_of_bounds(l, in) : NULL;
    for (unsigned i = 0; i < n; i++) {
        if (ftz)
            in[i] = hed_real_flush(l, in[i], f);
        v[i] = native ? hed_cast(l, in[i], l->f16) : hed_real_widen16(l, in[i], f);
    }
    if (op == HED_PTX_OP_ABS || op == HED_PTX_OP_NEG)
        return sign_of_half(l, f, in[0]);
    wide = compute_in_float(l, f, v);
    r = native ? native_bits(l, wide)
        : ftz  ? narrow_flush(l, wide, f)
               : hed_real_narrow16(l, wide, f);
    if (HED_SAID(l, SAT))
        r = hed_real_saturate(l, r, f);
    if (HED_SAID(l, RELU))
        r = hed_real_relu(l, r, f);
    return out ? hed_lower_select(l, out, hed_like(l, r, 0), r) : r;
}

/* Is the instruction's code too long to repeat it? */
static bool
is_long_half(const struct hed_lower *l)
{
    switch (l->inst->form->op) {
    case HED_PTX_OP_EX2:
    case HED_PTX_OP_TANH:
        return true;
    case HED_PTX_OP_MAD:
    case HED_PTX_OP_FMA:
        return !is_native_half(l);
    default:
        return HED_SAID(l, FTZ);
    }
}

void
hed_lower_half(struct hed_lower *l)
{
    const struct hed_ptx_inst *i = l->inst;
    const enum hed_ptx_type t = i->form->types[0];
    const unsigned n = hed_min(i->noperands - 1u, 3u), lanes = l->lanes;
    LLVMTypeRef whole = hed_lower_lanes(l, hed_lower_int_type(l, t));
    LLVMValueRef in[3] = {NULL, NULL, NULL};
    LLVMValueRef r;

    for (unsigned k = 0; k < n; k++)
        in[k] = hed_operand(l, k + 1, t);
    /* Pairs are twice as many lanes. */
    l->lanes = lanes * hed_ptx_types[t].bits / 16;
    for (unsigned k = 0; k < n; k++)
        in[k] = hed_cast(l, in[k], l->i16);
    r = is_long_half(l) ? hed_lower_apart(l, in, n, l->i16, compute_halves)
                        : compute_halves(l, in, n);
    l->lanes = lanes;
    hed_lower_set(l, &i->operands[0], t, LLVMBuildBitCast(l->b, r, whole, ""));
}
