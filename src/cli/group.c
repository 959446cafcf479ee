/* Commands that have subcommands. See group.h. */
#include "cli/group.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static void
print_group_help(const struct hed_cli_group *g, FILE *out)
{
    fputs(g->head, out);
    for (size_t i = 0; g->commands[i].name; i++)
        fprintf(out, "  %-9s %s\n", g->commands[i].name, g->commands[i].summary);
    fputs(g->tail, out);
}

static int
unknown_subcommand(const struct hed_cli_group *g, const char *name)
{
    const char *best = NULL;
    unsigned least = HED_CLI_FAR;

    for (size_t i = 0; g->commands[i].name; i++) {
        const unsigned far = hed_cli_distance(name, g->commands[i].name);

        if (far < least) {
            least = far;
            best = g->commands[i].name;
        }
    }
    if (best && hed_cli_similar(least, name))
        hed_cli_say("%s: there is no command '%s'; did you mean '%s'?", g->name, name, best);
    else
        hed_cli_say("%s: there is no command '%s'; see heddle %s --help", g->name, name, g->name);
    return HED_EXIT_USAGE;
}

int
hed_cli_group(const struct hed_cli_group *g, int argc, char **argv,
              int (*call)(int (*run)(int, char **), int argc, char **argv))
{
    /* `heddle trace show ... | head` ends silently, whatever signals our parent ignores. */
    signal(SIGPIPE, SIG_DFL);
    if (argc < 2) {
        print_group_help(g, stderr);
        return HED_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_group_help(g, stdout);
        return HED_EXIT_OK;
    }
    for (size_t i = 0; g->commands[i].name; i++) {
        if (strcmp(g->commands[i].name, argv[1]) != 0)
            continue;
        return call ? call(g->commands[i].run, argc - 1, argv + 1)
                    : g->commands[i].run(argc - 1, argv + 1);
    }
    return unknown_subcommand(g, argv[1]);
}
