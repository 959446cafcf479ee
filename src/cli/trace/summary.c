/* heddle trace summary: how often each function was called, how long it took, and what the GPU did.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/trace/gpu.h"
#include "cli/trace/table.h"
#include "cli/trace/util.h"
#include "see/see.h"

static const char usage[] =
    "usage: heddle trace summary FILE... [OPTION...]\n\n"
    "Counts and times the calls of each function in one or several traces. If a trace\n"
    "has GPU activity, also lists kernels and copies with their time on the GPU, how\n"
    "busy each GPU was, and how long calls waited until their work began there.\n\n"
    "  --sort KEY     sort by total (default), count, mean, p99, errors or name\n"
    "  --by thread    print one line for each function and thread\n"
    "  --json         print one JSON object\n"
    "  -h, --help     show this help\n\n"
    "Times are how long the program waited for calls to return. p50 and p99 are the\n"
    "times that 50 and 99 of 100 calls did not exceed. A \"~\" marks percentiles that\n"
    "are rounded by less than 1 %, and totals in which calls that were counted but\n"
    "not timed are taken to have lasted as long as the others.\n";

struct summary {
    struct hed_table table;
    struct hed_gpu gpu;
    struct hed_buf text; /* scratch */
    struct hed_buf json; /* "files" */
    enum hed_table_sort sort;
    bool by_thread;
    bool as_json;
    bool full; /* there were more lines than are kept */
    bool many; /* several files */
    int code;
};

/* ---- counting -------------------------------------------------------------------------------- */

/* The line of a call + 1, or 0 if there is no memory. It is found by the numbers in the record, so
 * that each name is made only once per file. */
static uint32_t
line_of_call(struct summary *s, struct hed_cli_map *known, const struct hed_trace *t,
             const struct hed_trace_record *r, uint64_t thread_number)
{
    const uint64_t key = thread_number << 24 | (uint64_t)r->api << 16 | r->call;
    uint32_t line = hed_cli_map_get(known, key);
    struct hed_trace_facts facts;
    char label[80];

    if (line)
        return line;
    hed_trace_facts(t, r, &facts);
    hed_buf_reset(&s->text);
    if (facts.name)
        hed_buf_addf(&s->text, "%s", facts.name);
    else
        hed_trace_print_name(t, r, &s->text);
    if (s->by_thread && s->many)
        snprintf(label, sizeof(label), "%" PRIu64 "/%" PRIu64, hed_trace_info_u64(t, "pid"),
                 r->thread);
    else
        hed_cli_trace_thread(t, r->thread, label, sizeof(label));
    line = hed_table_line(&s->table, hed_buf_cstr(&s->text), s->by_thread ? label : NULL);
    return line && hed_cli_map_put(known, key, line) ? line : 0;
}

struct totals {
    uint64_t calls;
    uint64_t errors;
    struct hed_gpu_devices gpus;
};

/* False if there is no memory. */
static bool
add_record(struct summary *s, size_t line, const struct hed_trace_record *r, bool error)
{
    const bool timed = !(r->flags & HED_TRACE_UNTIMED);

    hed_call_stats_repeat(&s->table.stats, line, r->calls - timed, error && !timed);
    return !timed || hed_call_stats_add(&s->table.stats, line, r->duration, error);
}

static void
count_calls(struct summary *s, const struct hed_trace *t, struct totals *totals)
{
    struct hed_cli_map known = {0};
    struct hed_cli_map threads = {0};
    struct hed_trace_cursor c = hed_trace_cursor_over(t);
    struct hed_trace_record r;

    while (hed_trace_next(&c, &r)) {
        uint32_t thread = 0;

        if (r.kind != HED_TRACE_CALL)
            continue;
        if (s->by_thread) {
            thread = hed_cli_map_get(&threads, r.thread);
            if (!thread && hed_cli_map_put(&threads, r.thread, (uint32_t)threads.count + 1))
                thread = (uint32_t)threads.count;
        }

        const bool error = hed_trace_is_error(t, &r);
        const uint32_t line = line_of_call(s, &known, t, &r, thread);

        totals->calls += r.calls;
        totals->errors += error;
        if (!line || !add_record(s, line - 1, &r, error))
            s->full = true;
    }
    hed_cli_map_fini(&known);
    hed_cli_map_fini(&threads);
}

/* ---- the head -------------------------------------------------------------------------------- */

static void
text_file_head(struct summary *s, const char *path, const struct hed_trace *t,
               const struct totals *n)
{
    const struct hed_trace_state *state = hed_trace_state(t);
    const char *chain = hed_trace_info(t, "chain");
    char text[64];

    printf("trace     ");
    hed_cli_put(stdout, path);
    printf("\n");
    printf("program   %s (pid %" PRIu64 ")\n", hed_cli_trace_program(t, &s->text),
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
    hed_gpu_print_devices(&n->gpus, hed_cli_trace_time(t, state->last));
    if (state->blocks_bad)
        printf("damage    %" PRIu64 " block%s lost, %" PRIu64 " bytes\n", state->blocks_bad,
               state->blocks_bad == 1 ? "" : "s", state->bytes_lost);
    if (state->bytes_cut || !state->ended)
        printf("end       the trace was not closed; its last calls may be missing\n");
    printf("\n");
}

static void
json_file_head(struct summary *s, const char *path, const struct hed_trace *t,
               const struct totals *n)
{
    const struct hed_trace_state *state = hed_trace_state(t);
    struct hed_buf *b = &s->json;

    hed_buf_addf(b, "%s{\"path\":", b->size ? "," : "");
    hed_cli_json_text(b, path);
    hed_buf_addf(b, ",\"program\":");
    hed_cli_json_text(b, hed_cli_trace_program(t, &s->text));
    hed_buf_addf(b, ",\"pid\":%" PRIu64 ",\"clock_wall_ns\":%" PRIu64 ",\"chain\":",
                 hed_trace_info_u64(t, "pid"), hed_trace_info_u64(t, "clock_wall"));
    hed_cli_json_text(b, hed_trace_info(t, "chain"));
    hed_buf_addf(b,
                 ",\"duration_ns\":%" PRIu64 ",\"threads\":%" PRIu64 ",\"records\":%" PRIu64
                 ",\"calls\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"dropped\":%" PRIu64,
                 hed_cli_trace_time(t, state->last), state->threads, state->records, n->calls,
                 n->errors, state->dropped);
    hed_buf_addf(b,
                 ",\"blocks_lost\":%" PRIu64 ",\"bytes_lost\":%" PRIu64 ",\"bytes_cut\":%" PRIu64
                 ",\"closed\":%s,",
                 state->blocks_bad, state->bytes_lost, state->bytes_cut,
                 state->ended ? "true" : "false");
    hed_gpu_json_devices(&n->gpus, b);
    hed_buf_addf(b, "}");
}

static void
add_trace_file(struct summary *s, const char *path)
{
    struct hed_trace *t = hed_cli_trace_open(path);
    struct totals totals = {0};

    if (!t) {
        s->code = HED_EXIT_FAILED;
        return;
    }
    count_calls(s, t, &totals);
    hed_gpu_add(&s->gpu, t, &totals.gpus);
    if (s->as_json)
        json_file_head(s, path, t, &totals);
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
    printf("%s%s\n", too_wide(t, (int)strlen(l->name)) ? "\n    " : "", l->name);
}

static void
print_call_table(const struct summary *s)
{
    struct table t = {.total = 0};
    char text[40];

    fit_columns(&t, &s->table.stats);
    for (int c = 0; c < COLUMNS; c++) {
        if (t.shown[c])
            printf("%*s ", columns[c].width, columns[c].title);
    }
    printf("%s%-*s%s\n", t.thread_width ? " " : "", t.thread_width ? t.thread_width - 1 : 0,
           t.thread_width ? "thread" : "", t.thread_width ? "call" : " call");
    for (size_t i = 0; i < s->table.stats.count; i++) {
        const struct hed_call_stats_line *l = &s->table.stats.lines[i];

        for (int c = 0; c < COLUMNS; c++) {
            if (t.shown[c])
                printf("%*s ", columns[c].width,
                       cell_text(l, (enum column)c, t.total, text, sizeof(text)));
        }
        print_names(&t, l);
    }
}

static void
print_summary_json(const struct summary *s)
{
    struct hed_buf b;

    hed_buf_init(&b, HED_CLI_LINE_MAX);
    printf("{\"files\":[%s],\"calls\":[", hed_buf_cstr(&s->json));
    for (size_t i = 0; i < s->table.stats.count; i++) {
        const struct hed_call_stats_line *l = &s->table.stats.lines[i];

        hed_buf_reset(&b);
        hed_buf_addf(&b, "%s\n{\"name\":", i ? "," : "");
        hed_cli_json_text(&b, l->name);
        if (l->thread) {
            hed_buf_addf(&b, ",\"thread\":");
            hed_cli_json_text(&b, l->thread);
        }
        hed_buf_addf(&b,
                     ",\"count\":%" PRIu64 ",\"timed\":%" PRIu64 ",\"total_ns\":%" PRIu64
                     ",\"mean_ns\":%.1f,\"p50_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64
                     ",\"max_ns\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"approximate\":%s}",
                     hed_call_stats_calls(l), l->count, hed_call_stats_total(l),
                     hed_call_stats_mean(l), l->p50, l->p99, l->max, l->errors,
                     l->buckets ? "true" : "false");
        fputs(hed_buf_cstr(&b), stdout);
    }
    printf("],");
    hed_gpu_print_json(&s->gpu);
    printf("}\n");
    hed_buf_fini(&b);
}

static int
summarise(struct summary *s, char **files, int count)
{
    hed_buf_init(&s->text, HED_CLI_LINE_MAX);
    hed_buf_init(&s->json, 64u << 20);
    s->many = count > 1;
    for (int i = 0; i < count; i++)
        add_trace_file(s, files[i]);
    hed_table_finish(&s->table, s->sort);
    hed_gpu_finish(&s->gpu, s->sort);
    if (s->full || s->gpu.full) {
        hed_cli_say("trace summary: not enough memory to count every call");
        s->code = HED_EXIT_FAILED;
    }
    if (s->as_json)
        print_summary_json(s);
    else if (s->table.stats.count)
        print_call_table(s);
    if (!s->as_json)
        hed_gpu_print(&s->gpu);
    hed_table_fini(&s->table);
    hed_gpu_fini(&s->gpu);
    hed_buf_fini(&s->text);
    hed_buf_fini(&s->json);
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
        s.by_thread |= which == BY;
        s.as_json |= which == JSON;
    }
    if (ok && !files)
        hed_cli_say("trace summary: no file given; see heddle trace summary --help");
    return ok && files ? summarise(&s, argv, files) : HED_EXIT_USAGE;
}
