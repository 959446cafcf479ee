/* vm: from a QEMU guest to its host, over vsock.
 *
 * In the guest these are ordinary sockets to the host (CID 2), which any user may make. On the host
 * no kernel module is needed: QEMU's device vhost-user-vsock talks to the server over a unix
 * socket, which is what the server listens on (remote/server/vm). A connection of the guest arrives
 * in the server as one end of a pair of unix sockets.
 *
 * The kernel of the guest notices when the host's end is gone. Guest and host are one machine, so a
 * host that is silent is not looked for here; channels have signs of life.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* After the above, which it needs. */
#include <linux/vm_sockets.h>

#include "base/err.h"
#include "base/str.h"
#include "remote/wire/link/link.h"
#include "remote/wire/socket.h"
#include "remote/wire/transport.h"
#include "remote/wire/window.h"

/* ---- the address ----------------------------------------------------------------------------- */

static bool
is_guest_name(const char *name)
{
    const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_.-");

    return n > 0 && n < HED_WINDOW_NAME && name[n] == '\0' && name[0] != '.' && name[0] != '-';
}

static int
parse_window_size(const char *text, const char *size, struct hed_address *a, struct hed_why *why)
{
    if (hed_parse_size(size, &a->window) == 0 &&
        (a->window == 0 || (a->window >= HED_WINDOW_LEAST && a->window <= HED_WINDOW_MOST &&
                            (a->window & (a->window - 1)) == 0)))
        return 0;
    hed_why_set(why,
                "%.200s: '%.40s' is not the size of a window: use a power of two from 32M on, "
                "or 0 for no window",
                text, size);
    return HED_EINVAL;
}

/* "", "auto", NAME, NAME,size=SIZE. */
static int
parse_guest(const char *text, const char *rest, struct hed_address *a, struct hed_why *why)
{
    const char *comma = strchr(rest, ',');
    const size_t n = comma ? (size_t)(comma - rest) : strlen(rest);

    a->window = HED_WINDOW_USUAL;
    a->port = HED_ADDRESS_PORT;
    if (n < sizeof a->host)
        memcpy(a->host, rest, n);
    if (!comma && strcmp(a->host, "auto") == 0)
        a->host[0] = '\0';
    if (n >= sizeof a->host || (n > 0 && a->host[0] && !is_guest_name(a->host)) ||
        (n == 0 && comma)) {
        hed_why_set(why,
                    "%.200s: the name of a guest has up to %d letters, digits, '-', '_' and '.'",
                    text, HED_WINDOW_NAME - 1);
        return HED_EINVAL;
    }
    if (!comma)
        return 0;
    if (strncmp(comma, ",size=", 6) != 0) {
        hed_why_set(why, "%.200s: expected vm:NAME or vm:NAME,size=SIZE", text);
        return HED_EINVAL;
    }
    return parse_window_size(text, comma + 6, a, why);
}

static void
print_guest(const struct hed_address *a, char *out, size_t size)
{
    const char *name = a->host[0] ? a->host : "auto";

    if (a->window == HED_WINDOW_USUAL)
        (void)snprintf(out, size, "%s", name);
    else
        (void)snprintf(out, size, "%s,size=%lluM", name, (unsigned long long)(a->window >> 20));
}

/* ---- connecting, in the guest ---------------------------------------------------------------- */

static bool
is_without_vsock(int e)
{
    return e == EAFNOSUPPORT || e == ENODEV || e == EADDRNOTAVAIL;
}

static void
explain_vsock(int e, struct hed_why *why)
{
    if (is_without_vsock(e))
        hed_why_set(why,
                    "this machine has no vsock device, so it is no guest of a host that serves it; "
                    "`heddle doctor` says what to add to QEMU's options");
    else if (e == ECONNRESET || e == ECONNREFUSED)
        hed_why_set(why, "the host refuses the connection; its log says why");
    else
        hed_why_set(why, "%s", strerror(e));
}

static int
set_vsock_buffers(int fd)
{
    const uint64_t bytes = UINT64_C(1) << 20; /* what the host may send before it is read */

    return setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_BUFFER_MAX_SIZE, &bytes, sizeof bytes) == 0 &&
                   setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, &bytes, sizeof bytes) == 0
               ? 0
               : -1;
}

static int
connect_to_host(const struct hed_address *a, uint64_t end, int *out, struct hed_why *why)
{
    const struct sockaddr_vm host = {
        .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_HOST, .svm_port = a->port};

    if (a->host[0] && hed_window_check_name("", a->host, why) != 0)
        return HED_ENOTFOUND;

    const int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int e = fd < 0 ? errno : 0;

    (void)(fd >= 0 && set_vsock_buffers(fd)); /* it works without, but more slowly */
    if (!e)
        e = hed_socket_connect(fd, (const struct sockaddr *)&host, sizeof host, end);
    if (!e && fcntl(fd, F_SETFL, 0) != 0)
        e = errno;
    if (!e) {
        *out = fd;
        return 0;
    }
    explain_vsock(e, why);
    if (fd >= 0)
        close(fd);
    return e == ETIMEDOUT ? HED_ETIME : is_without_vsock(e) ? HED_ENOTSUP : hed_err_from_errno(e);
}

int
hed_vm_gateway(const char *routes, struct hed_address *a)
{
    unsigned destination, gateway = 0;
    char line[256], text[HED_ADDRESS_TEXT];
    FILE *f = fopen(routes, "re");

    if (!f)
        return HED_ENOTFOUND;
    while (!gateway && fgets(line, sizeof line, f)) /* interface, destination, gateway, ... */
        if (sscanf(line, "%*s %8x %8x", &destination, &gateway) != 2 || destination != 0)
            gateway = 0;
    (void)fclose(f);
    if (!gateway)
        return HED_ENOTFOUND;

    const unsigned char *b = (const unsigned char *)&gateway; /* in the network's order */

    (void)snprintf(text, sizeof text, "tcp://%u.%u.%u.%u:%u", b[0], b[1], b[2], b[3],
                   (unsigned)HED_ADDRESS_PORT);
    return hed_address_parse(text, a, NULL);
}

/* ---- on the host ----------------------------------------------------------------------------- */

int
hed_vm_paths(const char *name, char socket[HED_VM_PATH], char window[HED_VM_PATH],
             struct hed_why *why)
{
    const char *folder = geteuid() == 0 ? "/run/heddle" : secure_getenv("XDG_RUNTIME_DIR");

    if (!is_guest_name(name)) {
        hed_why_set(why, "'%.60s' is not the name of a guest", name);
        return HED_EINVAL;
    }
    if (!folder || folder[0] != '/') {
        hed_why_set(why,
                    "XDG_RUNTIME_DIR is not set, so there is no folder for the guest's socket");
        return HED_EINVAL;
    }
    if (snprintf(socket, HED_VM_PATH, "%s/heddle-vm-%s.sock", folder, name) >= HED_VM_PATH) {
        hed_why_set(why, "the folder %.60s... is too long for the path of a socket", folder);
        return HED_ELIMIT;
    }
    (void)snprintf(window, HED_VM_PATH, "/dev/shm/heddle-vm-%u-%s", (unsigned)geteuid(), name);
    return 0;
}

/* The server has filled in the path. */
static int
listen_for_qemu(const struct hed_address *a, int mode, int *fd, struct hed_why *why)
{
    if (!a->host[0]) {
        hed_why_set(why, "give the guest a name: vm:NAME");
        return HED_EINVAL;
    }
    return hed_unix_listen(a, mode, fd, why);
}

const struct hed_link hed_link_vm = {
    .families = {AF_VSOCK},
    .private = true,
    .parse = parse_guest,
    .print = print_guest,
    .connect = connect_to_host,
    .listen = listen_for_qemu,
};
