/* What the kernel tells about the memory of this machine. */
#pragma once

#include <stdint.h>

/* Bytes that programs can get without swapping: free memory, and what the kernel can drop, such as
 * its cache of files. UINT64_MAX: it does not tell. */
uint64_t hed_memory_available(void);

/* The same from the text of /proc/meminfo. For tests. */
uint64_t hed_memory_available_in(const char *meminfo);
