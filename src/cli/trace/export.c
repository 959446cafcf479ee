/* heddle trace export: writes a trace in another program's format. This file takes care of the
 * output file, which is never left half-written, and of showing progress; chrome.c, page.c and
 * folded.c know the formats.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/trace/chrome.h"
#include "cli/trace/folded.h"
#include "cli/trace/guard.h"
#include "cli/trace/page.h"
#include "cli/trace/util.h"
#include "see/see.h"

#define PROGRESS_FIRST_NS 500000000 /* shorter exports show no progress */
#define PROGRESS_NS 200000000

static const char usage[] =
    "usage: heddle trace export --html|--chrome|--folded FILE [-o OUT]\n\n"
    "Writes a trace as something else to look at.\n\n"
    "  --html            write a page with a timeline and tables, which a browser\n"
    "                    opens without a network\n"
    "  --chrome          write Chrome trace events, with the arguments of calls:\n"
    "                    JSON that https://ui.perfetto.dev opens\n"
    "  --folded          write times on the GPU as folded stacks, for flame graphs:\n"
    "                    thread;range;call;kernel NANOSECONDS\n"
    "  --from SEC        only what began at SEC or later; not with --folded\n"
    "  --to SEC          only what began before SEC; not with --folded\n"
    "  -o, --output OUT  write to OUT, or to standard output if OUT is - (default:\n"
    "                    FILE.html, FILE.json or FILE.folded)\n"
    "  -h, --help        show this help\n";

/* What to write, and which part of the trace. */
struct job {
    const struct format *format;
    const char *input;
    const char *output;
    uint64_t from; /* ns since the trace began */
    uint64_t to;   /* ns */
};

struct format {
    const char *ending;
    const char *hint; /* what to do with the file; NULL: nothing to say */
    bool sorted;      /* needs the index */
    bool (*write)(const struct job *job, const struct hed_trace *t,
                  const struct hed_trace_index *index, FILE *file);
};

/* ---- the file that is made ------------------------------------------------------------------- */

struct output {
    const char *path; /* the name that the finished file gets */
    char *temporary;  /* owned; NULL: written directly */
    FILE *file;
};

static bool
is_same_file(const char *a, const char *b)
{
    struct stat x;
    struct stat y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Opens a temporary file in the same folder, with the permissions that the final file would get. */
static FILE *
open_temporary(struct output *out)
{
    const mode_t mask = umask(0);
    int fd;

    umask(mask);
    if (asprintf(&out->temporary, "%s.XXXXXX", out->path) < 0) {
        out->temporary = NULL;
        errno = ENOMEM;
        return NULL;
    }
    fd = hed_guard_mkstemp(out->temporary);
    if (fd < 0) {
        free(out->temporary);
        out->temporary = NULL;
        return NULL;
    }
    fchmod(fd, 0666 & ~mask);
    return fdopen(fd, "w");
}

static bool
open_output(struct output *out, const char *input)
{
    struct stat st;

    if (strcmp(out->path, "-") == 0) {
        out->file = stdout;
        return true;
    }
    if (is_same_file(input, out->path)) {
        hed_cli_say("trace export: the output '%s' is the trace itself; use another name",
                    out->path);
        return false;
    }
    /* A device or a pipe cannot be replaced by a file. */
    if (stat(out->path, &st) == 0 && !S_ISREG(st.st_mode))
        out->file = fopen(out->path, "w");
    else
        out->file = open_temporary(out);
    if (!out->file)
        hed_cli_say("trace export: cannot write '%s': %s", out->path, strerror(errno));
    return out->file;
}

/* Gives the file its final name, or removes it. */
static bool
close_output(struct output *out, bool good)
{
    const char *failed = NULL;

    if (out->file == stdout) {
        if (fflush(stdout) != 0)
            failed = strerror(errno);
    } else if (out->file) {
        if (fclose(out->file) != 0 ||
            (good && out->temporary && rename(out->temporary, out->path) != 0))
            failed = strerror(errno);
    }
    if (out->temporary && (!good || failed))
        unlink(out->temporary);
    hed_guard_settled();
    if (good && failed)
        hed_cli_say("trace export: cannot write '%s': %s", out->path, failed);
    free(out->temporary);
    return good && !failed;
}

/* ---- progress -------------------------------------------------------------------------------- */

struct progress {
    bool on; /* standard error is a terminal */
    bool shown;
    uint64_t begun; /* ns */
    uint64_t next;  /* ns: when to show progress again */
    uint64_t total;
};

static void
show_progress(struct progress *p, uint64_t done)
{
    const uint64_t now = hed_now_ns();

    if (now < p->next)
        return;
    p->next = now + PROGRESS_NS;
    p->shown = true;
    fprintf(stderr, "\r%3u%%  %.1f million records/s\033[K",
            (unsigned)(p->total ? done * 100 / p->total : 100),
            (double)done * 1e3 / (double)(now - p->begun + 1));
    fflush(stderr); /* it is no whole line */
}

static void
end_progress(const struct progress *p)
{
    if (!p->shown)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
}

/* ---- the formats ----------------------------------------------------------------------------- */

/* Says that an export has failed, for the reason in `why` or else in errno. */
static bool
complain(const char *why)
{
    hed_cli_say("trace export: %s", *why    ? why
                                    : errno ? strerror(errno)
                                            : hed_err_text(HED_ENOMEM));
    return false;
}

/* Beginnings and ends of ranges are taken from everywhere, or they would not match. */
static bool
is_wanted_part(const struct job *job, const struct hed_trace *t, const struct hed_trace_record *r)
{
    const uint64_t time = hed_cli_trace_time(t, r->start);

    return (time >= job->from && time < job->to) || r->kind == HED_TRACE_RANGE_BEGIN ||
           r->kind == HED_TRACE_RANGE_END;
}

/* Gives every wanted record to `put`, in the order of time, and shows progress. */
static bool
walk_records(const struct job *job, const struct hed_trace *t, const struct hed_trace_index *index,
             bool (*put)(void *to, const struct hed_trace_record *r, struct hed_why *why), void *to,
             struct hed_why *why)
{
    const uint64_t now = hed_now_ns();
    struct progress p = {
        .on = isatty(STDERR_FILENO),
        .begun = now,
        .next = now + PROGRESS_FIRST_NS,
        .total = hed_trace_state(t)->records,
    };
    struct hed_trace_record r;
    bool good = true;

    for (size_t i = 0; good && hed_trace_at(index, i, &r); i++) {
        if (is_wanted_part(job, t, &r))
            good = put(to, &r, why);
        if (p.on && i % 1024 == 0)
            show_progress(&p, i);
    }
    end_progress(&p);
    return good;
}

static bool
put_chrome(void *to, const struct hed_trace_record *r, struct hed_why *why)
{
    return hed_chrome_put(to, r);
}

static bool
write_chrome(const struct job *job, const struct hed_trace *t, const struct hed_trace_index *index,
             FILE *file)
{
    struct hed_chrome *c = hed_chrome_create(file, t);
    struct hed_why why = {""};
    bool good;

    errno = 0;
    good = c && walk_records(job, t, index, put_chrome, c, &why) && hed_chrome_finish(c);
    hed_chrome_free(c);
    return good || complain(why.text);
}

static bool
put_page_record(void *to, const struct hed_trace_record *r, struct hed_why *why)
{
    return hed_page_put(to, r, why);
}

static bool
write_html(const struct job *job, const struct hed_trace *t, const struct hed_trace_index *index,
           FILE *file)
{
    struct hed_page *p = hed_page_create(t);
    struct hed_why why = {""};
    bool good;

    errno = 0;
    good = p && walk_records(job, t, index, put_page_record, p, &why) &&
           hed_page_write(p, job->input, file, &why);
    hed_page_free(p);
    return good || complain(why.text);
}

static bool
write_folded(const struct job *job, const struct hed_trace *t, const struct hed_trace_index *index,
             FILE *file)
{
    errno = 0;
    return hed_folded_write(t, file) || complain("");
}

/* ---- the work -------------------------------------------------------------------------------- */

static int
export_file(const struct job *job)
{
    struct hed_trace *t = hed_cli_trace_open(job->input);
    struct hed_trace_index *index = NULL;
    struct output out = {.path = job->output};
    struct hed_why why = {""};
    int code = HED_EXIT_FAILED;

    if (!t)
        return HED_EXIT_FAILED;
    if (job->format->sorted && hed_trace_sort(t, &index, &why) != 0) {
        hed_cli_say("%s: %s", job->input, why.text);
        goto done;
    }
    if (!open_output(&out, job->input))
        goto done;
    if (close_output(&out, job->format->write(job, t, index, out.file))) {
        code = hed_cli_trace_verdict(job->input, t);
        if (out.file != stdout) {
            fputs("wrote ", stderr);
            hed_cli_put(stderr, job->output);
            fprintf(stderr, "%s%s\n", job->format->hint ? ": " : "",
                    job->format->hint ? job->format->hint : "");
        }
    }
done:
    hed_trace_index_free(index);
    hed_trace_close(t);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

enum option { HELP, HTML, CHROME, FOLDED, FROM, TO, OUTPUT };

static const struct format formats[] = {
    [HTML] = {"html", "open it in a browser", true, write_html},
    [CHROME] = {"json", "open it in https://ui.perfetto.dev", true, write_chrome},
    [FOLDED] = {"folded", NULL, false, write_folded},
};

/* Takes one option. False if it is wrong; the reason has been printed. */
static bool
take_option(struct job *job, const struct hed_cli_opts *o, int which)
{
    switch (which) {
    case HTML:
    case CHROME:
    case FOLDED:
        if (job->format && job->format != &formats[which]) {
            hed_cli_say("trace export: choose one format at a time");
            return false;
        }
        job->format = &formats[which];
        return true;
    case FROM:
        return hed_cli_seconds(o, &job->from);
    case TO:
        return hed_cli_seconds(o, &job->to);
    case OUTPUT:
        job->output = o->value;
        return true;
    case HED_CLI_OPERAND:
        if (job->input) {
            hed_cli_say("trace export: unexpected '%s'; give one file at a time", o->value);
            return false;
        }
        job->input = o->value;
        return true;
    default:
        return false;
    }
}

int
hed_cli_trace_export(int argc, char **argv)
{
    static const struct hed_cli_opt options[] = {
        {"help", false}, {"html", false}, {"chrome", false}, {"folded", false},
        {"from", true},  {"to", true},    {"output", true},  {NULL, false}};
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    struct job job = {.to = UINT64_MAX};
    char *made = NULL;
    bool plain = false;
    int which;

    o.command = "trace export";
    while ((which = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (which == HELP) {
            fputs(usage, stdout);
            return HED_EXIT_OK;
        }
        if (!take_option(&job, &o, which))
            return HED_EXIT_USAGE;
    }
    if (!job.input || !job.format) {
        hed_cli_say("trace export: no %s given; see heddle trace export --help",
                    job.format ? "file" : "format, such as --html,");
        return HED_EXIT_USAGE;
    }
    if (!job.format->sorted && (job.from || job.to != UINT64_MAX)) {
        hed_cli_say("trace export: --from and --to are not possible with --folded");
        return HED_EXIT_USAGE;
    }
    if (!job.output) {
        if (asprintf(&made, "%s.%s", job.input, job.format->ending) < 0)
            return HED_EXIT_FAILED;
        job.output = made;
    }

    const int code = export_file(&job);

    free(made);
    return code;
}
