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
 * an audit library, and nothing runs after a library has been found. There is no C library either
 * (bare.c).
 *
 * Invariants:
 *   1. The name that the loader gets is its own name, or the path of a file of heddle's.
 *   2. Names of libraries that are not called libcudart are never looked up.
 */
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "audit/search.h"
#include "locate/elf.h"

/* HED_AUDIT_MODE, "auto" or "own", is defined by the build: which of the two libraries this is. */

#define EXPORT __attribute__((visibility("default")))
#define OWN_FILE "/libheddle-cudart-" HED_AUDIT_MODE ".so"
#define LIBRARY "libcudart"
#define FOLDER "/cudart/"
#define SONAME_MAX 64              /* bytes, the 0 included */
#define MISSING_MAX 8              /* versions that heddle lacks, and says so */
#define LIBRARY_PATH_MAX 32 * 1024 /* bytes, the 0 included */

/* The loader's version from which on an audit library without hooks for calls costs nothing at run
 * time (glibc 2.35). Older ones send every lazily bound call through a slow path. */
#define LAV_CHEAP 2

/* Constant after begin_audit(). */
static bool replaces;         /* this is "own" */
static char folder[PATH_MAX]; /* of heddle's runtimes, with a slash; "": unknown */
static char
    library_path[LIBRARY_PATH_MAX]; /* as it was when the process began, like the loader's */
static bool library_path_cut;       /* it was too long */

/* Our answer to the loader, which copies it before it asks again. The loader's lock guards it, and
 * what follows. */
static char answer[PATH_MAX];

/* The name that is being looked for, if it is another name of a runtime that is loaded already, and
 * that runtime's soname; "": none. See answer_alias(). */
static char alias[NAME_MAX + 1];
static char alias_soname[SONAME_MAX];

/* Copies two texts, one after the other. False if they do not fit. */
static bool
join_texts(char *out, size_t size, const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);

    if (n + m >= size)
        return false;
    memcpy(out, a, n);
    memcpy(out + n, b, m);
    out[n + m] = '\0';
    return true;
}

/* Is it the soname of a runtime? out becomes its usual form: repaired wheels have
 * libcudart-e409450e.so.11.0 or libcudart.3eda8113.so.13 instead of libcudart.so.11.0. */
static bool
take_soname(const char *name, char *out)
{
    const char *rest = name + strlen(LIBRARY);

    if (strncmp(name, LIBRARY, strlen(LIBRARY)) != 0)
        return false;
    if (*rest == '-' || (*rest == '.' && strncmp(rest, ".so.", 4) != 0))
        rest += 1 + strspn(rest + 1, "0123456789abcdef");
    if (strncmp(rest, ".so.", 4) != 0 || rest[4] == '\0' ||
        rest[4 + strspn(rest + 4, "0123456789.")] != '\0')
        return false;
    return join_texts(out, SONAME_MAX, LIBRARY, rest);
}

/* The path of heddle's runtime of that soname, or NULL. */
static char *
own_runtime(const char *soname)
{
    return join_texts(answer, sizeof answer, folder, soname) && hed_audit_loadable(answer) ? answer
                                                                                           : NULL;
}

static void
say_text(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

/* The user has asked for something that heddle cannot do: say so, once in each process for each of
 * the first versions that are missing. The loader's lock guards what was said. */
static void
say_missing(const char *soname)
{
    static char said[MISSING_MAX][SONAME_MAX]; /* "": free */
    size_t i = 0;

    while (i < MISSING_MAX && *said[i] && strcmp(said[i], soname) != 0)
        i++;
    if (i == MISSING_MAX || *said[i])
        return;
    memcpy(said[i], soname, strlen(soname) + 1); /* it came from take_soname() */
    say_text("heddle: warning: --cudart own: heddle has no ");
    say_text(soname);
    say_text("; the program gets the one that it finds\n");
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* Which file the loader will find for a name without a slash. */
static enum hed_audit_found
find_runtime(struct hed_audit_search *s, const struct link_map *by, const char *name)
{
    s->by = by;
    s->name = name;
    s->library_path = library_path;
    return library_path_cut ? HED_AUDIT_UNKNOWN : hed_audit_search(s);
}

/* heddle's runtime where the loader would find none. A path names one file and no other. */
static char *
choose_missing(const char *name, const struct link_map *by)
{
    char soname[SONAME_MAX];
    struct hed_audit_search s;

    if (strchr(name, '/') || !take_soname(name, soname) || !own_runtime(soname))
        return NULL;
    return find_runtime(&s, by, name) == HED_AUDIT_NONE ? own_runtime(soname) : NULL;
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
choose_instead(const char *name, const struct link_map *by)
{
    char soname[SONAME_MAX];
    struct hed_audit_search s;
    struct hed_elf elf;

    if (strchr(name, '/')) {
        if (!hed_audit_expand(&s.found, by, name, strlen(name)))
            return NULL;
    } else if (take_soname(name, soname)) {
        return choose_own(soname);
    } else if (find_runtime(&s, by, name) != HED_AUDIT_FOUND) {
        return NULL;
    }
    if (hed_elf_read(s.found.text, &elf) != 0 || !hed_elf_is_native(&elf))
        return NULL;
    return take_soname(elf.soname, soname) ? choose_own(soname) : NULL;
}

/* ---- other names ----------------------------------------------------------------------------- */

/* Is the file loaded already, in the namespace of the library that asks? */
static bool
is_loaded(const struct link_map *by, const char *path)
{
    const struct link_map *m = by;

    while (m && m->l_prev)
        m = m->l_prev;
    while (m && strcmp(m->l_name, path) != 0)
        m = m->l_next;
    return m != NULL;
}

/* A file that is loaded already gets the name with which the loader opens it as one of its names,
 * and the loader must find it by the name that the program's library has for it. If we gave the
 * path of our runtime instead of that name, the program would end in a failed assertion. So the
 * name stays, and our path is given instead of the first path that the loader tries. */
static char *
answer_alias(const char *name, const struct link_map *by, char *chosen)
{
    const char *soname = chosen + strlen(folder);

    if (strchr(name, '/') || strcmp(name, soname) == 0 || strlen(name) >= sizeof alias ||
        !is_loaded(by, chosen))
        return chosen;
    memcpy(alias, name, strlen(name) + 1);
    memcpy(alias_soname, soname, strlen(soname) + 1); /* it came from take_soname() */
    return NULL;
}

/* ---- what the loader calls ------------------------------------------------------------------- */

/* If `list`, a value of LD_AUDIT, has this library in it: the folder of our runtimes. */
static void
take_folder(const char *list)
{
    const size_t length = strlen(OWN_FILE);

    for (const char *p = list; p;) {
        const size_t n = strcspn(p, ":");

        if (n > length && n + sizeof FOLDER < sizeof folder &&
            memcmp(p + n - length, OWN_FILE, length) == 0) {
            memcpy(folder, p, n - length);
            memcpy(folder + n - length, FOLDER, sizeof FOLDER);
            return;
        }
        p = p[n] ? p + n + 1 : NULL;
    }
}

/* The value of an entry of the environment if it has that name, or NULL. */
static const char *
entry_value(const char *entry, const char *name)
{
    const size_t n = strlen(name);

    return strncmp(entry, name, n) == 0 && entry[n] == '=' ? entry + n + 1 : NULL;
}

/* Before everything else. Programs may overwrite their environment later, to change their title. */
__attribute__((constructor)) static void
begin_audit(int argc, char **argv, char **env)
{
    (void)argc;
    (void)argv;
    replaces = strcmp(HED_AUDIT_MODE, "own") == 0;
    for (; *env; env++) {
        const char *audit = entry_value(*env, "LD_AUDIT");
        const char *path = entry_value(*env, "LD_LIBRARY_PATH");

        if (audit)
            take_folder(audit);
        if (path)
            library_path_cut = !join_texts(library_path, sizeof library_path, path, "");
    }
}

/* First of all. 0 makes the loader unload this library again. */
EXPORT unsigned
la_version(unsigned version)
{
    if (*folder == '\0' || (!replaces && version < LAV_CHEAP))
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
    const struct link_map *by = (const struct link_map *)*cookie; /* see la_objopen */
    const char *slash = strrchr(name, '/');
    const char *file = slash ? slash + 1 : name;
    char *chosen = NULL;

    if (flag != LA_SER_ORIG) {
        if (*alias && strcmp(file, alias) == 0)
            chosen = own_runtime(alias_soname);
        return chosen ? chosen : (char *)(uintptr_t)name;
    }
    *alias = '\0';
    if (strncmp(file, LIBRARY, strlen(LIBRARY)) == 0)
        chosen = replaces ? choose_instead(name, by) : choose_missing(name, by);
    if (chosen)
        chosen = answer_alias(name, by, chosen);
    return chosen ? chosen : (char *)(uintptr_t)name;
}
