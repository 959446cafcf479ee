/* Dot products of four bytes by the processor's own instructions, where it has some.
 *
 *      sdot v0.4s, v1.16b, v2.16b     four lanes of dp4a at once
 *      vpmaddwd zmm0, zmm1, zmm2      two products of 16 lanes: of the even bytes, then of the odd
 */
#include <string.h>

#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/family/math.h"

#define PART_MAX 4 /* words in one of the machine's vectors */

/* sdot or udot of 2 or 4 words. */
static LLVMValueRef
dot_part(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c, bool is_signed)
{
    static const char *const names[] = {"llvm.aarch64.neon.udot", "llvm.aarch64.neon.sdot"};
    const char *name = names[is_signed];
    const unsigned words = LLVMGetVectorSize(LLVMTypeOf(c));
    LLVMTypeRef types[] = {LLVMTypeOf(c), LLVMVectorType(l->i8, 4 * words)};
    const unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef args[] = {c, LLVMBuildBitCast(l->b, a, types[1], ""),
                           LLVMBuildBitCast(l->b, b, types[1], "")};

    return LLVMBuildCall2(l->b, LLVMIntrinsicGetType(l->context, id, types, 2),
                          LLVMGetIntrinsicDeclaration(l->module, id, types, 2), args, 3, "");
}

/* What the other word is does not matter. */
static LLVMValueRef
word_in_vector(struct hed_lower *l, LLVMValueRef v)
{
    return LLVMBuildInsertElement(l->b, LLVMGetPoison(LLVMVectorType(l->i32, 2)), v,
                                  hed_lower_word(l, 0), "");
}

/* ---- x86-64 ---------------------------------------------------------------------------------- */

static LLVMValueRef
splat_half(struct hed_lower *l, LLVMValueRef like, unsigned v)
{
    LLVMValueRef all[2 * HED_PTX_LANES];
    const unsigned n = LLVMGetVectorSize(LLVMTypeOf(like));

    for (unsigned i = 0; i < n; i++)
        all[i] = LLVMConstInt(l->i16, v, false);
    return LLVMConstVector(all, n);
}

/* The even or the odd bytes of words, as halves. */
static LLVMValueRef
widen_bytes(struct hed_lower *l, LLVMValueRef v, bool odd, bool is_signed)
{
    LLVMValueRef eight;

    v = LLVMBuildBitCast(l->b, v, LLVMVectorType(l->i16, 2 * l->lanes), "");
    eight = splat_half(l, v, 8);
    if (!odd && !is_signed)
        return LLVMBuildAnd(l->b, v, splat_half(l, v, 255), "");
    if (!odd)
        v = LLVMBuildShl(l->b, v, eight, "");
    return is_signed ? LLVMBuildAShr(l->b, v, eight, "") : LLVMBuildLShr(l->b, v, eight, "");
}

/* Products of halves, two of which are added to a word. */
static LLVMValueRef
multiply_halves(struct hed_lower *l, unsigned id, unsigned words, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(l->module, id, NULL, 0), part[HED_PTX_LANES];
    LLVMTypeRef type = LLVMIntrinsicGetType(l->context, id, NULL, 0);
    unsigned n = l->lanes / words;

    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef args[] = {hed_lower_elements(l, a, 2 * words * i, 1, 2 * words),
                               hed_lower_elements(l, b, 2 * words * i, 1, 2 * words)};

        part[i] = LLVMBuildCall2(l->b, type, f, args, 2, "");
    }
    for (; n > 1; n /= 2)
        for (unsigned i = 0; i < n / 2; i++)
            part[i] = hed_lower_concatenate(l, part[2 * i], part[2 * i + 1]);
    return part[0];
}

/* Of one lane: its four bytes are a vector, too. */
static LLVMValueRef
dot_of_lane(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c, bool a_signed,
            bool b_signed)
{
    LLVMTypeRef bytes = LLVMVectorType(l->i8, 4), words = LLVMVectorType(l->i32, 4);
    LLVMValueRef product;

    a = LLVMBuildBitCast(l->b, a, bytes, "");
    b = LLVMBuildBitCast(l->b, b, bytes, "");
    a = a_signed ? LLVMBuildSExt(l->b, a, words, "") : LLVMBuildZExt(l->b, a, words, "");
    b = b_signed ? LLVMBuildSExt(l->b, b, words, "") : LLVMBuildZExt(l->b, b, words, "");
    product = LLVMBuildMul(l->b, a, b, "");
    return LLVMBuildAdd(l->b, c,
                        hed_lower_intrinsic(l, "llvm.vector.reduce.add", words, &product, 1), "");
}

/* NULL: the processor has no such instruction. */
static LLVMValueRef
dot_by_halves(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c, bool a_signed,
              bool b_signed)
{
    const bool is_wide = hed_lower_has(l, "avx512bw");
    const char *name = is_wide ? "llvm.x86.avx512.pmaddw.d.512" : "llvm.x86.avx2.pmadd.wd";
    const unsigned words = is_wide ? 16 : 8;
    unsigned id;

    if (l->lanes == 1)
        return dot_of_lane(l, a, b, c, a_signed, b_signed);
    if (l->lanes % words != 0 || !(is_wide || hed_lower_has(l, "avx2")))
        return NULL;
    id = LLVMLookupIntrinsicID(name, strlen(name));
    if (id == 0)
        return NULL;
    for (unsigned odd = 0; odd < 2; odd++)
        c = LLVMBuildAdd(l->b, c,
                         multiply_halves(l, id, words, widen_bytes(l, a, odd, a_signed),
                                         widen_bytes(l, b, odd, b_signed)),
                         "");
    return c;
}

/* ---- both ------------------------------------------------------------------------------------ */

LLVMValueRef
hed_dot_bytes(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c, bool a_signed,
              bool b_signed)
{
    const bool is_signed = a_signed;
    LLVMValueRef all;

    if (a_signed != b_signed || !hed_lower_has(l, "dotprod"))
        return dot_by_halves(l, a, b, c, a_signed, b_signed);
    if (l->lanes == 1)
        return LLVMBuildExtractElement(l->b,
                                       dot_part(l, word_in_vector(l, a), word_in_vector(l, b),
                                                word_in_vector(l, c), is_signed),
                                       hed_lower_word(l, 0), "");
    all = LLVMGetPoison(LLVMTypeOf(c));
    for (unsigned i = 0; i < l->lanes; i += PART_MAX) {
        LLVMValueRef part = dot_part(l, hed_lower_elements(l, a, i, 1, PART_MAX),
                                     hed_lower_elements(l, b, i, 1, PART_MAX),
                                     hed_lower_elements(l, c, i, 1, PART_MAX), is_signed);

        for (unsigned k = 0; k < PART_MAX; k++)
            all = LLVMBuildInsertElement(
                l->b, all, LLVMBuildExtractElement(l->b, part, hed_lower_word(l, k), ""),
                hed_lower_word(l, i + k), "");
    }
    return all;
}
