/* How much memory can be read, for lengths that come from a file and may be wrong. */
#pragma once

#include <stddef.h>

/* How many bytes from p on can be read, at most n. Takes a system call per page. Other threads may
 * unmap memory at any time, so this protects from mistakes only. */
size_t hed_readable(const void *p, size_t n);
