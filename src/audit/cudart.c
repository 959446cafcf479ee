/* libheddle-cudart-auto.so and libheddle-cudart-own.so: which CUDA runtime a program gets.
 *
 * The dynamic loader asks an audit library (LD_AUDIT, rtld-audit(7)) about each library before it
 * looks for it. Other libraries' names are left alone. If a program asks for a CUDA runtime,
 * libcudart.so.N, then
 *
 *     auto   the program gets the one that the loader finds, and heddle's if it finds none
 *     own    the program gets heddle's, if heddle has one of that soname
 *
 * whether it was linked with the runtime or opens it later. `heddle run` chooses between the two
 * libraries, which are built from this file, so there is no setting to read here. heddle's runtimes
 * are in the folder cudart beside the library.
 *
 * There are no hooks for symbols and calls here, so the loader binds functions as it does without
 * an audit library, and nothing runs after a library has been found.
 *
 * Invariants:
 *   1. The name that the loader gets is its own name, or the path of a file of heddle's.
 *   2. Names of libraries that are not called libcudart are never looked up.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "locate/elf.h"
#include "locate/ldcache.h"

/* HED_AUDIT_OWN, 0 or 1, is defined by the build: which of the two libraries this is. */

#define EXPORT __attribute__((visibility("default")))
#define LIBRARY "libcudart"
#define FOLDER "/cudart/"
#define SONAME_MAX 64 /* bytes, the 0 included */

/* The loader's version from which on an audit library without hooks for calls costs nothing at run
 * time (glibc 2.35). Older ones send every lazily bound call through a slow path. */
#define LAV_CHEAP 2

static char folder[PATH_MAX]; /* of heddle's runtimes, with a slash; constant after la_version */

/* Our answer to the loader, which copies it before it asks again. The loader's lock guards it. */
static char answer[PATH_MAX + SONAME_MAX];

/* Is it the soname of a runtime? out becomes its usual form: wheels that were repaired by
 * auditwheel have libcudart-e409450e.so.11.0 instead of libcudart.so.11.0. */
static bool
take_soname(const char *name, char *out)
{
    const char *rest = name + strlen(LIBRARY);

    if (strncmp(name, LIBRARY, strlen(LIBRARY)) != 0)
        return false;
    if (*rest == '-')
        rest += 1 + strspn(rest + 1, "0123456789abcdef");
    if (strncmp(rest, ".so.", 4) != 0 || rest[4] == '\0' ||
        rest[4 + strspn(rest + 4, "0123456789.")] != '\0')
        return false;
    return snprintf(out, SONAME_MAX, "%s%s", LIBRARY, rest) < SONAME_MAX;
}

/* The path of heddle's runtime of that soname, or NULL. */
static char *
own_runtime(const char *soname)
{
    snprintf(answer, sizeof answer, "%s%s", folder, soname);
    return access(answer, R_OK) == 0 ? answer : NULL;
}

/* The user has asked for something that heddle cannot do: say so, once in each process. */
static void
say_missing(const char *soname)
{
    static bool said;

    if (!said)
        dprintf(STDERR_FILENO,
                "heddle: warning: --cudart own: heddle has no %s; the program gets the one that it "
                "finds\n",
                soname);
    said = true;
}

/* ---- what the loader would find -------------------------------------------------------------- */

struct search {
    char path[PATH_MAX]; /* of the file, once it is found */
    bool found;
};

/* The loader passes over files for other machines. */
static void
try_runtime(void *arg, const char *path)
{
    struct search *s = arg;
    struct hed_elf elf;

    if (s->found || hed_elf_read(path, &elf) != 0 || !elf.is_elf || !hed_elf_is_native(&elf))
        return;
    s->found = snprintf(s->path, sizeof s->path, "%s", path) < (int)sizeof s->path;
}

/* The folder of a library, or of the program, whose name the loader does not know: what $ORIGIN
 * means there. (dlinfo's RTLD_DI_ORIGIN crashes if the loader has not needed it yet.) */
static void
find_origin(const struct link_map *by, char *out)
{
    ssize_t n = snprintf(out, PATH_MAX, "%s", by->l_name);

    if (n == 0)
        n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    out[n > 0 && n < PATH_MAX ? n : 0] = '\0';

    char *slash = strrchr(out, '/');

    if (slash)
        *slash = '\0';
}

/* Tries a name with a slash, which is a file. */
static void
try_file(struct search *s, const struct link_map *by, const char *name)
{
    static const char *const origins[] = {"$ORIGIN/", "${ORIGIN}/"};
    char origin[PATH_MAX];
    char path[2 * PATH_MAX];

    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++) {
        const size_t n = strlen(origins[i]);

        if (strncmp(name, origins[i], n) != 0)
            continue;
        find_origin(by, origin);
        snprintf(path, sizeof path, "%s/%s", origin, name + n);
        name = path;
        break;
    }
    try_runtime(s, name);
}

/* Tries the folders of RPATH, LD_LIBRARY_PATH and RUNPATH, and the default ones, as the loader
 * itself lists them for libraries that `by` asks for. False if it does not. */
static bool
try_folders(struct search *s, struct link_map *by, const char *name)
{
    Dl_serinfo size;
    Dl_serinfo *list;
    bool listed = false;

    if (dlinfo(by, RTLD_DI_SERINFOSIZE, &size) != 0)
        return false;
    list = calloc(1, size.dls_size);
    if (!list)
        return false;
    list->dls_size = size.dls_size;
    list->dls_cnt = size.dls_cnt;
    if (dlinfo(by, RTLD_DI_SERINFO, list) == 0) {
        listed = true;
        for (unsigned i = 0; i < list->dls_cnt; i++) {
            const char *dir = list->dls_serpath[i].dls_name;
            char path[PATH_MAX];

            /* An empty entry is the current folder. */
            if (snprintf(path, sizeof path, "%s/%s", *dir ? dir : ".", name) < (int)sizeof path)
                try_runtime(s, path);
        }
    }
    free(list);
    return listed;
}

/* Which file the loader will find for a name without a slash. False if we cannot tell. */
static bool
find_runtime(struct search *s, struct link_map *by, const char *name)
{
    if (!try_folders(s, by, name))
        return false;
    if (!s->found)
        (void)hed_ldcache_each(name, try_runtime, s);
    return true;
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* heddle's runtime where the loader would find none. A path names one file and no other. */
static char *
choose_missing(const char *name, struct link_map *by)
{
    char soname[SONAME_MAX];
    struct search s = {.found = false};

    if (strchr(name, '/') || !take_soname(name, soname) || !own_runtime(soname))
        return NULL;
    return find_runtime(&s, by, name) && !s.found ? own_runtime(soname) : NULL;
}

/* heddle's runtime in place of the one with this soname. */
static char *
choose_own(const char *soname)
{
    char *path = own_runtime(soname);

    if (!path)
        say_missing(soname);
    return path;
}

/* A soname says which runtime is meant. A path, or libcudart.so, does not: the file's soname does,
 * and a file that does not exist is not replaced. */
static char *
choose_instead(const char *name, struct link_map *by)
{
    char soname[SONAME_MAX];
    struct hed_elf elf;
    struct search s = {.found = false};

    if (strchr(name, '/'))
        try_file(&s, by, name);
    else if (take_soname(name, soname))
        return choose_own(soname);
    else if (!find_runtime(&s, by, name))
        return NULL;
    if (!s.found || hed_elf_read(s.path, &elf) != 0)
        return NULL;
    return take_soname(elf.soname, soname) ? choose_own(soname) : NULL;
}

/* ---- what the loader calls ------------------------------------------------------------------- */

/* Valgrind does not know that a process can have two C libraries, and would let the program abort
 * at its end. */
static bool
is_under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload && strstr(preload, "/vgpreload_");
}

/* First of all. 0 makes the loader unload this library again. */
EXPORT unsigned
la_version(unsigned version)
{
    Dl_info info;

    if (!HED_AUDIT_OWN && version < LAV_CHEAP)
        return 0;
    if (is_under_valgrind()) {
        if (HED_AUDIT_OWN)
            dprintf(STDERR_FILENO, "heddle: warning: --cudart own has no effect under Valgrind\n");
        return 0;
    }
    /* A function's address as an object's: dladdr wants it so. */
    if (!dladdr((void *)(uintptr_t)la_version, &info) || !strchr(info.dli_fname, '/'))
        return 0;

    const int n = (int)(strrchr(info.dli_fname, '/') - info.dli_fname);

    if (snprintf(folder, sizeof folder, "%.*s%s", n, info.dli_fname, FOLDER) >= (int)sizeof folder)
        return 0;
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* A library was loaded. Its cookie names it when it asks for others. */
EXPORT unsigned
la_objopen(struct link_map *map, Lmid_t list, uintptr_t *cookie)
{
    (void)list;
    *cookie = (uintptr_t)map;
    return 0; /* no hooks for its symbols */
}

/* A library is looked for. The loader asks first with the name as the program wrote it, and then
 * with each path that it tries. */
EXPORT char *
la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
    struct link_map *by = (struct link_map *)*cookie; /* see la_objopen */
    const char *slash = strrchr(name, '/');
    char *chosen = NULL;

    if (flag == LA_SER_ORIG && strncmp(slash ? slash + 1 : name, LIBRARY, strlen(LIBRARY)) == 0)
        chosen = HED_AUDIT_OWN ? choose_instead(name, by) : choose_missing(name, by);
    return chosen ? chosen : (char *)(uintptr_t)name;
}
