/* Where heddle is installed: the folder of its libraries, found from the command's own folder. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct hed_why;

enum hed_install_lib {
    HED_INSTALL_CORE, /* libheddle.so.0 */
    HED_INSTALL_CUDA, /* libcuda.so.1 */
    HED_INSTALL_NVML, /* libnvidia-ml.so.1 */
    HED_INSTALL_COUNT
};

struct hed_install {
    char dir[PATH_MAX];                    /* absolute, no links */
    char lib[HED_INSTALL_COUNT][PATH_MAX]; /* full paths */
};

/* The path of a plug-in. False if the plug-in is not installed or the path is too long. */
bool hed_install_plugin(const struct hed_install *p, const char *name, char *out, size_t size);

/* Where work runs: the setting `gpu`, with "auto" replaced by what it means on this machine.
 * `driver` is the setting of that name. */
const char *hed_install_gpu(const struct hed_install *p, const char *gpu, const char *driver);

/* Finds the libraries, and checks that they can be read and were built for this machine. */
int hed_install_find(struct hed_install *out, struct hed_why *why);
