/* Where heddle is installed: the folder of its libraries, found from where the command lies. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct hed_config;
struct hed_why;

enum hed_place_lib {
    HED_PLACE_CORE, /* libheddle.so.0 */
    HED_PLACE_CUDA, /* libcuda.so.1 */
    HED_PLACE_NVML, /* libnvidia-ml.so.1 */
    HED_PLACE_COUNT
};

struct hed_place {
    char dir[PATH_MAX];                  /* absolute, no links */
    char lib[HED_PLACE_COUNT][PATH_MAX]; /* full paths */
};

/* The path of a plug-in, which need not be there. False: it is not, or the path is too long. */
bool hed_place_plugin(const struct hed_place *p, const char *name, char *out, size_t size);

/* Where work runs: the setting, with "auto" replaced by what it comes to here. */
const char *hed_place_gpu(const struct hed_place *p, const struct hed_config *c);

/* Are the libraries there, readable and made for this machine? Else HED_E... and the reason. */
int hed_place_find(struct hed_place *out, struct hed_why *why);
