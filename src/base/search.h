/* Searching in sorted arrays, where bsearch() does not do: for the place at which a key would be.
 *
 * Inline, so that a comparison that the compiler sees costs no call: the decoder of machine code
 * searches for every instruction.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Compares by the first numbers, and by the second ones where these are equal: as qsort() wants
 * it. */
static inline int
hed_compare_pairs(uint64_t a_first, uint64_t a_second, uint64_t b_first, uint64_t b_second)
{
    if (a_first != b_first)
        return a_first < b_first ? -1 : 1;
    return (a_second > b_second) - (a_second < b_second);
}

/* The same for elements that are one number each. */
static inline int
hed_compare_u32(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The index of the first of n sorted elements of that size that is not below the key; n if all are.
 * compare(key, element) is as for bsearch(). base may be NULL if n is 0. */
static inline size_t
hed_lower_bound(const void *key, const void *base, size_t n, size_t size,
                int (*compare)(const void *key, const void *element))
{
    size_t low = 0;

    while (low < n) {
        const size_t middle = low + (n - low) / 2;

        if (compare(key, (const char *)base + middle * size) > 0)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}
