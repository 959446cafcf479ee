/* Numbers of the trace file format (docs/trace-format.md), for its writer and its reader. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/crc.h"

#define HED_TRACE_MAGIC "HEDTRACE"
#define HED_TRACE_MAJOR 2
#define HED_TRACE_MINOR 1
#define HED_TRACE_FILE_HEADER 16 /* bytes */

#define HED_TRACE_BLOCK_MAGIC "HBLK"
#define HED_TRACE_BLOCK_HEADER 32
#define HED_TRACE_BLOCK_MAX (16u << 20) /* bytes of payload */
#define HED_TRACE_BLOCK_CRC 12          /* offset of the checksum in a block's header */

/* The checksum of a block covers its header, with the checksum's own four bytes taken as 0, and its
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
    HED_TRACE_CUT = 1,      /* the body is incomplete */
    HED_TRACE_LINKED = 4,   /* the record's last HED_TRACE_LINK bytes are its correlation id */
    HED_TRACE_REPEATS = 8,  /* its last 4 bytes count the calls that it stands for */
    HED_TRACE_UNTIMED = 16, /* start is when the call returned; how long it took is not known */
};

/* A bit of that count: no call will be added any more. Set in every file. */
#define HED_TRACE_COUNT_CLOSED 0x80000000u

/* The APIs' numbers in records, in the order of their schemas. */
enum hed_trace_api { HED_TRACE_API_CUDA, HED_TRACE_API_NVML };

/* A record begins with one of two headers. The short one is for a call that succeeded; a size of 0
 * where it has its own says that this is a long one. Until the writer converts them, start and
 * duration are ticks (see/trace/clock.h). */
struct hed_trace_short {
    uint16_t size; /* bytes of the record; HED_TRACE_SHORT_LINKED: with a correlation id */
    uint16_t call; /* the API's number in the upper 4 bits */
    uint32_t duration;
    uint64_t start;
};

struct hed_trace_long {
    uint16_t zero;
    uint16_t call;
    uint32_t size; /* bytes of the record */
    uint64_t start;
    uint64_t duration;
    int32_t result;
    uint8_t kind; /* enum hed_trace_record_kind */
    uint8_t api;
    uint16_t flags; /* enum hed_trace_record_flags */
};

_Static_assert(sizeof(struct hed_trace_short) == 16 && sizeof(struct hed_trace_long) == 32,
               "a record's header has no padding");

#define HED_TRACE_SHORT_LINKED 0x8000u
#define HED_TRACE_SHORT_SIZE_MAX 0x7fffu
#define HED_TRACE_SHORT_CALLS 4096 /* calls of an API that a short record can tell apart */
#define HED_TRACE_SHORT_APIS 16
/* A longer call gets a long record. In nanoseconds this fits into a short one's 32 bits with every
 * counter that base/counter.h accepts. */
#define HED_TRACE_SHORT_TICKS (1u << 25)

static inline bool
hed_trace_is_short(const uint8_t *record)
{
    uint16_t size;

    memcpy(&size, record, sizeof size);
    return size != 0;
}

/* The size of the record at p, of which n bytes are there; 0 if they do not hold all of it. */
static inline size_t
hed_trace_record_size(const uint8_t *p, size_t n)
{
    struct hed_trace_short s;
    struct hed_trace_long l;

    if (n < sizeof s)
        return 0;
    memcpy(&s, p, sizeof s);

    const size_t size = s.size & HED_TRACE_SHORT_SIZE_MAX;

    if (s.size)
        return size >= sizeof s && size <= n ? size : 0;
    if (n < sizeof l)
        return 0;
    memcpy(&l, p, sizeof l);
    return l.size >= sizeof l && l.size <= n ? l.size : 0;
}
