/* heddle trace SUBCOMMAND: finds the subcommand and runs it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/trace_guard.h"
#include "cli/trace_util.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"show", hed_cli_trace_show, "list the calls, one a line"},
    {"summary", hed_cli_trace_summary, "count and time them, a line a function"},
    {"export", hed_cli_trace_export, "make a file that Perfetto and chrome://tracing open"},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void
print_help(FILE *out)
{
    fputs("usage: heddle trace COMMAND FILE [OPTION...]\n\n"
          "Looks at what a program asked of CUDA, as recorded by `heddle run --trace FILE`.\n\n",
          out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fputs("\n"
          "  heddle trace show app.hed --errors\n"
          "  heddle trace summary app.hed\n"
          "  heddle trace export --chrome app.hed\n"
          "\n"
          "heddle trace COMMAND --help says more about each.\n",
          out);
}

static int
unknown(const char *name)
{
    const char *best = NULL;
    unsigned least = HED_CLI_FAR;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const unsigned far = hed_cli_distance(name, commands[i].name);

        if (far < least) {
            least = far;
            best = commands[i].name;
        }
    }
    if (best && hed_cli_similar(least, name))
        hed_cli_say("trace: no command \"%s\"; did you mean \"%s\"?", name, best);
    else
        hed_cli_say("trace: no command \"%s\"; see heddle trace --help", name);
    return HED_EXIT_USAGE;
}

int
hed_cli_trace(int argc, char **argv)
{
    /* `heddle trace show ... | head` shall end without a word, whatever our parent ignores. */
    signal(SIGPIPE, SIG_DFL);
    if (argc < 2) {
        print_help(stderr);
        return HED_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return HED_EXIT_OK;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, argv[1]) == 0)
            return hed_guard_run(commands[i].run, argc - 1, argv + 1);
    }
    return unknown(argv[1]);
}
