/* Address space for stacks and shared memory: one reserved range, handed out in pieces whose sizes
 * are powers of two. So one comparison tells whether an address is in it (isspacep).
 *
 * A piece takes memory only where it is touched, and none after it was given back.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"

#define HED_REGION_LEAST ((size_t)64 << 10) /* bytes of the smallest piece */
#define HED_REGION_CLASSES 26
#define HED_WINDOW ((size_t)16 << 20) /* bytes of a window */

struct hed_region {
    unsigned char *at;
    size_t size; /* bytes, a power of two */
};

struct hed_regions {
    struct hed_lock lock;
    unsigned char *base;
    size_t size;
    bool is_own;                                      /* it was reserved here */
    size_t used;                                      /* guarded by lock, as are the next */
    size_t end;                                       /* windows are behind it */
    struct hed_region_free *free[HED_REGION_CLASSES]; /* by size */
    struct hed_region_free *windows;                  /* that are free */
};

/* Reserves `want` bytes, or less if there are not so many. HED_ENOMEM. */
int hed_regions_init(struct hed_regions *a, size_t want);
/* Hands out [base, base + size), which is reserved and stays so. */
void hed_regions_init_at(struct hed_regions *a, uint64_t base, size_t size);
void hed_regions_fini(struct hed_regions *a);

/* At least `size` bytes that can be read and written, with any contents. HED_ENOMEM. */
int hed_region_take(struct hed_regions *a, size_t size, struct hed_region *out);

/* The whole piece must be readable and writable again. */
void hed_region_give(struct hed_regions *a, struct hed_region *r);

/* HED_WINDOW bytes of addresses, a multiple of HED_WINDOW, with nothing behind them. The caller
 * makes usable what it needs, and gives the window back with nothing behind it. HED_ENOMEM. */
int hed_window_take(struct hed_regions *a, struct hed_region *out);
void hed_window_give(struct hed_regions *a, struct hed_region *r);
