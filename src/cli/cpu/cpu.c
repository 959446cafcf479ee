/* heddle cpu: the table of its subcommands. */
#include "cli/cpu/cpu.h"

#include "cli/cli.h"
#include "cli/group.h"

static const struct hed_cli_group group = {
    .name = "cpu",
    .head = "usage: heddle cpu COMMAND [OPTION...]\n\n"
            "Looks into the CPU GPU, which runs kernels on this machine's processor.\n\n",
    .tail = "\n"
            "  heddle cpu explain app.ptx\n"
            "  heddle cpu explain ./app softmax\n"
            "  heddle cpu explain 1234\n"
            "  heddle cpu warm -- python train.py\n"
            "  heddle cpu cache list\n"
            "\n"
            "`heddle cpu COMMAND --help` explains each command.\n",
    .commands =
        {
            {"explain", hed_cli_cpu_explain, "show how kernels run, and why"},
            {"warm", hed_cli_cpu_warm, "compile kernels before they are needed"},
            {"cache", hed_cli_cpu_cache, "show, shrink and carry the cache of compiled kernels"},
        },
};

int
hed_cli_cpu(int argc, char **argv)
{
    return hed_cli_group(&group, argc, argv, NULL);
}
