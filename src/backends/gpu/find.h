/* Finding NVIDIA's library: by setting, then in the loader's cache, then in the usual folders;
 * never ourselves, never the toolkit's stub. */
#pragma once

#include <stddef.h>

struct hed_why;

/* The full path of the library `soname` (libcuda.so.1). `given` is the setting; "" for none. On
 * failure why says what was looked at and what is wrong with it: HED_ENOTFOUND when there is no
 * such library, HED_EINVAL when the one that was given cannot be it. */
int hed_gpu_find(const char *soname, const char *given, char *path, size_t size,
                 struct hed_why *why);

/* Why the file at `path` cannot be NVIDIA's driver for this process: NULL if it can. */
const char *hed_gpu_reject(const char *path);
