/* See aside.h. */
#include "base/aside.h"

#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

bool
hed_set_aside(uint64_t at, uint64_t size)
{
    void *p = mmap((void *)(uintptr_t)at, size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (p == (void *)(uintptr_t)at)
        return true;
    /* Systems that do not know the flag take the address for a hint. */
    if (p != MAP_FAILED)
        (void)munmap(p, size);
    return false;
}
