/* Shared by tests of the trace's writer: makes files in the scratch folder and reads them back. */
#pragma once

#include "harness/unit.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"
#include "see/trace/format.h"
#include "see/trace/read.h"
#include "see/trace/write.h"

static const char schema[] = "api test result\ncall 1 one i:n:u64 i:data:b\n";
static const char *const schemas[] = {schema, NULL};

static char path[1024];

static inline struct hed_trace_writer *
open_writer(const char *name, bool drop, uint64_t ring_size)
{
    const struct hed_trace_options o = {
        .path = path,
        .ring_size = ring_size,
        .drop = drop,
        .data_bytes = 64,
        .chain = "trace>test",
        .schemas = schemas,
    };
    struct hed_trace_writer *w = NULL;
    struct hed_why why = {""};

    snprintf(path, sizeof path, "%s/%s", getenv("HED_SCRATCH"), name);
    if (hed_trace_writer_open(&o, &w, &why) != 0)
        fail_msg("%s", why.text);
    return w;
}

/* Puts one record with its thread and its number. `result` also carries the number. */
static inline bool
put_call(struct hed_trace_writer *w, uint64_t who, uint32_t number, size_t data)
{
    static const uint8_t bytes[4096] = "data";
    const struct hed_trace_head head = {HED_TRACE_CALL, 0, 1, number + 1, 2, (int32_t)number, 0, 0};
    struct hed_trace_put put;
    struct hed_enc *e = hed_trace_begin(w, &put);

    if (!e)
        return false;
    hed_put_u64(e, who << 32 | number);
    hed_put_bulk(e, bytes, data);
    hed_trace_end(w, &put, &head);
    return true;
}

static inline struct hed_trace *
read_back(const char *file)
{
    struct hed_trace *t = NULL;
    struct hed_why why = {""};

    if (hed_trace_open(file, &t, &why) != 0)
        fail_msg("%s: %s", file, why.text);
    assert_true(hed_trace_state(t)->blocks_bad == 0);
    return t;
}

#define WHO_MAX 8192

struct found {
    uint64_t calls, dropped_records, dropped;
    uint32_t next[WHO_MAX]; /* by thread: one more than the last number */
    uint32_t gaps;          /* numbers that did not follow their predecessor */
};

static inline void
walk_records(const struct hed_trace *t, struct found *f)
{
    struct hed_trace_cursor c = hed_trace_cursor_over(t);
    struct hed_trace_record r;

    memset(f, 0, sizeof *f);
    while (hed_trace_next(&c, &r)) {
        uint64_t word;

        assert_true(r.body_size >= 8);
        memcpy(&word, r.body, 8);
        if (r.kind == HED_TRACE_DROPPED) {
            f->dropped_records++;
            f->dropped += word;
            continue;
        }

        const uint32_t who = (uint32_t)(word >> 32);
        const uint32_t number = (uint32_t)word;

        assert_int_equal(r.kind, HED_TRACE_CALL);
        assert_int_equal(r.result, number);
        assert_true(r.start == (uint64_t)number + 1 && r.duration == 2);
        assert_true(who < WHO_MAX && number >= f->next[who]);
        f->gaps += number != f->next[who];
        f->next[who] = number + 1;
        f->calls++;
    }
}

/* Closes and frees the writer, and compares the END block with the records. */
static inline struct found *
finish_trace(struct hed_trace_writer *w)
{
    static struct found f;
    uint64_t records;
    uint64_t dropped;

    hed_trace_writer_close(w);
    hed_trace_writer_count(w, &records, &dropped);

    struct hed_trace *t = read_back(hed_trace_writer_path(w));
    const struct hed_trace_state *s = hed_trace_state(t);

    walk_records(t, &f);
    assert_true(s->ended);
    assert_true(s->end_records == records && s->end_dropped == dropped);
    assert_true(s->records == f.calls + f.dropped_records);
    assert_true(records == s->records);
    hed_trace_close(t);
    hed_trace_writer_free(w);
    return &f;
}
