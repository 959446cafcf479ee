/* What programs can ask about cubins, whether they run here or not. Separate from image.h because
 * the ELF reader and the handle table both have a struct hed_object. */
#pragma once

#include "kernel/fatbin.h"

struct hed_arena;
struct hed_code;
struct hed_code_kernel;
struct hed_cubin;
struct hed_cubin_kernel;
struct hed_why;

/* Kernels without code, and variables. Fails as hed_cubin_read() does. */
int hed_cubin_describe(struct hed_bytes cubin, struct hed_code **out, struct hed_why *why);
void hed_cubin_forget(struct hed_code *code);

/* One kernel, without code; what it points to is in the arena. HED_ENOMEM. */
int hed_cubin_describe_kernel(const struct hed_cubin *c, const struct hed_cubin_kernel *k,
                              struct hed_arena *a, struct hed_code_kernel *out);
