/* Functions of the device's runtime that code calls, such as malloc. */
#pragma once

#include <stdbool.h>

#include "kernel/fatbin/bytes.h"

/* Does the PTX, the machine code, or any entry of the fat binary call a function of this name that
 * it does not contain? An image that cannot be read calls none. */
bool hed_ptx_imports(struct hed_bytes text, const char *name);
bool hed_cubin_imports(struct hed_bytes cubin, const char *name);
bool hed_image_imports(struct hed_bytes image, const char *name);
