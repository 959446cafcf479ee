/* Matrix instructions: the words of all lanes' fragments go to a function of run/matrix.c, and the
 * words of the result come back.
 */
#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/lower.h"
#include "kernel/ptx/run/group.h"

#define WORDS_MAX 96

/* Words that go to the function. */
struct words {
    LLVMValueRef all[WORDS_MAX];
    unsigned count;
};

static const struct hed_ptx_operand *
fragment_register(const struct hed_ptx_operand *o, unsigned i)
{
    return o->kind == HED_PTX_OPERAND_VEC ? &o->elems[i] : o;
}

static unsigned
fragment_registers(const struct hed_ptx_operand *o)
{
    return o->kind == HED_PTX_OPERAND_VEC ? o->count : 1;
}

static void
add_fragment_word(struct hed_lower *l, struct words *w, LLVMValueRef v)
{
    if (w->count == WORDS_MAX)
        hed_lower_refuse(l, "too many registers");
    else
        w->all[w->count++] = v;
}

static void
add_fragment_pair(struct hed_lower *l, struct words *w, LLVMValueRef v)
{
    add_fragment_word(l, w, hed_lower_resize(l, v, l->i32, false));
    v = LLVMBuildLShr(l->b, v, hed_lower_int(l, l->i64, 32), "");
    add_fragment_word(l, w, hed_lower_resize(l, v, l->i32, false));
}

/* Adds the registers of an operand that hold elements of type t. */
static void
add_fragment(struct hed_lower *l, struct words *w, const struct hed_ptx_operand *o,
             enum hed_ptx_type t)
{
    for (unsigned i = 0; i < fragment_registers(o); i++) {
        if (hed_ptx_types[t].bits == 64)
            add_fragment_pair(l, w, hed_lower_get(l, fragment_register(o, i), HED_PTX_TYPE_B64));
        else
            add_fragment_word(l, w, hed_lower_get(l, fragment_register(o, i), HED_PTX_TYPE_B32));
    }
}

static unsigned
fragment_words(const struct hed_ptx_operand *o, enum hed_ptx_type t)
{
    return fragment_registers(o) * (hed_ptx_types[t].bits == 64 ? 2 : 1);
}

static void
set_fragment(struct hed_lower *l, LLVMValueRef *words, const struct hed_ptx_operand *o,
             enum hed_ptx_type t)
{
    for (unsigned i = 0; i < fragment_registers(o); i++) {
        if (hed_ptx_types[t].bits == 64) {
            LLVMValueRef low = hed_lower_resize(l, words[2 * i], l->i64, false);
            LLVMValueRef high = hed_lower_resize(l, words[2 * i + 1], l->i64, false);

            high = LLVMBuildShl(l->b, high, hed_lower_int(l, l->i64, 32), "");
            hed_lower_set(l, fragment_register(o, i), HED_PTX_TYPE_B64,
                          LLVMBuildOr(l->b, low, high, ""));
        } else {
            hed_lower_set(l, fragment_register(o, i), HED_PTX_TYPE_B32, words[i]);
        }
    }
}

/* All 32 threads take part in a matrix instruction. */
static void
run_together(struct hed_lower *l, const char *helper, uint64_t arg, struct words *in,
             LLVMValueRef *out, unsigned nout)
{
    if (nout > WORDS_MAX)
        hed_lower_refuse(l, "too many registers");
    if (!l->err)
        l->shape->together(l, helper, hed_lower_int(l, l->i32, UINT32_MAX), arg, in->all, in->count,
                           out, nout);
}

/* ---- products -------------------------------------------------------------------------------- */

void
hed_op_mma(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const struct hed_ptx_operand *o = l->inst->operands;
    struct hed_ptx_mma m;
    struct words in = {.count = 0};
    LLVMValueRef out[WORDS_MAX];
    unsigned nin, nout;
    const char *why = hed_ptx_mma_describe(f, &m);

    if (why) {
        hed_lower_refuse(l, "%s", why);
        return;
    }
    add_fragment(l, &in, &o[1], m.a);
    add_fragment(l, &in, &o[2], m.b);
    add_fragment(l, &in, &o[3], m.c);
    if (m.k & HED_PTX_MMA_SPARSE) {
        add_fragment(l, &in, &o[4], HED_PTX_TYPE_B32);
        add_fragment_word(l, &in, hed_lower_get(l, &o[5], HED_PTX_TYPE_U32));
    }
    hed_ptx_mma_words(&m, &nin, &nout);
    if (in.count != nin || fragment_words(&o[0], m.d) != nout) {
        hed_lower_refuse(l, "the registers do not hold such matrices");
        return;
    }
    run_together(l, "hed_ptx_mma", hed_ptx_mma_pack(&m), &in, out, fragment_words(&o[0], m.d));
    if (!l->err)
        set_fragment(l, out, &o[0], m.d);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void
add_address(struct hed_lower *l, struct words *w, const struct hed_ptx_operand *o, unsigned align)
{
    const struct hed_ptx_form *f = l->inst->form;
    const struct hed_lower_place at =
        hed_lower_place(l, o, f->nspaces ? f->spaces[0] : HED_PTX_SPACE_NONE, align);

    if (!l->err)
        add_fragment_pair(l, w, hed_lower_in_sandbox(l, l->shape->address(l, &at)));
}

void
hed_op_matrix_move(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const struct hed_ptx_operand *o = l->inst->operands;
    const bool is_load = f->op == HED_PTX_OP_LDMATRIX;
    const uint64_t arg = f->count + (f->flags & HED_PTX_FLAG(TRANS) ? 256u : 0u);
    struct words in = {.count = 0};
    LLVMValueRef out[WORDS_MAX];

    if (f->m != 8 || f->n != 8 || f->types[0] != HED_PTX_TYPE_B16) {
        hed_lower_refuse(l, "only 8 by 8 matrices of 16 bits are supported");
        return;
    }
    add_address(l, &in, &o[is_load ? 1 : 0], 1);
    if (!is_load)
        add_fragment(l, &in, &o[1], HED_PTX_TYPE_B32);
    run_together(l, is_load ? "hed_ptx_ldmatrix" : "hed_ptx_stmatrix", arg, &in, out,
                 is_load ? f->count : 0);
    if (is_load && !l->err)
        set_fragment(l, out, &o[0], HED_PTX_TYPE_B32);
}

void
hed_op_movmatrix(struct hed_lower *l)
{
    struct words in = {.count = 0};
    LLVMValueRef out;

    add_fragment(l, &in, &l->inst->operands[1], HED_PTX_TYPE_B32);
    run_together(l, "hed_ptx_movmatrix", 0, &in, &out, 1);
    if (!l->err)
        set_fragment(l, &out, &l->inst->operands[0], HED_PTX_TYPE_B32);
}

void
hed_op_wmma_move(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const struct hed_ptx_operand *o = l->inst->operands;
    const bool is_load = f->op == HED_PTX_OP_WMMA_LOAD;
    const struct hed_ptx_operand *fragment = &o[is_load ? 0 : 1];
    const enum hed_ptx_type t = f->types[0];
    struct hed_ptx_wmma w = {
        .rows = (uint8_t)(f->matrix == HED_PTX_MATRIX_B ? f->k : f->m),
        .columns = (uint8_t)(f->matrix == HED_PTX_MATRIX_A ? f->k : f->n),
        .type = t,
        .words = (uint8_t)fragment_words(fragment, t),
        .is_column = f->layouts[0] == HED_PTX_LAYOUT_COL,
    };
    struct words in = {.count = 0};
    LLVMValueRef out[WORDS_MAX];

    if (!hed_ptx_is_matrix_type(t) || f->m > 32 || f->n > 32 || f->k > 128 ||
        fragment_words(fragment, t) > WORDS_MAX || !hed_ptx_is_fragment_shape(w.rows, w.columns)) {
        hed_lower_refuse(l, "fragments of this type or shape are not supported");
        return;
    }
    add_address(l, &in, &o[is_load ? 1 : 0], 1);
    add_fragment_word(l, &in,
                      l->inst->noperands > 2
                          ? hed_lower_get(l, &o[2], HED_PTX_TYPE_U32)
                          : hed_lower_int(l, l->i32, w.is_column ? w.rows : w.columns));
    if (!is_load)
        add_fragment(l, &in, fragment, t);
    run_together(l, is_load ? "hed_ptx_wmma_load" : "hed_ptx_wmma_store", hed_ptx_wmma_pack(&w),
                 &in, out, is_load ? w.words : 0);
    if (is_load && !l->err)
        set_fragment(l, out, fragment, t);
}
