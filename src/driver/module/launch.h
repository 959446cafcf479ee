/* Checks of a launch: shape.c; its attributes: launch_attributes.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gen/cuda_abi.h"

struct hed_code_kernel;
struct hed_function;
struct hed_profile;
struct hed_launch;

/* May the kernel be launched with such a grid of such blocks on the device? */
bool hed_launch_shape_fits(const struct hed_code_kernel *k, const struct hed_profile *p,
                           const uint32_t grid[3], const uint32_t block[3]);

/* Checks the attributes and copies those that concern the machine (clusters, cooperative) to the
 * launch, whose grid is set. INVALID_VALUE, INVALID_CLUSTER_SIZE, NOT_SUPPORTED (the log names the
 * kernel). */
CUresult hed_launch_attributes(struct hed_function *f, struct hed_launch *l,
                               const CUlaunchAttribute *attributes, unsigned count);

/* Gives the launch its own copy of the attributes. */
CUresult hed_launch_keep(struct hed_launch *l, const CUlaunchAttribute *attributes, unsigned count);
