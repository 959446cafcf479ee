/* A program beside a library that has LLVM's names, as frameworks have: its kernels are compiled by
 * LLVM, and not by that library. */
#include "e2e/cpu/ends.h"

#include <dirent.h>

/* Compiled kernels are in the cache. */
static int
count_cached(void)
{
    const char *folder = getenv("HEDDLE_CACHE");
    DIR *d = folder ? opendir(folder) : NULL;
    const struct dirent *e;
    int count = 0;

    while (d && (e = readdir(d)) != NULL)
        count += strstr(e->d_name, ".kernel") != NULL;
    if (d)
        closedir(d);
    return count;
}

int
main(void)
{
    void *all = dlopen(NULL, RTLD_NOW);

    /* Or this tests nothing. */
    CHECK(all && dlsym(all, "LLVMContextCreate"), "the library is not loaded");
    start_driver();
    works();
    CHECK(count_cached() > 0, "the kernel was not compiled");
    return 0;
}
