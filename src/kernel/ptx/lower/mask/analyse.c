/* The passes that find out what the mask shape must know of a kernel (ptx/pass/), in the order of
 * lower/passes.c. One that finds something the shape cannot do refuses the kernel. */
#include "base/err.h"
#include "kernel/ptx/lower/mask/mask.h"
#include "kernel/ptx/lower/passes.h"
#include "kernel/ptx/pass/apart.h"
#include "kernel/ptx/pass/tidy.h"

static int
refuse_shape(struct hed_lower *l, const char *why)
{
    hed_lower_refuse(l, "mask shape: %s", why ? why : "no reason given");
    return HED_ENOTSUP;
}

/* The end of a pass that may refuse the order of blocks. */
static int
judge_order(struct hed_lower *l, int err, const char *why)
{
    if (err != HED_ENOTSUP)
        return err;
    l->is_hopeless = hed_apart_unknown(l->function->ptx);
    return refuse_shape(l, why);
}

static uint32_t
count_true(const bool *set, uint32_t n)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++)
        count += set[i];
    return count;
}

int
hed_pass_flow(struct hed_lower *l)
{
    struct hed_flow *f = &hed_mask_state(l)->flow;
    const char *why = NULL;
    const int err = hed_flow_init(f, l->function->ptx, &why);

    if (!err)
        hed_pass_did(l, "%u blocks, %u loops", f->nblocks, f->nloops);
    return judge_order(l, err, why);
}

int
hed_pass_ssa(struct hed_lower *l)
{
    struct mask *m = hed_mask_state(l);
    const char *why = NULL;
    const int err = hed_ssa_init(&m->ssa, &m->flow, &why);

    if (!err)
        hed_pass_did(l, "%u values", m->flow.nvalues);
    return judge_order(l, err, why);
}

int
hed_pass_tidy(struct hed_lower *l)
{
    struct mask *m = hed_mask_state(l);
    struct hed_tidied did;
    const int err = hed_tidy(&m->flow, &m->ssa, &did);

    if (!err)
        hed_pass_did(l, "%u guards, %u numbers", did.guards, did.wholes);
    return err;
}

int
hed_pass_uniform(struct hed_lower *l)
{
    struct mask *m = hed_mask_state(l);
    const int err = hed_uniforms_init(&m->uniforms, &m->flow, &m->ssa, l->options->rows);
    uint32_t same = 0, rows = 0;

    for (uint32_t i = 0; !err && i < m->flow.nvalues; i++) {
        same += m->uniforms.values[i].kind == HED_UNIFORM;
        rows += m->uniforms.values[i].kind == HED_ROWS;
    }
    if (!err)
        hed_pass_did(l, "%u the same, %u in steps", same, rows);
    return err;
}

int
hed_pass_masks(struct hed_lower *l)
{
    struct mask *m = hed_mask_state(l);
    const int err = hed_masks_init(&m->masks, &m->flow, &m->uniforms, l->unit);

    if (err || !m->masks.why)
        return err;
    l->is_hopeless = m->masks.is_apart;
    return refuse_shape(l, m->masks.why);
}

int
hed_pass_nan(struct hed_lower *l)
{
    struct mask *m = hed_mask_state(l);

    m->loose = hed_nan_init(&m->flow, &m->ssa);
    m->stored = m->loose ? hed_nan_stored(&m->flow, &m->ssa, &m->uniforms, m->loose) : NULL;
    m->late.pending = hed_flow_alloc(&m->flow, m->flow.nvalues, sizeof(bool));
    m->late.own = hed_flow_alloc(&m->flow, m->flow.nvalues, sizeof(LLVMValueRef));
    if (!m->stored || !m->late.pending || !m->late.own)
        return HED_ENOMEM;
    hed_pass_did(l, "%u values", count_true(m->loose, m->flow.nvalues));
    return 0;
}

int
hed_pass_solo(struct hed_lower *l)
{
    struct mask *m = hed_mask_state(l);

    m->runs_solo = hed_solo_init(&m->flow, &m->uniforms);
    if (!m->runs_solo)
        return HED_ENOMEM;
    hed_pass_did(l, "%u loops", count_true(m->runs_solo, m->flow.nloops));
    return 0;
}

int
hed_pass_guess(struct hed_lower *l)
{
    struct mask *m = hed_mask_state(l);
    uint32_t count = 0;

    m->guesses = hed_guess_init(&m->flow, &m->uniforms);
    if (!m->guesses)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < m->flow.nloops; i++)
        count += m->guesses[i] != NULL;
    hed_pass_did(l, "%u loops", count);
    return 0;
}

/* 8 sums, and what a step multiplies: the registers of AVX-512 hold 16 numbers for 32 lanes, and
 * keep more than that with few loads and stores. Those of AVX2 hold 16 for 8 lanes (tile.c), so 4
 * for all. */
#define TILE_ROWS 4
#define TILE_COLUMNS 2

int
hed_pass_tiles(struct hed_lower *l)
{
    struct mask *m = hed_mask_state(l);
    const bool in_pieces = hed_mask_has_pieces(l);
    const struct hed_tile_size size = {TILE_ROWS, TILE_COLUMNS,
                                       in_pieces ? 4 : 3 * TILE_ROWS * TILE_COLUMNS};
    int err = 0;

    if (in_pieces || hed_lower_has(l, "avx512vl"))
        err = hed_tiles_order(&m->flow, &m->ssa, size, &m->tiles);
    hed_pass_did(l, "%u moved", m->tiles.moved);
    return err;
}
