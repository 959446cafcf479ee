/* Which values are read later: at the end of each block, and behind an instruction.
 *
 *      %a = ...            live behind the barrier: %a, and the source of the phi that the edge
 *      bar.sync 0;         to the next block reads
 *      %b = add %a, 1
 */
#pragma once

#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/ssa.h"

struct hed_live {
    const struct hed_flow *f;
    const struct hed_ssa *ssa;
    uint32_t words; /* 64-bit words of a set of values */
    uint64_t *in;   /* by block: read in it or later, and not made in it */
    uint64_t *out;  /* by block: read behind it, phis of the next blocks included */
};

/* On a flow in static single assignment form. HED_ENOMEM. The memory is the flow's. */
int hed_live_init(struct hed_live *live, struct hed_flow *f, const struct hed_ssa *ssa);
/* Fills a set of live->words words with what is live behind instruction i of a block. */
void hed_live_behind(const struct hed_live *live, uint32_t block, uint32_t i, uint64_t *set);

static inline bool
hed_live_has(const uint64_t *set, uint32_t value)
{
    return set[value / 64] >> (value % 64) & 1;
}
