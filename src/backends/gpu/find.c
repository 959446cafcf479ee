/* The search of backends/gpu/find.h.
 *
 * A library is judged by its file before it is loaded: what a wrong one would run on loading is not
 * ours to find out.
 */
#include "backends/gpu/find.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#define MULTIARCH "aarch64-linux-gnu"
#else
#error "heddle knows x86-64 and AArch64"
#endif

#define CACHE_MAX (64u << 20) /* bytes of the loader's cache */

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

/* Is the file the library this code is in, or one that lies beside it? Our fronts share a folder.
 * */
static bool
is_ours(const char *path)
{
    Dl_info self;
    char ours[4096];
    char theirs[4096];

    if (!dladdr((const void *)folders, &self) || !realpath(self.dli_fname, ours) ||
        !realpath(path, theirs))
        return false;

    const char *slash = strrchr(ours, '/');
    const size_t folder = slash ? (size_t)(slash - ours) : 0;

    return folder && strncmp(ours, theirs, folder) == 0 && theirs[folder] == '/' &&
           !strchr(theirs + folder + 1, '/');
}

const char *
hed_gpu_reject(const char *path)
{
    Elf64_Ehdr head;
    char real[4096];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return strerror(errno);

    const ssize_t n = read(fd, &head, sizeof head);

    close(fd);
    if (n < (ssize_t)sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return "not a shared library";
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != MACHINE)
        return "built for another architecture";
    if (head.e_type != ET_DYN)
        return "not a shared library";
    if (is_ours(path))
        return "this is heddle itself";
    if (realpath(path, real) && strstr(real, "/stubs/"))
        return "the CUDA toolkit's stub, which only serves for linking";
    return NULL;
}

/* What was wrong with the candidates, for the message. */
struct search {
    const char *soname;
    char *path;
    size_t size;
    char tried[300];
};

static bool
try_path(struct search *s, const char *path)
{
    const char *wrong = hed_gpu_reject(path);
    const size_t n = strlen(s->tried);

    hed_debug(GPU, "%s: %s", path, wrong ? wrong : "taken");
    if (!wrong)
        return hed_str_copy(s->path, s->size, path);
    if (access(path, F_OK) == 0)
        (void)snprintf(s->tried + n, sizeof s->tried - n, "; %s: %s", path, wrong);
    return false;
}

/* The loader's cache (/etc/ld.so.cache, new format): names and paths as offsets into it. */
struct cache_head {
    char magic[20];
    uint32_t count;
    uint32_t strings;
    uint8_t flags;
    uint8_t padding[3];
    uint32_t extension;
    uint32_t unused[3];
};

struct cache_entry {
    int32_t flags;
    uint32_t key;
    uint32_t value;
    uint32_t os;
    uint64_t hwcap;
};

static const char *
cache_text(const char *cache, size_t size, uint32_t at)
{
    return at < size && memchr(cache + at, 0, size - at) ? cache + at : NULL;
}

static bool
search_cache(struct search *s, const char *cache, size_t size)
{
    struct cache_head head;

    if (size < sizeof head)
        return false;
    memcpy(&head, cache, sizeof head);
    if (memcmp(head.magic, "glibc-ld.so.cache1.1", 20) != 0 ||
        head.count > (size - sizeof head) / sizeof(struct cache_entry))
        return false;
    for (uint32_t i = 0; i < head.count; i++) {
        struct cache_entry e;

        memcpy(&e, cache + sizeof head + i * sizeof e, sizeof e);

        const char *key = cache_text(cache, size, e.key);
        const char *value = cache_text(cache, size, e.value);

        if (key && value && strcmp(key, s->soname) == 0 && try_path(s, value))
            return true;
    }
    return false;
}

static bool
search_loader_cache(struct search *s)
{
    const int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
    struct stat st;
    bool found = false;

    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && st.st_size > 0 && st.st_size <= CACHE_MAX) {
        char *cache = malloc((size_t)st.st_size);
        const ssize_t n = cache ? read(fd, cache, (size_t)st.st_size) : -1;

        found = n > 0 && search_cache(s, cache, (size_t)n);
        free(cache);
    }
    close(fd);
    return found;
}

int
hed_gpu_find(const char *soname, const char *given, char *path, size_t size, struct hed_why *why)
{
    struct search s = {soname, path, size, ""};

    if (*given) {
        const char *wrong = hed_gpu_reject(given);

        if (!wrong && hed_str_copy(path, size, given))
            return 0;
        hed_why_set(why, "%s: %s", given, wrong ? wrong : "the path is too long");
        return HED_EINVAL;
    }
    if (search_loader_cache(&s))
        return 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char candidate[256];

        (void)snprintf(candidate, sizeof candidate, "%s/%s", folders[i], soname);
        if (try_path(&s, candidate))
            return 0;
    }
    hed_why_set(why,
                "NVIDIA's %s was not found in the loader's cache or the usual folders%s; install "
                "NVIDIA's driver, or name the library with the setting '%s'",
                soname, s.tried, strstr(soname, "-ml") ? "nvml" : "driver");
    return HED_ENOTFOUND;
}
