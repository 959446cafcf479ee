/* heddle vm libvirt: what a guest's definition needs, as a <domain> with nothing else in it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/vm/vm.h"

#define OUTPUT_MAX 16384
#define FOLDER "/dev/shm/" /* where libvirt looks for <shmem name='...'> */

static const char usage[] =
    "usage: heddle vm libvirt NAME [OPTION...]\n"
    "\n"
    "Prints the parts of a libvirt domain that connect a guest to the server that\n"
    "listens at vm:NAME: shared RAM, a vsock device, and the window. Comments say\n"
    "where each part goes (virsh edit).\n"
    "\n"
    "  --size SIZE  the size of the window, as in `heddle serve --listen\n"
    "               vm:NAME,size=SIZE`, or 0 for none: so that the server can be\n"
    "               started later. Default: the size that its window has\n"
    "  --no-window  leave the window out: all data goes through the vsock\n"
    "  -h, --help   show this help\n"
    "\n"
    "The exit code is 0 on success, 1 if no server listens for the guest, 2 if an\n"
    "option is wrong.\n";

static void
add_xml_text(struct hed_buf *b, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            hed_buf_addf(b, "&amp;");
            break;
        case '<':
            hed_buf_addf(b, "&lt;");
            break;
        case '\'':
            hed_buf_addf(b, "&apos;");
            break;
        case ',': /* for QEMU, which takes two commas for one */
            hed_buf_addf(b, ",,");
            break;
        default:
            hed_buf_addf(b, "%c", *text);
        }
    }
}

void
hed_cli_libvirt_xml(struct hed_buf *b, const struct hed_cli_guest *g)
{
    hed_buf_addf(b, "<!-- Add these parts to the guest's definition (virsh edit). The element\n"
                    "     domain needs the attribute xmlns:qemu. -->\n"
                    "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n"
                    "\n"
                    "  <!-- Directly in domain: RAM that the server can share. -->\n"
                    "  <memoryBacking>\n"
                    "    <source type='memfd'/>\n"
                    "    <access mode='shared'/>\n"
                    "  </memoryBacking>\n");
    if (g->size)
        hed_buf_addf(b,
                     "\n"
                     "  <devices>\n"
                     "    <!-- Among the other devices: the window, a file in /dev/shm. -->\n"
                     "    <shmem name='%s'>\n"
                     "      <model type='ivshmem-plain'/>\n"
                     "      <size unit='M'>%" PRIu64 "</size>\n"
                     "    </shmem>\n"
                     "  </devices>\n",
                     g->window + strlen(FOLDER), g->size >> 20);
    hed_buf_addf(b, "\n"
                    "  <!-- At the end of domain: the vsock device, which libvirt does not know. "
                    "-->\n"
                    "  <qemu:commandline>\n"
                    "    <qemu:arg value='-chardev'/>\n"
                    "    <qemu:arg value='socket,id=heddle-vsock,path=");
    add_xml_text(b, g->socket);
    hed_buf_addf(b, "'/>\n"
                    "    <qemu:arg value='-device'/>\n"
                    "    <qemu:arg value='vhost-user-vsock-pci,chardev=heddle-vsock'/>\n"
                    "  </qemu:commandline>\n"
                    "</domain>\n");
}

int
hed_cli_vm_libvirt(int argc, char **argv)
{
    static const char command[] = "vm libvirt";
    struct hed_cli_vm_asked asked = {0};
    const int code = hed_cli_vm_ask(command, usage, false, argc, argv, &asked);
    struct hed_buf b;

    if (code >= 0)
        return code;
    if (asked.guest.size && strncmp(asked.guest.window, FOLDER, strlen(FOLDER)) != 0) {
        hed_cli_say("%s: %s: libvirt finds windows in " FOLDER " only, and this one is %s", command,
                    asked.guest.name, asked.guest.window);
        return HED_EXIT_FAILED;
    }
    hed_buf_init(&b, OUTPUT_MAX);
    hed_cli_libvirt_xml(&b, &asked.guest);
    fputs(hed_buf_cstr(&b), stdout);
    hed_buf_fini(&b);
    return HED_EXIT_OK;
}
