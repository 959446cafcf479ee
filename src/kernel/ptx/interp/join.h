/* Lanes that come to the same operation at different steps, or in different calls of a function.
 *
 * "shfl.sync will cause executing thread to wait until all non-exited threads corresponding to
 * membermask have executed shfl.sync with the same qualifiers and same membermask value" (PTX ISA):
 * which instruction of the program that is does not matter. Compilers rely on it. They move a
 * condition out of a loop, for example, and then each copy of the loop has its own shuffle:
 *
 *      if (lane == 0)  for (...) { ...  v += shfl(all, v, 1); }
 *      else            for (...) {      v += shfl(all, v, 1); }
 *
 * Lanes are parked at such operations anyway. When no lane can run, those that wait for each other
 * do the operation together and go on, each at its own place.
 */
#pragma once

#include "kernel/ptx/interp/inside.h"

#define INTERP_BIT 1u /* of interp_joint.bytes: a predicate */

enum interp_result {
    INTERP_NO_RESULT,
    INTERP_WORD_OR_BIT,  /* at d, in which `more` says which */
    INTERP_WORD_AND_BIT, /* at d, and a predicate at the place in `more` */
};

/* An operation among lanes. */
struct interp_joint {
    void (*act)(struct interp_warp *w, const struct interp_step *s); /* after the meeting */
    uint8_t bytes[3]; /* of the elements at a, b and c; 0: not a place */
    uint8_t result;   /* enum interp_result */
    bool is_barrier;  /* a and b are its id and size; otherwise imm is the place of the mask */
};

/* Of a step at which lanes are parked. NULL if lanes at different steps cannot do it together. */
const struct interp_joint *hed_interp_joint(const struct interp_step *s); /* family/sync.c */

/* No lane can run. Lanes that are parked at an operation for which all are there do it, and wait
 * behind it. False if there are none. */
bool hed_interp_join(struct interp_warp *w);
