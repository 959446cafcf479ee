/* What `heddle vm qemu-args` and `heddle vm libvirt` are asked for, and whether the server that
 * they print options for is there. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/vm/vm.h"
#include "remote/remote.h"

#define RAM_LEAST (UINT64_C(1) << 20)
#define RAM_MOST (UINT64_C(1) << 46)

enum { OPT_SIZE, OPT_NO_WINDOW, OPT_HELP, OPT_RAM, OPT_LINES };

static const struct hed_cli_opt options[] = {
    [OPT_SIZE] = {"size", true},    [OPT_NO_WINDOW] = {"no-window", false},
    [OPT_HELP] = {"help", false},   [OPT_RAM] = {"ram", true},
    [OPT_LINES] = {"lines", false}, {NULL, false},
};

/* libvirt's XML says itself how much RAM there is. */
static const struct hed_cli_opt options_without_ram[] = {
    [OPT_SIZE] = {"size", true},
    [OPT_NO_WINDOW] = {"no-window", false},
    [OPT_HELP] = {"help", false},
    {NULL, false},
};

struct words {
    const char *name;
    const char *size;
    const char *ram;
    bool no_window;
    bool lines;
    bool help;
};

static bool
read_vm_words(struct hed_cli_opts *o, struct words *w)
{
    bool plain = false;
    int option;

    while ((option = hed_cli_words_next(o, &plain)) != HED_CLI_OPT_END) {
        if (option == HED_CLI_OPT_BAD)
            return false;
        if (option == HED_CLI_OPERAND && w->name) {
            hed_cli_say("%s: unexpected '%s'; give the name of one guest", o->command, o->value);
            return false;
        }
        if (option == HED_CLI_OPERAND)
            w->name = o->value;
        if (option == OPT_SIZE)
            w->size = o->value;
        if (option == OPT_RAM)
            w->ram = o->value;
        w->no_window = w->no_window || option == OPT_NO_WINDOW;
        w->lines = w->lines || option == OPT_LINES;
        w->help = w->help || option == OPT_HELP;
    }
    return true;
}

/* Checks the name and --size as `heddle serve --listen` would. */
static bool
check_vm_address(const char *command, const struct words *w, uint64_t *size)
{
    char text[HED_ADDRESS_TEXT];
    struct hed_address a = {0};
    struct hed_why why = {""};

    if (!w->name) {
        hed_cli_say("%s: no guest given; see heddle %s --help", command, command);
        return false;
    }
    (void)snprintf(text, sizeof text, "vm:%.100s%s%.40s", w->name, w->size ? ",size=" : "",
                   w->size ? w->size : "");
    if (hed_address_parse(text, &a, &why) != 0) {
        hed_cli_say("%s: %s", command, why.text);
        return false;
    }
    if (!a.host[0] || strcmp(a.host, w->name) != 0) {
        hed_cli_say("%s: '%s' is not the name of a guest: for `heddle serve --listen vm:alpha` "
                    "it is alpha",
                    command, w->name);
        return false;
    }
    *size = a.window;
    return true;
}

static bool
read_ram(const char *command, const char *text, uint64_t *ram)
{
    if (!text || (hed_parse_size(text, ram) == 0 && *ram >= RAM_LEAST && *ram <= RAM_MOST &&
                  *ram % RAM_LEAST == 0))
        return true;
    hed_cli_say("%s: --ram '%s' is not a size such as 512M or 4G", command, text);
    return false;
}

/* ---- is the server there? -------------------------------------------------------------------- */

static const char *
server_state(const struct hed_cli_guest *g)
{
    return g->server == HED_CLI_SERVER_GONE ? "the server that listened for this guest is gone"
                                            : "no server listens for this guest";
}

/* What the user must type to start the server. */
static void
add_serve_command(struct hed_buf *b, const char *name, uint64_t size)
{
    hed_buf_addf(b, "heddle serve --listen vm:%s", name);
    if (size == HED_WINDOW_USUAL)
        return;
    hed_buf_addf(b, ",size=");
    hed_vm_qemu_size(b, size);
}

static void
say_start(const char *command, const struct hed_cli_guest *g, uint64_t size, bool may_come)
{
    struct hed_buf b;

    hed_buf_init(&b, 1024);
    add_serve_command(&b, g->name, size);
    hed_cli_say("%s: %s: %s; start %s with: %s%s", command, g->name, server_state(g),
                may_come ? "it before QEMU," : "one", hed_buf_cstr(&b),
                geteuid() == 0 ? ""
                               : " (a server of root, such as heddled.service, shows its "
                                 "guests to root only)");
    hed_buf_fini(&b);
}

/* A window that is there must be what the caller expects. */
static bool
check_vm_window(const char *command, const struct words *w, uint64_t size,
                const struct hed_cli_guest *g)
{
    if (w->no_window || g->error == HED_ENOTFOUND)
        return true;
    if (g->error) {
        hed_cli_say("%s: %s: %s is not a window of a server of this user: %s", command, g->name,
                    g->window, hed_err_text(g->error));
        return false;
    }
    if (w->size && size != g->size) {
        hed_cli_say("%s: %s: the window has %" PRIu64 " MiB, not %" PRIu64
                    " MiB as --size says; leave --size out, or restart the server",
                    command, g->name, g->size >> 20, size >> 20);
        return false;
    }
    return true;
}

/* With --size the server may be started later. */
static int
find_vm_guest(const char *command, const struct words *w, uint64_t size, struct hed_cli_guest *g)
{
    struct hed_why why = {""};

    if (hed_cli_guest_look(w->name, g, &why) != 0) {
        hed_cli_say("%s: %s", command, why.text);
        return HED_EXIT_FAILED;
    }
    if (g->server == HED_CLI_SERVER_UNKNOWN) {
        hed_cli_say("%s: %s: this user may not use %s", command, g->name, g->socket);
        return HED_EXIT_FAILED;
    }

    const bool listens = g->server == HED_CLI_SERVER_LISTENS || g->server == HED_CLI_SERVER_IN_USE;

    if (!listens)
        say_start(command, g, w->size ? size : HED_WINDOW_USUAL, w->size != NULL);
    if (!listens && !w->size)
        return HED_EXIT_FAILED;
    if (!listens)
        g->size = size; /* the next server makes a new window */
    else if (!check_vm_window(command, w, size, g))
        return HED_EXIT_FAILED;
    else if (!w->no_window && g->error == HED_ENOTFOUND)
        hed_cli_say("%s: %s: the server has no window for this guest (size=0), so all data goes "
                    "through the vsock, which is slower",
                    command, g->name);
    if (w->no_window)
        g->size = 0;
    return -1;
}

int
hed_cli_vm_ask(const char *command, const char *usage, bool has_ram, int argc, char **argv,
               struct hed_cli_vm_asked *out)
{
    struct hed_cli_opts o = hed_cli_opts_over(has_ram ? options : options_without_ram, argc, argv);
    struct words w = {0};
    uint64_t size = 0;

    o.command = command;
    if (!read_vm_words(&o, &w))
        return HED_EXIT_USAGE;
    if (w.help) {
        fputs(usage, stdout);
        return HED_EXIT_OK;
    }
    if (!check_vm_address(command, &w, &size) || !read_ram(command, w.ram, &out->ram))
        return HED_EXIT_USAGE;
    out->lines = w.lines;
    return find_vm_guest(command, &w, size, &out->guest);
}
