/* mma.m16n8 of tf32, f16 and bf16 with sums of f32. In vectors of 32 lanes, a sum is
 *
 *      d[lane] = c[lane] + a[row of lane][0] * b[0][column of lane] + a[..][1] * b[1][..] + ...
 *
 * so each k needs the a of the lane's row, which one of its three neighbours has, and the b of its
 * column, which lanes all over the warp have: a shuffle each. Where several products share a or b,
 * LLVM makes the shuffle once. Products are added by fma in the order of k, as in run/matrix.c,
 * which also says how fragments lie.
 */
#include "kernel/ptx/lower/family/product.h"

#include "kernel/ptx/run/group.h"

#define NAN_F32 0x7fffffffu
#define TF32_BITS 0xffffe000u /* of a float, that a product of tf32 reads */

/* A product of this kind: how many factors a register holds. */
static unsigned
factors_in_word(const struct hed_ptx_mma *m)
{
    return m->a == HED_PTX_TYPE_TF32 ? 1 : 2;
}

/* Does the processor convert halves? */
static bool
has_halves(const struct hed_lower *l)
{
#if defined(__aarch64__)
    (void)l;
    return true;
#else
    return hed_lower_has(l, "f16c");
#endif
}

bool
hed_product_is_known(const struct hed_lower *l, const struct hed_ptx_mma *m)
{
    if (m->m != 16 || m->n != 8 || m->a != m->b || m->c != HED_PTX_TYPE_F32 ||
        m->d != HED_PTX_TYPE_F32 || !hed_lower_has_fma(l))
        return false;
    if (m->a == HED_PTX_TYPE_TF32)
        return m->k == 4 || m->k == 8;
    return (m->a == HED_PTX_TYPE_BF16 || (m->a == HED_PTX_TYPE_F16 && has_halves(l))) &&
           (m->k == 8 || m->k == 16);
}

static LLVMTypeRef
floats(struct hed_lower *l)
{
    return LLVMVectorType(l->f32, HED_PTX_LANES);
}

/* Factor j of a register of all lanes. */
static LLVMValueRef
factor_of_word(struct hed_lower *l, const struct hed_ptx_mma *m, LLVMValueRef word, unsigned j)
{
    LLVMTypeRef halves = LLVMVectorType(l->f16, HED_PTX_LANES);

    switch (m->a) {
    case HED_PTX_TYPE_TF32:
        word = LLVMBuildAnd(l->b, word, hed_lower_int(l, l->i32, TF32_BITS), "");
        break;
    case HED_PTX_TYPE_BF16:
        word = j ? LLVMBuildAnd(l->b, word, hed_lower_int(l, l->i32, 0xffff0000u), "")
                 : LLVMBuildShl(l->b, word, hed_lower_int(l, l->i32, 16), "");
        break;
    default:
        if (j)
            word = LLVMBuildLShr(l->b, word, hed_lower_int(l, l->i32, 16), "");
        word = hed_lower_resize(l, word, l->i16, false);
        return LLVMBuildFPExt(l->b, LLVMBuildBitCast(l->b, word, halves, ""), floats(l), "");
    }
    return LLVMBuildBitCast(l->b, word, floats(l), "");
}

/* Lane 4 g + p gets what lane first + group * g + place * p has. */
static LLVMValueRef
spread(struct hed_lower *l, LLVMValueRef v, unsigned first, unsigned group, unsigned place)
{
    LLVMValueRef picks[HED_PTX_LANES];

    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        picks[i] = hed_lower_word(l, first + group * (i / 4) + place * (i % 4));
    return LLVMBuildShuffleVector(l->b, v, LLVMGetPoison(LLVMTypeOf(v)),
                                  LLVMConstVector(picks, HED_PTX_LANES), "");
}

static LLVMValueRef
usual_nan(struct hed_lower *l, LLVMValueRef sum)
{
    LLVMTypeRef words = LLVMVectorType(l->i32, HED_PTX_LANES);

    return LLVMBuildSelect(l->b, LLVMBuildFCmp(l->b, LLVMRealUNO, sum, sum, ""),
                           hed_lower_int(l, l->i32, NAN_F32),
                           LLVMBuildBitCast(l->b, sum, words, ""), "");
}

void
hed_product_make(struct hed_lower *l, const struct hed_ptx_mma *m, LLVMValueRef *in,
                 LLVMValueRef *out, bool any_nan)
{
    const unsigned each = factors_in_word(m), a_words = m->k / (2 * each), b_words = a_words / 2;
    LLVMTypeRef words = LLVMVectorType(l->i32, HED_PTX_LANES);
    LLVMValueRef sums[4];

    for (unsigned i = 0; i < 4; i++)
        sums[i] = LLVMBuildBitCast(l->b, in[a_words + b_words + i], floats(l), "");
    for (unsigned k = 0; k < m->k; k++) {
        const unsigned part = k / (4 * each), place = k % (4 * each) / each, j = k % each;
        LLVMValueRef b = factor_of_word(l, m, in[a_words + part], j);

        for (unsigned half = 0; half < 2; half++) {
            LLVMValueRef a = factor_of_word(l, m, in[2 * part + half], j);

            for (unsigned odd = 0; odd < 2; odd++) {
                LLVMValueRef *sum = &sums[2 * half + odd];
                LLVMValueRef args[] = {spread(l, a, place, 4, 0),
                                       spread(l, b, place + 4 * odd, 0, 8), *sum};

                *sum = hed_lower_intrinsic(l, "llvm.fma", floats(l), args, 3);
            }
        }
    }
    for (unsigned i = 0; i < 4; i++)
        out[i] = any_nan ? LLVMBuildBitCast(l->b, sums[i], words, "") : usual_nan(l, sums[i]);
}
