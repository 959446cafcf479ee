/* Decoding one record: only this file knows the headers of every version of the format. It is for
 * the reader's own files; everybody else includes read.h.
 */
#pragma once

#include <string.h>

#include "see/trace/read.h"

/* The header of every record in files of version 1. */
struct hed_trace_header_1 {
    uint32_t size;
    uint8_t kind;
    uint8_t api;
    uint16_t call;
    uint64_t start;
    uint64_t duration;
    int32_t result;
    uint32_t flags;
};

_Static_assert(sizeof(struct hed_trace_header_1) == 32, "a record's header has no padding");

/* A record's body begins after `header` bytes. Behind it are a count and a correlation id, if the
 * record has them. */
static inline void
hed_trace_set_body(struct hed_trace_record *r, const uint8_t *p, size_t header)
{
    r->at = p;
    r->body = p + header;
    r->body_size = r->size - (uint32_t)header;
    if ((r->flags & HED_TRACE_LINKED) && r->body_size >= HED_TRACE_LINK) {
        r->body_size -= HED_TRACE_LINK;
        memcpy(&r->correlation, r->body + r->body_size, sizeof(r->correlation));
    }
    r->calls = 1;
    if ((r->flags & HED_TRACE_REPEATS) && r->body_size >= sizeof(r->calls)) {
        r->body_size -= (uint32_t)sizeof(r->calls);
        memcpy(&r->calls, r->body + r->body_size, sizeof(r->calls));
        r->calls &= ~HED_TRACE_COUNT_CLOSED;
        r->calls += r->calls == 0; /* no writer makes that */
    }
}

static inline size_t
hed_trace_get_record_1(const uint8_t *p, size_t n, uint64_t thread, struct hed_trace_record *r)
{
    struct hed_trace_header_1 h;

    if (n < sizeof(h))
        return 0;
    memcpy(&h, p, sizeof(h));
    if (h.size < sizeof(h) || h.size > n)
        return 0;
    *r = (struct hed_trace_record){
        .thread = thread,
        .start = h.start,
        .duration = h.duration,
        .result = h.result,
        .flags = h.flags,
        .call = h.call,
        .kind = h.kind,
        .api = h.api,
        .size = h.size,
    };
    hed_trace_set_body(r, p, sizeof(h));
    return h.size;
}

static inline size_t
hed_trace_get_record_2(const uint8_t *p, size_t n, uint64_t thread, struct hed_trace_record *r)
{
    const size_t size = hed_trace_record_size(p, n);
    struct hed_trace_short s;
    struct hed_trace_long l;

    if (size == 0)
        return 0;
    if (hed_trace_is_short(p)) {
        memcpy(&s, p, sizeof(s));
        *r = (struct hed_trace_record){
            .thread = thread,
            .start = s.start,
            .duration = s.duration,
            .flags = s.size & HED_TRACE_SHORT_LINKED ? HED_TRACE_LINKED : 0,
            .call = s.call % HED_TRACE_SHORT_CALLS,
            .kind = HED_TRACE_CALL,
            .api = (uint8_t)(s.call / HED_TRACE_SHORT_CALLS),
            .size = (uint32_t)size,
        };
        hed_trace_set_body(r, p, sizeof(s));
        return size;
    }
    memcpy(&l, p, sizeof(l));
    *r = (struct hed_trace_record){
        .thread = thread,
        .start = l.start,
        .duration = l.duration,
        .result = l.result,
        .flags = l.flags,
        .call = l.call,
        .kind = l.kind,
        .api = l.api,
        .size = (uint32_t)size,
    };
    hed_trace_set_body(r, p, sizeof(l));
    return size;
}

/* The record at p, of which n bytes are there, in a file of that major version: its size, or 0 if
 * it is incomplete or makes no sense. */
static inline size_t
hed_trace_get_record(const uint8_t *p, size_t n, unsigned major, uint64_t thread,
                     struct hed_trace_record *r)
{
    return major < 2 ? hed_trace_get_record_1(p, n, thread, r)
                     : hed_trace_get_record_2(p, n, thread, r);
}
