/* heddle doctor: checks everything that heddle depends on, and says what to do. It changes nothing
 * on the machine. Checks that may hang or crash run in child processes.
 */
#include "cli/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/cli.h"

#define INDENT 19 /* where the text of a finding begins */
#define OUTPUT_MAX (1024u * 1024)

static const char usage[] =
    "usage: heddle doctor [OPTION...]\n"
    "\n"
    "Checks heddle's libraries and settings, NVIDIA's driver and this machine, and\n"
    "explains what is wrong and what to do about it. It changes nothing.\n"
    "\n"
    "  --json        print JSON\n"
    "  -h, --help    show this help\n"
    "\n"
    "The exit code is 0 if nothing failed (there may be warnings), 1 if something\n"
    "failed, 2 if an option is wrong.\n";

enum { OPT_JSON, OPT_HELP };

static const struct hed_cli_opt options[] = {
    [OPT_JSON] = {"json", false},
    [OPT_HELP] = {"help", false},
    {NULL, false},
};

static const char *const level_names[] = {"ok", "warn", "FAIL"};
static const char *const level_colours[] = {"\033[32m", "\033[33m", "\033[1;31m"};

static void
print_findings(const struct hed_doctor *d)
{
    const bool colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    size_t counts[3] = {0};

    for (size_t i = 0; i < d->count; i++) {
        const struct hed_finding *f = &d->findings[i];

        counts[f->level]++;
        printf("%s%-4s%s  %-12s ", colour ? level_colours[f->level] : "", level_names[f->level],
               colour ? "\033[0m" : "", f->name);
        hed_cli_fold(stdout, f->text, INDENT);
        if (f->hint[0]) {
            printf("%*s", INDENT, "");
            hed_cli_fold(stdout, f->hint, INDENT);
        }
    }
    if (counts[HED_FINDING_FAIL])
        printf("\n%zu failed, %zu warning%s\n", counts[HED_FINDING_FAIL], counts[HED_FINDING_WARN],
               counts[HED_FINDING_WARN] == 1 ? "" : "s");
    else if (counts[HED_FINDING_WARN])
        printf("\nnothing failed, %zu warning%s\n", counts[HED_FINDING_WARN],
               counts[HED_FINDING_WARN] == 1 ? "" : "s");
    else
        printf("\neverything is fine\n");
}

static void
add_finding_text(struct hed_buf *b, const char *key, const char *value, const char *after)
{
    hed_str_field(b, key, value, strlen(value));
    hed_buf_addf(b, "%s", after);
}

static void
print_findings_json(const struct hed_doctor *d, bool failed)
{
    struct hed_buf b;

    hed_buf_init(&b, OUTPUT_MAX);
    hed_buf_addf(&b, "{");
    add_finding_text(&b, "version", hed_cli_version_text, ",");
    hed_buf_addf(&b, "\"failed\":%s,\"findings\":[", failed ? "true" : "false");
    for (size_t i = 0; i < d->count; i++) {
        const struct hed_finding *f = &d->findings[i];

        hed_buf_addf(&b, "%s{", i ? "," : "");
        add_finding_text(&b, "level", level_names[f->level], ",");
        add_finding_text(&b, "name", f->name, ",");
        add_finding_text(&b, "text", f->text, ",");
        add_finding_text(&b, "hint", f->hint, "}");
    }
    hed_buf_addf(&b, "]}");
    puts(hed_buf_cstr(&b));
    hed_buf_fini(&b);
}

int
hed_cli_doctor(int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    bool json = false;
    bool failed = false;
    int option;

    while ((option = hed_cli_opts_next(&o)) >= 0) {
        if (option == OPT_HELP) {
            fputs(usage, stdout);
            return HED_EXIT_OK;
        }
        json = true;
    }
    if (option == HED_CLI_OPT_BAD || !hed_cli_opts_no_operands(&o))
        return HED_EXIT_USAGE;

    /* It is large, and the stack may be small. */
    struct hed_doctor *d = calloc(1, sizeof *d);

    if (!d) {
        hed_cli_say("doctor: out of memory");
        return HED_EXIT_FAILED;
    }
    hed_doctor_heddle(d);
    hed_doctor_loader(d);
    hed_doctor_cudart(d);
    hed_doctor_cpu(d);
    hed_doctor_server(d);
    hed_doctor_guest(d);
    hed_doctor_driver(d);
    hed_doctor_system(d);
    hed_doctor_share(d);
    hed_doctor_criu(d);
    for (size_t i = 0; i < d->count; i++)
        failed = failed || d->findings[i].level == HED_FINDING_FAIL;
    if (json)
        print_findings_json(d, failed);
    else
        print_findings(d);
    free(d);
    return failed ? HED_EXIT_FAILED : HED_EXIT_OK;
}
