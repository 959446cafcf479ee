/* What the GPU did, as tables and as JSON. */
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/demangle.h"
#include "cli/trace/gpu.h"
#include "see/see.h"

/* ---- text ------------------------------------------------------------------------------------ */

static void
print_count(uint64_t n, const char *one, const char *many, const char **between)
{
    if (!n)
        return;
    printf("%s%" PRIu64 " %s", *between, n, n == 1 ? one : many);
    *between = ", ";
}

/* Nothing is said of times that no one has measured, but why there are none. */
static void
print_clock(const struct hed_trace *t, const struct hed_gpu_devices *devices, uint64_t launches)
{
    const char *clock = hed_gpu_clock(t);
    const char *backend = hed_cli_trace_backend(t);

    if (clock)
        printf("GPU times measured by %s\n",
               strcmp(clock, "cupti") == 0 ? "CUPTI" : "the executor of the CPU GPU");
    else if (launches && !devices->count && strcmp(backend, "gpu") == 0)
        printf("GPU times not in this trace; NVIDIA's driver tells them with heddle run "
               "--inject --trace\n");
    else if (launches && !devices->count && strcmp(backend, "remote") == 0)
        printf("GPU times not in this trace; servers do not tell them\n");
    if (launches && devices->count)
        printf("launches  %" PRIu64 ", %" PRIu64 " with the name and times of a kernel\n", launches,
               devices->named);
}

void
hed_gpu_print_devices(const struct hed_trace *t, const struct hed_gpu_devices *devices,
                      uint64_t duration, uint64_t launches)
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
    print_clock(t, devices, launches);
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

    printf("%s", room && (size_t)width + strlen(name) + 1 > room ? "\n    " : " ");
    hed_cli_put(stdout, name);
    printf("\n");
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

/* Lines without more to say than how often and how long. What is less than `least` percent of the
 * whole is left out; JSON has it. */
static void
print_times(const struct hed_call_stats *s, const char *many, const char *what, double least)
{
    double total = 0;
    size_t left_out = 0;

    for (size_t i = 0; i < s->count; i++)
        total += (double)s->lines[i].total;
    if (s->count)
        printf("\n%9s %9s %6s %9s %9s %9s  %s\n", many, "total", "%", "mean", "p99", "max", what);
    for (size_t i = 0; i < s->count; i++) {
        const struct hed_call_stats_line *l = &s->lines[i];
        const double share = total > 0 ? 100 * (double)l->total / total : 0;

        if (share < least) {
            left_out++;
            continue;
        }

        int width = printf("%9" PRIu64 " ", l->count);

        width += print_time(l->total);
        width += printf("%6.1f ", share);
        width += print_time((uint64_t)(hed_call_stats_mean(l) + 0.5));
        width += print_time(l->p99);
        width += print_time(l->max);
        print_name(l->name, width);
    }
    if (left_out)
        printf("%9s %9s  and %zu more of less than %.1f %% each\n", "", "", left_out, least);
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
        width += printf("%9s %9.2f ", hed_cli_bytes(l->bytes, text, sizeof(text)), bytes_per_ns(l));
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
hed_gpu_print(const struct hed_gpu *g)
{
    print_kernels(&g->kernels.stats);
    print_times(&g->streams.stats, "works", "stream", 0);
    print_times(&g->ranges.stats, "works", "caused in the range", 0);
    print_copies(&g->copies.stats);
    print_times(&g->idle.stats, "times", "the GPU was idle, and meanwhile", 0.1);
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
json_stats(FILE *out, const char *name, const struct hed_call_stats *s, bool symbols, bool bytes)
{
    char readable[HED_TRACE_NAME_MAX];
    struct hed_buf b;

    hed_buf_init(&b, HED_CLI_LINE_MAX);
    fprintf(out, "\"%s\":[", name);
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
        fputs(hed_buf_cstr(&b), out);
    }
    fprintf(out, "]");
    hed_buf_fini(&b);
}

void
hed_gpu_json(const struct hed_gpu *g, FILE *out)
{
    json_stats(out, "kernels", &g->kernels.stats, true, false);
    fputs(",", out);
    json_stats(out, "streams", &g->streams.stats, false, true);
    fputs(",", out);
    json_stats(out, "ranges", &g->ranges.stats, false, false);
    fputs(",", out);
    json_stats(out, "copies", &g->copies.stats, false, true);
    fputs(",", out);
    json_stats(out, "idle", &g->idle.stats, false, false);
    fputs(",", out);
    json_stats(out, "waits", &g->waits.stats, false, false);
}
