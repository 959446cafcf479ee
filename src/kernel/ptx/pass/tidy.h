/* Values of machine code are mostly written under a guard, and nobody reads what they were before:
 * a guard that does not matter is taken away. So are the halves of numbers between the
 * instructions that make a whole of them again.
 *
 *      @%p3 mul.wide.u32 %d90.2, %r71, %t4;          mul.wide.u32 %d90.2, %r71, %t4;
 *      @%p3 add.s64 %d74.3, %d90.2, %d74.1;    ->    add.s64 %d74.3, %d90.2, %d74.1;
 *      @%p3 st.global.b32 [%d74.3], %r1;             @%p3 st.global.b32 [%d74.3], %r1;
 *
 *      mov.b64 {%r2.1, %r3.1}, %q1;                  mov.b64 {%r2.1, %r3.1}, %q1;
 *      mov.b64 %d2.1, {%r2.1, %r3.1};          ->    mov.b64 %d2.1, %q1;
 *
 * Without that, what lanes had in a register long ago would say what is known of it now.
 */
#pragma once

#include "kernel/ptx/pass/flow.h"
#include "kernel/ptx/pass/ssa.h"

struct hed_tidied {
    uint32_t guards, wholes; /* that were taken away, that were found */
};

/* Changes the instructions of the flow's blocks, which are copies, and what is known of old values
 * and of reads. HED_ENOMEM. */
int hed_tidy(struct hed_flow *f, struct hed_ssa *s, struct hed_tidied *did);
