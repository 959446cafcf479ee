/* Fuzz target: object files, which are loaded like those of the cache, but never run. */
#include "harness/fuzz.h"

#include "base/err.h"
#include "kernel/ptx/run/load.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* The names that the seed leaves undefined; nothing calls them. */
    static const struct hed_ptx_symbol table[] = {
        {"load_outside", (const void *)hed_ptx_load},
        {"load_other", (const void *)hed_ptx_unload},
        {0},
    };
    static const struct hed_ptx_symbol *const tables[] = {table};
    struct hed_ptx_loaded l;
    struct hed_why why;

    if (hed_ptx_load(data, size, tables, 1, &l, &why) == 0)
        hed_ptx_unload(&l);
    return 0;
}
