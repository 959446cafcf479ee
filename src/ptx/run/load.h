/* Object files of compiled kernels into memory that can be run. Needs no LLVM.
 *
 * Takes what ptx/run/abi.h says an object file holds: an ELF relocatable file of this machine with
 * `hed_kernel` and `hed_kernel_info`. The bytes come from a cache that anybody may have written to:
 * every number in them is checked. (What the code does when run is another matter: a cache belongs
 * to the user it runs for.)
 */
#pragma once

#include <stddef.h>

#include "ptx/run/abi.h"

struct hed_why;

struct hed_ptx_loaded {
    hed_ptx_entry entry;
    struct hed_ptx_info info;
    void *base;  /* one mapping: code, constants, data */
    size_t size; /* bytes */
};

/* Loads an object file. Symbols it leaves undefined are looked up in the tables, each ended by a
 * NULL name, in order; they are functions, as what is too far is reached by a jump. HED_EFORMAT,
 * HED_ETRUNC, HED_EVERSION (another ABI), HED_ENOTSUP (another machine, a relocation we do not
 * know), HED_ENOTFOUND (a symbol), HED_ERANGE, HED_ELIMIT, HED_ENOMEM, all with the reason. */
int hed_ptx_load(const void *bytes, size_t size, const struct hed_ptx_symbol *const *tables,
                 size_t ntables, struct hed_ptx_loaded *out, struct hed_why *why);

/* Nobody may run the code any more. */
void hed_ptx_unload(struct hed_ptx_loaded *l);
