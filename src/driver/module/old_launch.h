/* What the calls of CUDA's first years set for a function before cuLaunch: block, shared memory,
 * parameters. cuLaunchKernel ignores it. */
#pragma once

#include <stdint.h>

#include "core/layer.h"

#define HED_OLD_PARAMS_MAX 4096 /* bytes: "The maximum size of kernel parameters" then */

struct hed_old_launch {
    uint32_t block[3];
    uint32_t shared;
    uint32_t param_bytes;
    unsigned char params[HED_OLD_PARAMS_MAX];
};

/* The calls, which are in the table of launch.c. */
CUresult hed_old_cuFuncSetBlockShape(struct hed_layer *self, struct hed_cuFuncSetBlockShape *a);
CUresult hed_old_cuFuncSetSharedSize(struct hed_layer *self, struct hed_cuFuncSetSharedSize *a);
CUresult hed_old_cuParamSetSize(struct hed_layer *self, struct hed_cuParamSetSize *a);
CUresult hed_old_cuParamSeti(struct hed_layer *self, struct hed_cuParamSeti *a);
CUresult hed_old_cuParamSetf(struct hed_layer *self, struct hed_cuParamSetf *a);
CUresult hed_old_cuParamSetv(struct hed_layer *self, struct hed_cuParamSetv *a);
CUresult hed_old_cuLaunch(struct hed_layer *self, struct hed_cuLaunch *a);
CUresult hed_old_cuLaunchGrid(struct hed_layer *self, struct hed_cuLaunchGrid *a);
CUresult hed_old_cuLaunchGridAsync(struct hed_layer *self, struct hed_cuLaunchGridAsync *a);
