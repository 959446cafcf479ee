/* What a worker needs of the file system. See paths.h. */
#include "remote/server/sandbox/paths.h"

#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

struct visitor {
    hed_path_visit *visit;
    void *arg;
};

static void
visit_all(const struct visitor *v, const char *const *paths, enum hed_path_use use)
{
    for (; *paths; paths++)
        v->visit(v->arg, *paths, use);
}

static void
visit_found(const struct visitor *v, const char *pattern, enum hed_path_use use)
{
    glob_t found;

    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        v->visit(v->arg, found.gl_pathv[i], use);
    globfree(&found);
}

/* Device profiles lie beside the libraries, as core/profiles.c looks for them. */
static void
visit_profiles(const struct visitor *v, const char *libraries)
{
    static const char *const places[] = {"../share", "../../share", "../../../share"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const int n = snprintf(path, sizeof path, "%s/%s/heddle/devices", libraries, places[i]);

        if (n > 0 && (size_t)n < sizeof path)
            v->visit(v->arg, path, HED_PATH_READ);
    }
}

/* ---- NVIDIA's driver ------------------------------------------------------------------------- */

/* libcuda loads more of the driver's libraries when it needs them, from its own folder. */
static int
visit_driver_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    const struct visitor *v = arg;
    const char *slash = strrchr(info->dlpi_name, '/');
    char folder[PATH_MAX];

    if (!slash || slash == info->dlpi_name ||
        (strncmp(slash, "/libcuda.so", 11) != 0 && strncmp(slash, "/libnvidia-", 11) != 0))
        return 0;

    const int n =
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - info->dlpi_name), info->dlpi_name);

    if (n > 0 && (size_t)n < sizeof folder)
        v->visit(v->arg, folder, HED_PATH_READ);
    return 0;
}

/* The folder of each GPU among the machine's devices, which says near which processors it is. */
static void
visit_gpu_folders(const struct visitor *v)
{
    char path[PATH_MAX];
    glob_t found;

    if (glob("/proc/driver/nvidia/gpus/*", 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%s",
                       strrchr(found.gl_pathv[i], '/') + 1);
        v->visit(v->arg, path, HED_PATH_READ);
    }
    globfree(&found);
}

/* As traced with driver 580 (docs/security.md). Not among them, though they are NVIDIA's:
 * /dev/nvidia-uvm-tools, which looks into other processes, and /dev/nvidia-modeset. */
static void
visit_driver(const struct visitor *v)
{
    static const char *const readable[] = {
        "/proc/driver/nvidia", "/proc/devices", "/dev/nvidia-caps", "/sys/devices/system/memory",
        /* that these are there tells it that it need not load kernel modules */
        "/sys/module/nvidia/initstate", "/sys/module/nvidia_uvm/initstate", NULL};

    visit_all(v, readable, HED_PATH_READ);
    visit_gpu_folders(v);
    visit_found(v, "/dev/nvidia[0-9]*", HED_PATH_DEVICE);
    v->visit(v->arg, "/dev/nvidiactl", HED_PATH_DEVICE);
    v->visit(v->arg, "/dev/nvidia-uvm", HED_PATH_DEVICE);
    /* It writes the names of its threads, and does not start where it cannot. */
    v->visit(v->arg, "/proc/self/task", HED_PATH_WRITE);
    (void)dl_iterate_phdr(visit_driver_library, (void *)v);
}

void
hed_paths_each(const struct hed_sandbox *s, hed_path_visit *visit, void *arg)
{
    static const char *const readable[] = {
        /* the loader and libraries */
        "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache",
        "/etc/ld.so.preload",
        /* how many processors there are, of which kind; how much memory; which clock */
        "/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/devices/system/clocksource",
        "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm", "/proc/version",
        /* the process itself: the link leads to its own folder */
        "/proc/self", "/dev/urandom", "/dev/zero", NULL};
    const struct visitor v = {visit, arg};

    visit_all(&v, readable, HED_PATH_READ);
    v.visit(arg, "/dev/null", HED_PATH_WRITE);
    v.visit(arg, s->libraries, HED_PATH_READ);
    visit_profiles(&v, s->libraries);
    if (s->driver)
        visit_driver(&v);
}
