/* heddle trace export: writes a trace in another program's format. This file takes care of the
 * output file, which is never left half-written, and of showing progress; chrome.c knows the
 * format.
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
#include "cli/trace/guard.h"
#include "cli/trace/util.h"
#include "see/see.h"

#define PROGRESS_FIRST_NS 500000000 /* shorter exports show no progress */
#define PROGRESS_NS 200000000

static const char usage[] =
    "usage: heddle trace export --chrome FILE [-o OUT]\n\n"
    "Writes a JSON file of Chrome trace events, with one track for each thread and\n"
    "one for each CUDA stream. https://ui.perfetto.dev opens it.\n\n"
    "  --chrome          write Chrome trace events (the only format so far)\n"
    "  -o, --output OUT  write to OUT, or to standard output if OUT is - (default:\n"
    "                    FILE.json)\n"
    "  -h, --help        show this help\n";

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

/* ---- the work -------------------------------------------------------------------------------- */

static bool
write_events(const struct hed_trace *t, const struct hed_trace_index *index, FILE *file)
{
    const uint64_t now = hed_now_ns();
    struct progress p = {
        .on = isatty(STDERR_FILENO),
        .begun = now,
        .next = now + PROGRESS_FIRST_NS,
        .total = hed_trace_state(t)->records,
    };
    struct hed_chrome *c = hed_chrome_create(file, t);
    struct hed_trace_record r;
    bool good = c;

    errno = 0;
    for (size_t i = 0; good && hed_trace_at(index, i, &r); i++) {
        good = hed_chrome_put(c, &r);
        if (p.on && i % 1024 == 0)
            show_progress(&p, i);
    }
    if (p.shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    good = good && hed_chrome_finish(c);
    if (!good)
        hed_cli_say("trace export: %s", errno ? strerror(errno) : hed_err_text(HED_ENOMEM));
    hed_chrome_free(c);
    return good;
}

static int
export_file(const char *input, const char *output)
{
    struct hed_trace *t = hed_cli_trace_open(input);
    struct hed_trace_index *index = NULL;
    struct output out = {.path = output};
    struct hed_why why = {""};
    int code = HED_EXIT_FAILED;

    if (!t)
        return HED_EXIT_FAILED;
    if (hed_trace_sort(t, &index, &why) != 0) {
        hed_cli_say("%s: %s", input, why.text);
        goto done;
    }
    if (!open_output(&out, input))
        goto done;
    if (close_output(&out, write_events(t, index, out.file))) {
        code = hed_cli_trace_verdict(input, t);
        if (out.file != stdout) {
            fputs("wrote ", stderr);
            hed_cli_put(stderr, output);
            fputs(": open it in https://ui.perfetto.dev\n", stderr);
        }
    }
done:
    hed_trace_index_free(index);
    hed_trace_close(t);
    return code;
}

int
hed_cli_trace_export(int argc, char **argv)
{
    enum { HELP, CHROME, OUTPUT };
    static const struct hed_cli_opt options[] = {
        {"help", false}, {"chrome", false}, {"output", true}, {NULL, false}};
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    const char *input = NULL;
    const char *output = NULL;
    char *made = NULL;
    bool chrome = false;
    bool plain = false;
    int which;

    o.command = "trace export";
    while ((which = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (which == HELP) {
            fputs(usage, stdout);
            return HED_EXIT_OK;
        }
        if (which == HED_CLI_OPT_BAD)
            return HED_EXIT_USAGE;
        if (which == HED_CLI_OPERAND && input) {
            hed_cli_say("trace export: unexpected '%s'; give one file at a time", o.value);
            return HED_EXIT_USAGE;
        }
        if (which == HED_CLI_OPERAND)
            input = o.value;
        else if (which == OUTPUT)
            output = o.value;
        else
            chrome = true;
    }
    if (!input || !chrome) {
        hed_cli_say("trace export: no %s given; see heddle trace export --help",
                    chrome ? "file" : "format, such as --chrome,");
        return HED_EXIT_USAGE;
    }
    if (!output && asprintf(&made, "%s.json", input) < 0)
        return HED_EXIT_FAILED;

    const int code = export_file(input, output ? output : made);

    free(made);
    return code;
}
