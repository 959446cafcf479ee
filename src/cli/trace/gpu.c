/* Counts and times what the GPU did. */
#include "cli/trace/gpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/number.h"
#include "cli/trace/idle.h"
#include "cli/trace/link.h"
#include "see/see.h"

struct spans {
    struct hed_gpu_span *list; /* owned */
    size_t count;
};

/* The streams of one trace. */
struct streams {
    struct hed_cli_contexts contexts;
    struct hed_cli_map lines; /* context's number and stream -> line + 1 */
    uint64_t pid;             /* 0: not part of the names */
};

/* What one trace is counted with. */
struct count {
    struct hed_gpu *gpu;
    struct streams streams;
    struct spans spans;
    struct hed_cli_links links;
    struct hed_cli_map ranges; /* range -> line + 1 */
    struct hed_buf scratch;
};

/* ---- counting -------------------------------------------------------------------------------- */

static bool
add_busy_span(struct spans *s, const struct hed_trace_activity *a)
{
    struct hed_gpu_span *wide = hed_cli_widened(s->list, s->count, sizeof *wide);

    if (!wide)
        return false;
    s->list = wide;
    s->list[s->count++] = (struct hed_gpu_span){
        .device = a->device,
        .kind = a->kind,
        .start = a->start,
        .end = a->end,
        .correlation = a->correlation,
    };
    return true;
}

/* Appends a text without control characters, for a terminal. */
static void
add_clean(struct hed_buf *b, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];

        hed_buf_add(b, c < 0x20 || c == 0x7f ? "?" : &text[i], 1);
    }
}

static const char *
clean_name(const struct hed_trace_activity *a, struct hed_buf *b)
{
    hed_buf_reset(b);
    add_clean(b, a->name, a->name_size);
    return b->size ? hed_buf_cstr(b) : "(no name)";
}

static bool
add_kernel_time(struct hed_gpu *g, const struct hed_trace_activity *a, struct hed_buf *scratch)
{
    const uint32_t line = hed_table_line(&g->kernels, clean_name(a, scratch), NULL);

    return line && hed_call_stats_add(&g->kernels.stats, line - 1, a->end - a->start, false);
}

/* Adds bytes to a line. */
static void
add_bytes(struct hed_table *t, uint32_t line, uint64_t bytes)
{
    uint64_t *sum = &t->stats.lines[line - 1].bytes;

    *sum = hed_add_capped(*sum, bytes);
}

static bool
add_copy_time(struct hed_gpu *g, const struct hed_trace_activity *a)
{
    char name[64];

    if (a->kind == HED_TRACE_FILL)
        snprintf(name, sizeof(name), "fill of %s", hed_trace_memory_name(a->to));
    else
        snprintf(name, sizeof(name), "%s to %s", hed_trace_memory_name(a->from),
                 hed_trace_memory_name(a->to));

    const uint32_t line = hed_table_line(&g->copies, name, NULL);

    if (!line || !hed_call_stats_add(&g->copies.stats, line - 1, a->end - a->start, false))
        return false;
    add_bytes(&g->copies, line, a->bytes);
    return true;
}

/* ---- streams --------------------------------------------------------------------------------- */

static uint32_t
make_stream_line(struct count *c, const struct hed_trace_activity *a, bool first)
{
    char name[128];
    int n = 0;

    if (c->streams.pid)
        n = snprintf(name, sizeof name, "process %" PRIu64 " ", c->streams.pid);
    n += snprintf(name + n, sizeof name - (size_t)n, "GPU %" PRIu32 " stream %" PRIu32, a->device,
                  a->stream);
    if (!first)
        (void)snprintf(name + n, sizeof name - (size_t)n, " of context %" PRIu32, a->context);
    return hed_table_line(&c->gpu->streams, name, NULL);
}

static bool
add_stream_time(struct count *c, const struct hed_trace_activity *a)
{
    bool first = false;
    const uint32_t context = hed_cli_context(&c->streams.contexts, a, &first);
    const uint64_t key = (uint64_t)context << 32 | a->stream;
    uint32_t line = hed_cli_map_get(&c->streams.lines, key);

    if (!context)
        return false;
    if (!line) {
        line = make_stream_line(c, a, first);
        if (!line || !hed_cli_map_put(&c->streams.lines, key, line))
            return false;
    }
    add_bytes(&c->gpu->streams, line, a->bytes);
    return hed_call_stats_add(&c->gpu->streams.stats, line - 1, a->end - a->start, false);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static bool
add_range_time(struct count *c, const struct hed_trace_activity *a)
{
    const struct hed_cli_caller *caller = hed_cli_links_find(&c->links, a->correlation);
    uint32_t line;

    if (!caller || !caller->range)
        return true;
    line = hed_cli_map_get(&c->ranges, caller->range);
    if (!line) {
        hed_buf_reset(&c->scratch);
        hed_ranges_add_path(&c->links.ranges, caller->range, " > ", add_clean, &c->scratch);
        if (c->scratch.size)
            hed_buf_cut(&c->scratch, c->scratch.size - strlen(" > "));
        line = hed_table_line(&c->gpu->ranges, hed_buf_cstr(&c->scratch), NULL);
        if (!line || !hed_cli_map_put(&c->ranges, caller->range, line))
            return false;
    }
    return hed_call_stats_add(&c->gpu->ranges.stats, line - 1, a->end - a->start, false);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Counts the calls that have caused something. */
static bool
add_callers(struct hed_gpu *g, const struct hed_trace *t, const struct hed_cli_links *links,
            struct hed_gpu_devices *devices)
{
    for (size_t i = 0; i < links->count; i++) {
        const struct hed_cli_caller *c = &links->callers[i];
        const struct hed_schema_call *call = hed_schema_call(hed_trace_schema(t, c->api), c->call);

        if (!c->found)
            continue;
        devices->named += c->kernel_size != 0;

        const uint32_t line = hed_table_line(&g->waits, call ? call->name : "(no schema)", NULL);

        /* The clocks of a GPU and its host can differ a little. */
        if (!line || !hed_call_stats_add(&g->waits.stats, line - 1,
                                         c->first > c->start ? c->first - c->start : 0, false))
            return false;
    }
    return true;
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

static int
by_device_and_start(const void *a, const void *b)
{
    const struct hed_gpu_span *x = a;
    const struct hed_gpu_span *y = b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

/* Makes one entry for each GPU. False if there is no memory. */
static bool
sum_up(struct spans *s, struct hed_gpu_devices *d)
{
    uint64_t until = 0; /* ns: what is counted as busy so far */

    if (!s->count)
        return true;
    qsort(s->list, s->count, sizeof(*s->list), by_device_and_start);
    for (size_t i = 0; i < s->count; i++) {
        const struct hed_gpu_span *x = &s->list[i];

        if (i == 0 || x->device != s->list[i - 1].device) {
            struct hed_gpu_device *wide = reallocarray(d->list, d->count + 1, sizeof(*d->list));

            if (!wide)
                return false;
            d->list = wide;
            d->list[d->count++] = (struct hed_gpu_device){.device = x->device};
            until = 0;
        }

        struct hed_gpu_device *now = &d->list[d->count - 1];
        const uint64_t from = x->start > until ? x->start : until;

        if (x->end > from) {
            now->busy += x->end - from;
            until = x->end;
        }
        now->kernels += x->kind == HED_TRACE_KERNEL;
        now->copies += x->kind == HED_TRACE_COPY;
        now->fills += x->kind == HED_TRACE_FILL;
        now->others += x->kind < HED_TRACE_KERNEL || x->kind > HED_TRACE_FILL;
    }
    return true;
}

static bool
count_activity(struct count *c, const struct hed_trace_activity *a)
{
    if (!add_busy_span(&c->spans, a) || !add_stream_time(c, a) || !add_range_time(c, a))
        return false;
    if (a->kind == HED_TRACE_KERNEL)
        return add_kernel_time(c->gpu, a, &c->scratch);
    if (a->kind == HED_TRACE_COPY || a->kind == HED_TRACE_FILL)
        return add_copy_time(c->gpu, a);
    return true;
}

void
hed_gpu_add(struct hed_gpu *g, const struct hed_trace *t, struct hed_gpu_devices *devices)
{
    struct hed_trace_cursor cursor = hed_trace_cursor_over(t);
    struct count c = {.gpu = g, .streams.pid = g->many ? hed_trace_info_u64(t, "pid") : 0};
    struct hed_trace_activity a;
    struct hed_trace_record r;
    bool good;

    *devices = (struct hed_gpu_devices){.count = 0};
    if (!hed_trace_state(t)->activities)
        return;
    hed_buf_init(&c.scratch, HED_CLI_LINE_MAX);
    good = hed_cli_links_make(&c.links, t);
    while (good && hed_trace_next(&cursor, &r)) {
        if (hed_trace_get_activity(&r, &a))
            good = count_activity(&c, &a);
    }
    good = sum_up(&c.spans, devices) && good;
    good = good && add_callers(g, t, &c.links, devices);
    good = good && hed_idle_add(&g->idle, t, &c.links, c.spans.list, c.spans.count);
    g->full |= !good;
    hed_cli_links_fini(&c.links);
    hed_cli_contexts_fini(&c.streams.contexts);
    hed_cli_map_fini(&c.streams.lines);
    hed_cli_map_fini(&c.ranges);
    free(c.spans.list);
    hed_buf_fini(&c.scratch);
}

const char *
hed_gpu_clock(const struct hed_trace *t)
{
    const char *backend = hed_cli_trace_backend(t);

    if (!hed_trace_state(t)->activities)
        return NULL;
    /* With NVIDIA's driver, nothing but CUPTI tells them. */
    return strcmp(backend, "cpu") == 0 ? "executor" : strcmp(backend, "gpu") == 0 ? "cupti" : NULL;
}

void
hed_gpu_devices_fini(struct hed_gpu_devices *devices)
{
    free(devices->list);
    *devices = (struct hed_gpu_devices){.count = 0};
}

void
hed_gpu_finish(struct hed_gpu *g, enum hed_table_sort sort)
{
    hed_table_finish(&g->kernels, sort);
    hed_table_finish(&g->streams, sort);
    hed_table_finish(&g->ranges, sort);
    hed_table_finish(&g->copies, sort);
    hed_table_finish(&g->idle, sort);
    hed_table_finish(&g->waits, sort);
}

void
hed_gpu_fini(struct hed_gpu *g)
{
    hed_table_fini(&g->kernels);
    hed_table_fini(&g->streams);
    hed_table_fini(&g->ranges);
    hed_table_fini(&g->copies);
    hed_table_fini(&g->idle);
    hed_table_fini(&g->waits);
}
