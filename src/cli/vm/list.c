/* heddle vm list: the guests that servers of this user listen for. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/vm/vm.h"

#define OUTPUT_MAX (1u << 20)

static const char usage[] =
    "usage: heddle vm list [OPTION...]\n"
    "\n"
    "Shows the guests that servers of this user listen for\n"
    "(heddle serve --listen vm:NAME): the name, the size of the window, and whether\n"
    "the server is there, and QEMU connected to it.\n"
    "\n"
    "  --json       print JSON\n"
    "  -h, --help   show this help\n"
    "\n"
    "The exit code is 0 on success, 1 if there is no folder to look in, 2 if an\n"
    "option is wrong.\n";

enum { OPT_JSON, OPT_HELP };

static const struct hed_cli_opt options[] = {
    [OPT_JSON] = {"json", false},
    [OPT_HELP] = {"help", false},
    {NULL, false},
};

static const char *const server_names[] = {
    [HED_CLI_SERVER_NONE] = "none",       [HED_CLI_SERVER_GONE] = "gone",
    [HED_CLI_SERVER_LISTENS] = "listens", [HED_CLI_SERVER_IN_USE] = "connected",
    [HED_CLI_SERVER_UNKNOWN] = "unknown",
};

static void
add_guest_table(struct hed_buf *b, const struct hed_cli_guest *guests, int count)
{
    size_t width = strlen("GUEST");

    for (int i = 0; i < count; i++)
        width = strlen(guests[i].name) > width ? strlen(guests[i].name) : width;
    hed_buf_addf(b, " %-*s %11s  %s\n", (int)width, "GUEST", "WINDOW", "SERVER");
    for (int i = 0; i < count; i++) {
        const struct hed_cli_guest *g = &guests[i];

        hed_buf_addf(b, " %-*s ", (int)width, g->name);
        if (g->size)
            hed_buf_addf(b, "%7" PRIu64 " MiB", g->size >> 20);
        else
            hed_buf_addf(b, "%11s", g->error == HED_ENOTFOUND ? "-" : "unusable");
        hed_buf_addf(b, "  %s\n", server_names[g->server]);
    }
}

static void
add_guest_json(struct hed_buf *b, const struct hed_cli_guest *guests, int count)
{
    hed_buf_addf(b, "{\"guests\":[");
    for (int i = 0; i < count; i++) {
        const struct hed_cli_guest *g = &guests[i];

        hed_buf_addf(b, "%s{", i ? "," : "");
        hed_str_field(b, "name", g->name, strlen(g->name));
        hed_buf_addf(b, ",");
        hed_str_field(b, "socket", g->socket, strlen(g->socket));
        hed_buf_addf(b, ",");
        hed_str_field(b, "window", g->window, g->size ? strlen(g->window) : 0);
        hed_buf_addf(b, ",\"window_bytes\":%" PRIu64 ",\"server\":\"%s\"}", g->size,
                     server_names[g->server]);
    }
    hed_buf_addf(b, "]}\n");
}

int
hed_cli_vm_list(int argc, char **argv)
{
    static struct hed_cli_guest guests[HED_CLI_GUESTS]; /* large */
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    struct hed_why why = {""};
    struct hed_buf b;
    bool json = false;
    int option;

    o.command = "vm list";
    while ((option = hed_cli_opts_next(&o)) >= 0) {
        if (option == OPT_HELP) {
            fputs(usage, stdout);
            return HED_EXIT_OK;
        }
        json = true;
    }
    if (option == HED_CLI_OPT_BAD || !hed_cli_opts_no_operands(&o))
        return HED_EXIT_USAGE;

    const int count = hed_cli_guest_list(guests, &why);

    if (count < 0) {
        hed_cli_say("vm list: %s", why.text);
        return HED_EXIT_FAILED;
    }
    hed_buf_init(&b, OUTPUT_MAX);
    if (json)
        add_guest_json(&b, guests, count);
    else if (count)
        add_guest_table(&b, guests, count);
    else
        hed_buf_addf(&b, "No server of this user listens for a guest "
                         "(heddle serve --listen vm:NAME).\n");
    fputs(hed_buf_cstr(&b), stdout);
    hed_buf_fini(&b);
    return HED_EXIT_OK;
}
