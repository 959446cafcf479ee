/* Kernels that run with one block size only (.reqntid). No call of the API tells it, but the image
 * does. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hed_required;

/* Finds all such kernels of an image: PTX, a cubin, or a fat binary, whose entries are
 * decompressed. What cannot be read is taken to have none. NULL if there is no memory. */
struct hed_required *hed_required_read(const void *image, uint64_t size);
void hed_required_free(struct hed_required *r); /* NULL is allowed */

/* False if any block size will do. Dimensions that the kernel does not give are 0. */
bool hed_required_find(const struct hed_required *r, const char *name, uint32_t out[3]);
