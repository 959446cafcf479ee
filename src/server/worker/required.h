/* Kernels that run with one block size only (.reqntid): no call tells, the image does. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hed_required;

/* All such kernels of an image: PTX, a cubin, or a fat binary, whose entries are unpacked. What
 * cannot be read has none. NULL: no memory. */
struct hed_required *hed_required_read(const void *image, uint64_t size);
void hed_required_free(struct hed_required *r); /* NULL is fine */

/* False: any size will do. Of missing dimensions 0. */
bool hed_required_find(const struct hed_required *r, const char *name, uint32_t out[3]);
