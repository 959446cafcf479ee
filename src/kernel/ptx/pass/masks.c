/* Whether a warp can run a kernel under masks. See masks.h. */
#include "kernel/ptx/pass/masks.h"

#include <stdlib.h>

#include "base/err.h"
#include "kernel/ptx/pass/apart.h"
#include "kernel/ptx/pass/pass.h"

#define LANES_MAX 16000 /* instructions for 32 lanes; LLVM takes 2 to 3 ms for each */

/* ---- loops that may wait --------------------------------------------------------------------- */

/* A loop that all lanes of the warp go round together can only wait for other warps. In any other,
 * a lane may wait for one that waits behind the loop. */
static bool
goes_round_together(const struct hed_uniforms *u, uint32_t loop)
{
    return !u->leaves_singly[loop] && !u->partial[u->f->loops[loop].header];
}

/* Notes the loop that begins at a block, to which a branch of a loop that may wait goes back. If
 * the text has another order than the flow, that is a block inside of the loop. */
static void
note_wait(struct hed_masks *m, const struct hed_uniforms *u, uint32_t block)
{
    const struct hed_flow *f = u->f;
    uint32_t loop = block == HED_FLOW_NONE ? HED_FLOW_NONE : f->blocks[block].loop;

    while (loop != HED_FLOW_NONE) {
        m->waits[loop] = true;
        if (!goes_round_together(u, loop))
            m->why = "a loop in which a lane may wait for another";
        loop = f->loops[loop].header == block ? HED_FLOW_NONE : f->loops[loop].parent;
    }
}

static int
find_waiting_loops(struct hed_masks *m, struct hed_flow *f, const struct hed_uniforms *u,
                   const struct hed_ptx_unit *unit)
{
    bool *labels = calloc((size_t)f->func->nlabels + 1, sizeof(bool));
    int err = HED_ENOMEM;

    m->waits = hed_flow_alloc(f, f->nloops, sizeof(bool));
    if (m->waits && labels)
        err = hed_ptx_find_waits(unit, f->func, labels, &m->any_waits);
    for (uint32_t i = 0; !err && i < f->func->nlabels; i++)
        if (labels[i])
            note_wait(m, u, f->of_label[i]);
    free(labels);
    return err;
}

/* ---- instructions ---------------------------------------------------------------------------- */

bool
hed_masks_is_barrier(const struct hed_ptx_inst *i)
{
    switch (i->form->op) {
    case HED_PTX_OP_BARRIER_SYNC:
    case HED_PTX_OP_BARRIER_ARRIVE:
    case HED_PTX_OP_BARRIER_RED:
    case HED_PTX_OP_CLUSTER_WAIT:
        return true;
    default:
        return false;
    }
}

bool
hed_masks_is_split(const struct hed_uniforms *u, uint32_t b, const struct hed_ptx_inst *i)
{
    return u->partial[b] || (i->guard && u->values[i->guard->id].kind != HED_UNIFORM);
}

static const char *
why_not_blocks(const struct hed_uniforms *u)
{
    uint32_t lanes = 0;

    for (uint32_t b = 0; b < u->f->nblocks; b++) {
        const struct hed_flow_block *block = &u->f->blocks[b];

        for (uint32_t k = 0; k < block->ninsts; k++) {
            const struct hed_ptx_inst *i = block->insts[k];

            if (hed_masks_is_barrier(i) && hed_masks_is_split(u, b, i))
                return "a barrier that some lanes do not reach";
            lanes += !i->is_refused && hed_uniform_way(u, i) == HED_PER_LANE;
        }
    }
    return lanes > LANES_MAX ? "too many instructions" : NULL;
}

int
hed_masks_init(struct hed_masks *m, struct hed_flow *f, const struct hed_uniforms *u,
               const struct hed_ptx_unit *unit)
{
    int err;

    *m = (struct hed_masks){0};
    err = hed_apart_find(f, u, &m->is_apart);
    if (err == 0)
        err = find_waiting_loops(m, f, u, unit);
    if (m->is_apart)
        m->why = "an operation that lanes may come to at different places";
    if (err == 0 && !m->why)
        m->why = why_not_blocks(u);
    return err;
}
