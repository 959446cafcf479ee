/* Finding heddle's own libraries. See install.h. */
#include "locate/install.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "locate/driver.h"
#include "locate/elf.h"
#include "locate/guest.h"

/* Relative to the command's folder. The first is right in a build tree and in most installations.
 * HED_LOCATE_LIBDIR is where this build installs its libraries, an absolute path if that is not
 * below the prefix.
 */
static const char *const folders[] = {"../lib/heddle", HED_LOCATE_LIBDIR};

static const char *const names[HED_INSTALL_COUNT] = {
    [HED_INSTALL_CORE] = "libheddle.so.0",
    [HED_INSTALL_CUDA] = "libcuda.so.1",
    [HED_INSTALL_NVML] = "libnvidia-ml.so.1",
};

/* The folder of the running command. */
static int
own_folder(char *dir, size_t size)
{
    const ssize_t n = readlink("/proc/self/exe", dir, size - 1);

    if (n < 0)
        return hed_err_from_errno(errno);
    dir[n] = '\0';

    char *slash = strrchr(dir, '/');

    if (!slash)
        return HED_EINVAL;
    *slash = '\0';
    return 0;
}

static int
join_path(char *out, const char *dir, const char *name)
{
    const int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);

    return n < 0 || n >= PATH_MAX ? HED_ERANGE : 0;
}

/* The first folder that has the core library. */
static int
find_folder(const char *own, char *out)
{
    char dir[PATH_MAX];
    char file[PATH_MAX];

    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const bool absolute = folders[i][0] == '/';

        if (join_path(dir, absolute ? "" : own, folders[i] + absolute) == 0 && realpath(dir, out) &&
            join_path(file, out, names[HED_INSTALL_CORE]) == 0 && access(file, F_OK) == 0)
            return 0;
    }
    return HED_ENOTFOUND;
}

static int
check_installed_library(const char *path, struct hed_why *why)
{
    struct hed_elf elf;
    const int err = hed_elf_read(path, &elf);

    if (err) {
        hed_why_set(why, "cannot read %s: %s", path, hed_err_text(err));
        return err;
    }
    if (!elf.is_elf) {
        hed_why_set(why, "%s is not a library: install heddle again", path);
        return HED_EFORMAT;
    }
    if (!hed_elf_is_native(&elf)) {
        hed_why_set(why, "%s was built for %s, not for this machine: install heddle again", path,
                    hed_elf_machine_name(elf.machine));
        return HED_EFORMAT;
    }
    return 0;
}

int
hed_install_find(struct hed_install *out, struct hed_why *why)
{
    char own[PATH_MAX];
    int err = own_folder(own, sizeof own);

    if (err) {
        hed_why_set(why, "cannot find out where heddle is installed: /proc/self/exe: %s",
                    hed_err_text(err));
        return err;
    }
    err = find_folder(own, out->dir);
    if (err) {
        hed_why_set(why, "there is no libheddle.so.0 in %s/%s: install heddle again", own,
                    folders[0]);
        return err;
    }
    for (size_t i = 0; i < HED_INSTALL_COUNT && !err; i++) {
        err = join_path(out->lib[i], out->dir, names[i]);
        if (!err)
            err = check_installed_library(out->lib[i], why);
    }
    return err;
}

bool
hed_install_plugin(const struct hed_install *p, const char *name, char *out, size_t size)
{
    const int n = snprintf(out, size, "%s/%s.so", p->dir, name);

    return n > 0 && (size_t)n < size && access(out, F_OK) == 0;
}

const char *
hed_install_gpu(const struct hed_install *p, const char *gpu, const char *driver)
{
    char path[PATH_MAX];

    if (strcmp(gpu, "auto") != 0)
        return gpu;
    if (hed_locate_gpu(driver))
        return "gpu";
    if (hed_locate_host(""))
        return "vm:";
    return hed_install_plugin(p, "backend-cpu", path, sizeof path) ? "cpu" : "gpu";
}
