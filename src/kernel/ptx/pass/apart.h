/* Do lanes that part come to the same operation among lanes at different places?
 *
 *      if (lane == 0) { ...; v = shfl.sync(all, v); }
 *      else           { v = shfl.sync(all, v); ... }
 *
 * The two wait for each other (interp/join.h). Compiled code does not: under masks one side runs
 * before the other, and the machine of lanes (run/warp.h) knows nothing of values. So such kernels
 * are left to the baseline tier.
 */
#pragma once

#include "kernel/ptx/pass/uniform.h"

struct hed_ptx_func;

/* Whether they may in a function, whatever its block looks like. Also true if that cannot be told:
 * its blocks have no order, or it is too large. */
bool hed_apart_in(const struct hed_ptx_func *f);
/* Whether they may, for all that is known of a function whose blocks have no order. */
bool hed_apart_unknown(const struct hed_ptx_func *f);
/* Does any instruction of a function wait for other lanes of the warp? */
bool hed_apart_awaits(const struct hed_ptx_func *f);

/* The same for a kernel whose flow is known. u belongs to f, whose memory is used: HED_ENOMEM. */
int hed_apart_find(struct hed_flow *f, const struct hed_uniforms *u, bool *apart);
