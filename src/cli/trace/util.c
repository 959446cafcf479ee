/* What the subcommands of `heddle trace` share. */
#include "cli/trace/util.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/trace/guard.h"
#include "core/call.h"
#include "see/see.h"

#define OTHERS_MAX 5 /* files to suggest where the one asked for is missing */

/* ---- words ----------------------------------------------------------------------------------- */

static bool
refuse_value(const struct hed_cli_opts *o, const char *what)
{
    hed_cli_say("%s: '%s' is not %s", o->command, o->value, what);
    return false;
}

bool
hed_cli_seconds(const struct hed_cli_opts *o, uint64_t *ns)
{
    char *end;
    const double v = strtod(o->value, &end);

    if (end == o->value || *end || !isfinite(v) || v < 0 || v > 1e9)
        return refuse_value(o, "a number of seconds, such as 1.5");
    *ns = (uint64_t)(v * 1e9 + 0.5);
    return true;
}

bool
hed_cli_number(const struct hed_cli_opts *o, uint64_t *n)
{
    return hed_parse_u64(o->value, n) == 0 || refuse_value(o, "a number");
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Is the name of the form `stem.PID.ending` or `stem.PID-N.ending`? */
static bool
is_of_process(const char *name, const char *stem, size_t n, const char *ending)
{
    if (strncmp(name, stem, n) != 0 || name[n] != '.' || !isdigit((unsigned char)name[n + 1]))
        return false;

    const char *rest = name + n + 1 + strspn(name + n + 1, "0123456789");

    if (*rest == '-' && isdigit((unsigned char)rest[1]))
        rest += 1 + strspn(rest + 1, "0123456789");
    return strcmp(rest, ending) == 0;
}

/* A program that makes no CUDA calls itself leaves no trace, but the processes that it starts leave
 * theirs in the same folder. Adds their names to a message; nothing if there are none.
 */
static void
find_others(const char *path, struct hed_buf *b)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    const size_t stem = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    const size_t folder = (size_t)(name - path);
    char *where = folder ? strndup(path, folder) : strdup(".");
    DIR *dir = where ? opendir(where) : NULL;
    unsigned found = 0;

    for (const struct dirent *e; dir && (e = readdir(dir));) {
        if (!is_of_process(e->d_name, name, stem, name + stem))
            continue;
        if (found < OTHERS_MAX)
            hed_buf_addf(b, "%s%.*s%s", found ? ", " : "; its child processes wrote ", (int)folder,
                         path, e->d_name);
        found++;
    }
    if (found > OTHERS_MAX)
        hed_buf_addf(b, " and %u more", found - OTHERS_MAX);
    if (dir)
        closedir(dir);
    free(where);
}

struct hed_trace *
hed_cli_trace_open(const char *path)
{
    struct hed_trace *t = NULL;
    struct hed_why why = {""};

    hed_guard_reading(path);

    const int err = hed_trace_open(path, &t, &why);

    if (err) {
        struct hed_buf others;

        hed_buf_init(&others, HED_CLI_LINE_MAX);
        if (err == HED_ENOTFOUND)
            find_others(path, &others);
        hed_cli_say("%s: %s%s", path, why.text, hed_buf_cstr(&others));
        hed_buf_fini(&others);
        return NULL;
    }
    return t;
}

int
hed_cli_trace_verdict(const char *path, const struct hed_trace *t)
{
    const struct hed_trace_state *s = hed_trace_state(t);

    if (s->blocks_bad)
        hed_cli_say("%s: the file is damaged: %" PRIu64 " block%s (%" PRIu64 " bytes) lost%s", path,
                    s->blocks_bad, s->blocks_bad == 1 ? "" : "s", s->bytes_lost,
                    s->bytes_cut ? ", and the last one is incomplete" : "");
    else if (s->bytes_cut)
        hed_cli_say("%s: the last block is incomplete (%" PRIu64
                    " bytes); the process was killed or is still running, or the disk was full",
                    path, s->bytes_cut);
    else if (!s->ended)
        hed_cli_say(
            "%s: the trace was not closed, so the last calls may be missing; the process was "
            "killed or is still running, or the disk was full",
            path);
    return s->blocks_bad || s->blocks == 0 ? HED_EXIT_FAILED : HED_EXIT_OK;
}

const char *
hed_cli_trace_program(const struct hed_trace *t, struct hed_buf *b)
{
    const char *cmdline = hed_trace_info(t, "cmdline");
    const char *exe = hed_trace_info(t, "exe");
    const char *from = cmdline && *cmdline ? cmdline : exe && *exe ? exe : "unknown program";

    hed_buf_reset(b);
    for (const char *p = from; *p; p++) {
        /* Arguments are separated by U+001F. No other control character may reach a terminal. */
        hed_buf_add(b, (unsigned char)*p < 0x20 || *p == 0x7f ? (*p == 0x1f ? " " : "?") : p, 1);
    }
    return hed_buf_cstr(b);
}

const char *
hed_cli_trace_began(const struct hed_trace *t, char *out, size_t size)
{
    const uint64_t wall = hed_trace_info_u64(t, "clock_wall");
    const time_t seconds = (time_t)(wall / HED_NS_PER_S);
    struct tm tm;

    if (size)
        out[0] = '\0';
    if (wall && localtime_r(&seconds, &tm))
        strftime(out, size, "%Y-%m-%d %H:%M:%S %z", &tm);
    return out;
}

const char *
hed_cli_trace_thread(const struct hed_trace *t, uint64_t thread, char *out, size_t size)
{
    const char *name = hed_trace_thread_name(t, thread);

    snprintf(out, size, name && *name ? "%" PRIu64 " %s" : "%" PRIu64, thread, name);
    for (char *p = out; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    }
    return out;
}

const struct hed_call_info *
hed_cli_trace_info(const struct hed_trace_record *r, const char *name)
{
    const enum hed_api api = (enum hed_api)r->api;
    const struct hed_call_info *info = hed_call_info(api, r->call);

    if (name && (!info || strcmp(info->name, name) != 0))
        info = hed_call_info(api, hed_call_find(api, name));
    return name ? info : NULL;
}

const char *
hed_cli_trace_backend(const struct hed_trace *t)
{
    const char *chain = hed_trace_info(t, "chain");
    const char *last = chain ? strrchr(chain, '>') : NULL;

    return last ? last + 1 : chain ? chain : "";
}

uint64_t
hed_cli_trace_time(const struct hed_trace *t, uint64_t ns)
{
    const uint64_t zero = hed_trace_state(t)->zero;

    return ns > zero ? ns - zero : 0;
}

/* ---- output ---------------------------------------------------------------------------------- */

struct unit {
    double size;
    const char *name;
};

/* A number in the largest unit of which it has one; units[count - 1] is that of the number. */
static const char *
text_in_units(uint64_t number, const struct unit *units, size_t count, char *out, size_t size)
{
    for (size_t i = 0; i + 1 < count; i++) {
        const double v = (double)number / units[i].size;

        /* A little below 1, so that 999.96 us is not printed as 1000 us. */
        if (v >= 0.99995) {
            snprintf(out, size, "%.*f %s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, units[i].name);
            return out;
        }
    }
    snprintf(out, size, "%u %s", (unsigned)number, units[count - 1].name);
    return out;
}

const char *
hed_cli_duration(uint64_t ns, char *out, size_t size)
{
    static const struct unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};

    return text_in_units(ns, units, sizeof(units) / sizeof(units[0]), out, size);
}

const char *
hed_cli_bytes(uint64_t bytes, char *out, size_t size)
{
    static const struct unit units[] = {
        {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}};

    return text_in_units(bytes, units, sizeof(units) / sizeof(units[0]), out, size);
}

void
hed_cli_json_text(struct hed_buf *b, const char *s)
{
    if (!s) {
        hed_buf_addf(b, "null");
        return;
    }
    hed_buf_addf(b, "\"");
    hed_str_escape(b, s, strlen(s));
    hed_buf_addf(b, "\"");
}

bool
hed_cli_colour(void)
{
    const char *no = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return !(no && *no) && !(term && strcmp(term, "dumb") == 0) && isatty(STDOUT_FILENO);
}
