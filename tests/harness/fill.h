/* Argument structs filled with values, for tests that encode calls. emit_fill.py makes the
 * functions from the spec; this file has the parts that they use.
 *
 * Everything that a struct points at lies in the arena. The same seed gives the same values.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "gen/cuda_calls.h"
#include "gen/nvml_calls.h"

struct fill {
    uint64_t random;
    struct hed_arena *arena;
    bool nulls; /* pointers are NULL now and then */
};

/* A word of an argument struct that goes in and on which no count or tag depends. */
struct fill_word {
    uint16_t call;
    uint16_t offset;
    uint16_t size;
};

/* Fills every argument. Memory for outputs exists, and is filled as well. */
void fill_cuda_args(struct fill *f, enum hed_cuda_call id, void *args);
void fill_nvml_args(struct fill *f, enum hed_nvml_call id, void *args);

/* Does what a successful call may do: outputs change, and counts do not grow. */
void fill_cuda_outs(struct fill *f, enum hed_cuda_call id, void *args);
void fill_nvml_outs(struct fill *f, enum hed_nvml_call id, void *args);

extern const struct fill_word fill_cuda_words[];
extern const size_t fill_cuda_word_count;
extern const struct fill_word fill_nvml_words[];
extern const size_t fill_nvml_word_count;

static inline uint32_t
fill_next(struct fill *f)
{
    f->random = f->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(f->random >> 33);
}

static inline void
fill_bytes(struct fill *f, void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)p)[i] = (uint8_t)fill_next(f);
}

/* A count that a test can afford; some lengths are two less. */
static inline uint32_t
fill_count(struct fill *f)
{
    return 2 + fill_next(f) % 3;
}

/* One of the values that tell a union's members apart, or, rarely, none of them. */
static inline uint32_t
fill_tag(struct fill *f, const uint32_t *values, uint32_t n)
{
    const uint32_t i = fill_next(f) % (n + 1);

    return i < n ? values[i] : 0x7ffffff0;
}

static inline bool
fill_null(struct fill *f)
{
    return f->nulls && fill_next(f) % 4 == 0;
}

static inline void *
fill_room(struct fill *f, uint64_t n, size_t size)
{
    void *p = hed_arena_alloc(f->arena, (size_t)n * size, 128);

    if (!p)
        abort();
    memset(p, 0, (size_t)n * size);
    return p;
}

/* A string of a few letters that ends within `room` bytes. */
static inline void
fill_text_into(struct fill *f, char *s, uint64_t room)
{
    uint64_t n = room ? fill_next(f) % room : 0;

    if (n > 20)
        n = 20;
    for (uint64_t i = 0; i < n; i++)
        s[i] = (char)('a' + fill_next(f) % 26);
    if (room)
        s[n] = 0;
}

static inline char *
fill_text(struct fill *f)
{
    char *s = fill_room(f, 12, 1);

    fill_text_into(f, s, 12);
    return s;
}
