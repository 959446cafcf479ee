/* heddle vm qemu-args: the options that give a QEMU guest its two devices. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/vm/vm.h"

#define OUTPUT_MAX 4096

static const char usage[] =
    "usage: heddle vm qemu-args NAME [OPTION...]\n"
    "\n"
    "Prints the options with which QEMU connects a guest to the server that listens\n"
    "at vm:NAME: shared RAM, a vsock device, and the window. In a shell:\n"
    "\n"
    "  qemu-system-x86_64 $(heddle vm qemu-args alpha --ram 8G) -accel kvm ...\n"
    "\n"
    "  --ram SIZE   the RAM of the guest (default: 2G); leave out -m, or give it the\n"
    "               same size\n"
    "  --size SIZE  the size of the window, as in `heddle serve --listen\n"
    "               vm:NAME,size=SIZE`, or 0 for none: so that the server can be\n"
    "               started later. Default: the size that its window has\n"
    "  --no-window  leave the window out: all data goes through the vsock\n"
    "  --lines      print one option per line\n"
    "  -h, --help   show this help\n"
    "\n"
    "The exit code is 0 on success, 1 if no server listens for the guest, 2 if an\n"
    "option is wrong.\n";

int
hed_cli_vm_qemu(int argc, char **argv)
{
    static const char command[] = "vm qemu-args";
    struct hed_cli_vm_asked asked = {0};
    const int code = hed_cli_vm_ask(command, usage, true, argc, argv, &asked);
    struct hed_buf b;

    if (code >= 0)
        return code;
    hed_buf_init(&b, OUTPUT_MAX);

    const int err =
        hed_vm_qemu_options(&b, asked.guest.socket, asked.guest.window, asked.guest.size,
                            asked.ram ? asked.ram : HED_VM_RAM, asked.lines ? "\n" : " ");

    if (err) {
        hed_cli_say("%s: %s: the path %s has characters that a shell would change", command,
                    asked.guest.name, asked.guest.socket);
    } else {
        /* No blank at the end of the line. */
        printf("%.*s\n", (int)b.size - 1, hed_buf_cstr(&b));
        if (!asked.ram)
            hed_cli_say("%s: %s: the guest has 2G of RAM; for another size use --ram, and leave "
                        "out -m or give it the same size",
                        command, asked.guest.name);
    }
    hed_buf_fini(&b);
    return err ? HED_EXIT_FAILED : HED_EXIT_OK;
}
