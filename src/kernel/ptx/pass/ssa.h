/* Static single assignment: every register becomes one or more values, each written in one place.
 *
 *      text                               values
 *      mov.u32 %r1, 0;                    mov.u32 %r1.1, 0;
 *   L: add.u32 %r1, %r1, %r2;          L: %r1.2 = phi(%r1.1 from 0, %r1.3 from 1)
 *      setp.lt.u32 %p1, %r1, 9;           add.u32 %r1.3, %r1.2, %r2.1;
 *   @%p1 bra L;                           setp.lt.u32 %p1.1, %r1.3, 9;  @%p1.1 bra L;
 *      st.u32 [%rd1], %r1;                %r1.4 = phi(%r1.3 from 1)     st.u32 [%rd1.1], %r1.4;
 *
 * A value that is computed in a loop and read behind it goes through a phi at the loop's exit, as
 * %r1.4 does: where lanes leave a loop one by one, each keeps the value that it left with.
 */
#pragma once

#include "kernel/ptx/pass/flow.h"

/* What is known of a value, by its id. */
struct hed_ssa_value {
    const struct hed_ptx_inst *made_by; /* NULL for phis and for values that are never written */
    const struct hed_flow_phi *phi;
    uint32_t block;                /* where it is written */
    const struct hed_ptx_reg *old; /* of a guarded write: what the other lanes keep, or NULL */
};

struct hed_ssa {
    struct hed_ssa_value *values; /* by id; in the flow's memory */
    uint32_t room;
    bool *is_read; /* by id: an instruction, a guard or a phi reads it; in the flow's memory */
};

/* Replaces the instructions of the flow's blocks by copies whose registers are values, and sets
 * phis, values and nvalues. The function itself stays as it is. HED_ENOTSUP with the reason for
 * vector registers; HED_ENOMEM. */
int hed_ssa_init(struct hed_ssa *s, struct hed_flow *f, const char **why);
/* Sets is_read anew. HED_ENOMEM. */
int hed_ssa_find_reads(struct hed_ssa *s, struct hed_flow *f);
/* Is a value written, and in this loop? */
bool hed_ssa_is_made_in(const struct hed_ssa *s, const struct hed_flow *f, uint32_t id,
                        uint32_t loop);
