/* Fuzz target: the dynamic loader's cache. */
#include "harness/fuzz.h"

#include <string.h>

#include "locate/ldcache.h"

static void
read_path(void *arg, const char *path)
{
    *(size_t *)arg += strlen(path);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t letters = 0;
    const int err = hed_ldcache_each_in(data, size, "libcuda.so.1", read_path, &letters);

    must(!err || letters == 0);
    return 0;
}
