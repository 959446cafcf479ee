/* heddle trace: the table of its subcommands. */
#include "cli/cli.h"
#include "cli/group.h"
#include "cli/trace/guard.h"
#include "cli/trace/util.h"

static const struct hed_cli_group group = {
    .name = "trace",
    .head = "usage: heddle trace COMMAND FILE [OPTION...]\n\n"
            "Reads the CUDA and NVML calls that `heddle run --trace FILE` recorded.\n\n",
    .tail = "\n"
            "  heddle trace show app.hed --errors\n"
            "  heddle trace summary app.hed\n"
            "  heddle trace export --html app.hed\n"
            "\n"
            "`heddle trace COMMAND --help` explains each command.\n",
    .commands =
        {
            {"show", hed_cli_trace_show, "list the calls, one per line"},
            {"summary", hed_cli_trace_summary, "count and time the calls of each function"},
            {"diff", hed_cli_trace_diff, "tell what is worse or better in a second trace"},
            {"export", hed_cli_trace_export, "write a page, a timeline for Perfetto, or stacks"},
        },
};

int
hed_cli_trace(int argc, char **argv)
{
    return hed_cli_group(&group, argc, argv, hed_guard_run);
}
