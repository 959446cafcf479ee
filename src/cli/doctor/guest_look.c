/* The doctor looks at this machine as a guest: who made it, its vsock device, its windows. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/doctor/guest.h"

#define VSOCK "0x0013" /* the number of vsock devices among those of virtio */
#define WORDS_MAX 4096 /* bytes of a file that are looked at */

/* The beginning of a file; "" if there is none. */
static void
read_root_file(const char *root, const char *name, char *out, size_t size)
{
    char path[PATH_MAX];
    ssize_t n;

    (void)snprintf(path, sizeof path, "%s%s", root, name);

    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    n = fd < 0 ? 0 : read(fd, out, size - 1);
    if (fd >= 0)
        (void)close(fd);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
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
static enum hed_guest_kind
guest_kind(const char *root, const char *maker)
{
    char type[32];

    if (strcmp(maker, "QEMU") == 0 || root_has_entry(root, "/sys/bus/acpi/devices", "QEMU0002") ||
        root_has_entry(root, "/sys/firmware/devicetree/base", "fw-cfg@") ||
        root_has(root, "/sys/firmware/qemu_fw_cfg"))
        return HED_GUEST_QEMU;
    read_root_file(root, "/sys/hypervisor/type", type, sizeof type);
    return type[0] || has_hypervisor_flag(root) ||
                   root_has_entry(root, "/sys/bus/virtio/devices", "virtio")
               ? HED_GUEST_UNKNOWN
               : HED_GUEST_NOT;
}

static void
look_for_vsock(const char *root, struct hed_guest_facts *f)
{
    char path[PATH_MAX], number[16];
    const struct dirent *e;

    (void)snprintf(path, sizeof path, "%s/sys/bus/virtio/devices", root);

    DIR *dir = opendir(path);

    while (dir && !f->has_vsock && (e = readdir(dir))) {
        if (e->d_name[0] == '.' || strlen(e->d_name) > 32)
            continue;
        (void)snprintf(path, sizeof path, "/sys/bus/virtio/devices/%s/device", e->d_name);
        read_root_file(root, path, number, sizeof number);
        f->has_vsock = strcmp(number, VSOCK) == 0;
        (void)snprintf(path, sizeof path, "/sys/bus/virtio/devices/%s/driver", e->d_name);
        f->vsock_driven = f->has_vsock && root_has(root, path);
    }
    if (dir)
        (void)closedir(dir);
}

static void
look_at_window_file(const char *root, const char *slot, struct hed_guest_file *out)
{
    static const char *const files[] = {"resource2_wc", "resource2"};
    char path[PATH_MAX];
    struct stat st;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        (void)snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/%s", root, slot, files[i]);
        if (stat(path, &st) != 0)
            continue;

        const struct group *g = getgrgid(st.st_gid);

        out->is_open = access(path, R_OK | W_OK) == 0;
        out->mode = st.st_mode & 0777;
        out->is_of_root = st.st_gid == 0;
        if (g)
            (void)hed_str_copy(out->group, sizeof out->group, g->gr_name);
        else
            (void)snprintf(out->group, sizeof out->group, "%u", (unsigned)st.st_gid);
        return;
    }
}

/* "none [integrity] confidentiality": the mode that is in force is in brackets. */
static void
look_at_lockdown(const char *root, char *out, size_t size)
{
    char text[128];
    const char *mode;

    read_root_file(root, "/sys/kernel/security/lockdown", text, sizeof text);
    mode = strchr(text, '[');
    if (!mode || strncmp(mode, "[none]", 6) == 0)
        return;
    (void)snprintf(out, size, "%.*s", (int)strcspn(mode + 1, "]"), mode + 1);
}

void
hed_guest_look(const char *root, struct hed_guest_facts *f)
{
    memset(f, 0, sizeof *f);
    read_root_file(root, "/sys/class/dmi/id/sys_vendor", f->maker, sizeof f->maker);
    f->kind = guest_kind(root, f->maker);
    look_for_vsock(root, f);
    f->windows = hed_window_devices(root, f->window, HED_DOCTOR_WINDOWS);
    for (int i = 0; i < f->windows && i < HED_DOCTOR_WINDOWS; i++)
        look_at_window_file(root, f->window[i].slot, &f->file[i]);
    look_at_lockdown(root, f->lockdown, sizeof f->lockdown);
}
