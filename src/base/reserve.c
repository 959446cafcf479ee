/* Reserving addresses. See reserve.h. */
#include "base/reserve.h"

#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

bool
hed_reserve_addresses(uint64_t at, uint64_t size)
{
    void *p = mmap((void *)(uintptr_t)at, size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (p == (void *)(uintptr_t)at)
        return true;
    /* A kernel that does not know the flag treats the address as a hint. */
    if (p != MAP_FAILED)
        (void)munmap(p, size);
    return false;
}
