/* Fat binaries in object files and archives. Apart from link.c because the ELF reader and the
 * handle table both have a struct hed_object.
 */
#pragma once

#include "fatbin/bytes.h"
#include "gen/cuda_abi.h"

/* Calls fn with each; its first failure ends the search and is the answer. INVALID_IMAGE for what
 * cannot be searched. */
CUresult hed_link_find(struct hed_bytes file, CUresult (*fn)(void *arg, struct hed_bytes fatbin),
                       void *arg);
