/* Attributes of a launch: launch_attributes.c. */
#pragma once

#include "gen/cuda_abi.h"

struct hed_kernel_work;

/* Checks them, keeps a copy, and puts what concerns the machine (clusters, cooperation) into the
 * launch, whose grid and function are set. INVALID_VALUE, INVALID_CLUSTER_SIZE, NOT_SUPPORTED. */
CUresult hed_launch_attributes(struct hed_kernel_work *k, const CUlaunchAttribute *attributes,
                               unsigned count);
