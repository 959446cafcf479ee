/* The doctor looks at this machine as a guest: who made it, its vsock device, its windows. */
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/doctor/guest.h"

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

    (void)hed_locate_read(root, "/sys/kernel/security/lockdown", text, sizeof text);
    mode = strchr(text, '[');
    if (!mode || strncmp(mode, "[none]", 6) == 0)
        return;
    (void)snprintf(out, size, "%.*s", (int)strcspn(mode + 1, "]"), mode + 1);
}

void
hed_guest_look(const char *root, struct hed_guest_facts *f)
{
    memset(f, 0, sizeof *f);
    f->kind = hed_locate_guest(root, f->maker, sizeof f->maker);
    f->has_vsock = hed_locate_vsock(root, &f->vsock_driven);
    f->windows = hed_window_devices(root, f->window, HED_DOCTOR_WINDOWS);
    for (int i = 0; i < f->windows && i < HED_DOCTOR_WINDOWS; i++)
        look_at_window_file(root, f->window[i].slot, &f->file[i]);
    look_at_lockdown(root, f->lockdown, sizeof f->lockdown);
}
