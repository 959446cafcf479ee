/* Matrices: which function of run/group.h does it, and the registers that go there. */
#include "kernel/ptx/meaning/family.h"
#include "kernel/ptx/run/group.h"

#define CALLS(function) .name = #function, .fn = (function)

static struct hed_ptx_fragment
registers_of(const struct hed_ptx_operand *o, enum hed_ptx_type t)
{
    return (struct hed_ptx_fragment){.operand = *o,
                                     .count = o->kind == HED_PTX_OPERAND_VEC ? o->count : 1,
                                     .is_wide = hed_ptx_types[t].bits == 64};
}

static unsigned
words_of(const struct hed_ptx_fragment *f)
{
    return f->count * (f->is_wide ? 2 : 1);
}

static void
append_fragment(struct hed_ptx_fragments *c, const struct hed_ptx_operand *o, enum hed_ptx_type t)
{
    c->in[c->nin++] = registers_of(o, t);
}

/* Counts the words when all operands are known. */
static int
count_words(struct hed_ptx_fragments *c, struct hed_why *why)
{
    c->words_in = c->address ? 2 : 0;
    for (unsigned k = 0; k < c->nin; k++)
        c->words_in += words_of(&c->in[k]);
    c->words_out = words_of(&c->out);
    if (c->words_in > HED_PTX_MATRIX_WORDS || c->words_out > HED_PTX_MATRIX_WORDS)
        return hed_meaning_refuse(why, "too many registers");
    return 0;
}

HED_MEANING(mma)
{
    struct hed_ptx_fragments *c = &m->matrix;
    const struct hed_ptx_operand *o = i->operands;
    struct hed_ptx_mma product;
    const char *cannot = hed_ptx_mma_describe(i->form, &product);
    const bool is_sparse = (product.k & HED_PTX_MMA_SPARSE) != 0;
    unsigned words_in, words_out;
    int err;

    if (cannot)
        return hed_meaning_refuse(why, "%s", cannot);
    *c = (struct hed_ptx_fragments){CALLS(hed_ptx_mma), .arg = hed_ptx_mma_pack(&product)};
    append_fragment(c, &o[1], product.a);
    append_fragment(c, &o[2], product.b);
    append_fragment(c, &o[3], product.c);
    for (unsigned k = 4; is_sparse && k < 6 && k < i->noperands; k++)
        append_fragment(c, &o[k], HED_PTX_TYPE_B32); /* metadata, selector */
    c->out = registers_of(&o[0], product.d);
    err = count_words(c, why);
    hed_ptx_mma_words(&product, &words_in, &words_out);
    if (!err && (c->words_in != words_in || c->words_out != words_out))
        return hed_meaning_refuse(why, "the registers do not hold such matrices");
    return err;
}

HED_MEANING(matrix_move)
{
    struct hed_ptx_fragments *c = &m->matrix;
    const struct hed_ptx_form *f = i->form;
    const uint64_t arg =
        f->count + (f->flags & HED_PTX_FLAG(TRANS) ? HED_PTX_MATRIX_TRANSPOSED : 0u);

    if (f->m != 8 || f->n != 8 || f->types[0] != HED_PTX_TYPE_B16)
        return hed_meaning_refuse(why, "only 8 by 8 matrices of 16 bits are supported");
    if (f->op == HED_PTX_OP_LDMATRIX) {
        *c = (struct hed_ptx_fragments){CALLS(hed_ptx_ldmatrix), .arg = arg,
                                        .address = &i->operands[1]};
        c->out = registers_of(&i->operands[0], HED_PTX_TYPE_B32);
    } else {
        *c = (struct hed_ptx_fragments){CALLS(hed_ptx_stmatrix), .arg = arg,
                                        .address = &i->operands[0]};
        append_fragment(c, &i->operands[1], HED_PTX_TYPE_B32);
    }
    return count_words(c, why);
}

HED_MEANING(movmatrix)
{
    struct hed_ptx_fragments *c = &m->matrix;

    *c = (struct hed_ptx_fragments){CALLS(hed_ptx_movmatrix)};
    append_fragment(c, &i->operands[1], HED_PTX_TYPE_B32);
    c->out = registers_of(&i->operands[0], HED_PTX_TYPE_B32);
    return count_words(c, why);
}

HED_MEANING(wmma_move)
{
    struct hed_ptx_fragments *c = &m->matrix;
    const struct hed_ptx_form *f = i->form;
    const struct hed_ptx_operand *o = i->operands;
    const bool is_load = f->op == HED_PTX_OP_WMMA_LOAD;
    const enum hed_ptx_type t = f->types[0];
    const struct hed_ptx_fragment fragment = registers_of(&o[is_load ? 0 : 1], t);
    const struct hed_ptx_wmma move = {
        .rows = (uint8_t)(f->matrix == HED_PTX_MATRIX_B ? f->k : f->m),
        .columns = (uint8_t)(f->matrix == HED_PTX_MATRIX_A ? f->k : f->n),
        .type = t,
        .words = (uint8_t)words_of(&fragment),
        .is_column = f->layouts[0] == HED_PTX_LAYOUT_COL,
    };
    const struct hed_ptx_operand packed = {.kind = HED_PTX_OPERAND_INT,
                                           .bits = move.is_column ? move.rows : move.columns};

    if (!hed_ptx_is_matrix_type(t) || f->m > 32 || f->n > 32 || f->k > 128 ||
        words_of(&fragment) > HED_PTX_MATRIX_WORDS ||
        !hed_ptx_is_fragment_shape(move.rows, move.columns))
        return hed_meaning_refuse(why, "fragments of this type or shape are not supported");
    if (is_load)
        *c = (struct hed_ptx_fragments){CALLS(hed_ptx_wmma_load), .out = fragment};
    else
        *c = (struct hed_ptx_fragments){CALLS(hed_ptx_wmma_store)};
    c->arg = hed_ptx_wmma_pack(&move);
    c->address = &o[is_load ? 1 : 0];
    /* The distance of rows, or of columns. */
    append_fragment(c, i->noperands > 2 ? &o[2] : &packed, HED_PTX_TYPE_B32);
    if (!is_load)
        c->in[c->nin++] = fragment;
    return count_words(c, why);
}
