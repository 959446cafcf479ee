/* The library of layers/watch/caller.h: the stack is walked, and the loader asked whose code each
 * address is.
 */
#include "layers/watch/caller.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdbool.h>
#include <string.h>

#include "base/str.h"

#define FRAMES 16

static const char *
file_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    return slash ? slash + 1 : path ? path : "";
}

static bool
begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

__attribute__((noinline)) void
watch_find_caller(char *out, size_t size)
{
    void *frames[FRAMES];
    const int n = backtrace(frames, FRAMES);
    Dl_info info;

    out[0] = '\0';
    for (int i = 0; i < n; i++) {
        const char *name = dladdr(frames[i], &info) ? file_name(info.dli_fname) : "";

        if (!*name || begins_with(name, "libheddle") || begins_with(name, "libcuda.so") ||
            begins_with(name, "libcudart.so"))
            continue;
        (void)hed_str_copy(out, size, name);
        return;
    }
}
