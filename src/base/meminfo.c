/* The memory of this machine: see meminfo.h. */
#include "base/meminfo.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"

uint64_t
hed_memory_available_in(const char *meminfo)
{
    const char *at = strstr(meminfo, "MemAvailable:");

    return at ? (uint64_t)strtoull(at + strlen("MemAvailable:"), NULL, 10) << 10 : UINT64_MAX;
}

uint64_t
hed_memory_available(void)
{
    char text[4096];

    return hed_memory_available_in(hed_read_small("/proc/meminfo", text, sizeof text));
}
