/* Whether a warp can run a kernel under masks (lower/mask), and which of its loops may wait.
 *
 * Under masks the order of blocks is fixed: a lane that has left a loop waits behind it until all
 * lanes have left. So a lane in the loop must not wait for it, and at a barrier no lane of the warp
 * may be missing.
 */
#pragma once

#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/uniform.h"

struct hed_ptx_unit;

struct hed_masks {
    const char *why; /* why it cannot; NULL if it can */
    bool is_apart;   /* no other shape can either: apart.h, and functions that wait */
    bool *waits;     /* by loop: it may wait for other threads */
    bool any_waits;  /* there is such a loop */
};

/* u belongs to f; `unit` holds the functions that the kernel can reach. HED_ENOMEM. The memory is
 * the flow's. */
int hed_masks_init(struct hed_masks *m, struct hed_flow *f, const struct hed_uniforms *u,
                   const struct hed_ptx_unit *unit);
bool hed_masks_is_barrier(const struct hed_ptx_inst *i);
/* May lanes of the warp be missing at a barrier in block b? */
bool hed_masks_is_split(const struct hed_uniforms *u, uint32_t b, const struct hed_ptx_inst *i);
