/* Looking at this machine as a guest. See guest.h. */
#include "locate/guest.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* After the above, which it needs. */
#include <linux/vm_sockets.h>

#include "base/io.h"

#define VSOCK "0x0013" /* the number of vsock devices among those of virtio */
#define WORDS_MAX 4096 /* bytes of a line that are looked at */
#define HOST_MS 1000   /* how long the host may take */

const char *
hed_locate_read(const char *root, const char *name, char *out, size_t size)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s%s", root, name);
    (void)hed_read_small(path, out, size);
    out[strcspn(out, "\n")] = '\0';
    return out;
}

static bool
root_has(const char *root, const char *name)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s%s", root, name);
    return access(path, F_OK) == 0;
}

/* Does a folder have an entry whose name begins so? */
static bool
root_has_entry(const char *root, const char *folder, const char *begin)
{
    char path[PATH_MAX];
    const struct dirent *e;
    bool found = false;

    (void)snprintf(path, sizeof path, "%s%s", root, folder);

    DIR *dir = opendir(path);

    while (dir && !found && (e = readdir(dir)))
        found = e->d_name[0] != '.' && strncmp(e->d_name, begin, strlen(begin)) == 0;
    if (dir)
        (void)closedir(dir);
    return found;
}

/* x86 processors say whether they are virtual. */
static bool
has_hypervisor_flag(const char *root)
{
    char path[PATH_MAX], line[WORDS_MAX];
    bool found = false;

    (void)snprintf(path, sizeof path, "%s/proc/cpuinfo", root);

    FILE *f = fopen(path, "re");

    while (f && !found && fgets(line, sizeof line, f))
        found = strncmp(line, "flags", 5) == 0 && strstr(line, " hypervisor");
    if (f)
        (void)fclose(f);
    return found;
}

/* QEMU passes options to firmware by a device (fw_cfg) that no other hypervisor has; it is in
 * ACPI's tables or in the device tree. Clouds put their own name where QEMU puts its own. */
enum hed_guest_kind
hed_locate_guest(const char *root, char *maker, size_t size)
{
    char type[32];

    (void)hed_locate_read(root, "/sys/class/dmi/id/sys_vendor", maker, size);
    if (strcmp(maker, "QEMU") == 0 || root_has_entry(root, "/sys/bus/acpi/devices", "QEMU0002") ||
        root_has_entry(root, "/sys/firmware/devicetree/base", "fw-cfg@") ||
        root_has(root, "/sys/firmware/qemu_fw_cfg"))
        return HED_GUEST_QEMU;
    return hed_locate_read(root, "/sys/hypervisor/type", type, sizeof type)[0] ||
                   has_hypervisor_flag(root) ||
                   root_has_entry(root, "/sys/bus/virtio/devices", "virtio")
               ? HED_GUEST_UNKNOWN
               : HED_GUEST_NOT;
}

bool
hed_locate_vsock(const char *root, bool *driven)
{
    bool found = false;
    char path[PATH_MAX], number[16];
    const struct dirent *e;

    (void)snprintf(path, sizeof path, "%s/sys/bus/virtio/devices", root);

    DIR *dir = opendir(path);

    while (dir && !found && (e = readdir(dir))) {
        if (e->d_name[0] == '.' || strlen(e->d_name) > 32)
            continue;
        (void)snprintf(path, sizeof path, "/sys/bus/virtio/devices/%s/device", e->d_name);
        found = strcmp(hed_locate_read(root, path, number, sizeof number), VSOCK) == 0;
        (void)snprintf(path, sizeof path, "/sys/bus/virtio/devices/%s/driver", e->d_name);
        *driven = found && root_has(root, path);
    }
    if (dir)
        (void)closedir(dir);
    return found;
}

/* Connects, and hangs up at once. */
static bool
is_host_listening(void)
{
    const struct sockaddr_vm host = {
        .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_HOST, .svm_port = HED_LOCATE_HOST_PORT};
    const int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int error = fd < 0 ? errno : 0;
    socklen_t size = sizeof error;

    if (!error && connect(fd, (const struct sockaddr *)&host, sizeof host) != 0)
        error = errno;
    if (error == EINPROGRESS &&
        (poll(&p, 1, HOST_MS) != 1 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0))
        error = ETIMEDOUT;
    if (fd >= 0)
        (void)close(fd);
    return error == 0;
}

bool
hed_locate_host(const char *root)
{
    char maker[64];
    bool driven = false;

    return hed_locate_vsock(root, &driven) && driven &&
           hed_locate_guest(root, maker, sizeof maker) == HED_GUEST_QEMU && is_host_listening();
}
