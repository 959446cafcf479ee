/* Attributes of a launch: launch_attributes.c. */
#pragma once

#include "gen/cuda_abi.h"

struct hed_function;
struct hed_launch;

/* Checks the attributes and copies those that concern the machine (clusters, cooperative) to the
 * launch, whose grid is set. INVALID_VALUE, INVALID_CLUSTER_SIZE, NOT_SUPPORTED (the log names the
 * kernel). */
CUresult hed_launch_attributes(struct hed_function *f, struct hed_launch *l,
                               const CUlaunchAttribute *attributes, unsigned count);

/* Gives the launch its own copy of the attributes. */
CUresult hed_launch_keep(struct hed_launch *l, const CUlaunchAttribute *attributes, unsigned count);
