/* heddle trace diff: what a second trace of a program has more, fewer, slower or faster than a
 * first one. For people, and for CI by its exit status.
 *
 * Counts are compared exactly. Times are compared by kernel and only where both traces have them
 * from the same source. A kernel counts as slower if its median grew by a factor, and by a part of
 * all the time in kernels if all its launches did: short kernels vary a lot, and a first launch may
 * last longer than all others together.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/err.h"
#include "base/number.h"
#include "cli/trace/count.h"
#include "cli/trace/util.h"
#include "see/see.h"

#define FACTOR 1.5       /* how many times as long a kernel must take */
#define LEAST_SHARE 0.01 /* of the first trace's time in kernels */
#define LINES_MAX 20     /* printed, better and worse ones each */

static const char usage[] =
    "usage: heddle trace diff A B [OPTION...]\n\n"
    "Compares two traces of a program: launches, kernels and their times, bytes\n"
    "copied, failed calls.\n\n"
    "  --slower FACTOR  a kernel is slower if its median is so many times as long\n"
    "                   (default: 1.5) and that matters for the whole\n"
    "  --counts         compare no times\n"
    "  --json           print one JSON object\n"
    "  -h, --help       show this help\n\n"
    "The exit code is 0 if nothing is worse in B, and 3 if something is: more\n"
    "launches, slower kernels, more bytes, more calls that failed. It is 1 if a\n"
    "trace cannot be read or is damaged.\n";

/* One of the two. */
struct side {
    const char *path;
    struct hed_count count;
    struct hed_count_totals totals;
    struct hed_buf program;
    const char *clock;    /* static; NULL: the trace has no times */
    uint64_t kernel_time; /* ns */
    uint64_t copied;      /* bytes */
    int verdict;
};

/* A kernel that is not the same in both. */
struct change {
    const char *name;
    uint64_t count[2];
    uint64_t total[2];  /* ns */
    uint64_t median[2]; /* ns */
    double worse;       /* ns that it costs more; negative: less */
    bool more;          /* launched more often */
    bool fewer;
    bool slower;
    bool faster;
};

struct diff {
    struct side sides[2];
    struct change *changes; /* owned; the most expensive first */
    size_t count;
    double factor;
    bool no_times;
    bool as_json;
};

/* ---- reading --------------------------------------------------------------------------------- */

static bool
read_side(struct side *s)
{
    const struct hed_call_stats *kernels = &s->count.gpu.kernels.stats;
    const struct hed_call_stats *copies = &s->count.gpu.copies.stats;
    struct hed_trace *t = hed_cli_trace_open(s->path);

    hed_count_init(&s->count);
    hed_buf_init(&s->program, HED_CLI_LINE_MAX);
    if (!t)
        return false;
    hed_count_add(&s->count, t, &s->totals);
    hed_count_describe(&s->count, s->path, t, &s->totals);
    hed_cli_trace_program(t, &s->program);
    s->clock = hed_gpu_clock(t);
    s->verdict = hed_cli_trace_verdict(s->path, t);
    hed_trace_close(t);
    hed_count_finish(&s->count, HED_SORT_NAME);
    for (size_t i = 0; i < kernels->count; i++)
        s->kernel_time = hed_add_capped(s->kernel_time, kernels->lines[i].total);
    for (size_t i = 0; i < copies->count; i++)
        s->copied = hed_add_capped(s->copied, copies->lines[i].bytes);
    if (s->count.full)
        hed_cli_say("trace diff: %s: %s", s->path, hed_err_text(HED_ENOMEM));
    return !s->count.full;
}

static void
side_fini(struct side *s)
{
    hed_gpu_devices_fini(&s->totals.gpus);
    hed_count_fini(&s->count);
    hed_buf_fini(&s->program);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool
have_times(const struct diff *d)
{
    const char *a = d->sides[0].clock;
    const char *b = d->sides[1].clock;

    return !d->no_times && a && b && strcmp(a, b) == 0;
}

/* Fills in one change. a or b is NULL if that trace does not have the kernel. False: none. */
static bool
compare_kernel(const struct diff *d, const struct hed_call_stats_line *a,
               const struct hed_call_stats_line *b, struct change *c)
{
    const struct hed_call_stats_line *const lines[2] = {a, b};
    const double least = LEAST_SHARE * (double)d->sides[0].kernel_time;

    *c = (struct change){.name = a ? a->name : b->name};
    for (int i = 0; i < 2; i++) {
        c->count[i] = lines[i] ? lines[i]->count : 0;
        c->total[i] = lines[i] ? lines[i]->total : 0;
        c->median[i] = lines[i] ? lines[i]->p50 : 0;
    }
    c->more = c->count[1] > c->count[0];
    c->fewer = c->count[1] < c->count[0];
    c->worse = (double)c->total[1] - (double)c->total[0];
    if (a && b && have_times(d)) {
        /* As if it had been launched as often, so that more launches do not look slower. */
        const double x = (double)c->median[0];
        const double y = (double)c->median[1];
        const double matters = (y - x) * (double)c->count[0];

        c->slower = y >= d->factor * x && matters > least;
        c->faster = x >= d->factor * y && -matters > least;
    }
    return c->more || c->fewer || c->slower || c->faster;
}

static int
by_cost(const void *a, const void *b)
{
    const struct change *x = a;
    const struct change *y = b;

    if (x->worse != y->worse)
        return x->worse > y->worse ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Both tables are sorted by name. */
static bool
compare_kernels(struct diff *d)
{
    const struct hed_call_stats *a = &d->sides[0].count.gpu.kernels.stats;
    const struct hed_call_stats *b = &d->sides[1].count.gpu.kernels.stats;
    size_t i = 0;
    size_t j = 0;

    d->changes = calloc(a->count + b->count + 1, sizeof *d->changes);
    if (!d->changes)
        return false;
    while (i < a->count || j < b->count) {
        const struct hed_call_stats_line *x = i < a->count ? &a->lines[i] : NULL;
        const struct hed_call_stats_line *y = j < b->count ? &b->lines[j] : NULL;
        const int order = !x ? 1 : !y ? -1 : strcmp(x->name, y->name);

        i += order <= 0;
        j += order >= 0;
        d->count +=
            compare_kernel(d, order <= 0 ? x : NULL, order >= 0 ? y : NULL, &d->changes[d->count]);
    }
    qsort(d->changes, d->count, sizeof *d->changes, by_cost);
    return true;
}

static bool
is_worse(const struct change *c)
{
    return c->more || c->slower;
}

static bool
any_worse(const struct diff *d)
{
    const struct side *a = &d->sides[0];
    const struct side *b = &d->sides[1];
    bool worse = b->totals.launches > a->totals.launches || b->copied > a->copied ||
                 b->totals.errors > a->totals.errors;

    for (size_t i = 0; i < d->count; i++)
        worse |= is_worse(&d->changes[i]);
    return worse;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void
print_number(const char *what, uint64_t a, uint64_t b)
{
    printf("%-13s %12" PRIu64 " %12" PRIu64, what, a, b);
    if (a != b)
        printf("  %c%" PRIu64, b > a ? '+' : '-', b > a ? b - a : a - b);
    printf("\n");
}

static void
print_kernel_time(const struct diff *d)
{
    char a[24];
    char b[24];
    const uint64_t x = d->sides[0].kernel_time;
    const uint64_t y = d->sides[1].kernel_time;

    if (!have_times(d))
        return;
    printf("%-13s %12s %12s", "kernel time", hed_cli_duration(x, a, sizeof a),
           hed_cli_duration(y, b, sizeof b));
    if (x && y)
        printf("  %.2fx", (double)y / (double)x);
    printf("\n");
}

static void
print_change(const struct change *c)
{
    char readable[HED_TRACE_NAME_MAX];
    char a[24];
    char b[24];
    const char *between = "  ";

    if (c->more || c->fewer) {
        printf("%s%" PRIu64 " %s %s (%" PRIu64 " -> %" PRIu64 ")", between,
               c->more ? c->count[1] - c->count[0] : c->count[0] - c->count[1],
               c->count[0] - c->count[1] == 1 || c->count[1] - c->count[0] == 1 ? "launch"
                                                                                : "launches",
               c->more ? "more" : "fewer", c->count[0], c->count[1]);
        between = ", ";
    }
    if (c->slower || c->faster) {
        const uint64_t *m = c->median;
        const uint64_t less = c->slower ? m[0] : m[1];

        printf("%s%.1fx %s (median %s -> %s)", between,
               (double)(c->slower ? m[1] : m[0]) / (double)(less ? less : 1),
               c->slower ? "slower" : "faster", hed_cli_duration(m[0], a, sizeof a),
               hed_cli_duration(m[1], b, sizeof b));
    }
    printf(": ");
    hed_cli_put(stdout, hed_demangle(c->name, readable, sizeof readable));
    printf("\n");
}

/* What is worse comes with the most expensive first, the rest with what was won most. */
static void
print_changes(const struct diff *d, bool worse)
{
    size_t shown = 0;
    size_t more = 0;

    for (size_t n = 0; n < d->count; n++) {
        const struct change *c = &d->changes[worse ? n : d->count - 1 - n];

        if (is_worse(c) != worse)
            continue;
        if (shown == LINES_MAX) {
            more++;
            continue;
        }
        if (shown++ == 0)
            printf("\n%s\n", worse ? "worse in b" : "better in b");
        print_change(c);
    }
    if (more)
        printf("  and %zu more; --json has all\n", more);
}

static void
print_diff(const struct diff *d)
{
    const struct side *a = &d->sides[0];
    const struct side *b = &d->sides[1];

    for (int i = 0; i < 2; i++) {
        printf("%c  ", 'a' + i);
        hed_cli_put(stdout, d->sides[i].path);
        printf(": ");
        hed_cli_put(stdout, hed_buf_cstr(&d->sides[i].program));
        printf("\n");
    }
    printf("\n%-13s %12s %12s\n", "", "a", "b");
    print_number("calls", a->totals.calls, b->totals.calls);
    print_number("failed", a->totals.errors, b->totals.errors);
    print_number("launches", a->totals.launches, b->totals.launches);
    print_number("bytes copied", a->copied, b->copied);
    print_kernel_time(d);
    if (!d->no_times && (a->clock || b->clock) && !have_times(d))
        printf("times are not compared: they are of different sources, or one trace has none\n");
    print_changes(d, true);
    print_changes(d, false);
    if (!d->count && a->totals.launches == b->totals.launches)
        printf("\nthe same kernels%s\n", have_times(d) ? ", as fast" : "");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void
print_diff_json(const struct diff *d)
{
    struct hed_buf b;

    hed_buf_init(&b, HED_CLI_LINE_MAX);
    printf("{\"files\":[%s,%s],\"worse\":%s,\"times\":%s,\"bytes_copied\":[%" PRIu64 ",%" PRIu64
           "],\"kernel_ns\":[%" PRIu64 ",%" PRIu64 "],\"kernels\":[",
           hed_buf_cstr(&d->sides[0].count.json), hed_buf_cstr(&d->sides[1].count.json),
           any_worse(d) ? "true" : "false", have_times(d) ? "true" : "false", d->sides[0].copied,
           d->sides[1].copied, d->sides[0].kernel_time, d->sides[1].kernel_time);
    for (size_t i = 0; i < d->count; i++) {
        const struct change *c = &d->changes[i];

        hed_buf_reset(&b);
        hed_buf_addf(&b, "%s\n{\"name\":", i ? "," : "");
        hed_cli_json_text(&b, c->name);
        hed_buf_addf(&b,
                     ",\"count\":[%" PRIu64 ",%" PRIu64 "],\"total_ns\":[%" PRIu64 ",%" PRIu64
                     "],\"p50_ns\":[%" PRIu64 ",%" PRIu64 "],\"more\":%s,\"fewer\":%s,\"slower\":%s"
                     ",\"faster\":%s}",
                     c->count[0], c->count[1], c->total[0], c->total[1], c->median[0], c->median[1],
                     c->more ? "true" : "false", c->fewer ? "true" : "false",
                     c->slower ? "true" : "false", c->faster ? "true" : "false");
        fputs(hed_buf_cstr(&b), stdout);
    }
    printf("]}\n");
    hed_buf_fini(&b);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int
compare_traces(struct diff *d)
{
    int code = HED_EXIT_FAILED;
    bool read = true;

    for (int i = 0; i < 2; i++)
        read = read_side(&d->sides[i]) && read;
    if (read && compare_kernels(d)) {
        if (d->as_json)
            print_diff_json(d);
        else
            print_diff(d);
        code = d->sides[0].verdict ? d->sides[0].verdict : d->sides[1].verdict;
        if (code == HED_EXIT_OK && any_worse(d))
            code = HED_EXIT_WORSE;
    }
    for (int i = 0; i < 2; i++)
        side_fini(&d->sides[i]);
    free(d->changes);
    return code;
}

static bool
parse_factor(const char *word, double *factor)
{
    char *end;
    const double v = strtod(word, &end);

    if (end != word && !*end && v > 1 && v <= 1e6) {
        *factor = v;
        return true;
    }
    hed_cli_say("trace diff: --slower '%s' is not a factor above 1, such as 1.5", word);
    return false;
}

int
hed_cli_trace_diff(int argc, char **argv)
{
    enum { HELP, SLOWER, COUNTS, JSON };
    static const struct hed_cli_opt options[] = {
        {"help", false}, {"slower", true}, {"counts", false}, {"json", false}, {NULL, false}};
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    struct diff d = {.factor = FACTOR};
    bool plain = false;
    int files = 0;
    int which;

    o.command = "trace diff";
    while ((which = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (which == HELP) {
            fputs(usage, stdout);
            return HED_EXIT_OK;
        }
        if (which == HED_CLI_OPT_BAD || (which == SLOWER && !parse_factor(o.value, &d.factor)))
            return HED_EXIT_USAGE;
        if (which == HED_CLI_OPERAND && files == 2) {
            hed_cli_say("trace diff: unexpected '%s'; give two files", o.value);
            return HED_EXIT_USAGE;
        }
        if (which == HED_CLI_OPERAND)
            d.sides[files++].path = o.value;
        d.no_times |= which == COUNTS;
        d.as_json |= which == JSON;
    }
    if (files < 2) {
        hed_cli_say("trace diff: give two files; see heddle trace diff --help");
        return HED_EXIT_USAGE;
    }
    return compare_traces(&d);
}
