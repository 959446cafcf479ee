/* Small arithmetic, on unsigned numbers unless a function says otherwise. Results that do not fit
 * in 64 bits wrap around. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t
hed_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t
hed_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Of numbers with a sign, too. */
static inline int64_t
hed_min_signed(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The sum, or the largest number if it is more. */
static inline uint64_t
hed_add_capped(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* The number between least and most that is nearest to n. */
static inline uint64_t
hed_clamp(uint64_t n, uint64_t least, uint64_t most)
{
    return hed_min(hed_max(n, least), most);
}

/* How many pieces of `unit` it takes to hold n. unit is not 0. */
static inline uint64_t
hed_divide_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit;
}

/* The smallest multiple of `unit` that is at least n. unit is not 0. */
static inline uint64_t
hed_round_up(uint64_t n, uint64_t unit)
{
    return hed_divide_up(n, unit) * unit;
}

/* The same for a power of two that the compiler does not know; 0 counts as 1. */
static inline uint64_t
hed_align_up(uint64_t n, uint64_t align)
{
    return align ? (n + align - 1) & ~(align - 1) : n;
}

/* Do the n bytes that begin at `at` end within `size`? No sum is formed, so none overflows. */
static inline bool
hed_range_fits(uint64_t at, uint64_t n, uint64_t size)
{
    return at <= size && n <= size - at;
}
