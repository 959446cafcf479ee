/* The lanes of a warp: where each of them is, and what they do together. Compiled code of the warp
 * shape calls these functions; they know nothing of devices and blocks.
 *
 * Lanes that take different paths run one path at a time. The pc of a lane says where it waits: a
 * number that grows with the position in the text. The lanes with the lowest pc always run next, so
 * that lanes on a shorter path wait where the paths meet:
 *
 *   running --branch: some lanes go elsewhere--> they hed_warp_wait, the others go on
 *   running --at a place where others wait, or after it--> hed_warp_wait, hed_warp_next
 *   running --at an operation for several lanes--> hed_warp_meet: go on, or be parked
 *   running --too long in a loop that may wait for another lane--> hed_warp_rotate
 *
 * Invariants:
 * 1. A lane is running (its bit is in the warp's current set, pc is NONE), waiting (pc below
 *    PARKED), parked (PARKED | place), or gone (pc NONE, bit not set).
 * 2. next is at most the lowest pc of all waiting lanes, except while lanes run that
 *    hed_warp_rotate put first; it is NONE only if no lane waits or is parked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/ptx/run/abi.h"

#define HED_WARP_NONE UINT32_C(0xffffffff)
#define HED_WARP_PARKED UINT32_C(0x80000000)
#define HED_WARP_FAR UINT32_C(0x7fffffff)

/* Walks over the lanes of a mask:
 *
 *   for (uint32_t left = mask, lane; hed_next_lane(&left, &lane);)
 */
static inline bool
hed_next_lane(uint32_t *left, uint32_t *lane)
{
    if (*left == 0)
        return false;
    *lane = (uint32_t)__builtin_ctz(*left);
    *left &= *left - 1;
    return true;
}

struct hed_warp {
    uint32_t pc[HED_PTX_LANES];
    uint32_t next;   /* where the next lanes wait; see invariant 2 */
    uint32_t active; /* set by next and rotate: the lanes that go on */
    uint32_t forced; /* the lanes that go on were parked, and those they wait for cannot come */
};

void hed_warp_init(struct hed_warp *w);
void hed_warp_wait(struct hed_warp *w, uint32_t lanes, uint32_t pc);

/* Returns the pc where the lanes in w->active go on; active is 0 if no lane is left. */
uint32_t hed_warp_next(struct hed_warp *w);

/* These lanes wait at pc. Lanes further down in the text, if there are any, run first. */
uint32_t hed_warp_rotate(struct hed_warp *w, uint32_t lanes, uint32_t pc);

/* These lanes are at pc and need the lanes `required` there too. Returns all lanes that are at pc
 * if they may go on; 0 if they are parked, and hed_warp_next comes next. */
uint32_t hed_warp_meet(struct hed_warp *w, uint32_t lanes, uint32_t pc, uint32_t required);

/* ---- what lanes do together; arrays have 32 entries, one a lane ------------------------------ */

/* Sets *from to the lane that a lane's shuffle reads; false, and the lane itself, if that is
 * outside of the segment. */
bool hed_warp_source(uint32_t mode, unsigned lane, uint32_t b, uint32_t c, unsigned *from);

/* Sets out[i] for all lanes. Returns the bits of the lanes whose source is inside the segment. */
uint32_t hed_warp_shfl(uint32_t mode, const uint32_t *values, const uint32_t *b, const uint32_t *c,
                       uint32_t *out);
void hed_warp_match_any(const uint64_t *values, const uint32_t *masks, uint32_t lanes,
                        uint32_t *out);
uint32_t hed_warp_match_all(const uint64_t *values, const uint32_t *masks, uint32_t lanes,
                            uint32_t *out); /* bits of lanes whose group is all the same */
void hed_warp_redux(uint32_t op, const uint32_t *values, const uint32_t *masks, uint32_t lanes,
                    uint32_t *out);

/* These functions by name; a NULL name ends the table. */
extern const struct hed_ptx_symbol hed_ptx_warp_helpers[];
