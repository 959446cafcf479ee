/* The lanes of a warp: where each of them is, and what they do together. Compiled code of the warp
 * shape calls these functions; they know no device and no block.
 *
 * Lanes that take different ways are run one way at a time. `pc` says where a lane waits: a number
 * that grows with the place in the text. The lowest is always run next, so that lanes that took a
 * long way round are waited for at the place where the ways meet:
 *
 *   running --branch: some lanes go elsewhere--> hed_warp_wait (those), go on (these)
 *   running --at a place where others wait, or behind it--> hed_warp_wait, hed_warp_next
 *   running --at an operation for several lanes--> hed_warp_meet: go on, or be parked
 *   running --too long in a loop that may wait for another lane--> hed_warp_rotate
 *
 * Invariants:
 * 1. A lane is running (its bit is in the strand's current set, pc is NONE), waiting (pc below
 *    PARKED), parked (PARKED | place), or gone (pc NONE, bit not set).
 * 2. next is at most the lowest pc of all waiting lanes, except while lanes run that rotate let go
 *    first; it is NONE only if nobody waits or is parked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ptx/run/abi.h"

#define HED_WARP_NONE UINT32_C(0xffffffff)
#define HED_WARP_PARKED UINT32_C(0x80000000)
#define HED_WARP_FAR UINT32_C(0x7fffffff)

struct hed_warp {
    uint32_t pc[HED_PTX_LANES];
    uint32_t next;   /* where the next lanes wait; see invariant 2 */
    uint32_t active; /* an answer of next and rotate: the lanes that go on */
    uint32_t forced; /* the lanes that go on were parked, and whom they wait for cannot come */
};

void hed_warp_init(struct hed_warp *w);
void hed_warp_wait(struct hed_warp *w, uint32_t lanes, uint32_t pc);

/* Where to go on, with w->active; active is 0 when no lane is left. */
uint32_t hed_warp_next(struct hed_warp *w);

/* These lanes wait at pc; others, behind it in the text, are let go first if there are any. */
uint32_t hed_warp_rotate(struct hed_warp *w, uint32_t lanes, uint32_t pc);

/* These lanes are at pc and need `required` there too. The lanes that are there now, all of them:
 * go on. 0: they are parked; go to hed_warp_next. */
uint32_t hed_warp_meet(struct hed_warp *w, uint32_t lanes, uint32_t pc, uint32_t required);

/* ---- what lanes do together; arrays have 32 entries, one a lane ---------------------------- */

/* The lane that a lane's shuffle reads; its own, and false, if that is outside the segment. */
bool hed_warp_source(uint32_t mode, unsigned lane, uint32_t b, uint32_t c, unsigned *from);

/* out[i] for all lanes; the answer has the bits of those whose source was inside the segment. */
uint32_t hed_warp_shfl(uint32_t mode, const uint32_t *values, const uint32_t *b, const uint32_t *c,
                       uint32_t *out);
void hed_warp_match_any(const uint64_t *values, const uint32_t *masks, uint32_t lanes,
                        uint32_t *out);
uint32_t hed_warp_match_all(const uint64_t *values, const uint32_t *masks, uint32_t lanes,
                            uint32_t *out); /* bits of lanes whose group is all the same */
void hed_warp_redux(uint32_t op, const uint32_t *values, const uint32_t *masks, uint32_t lanes,
                    uint32_t *out);

/* These functions by name. A NULL name ends it. */
extern const struct hed_ptx_symbol hed_ptx_warp_helpers[];
