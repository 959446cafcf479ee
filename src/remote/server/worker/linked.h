/* An image that is a linked program with its parts (struct hed_wire_linked in remote/wire/code.h).
 * The driver gets it as it would from a local program: as a wrapper that points to the linked fat
 * binary and to the parts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/fatbin.h"

/* Does the image begin like one? It may still be damaged. */
bool hed_linked_begins(const void *image, uint64_t size);

/* Are all of its fat binaries inside the image, and is each of them intact (intact.h)? */
bool hed_linked_is_intact(const void *image, uint64_t size, bool strict);

/* Finds the i-th fat binary; 0 is the linked one. False if there is none, or if it leads out of the
 * image. */
bool hed_linked_at(const void *image, uint64_t size, uint32_t i, struct hed_bytes *out);

/* Creates the wrapper, which points into the image; to be freed with free(). NULL if there is no
 * memory. */
void *hed_linked_wrap(const void *image, uint64_t size);
