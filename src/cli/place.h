/* Where heddle is installed: the folder of its libraries, found from where the command lies. */
#pragma once

#include <limits.h>

struct hed_why;

enum hed_place_lib {
    HED_PLACE_CORE, /* libheddle.so */
    HED_PLACE_CUDA, /* libcuda.so.1 */
    HED_PLACE_NVML, /* libnvidia-ml.so.1 */
    HED_PLACE_COUNT
};

struct hed_place {
    char dir[PATH_MAX];                  /* absolute, no links */
    char lib[HED_PLACE_COUNT][PATH_MAX]; /* full paths */
};

/* Are the libraries there, readable and made for this machine? Else HED_E... and the reason. */
int hed_place_find(struct hed_place *out, struct hed_why *why);
