/* The addresses that confined kernels can reach. See sandbox.h. */
#include "kernel/engine/sandbox.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/reserve.h"
#include "kernel/ptx/run/abi.h"

#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)
/* Offsets from the beginning of the address sandbox. */
#define DEVICES (64 * GIB)
#define LOCAL (19 * TIB)
#define SHARED (LOCAL + 512 * GIB)
#define OPEN (20 * TIB)
#define RANGE ((size_t)(256 * GIB)) /* bytes of each of the last three */
#define TRIES 3                     /* other places, if the usual one is taken */

_Static_assert(OPEN + RANGE < HED_PTX_SANDBOX_SIZE * 2 / 3, "the upper third is free");

/* The address sandbox and its margins. */
static bool
reserve_sandbox(uint64_t usual, uint64_t *base)
{
    const uint64_t size = HED_PTX_SANDBOX_SIZE + 2 * HED_PTX_SANDBOX_MARGIN;

    for (unsigned i = 0; i < TRIES; i++) {
        *base = usual + i * HED_PTX_SANDBOX_SIZE;
        if (hed_reserve_addresses(*base - HED_PTX_SANDBOX_MARGIN, size))
            return true;
    }
    return false;
}

int
hed_address_sandbox_create(uint64_t usual, struct hed_address_sandbox **out, struct hed_why *why)
{
    struct hed_address_sandbox *p = calloc(1, sizeof *p);

    if (!p || !reserve_sandbox(usual, &p->base)) {
        hed_why_set(why,
                    "no room for %llu TiB of addresses in one piece, which confined kernels need "
                    "(setting cpu_confine)",
                    (unsigned long long)(HED_PTX_SANDBOX_SIZE / TIB));
        free(p);
        return HED_ENOMEM;
    }
    hed_regions_init_at(&p->local, p->base + LOCAL, RANGE);
    hed_regions_init_at(&p->shared, p->base + SHARED, RANGE);
    hed_regions_init_at(&p->open, p->base + OPEN, RANGE);
    *out = p;
    return 0;
}

void
hed_address_sandbox_free(struct hed_address_sandbox *p)
{
    if (!p)
        return;
    hed_regions_fini(&p->local);
    hed_regions_fini(&p->shared);
    hed_regions_fini(&p->open);
    (void)munmap((void *)(uintptr_t)(p->base - HED_PTX_SANDBOX_MARGIN),
                 HED_PTX_SANDBOX_SIZE + 2 * HED_PTX_SANDBOX_MARGIN);
    free(p);
}

int
hed_address_sandbox_reserve(const struct hed_address_sandbox *p, uint64_t size, uint64_t *base)
{
    if (size > LOCAL - DEVICES - TIB)
        return HED_ENOMEM;
    *base = p->base + DEVICES;
    return 0;
}
