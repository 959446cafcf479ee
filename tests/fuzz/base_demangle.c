/* Fuzz target: mangled names of C++ functions. */
#include "harness/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = malloc(size + 3);
    char small[16], large[4096];

    if (!name)
        return 0;
    memcpy(name, "_Z", 2);
    memcpy(name + 2, data, size);
    name[size + 2] = '\0';
    (void)hed_demangle(name, small, sizeof small);
    (void)hed_demangle(name, large, sizeof large);
    free(name);
    return 0;
}
