/* Fuzz target: a trace file, which is read in both orders; every record is printed in every way. */
#include "harness/fuzz.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "fuzz/trace_repair.h"
#include "see/trace/activity.h"
#include "see/trace/print.h"
#include "see/trace/read.h"

#define LINE_MAX_BYTES 65536

/* Our JSON has no control characters, its braces are balanced, and its strings end. */
static void
check_json(const struct hed_buf *b)
{
    bool quoted = false;
    long depth = 0;

    for (size_t i = 0; i < b->size; i++) {
        const unsigned char c = b->data[i];

        must(c >= 0x20);
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        must(depth >= 0);
    }
    must(!quoted && depth == 0);
}

/* Everything that is read lies in the record, and its times do not go back. */
static void
check_activity(const struct hed_trace_record *r)
{
    struct hed_trace_activity a;

    must(r->body_size <= r->size - sizeof(struct hed_trace_short));
    if (!hed_trace_get_activity(r, &a))
        return;
    must(a.end >= a.start && a.name_size <= r->body_size);
    for (size_t i = 0; i < a.name_size; i++)
        must((const uint8_t *)&a.name[i] < r->body + r->body_size);
    must(hed_trace_activity_name(a.kind)[0] && hed_trace_memory_name(a.from)[0]);
}

static void
print_record(const struct hed_trace *t, const struct hed_trace_record *r, struct hed_buf *b)
{
    struct hed_trace_facts facts;

    hed_buf_reset(b);
    hed_trace_facts(t, r, &facts);
    hed_trace_print_name(t, r, b);
    hed_trace_print_args(t, r, b);
    hed_trace_print_result(t, r, b);
    hed_trace_print_other(r, b);
    hed_buf_reset(b);
    hed_trace_json_args(t, r, b);
    must(b->err == 0);
    check_json(b);
    hed_buf_reset(b);
    hed_buf_addf(b, "{");
    hed_trace_json_activity(r, b);
    hed_buf_addf(b, "}");
    must(b->err == 0);
    check_json(b);
    check_activity(r);
    hed_trace_is_error(t, r);
    hed_trace_dropped(r);
    hed_trace_thread_name(t, r->thread);
}

static void
check_trace(const struct hed_trace *t)
{
    const struct hed_trace_state *s = hed_trace_state(t);
    struct hed_trace_cursor c = hed_trace_cursor_over(t);
    struct hed_trace_index *index = NULL;
    struct hed_trace_record r;
    struct hed_buf b;
    uint64_t n = 0;
    uint64_t before = 0;

    must(s->bytes_lost + s->bytes_cut <= s->size);
    hed_buf_init(&b, LINE_MAX_BYTES);
    for (; hed_trace_next(&c, &r); n++)
        print_record(t, &r, &b);
    must(n == s->records);
    must(hed_trace_sort(t, &index, NULL) == 0);
    for (n = 0; hed_trace_at(index, n, &r); n++) {
        must(r.start >= before);
        before = r.start;
    }
    must(n == s->records);
    hed_trace_index_free(index);
    hed_buf_fini(&b);
}

static void
read_trace(const uint8_t *data, size_t size)
{
    struct hed_trace *t = NULL;
    struct hed_why why;

    if (hed_trace_open_memory(data, size, &t, &why) == 0) {
        check_trace(t);
        hed_trace_close(t);
    } else {
        must(t == NULL && why.text[0] != '\0');
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    read_trace(data, size);
    if (copy && size) {
        memcpy(copy, data, size);
        fuzz_repair_trace(copy, size);
        read_trace(copy, size);
    }
    free(copy);
    return 0;
}
