/* The blocks of a trace file, one after the other, skipping damage. Knows nothing of their payload.
 *
 *     sound block --> next block
 *     anything else --> look for an "HBLK" whose block is sound and whose number fits; go on there
 *                   --> none: the file ends here, with an incomplete block or with damage
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_trace_block {
    uint32_t type;
    uint32_t size; /* bytes of payload */
    uint64_t thread;
    uint64_t number;
    const uint8_t *payload;
};

struct hed_trace_block_scan {
    const uint8_t *file;
    size_t size;       /* bytes of the file */
    size_t at;         /* where the next block should begin */
    uint64_t number;   /* what its number should be */
    uint64_t work;     /* bytes that may still be checked in search of a sound block */
    uint64_t bad;      /* blocks damaged or missing so far */
    uint64_t lost;     /* bytes skipped so far */
    uint64_t cut;      /* bytes of an incomplete last block */
    bool gap;          /* something was lost right before the block just returned */
    uint32_t gap_type; /* its type, if it was one block with a plausible header; else 0 */
};

/* Begins the scan after the file's header. */
struct hed_trace_block_scan hed_trace_block_begin(const void *file, size_t size, size_t header);

/* Finds the next sound block; false at the end, when the counters are final. */
bool hed_trace_block_next(struct hed_trace_block_scan *s, struct hed_trace_block *b);
