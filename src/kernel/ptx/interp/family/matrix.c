/* Matrix instructions: the words of all lanes' fragments go to a function of run/matrix.c, and the
 * words of the result come back.
 */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"
#include "kernel/ptx/run/group.h"

#define WORDS_MAX 96

/* The words that go to the function, and those that come back. A word is 32 bits of each lane: a
 * register, or half of one of 64 bits. */
struct matrix_call {
    hed_rt_together fn;
    uint64_t arg;
    unsigned nin, nout;
    struct matrix_word {
        uint32_t place;
        uint8_t bytes;      /* of the register */
        uint8_t half;       /* of 64 bits: 1 for the upper one */
    } words[2 * WORDS_MAX]; /* first those that go in */
};

/* ---- running --------------------------------------------------------------------------------- */

static void
gather_word(const struct interp_warp *w, const struct matrix_word *word, uint32_t *to)
{
    const uint32_t *from = interp_at(w, word->place);

    if (word->bytes == 4)
        memcpy(to, from, HED_PTX_LANES * sizeof(*to));
    else
        for (unsigned i = 0; i < HED_PTX_LANES; i++)
            to[i] = from[2 * i + word->half];
}

static void
scatter_word(const struct interp_warp *w, const struct matrix_word *word, const uint32_t *from)
{
    uint32_t *to = interp_at(w, word->place);

    MASKED_LANES(w->write, lane)
    to[word->bytes == 4 ? lane : 2 * lane + word->half] = from[lane];
}

static INTERP_STEP(matrix_lanes)
{
    const struct matrix_call *c = s->more;
    uint32_t data[2 * WORDS_MAX + 1][HED_PTX_LANES];
    void *lanes[HED_PTX_LANES];

    /* All 32 threads take part in a matrix instruction. */
    if (!hed_interp_meet(w, s, UINT32_MAX))
        return hed_interp_next(w);
    w->warp->line = s->line;
    for (unsigned i = 0; i < c->nin; i++)
        gather_word(w, &c->words[i], data[i]);
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        lanes[i] = w->active >> i & 1 ? &data[0][i] : NULL;
    c->fn(lanes, w->active, c->arg | HED_RT_STRIDED);
    for (unsigned i = 0; i < c->nout; i++)
        scatter_word(w, &c->words[c->nin + i], data[c->nin + i]);
    return s + 1;
}

/* ---- decoding -------------------------------------------------------------------------------- */

static unsigned
fragment_count(const struct hed_ptx_operand *o)
{
    return o->kind == HED_PTX_OPERAND_VEC ? o->count : 1;
}

static const struct hed_ptx_operand *
fragment_operand(const struct hed_ptx_operand *o, unsigned i)
{
    return o->kind == HED_PTX_OPERAND_VEC ? &o->elems[i] : o;
}

static void
add_matrix_word(struct interp_decoder *d, struct matrix_call *c, uint32_t place, unsigned bytes,
                bool is_out)
{
    for (unsigned half = 0; half < bytes / 4; half++) {
        if (c->nin + c->nout == 2 * WORDS_MAX) {
            hed_interp_refuse(d, "too many registers");
            return;
        }
        c->words[c->nin + c->nout] =
            (struct matrix_word){.place = place, .bytes = (uint8_t)bytes, .half = (uint8_t)half};
        if (is_out)
            c->nout++;
        else
            c->nin++;
    }
}

/* Adds the registers of an operand that hold elements of type t. */
static void
add_registers(struct interp_decoder *d, struct matrix_call *c, const struct hed_ptx_operand *o,
              enum hed_ptx_type t, bool is_out)
{
    const enum hed_ptx_type word =
        hed_ptx_types[t].bits == 64 ? HED_PTX_TYPE_B64 : HED_PTX_TYPE_B32;

    for (unsigned i = 0; i < fragment_count(o); i++) {
        const struct hed_ptx_operand *r = fragment_operand(o, i);

        add_matrix_word(d, c, is_out ? hed_interp_dest(d, r, word) : hed_interp_source(d, r, word),
                        interp_bytes(word), is_out);
    }
}

static void
emit_matrix(struct interp_decoder *d, struct matrix_call *c, hed_rt_together fn, uint64_t arg)
{
    c->fn = fn;
    c->arg = arg;
    hed_interp_emit(d, matrix_lanes)->more = c;
}

void
hed_interp_op_mma(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const struct hed_ptx_operand *o = d->inst->operands;
    struct hed_ptx_mma m;
    struct matrix_call *c = hed_interp_alloc(d, sizeof(*c));
    const char *why = hed_ptx_mma_describe(f, &m);
    unsigned nin, nout;

    if (why)
        hed_interp_refuse(d, "%s", why);
    if (!c || why)
        return;
    add_registers(d, c, &o[1], m.a, false);
    add_registers(d, c, &o[2], m.b, false);
    add_registers(d, c, &o[3], m.c, false);
    if (m.k & HED_PTX_MMA_SPARSE) {
        add_registers(d, c, &o[4], HED_PTX_TYPE_B32, false);
        add_matrix_word(d, c, hed_interp_operand(d, 5, HED_PTX_TYPE_U32), 4, false);
    }
    add_registers(d, c, &o[0], m.d, true);
    hed_ptx_mma_words(&m, &nin, &nout);
    if (c->nin != nin || c->nout != nout) {
        hed_interp_refuse(d, "the registers do not hold such matrices");
        return;
    }
    emit_matrix(d, c, hed_ptx_mma, hed_ptx_mma_pack(&m));
}

static void
add_address_words(struct interp_decoder *d, struct matrix_call *c, const struct hed_ptx_operand *o)
{
    const struct hed_ptx_form *f = d->inst->form;

    add_matrix_word(d, c,
                    hed_interp_address(d, o, f->nspaces ? f->spaces[0] : HED_PTX_SPACE_NONE, 1), 8,
                    false);
}

void
hed_interp_op_matrix_move(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const struct hed_ptx_operand *o = d->inst->operands;
    const bool is_load = f->op == HED_PTX_OP_LDMATRIX;
    struct matrix_call *c = hed_interp_alloc(d, sizeof(*c));

    if (f->m != 8 || f->n != 8 || f->types[0] != HED_PTX_TYPE_B16) {
        hed_interp_refuse(d, "only 8 by 8 matrices of 16 bits are supported");
        return;
    }
    if (!c)
        return;
    add_address_words(d, c, &o[is_load ? 1 : 0]);
    add_registers(d, c, &o[is_load ? 0 : 1], HED_PTX_TYPE_B32, is_load);
    emit_matrix(d, c, is_load ? hed_ptx_ldmatrix : hed_ptx_stmatrix,
                f->count + (INTERP_HAS(f, TRANS) ? 256u : 0u));
}

void
hed_interp_op_movmatrix(struct interp_decoder *d)
{
    struct matrix_call *c = hed_interp_alloc(d, sizeof(*c));

    if (!c)
        return;
    add_registers(d, c, &d->inst->operands[1], HED_PTX_TYPE_B32, false);
    add_registers(d, c, &d->inst->operands[0], HED_PTX_TYPE_B32, true);
    emit_matrix(d, c, hed_ptx_movmatrix, 0);
}

void
hed_interp_op_wmma_move(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const struct hed_ptx_operand *o = d->inst->operands;
    const bool is_load = f->op == HED_PTX_OP_WMMA_LOAD;
    const struct hed_ptx_operand *fragment = &o[is_load ? 0 : 1];
    const enum hed_ptx_type t = f->types[0];
    const unsigned words = fragment_count(fragment) * (hed_ptx_types[t].bits == 64 ? 2 : 1);
    const struct hed_ptx_wmma move = {
        .rows = (uint8_t)(f->matrix == HED_PTX_MATRIX_B ? f->k : f->m),
        .columns = (uint8_t)(f->matrix == HED_PTX_MATRIX_A ? f->k : f->n),
        .type = t,
        .words = (uint8_t)words,
        .is_column = f->layouts[0] == HED_PTX_LAYOUT_COL,
    };
    struct matrix_call *c = hed_interp_alloc(d, sizeof(*c));

    if (!hed_ptx_is_matrix_type(t) || f->m > 32 || f->n > 32 || f->k > 128 || words > WORDS_MAX ||
        !hed_ptx_is_fragment_shape(move.rows, move.columns)) {
        hed_interp_refuse(d, "fragments of this type or shape are not supported");
        return;
    }
    if (!c)
        return;
    add_address_words(d, c, &o[is_load ? 1 : 0]);
    add_matrix_word(d, c,
                    d->inst->noperands > 2
                        ? hed_interp_operand(d, 2, HED_PTX_TYPE_U32)
                        : hed_interp_constant(d, move.is_column ? move.rows : move.columns, 4),
                    4, false);
    add_registers(d, c, fragment, t, is_load);
    emit_matrix(d, c, is_load ? hed_ptx_wmma_load : hed_ptx_wmma_store, hed_ptx_wmma_pack(&move));
}
