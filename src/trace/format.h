/* Numbers of the trace file format (docs/trace-format.md), for its writer and its reader. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/crc.h"

#define HED_TRACE_MAGIC "HEDTRACE"
#define HED_TRACE_MAJOR 1
#define HED_TRACE_MINOR 2
#define HED_TRACE_FILE_HEADER 16 /* bytes */

#define HED_TRACE_BLOCK_MAGIC "HBLK"
#define HED_TRACE_BLOCK_HEADER 32
#define HED_TRACE_BLOCK_MAX (16u << 20) /* bytes of payload */
#define HED_TRACE_BLOCK_CRC 12          /* offset of the checksum in a block's header */

/* The checksum of a block: over its header, with the checksum's own four bytes taken as 0, and its
 * payload. */
static inline uint32_t
hed_trace_block_crc(const void *header, const void *payload, size_t n)
{
    uint8_t head[HED_TRACE_BLOCK_HEADER];

    memcpy(head, header, sizeof head);
    memset(head + HED_TRACE_BLOCK_CRC, 0, 4);
    return hed_crc32(hed_crc32(0, head, sizeof head), payload, n);
}

enum hed_trace_block_type {
    HED_TRACE_INFO = 1,
    HED_TRACE_SCHEMA = 2,
    HED_TRACE_RECORDS = 3,
    HED_TRACE_THREAD = 4,
    HED_TRACE_END = 5,
};

#define HED_TRACE_RECORD_HEADER 32
#define HED_TRACE_LINK 8 /* bytes of a correlation id at a record's end */

enum hed_trace_record_kind {
    HED_TRACE_CALL = 1,
    HED_TRACE_MARK = 2,
    HED_TRACE_RANGE_BEGIN = 3,
    HED_TRACE_RANGE_END = 4,
    HED_TRACE_CLIENT = 5,
    HED_TRACE_DROPPED = 6,
    HED_TRACE_ACTIVITY = 7,
};

enum hed_trace_record_flags {
    HED_TRACE_CUT = 1,    /* the body is not whole */
    HED_TRACE_LINKED = 4, /* the record's last HED_TRACE_LINK bytes are its correlation id */
};
