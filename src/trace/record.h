/* One record out of bytes: the one place that knows how its header lies. For the files of the
 * reader; everybody else has read.h.
 */
#pragma once

#include <string.h>

#include "trace/read.h"

struct hed_trace_raw {
    uint32_t size;
    uint8_t kind;
    uint8_t api;
    uint16_t call;
    uint64_t start;
    uint64_t duration;
    int32_t result;
    uint32_t flags;
};

_Static_assert(sizeof(struct hed_trace_raw) == HED_TRACE_RECORD_HEADER,
               "a record's header has no padding");

/* The record at p, of which n bytes are there: its size, or 0 if it is not whole. */
static inline size_t
hed_trace_get_record(const uint8_t *p, size_t n, uint64_t thread, struct hed_trace_record *r)
{
    struct hed_trace_raw h;

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
        .body_size = h.size - (uint32_t)sizeof(h),
        .body = p + sizeof(h),
    };
    if ((h.flags & HED_TRACE_LINKED) && r->body_size >= HED_TRACE_LINK) {
        r->body_size -= HED_TRACE_LINK;
        memcpy(&r->correlation, r->body + r->body_size, sizeof(r->correlation));
    }
    return h.size;
}
