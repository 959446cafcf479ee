/* Finds fat binaries in object files and archives. Separate from link.c because the ELF reader and
 * the handle table both have a struct hed_object. */
#pragma once

#include "gen/cuda_abi.h"
#include "kernel/fatbin.h"

/* Calls fn for each. The first failure ends the search and is returned. INVALID_IMAGE for a file
 * that cannot be searched. */
CUresult hed_link_find(struct hed_bytes file, CUresult (*fn)(void *arg, struct hed_bytes fatbin),
                       void *arg);
