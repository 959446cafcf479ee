/* Matrix instructions: the words of all lanes' fragments go to a function of run/matrix.c, and the
 * words of the result come back. The products that programs use most have code of their own
 * (product.c) for the case that all lanes run, as they should.
 */
#include <string.h>

#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/family/product.h"
#include "kernel/ptx/lower/lower.h"
#include "kernel/ptx/run/group.h"

/* Words that go to the function. */
struct words {
    LLVMValueRef all[HED_PTX_MATRIX_WORDS];
    unsigned count;
};

/* Adds the two halves of a value of 64 bits. */
static void
add_pair(struct hed_lower *l, struct words *w, LLVMValueRef v)
{
    w->all[w->count++] = hed_lower_resize(l, v, l->i32, false);
    v = LLVMBuildLShr(l->b, v, hed_lower_int(l, l->i64, 32), "");
    w->all[w->count++] = hed_lower_resize(l, v, l->i32, false);
}

static void
add_address(struct hed_lower *l, struct words *w, const struct hed_ptx_operand *o)
{
    const struct hed_lower_place at = hed_lower_place(l, o, hed_ptx_first_space(l->inst->form), 1);

    if (!l->err)
        add_pair(l, w, hed_lower_in_sandbox(l, l->shape->address(l, &at)));
}

static void
add_fragment(struct hed_lower *l, struct words *w, const struct hed_ptx_fragment *f)
{
    for (unsigned i = 0; i < f->count; i++) {
        const struct hed_ptx_operand o = hed_ptx_nth_element(&f->operand, i);

        if (f->is_wide)
            add_pair(l, w, hed_lower_get(l, &o, HED_PTX_TYPE_B64));
        else
            w->all[w->count++] = hed_lower_get(l, &o, HED_PTX_TYPE_B32);
    }
}

static void
set_fragment(struct hed_lower *l, const struct hed_ptx_fragment *f, LLVMValueRef *words)
{
    for (unsigned i = 0; i < f->count; i++) {
        const struct hed_ptx_operand o = hed_ptx_nth_element(&f->operand, i);

        if (f->is_wide) {
            LLVMValueRef low = hed_lower_resize(l, words[2 * i], l->i64, false);
            LLVMValueRef high = hed_lower_resize(l, words[2 * i + 1], l->i64, false);

            high = LLVMBuildShl(l->b, high, hed_lower_int(l, l->i64, 32), "");
            hed_lower_set(l, &o, HED_PTX_TYPE_B64, LLVMBuildOr(l->b, low, high, ""));
        } else {
            hed_lower_set(l, &o, HED_PTX_TYPE_B32, words[i]);
        }
    }
}

/* ---- products -------------------------------------------------------------------------------- */

static bool
is_known_product(struct hed_lower *l, struct hed_ptx_mma *m)
{
    const struct hed_ptx_fragments *f = &l->meaning->matrix;

    if (!l->shape->all_run || f->fn != hed_ptx_mma)
        return false;
    memcpy(m, &f->arg, sizeof(*m));
    return hed_product_is_known(l, m);
}

/* May all results be any NaN? */
static bool
all_take_any_nan(struct hed_lower *l, const struct hed_ptx_fragment *f)
{
    for (unsigned i = 0; i < f->count; i++) {
        const struct hed_ptx_operand o = hed_ptx_nth_element(&f->operand, i);

        if (o.kind == HED_PTX_OPERAND_REG &&
            !(l->shape->takes_any_nan && l->shape->takes_any_nan(l, o.reg)))
            return false;
    }
    return true;
}

/* All lanes run, or a function does it. */
static void
make_product(struct hed_lower *l, const struct hed_ptx_mma *m, struct words *in, LLVMValueRef *out)
{
    const struct hed_ptx_fragments *f = &l->meaning->matrix;
    LLVMTypeRef t = LLVMVectorType(l->i32, HED_PTX_LANES);
    LLVMBasicBlockRef all = hed_lower_block(l, ""), some = hed_lower_block(l, ""),
                      after = hed_lower_block(l, "");
    LLVMBasicBlockRef from[2];
    LLVMValueRef ways[2][HED_PTX_MATRIX_WORDS];

    LLVMBuildCondBr(l->b, l->shape->all_run(l), all, some);
    LLVMPositionBuilderAtEnd(l->b, all);
    hed_product_make(l, m, in->all, ways[0], all_take_any_nan(l, &f->out));
    from[0] = LLVMGetInsertBlock(l->b);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, some);
    l->shape->together(l, f->name, hed_lower_int(l, l->i32, UINT32_MAX), f->arg, in->all, in->count,
                       ways[1], f->words_out);
    from[1] = LLVMGetInsertBlock(l->b);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, after);
    for (unsigned i = 0; i < f->words_out; i++) {
        out[i] = LLVMBuildPhi(l->b, t, "");
        LLVMAddIncoming(out[i], ((LLVMValueRef[]){ways[0][i], ways[1][i]}), from, 2);
    }
}

/* All 32 threads take part in a matrix instruction. */
void
hed_op_matrix(struct hed_lower *l)
{
    const struct hed_ptx_fragments *m = &l->meaning->matrix;
    struct words in = {.count = 0};
    LLVMValueRef out[HED_PTX_MATRIX_WORDS];
    struct hed_ptx_mma product;
    const bool is_product = is_known_product(l, &product);

    if (m->address)
        add_address(l, &in, m->address);
    for (unsigned i = 0; i < m->nin; i++) {
        /* A NaN in a sum gives a NaN, whatever it is; in factors its bits may matter. */
        l->reads_any_nan = is_product && i == 2;
        add_fragment(l, &in, &m->in[i]);
    }
    l->reads_any_nan = false;
    if (l->err)
        return;
    if (is_product)
        make_product(l, &product, &in, out);
    else
        l->shape->together(l, m->name, hed_lower_int(l, l->i32, UINT32_MAX), m->arg, in.all,
                           in.count, out, m->words_out);
    set_fragment(l, &m->out, out);
}
