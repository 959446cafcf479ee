/* Makes trace files in memory for tests, following docs/trace-format.md and without the writer's
 * code. Everything goes into one buffer that is large enough for a test.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "see/trace/format.h"

struct make {
    uint8_t file[65536];
    size_t size;
    uint16_t major;     /* version of the format */
    uint64_t number;    /* of the next block */
    uint8_t body[4096]; /* of the record being made */
    size_t body_size;
    uint8_t records[16384]; /* of the block being made */
    size_t records_size;
};

static inline void
make_raw(struct make *m, const void *p, size_t n)
{
    memcpy(m->file + m->size, p, n);
    m->size += n;
}

static inline void
make_begin(struct make *m, uint16_t major)
{
    const uint16_t version[2] = {major, 0};

    memset(m, 0, sizeof(*m));
    m->major = major;
    make_raw(m, "HEDTRACE", 8);
    make_raw(m, version, 4);
    make_raw(m, "\0\0\0", 4);
}

/* Where the block begins in the file. */
static inline size_t
make_block(struct make *m, uint32_t type, uint64_t thread, const void *p, size_t n)
{
    const size_t at = m->size;
    const uint32_t head[3] = {type, (uint32_t)n, 0};

    make_raw(m, "HBLK", 4);
    make_raw(m, head, 12);
    make_raw(m, &thread, 8);
    make_raw(m, &m->number, 8);

    const uint32_t crc = hed_trace_block_crc(m->file + at, p, n);

    memcpy(m->file + at + HED_TRACE_BLOCK_CRC, &crc, sizeof(crc));
    make_raw(m, p, n);
    m->number++;
    return at;
}

static inline size_t
make_text(struct make *m, uint32_t type, uint64_t thread, const char *text)
{
    return make_block(m, type, thread, text, strlen(text));
}

/* ---- a record: first its body in pieces, then its head --------------------------------------- */

static inline void
put_number(struct make *m, uint64_t value, size_t n)
{
    memcpy(m->body + m->body_size, &value, n);
    m->body_size += n;
}

static inline void
put_bytes(struct make *m, const void *p, size_t n)
{
    memcpy(m->body + m->body_size, p, n);
    m->body_size += n;
}

static inline void
make_add(struct make *m, const void *head, size_t n)
{
    memcpy(m->records + m->records_size, head, n);
    memcpy(m->records + m->records_size + n, m->body, m->body_size);
    m->records_size += n + m->body_size;
    m->body_size = 0;
}

static inline void
make_record_1(struct make *m, uint8_t kind, uint16_t call, uint64_t start, uint64_t duration,
              int32_t result, uint32_t flags)
{
    const struct {
        uint32_t size;
        uint8_t kind;
        uint8_t api;
        uint16_t call;
        uint64_t start;
        uint64_t duration;
        int32_t result;
        uint32_t flags;
    } head = {32 + (uint32_t)m->body_size, kind, 0, call, start, duration, result, flags};

    make_add(m, &head, 32);
}

static inline void
make_short(struct make *m, uint16_t call, uint64_t start, uint32_t duration, bool linked)
{
    const struct {
        uint16_t size;
        uint16_t call;
        uint32_t duration;
        uint64_t start;
    } head = {(uint16_t)(16 + m->body_size + (linked ? 0x8000 : 0)), call, duration, start};

    make_add(m, &head, 16);
}

/* Calls that succeeded get short records in files of version 2. */
static inline void
make_record(struct make *m, uint8_t kind, uint16_t call, uint64_t start, uint64_t duration,
            int32_t result, uint32_t flags)
{
    const struct {
        uint16_t zero;
        uint16_t call;
        uint32_t size;
        uint64_t start;
        uint64_t duration;
        int32_t result;
        uint8_t kind;
        uint8_t api;
        uint16_t flags;
    } head = {0, call,           32 + (uint32_t)m->body_size, start, duration, result, kind,
              0, (uint16_t)flags};

    if (m->major == 1)
        make_record_1(m, kind, call, start, duration, result, flags);
    else if (kind == HED_TRACE_CALL && result == 0 && !(flags & ~(uint32_t)HED_TRACE_LINKED))
        make_short(m, call, start, (uint32_t)duration, flags);
    else
        make_add(m, &head, 32);
}

/* Ends a block of the records made so far. */
static inline size_t
make_records(struct make *m, uint64_t thread)
{
    const size_t at = make_block(m, 3, thread, m->records, m->records_size);

    m->records_size = 0;
    return at;
}
