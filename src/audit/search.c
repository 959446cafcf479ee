/* Searching for a library as the dynamic loader does. See search.h.
 *
 * The loader would say itself where it searches, but only to those who have the C library (dlinfo,
 * RTLD_DI_SERINFO). Two things differ from what it does, and do not matter for a CUDA runtime. It
 * also tries folders for certain processors below each folder. And of the RPATHs it takes those of
 * the libraries by which the asking one came to be loaded; it tells nobody which these are, so here
 * those of all loaded libraries count.
 */
#include "audit/search.h"

#include <link.h>
#include <unistd.h>

#include "locate/elf.h"
#include "locate/ldcache.h"

/* Where libraries are found on Debian, Red Hat and their relatives. */
#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#else
#define MULTIARCH "aarch64-linux-gnu"
#endif

static const char default_folders[] =
    "/lib/" MULTIARCH ":/usr/lib/" MULTIARCH ":/lib64:/usr/lib64:/lib:/usr/lib";

/* The string of DT_RPATH or DT_RUNPATH, or NULL. */
static const char *
dynamic_string(const struct link_map *map, ElfW(Sxword) tag)
{
    ElfW(Addr) strings = 0;
    const ElfW(Dyn) *found = NULL;

    for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB)
            strings = d->d_un.d_ptr;
        else if (d->d_tag == tag)
            found = d;
    }
    if (!found || !strings)
        return NULL;
    /* The loader has made an address of it, unless the section is read-only. */
    if (strings < map->l_addr)
        strings += map->l_addr;
    return (const char *)strings + found->d_un.d_val;
}

/* The folder of a library, or of the program, whose name the loader leaves empty. */
static void
put_origin(struct hed_audit_path *out, const struct link_map *by)
{
    char program[PATH_MAX];
    const char *name = by->l_name;

    if (*name == '\0') {
        const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);

        program[n > 0 ? n : 0] = '\0';
        name = program;
    }

    const char *slash = strrchr(name, '/');

    if (slash)
        hed_audit_path_add(out, name, (size_t)(slash - name));
    else
        hed_audit_path_put(out, ".");
}

bool
hed_audit_expand(struct hed_audit_path *out, const struct link_map *by, const char *name, size_t n)
{
    static const char *const origins[] = {"$ORIGIN", "${ORIGIN}"};

    hed_audit_path_clear(out);
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++) {
        const size_t length = strlen(origins[i]);

        if (n >= length && strncmp(name, origins[i], length) == 0 &&
            (n == length || name[length] == '/')) {
            put_origin(out, by);
            name += length;
            n -= length;
            break;
        }
    }
    hed_audit_path_add(out, name, n);
    return !out->cut && !memchr(name, '$', n);
}

bool
hed_audit_loadable(const char *path)
{
    struct hed_elf elf;

    return hed_elf_read(path, &elf) == 0 && hed_elf_is_native(&elf);
}

/* Tries the folders of a list, whose $ORIGIN is that of `by`. */
static enum hed_audit_found
try_list(struct hed_audit_search *s, const struct link_map *by, const char *list)
{
    for (const char *p = list; p && *list;) {
        const size_t n = strcspn(p, ":;");

        if (!hed_audit_expand(&s->found, by, n ? p : ".", n ? n : 1))
            return HED_AUDIT_UNKNOWN;
        hed_audit_path_put(&s->found, "/");
        hed_audit_path_put(&s->found, s->name);
        if (!s->found.cut && hed_audit_loadable(s->found.text))
            return HED_AUDIT_FOUND;
        p = p[n] ? p + n + 1 : NULL;
    }
    return HED_AUDIT_NONE;
}

/* The program. */
static const struct link_map *
first_map(const struct link_map *map)
{
    while (map->l_prev)
        map = map->l_prev;
    return map;
}

static enum hed_audit_found
try_rpath(struct hed_audit_search *s, const struct link_map *map)
{
    const char *list = dynamic_string(map, DT_RUNPATH) ? NULL : dynamic_string(map, DT_RPATH);

    return list ? try_list(s, map, list) : HED_AUDIT_NONE;
}

/* A library with a RUNPATH does not inherit RPATHs. */
static enum hed_audit_found
try_rpaths(struct hed_audit_search *s)
{
    const struct link_map *map = s->by;
    enum hed_audit_found r = try_rpath(s, map);

    if (dynamic_string(map, DT_RUNPATH))
        return HED_AUDIT_NONE;
    for (map = first_map(map); map && r == HED_AUDIT_NONE; map = map->l_next)
        r = try_rpath(s, map);
    return r;
}

struct cached {
    struct hed_audit_path *out;
    bool found;
};

static void
try_cached(void *arg, const char *path)
{
    struct cached *c = arg;

    if (c->found || !hed_audit_loadable(path))
        return;
    hed_audit_path_clear(c->out);
    hed_audit_path_put(c->out, path);
    c->found = !c->out->cut;
}

enum hed_audit_found
hed_audit_search(struct hed_audit_search *s)
{
    const char *runpath = dynamic_string(s->by, DT_RUNPATH);
    struct cached cached = {.out = &s->found};
    enum hed_audit_found r = try_rpaths(s);

    if (r == HED_AUDIT_NONE && s->library_path)
        r = try_list(s, first_map(s->by), s->library_path);
    if (r == HED_AUDIT_NONE && runpath)
        r = try_list(s, s->by, runpath);
    if (r != HED_AUDIT_NONE)
        return r;
    (void)hed_ldcache_each(s->name, try_cached, &cached);
    return cached.found ? HED_AUDIT_FOUND : try_list(s, s->by, default_folders);
}
