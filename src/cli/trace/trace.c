/* heddle trace: its commands. */
#include "cli/cli.h"
#include "cli/group.h"
#include "cli/trace/guard.h"
#include "cli/trace/util.h"

static const struct hed_cli_group group = {
    .name = "trace",
    .head = "usage: heddle trace COMMAND FILE [OPTION...]\n\n"
            "Looks at what a program asked of CUDA, as recorded by `heddle run --trace FILE`.\n\n",
    .tail = "\n"
            "  heddle trace show app.hed --errors\n"
            "  heddle trace summary app.hed\n"
            "  heddle trace export --chrome app.hed\n"
            "\n"
            "heddle trace COMMAND --help says more about each.\n",
    .commands =
        {
            {"show", hed_cli_trace_show, "list the calls, one a line"},
            {"summary", hed_cli_trace_summary, "count and time them, a line a function"},
            {"export", hed_cli_trace_export, "make a file that Perfetto and chrome://tracing open"},
        },
};

int
hed_cli_trace(int argc, char **argv)
{
    return hed_cli_group(&group, argc, argv, hed_guard_run);
}
