/* Cubins, which cannot run here but can be queried. Separate from image.h because the ELF reader
 * and the handle table both have a struct hed_object. */
#pragma once

#include "fatbin/bytes.h"

struct hed_code;
struct hed_why;

/* Kernels without code, and variables. Fails as hed_cubin_read() does. */
int hed_cubin_describe(struct hed_bytes cubin, struct hed_code **out, struct hed_why *why);
void hed_cubin_forget(struct hed_code *code);
