/* Matrix instructions: the words of all lanes' fragments go to a function of run/matrix.c, and the
 * words of the result come back.
 */
#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/lower.h"

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

/* All 32 threads take part in a matrix instruction. */
void
hed_op_matrix(struct hed_lower *l)
{
    const struct hed_ptx_fragments *m = &l->meaning->matrix;
    struct words in = {.count = 0};
    LLVMValueRef out[HED_PTX_MATRIX_WORDS];

    if (m->address)
        add_address(l, &in, m->address);
    for (unsigned i = 0; i < m->nin; i++)
        add_fragment(l, &in, &m->in[i]);
    if (l->err)
        return;
    l->shape->together(l, m->name, hed_lower_int(l, l->i32, UINT32_MAX), m->arg, in.all, in.count,
                       out, m->words_out);
    set_fragment(l, &m->out, out);
}
