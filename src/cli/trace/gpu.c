/* Counts and times what the GPU did. */
#include "cli/trace/gpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/demangle.h"
#include "cli/trace/link.h"
#include "see/see.h"

/* When something ran. */
struct span {
    uint32_t device;
    uint16_t kind;
    uint64_t start;
    uint64_t end;
};

struct spans {
    struct span *list; /* owned */
    size_t count;
};

/* ---- counting -------------------------------------------------------------------------------- */

static bool
add_busy_span(struct spans *s, const struct hed_trace_activity *a)
{
    const size_t n = s->count;

    if ((n & (n - 1)) == 0) {
        struct span *wide = reallocarray(s->list, n ? n * 2 : 1, sizeof(*s->list));

        if (!wide)
            return false;
        s->list = wide;
    }
    s->list[s->count++] = (struct span){a->device, a->kind, a->start, a->end};
    return true;
}

/* A name without control characters, for a terminal. */
static const char *
clean_name(const struct hed_trace_activity *a, struct hed_buf *b)
{
    hed_buf_reset(b);
    for (size_t i = 0; i < a->name_size; i++) {
        const unsigned char c = (unsigned char)a->name[i];

        hed_buf_add(b, c < 0x20 || c == 0x7f ? "?" : &a->name[i], 1);
    }
    return b->size ? hed_buf_cstr(b) : "(no name)";
}

static bool
add_kernel_time(struct hed_gpu *g, const struct hed_trace_activity *a, struct hed_buf *scratch)
{
    const uint32_t line = hed_table_line(&g->kernels, clean_name(a, scratch), NULL);

    return line && hed_call_stats_add(&g->kernels.stats, line - 1, a->end - a->start, false);
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

    uint64_t *bytes = &g->copies.stats.lines[line - 1].bytes;

    if (__builtin_add_overflow(*bytes, a->bytes, bytes))
        *bytes = UINT64_MAX;
    return true;
}

static bool
add_waits(struct hed_gpu *g, const struct hed_trace *t)
{
    struct hed_cli_links links;
    bool good = hed_cli_links_make(&links, t);

    for (size_t i = 0; good && i < links.count; i++) {
        const struct hed_cli_caller *c = &links.callers[i];
        const struct hed_schema_call *call = hed_schema_call(hed_trace_schema(t, c->api), c->call);

        if (!c->found)
            continue;

        const uint32_t line = hed_table_line(&g->waits, call ? call->name : "(no schema)", NULL);

        /* The clocks of a GPU and its host can differ a little. */
        good = line && hed_call_stats_add(&g->waits.stats, line - 1,
                                          c->first > c->start ? c->first - c->start : 0, false);
    }
    hed_cli_links_fini(&links);
    return good;
}

static int
by_device_and_start(const void *a, const void *b)
{
    const struct span *x = a;
    const struct span *y = b;

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
        const struct span *x = &s->list[i];

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

void
hed_gpu_add(struct hed_gpu *g, const struct hed_trace *t, struct hed_gpu_devices *devices)
{
    struct hed_trace_cursor c = hed_trace_cursor_over(t);
    struct hed_trace_activity a;
    struct hed_trace_record r;
    struct spans spans = {.count = 0};
    struct hed_buf scratch;
    bool good = true;

    *devices = (struct hed_gpu_devices){.count = 0};
    if (!hed_trace_state(t)->activities)
        return;
    hed_buf_init(&scratch, HED_CLI_LINE_MAX);
    while (good && hed_trace_next(&c, &r)) {
        if (!hed_trace_get_activity(&r, &a))
            continue;
        good = add_busy_span(&spans, &a);
        if (a.kind == HED_TRACE_KERNEL)
            good = good && add_kernel_time(g, &a, &scratch);
        else if (a.kind == HED_TRACE_COPY || a.kind == HED_TRACE_FILL)
            good = good && add_copy_time(g, &a);
    }
    good = sum_up(&spans, devices) && good;
    good = good && add_waits(g, t);
    g->full |= !good;
    free(spans.list);
    hed_buf_fini(&scratch);
}

void
hed_gpu_devices_fini(struct hed_gpu_devices *devices)
{
    free(devices->list);
    *devices = (struct hed_gpu_devices){.count = 0};
}

/* ---- text ------------------------------------------------------------------------------------ */

static void
print_count(uint64_t n, const char *one, const char *many, const char **between)
{
    if (!n)
        return;
    printf("%s%" PRIu64 " %s", *between, n, n == 1 ? one : many);
    *between = ", ";
}

void
hed_gpu_print_devices(const struct hed_gpu_devices *devices, uint64_t duration)
{
    for (size_t i = 0; i < devices->count; i++) {
        const struct hed_gpu_device *d = &devices->list[i];
        const char *between = ": ";
        char label[24];
        char busy[24];

        snprintf(label, sizeof(label), "GPU %" PRIu32, d->device);
        printf("%-9s busy for %s", label, hed_cli_duration(d->busy, busy, sizeof(busy)));
        if (duration)
            printf(" (%.1f %%)", 100 * (double)d->busy / (double)duration);
        print_count(d->kernels, "kernel", "kernels", &between);
        print_count(d->copies, "copy", "copies", &between);
        print_count(d->fills, "fill", "fills", &between);
        print_count(d->others, "other", "others", &between);
        printf("\n");
    }
}

static const char *
size_text(uint64_t bytes, char *out, size_t size)
{
    static const struct {
        double bytes;
        const char *unit;
    } units[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        const double v = (double)bytes / units[i].bytes;

        if (v >= 0.99995) {
            snprintf(out, size, "%.*f %s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, units[i].unit);
            return out;
        }
    }
    snprintf(out, size, "%u B", (unsigned)bytes);
    return out;
}

static double
bytes_per_ns(const struct hed_call_stats_line *l)
{
    return l->total ? (double)l->bytes / (double)l->total : 0;
}

/* Prints a name at the end of its line, or on the next line if it does not fit. */
static void
print_name(const char *name, int width)
{
    const size_t room = hed_cli_columns();

    printf("%s%s\n", room && (size_t)width + strlen(name) + 1 > room ? "\n    " : " ", name);
}

static int
print_time(uint64_t ns)
{
    char text[24];

    return printf("%9s ", hed_cli_duration(ns, text, sizeof(text)));
}

static void
print_kernels(const struct hed_call_stats *s)
{
    char readable[HED_TRACE_NAME_MAX];
    double total = 0;

    for (size_t i = 0; i < s->count; i++)
        total += (double)s->lines[i].total;
    if (s->count)
        printf("\n%9s %9s %6s %9s %9s %9s %9s  kernel\n", "kernels", "total", "%", "mean", "min",
               "p99", "max");
    for (size_t i = 0; i < s->count; i++) {
        const struct hed_call_stats_line *l = &s->lines[i];
        int width = printf("%9" PRIu64 " ", l->count);

        width += print_time(l->total);
        width += printf("%6.1f ", total > 0 ? 100 * (double)l->total / total : 0);
        width += print_time((uint64_t)(hed_call_stats_mean(l) + 0.5));
        width += print_time(l->min);
        width += print_time(l->p99);
        width += print_time(l->max);
        print_name(hed_demangle(l->name, readable, sizeof readable), width);
    }
}

static void
print_copies(const struct hed_call_stats *s)
{
    char text[24];

    if (s->count)
        printf("\n%9s %9s %9s %9s %9s %9s  copy\n", "copies", "total", "bytes", "GB/s", "mean",
               "max");
    for (size_t i = 0; i < s->count; i++) {
        const struct hed_call_stats_line *l = &s->lines[i];
        int width = printf("%9" PRIu64 " ", l->count);

        width += print_time(l->total);
        width += printf("%9s %9.2f ", size_text(l->bytes, text, sizeof(text)), bytes_per_ns(l));
        width += print_time((uint64_t)(hed_call_stats_mean(l) + 0.5));
        width += print_time(l->max);
        print_name(l->name, width);
    }
}

static void
print_waits(const struct hed_call_stats *s)
{
    if (s->count)
        printf("\n%9s %9s %9s %9s %9s  from call to start on the GPU\n", "calls", "mean", "p50",
               "p99", "max");
    for (size_t i = 0; i < s->count; i++) {
        const struct hed_call_stats_line *l = &s->lines[i];
        int width = printf("%9" PRIu64 " ", l->count);

        width += print_time((uint64_t)(hed_call_stats_mean(l) + 0.5));
        width += print_time(l->p50);
        width += print_time(l->p99);
        width += print_time(l->max);
        print_name(l->name, width);
    }
}

void
hed_gpu_finish(struct hed_gpu *g, enum hed_table_sort sort)
{
    hed_table_finish(&g->kernels, sort);
    hed_table_finish(&g->copies, sort);
    hed_table_finish(&g->waits, sort);
}

void
hed_gpu_print(const struct hed_gpu *g)
{
    print_kernels(&g->kernels.stats);
    print_copies(&g->copies.stats);
    print_waits(&g->waits.stats);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void
hed_gpu_json_devices(const struct hed_gpu_devices *devices, struct hed_buf *b)
{
    hed_buf_addf(b, "\"gpus\":[");
    for (size_t i = 0; i < devices->count; i++) {
        const struct hed_gpu_device *d = &devices->list[i];

        hed_buf_addf(b,
                     "%s{\"device\":%" PRIu32 ",\"busy_ns\":%" PRIu64 ",\"kernels\":%" PRIu64
                     ",\"copies\":%" PRIu64 ",\"fills\":%" PRIu64 ",\"others\":%" PRIu64 "}",
                     i ? "," : "", d->device, d->busy, d->kernels, d->copies, d->fills, d->others);
    }
    hed_buf_addf(b, "]");
}

static void
print_stats_json(const char *name, const struct hed_call_stats *s, bool symbols, bool bytes)
{
    char readable[HED_TRACE_NAME_MAX];
    struct hed_buf b;

    hed_buf_init(&b, HED_CLI_LINE_MAX);
    printf("\"%s\":[", name);
    for (size_t i = 0; i < s->count; i++) {
        const struct hed_call_stats_line *l = &s->lines[i];

        hed_buf_reset(&b);
        hed_buf_addf(&b, "%s\n{\"name\":", i ? "," : "");
        hed_cli_json_text(&b, l->name);
        if (symbols) {
            hed_buf_addf(&b, ",\"readable\":");
            hed_cli_json_text(&b, hed_demangle(l->name, readable, sizeof readable));
        }
        hed_buf_addf(&b,
                     ",\"count\":%" PRIu64 ",\"total_ns\":%" PRIu64
                     ",\"mean_ns\":%.1f,\"min_ns\":%" PRIu64 ",\"p50_ns\":%" PRIu64
                     ",\"p99_ns\":%" PRIu64 ",\"max_ns\":%" PRIu64,
                     l->count, l->total, hed_call_stats_mean(l), l->min, l->p50, l->p99, l->max);
        if (bytes)
            hed_buf_addf(&b, ",\"bytes\":%" PRIu64 ",\"gb_per_s\":%.3f", l->bytes, bytes_per_ns(l));
        hed_buf_addf(&b, "}");
        fputs(hed_buf_cstr(&b), stdout);
    }
    printf("]");
    hed_buf_fini(&b);
}

void
hed_gpu_print_json(const struct hed_gpu *g)
{
    print_stats_json("kernels", &g->kernels.stats, true, false);
    printf(",");
    print_stats_json("copies", &g->copies.stats, false, true);
    printf(",");
    print_stats_json("waits", &g->waits.stats, false, false);
}

void
hed_gpu_fini(struct hed_gpu *g)
{
    hed_table_fini(&g->kernels);
    hed_table_fini(&g->copies);
    hed_table_fini(&g->waits);
}
