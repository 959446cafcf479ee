/* An index of stored chunks: from hash and length to where the bytes are. Not thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "move/file/hash.h"

struct hed_snap_place {
    struct hed_snap_hash hash;
    uint32_t size; /* bytes of the chunk; 0: a free slot */
    uint32_t home; /* as in struct hed_snap_chunk_row */
    uint32_t blob;
};

struct hed_snap_index {
    struct hed_snap_place *slots; /* owned */
    size_t count;
    size_t room; /* a power of two, or 0 */
};

/* NULL if there is none. Valid until the next addition. */
const struct hed_snap_place *hed_snap_index_get(const struct hed_snap_index *x,
                                                const struct hed_snap_hash *hash, uint32_t size);

/* Adds a place, unless there is one of that hash and size: the first counts. HED_ENOMEM. */
int hed_snap_index_put(struct hed_snap_index *x, const struct hed_snap_place *p);

void hed_snap_index_fini(struct hed_snap_index *x);
