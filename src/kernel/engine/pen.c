/* The addresses that confined kernels can reach. See pen.h. */
#include "kernel/engine/pen.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/reserve.h"
#include "kernel/ptx/run/abi.h"

#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)
/* Offsets from the beginning of the pen. */
#define DEVICES (64 * GIB)
#define LOCAL (19 * TIB)
#define SHARED (LOCAL + 512 * GIB)
#define OPEN (20 * TIB)
#define RANGE ((size_t)(256 * GIB)) /* bytes of each of the last three */
#define TRIES 3                     /* other places, if the usual one is taken */

_Static_assert(OPEN + RANGE < HED_PTX_PEN_SIZE * 2 / 3, "the upper third is free");

/* The pen and its margins. */
static bool
reserve_pen(uint64_t usual, uint64_t *base)
{
    const uint64_t size = HED_PTX_PEN_SIZE + 2 * HED_PTX_PEN_MARGIN;

    for (unsigned i = 0; i < TRIES; i++) {
        *base = usual + i * HED_PTX_PEN_SIZE;
        if (hed_reserve_addresses(*base - HED_PTX_PEN_MARGIN, size))
            return true;
    }
    return false;
}

int
hed_pen_create(uint64_t usual, struct hed_pen **out, struct hed_why *why)
{
    struct hed_pen *p = calloc(1, sizeof *p);

    if (!p || !reserve_pen(usual, &p->base)) {
        hed_why_set(why,
                    "no room for %llu TiB of addresses in one piece, which confined kernels need "
                    "(setting cpu_confine)",
                    (unsigned long long)(HED_PTX_PEN_SIZE / TIB));
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
hed_pen_free(struct hed_pen *p)
{
    if (!p)
        return;
    hed_regions_fini(&p->local);
    hed_regions_fini(&p->shared);
    hed_regions_fini(&p->open);
    (void)munmap((void *)(uintptr_t)(p->base - HED_PTX_PEN_MARGIN),
                 HED_PTX_PEN_SIZE + 2 * HED_PTX_PEN_MARGIN);
    free(p);
}

int
hed_pen_reserve(const struct hed_pen *p, uint64_t size, uint64_t *base)
{
    if (size > LOCAL - DEVICES - TIB)
        return HED_ENOMEM;
    *base = p->base + DEVICES;
    return 0;
}
