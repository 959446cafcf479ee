/* heddle vm: what its files share.
 *
 *   guest.c    finds the guests that servers of this user listen for
 *   ask.c      the words of `qemu-args` and `libvirt`, and whether the server is there
 *   qemu.c     prints QEMU's options
 *   libvirt.c  prints libvirt's XML
 *   list.c     shows the guests
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "remote/remote.h"

struct hed_buf;
struct hed_why;

#define HED_CLI_GUESTS 256 /* that are listed */

int hed_cli_vm(int argc, char **argv);
int hed_cli_vm_qemu(int argc, char **argv);
int hed_cli_vm_libvirt(int argc, char **argv);
int hed_cli_vm_list(int argc, char **argv);

enum hed_cli_server {
    HED_CLI_SERVER_NONE,    /* there is no socket */
    HED_CLI_SERVER_GONE,    /* there is a socket, but no process has it */
    HED_CLI_SERVER_LISTENS, /* a process has the socket */
    HED_CLI_SERVER_IN_USE,  /* and QEMU is connected to it */
    HED_CLI_SERVER_UNKNOWN, /* this user may not use the socket */
};

/* A guest, as its host sees it. */
struct hed_cli_guest {
    char name[HED_WINDOW_NAME];
    char socket[HED_VM_PATH];
    char window[HED_VM_PATH];
    enum hed_cli_server server;
    int error;     /* 0, or why the window cannot be used: HED_ENOTFOUND: there is none */
    uint64_t size; /* bytes of the window; 0: there is none */
};

/* ---- guest.c --------------------------------------------------------------------------------- */

/* Looks for the server's socket and the window of a guest. Connects to nothing. Fails if the name
 * is not one, or if there is no folder for sockets. */
int hed_cli_guest_look(const char *name, struct hed_cli_guest *out, struct hed_why *why);

/* Fills in all guests of this user's servers, by name. Returns how many there are; at most
 * HED_CLI_GUESTS. */
int hed_cli_guest_list(struct hed_cli_guest *out, struct hed_why *why);

/* ---- ask.c ----------------------------------------------------------------------------------- */

struct hed_cli_vm_asked {
    struct hed_cli_guest guest; /* its size is 0 if there shall be no window */
    uint64_t ram;               /* bytes; 0: not given */
    bool lines;
};

/* Reads the words, and finds the guest. Returns -1, or the exit code if there is nothing to print;
 * the reason was printed. `command` is "vm qemu-args"; `has_ram`: --ram and --lines are options. */
int hed_cli_vm_ask(const char *command, const char *usage, bool has_ram, int argc, char **argv,
                   struct hed_cli_vm_asked *out);

/* ---- the texts ------------------------------------------------------------------------------- */

void hed_cli_libvirt_xml(struct hed_buf *b, const struct hed_cli_guest *g);
