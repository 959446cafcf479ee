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

static const char *const sonames[] = {
    [HED_REAL_CUBLAS] = "libcublas.so.",
    [HED_REAL_CUBLASLT] = "libcublasLt.so.",
    [HED_REAL_CUDNN] = "libcudnn.so.",
};

/* ---- the library of a caller ----------------------------------------------------------------- */

/* The soname that starts with `prefix` among those that a library asks for; NULL: none. */
static const char *
needed_name(const struct link_map *map, const char *prefix)
{
    const char *strings = NULL;

    for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_STRTAB)
            strings = (const char *)d->d_un.d_ptr; /* the loader has made it an address */
    for (const ElfW(Dyn) *d = map->l_ld; strings && d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_NEEDED && strncmp(strings + d->d_un.d_val, prefix, strlen(prefix)) == 0)
            return strings + d->d_un.d_val;
    return NULL;
}

struct loaded {
    const char *prefix;
    char path[4096];
};

static int
find_loaded(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct loaded *l = arg;
    const char *base = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

    (void)size;
    if (!base || strncmp(base + 1, l->prefix, strlen(l->prefix)) != 0 ||
        strlen(info->dlpi_name) >= sizeof l->path)
        return 0;
    memcpy(l->path, info->dlpi_name, strlen(info->dlpi_name) + 1);
    return 1;
}

static void *
open_library(const char *prefix, const void *caller)
{
    /* Functions that were found stay where they are. */
    const int flags = RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE;
    struct link_map *map = NULL;
    struct loaded l = {prefix, ""};
    const char *name;
    Dl_info info;

    if (dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) && map) {
        name = needed_name(map, prefix);
        if (name)
            return dlopen(name, flags);
    }
    /* It uses the library without naming it, as plug-ins of a program do. */
    return dl_iterate_phdr(find_loaded, &l) ? dlopen(l.path, flags) : NULL;
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
    else
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
    driver.host_function =
        (CUresult(*)(CUstream, CUhostFn, void *))dlsym(library, "cuLaunchHostFunc");
    has_driver = driver.is_capturing && driver.address_range && driver.host_function;
}

const struct hed_real_driver *
hed_real_driver(void)
{
    (void)pthread_once(&driver_once, bind_driver);
    return has_driver ? &driver : NULL;
}
