/* Untrusted bytes: a piece of memory, and loads that check first.
 *
 * Little-endian and unaligned, like every format in this room. Nothing is copied or owned: the
 * results point into the piece and live as long as it does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/number.h"

struct hed_bytes {
    const uint8_t *data; /* may be NULL when size is 0 */
    size_t size;
};

static inline bool
hed_bytes_has(struct hed_bytes b, uint64_t offset, uint64_t n)
{
    return hed_range_fits(offset, n, b.size);
}

/* The address of n bytes at an offset; NULL if they are not all there. */
static inline const uint8_t *
hed_bytes_at(struct hed_bytes b, uint64_t offset, uint64_t n)
{
    return b.data && hed_bytes_has(b, offset, n) ? b.data + offset : NULL;
}

/* n bytes at an offset as a new piece; an empty one if they are not all there. */
static inline struct hed_bytes
hed_bytes_cut(struct hed_bytes b, uint64_t offset, uint64_t n)
{
    if (!hed_bytes_has(b, offset, n) || n == 0)
        return (struct hed_bytes){NULL, 0};
    return (struct hed_bytes){b.data + offset, (size_t)n};
}

/* Everything from an offset on. */
static inline struct hed_bytes
hed_bytes_from(struct hed_bytes b, uint64_t offset)
{
    return offset < b.size ? hed_bytes_cut(b, offset, b.size - offset)
                           : (struct hed_bytes){NULL, 0};
}

/* The piece up to its first NUL, or all of it. */
static inline struct hed_bytes
hed_bytes_text(struct hed_bytes b)
{
    const uint8_t *end = b.size ? memchr(b.data, 0, b.size) : NULL;

    return end ? hed_bytes_cut(b, 0, (uint64_t)(end - b.data)) : b;
}

static inline bool
hed_bytes_begin(struct hed_bytes b, const void *p, size_t n)
{
    return b.size >= n && memcmp(b.data, p, n) == 0;
}

static inline bool
hed_bytes_equal(struct hed_bytes b, const char *text)
{
    return b.size == strlen(text) && memcmp(b.data, text, b.size) == 0;
}

#define HED_BYTES_LOAD(name, type)                    \
    static inline type hed_load_##name(const void *p) \
    {                                                 \
        type v;                                       \
                                                      \
        memcpy(&v, p, sizeof v);                      \
        return v;                                     \
    }

HED_BYTES_LOAD(u16, uint16_t)
HED_BYTES_LOAD(u32, uint32_t)
HED_BYTES_LOAD(u64, uint64_t)
