/* heddle trace show: the records of a trace, one per line, as text or JSON. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/trace/link.h"
#include "cli/trace/util.h"
#include "see/see.h"

#define LABEL_MAX 40 /* bytes of a thread's label */

static const char usage[] =
    "usage: heddle trace show FILE [OPTION...]\n\n"
    "Lists the calls in the order of time. A line has the seconds since the trace\n"
    "began, the thread, how long the call took, the call and its result. If the trace\n"
    "has GPU activity, it is listed where it began; [N] connects it with its call,\n"
    "which names the kernel that it launched.\n\n"
    "  --call GLOB    only calls and kernels whose name matches, such as 'cuMem*'\n"
    "  --errors       only calls that failed\n"
    "  --activity     only GPU activity\n"
    "  --thread TID   only this thread: its id or its name\n"
    "  --from SEC     only what began at SEC or later\n"
    "  --to SEC       only what began before SEC\n"
    "  --limit N      stop after N lines\n"
    "  --no-args      show the names of calls without their arguments\n"
    "  --file-order   keep the order of the file: pieces of threads alternate\n"
    "  --json         print one JSON object per line\n"
    "  -h, --help     show this help\n";

struct show {
    const char *path;
    const char *thread;
    const char *glob;
    bool errors;
    bool activity;
    bool json;
    bool file_order;
    bool no_args;
    uint64_t from;  /* ns */
    uint64_t to;    /* ns */
    uint64_t limit; /* lines */
    bool colour;
    int label_width;
    const struct hed_trace *trace;
    struct hed_cli_map threads; /* thread -> its index in `open` + 1 */
    uint32_t *open;             /* ranges that each thread has begun and not ended; owned */
    struct hed_cli_links links; /* calls and what they caused on a GPU */
    bool unbegun;               /* the record ends a range whose beginning is missing */
    struct hed_buf line;        /* the line being made */
    struct hed_buf name;        /* scratch */
};

/* ---- choosing -------------------------------------------------------------------------------- */

static bool
matches_thread(const struct show *s, uint64_t thread)
{
    const char *name = hed_trace_thread_name(s->trace, thread);
    char id[24];

    snprintf(id, sizeof(id), "%" PRIu64, thread);
    return strcmp(s->thread, id) == 0 || (name && strcmp(s->thread, name) == 0);
}

/* Does the name of the call or kernel match? */
static bool
matches_name(struct show *s, const struct hed_trace_record *r)
{
    struct hed_trace_activity a;
    struct hed_trace_facts facts;

    if (hed_trace_get_activity(r, &a)) {
        hed_buf_reset(&s->name);
        hed_buf_add(&s->name, a.name, a.name_size);
        if (a.name_size && fnmatch(s->glob, hed_buf_cstr(&s->name), 0) == 0)
            return true;
        hed_buf_reset(&s->name);
        hed_trace_add_readable(&s->name, &a);
        return a.name_size && fnmatch(s->glob, hed_buf_cstr(&s->name), 0) == 0;
    }
    if (r->kind != HED_TRACE_CALL)
        return false;
    hed_trace_facts(s->trace, r, &facts);
    hed_buf_reset(&s->name);
    hed_trace_print_name(s->trace, r, &s->name);
    return fnmatch(s->glob, hed_buf_cstr(&s->name), 0) == 0 ||
           (facts.name && fnmatch(s->glob, facts.name, 0) == 0);
}

static bool
is_wanted(struct show *s, const struct hed_trace_record *r)
{
    const uint64_t time = hed_cli_trace_time(s->trace, r->start);

    if (time < s->from || time >= s->to)
        return false;
    if (s->thread && !matches_thread(s, r->thread))
        return false;
    if (s->errors && !hed_trace_is_error(s->trace, r))
        return false;
    if (s->activity && r->kind != HED_TRACE_ACTIVITY)
        return false;
    return !s->glob || matches_name(s, r);
}

/* Keeps track of the ranges of the record's thread. Must be called for every record, shown or not.
 */
static void
follow_range(struct show *s, const struct hed_trace_record *r)
{
    const uint32_t known = hed_cli_map_get(&s->threads, r->thread);

    s->unbegun = false;
    if (!known)
        return;
    if (r->kind == HED_TRACE_RANGE_BEGIN)
        s->open[known - 1]++;
    if (r->kind != HED_TRACE_RANGE_END)
        return;
    s->unbegun = s->open[known - 1] == 0;
    s->open[known - 1] -= !s->unbegun;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void
paint(struct show *s, const char *code)
{
    if (s->colour)
        hed_buf_addf(&s->line, "\033[%sm", code);
}

/* The label of a record: a thread, or a stream of a GPU. */
static void
label_of(const struct show *s, const struct hed_trace_record *r, char *label, size_t size)
{
    struct hed_trace_activity a;

    if (hed_trace_get_activity(r, &a))
        snprintf(label, size, "GPU %" PRIu32 " stream %" PRIu32, a.device, a.stream);
    else
        hed_cli_trace_thread(s->trace, r->thread, label, size);
}

static void
add_kernel_name(struct hed_buf *b, const struct hed_cli_caller *c)
{
    hed_trace_add_readable(b, &(struct hed_trace_activity){.kind = HED_TRACE_KERNEL,
                                                           .name = c->kernel,
                                                           .name_size = c->kernel_size});
}

/* The part of a line after the times and the label. */
static void
text_call(struct show *s, const struct hed_trace_record *r)
{
    if (s->no_args)
        hed_trace_print_name(s->trace, r, &s->line);
    else
        hed_trace_print_args(s->trace, r, &s->line);
    hed_buf_addf(&s->line, " = ");
    paint(s, hed_trace_is_error(s->trace, r) ? "1;31" : "32");
    hed_trace_print_result(s->trace, r, &s->line);
    paint(s, "0");
    if (r->calls > 1)
        hed_buf_addf(&s->line, " (%" PRIu32 " times)", r->calls);
    if (!r->correlation)
        return;
    hed_buf_addf(&s->line, " [%" PRIu64, r->correlation);

    const struct hed_cli_caller *c = hed_cli_links_find(&s->links, r->correlation);

    if (c && c->kernel_size) {
        hed_buf_addf(&s->line, ": ");
        add_kernel_name(&s->line, c);
        if (c->kernels > 1)
            hed_buf_addf(&s->line, " and %" PRIu32 " more", c->kernels - 1);
    }
    hed_buf_addf(&s->line, "]");
}

static void
text_other(struct show *s, const struct hed_trace_record *r)
{
    struct hed_trace_activity a;

    paint(s, r->kind == HED_TRACE_ACTIVITY ? "35" : "36");
    hed_trace_print_other(r, &s->line);
    if (s->unbegun)
        hed_buf_addf(&s->line, " without a beginning");
    paint(s, "0");
    if (hed_trace_get_activity(r, &a) && a.correlation)
        hed_buf_addf(&s->line, " [%" PRIu64 "]", a.correlation);
}

static void
text_line(struct show *s, const struct hed_trace_record *r)
{
    const uint64_t us = hed_cli_trace_time(s->trace, r->start) / 1000;
    const bool call = r->kind == HED_TRACE_CALL;
    char label[LABEL_MAX];
    char took[24] = "";

    if (call || r->kind == HED_TRACE_ACTIVITY)
        hed_cli_duration(r->duration, took, sizeof(took));
    if (call && (r->flags & HED_TRACE_UNTIMED))
        snprintf(took, sizeof(took), "-");
    label_of(s, r, label, sizeof(label));
    paint(s, "2");
    hed_buf_addf(&s->line, "%5" PRIu64 ".%06" PRIu64 "  %-*s", us / 1000000, us % 1000000,
                 s->label_width, label);
    paint(s, "0");
    hed_buf_addf(&s->line, " %8s  ", took);
    if (call)
        text_call(s, r);
    else
        text_other(s, r);
    hed_buf_addf(&s->line, "\n");
}

static void
text_trace_head(struct show *s)
{
    const struct hed_trace *t = s->trace;
    const char *host = hed_trace_info(t, "host");
    const char *chain = hed_trace_info(t, "chain");
    char began[64];

    hed_cli_trace_program(t, &s->name);
    printf("# %s (pid %" PRIu64 "%s", hed_buf_cstr(&s->name), hed_trace_info_u64(t, "pid"),
           host ? " on " : "");
    hed_cli_put(stdout, host ? host : "");
    printf(")");
    if (*hed_cli_trace_began(t, began, sizeof(began)))
        printf(", began %s", began);
    printf("%s", chain ? ", chain " : "");
    hed_cli_put(stdout, chain ? chain : "");
    printf("\n");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void
json_call(struct show *s, const struct hed_trace_record *r)
{
    const struct hed_schema *schema = hed_trace_schema(s->trace, r->api);
    struct hed_buf *b = &s->line;

    hed_buf_addf(b, ",\"duration_ns\":%" PRIu64 ",\"api\":", r->duration);
    hed_cli_json_text(b, schema ? schema->api : NULL);
    hed_buf_addf(b, ",\"name\":\"");
    hed_trace_print_name(s->trace, r, b);
    hed_buf_addf(b, "\"");
    if (!s->no_args) {
        hed_buf_addf(b, ",\"args\":");
        hed_trace_json_args(s->trace, r, b);
    }
    hed_buf_addf(b, ",\"result\":%" PRId32 ",\"result_name\":\"", r->result);
    hed_trace_print_result(s->trace, r, b);
    hed_buf_addf(b, "\"");
    if (r->calls > 1)
        hed_buf_addf(b, ",\"calls\":%" PRIu32, r->calls);
    if (r->flags & HED_TRACE_UNTIMED)
        hed_buf_addf(b, ",\"timed\":false");
    if (r->correlation)
        hed_buf_addf(b, ",\"correlation\":%" PRIu64, r->correlation);

    const struct hed_cli_caller *c = hed_cli_links_find(&s->links, r->correlation);

    if (!c || !c->kernel_size)
        return;
    hed_buf_addf(b, ",\"kernels\":%" PRIu32 ",\"kernel_ns\":%" PRIu64 ",\"kernel\":\"", c->kernels,
                 c->kernel_time);
    add_kernel_name(b, c);
    hed_buf_addf(b, "\"");
}

static void
json_activity(struct show *s, const struct hed_trace_record *r)
{
    struct hed_trace_activity a;
    struct hed_buf *b = &s->line;

    hed_buf_addf(b, ",\"duration_ns\":%" PRIu64 ",\"activity\":\"%s\",", r->duration,
                 hed_trace_activity_name(r->call));
    if (!hed_trace_get_activity(r, &a)) {
        hed_buf_addf(b, "\"cut\":true");
        return;
    }
    if (a.name) {
        hed_str_field(b, "name", a.name, a.name_size);
        if (a.kind == HED_TRACE_KERNEL) {
            hed_buf_addf(b, ",\"readable\":\"");
            hed_trace_add_readable(b, &a);
            hed_buf_addf(b, "\"");
        }
        hed_buf_addf(b, ",");
    }
    hed_trace_json_activity(r, b);
}

static void
json_line(struct show *s, const struct hed_trace_record *r)
{
    const uint64_t time = hed_cli_trace_time(s->trace, r->start);
    const char *name = hed_trace_thread_name(s->trace, r->thread);
    struct hed_buf *b = &s->line;

    hed_buf_addf(b, "{\"kind\":\"%s\",\"time_ns\":%" PRIu64 ",\"thread\":%" PRIu64,
                 hed_trace_kind_name(r->kind), time, r->thread);
    if (name) {
        hed_buf_addf(b, ",\"thread_name\":");
        hed_cli_json_text(b, name);
    }
    if (r->kind == HED_TRACE_CALL) {
        json_call(s, r);
    } else if (r->kind == HED_TRACE_ACTIVITY) {
        json_activity(s, r);
    } else if (r->kind == HED_TRACE_DROPPED) {
        hed_buf_addf(b, ",\"count\":%" PRIu64, hed_trace_dropped(r));
    } else if (r->kind == HED_TRACE_RANGE_END) {
        if (s->unbegun)
            hed_buf_addf(b, ",\"begun\":false");
    } else {
        hed_buf_addf(b, ",\"text\":\"");
        hed_str_escape(b, (const char *)r->body, r->body_size);
        hed_buf_addf(b, "\"");
    }
    hed_buf_addf(b, "}\n");
}

static void
json_trace_head(struct show *s)
{
    static const char *const keys[] = {"heddle", "pid",        "ppid",       "exe",  "host",
                                       "arch",   "clock_mono", "clock_wall", "chain"};
    struct hed_buf *b = &s->line;

    hed_buf_addf(b, "{\"kind\":\"trace\",\"program\":");
    hed_cli_json_text(b, hed_cli_trace_program(s->trace, &s->name));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        hed_buf_addf(b, ",\"%s\":", keys[i]);
        hed_cli_json_text(b, hed_trace_info(s->trace, keys[i]));
    }
    hed_buf_addf(b, "}\n");
    fwrite(hed_buf_cstr(b), 1, b->size, stdout);
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* False when enough lines have been printed, or printing fails. */
static bool
show_record(struct show *s, const struct hed_trace_record *r)
{
    if (s->limit == 0)
        return false;
    follow_range(s, r);
    if (!is_wanted(s, r))
        return true;
    hed_buf_reset(&s->line);
    if (s->json)
        json_line(s, r);
    else
        text_line(s, r);
    /* Only a text of the program's own can be too long for the buffer. */
    if (s->line.err) {
        hed_buf_reset(&s->line);
        hed_buf_addf(&s->line, s->json ? "{\"kind\":\"unknown\"}\n" : "<too long>\n");
    }
    s->limit--;
    return fwrite(hed_buf_cstr(&s->line), 1, s->line.size, stdout) == s->line.size;
}

static int
show_all(struct show *s)
{
    struct hed_trace_cursor c = hed_trace_cursor_over(s->trace);
    struct hed_trace_index *index = NULL;
    struct hed_trace_record r;
    struct hed_why why = {""};
    bool more = true;

    if (!s->file_order && hed_trace_sort(s->trace, &index, &why) != 0) {
        hed_cli_say("%s: %s; use --file-order", s->path, why.text);
        return HED_EXIT_FAILED;
    }
    if (index) {
        for (size_t i = 0; more && hed_trace_at(index, i, &r); i++)
            more = show_record(s, &r);
    } else {
        while (more && hed_trace_next(&c, &r))
            more = show_record(s, &r);
    }
    hed_trace_index_free(index);
    return HED_EXIT_OK;
}

/* Prepares for the trace's threads and activity. False if there is no memory. */
static bool
prepare_threads(struct show *s)
{
    char label[LABEL_MAX];
    uint64_t thread;

    if (!hed_cli_links_make(&s->links, s->trace))
        return false;
    s->open = calloc(hed_trace_state(s->trace)->threads + 1, sizeof(*s->open));
    if (!s->open)
        return false;
    if (hed_trace_state(s->trace)->activities)
        s->label_width = (int)strlen("GPU 0 stream 13");
    for (size_t i = 0; hed_trace_thread(s->trace, i, &thread); i++) {
        const int n = (int)strlen(hed_cli_trace_thread(s->trace, thread, label, sizeof(label)));

        s->label_width = n > s->label_width ? n : s->label_width;
        if (!hed_cli_map_put(&s->threads, thread, (uint32_t)i + 1))
            return false;
    }
    return true;
}

static int
show_trace(struct show *s)
{
    struct hed_trace *t = hed_cli_trace_open(s->path);
    int code = HED_EXIT_FAILED;

    if (!t)
        return HED_EXIT_FAILED;
    s->trace = t;
    s->colour = hed_cli_colour();
    hed_buf_init(&s->line, HED_CLI_LINE_MAX);
    hed_buf_init(&s->name, HED_CLI_LINE_MAX);
    if (prepare_threads(s)) {
        if (s->json)
            json_trace_head(s);
        else
            text_trace_head(s);
        code = show_all(s);

        const int verdict = hed_cli_trace_verdict(s->path, t);

        code = code ? code : verdict;
    } else {
        hed_cli_say("%s: %s", s->path, hed_err_text(HED_ENOMEM));
    }
    hed_cli_map_fini(&s->threads);
    hed_cli_links_fini(&s->links);
    free(s->open);
    hed_buf_fini(&s->line);
    hed_buf_fini(&s->name);
    hed_trace_close(t);
    return code;
}

int
hed_cli_trace_show(int argc, char **argv)
{
    enum { HELP, CALL, ERRORS, ACTIVITY, THREAD, FROM, TO, LIMIT, NO_ARGS, FILE_ORDER, JSON };
    static const struct hed_cli_opt options[] = {
        {"help", false},    {"call", true},        {"errors", false}, {"activity", false},
        {"thread", true},   {"from", true},        {"to", true},      {"limit", true},
        {"no-args", false}, {"file-order", false}, {"json", false},   {NULL, false},
    };
    struct show s = {.to = UINT64_MAX, .limit = UINT64_MAX};
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    bool plain = false;
    bool ok = true;
    int which;

    o.command = "trace show";
    while (ok && (which = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (which == HELP) {
            fputs(usage, stdout);
            return HED_EXIT_OK;
        }
        if (which == HED_CLI_OPT_BAD || (which == HED_CLI_OPERAND && s.path))
            ok = false;
        else if (which == HED_CLI_OPERAND)
            s.path = o.value;
        else if (which == CALL)
            s.glob = o.value;
        else if (which == THREAD)
            s.thread = o.value;
        else if (which == FROM)
            ok = hed_cli_seconds(&o, &s.from);
        else if (which == TO)
            ok = hed_cli_seconds(&o, &s.to);
        else if (which == LIMIT)
            ok = hed_cli_number(&o, &s.limit);
        s.errors |= which == ERRORS;
        s.activity |= which == ACTIVITY;
        s.no_args |= which == NO_ARGS;
        s.file_order |= which == FILE_ORDER;
        s.json |= which == JSON;
        if (which == HED_CLI_OPERAND && !ok)
            hed_cli_say("trace show: unexpected '%s'; give one file at a time", o.value);
    }
    if (ok && !s.path)
        hed_cli_say("trace show: no file given; see heddle trace show --help");
    return ok && s.path ? show_trace(&s) : HED_EXIT_USAGE;
}
