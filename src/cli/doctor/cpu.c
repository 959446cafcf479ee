/* The doctor checks the CPU GPU: its plug-in, the compiler, the device profiles, and the folder of
 * compiled kernels.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/folder.h"
#include "cli/doctor/doctor.h"
#include "cli/probe.h"
#include "locate/install.h"

#define NAME "CPU GPU"

/* Loads a plug-in in a child, and reports if that fails. `release` becomes the name of the library
 * that the plug-in uses and whose name begins with `wanted`; `without` is what happens if there is
 * no plug-in. */
static bool
check_plugin(struct hed_doctor *d, const struct hed_install *install, const char *name,
             const char *without, const char *wanted, char *release, size_t size)
{
    char path[PATH_MAX];
    char text[640];
    const char *hint;

    if (!hed_install_plugin(install, name, path, sizeof path)) {
        hed_doctor_say(d, HED_FINDING_WARN, NAME, "there is no %s, so %s", path, without);
        hed_doctor_hint(d, "Build heddle with LLVM (package llvm-19-dev).");
        return false;
    }

    struct hed_probe *p = hed_probe_create(path, NULL);

    if (!p)
        return false;
    hed_probe_needs(p, wanted);

    const bool good = hed_probe_ok(p);

    if (good) {
        snprintf(release, size, "%s", p->release);
    } else {
        hed_probe_explain(p, text, sizeof text, &hint);
        hed_doctor_say(d, HED_FINDING_WARN, NAME, "%s cannot be loaded: %s", path, text);
        hed_doctor_hint(d, "Install the libraries it needs, or install heddle again.");
    }
    hed_probe_free(p);
    return good;
}

/* The number of device profiles; -1: their folder was not found. */
static int
count_profiles(const struct hed_install *install, char *folder)
{
    static const char *const places[] = {"../../share", "../../../share"};
    DIR *dir = NULL;
    int count = 0;

    for (size_t i = 0; !dir && i < sizeof places / sizeof *places; i++) {
        char path[PATH_MAX + 64];

        snprintf(path, sizeof path, "%s/%s/heddle/devices", install->dir, places[i]);
        if (realpath(path, folder))
            dir = opendir(folder);
    }
    if (!dir)
        return -1;
    for (const struct dirent *e; (e = readdir(dir));) {
        const char *dot = strrchr(e->d_name, '.');

        /* base.json is what the others build on, not a device. */
        count += dot && strcmp(dot, ".json") == 0 && strcmp(e->d_name, "base.json") != 0;
    }
    closedir(dir);
    return count;
}

static void
check_profiles(struct hed_doctor *d, const struct hed_install *install)
{
    char folder[PATH_MAX];
    const int count = count_profiles(install, folder);

    if (count > 0) {
        hed_doctor_say(
            d, HED_FINDING_OK, "profiles",
            "%d device profiles in %s; for PyTorch and other frameworks choose the default "
            "(--gpu cpu) or cpu:a100, whose machine code runs on the CPU",
            count, folder);
        return;
    }
    hed_doctor_say(d, HED_FINDING_FAIL, "profiles", "the device profiles were not found");
    hed_doctor_hint(d, "Install heddle again.");
    d->has_cpu = false;
}

/* The folder of compiled kernels; false if none is known. */
static bool
cache_folder(const struct hed_config *c, char *out, size_t size)
{
    if (c->cache[0])
        return (size_t)snprintf(out, size, "%s", c->cache) < size;
    return hed_cache_folder("kernels", out, size);
}

static void
check_cache(struct hed_doctor *d)
{
    char folder[HED_CONFIG_TEXT_MAX + 32];

    if (d->config.cache_size == 0) {
        hed_doctor_say(d, HED_FINDING_OK, "cache", "turned off: kernels are compiled each time");
    } else if (!cache_folder(&d->config, folder, sizeof folder)) {
        hed_doctor_say(d, HED_FINDING_WARN, "cache", "there is no folder for compiled kernels");
        hed_doctor_hint(d, "Set `cache`, XDG_CACHE_HOME or HOME.");
    } else if (access(folder, F_OK) != 0 && errno == ENOENT) {
        hed_doctor_say(d, HED_FINDING_OK, "cache", "up to %llu MiB in %s, which will be created",
                       (unsigned long long)(d->config.cache_size >> 20), folder);
    } else if (access(folder, R_OK | W_OK | X_OK) != 0) {
        hed_doctor_say(d, HED_FINDING_WARN, "cache", "%s: %s", folder, strerror(errno));
        hed_doctor_hint(d, "Until it can be used, every program compiles its kernels again.");
    } else {
        hed_doctor_say(d, HED_FINDING_OK, "cache", "up to %llu MiB of compiled kernels in %s",
                       (unsigned long long)(d->config.cache_size >> 20), folder);
    }
}

/* The program that loads the compiler. */
static bool
check_compiler(struct hed_doctor *d, const struct hed_install *install)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/heddle-compiler", install->dir);
    if (access(path, X_OK) == 0)
        return true;
    hed_doctor_say(d, HED_FINDING_WARN, NAME,
                   "%s: %s; kernels run on the CPU without being compiled", path, strerror(errno));
    hed_doctor_hint(d, "Install heddle again.");
    return false;
}

void
hed_doctor_cpu(struct hed_doctor *d)
{
    struct hed_install install;
    char needs[96];
    char llvm[96] = "";

    /* A problem with the libraries has been reported already. */
    if (hed_install_find(&install, NULL) != 0)
        return;
    d->has_cpu = check_plugin(d, &install, "backend-cpu", "programs cannot run on the CPU",
                              "libheddle", needs, sizeof needs);
    if (!d->has_cpu)
        return;
    if (check_plugin(d, &install, "compiler-llvm", "kernels run on the CPU without being compiled",
                     "libLLVM", llvm, sizeof llvm) &&
        check_compiler(d, &install))
        hed_doctor_say(d, HED_FINDING_OK, NAME, "works (--gpu cpu); the compiler is %s",
                       llvm[0] ? llvm : HED_BUILD_LLVM);
    check_profiles(d, &install);
    check_cache(d);
}
