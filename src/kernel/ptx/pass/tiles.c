/* See tiles.h. An fma is put off past all that neither reads its result nor waits for other lanes.
 * What was put off is then made in tiles: chains of fmas (each adds to the one before it), of which
 * those that begin with the same factors belong together.
 */
#include "kernel/ptx/pass/tiles.h"

#include <string.h>

#include "base/err.h"

#define NONE UINT32_MAX
#define SUMS_MOST 255 /* that wait at a time: a thread has no more registers */

/* An fma that was put off: by its number among them. */
struct put_off {
    struct hed_ptx_inst *inst;
    uint32_t next;  /* of its chain; NONE */
    uint32_t depth; /* how many of its chain come before it */
};

/* A sum with all of its products. */
struct chain {
    uint32_t first;
    uint32_t factors[2]; /* ids of the values that the first fma multiplies */
    bool is_done;
};

struct tiling {
    struct hed_flow *f;
    const struct hed_ssa *s;
    struct hed_tile_size size;
    uint32_t *made_by; /* by value: 1 + the number of the fma that makes it; 0: none was put off */
    struct put_off *fmas;
    uint32_t nfmas;
    struct chain *chains;
    uint32_t nchains;
    struct hed_ptx_inst **out;
    uint32_t nout, ntiles;
    struct hed_tiles *tiles;
};

static bool
is_float_value(const struct hed_ptx_operand *o)
{
    return o->kind == HED_PTX_OPERAND_REG && !o->sel;
}

/* Is it an fma of floats in all lanes that run? */
static bool
is_fma(const struct hed_ptx_inst *i)
{
    return !i->is_refused && !i->guard &&
           (i->form->op == HED_PTX_OP_FMA || i->form->op == HED_PTX_OP_MAD) &&
           i->form->types[0] == HED_PTX_TYPE_F32 && i->noperands == 4 &&
           is_float_value(&i->operands[0]) && is_float_value(&i->operands[1]) &&
           is_float_value(&i->operands[2]) && is_float_value(&i->operands[3]);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

static void
put_out(struct tiling *t, struct hed_ptx_inst *i)
{
    t->out[t->nout++] = i;
}

/* The chain that has these factors and is not done; NONE. */
static uint32_t
find_chain(const struct tiling *t, uint32_t row, uint32_t column)
{
    for (uint32_t c = 0; c < t->nchains; c++)
        if (!t->chains[c].is_done && t->chains[c].factors[0] == row &&
            t->chains[c].factors[1] == column)
            return c;
    return NONE;
}

static bool
has_column(const uint32_t *columns, unsigned n, uint32_t column)
{
    for (unsigned k = 0; k < n; k++)
        if (columns[k] == column)
            return true;
    return false;
}

/* The columns of a tile: factors by which chains multiply the row. Of several chains with the same
 * factors, the others come into later tiles. */
static unsigned
find_columns(const struct tiling *t, uint32_t row, uint32_t *columns)
{
    unsigned n = 0;

    for (uint32_t c = 0; c < t->nchains && n < t->size.columns; c++) {
        const struct chain *chain = &t->chains[c];

        if (!chain->is_done && chain->factors[0] == row &&
            !has_column(columns, n, chain->factors[1]))
            columns[n++] = chain->factors[1];
    }
    return n;
}

/* Adds the chains of a row to a tile, if there are all of them. */
static bool
add_row(struct tiling *t, uint32_t row, const uint32_t *columns, unsigned ncolumns, uint32_t *tile,
        unsigned *n)
{
    unsigned found = 0;

    for (; found < ncolumns; found++) {
        tile[*n + found] = find_chain(t, row, columns[found]);
        if (tile[*n + found] == NONE)
            return false;
    }
    for (unsigned k = 0; k < found; k++)
        t->chains[tile[*n + k]].is_done = true;
    *n += found;
    return true;
}

/* The first chain that is not done and others that share its factors. */
static unsigned
find_tile(struct tiling *t, uint32_t first, uint32_t *tile)
{
    uint32_t columns[HED_TILE_MAX];
    unsigned n = 0, rows = 1;
    const unsigned ncolumns = find_columns(t, t->chains[first].factors[0], columns);

    (void)add_row(t, t->chains[first].factors[0], columns, ncolumns, tile, &n);
    for (uint32_t c = first; c < t->nchains && rows < t->size.rows; c++)
        if (!t->chains[c].is_done && t->chains[c].factors[1] == columns[0])
            rows += add_row(t, t->chains[c].factors[0], columns, ncolumns, tile, &n);
    return n;
}

/* All products of a tile's sums, step by step. */
static void
put_out_tile(struct tiling *t, const uint32_t *tile, unsigned n)
{
    uint32_t at[HED_TILE_MAX * HED_TILE_MAX];
    bool any = true;

    for (unsigned k = 0; k < n; k++)
        at[k] = t->chains[tile[k]].first;
    t->ntiles++;
    while (any) {
        any = false;
        for (unsigned k = 0; k < n; k++) {
            if (at[k] == NONE)
                continue;
            put_out(t, t->fmas[at[k]].inst);
            t->tiles->of[t->fmas[at[k]].inst->operands[0].reg->id] = t->ntiles;
            at[k] = t->fmas[at[k]].next;
            any = true;
        }
    }
}

/* May an fma be put off as well? Not if it reads what another was put off for, unless it is the
 * next one of that chain: chains can be made in any order. */
static bool
fits_chains(const struct tiling *t, const struct hed_ptx_inst *i)
{
    const struct hed_ptx_operand *o = i->operands;
    const uint32_t before = t->made_by[o[3].reg->id];

    if (t->made_by[o[1].reg->id] || t->made_by[o[2].reg->id])
        return false;
    return before
               ? t->fmas[before - 1].next == NONE && t->fmas[before - 1].depth + 1 < HED_TILE_STEPS
               : t->nchains < SUMS_MOST;
}

static void
put_off(struct tiling *t, struct hed_ptx_inst *i)
{
    const struct hed_ptx_operand *o = i->operands;
    const uint32_t before = t->made_by[o[3].reg->id], n = t->nfmas++;

    t->fmas[n] = (struct put_off){i, NONE, before ? t->fmas[before - 1].depth + 1 : 0};
    t->made_by[o[0].reg->id] = n + 1;
    if (before)
        t->fmas[before - 1].next = n;
    else
        t->chains[t->nchains++] = (struct chain){n, {o[1].reg->id, o[2].reg->id}, false};
}

static void
put_out_all(struct tiling *t)
{
    uint32_t tile[HED_TILE_MAX * HED_TILE_MAX];

    if (t->nchains <= t->size.worth || t->nfmas < 2 * t->nchains) {
        for (uint32_t i = 0; i < t->nfmas; i++)
            put_out(t, t->fmas[i].inst);
    } else {
        t->tiles->moved += t->nfmas;
        for (uint32_t c = 0; c < t->nchains; c++)
            if (!t->chains[c].is_done)
                put_out_tile(t, tile, find_tile(t, c, tile));
    }
    for (uint32_t i = 0; i < t->nfmas; i++)
        t->made_by[t->fmas[i].inst->operands[0].reg->id] = 0;
    t->nfmas = t->nchains = 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct reading {
    const struct tiling *t;
    bool any;
};

static void
note_if_put_off(void *arg, const struct hed_ptx_reg **reg)
{
    struct reading *r = arg;

    r->any |= r->t->made_by[(*reg)->id] != 0;
}

static void
note_old(void *arg, const struct hed_ptx_reg **reg)
{
    struct reading *r = arg;
    const struct hed_ptx_reg *old = r->t->s->values[(*reg)->id].old;

    r->any |= old && r->t->made_by[old->id] != 0;
}

/* Must it come behind what was put off? */
static bool
comes_behind(const struct tiling *t, struct hed_ptx_inst *i)
{
    struct reading r = {.t = t};

    if (i->is_refused || hed_ptx_op_nature(i->form->op) == HED_PTX_MEETS ||
        hed_ptx_op_nature(i->form->op) == HED_PTX_LEAVES)
        return true;
    hed_flow_each_read(i, note_if_put_off, &r);
    if (i->guard)
        hed_flow_each_write(i, note_old, &r);
    return r.any;
}

static void
order_block(struct tiling *t, struct hed_flow_block *b)
{
    t->nout = 0;
    for (uint32_t k = 0; k < b->ninsts; k++) {
        struct hed_ptx_inst *i = b->insts[k];
        const bool can_wait = is_fma(i);

        if (can_wait ? !fits_chains(t, i) : t->nfmas && comes_behind(t, i))
            put_out_all(t);
        if (can_wait)
            put_off(t, i);
        else
            put_out(t, i);
    }
    put_out_all(t);
    memcpy(b->insts, t->out, b->ninsts * sizeof(*b->insts));
}

static uint32_t
count_fmas(const struct hed_flow_block *b)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < b->ninsts; i++)
        n += is_fma(b->insts[i]);
    return n;
}

int
hed_tiles_order(struct hed_flow *f, const struct hed_ssa *s, struct hed_tile_size size,
                struct hed_tiles *out)
{
    struct tiling t = {.f = f, .s = s, .size = size, .tiles = out};
    uint32_t most = 0;

    *out = (struct hed_tiles){0};
    if (size.rows > HED_TILE_MAX || size.columns > HED_TILE_MAX)
        return HED_EINVAL;
    for (uint32_t b = 0; b < f->nblocks; b++)
        if (f->blocks[b].ninsts > most && count_fmas(&f->blocks[b]) > size.rows * size.columns)
            most = f->blocks[b].ninsts;
    if (most == 0)
        return 0;
    t.made_by = hed_flow_alloc(f, f->nvalues, sizeof(*t.made_by));
    t.fmas = hed_flow_alloc(f, most, sizeof(*t.fmas));
    t.chains = hed_flow_alloc(f, most, sizeof(*t.chains));
    t.out = hed_flow_alloc(f, most, sizeof(struct hed_ptx_inst *));
    out->of = hed_flow_alloc(f, f->nvalues, sizeof(*out->of));
    if (!t.made_by || !t.fmas || !t.chains || !t.out || !out->of)
        return HED_ENOMEM;
    for (uint32_t b = 0; b < f->nblocks; b++)
        if (count_fmas(&f->blocks[b]) > size.rows * size.columns)
            order_block(&t, &f->blocks[b]);
    return 0;
}
