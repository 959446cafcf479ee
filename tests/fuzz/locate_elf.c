/* Fuzz target: the ELF files that `heddle run`, the audit libraries and the search for NVIDIA's
 * libraries look into. */
#include "harness/fuzz.h"

#include <string.h>

#include "locate/elf.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hed_elf e;

    hed_elf_read_in(data, size, &e);
    must(memchr(e.soname, 0, sizeof e.soname) && memchr(e.needed, 0, sizeof e.needed));
    must(e.is_64 || (!e.has_interp && !*e.soname && !*e.needed));
    (void)hed_elf_is_heddle(&e);
    return 0;
}
