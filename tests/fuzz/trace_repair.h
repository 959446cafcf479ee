/* What the fuzz targets of traces share. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "see/trace/format.h"

/* Corrects the checksums of all blocks. Without that, every mutant would be refused there. */
static inline void
fuzz_repair_trace(uint8_t *p, size_t size)
{
    for (size_t at = HED_TRACE_FILE_HEADER; at + HED_TRACE_BLOCK_HEADER <= size;) {
        const size_t left = size - at - HED_TRACE_BLOCK_HEADER;
        uint32_t n;

        memcpy(&n, p + at + 8, sizeof(n));
        if (memcmp(p + at, HED_TRACE_BLOCK_MAGIC, 4) != 0 || n > left) {
            at++;
            continue;
        }

        const uint32_t crc = hed_trace_block_crc(p + at, p + at + HED_TRACE_BLOCK_HEADER, n);

        memcpy(p + at + 12, &crc, sizeof(crc));
        at += HED_TRACE_BLOCK_HEADER + n;
    }
}
