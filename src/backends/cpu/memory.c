/* Memory of the CPU GPU: the device's addresses are this process's. Physical memory, which can be
 * mapped several times, is in physical.c. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"
#include "base/err.h"
#include "base/number.h"
#include "base/reserve.h"
#include "base/sanitize.h"
#include "base/whole.h"
#include "kernel/engine.h"

/* ThreadSanitizer replaces an address that it does not allow by 0, which a privileged process
 * gets. */
#define PLACES_CAN_BE_CHOSEN (!HED_TSAN)

#define HUGE_LEAST ((uint64_t)8 << 20) /* bytes */

static void *
at_address(uint64_t at)
{
    return (void *)(uintptr_t)at;
}

int
hed_cpu_reserve(void *m, uint64_t want, uint64_t size, uint64_t *base)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    const struct hed_address_sandbox *sandbox = ((const struct hed_cpu *)m)->sandbox;
    void *p = MAP_FAILED;

    if (sandbox)
        return hed_address_sandbox_reserve(sandbox, size, base);
    if (PLACES_CAN_BE_CHOSEN && hed_reserve_addresses(want, size))
        p = at_address(want);
    if (p == MAP_FAILED) {
        /* A little more, so that the range can begin at a multiple of HED_MACHINE_PAGE. */
        p = mmap(NULL, size + HED_MACHINE_PAGE, PROT_NONE, flags, -1, 0);
        if (p == MAP_FAILED)
            return HED_ENOMEM;
    }
    *base = hed_round_up((uint64_t)(uintptr_t)p, HED_MACHINE_PAGE);
    return 0;
}

int
hed_cpu_map(void *m, uint64_t at, uint64_t size)
{
    void *p = mmap(at_address(at), size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

    if (p == MAP_FAILED)
        return HED_ENOMEM;
    /* Large arrays are mostly used as a whole, and fewer, larger pages are faster to get. */
    if (size >= HUGE_LEAST)
        (void)madvise(p, size, MADV_HUGEPAGE);
    return 0;
}

void
hed_cpu_unmap(void *m, uint64_t at, uint64_t size)
{
    void *p = mmap(at_address(at), size, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

    /* The process is out of mappings: at least release the memory and make it inaccessible. */
    if (p == MAP_FAILED) {
        (void)madvise(at_address(at), size, MADV_DONTNEED);
        (void)mprotect(at_address(at), size, PROT_NONE);
    }
}

int
hed_cpu_protect(void *m, uint64_t at, uint64_t size, bool readable, bool writable)
{
    const int prot = (readable ? PROT_READ : 0) | (writable ? PROT_READ | PROT_WRITE : 0);

    return mprotect(at_address(at), size, prot) == 0 ? 0 : HED_ENOMEM;
}

void
hed_cpu_copy(void *m, uint64_t to, uint64_t from, size_t size)
{
    hed_copy_whole(at_address(to), at_address(from), size); /* a kernel may look at it meanwhile */
}

void
hed_cpu_fill(void *m, uint64_t to, uint32_t value, unsigned width, size_t count)
{
    const uint16_t half = (uint16_t)value;

    switch (width) {
    case 1:
        memset(at_address(to), (int)(value & 0xff), count);
        break;
    case 2:
        for (size_t i = 0; i < count; i++)
            memcpy(at_address(to + i * sizeof half), &half, sizeof half);
        break;
    default:
        for (size_t i = 0; i < count; i++)
            memcpy(at_address(to + i * sizeof value), &value, sizeof value);
        break;
    }
}
