/* heddle trace summary: how often each function was called, how long it took, and what the GPU did.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/trace/count.h"
#include "cli/trace/util.h"
#include "see/see.h"

static const char usage[] =
    "usage: heddle trace summary FILE... [OPTION...]\n\n"
    "Counts and times the calls of each function in one or several traces. If a trace\n"
    "has GPU activity, also lists kernels, streams and copies with their time on the\n"
    "GPU, what the program did while a GPU was idle, and how long calls waited until\n"
    "their work began there.\n\n"
    "  --sort KEY     sort by total (default), count, mean, p99, errors or name\n"
    "  --by thread    print one line for each function and thread\n"
    "  --json         print one JSON object\n"
    "  -h, --help     show this help\n\n"
    "Times are how long the program waited for calls to return. p50 and p99 are the\n"
    "times that 50 and 99 of 100 calls did not exceed. A \"~\" marks percentiles that\n"
    "are rounded by less than 1 %, and totals in which calls that were counted but\n"
    "not timed are taken to have lasted as long as the others.\n";

struct summary {
    struct hed_count count;
    enum hed_table_sort sort;
    bool as_json;
    int code;
};

/* ---- the head -------------------------------------------------------------------------------- */

static void
text_file_head(struct summary *s, const char *path, const struct hed_trace *t,
               const struct hed_count_totals *n)
{
    const struct hed_trace_state *state = hed_trace_state(t);
    const char *chain = hed_trace_info(t, "chain");
    char text[64];

    printf("trace     ");
    hed_cli_put(stdout, path);
    printf("\n");
    printf("program   %s (pid %" PRIu64 ")\n", hed_cli_trace_program(t, &s->count.text),
           hed_trace_info_u64(t, "pid"));
    if (*hed_cli_trace_began(t, text, sizeof(text))) {
        printf("began     %s%s", text, chain ? ", chain " : "");
        hed_cli_put(stdout, chain ? chain : "");
        printf("\n");
    }
    hed_cli_duration(hed_cli_trace_time(t, state->last), text, sizeof(text));
    printf("duration  %s, %" PRIu64 " thread%s\n", text, state->threads,
           state->threads == 1 ? "" : "s");
    printf("records   %" PRIu64 ": %" PRIu64 " calls, %" PRIu64 " failed", state->records, n->calls,
           n->errors);
    if (state->dropped)
        printf("; %" PRIu64 " more were dropped", state->dropped);
    printf("\n");
    hed_gpu_print_devices(t, &n->gpus, hed_cli_trace_time(t, state->last), n->launches);
    if (state->blocks_bad)
        printf("damage    %" PRIu64 " block%s lost, %" PRIu64 " bytes\n", state->blocks_bad,
               state->blocks_bad == 1 ? "" : "s", state->bytes_lost);
    if (state->bytes_cut || !state->ended)
        printf("end       the trace was not closed; its last calls may be missing\n");
    printf("\n");
}

static void
add_trace_file(struct summary *s, const char *path)
{
    struct hed_trace *t = hed_cli_trace_open(path);
    struct hed_count_totals totals;

    if (!t) {
        s->code = HED_EXIT_FAILED;
        return;
    }
    hed_count_add(&s->count, t, &totals);
    if (s->as_json)
        hed_count_describe(&s->count, path, t, &totals);
    else
        text_file_head(s, path, t, &totals);
    if (hed_cli_trace_verdict(path, t) != HED_EXIT_OK)
        s->code = HED_EXIT_FAILED;
    hed_gpu_devices_fini(&totals.gpus);
    hed_trace_close(t);
}

/* ---- the table ------------------------------------------------------------------------------- */

enum column { CALLS, TOTAL, PERCENT, MEAN, P50, P99, MAX, ERRORS, COLUMNS };

static const struct {
    const char *title;
    int width;
} columns[COLUMNS] = {
    [CALLS] = {"calls", 9}, [TOTAL] = {"total", 9}, [PERCENT] = {"%", 6}, [MEAN] = {"mean", 9},
    [P50] = {"p50", 9},     [P99] = {"p99", 9},     [MAX] = {"max", 9},   [ERRORS] = {"errors", 7},
};

/* On a narrow terminal these columns are left out first. */
static const enum column dispensable[] = {P50, MAX, PERCENT, P99, ERRORS};

struct table {
    bool shown[COLUMNS];
    int room;         /* columns of the terminal; 0: as many as we like */
    int name_width;   /* of the longest name */
    int thread_width; /* 0: no such column */
    double total;     /* ns, of all lines */
};

static const char *
cell_text(const struct hed_call_stats_line *l, enum column c, double total, char *out, size_t size)
{
    char took[24];

    switch (c) {
    case CALLS:
        snprintf(out, size, "%" PRIu64, hed_call_stats_calls(l));
        return out;
    case TOTAL:
        hed_cli_duration(hed_call_stats_total(l), took, sizeof(took));
        snprintf(out, size, "%s%s", l->repeats ? "~" : "", took);
        return out;
    case PERCENT:
        snprintf(out, size, "%.1f", total > 0 ? 100 * (double)hed_call_stats_total(l) / total : 0);
        return out;
    case MEAN:
        return hed_cli_duration((uint64_t)(hed_call_stats_mean(l) + 0.5), out, size);
    case P50:
    case P99:
        hed_cli_duration(c == P50 ? l->p50 : l->p99, took, sizeof(took));
        snprintf(out, size, "%s%s", l->buckets ? "~" : "", took);
        return out;
    case MAX:
        return hed_cli_duration(l->max, out, size);
    default:
        snprintf(out, size, "%" PRIu64, l->errors);
        return out;
    }
}

/* Is a line with a name of that width wider than the terminal? */
static bool
too_wide(const struct table *t, int name_width)
{
    int width = name_width + (t->thread_width ? t->thread_width : 1);

    for (int c = 0; c < COLUMNS; c++)
        width += t->shown[c] ? columns[c].width + 1 : 0;
    return t->room && width > t->room;
}

static void
fit_columns(struct table *t, const struct hed_call_stats *s)
{
    t->room = (int)hed_cli_columns();
    for (size_t i = 0; i < s->count; i++) {
        const int n = (int)strlen(s->lines[i].name);
        const int m = s->lines[i].thread ? (int)strlen(s->lines[i].thread) + 2 : 0;

        t->name_width = n > t->name_width ? n : t->name_width;
        t->thread_width = m > t->thread_width ? m : t->thread_width;
        t->total += (double)hed_call_stats_total(&s->lines[i]);
    }
    for (int c = 0; c < COLUMNS; c++)
        t->shown[c] = true;
    for (size_t i = 0; i < sizeof(dispensable) / sizeof(dispensable[0]); i++) {
        if (too_wide(t, t->name_width))
            t->shown[dispensable[i]] = false;
    }
}

/* Prints thread and name. A name is never cut: if it does not fit, it goes to the next line. */
static void
print_names(const struct table *t, const struct hed_call_stats_line *l)
{
    printf(" %-*s", t->thread_width ? t->thread_width - 1 : 0, l->thread ? l->thread : "");
    printf("%s", too_wide(t, (int)strlen(l->name)) ? "\n    " : "");
    hed_cli_put(stdout, l->name);
    printf("\n");
}

static void
print_call_table(const struct summary *s)
{
    struct table t = {.total = 0};
    char text[40];

    fit_columns(&t, &s->count.calls.stats);
    for (int c = 0; c < COLUMNS; c++) {
        if (t.shown[c])
            printf("%*s ", columns[c].width, columns[c].title);
    }
    printf("%s%-*s%s\n", t.thread_width ? " " : "", t.thread_width ? t.thread_width - 1 : 0,
           t.thread_width ? "thread" : "", t.thread_width ? "call" : " call");
    for (size_t i = 0; i < s->count.calls.stats.count; i++) {
        const struct hed_call_stats_line *l = &s->count.calls.stats.lines[i];

        for (int c = 0; c < COLUMNS; c++) {
            if (t.shown[c])
                printf("%*s ", columns[c].width,
                       cell_text(l, (enum column)c, t.total, text, sizeof(text)));
        }
        print_names(&t, l);
    }
}

static int
summarise(struct summary *s, char **files, int count)
{
    hed_count_init(&s->count);
    s->count.many = count > 1;
    for (int i = 0; i < count; i++)
        add_trace_file(s, files[i]);
    hed_count_finish(&s->count, s->sort);
    if (s->count.full) {
        hed_cli_say("trace summary: not enough memory to count every call");
        s->code = HED_EXIT_FAILED;
    }
    if (s->as_json)
        hed_count_json(&s->count, stdout);
    else if (s->count.calls.stats.count)
        print_call_table(s);
    if (!s->as_json)
        hed_gpu_print(&s->count.gpu);
    hed_count_fini(&s->count);
    return s->code;
}

static bool
parse_sort(const char *word, enum hed_table_sort *sort)
{
    if (hed_table_sort_word(word, sort))
        return true;
    hed_cli_say("trace summary: --sort: there is no '%s'; choose from total, count, mean, p99, "
                "errors and name",
                word);
    return false;
}

int
hed_cli_trace_summary(int argc, char **argv)
{
    enum { HELP, SORT, BY, JSON };
    static const struct hed_cli_opt options[] = {
        {"help", false}, {"sort", true}, {"by", true}, {"json", false}, {NULL, false}};
    struct summary s = {.code = HED_EXIT_OK};
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    bool plain = false;
    bool ok = true;
    int files = 0;
    int which;

    o.command = "trace summary";
    while (ok && (which = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (which == HELP) {
            fputs(usage, stdout);
            return HED_EXIT_OK;
        }
        if (which == HED_CLI_OPT_BAD)
            ok = false;
        else if (which == HED_CLI_OPERAND)
            argv[files++] = argv[o.at - 1]; /* the words before it are no longer needed */
        else if (which == SORT)
            ok = parse_sort(o.value, &s.sort);
        else if (which == BY && strcmp(o.value, "thread") != 0)
            ok = false,
            hed_cli_say("trace summary: --by '%s' is not possible; use --by thread", o.value);
        s.count.by_thread |= which == BY;
        s.as_json |= which == JSON;
    }
    if (ok && !files)
        hed_cli_say("trace summary: no file given; see heddle trace summary --help");
    return ok && files ? summarise(&s, argv, files) : HED_EXIT_USAGE;
}
