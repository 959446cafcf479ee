/* heddle vm: the table of its subcommands. */
#include "cli/vm/vm.h"

#include "cli/cli.h"
#include "cli/group.h"

static const struct hed_cli_group group = {
    .name = "vm",
    .head =
        "usage: heddle vm COMMAND [OPTION...]\n\n"
        "Connects QEMU guests to a server, so that their programs use this machine's\nGPUs.\n\n",
    .tail = "\n"
            "  heddle serve --listen vm:alpha &                          on the host\n"
            "  qemu-system-x86_64 $(heddle vm qemu-args alpha) ...       on the host\n"
            "  heddle run --gpu vm: -- ./app                             in the guest\n"
            "\n"
            "`heddle vm COMMAND --help` explains each command.\n",
    .commands =
        {
            {"qemu-args", hed_cli_vm_qemu, "print the options that QEMU needs for a guest"},
            {"libvirt", hed_cli_vm_libvirt, "print the XML that libvirt needs for a guest"},
            {"list", hed_cli_vm_list, "show the guests that servers listen for"},
        },
};

int
hed_cli_vm(int argc, char **argv)
{
    return hed_cli_group(&group, argc, argv, NULL);
}
