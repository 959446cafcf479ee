/* Matrix instructions: the words of all lanes' fragments go to a function of run/matrix.c, and the
 * words of the result come back.
 */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"

/* The words that go to the function, and those that come back. A word is 32 bits of each lane: a
 * register, or half of one of 64 bits. */
struct matrix_call {
    hed_rt_together fn;
    uint64_t arg;
    unsigned nin, nout;
    struct matrix_word {
        uint32_t place;
        uint8_t bytes;                 /* of the register */
        uint8_t half;                  /* of 64 bits: 1 for the upper one */
    } words[2 * HED_PTX_MATRIX_WORDS]; /* first those that go in */
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

    if (w->write == UINT32_MAX && word->bytes == 4) {
        memcpy(to, from, HED_PTX_LANES * sizeof(*to));
        return;
    }
    MASKED_LANES(w->write, lane)
    to[word->bytes == 4 ? lane : 2 * lane + word->half] = from[lane];
}

static INTERP_STEP(matrix_lanes)
{
    const struct matrix_call *c = s->more;
    uint32_t data[2 * HED_PTX_MATRIX_WORDS + 1][HED_PTX_LANES];
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

static void
add_word(struct matrix_call *c, uint32_t place, unsigned bytes, bool is_out)
{
    for (unsigned half = 0; half < bytes / 4; half++) {
        c->words[c->nin + c->nout] =
            (struct matrix_word){.place = place, .bytes = (uint8_t)bytes, .half = (uint8_t)half};
        if (is_out)
            c->nout++;
        else
            c->nin++;
    }
}

static void
add_registers(struct interp_decoder *d, struct matrix_call *c, const struct hed_ptx_fragment *f,
              bool is_out)
{
    const enum hed_ptx_type word = f->is_wide ? HED_PTX_TYPE_B64 : HED_PTX_TYPE_B32;

    for (unsigned i = 0; i < f->count; i++) {
        const struct hed_ptx_operand o = hed_ptx_nth_element(&f->operand, i);

        add_word(c, is_out ? hed_interp_dest(d, &o, word) : hed_interp_source(d, &o, word),
                 interp_bytes(word), is_out);
    }
}

void
hed_interp_op_matrix(struct interp_decoder *d)
{
    const struct hed_ptx_fragments *m = &d->meaning->matrix;
    struct matrix_call *c = hed_interp_alloc(d, sizeof(*c));

    if (!c)
        return;
    c->fn = m->fn;
    c->arg = m->arg;
    if (m->address)
        add_word(c, hed_interp_address(d, m->address, hed_ptx_first_space(d->inst->form), 1), 8,
                 false);
    for (unsigned i = 0; i < m->nin; i++)
        add_registers(d, c, &m->in[i], false);
    add_registers(d, c, &m->out, true);
    hed_interp_emit(d, matrix_lanes)->more = c;
}
