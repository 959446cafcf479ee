/* The search of locate/driver.h. */
#include "locate/driver.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "locate/elf.h"
#include "locate/ldcache.h"

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#else
#error "heddle knows x86-64 and AArch64"
#endif

static const char *const folders[] = {
    "/usr/lib/" MULTIARCH,
    "/usr/lib/" MULTIARCH "/nvidia/current",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/local/cuda/compat",
};

const char *
hed_locate_reject(const char *path)
{
    struct hed_elf elf;
    char real[PATH_MAX];
    const int err = hed_elf_read(path, &elf);

    if (err)
        return hed_err_text(err);
    if (!elf.is_elf)
        return "is not a library";
    if (!hed_elf_is_native(&elf))
        return "is for another kind of machine";
    if (hed_elf_is_heddle(&elf))
        return "is heddle itself";
    if (realpath(path, real) && strstr(real, "/stubs/"))
        return "is the CUDA toolkit's stub, for linking only";
    return NULL;
}

/* The search in the loader's cache cannot be stopped, so after the first yes the rest is ignored.
 */
struct visit {
    hed_locate_fn fn;
    void *arg;
    bool done;
};

static void
visit_cached(void *arg, const char *path)
{
    struct visit *v = arg;

    if (!v->done && access(path, F_OK) == 0)
        v->done = v->fn(v->arg, path, "loader's cache");
}

void
hed_locate_each(const char *soname, hed_locate_fn fn, void *arg)
{
    struct visit v = {fn, arg, false};

    (void)hed_ldcache_each(soname, visit_cached, &v);
    for (size_t i = 0; !v.done && i < sizeof folders / sizeof *folders; i++) {
        char path[256];

        (void)snprintf(path, sizeof path, "%s/%s", folders[i], soname);
        if (access(path, F_OK) == 0)
            v.done = fn(arg, path, "usual folder");
    }
}

struct search {
    char *path;
    size_t size;
    bool found;
    char refused[300]; /* a file that was not accepted, and the reason; cut to fit */
};

static bool
consider_candidate(void *arg, const char *path, const char *place)
{
    struct search *s = arg;
    const char *wrong = hed_locate_reject(path);
    const size_t n = strlen(s->refused);

    hed_debug(GPU, "%s (%s) %s", path, place, wrong ? wrong : "is taken");
    if (wrong)
        (void)snprintf(s->refused + n, sizeof s->refused - n, "; %s %s", path, wrong);
    else
        s->found = hed_str_copy(s->path, s->size, path);
    return s->found;
}

int
hed_locate_find(const char *soname, const char *given, char *path, size_t size, struct hed_why *why)
{
    struct search s = {path, size, false, ""};

    if (*given) {
        /* The loader would look a bare name up, and might find heddle. */
        const char *wrong = *given == '/' ? hed_locate_reject(given) : "is not a full path";

        if (!wrong && hed_str_copy(path, size, given))
            return 0;
        hed_why_set(why, "%s %s", given, wrong ? wrong : "is too long a path");
        return HED_EINVAL;
    }
    hed_locate_each(soname, consider_candidate, &s);
    if (s.found)
        return 0;
    hed_why_set(why,
                "NVIDIA's %s was not found in the loader's cache or the usual folders%s; install "
                "NVIDIA's driver, or name the library with the setting '%s'",
                soname, s.refused, strstr(soname, "-ml") ? "nvml" : "driver");
    return HED_ENOTFOUND;
}

bool
hed_locate_gpu(const char *given)
{
    char path[PATH_MAX];

    if (*given)
        return true;
    /* /dev/dxg: through Windows. */
    return (access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0) &&
           hed_locate_find("libcuda.so.1", "", path, sizeof path, NULL) == 0;
}
