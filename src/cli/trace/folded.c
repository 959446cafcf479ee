/* Folded stacks. */
#include "cli/trace/folded.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/trace/link.h"
#include "cli/trace/table.h"
#include "see/see.h"

/* A semicolon ends a frame, so there is none in the text from `at` on. */
static void
no_semicolons(struct hed_buf *b, size_t at)
{
    for (size_t i = at; i < b->size; i++)
        b->data[i] = b->data[i] == ';' ? ',' : b->data[i];
}

static void
end_frame(struct hed_buf *b, size_t at)
{
    no_semicolons(b, at);
    hed_buf_addf(b, ";");
}

/* The ranges come with a semicolon behind each, which stays. Theirs became commas before. */
static void
add_ranges(const struct hed_ranges *l, uint32_t node, struct hed_buf *scratch, struct hed_buf *b)
{
    if (!node)
        return;
    hed_buf_reset(scratch);
    /* A text has no line of its own: it is escaped. */
    hed_ranges_add_path(l, node, "\n", hed_str_escape, scratch);
    no_semicolons(scratch, 0);
    for (size_t i = 0; i < scratch->size; i++)
        scratch->data[i] = scratch->data[i] == '\n' ? ';' : scratch->data[i];
    hed_buf_add(b, scratch->data, scratch->size);
}

static void
make_stack(const struct hed_trace *t, const struct hed_cli_links *links,
           const struct hed_trace_activity *a, struct hed_buf *scratch, struct hed_buf *b)
{
    const struct hed_cli_caller *c = hed_cli_links_find(links, a->correlation);
    char label[80];
    size_t at;

    hed_buf_reset(b);
    if (c) {
        const struct hed_schema_call *call = hed_schema_call(hed_trace_schema(t, c->api), c->call);

        hed_buf_addf(b, "%s", hed_cli_trace_thread(t, c->thread, label, sizeof label));
        end_frame(b, 0);
        add_ranges(&links->ranges, c->range, scratch, b);
        hed_buf_addf(b, "%s;", call ? call->name : "(no schema)");
    } else
        hed_buf_addf(b, "(unknown call);");
    at = b->size;
    if (a->name_size)
        hed_trace_add_readable(b, a);
    else if (a->kind == HED_TRACE_COPY)
        hed_buf_addf(b, "copy %s to %s", hed_trace_memory_name(a->from),
                     hed_trace_memory_name(a->to));
    else
        hed_buf_addf(b, "%s", hed_trace_activity_name(a->kind));
    no_semicolons(b, at);
}

bool
hed_folded_write(const struct hed_trace *t, FILE *file)
{
    struct hed_trace_cursor cursor = hed_trace_cursor_over(t);
    struct hed_cli_links links;
    struct hed_table table = {.lines = {.count = 0}};
    struct hed_trace_activity a;
    struct hed_trace_record r;
    struct hed_buf b;
    struct hed_buf scratch;
    bool good = hed_cli_links_make(&links, t);

    hed_buf_init(&b, HED_CLI_LINE_MAX);
    hed_buf_init(&scratch, HED_CLI_LINE_MAX);
    while (good && hed_trace_next(&cursor, &r)) {
        if (!hed_trace_get_activity(&r, &a))
            continue;
        make_stack(t, &links, &a, &scratch, &b);

        const uint32_t line = hed_table_line(&table, hed_buf_cstr(&b), NULL);

        good = line && hed_call_stats_add(&table.stats, line - 1, a.end - a.start, false);
    }
    hed_table_finish(&table, HED_SORT_NAME);
    for (size_t i = 0; good && i < table.stats.count; i++)
        good = fprintf(file, "%s %" PRIu64 "\n", table.stats.lines[i].name,
                       table.stats.lines[i].total) > 0;
    hed_table_fini(&table);
    hed_cli_links_fini(&links);
    hed_buf_fini(&b);
    hed_buf_fini(&scratch);
    return good;
}
