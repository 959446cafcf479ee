/* Finds functions of other libraries. See real.h.
 *
 * dlsym(RTLD_NEXT) would look in libraries of the global scope only. PyTorch's are loaded by an
 * extension of Python, which has a scope of its own.
 */
#include "fastlibs/real.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"

static const char *const sonames[] = {
    [HED_REAL_CUBLAS] = "libcublas.so.",
    [HED_REAL_CUBLASLT] = "libcublasLt.so.",
    [HED_REAL_CUDNN] = "libcudnn.so.",
};

/* ---- the library of a caller ----------------------------------------------------------------- */

#define LOADED_MOST 1024 /* libraries of a process that are looked at */

struct library {
    char *path;
    const ElfW(Dyn) * dynamic;
    bool seen;
};

struct libraries {
    struct library all[LOADED_MOST];
    unsigned n;
};

static int
add_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct libraries *l = arg;
    struct library *to = &l->all[l->n];

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum && l->n < LOADED_MOST; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        to->path = strdup(info->dlpi_name ? info->dlpi_name : "");
        to->dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        l->n += to->path != NULL;
        break;
    }
    return l->n == LOADED_MOST;
}

static void
free_libraries(struct libraries *l)
{
    for (unsigned i = 0; l && i < l->n; i++)
        free(l->all[i].path);
    free(l);
}

static struct libraries *
list_libraries(void)
{
    struct libraries *l = calloc(1, sizeof *l);

    if (l)
        (void)dl_iterate_phdr(add_library, l);
    return l;
}

/* Finds the library that another one names so. */
static struct library *
find_library(struct libraries *l, const char *name)
{
    for (unsigned i = 0; i < l->n; i++)
        if (strcmp(l->all[i].path, name) == 0 ||
            strcmp(hed_str_base_name(l->all[i].path), name) == 0)
            return &l->all[i];
    return NULL;
}

/* The nth library that another one needs, by its name; NULL: there are fewer. */
static const char *
needed_name(const struct library *of, unsigned n)
{
    const char *strings = NULL;

    for (const ElfW(Dyn) *d = of->dynamic; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_STRTAB)
            strings = (const char *)d->d_un.d_ptr; /* the loader has made it an address */
    for (const ElfW(Dyn) *d = of->dynamic; strings && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_NEEDED && n-- == 0)
            return strings + d->d_un.d_val;
    return NULL;
}

/* As the loader finds a name: in what a library needs, in what that needs, and so on. Only what the
 * caller needs is looked at, since other libraries may be unloaded meanwhile. */
static const char *
find_needed(struct libraries *l, struct library *from, const char *prefix)
{
    struct library *queue[LOADED_MOST];
    unsigned head = 0, tail = 0;

    queue[tail++] = from;
    from->seen = true;
    while (head < tail) {
        const struct library *of = queue[head++];
        const char *name;

        for (unsigned i = 0; (name = needed_name(of, i)); i++) {
            struct library *next;

            if (strncmp(name, prefix, strlen(prefix)) == 0)
                return name;
            next = find_library(l, name);
            if (next && !next->seen) {
                next->seen = true;
                queue[tail++] = next;
            }
        }
    }
    return NULL;
}

/* The path of a library that the process has loaded; says so if several may be meant. */
static const char *
find_any(const struct libraries *l, const char *prefix)
{
    const char *found = NULL;

    for (unsigned i = 0; i < l->n; i++) {
        const char *path = l->all[i].path;

        if (strncmp(hed_str_base_name(path), prefix, strlen(prefix)) != 0)
            continue;
        if (found) {
            hed_warn(FAST_LIBS, "a caller names no library, and takes %s, not %s", found, path);
            break;
        }
        found = path;
    }
    return found;
}

static void *
open_library(const char *prefix, const void *caller)
{
    struct libraries *l = list_libraries();
    struct link_map *map = NULL;
    struct library *from = NULL;
    const char *name = NULL;
    void *library;
    Dl_info info;

    if (l && dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) && map)
        from = find_library(l, map->l_name);
    if (from)
        name = find_needed(l, from, prefix);
    /* It may use the library without naming it, as plug-ins of a program do. */
    if (l && !name)
        name = find_any(l, prefix);
    /* Functions that were found stay where they are. */
    library = name ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) : NULL;
    free_libraries(l);
    return library;
}

static int
is_one_of_ours(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    for (unsigned i = 0; info->dlpi_name && i < sizeof sonames / sizeof sonames[0]; i++)
        if (strncmp(hed_str_base_name(info->dlpi_name), sonames[i], strlen(sonames[i])) == 0)
            return 1;
    return 0;
}

bool
hed_real_is_loaded(void)
{
    return dl_iterate_phdr(is_one_of_ours, NULL) != 0;
}

/* ---- what was found before ------------------------------------------------------------------- */

/* By name and caller. Entries are never removed; a full table costs time and nothing else.
 *
 * Invariant: an entry's function is set before its caller, by the thread that has claimed it. */
#define ENTRIES 512
#define CLAIMED ((uintptr_t)1)

static struct {
    _Atomic uintptr_t caller; /* 0: free */
    const char *name;
    void *f;
} entries[ENTRIES];

static unsigned
first_entry(const char *name, uintptr_t caller)
{
    return (unsigned)((caller ^ (uintptr_t)name * 31) * 0x9e3779b97f4a7c15u >> 55) % ENTRIES;
}

static void *
find_known(const char *name, uintptr_t caller)
{
    for (unsigned i = first_entry(name, caller), n = 0; n < 8; i = (i + 1) % ENTRIES, n++) {
        /* Acquire: see keep_known(). */
        const uintptr_t is = atomic_load_explicit(&entries[i].caller, memory_order_acquire);

        if (is == 0)
            return NULL;
        if (is == caller && entries[i].name == name)
            return entries[i].f;
    }
    return NULL;
}

static void
keep_known(const char *name, uintptr_t caller, void *f)
{
    for (unsigned i = first_entry(name, caller), n = 0; n < 8; i = (i + 1) % ENTRIES, n++) {
        uintptr_t is = 0;

        if (!atomic_compare_exchange_strong(&entries[i].caller, &is, CLAIMED))
            continue;
        entries[i].name = name;
        entries[i].f = f;
        /* Release: who sees the caller sees the rest, in find_known(). */
        atomic_store_explicit(&entries[i].caller, caller, memory_order_release);
        return;
    }
}

static _Atomic bool has_said[sizeof sonames / sizeof sonames[0]];

void *
hed_real_find(enum hed_real_library library, const char *name, const void *caller)
{
    void *f = find_known(name, (uintptr_t)caller);
    void *from;

    if (f)
        return f;
    from = open_library(sonames[library], caller);
    f = from ? dlsym(from, name) : NULL;
    if (f)
        keep_known(name, (uintptr_t)caller, f);
    else if (!atomic_exchange(&has_said[library], true))
        hed_warn(FAST_LIBS, "%s was called, but no %s* is loaded that has it", name,
                 sonames[library]);
    return f;
}

/* ---- the driver ------------------------------------------------------------------------------ */

static struct hed_real_driver driver;
static bool has_driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

static void
bind_driver(void)
{
    /* `heddle run` has resolved "auto". */
    const char *gpu = secure_getenv("HEDDLE_GPU");
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (!gpu || strncmp(gpu, "cpu", 3) != 0 || !library || !dlsym(library, "heddle_version"))
        return;
    driver.is_capturing =
        (CUresult(*)(CUstream, CUstreamCaptureStatus *))dlsym(library, "cuStreamIsCapturing");
    driver.address_range = (CUresult(*)(CUdeviceptr *, size_t *, CUdeviceptr))dlsym(
        library, "cuMemGetAddressRange_v2");
    driver.pointer_attribute = (CUresult(*)(void *, CUpointer_attribute, CUdeviceptr))dlsym(
        library, "cuPointerGetAttribute");
    driver.host_function =
        (CUresult(*)(CUstream, CUhostFn, void *))dlsym(library, "cuLaunchHostFunc");
    has_driver = driver.is_capturing && driver.address_range && driver.pointer_attribute &&
                 driver.host_function;
}

const struct hed_real_driver *
hed_real_driver(void)
{
    (void)pthread_once(&driver_once, bind_driver);
    return has_driver ? &driver : NULL;
}
