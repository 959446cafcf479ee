/* Keeping a launch from running. A callback cannot stop a call, but the driver takes its arguments
 * again after ENTER: with no blocks in its grid a launch is refused without doing anything, and at
 * EXIT the answer is put right. */
#pragma once

#include <stdbool.h>

#include "core/layer.h"

/* What stood there. */
struct hed_inject_void {
    unsigned grid;
    const CUlaunchConfig *config;
    CUlaunchConfig empty;
};

/* Can it be kept from running, by all that is known? */
bool hed_inject_voids(enum hed_cuda_call id);

/* Is that so with this driver? Nobody promises it, so it is tried on a launch that is made anyway:
 * a launch that ran although it was voided must never be one that is also in a queue. */
enum hed_inject_proof { HED_INJECT_UNPROVEN, HED_INJECT_WORKS, HED_INJECT_FAILS };

enum hed_inject_proof hed_inject_proof(enum hed_cuda_call id);
void hed_inject_prove(enum hed_cuda_call id, enum hed_inject_proof proof);

/* Is that what the driver says to a launch of nothing? The grid may be looked at together with what
 * else must fit to it. */
bool hed_inject_is_refusal(CUresult result);

/* Makes it a launch of nothing. `params` are the driver's; `v` must stay until they are put back.
 */
void hed_inject_void(struct hed_inject_void *v, enum hed_cuda_call id, void *params);
void hed_inject_put_back(const struct hed_inject_void *v, enum hed_cuda_call id, void *params);
