/* A bump arena with a ceiling: many small allocations, freed all at once.
 *
 * For what a parser or decoder builds from bytes that it does not trust. Not for objects that are
 * freed one by one, and not for use by two threads at once.
 *
 * Invariants:
 * 1. used is the sum of the sizes handed out since the last reset, each rounded up to its
 *    alignment, and is never over ceiling. It depends on the requests alone, not on addresses.
 * 2. The heap memory behind it is at most 2 * ceiling plus one chunk: the tail of a chunk is given
 *    up only for a request that is larger than that tail.
 */
#pragma once

#include <stddef.h>

struct hed_arena_chunk;

struct hed_arena {
    struct hed_arena_chunk *chunks; /* newest first; owned */
    size_t ceiling;                 /* bytes; constant after init */
    size_t used;                    /* bytes */
};

/* Allocates nothing yet. */
void hed_arena_init(struct hed_arena *a, size_t ceiling);

/* Memory for size bytes (not cleared), or NULL if that would exceed the ceiling or the heap is
 * exhausted. align is a power of two. A size of 0 gives a valid, distinct pointer and counts as 1.
 */
void *hed_arena_alloc(struct hed_arena *a, size_t size, size_t align)
    __attribute__((malloc, alloc_size(2), alloc_align(3), warn_unused_result));

/* Frees everything that was handed out. One chunk is kept for the next round. */
void hed_arena_reset(struct hed_arena *a);

/* Frees everything. The arena can be used again, as after init. */
void hed_arena_fini(struct hed_arena *a);
