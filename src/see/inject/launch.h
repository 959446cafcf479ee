/* Keeping a launch from running. A callback cannot stop a call, but the driver reads its arguments
 * again after ENTER. With no blocks in its grid a launch is refused without doing anything, and at
 * EXIT the answer is repaired. */
#pragma once

#include <stdbool.h>

#include "core/layer.h"

/* The original arguments. */
struct hed_inject_void {
    unsigned grid;
    const CUlaunchConfig *config;
    CUlaunchConfig empty;
};

/* Can a launch of this kind be kept from running, as far as we know? */
bool hed_inject_voids(enum hed_cuda_call id);

/* Is that so with this driver? NVIDIA does not promise it, so it is tried on a launch that is made
 * anyway: a launch that ran although it was voided must never be in a queue, too. */
enum hed_inject_proof { HED_INJECT_UNPROVEN, HED_INJECT_WORKS, HED_INJECT_FAILS };

enum hed_inject_proof hed_inject_proof(enum hed_cuda_call id);
void hed_inject_prove(enum hed_cuda_call id, enum hed_inject_proof proof);

/* Is that the driver's answer to an empty launch? It may check the grid together with other things
 * that must fit it. */
bool hed_inject_is_refusal(CUresult result);

/* Makes it an empty launch. `params` are the driver's; `v` must live until they are restored. */
void hed_inject_void(struct hed_inject_void *v, enum hed_cuda_call id, void *params);
void hed_inject_put_back(const struct hed_inject_void *v, enum hed_cuda_call id, void *params);
