/* The exported functions by name, version and stream variant, and the rule of cuGetProcAddress. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gen/cuda_abi.h"

struct hed_proc {
    const char *base; /* the name programs ask for */
    const char *name; /* the name it is exported by */
    int since;        /* first driver version with this signature */
    bool ptds;        /* the per-thread-default-stream variant */
    void *function;
};

/* Sorted by base, plain before per-thread, then by version. */
extern const struct hed_proc hed_cuda_procs[];
extern const size_t hed_cuda_proc_count;

/* The newest entry that is not newer than `version`; with the per-thread flag the per-thread
 * variant where there is one. NULL: *status says whether the name or only the version is missing.
 * */
const struct hed_proc *hed_proc_find(const char *base, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult *status);
