/* Loads object files of compiled kernels into memory, ready to run. Needs no LLVM.
 *
 * An object file is what kernel/ptx/run/abi.h describes: an ELF relocatable file for this machine
 * with `hed_kernel` and `hed_kernel_info`. The bytes come from a cache that others may have written
 * to, so every number in them is checked. (What the code does when it runs is not: the cache
 * belongs to the user that it runs for.)
 */
#pragma once

#include <stddef.h>

#include "kernel/ptx/run/abi.h"

struct hed_why;

struct hed_ptx_loaded {
    hed_ptx_entry entry;
    struct hed_ptx_info info;
    void *base;  /* one mapping: code, constants, data */
    size_t size; /* bytes */
};

/* Loads an object file. Undefined symbols are looked up in the tables, in order; a NULL name ends a
 * table. They must be functions, since those that are too far away are reached by a jump.
 * HED_EFORMAT, HED_ETRUNC, HED_EVERSION (another ABI), HED_ENOTSUP (another machine, a relocation
 * we do not know), HED_ENOTFOUND (a symbol), HED_ERANGE, HED_ELIMIT, HED_ENOMEM, all with the
 * reason. */
int hed_ptx_load(const void *bytes, size_t size, const struct hed_ptx_symbol *const *tables,
                 size_t ntables, struct hed_ptx_loaded *out, struct hed_why *why);

/* The code must not be running. */
void hed_ptx_unload(struct hed_ptx_loaded *l);
