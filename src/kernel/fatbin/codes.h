/* All code in an image: machine code and PTX, wherever it is packed. */
#pragma once

#include <stdbool.h>

#include "kernel/fatbin/bytes.h"

/* Looks at one piece of code. Anything but 0 ends the search. */
typedef int hed_code_fn(void *arg, bool is_ptx, struct hed_bytes code);

/* Calls fn for a cubin, for PTX, or for each entry of a fat binary, which is unpacked meanwhile.
 * Returns what fn has returned. Entries that cannot be unpacked are left out: HED_ENOMEM if there
 * was no memory for one, and no other has ended the search. */
int hed_image_codes(struct hed_bytes image, hed_code_fn *fn, void *arg);
