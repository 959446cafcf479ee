/* Matrix instructions: the words of all lanes' fragments go to a function of run/matrix.c, and the
 * words of the result come back. What programs use most has code of its own for the case that all
 * lanes run, as they should: some products (product.c), ldmatrix and movmatrix.
 */
#include <string.h>

#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/family/product.h"
#include "kernel/ptx/lower/lower.h"
#include "kernel/ptx/run/group.h"

/* Words that go to the function. */
struct words {
    LLVMValueRef address; /* i64: of what is in memory; or NULL. The first two words have it, too */
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

    if (l->err)
        return;
    w->address = hed_lower_in_sandbox(l, l->shape->address(l, &at));
    add_pair(l, w, w->address);
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

/* ---- 8 by 8 matrices of 16 bits -------------------------------------------------------------- */

#define ROWS 8u
#define ROW_WORDS 4u

/* A matrix as words in the order of memory, which is that of the lanes: element (r, c) becomes
 * element (c, r). */
static LLVMValueRef
transpose(struct hed_lower *l, LLVMValueRef words)
{
    LLVMTypeRef halves = LLVMVectorType(l->i16, ROWS * ROWS);
    LLVMValueRef from[ROWS * ROWS];

    for (unsigned i = 0; i < ROWS * ROWS; i++)
        from[i] = hed_lower_word(l, i % ROWS * ROWS + i / ROWS);
    words = LLVMBuildBitCast(l->b, words, halves, "");
    words = LLVMBuildShuffleVector(l->b, words, LLVMGetPoison(halves),
                                   LLVMConstVector(from, ROWS * ROWS), "");
    return LLVMBuildBitCast(l->b, words, LLVMVectorType(l->i32, HED_PTX_LANES), "");
}

/* Loads matrix n, whose rows are where lanes 8n to 8n + 7 say. Row r is the words of lanes 4r to
 * 4r + 3. */
static LLVMValueRef
load_matrix(struct hed_lower *l, LLVMValueRef address, unsigned n)
{
    LLVMTypeRef row = LLVMVectorType(l->i32, ROW_WORDS);
    LLVMValueRef rows[ROWS];

    for (unsigned r = 0; r < ROWS; r++) {
        LLVMValueRef at =
            LLVMBuildExtractElement(l->b, address, hed_lower_word(l, ROWS * n + r), "");

        rows[r] = LLVMBuildLoad2(l->b, row, hed_lower_pointer(l, at), "");
        LLVMSetAlignment(rows[r], 2);
    }
    for (unsigned count = ROWS / 2; count; count /= 2)
        for (unsigned r = 0; r < count; r++)
            rows[r] = hed_lower_concatenate(l, rows[2 * r], rows[2 * r + 1]);
    return rows[0];
}

/* ---- in two ways ----------------------------------------------------------------------------- */

/* Has the instruction code of its own? */
enum own_code { NO_OWN_CODE, OWN_PRODUCT, OWN_LOAD, OWN_MOVE };

static enum own_code
find_own_code(struct hed_lower *l, struct hed_ptx_mma *m)
{
    const struct hed_ptx_fragments *f = &l->meaning->matrix;

    if (!l->shape->all_run)
        return NO_OWN_CODE;
    if (f->fn == hed_ptx_mma) {
        memcpy(m, &f->arg, sizeof(*m));
        return hed_product_is_known(l, m) ? OWN_PRODUCT : NO_OWN_CODE;
    }
    if (f->fn == hed_ptx_movmatrix)
        return OWN_MOVE;
    return f->fn == hed_ptx_ldmatrix && !l->options->confined ? OWN_LOAD : NO_OWN_CODE;
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

static void
make_own_code(struct hed_lower *l, enum own_code code, const struct hed_ptx_mma *m,
              struct words *in, LLVMValueRef *out)
{
    const struct hed_ptx_fragments *f = &l->meaning->matrix;

    if (code == OWN_PRODUCT) {
        hed_product_make(l, m, in->all, out, all_take_any_nan(l, &f->out));
    } else if (code == OWN_MOVE) {
        out[0] = transpose(l, in->all[0]);
    } else {
        for (unsigned n = 0; n < f->words_out; n++) {
            out[n] = load_matrix(l, in->address, n);
            if (f->arg & HED_PTX_MATRIX_TRANSPOSED)
                out[n] = transpose(l, out[n]);
        }
    }
}

static void
call_function(struct hed_lower *l, struct words *in, LLVMValueRef *out)
{
    const struct hed_ptx_fragments *f = &l->meaning->matrix;

    l->shape->together(l, f->name, hed_lower_int(l, l->i32, UINT32_MAX), f->arg, in->all, in->count,
                       out, f->words_out);
}

/* All lanes run, or a function does it. */
static void
make_both(struct hed_lower *l, enum own_code code, const struct hed_ptx_mma *m, struct words *in,
          LLVMValueRef *out)
{
    const struct hed_ptx_fragments *f = &l->meaning->matrix;
    LLVMTypeRef t = LLVMVectorType(l->i32, HED_PTX_LANES);
    LLVMBasicBlockRef all = hed_lower_block(l, ""), some = hed_lower_block(l, ""),
                      after = hed_lower_block(l, "");
    LLVMBasicBlockRef from[2];
    LLVMValueRef ways[2][HED_PTX_MATRIX_WORDS];

    LLVMBuildCondBr(l->b, l->shape->all_run(l), all, some);
    LLVMPositionBuilderAtEnd(l->b, all);
    make_own_code(l, code, m, in, ways[0]);
    from[0] = LLVMGetInsertBlock(l->b);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, some);
    call_function(l, in, ways[1]);
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
    const enum own_code code = find_own_code(l, &product);

    if (m->address)
        add_address(l, &in, m->address);
    for (unsigned i = 0; i < m->nin; i++) {
        /* A NaN in a sum gives a NaN, whatever it is; in factors its bits may matter. */
        l->reads_any_nan = code == OWN_PRODUCT && i == 2;
        add_fragment(l, &in, &m->in[i]);
    }
    l->reads_any_nan = false;
    if (l->err)
        return;
    if (code != NO_OWN_CODE)
        make_both(l, code, &product, &in, out);
    else
        call_function(l, &in, out);
    set_fragment(l, &m->out, out);
}
