/* The values of special registers. */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"

/* What we report as the number of warps that an SM can hold. */
#define WARPS_OF_SM 64

/* Writes one value to all lanes. */
static inline const struct interp_step *
splat_word(struct interp_warp *w, const struct interp_step *s, uint32_t v)
{
    COMPUTE_LANES(uint32_t, r = v);
}

static inline const struct interp_step *
splat_wide(struct interp_warp *w, const struct interp_step *s, uint64_t v)
{
    COMPUTE_LANES(uint64_t, r = v);
}

static uint32_t
lanemask_of(unsigned sreg, unsigned lane)
{
    const uint32_t own = UINT32_C(1) << lane;

    switch (sreg) {
    case HED_PTX_SREG_LANEMASK_EQ:
        return own;
    case HED_PTX_SREG_LANEMASK_LT:
        return own - 1;
    case HED_PTX_SREG_LANEMASK_LE:
        return own | (own - 1);
    case HED_PTX_SREG_LANEMASK_GE:
        return ~(own - 1);
    case HED_PTX_SREG_LANEMASK_GT:
        return ~(own | (own - 1));
    default:
        return lane;
    }
}

/* Registers that differ by lane. e is the register, imm the dimension. */
static INTERP_STEP(sreg_of_lane)
{
    const uint32_t *tid = w->warp->tid[s->imm];
    const unsigned sreg = s->e;

    if (sreg == HED_PTX_SREG_TID) {
        COMPUTE_LANES(uint32_t, r = tid[i]);
    }
    COMPUTE_LANES(uint32_t, r = lanemask_of(sreg, i));
}

static uint32_t
cluster_position(const struct interp_warp *w, unsigned k)
{
    return w->warp->block->ctaid[k] % w->warp->grid->ncluster[k];
}

static uint32_t
blocks_of_cluster(const struct interp_warp *w)
{
    const uint32_t *n = w->warp->grid->ncluster;

    return n[0] * n[1] * n[2];
}

static uint64_t
dimension_value(const struct interp_warp *w, unsigned sreg, unsigned k)
{
    const struct hed_ptx_grid *g = w->warp->grid;
    const struct hed_ptx_block *b = w->warp->block;

    switch (sreg) {
    case HED_PTX_SREG_NTID:
        return g->ntid[k];
    case HED_PTX_SREG_CTAID:
        return b->ctaid[k];
    case HED_PTX_SREG_NCTAID:
        return g->nctaid[k];
    case HED_PTX_SREG_CLUSTERID:
        return b->ctaid[k] / g->ncluster[k];
    case HED_PTX_SREG_NCLUSTERID:
        return g->nctaid[k] / g->ncluster[k];
    case HED_PTX_SREG_CLUSTER_CTAID:
        return cluster_position(w, k);
    default:
        return g->ncluster[k];
    }
}

static uint64_t
clock_value(const struct interp_warp *w, unsigned sreg)
{
    switch (sreg) {
    case HED_PTX_SREG_CLOCK:
    case HED_PTX_SREG_CLOCK64:
        return w->warp->grid->host->clock(w->warp);
    case HED_PTX_SREG_CLOCK_HI:
        return w->warp->grid->host->clock(w->warp) >> 32;
    case HED_PTX_SREG_GLOBALTIMER_HI:
        return w->warp->grid->host->globaltimer(w->warp) >> 32;
    default:
        return w->warp->grid->host->globaltimer(w->warp);
    }
}

static uint64_t
plain_value(const struct interp_warp *w, unsigned sreg)
{
    const struct hed_ptx_grid *g = w->warp->grid;
    const uint32_t *n = g->ncluster;

    switch (sreg) {
    case HED_PTX_SREG_CLOCK:
    case HED_PTX_SREG_CLOCK_HI:
    case HED_PTX_SREG_CLOCK64:
    case HED_PTX_SREG_GLOBALTIMER:
    case HED_PTX_SREG_GLOBALTIMER_LO:
    case HED_PTX_SREG_GLOBALTIMER_HI:
        return clock_value(w, sreg);
    case HED_PTX_SREG_WARPID:
        return w->warp->warp;
    case HED_PTX_SREG_NWARPID:
        return WARPS_OF_SM;
    case HED_PTX_SREG_SMID:
        return w->warp->block->smid;
    case HED_PTX_SREG_NSMID:
        return g->nsm;
    case HED_PTX_SREG_GRIDID:
        return g->id;
    case HED_PTX_SREG_CLUSTER_CTARANK:
        return (cluster_position(w, 2) * n[1] + cluster_position(w, 1)) * n[0] +
               cluster_position(w, 0);
    case HED_PTX_SREG_CLUSTER_NCTARANK:
        return blocks_of_cluster(w);
    case HED_PTX_SREG_TOTAL_SMEM_SIZE:
    case HED_PTX_SREG_AGGR_SMEM_SIZE:
        return g->total_shared;
    case HED_PTX_SREG_DYNAMIC_SMEM_SIZE:
        return g->dynamic_shared;
    case HED_PTX_SREG_ENVREG1:
        return g->workspace >> 32;
    case HED_PTX_SREG_ENVREG2:
        return (uint32_t)g->workspace;
    default:
        /* Event counters and registers of the system: we count nothing and keep nothing. */
        return 0;
    }
}

static INTERP_STEP(sreg_with_dimensions)
{
    return splat_word(w, s, (uint32_t)dimension_value(w, s->e, (unsigned)s->imm));
}

static INTERP_STEP(sreg_plain)
{
    const unsigned bytes = interp_bytes(hed_ptx_sregs[s->e].type);

    if (bytes == 8)
        return splat_wide(w, s, plain_value(w, s->e));
    if (bytes == 4)
        return splat_word(w, s, (uint32_t)plain_value(w, s->e));
    interp_set_predicate(w, s->d, blocks_of_cluster(w) > 1 ? UINT32_MAX : 0);
    return s + 1;
}

uint32_t
hed_interp_sreg(struct interp_decoder *d, const struct hed_ptx_operand *o, uint32_t to)
{
    const unsigned k = o->sel ? o->sel - 1u : 0;
    interp_run run = hed_ptx_sregs[o->sreg].dims ? sreg_with_dimensions : sreg_plain;
    struct interp_step *s;

    if (hed_ptx_sregs[o->sreg].dims && k > 2)
        return hed_interp_constant(d, 0, 4);
    switch (o->sreg) {
    case HED_PTX_SREG_TID:
    case HED_PTX_SREG_LANEID:
    case HED_PTX_SREG_LANEMASK_EQ:
    case HED_PTX_SREG_LANEMASK_LE:
    case HED_PTX_SREG_LANEMASK_LT:
    case HED_PTX_SREG_LANEMASK_GE:
    case HED_PTX_SREG_LANEMASK_GT:
        run = sreg_of_lane;
        break;
    default:
        break;
    }
    s = hed_interp_emit3(d, run, to, 0, 0, 0);
    s->e = o->sreg;
    s->imm = k;
    return to;
}
