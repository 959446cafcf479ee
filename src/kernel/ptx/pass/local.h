/* Which variables in local memory can lie element by element, with the lane as the last index.
 *
 *      lane by lane        lane 0: a[0] a[1] a[2] ...      lane 1: a[0] a[1] a[2] ...
 *      element by element  a[0] of lanes 0..31             a[1] of lanes 0..31          ...
 *
 * Element by element, an access with the same index in all lanes is one vector access. An address
 * of such a variable is then no address but the offset of a byte in the lane's own copy, and so the
 * same in all lanes unless the index differs. That works where every use of the address is known:
 *
 *      mov.u64 %rd1, a;  add.s64 %rd2, %rd1, %rd9;  ld.local.u32 %r1, [%rd2+4];
 *
 * A variable whose address goes anywhere else (memory, calls, other arithmetic), or whose elements
 * have several sizes, lies lane by lane.
 */
#pragma once

#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/ssa.h"

struct hed_local {
    const struct hed_ptx_var *var;
    unsigned unit;    /* bytes that lie together: the smallest element that is accessed */
    unsigned largest; /* element, in bytes */
    bool escapes;     /* the address is used in a way that is not followed */
};

struct hed_locals {
    struct hed_local *vars; /* the function's variables in local memory */
    uint32_t nvars;
    const struct hed_local **of; /* by value: the variable, lying element by element, into which
                                  * this is an offset; or NULL */
};

/* On a flow in static single assignment form. HED_ENOMEM. The memory is the flow's. */
int hed_locals_init(struct hed_locals *s, struct hed_flow *f, const struct hed_ssa *ssa);
/* The variable's entry if it lies element by element, else NULL. */
const struct hed_local *hed_locals_find(const struct hed_locals *s, const struct hed_ptx_var *v);
/* The same for the variable that an operand of ld or st points into. */
const struct hed_local *hed_locals_accessed(const struct hed_locals *s,
                                            const struct hed_ptx_operand *memory);
