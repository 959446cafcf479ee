/* Dot products of four bytes by the processor's own instruction, where it has one.
 *
 *      sdot v0.4s, v1.16b, v2.16b     four lanes of dp4a at once
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

LLVMValueRef
hed_dot_bytes(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c, bool is_signed)
{
    LLVMValueRef all;

    if (!l->options->features || !strstr(l->options->features, "+dotprod"))
        return NULL;
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
